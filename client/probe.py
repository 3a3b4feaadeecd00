"""A board's trace core: arm it, wait for its trigger, read what it captured (docs/probe.md).

>>> with Board("192.0.2.2") as board:
...     board.arm_probes(["tcp.csr.retransmits:change"], before=256)
...     while not board.probe_state().done:
...         time.sleep(0.1)
...     capture = board.read_probes()
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..models.capture import Capture, Layout, Trigger, cycles_of
from ..models.register_map import RegisterMap
from .dispatch import Member
from .errors import BoardError, ProtocolError, refusal
from .jobs import Batch, Call, Service
from .management import MAX_REPLY, ask_board
from .operation import operation
from .registers import find_register_map, read_registers, words_of, write_register
from .smp import MessageType, parse_reply

__all__ = ["ProbeAccess", "ProbeState"]

_BITS = 32
_ARM, _STOP, _REWIND = 1, 2, 4
_WINDOW = "probe.window_"
#: Commands that are under way at a time while records are read.
_TOGETHER = 16
_CLOCK = re.compile(r" at (\d+) Hz")


@dataclass(frozen=True)
class ProbeState:
    """What the trace core does: it stores records, the trigger was met, they can be read."""

    armed: bool
    triggered: bool
    done: bool


class ProbeAccess:
    """Operations on a single board's trace core, for ``Board`` and ``AsyncBoard``."""

    _member: Member

    @operation
    def probe_layout(self) -> Call[Layout]:
        """The signals that the board's trace core samples, and how many records it keeps.

        Raises :class:`~..models.errors.TrebuchetError` if the board has none.
        """
        return (yield from _layout(self._member))

    @operation
    def arm_probes(self, trigger: Iterable[str] = (), before: int | None = None) -> Call[None]:
        """Begin a capture.

        ``trigger``: conditions as :meth:`~..models.capture.Layout.trigger` takes them; none: at
        once. ``before``: records to keep from before it; None: a quarter of them.
        """
        member = self._member
        layout = yield from _layout(member)
        met = layout.trigger(trigger)
        kept = layout.depth // 4 if before is None else before
        if not 0 <= kept < layout.depth:
            raise BoardError(
                f"{member.name} keeps {layout.depth} records, so those before the trigger must be "
                f"0 to {layout.depth - 1}, not {kept}; --probe-depth of its build sets more"
            )
        found = yield from find_register_map(member)
        values = [*_trigger_registers(layout, met), ("probe.before", kept), ("probe.control", _ARM)]
        yield from _ask_together(
            member,
            [
                f"poke {found.registers[name].address:#x} {number} {found.hash}"
                for name, number in values
            ],
        )

    @operation
    def stop_probes(self) -> Call[None]:
        """End a capture now; its records can be read."""
        yield from write_register(self._member, "probe.control", _STOP)

    @operation
    def probe_state(self) -> Call[ProbeState]:
        """What the trace core does."""
        member = self._member
        yield from _layout(member)
        found = yield from find_register_map(member)
        state = found.registers["probe.state"]
        values = yield from read_registers(member, found, [state])
        value = values[state.name]
        return ProbeState(bool(value & 1), bool(value & 2), bool(value & 4))

    @operation
    def read_probes(self) -> Call[Capture]:
        """What was captured. Raises :class:`~.errors.BoardError` while the capture has no end."""
        member = self._member
        layout = yield from _layout(member)
        found = yield from find_register_map(member)
        names = ("state", "records", "trigger_time", "end_time")
        wanted = [found.find(f"probe.{name}")[0] for name in names]
        values = yield from read_registers(member, found, wanted)
        state, count, trigger, end = (values[register.name] for register in wanted)
        if not state & 4:
            raise BoardError(f"the trace core of {member.name} has no capture that has ended")
        rows = yield from _records(member, found, layout, count)
        stamps = [stamp for stamp, _ in rows]
        cycles = cycles_of(stamps, layout.stamp_width, end)
        reply = yield from ask_board("version")
        match = _CLOCK.search(reply.text)
        if match is None:
            raise ProtocolError(f"{member.name} does not say the frequency of its clock")
        records = tuple(zip(cycles, (sample for _, sample in rows), strict=True))
        return Capture(
            layout, records, int(end), int(trigger) if state & 2 else None, int(match[1])
        )


def _layout(member: Member) -> Call[Layout]:
    found = yield from find_register_map(member)
    if "probe.state" not in found.registers:
        raise BoardError(
            f"{member.name} has no trace core: build the board, or start `trebuchet sim`, with "
            "--probe SIGNAL (docs/probe.md)"
        )
    return Layout.of(found)


def _trigger_registers(layout: Layout, trigger: Trigger) -> Iterator[tuple[str, int]]:
    for name in ("value", "mask", "edge"):
        number: int = getattr(trigger, name)
        for word in range(layout.words):
            yield f"probe.{name}_{word}", number >> _BITS * word & (1 << _BITS) - 1


def _records(
    member: Member, found: RegisterMap, layout: Layout, count: int
) -> Call[list[tuple[int, int]]]:
    """Stamp and sample of each record, the oldest first, many commands under way at a time."""
    window = [found.registers[name] for name in found.registers if name.startswith(_WINDOW)]
    size, words = len(window), 1 + layout.words
    times = -(-count * words // size)
    line = f"peek {window[0].address:#x} {size} {found.hash}"
    yield from write_register(member, "probe.control", _REWIND)
    values: list[int] = []
    while times:
        some = min(times, _TOGETHER)
        for text in (yield from _ask_together(member, [line] * some)):
            values += words_of(member, text, window[0].address, size)
        times -= some
    position = found.find("probe.position")[0]
    read = yield from read_registers(member, found, [position])
    if read[position.name] != (len(values) // words) % (2 * layout.depth):
        raise BoardError(f"somebody else read the records of {member.name} meanwhile; try again")
    rows = [values[k * words : (k + 1) * words] for k in range(count)]
    return [(row[0], sum(value << _BITS * k for k, value in enumerate(row[1:]))) for row in rows]


def _ask_together(member: Member, lines: Sequence[str]) -> Call[list[str]]:
    """Have commands carried out in order, all under way together; what each says."""
    payloads = yield Batch(
        None,
        [line.encode() for line in lines],
        MessageType.COMMAND,
        together=True,
        service=Service.MANAGEMENT,
        largest=MAX_REPLY,
    )
    said = []
    for line, payload in zip(lines, payloads, strict=True):
        status, text = parse_reply(payload)
        if status:
            member.register_map = None  # it may have got another build: the next call looks
            fault = refusal(status, "")
            said_so = " ".join(text.split())
            fault.args = (f"{member.name} refused `{line}`: {said_so}; try again",)
            raise fault
        said.append(text)
    return said
