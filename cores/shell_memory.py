"""Where a shell's data lie in external memory: a list of named regions."""

from dataclasses import dataclass

from .cluster.server import ServerMemory

__all__ = ["MAILBOX_SLOT", "RESULT_HEADER", "RESULT_SLOT", "Region", "ShellMemory", "slot_for"]

#: Bytes before a result in its slot.
RESULT_HEADER = 16
#: Bytes of a mailbox slot.
MAILBOX_SLOT = 4096
#: Bytes of the fixed page.
PAGE = 1 << 16
#: Alignment of the sessions' state, that of ``TcpConfig.state_base``.
STATE_ALIGN = 128
#: Alignment of an image of files (:class:`trebuchet.models.http.image.Image`).
IMAGE_ALIGN = 4096


def slot_for(result):
    """Bytes of a result slot, a power of two, for results of at most ``result`` bytes."""
    return max(32, 1 << (RESULT_HEADER + result - 1).bit_length())


#: For roles that do not say how long their results are (rule 4 of the role contract).
RESULT_SLOT = slot_for((1 << 11) - RESULT_HEADER)


@dataclass(frozen=True)
class Region:
    """A part of external memory that belongs to one part of the shell.

    Attributes
    ----------
    name : str
        What lies there.
    base, size : int
        Address, and bytes; may be 0.
    """

    name: str
    base: int
    size: int

    @property
    def end(self):
        return self.base + self.size


class ShellMemory:
    """The regions of a shell, one behind the other from ``base`` on, each at its own alignment.

    Parameters
    ----------
    base : int
        First address, a multiple of a segment.
    pool : int
        Bytes of the receive pool.
    sessions : int
        TCP sessions, or with places those that a service can be at work for.
    messages : int or None
        Those that the SMP framer can be at work for; None: as many.
    result_slot : int
        Bytes of a result slot, a power of two; there are two a session for the SMP framer.
    scratch : sequence of (str, int)
        Name of each role with scratch memory, and log2 of its bytes a session.
    peers, operand : int
        Other boards, and the bytes of a segment: each peer has an operand and a result.
    state : int
        Bytes of the state of TCP sessions (``TcpConfig.state_size``), 0 if it is in block RAM.
    web : int
        Bytes of the web service's two images together.

    ``regions`` has them in order: ``pool``, ``results``, ``mailbox`` (a transmit slot a session),
    ``page``, ``scratch_NAME`` of each role, ``peers``, ``sessions`` (their state), ``web``. The
    last three are there only if they have a size. ``memory["page"].base`` is an address.
    """

    def __init__(
        self,
        base,
        pool,
        sessions,
        result_slot=RESULT_SLOT,
        scratch=(),
        peers=0,
        operand=0,
        messages=None,
        state=0,
        web=0,
    ):
        messages = sessions if messages is None else messages
        self.base = base
        self.regions = []
        self._add("pool", pool, 1)
        self._add("results", 2 * messages * result_slot, 16)
        self._add("mailbox", sessions * MAILBOX_SLOT, MAILBOX_SLOT)
        self._add("page", PAGE, 1)
        for name, log2 in scratch:
            self._add(f"scratch_{name}", messages << log2, 1 << log2)
        self.cluster = None
        if peers:
            align = max(operand, result_slot)
            logs = (size.bit_length() - 1 for size in (operand, result_slot))
            place = self._next(align)
            self.cluster = ServerMemory(place, peers, *logs)
            self._add("peers", self.cluster.size, align)
        if state:
            self._add("sessions", state, STATE_ALIGN)
        if web:
            self._add("web", web, IMAGE_ALIGN)

    def _next(self, align):
        """The next multiple of ``align`` that is free."""
        end = self.regions[-1].end if self.regions else self.base
        return -(-end // align) * align

    def _add(self, name, size, align):
        self.regions.append(Region(name, self._next(align), size))

    def __iter__(self):
        return iter(self.regions)

    def __getitem__(self, name):
        return next(region for region in self.regions if region.name == name)

    @property
    def size(self):
        """Bytes needed from ``base`` on."""
        return self.regions[-1].end - self.base
