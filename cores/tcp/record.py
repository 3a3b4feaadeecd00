"""The session record, and the port by which engines check it out.

Every sequence number is absolute (modulo 2**32); comparisons are signs of differences. The states
of RFC 9293 map to the record like this:

============  =====================================================================
RFC state     record
============  =====================================================================
LISTEN        no session; a service's ``listen`` bit
SYN-SENT      ``phase`` SYN_SENT; what is received is not yet known
SYN-RECEIVED  ``phase`` SYN_RCVD
ESTABLISHED   ``phase`` OPEN
FIN-WAIT-1    OPEN, ``fin_queued``
FIN-WAIT-2    OPEN, ``fin_queued``, ``fin_acked``
CLOSE-WAIT    OPEN, ``fin_told``
LAST-ACK      OPEN, ``fin_told``, ``fin_queued``, ``passive``
CLOSING       OPEN, ``fin_told``, ``fin_queued``, not ``passive``
TIME-WAIT     ``phase`` TIME_WAIT
CLOSED        ``phase`` CLOSED until the service has released the slot, then FREE
============  =====================================================================
"""

from amaranth import unsigned
from amaranth.hdl import C, Cat, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from ..net.vlan import VLAN_WIDTH
from .service import TAG_WIDTH

__all__ = ["TIME_WIDTH", "CheckoutSignature", "Handback", "Phase", "UpdateSignature"]
__all__ += ["descriptor_layout", "kill"]
__all__ += ["opening", "peer_layout", "record_layout", "run_names", "send_window"]
__all__ += ["FLIGHT_MAX", "NUMBERS", "RUNS", "RUNS_MAX"]


def wake_width(window=512, windows=64):
    """Bits of the tick of a visit: they tell apart what lies ahead from what is past."""
    return (window * windows).bit_length()


#: Width of tick counts: differences up to 2**23 ticks (2.3 hours of milliseconds) are told apart.
TIME_WIDTH = 24
#: Data segments of one session that may be between engine and sender.
FLIGHT_MAX = 15
#: Runs of bytes that can be kept beyond gaps, and where the record says where they are.
RUNS_MAX = 4
RUNS = [(f"kept_from{k}", f"kept_to{k}") for k in ("", *range(1, RUNS_MAX))]
#: The record's numbers. The store keeps each in places of its own, so one that is not handed back
#: as changed stays as it is without having to be carried through engine and store.
NUMBERS = ("rcv_base", "rcv_nxt", "rcv_pub", "rcv_cons", "rcv_edge")
NUMBERS += tuple(name for names in RUNS for name in names)
NUMBERS += ("snd_una", "snd_nxt", "snd_max", "snd_end", "snd_wnd", "mss", "cwnd", "credit")
NUMBERS += ("ssthresh", "recover", "srtt8", "rttvar4", "rtt_seq", "rtt_start", "rto")
NUMBERS += ("deadline", "progress")


class Phase(enum.Enum, shape=3):
    """Coarse state of a session slot (see the module's docstring)."""

    FREE = 0
    SYN_RCVD = 1
    OPEN = 2
    TIME_WAIT = 3
    CLOSED = 4
    SYN_SENT = 5  # only if ``config.active``


def run_names(config):
    """Pairs of the fields that say where a run kept beyond a gap begins and ends."""
    return RUNS[: config.runs]


def record_layout(config):
    """Layout of a session record for ``config``."""
    bits = config.window_bits
    fields = {
        "service": max(1, (len(config.ports) - 1).bit_length()),
        # Life cycle.
        "phase": Phase,
        "fin_seen": 1,  # the peer's FIN is in rcv_nxt
        "fin_told": 1,  # the peer's FIN is in rcv_pub
        "fin_queued": 1,  # the service has closed: snd_end counts our FIN
        "fin_acked": 1,
        "passive": 1,  # the peer closed first
        "opened": 1,  # the service has been, or will be, told OPEN
        "released": 1,
        "ok": 1,  # for CLOSED
        # Receive.
        "rcv_base": 32,  # sequence number of stream position 0
        "rcv_nxt": 32,  # next byte expected
        "rcv_pub": 32,  # bytes before are in memory: what is acknowledged and published
        "rcv_cons": 32,  # bytes before are consumed
        "rcv_edge": 32,  # right edge of the announced window
        "has_segment": 1,
        "segment": config.segment_bits,
        # Runs of bytes that are in memory, while those before them are missing: how many; the one
        # with the newest segment first, low bits of where each begins and ends.
        "kept": config.runs.bit_length(),
        **{name: config.place_bits for names in run_names(config) for name in names},
        # Send.
        "snd_una": 32,
        "snd_nxt": 32,
        "snd_max": 32,  # highest snd_nxt ever
        "snd_end": 32,  # end of all that is queued
        "snd_wnd": 16,
        "mss": 11,
        "cwnd": bits,
        "credit": bits,  # bytes acknowledged towards the next growth of cwnd
        "ssthresh": bits,
        "recover": 32,
        "recovering": 1,
        "dup_acks": 2,
        "first": 2,  # slot of the oldest unanswered descriptor
        "count": 3,  # unanswered descriptors
        "ahead": 3,  # which of them snd_nxt is in
        "flight": 4,  # data segments between engine and sender
        # Time.
        "srtt8": 19,
        "rttvar4": 18,
        "rtt_valid": 1,
        "rtt_on": 1,
        "rtt_seq": 32,
        "rtt_start": 16,
        "rto": 17,
        "retries": 4,
        "deadline": TIME_WIDTH,
        "progress": TIME_WIDTH,
        "challenge_time": 6,
        "challenges": 2,
        # What is to be sent.
        "ack_due": 1,
        "syn_due": 1,
        "rst_due": 1,
        "resend": 1,  # one segment from snd_una on
        "probe": 1,  # the same, one byte even into a closed window
        "keepalive": 1,
        "blocked": 1,  # nothing can be sent until something changes
        # What is to be told.
        "ev_open": 1,
        "ev_data": 1,
        "ev_eof": 1,
        "ev_closed": 1,
        "check": 1,  # the oldest descriptor may be done with
        # Kept by the store alone: the session is in that list.
        "on_active": 1,
        "on_event": 1,
        "on_recycle": 1,
        "on_wheel": 1,
    }
    if config.cache:
        fields["wake"] = wake_width()  # with on_wheel: the tick of its visit, by the store
    if config.scaling:
        fields |= {
            "scaled": 1,  # windows are shifted, both ways: both SYNs said so (or ours offers it)
            "snd_shift": 4,  # of the peer's windows
            "snd_plain": 1,  # snd_wnd was that of a SYN, which is never shifted
        }
    if config.places:
        # The service has a row for it, at that place; kept while something was told or is unread.
        fields |= {"placed": 1, "place": config.place_width}
    if config.sack:
        fields["sack"] = 1  # ACKs tell what is kept: both SYNs said so (or ours offers it)
    if config.ack_delay:
        fields |= {
            "ack_wait": 1,  # what has come is to be acknowledged, at the next visit at the latest
            "ack_now": 1,  # what is on its way to memory belongs to a gap: no ACK of it waits
            "near": 1,  # the timer's next visit is at most ack_delay ticks off
            "busy": 1,  # data have come since its last visit: so the one after is to be near
        }
    return data.StructLayout(
        {n: unsigned(s) if isinstance(s, int) else s for n, s in fields.items()}
    )


def peer_layout(config):
    """Who a session is with: written when it is made, read when something is sent.

    Not in the record, which is as wide as it is costly: every bit of it goes to all engines.
    """
    more = {"vlan": VLAN_WIDTH} if config.vlan else {}
    return data.StructLayout({"mac": 48, "ip": 32, "remote_port": 16, "local_port": 16} | more)


def descriptor_layout():
    """A queued transmit descriptor: byte ``s`` of the sequence space is at ``delta + s``."""
    return data.StructLayout(
        {"delta": 32, "end": 32, "push": 1, "close": 1, "tag": TAG_WIDTH},
    )


class UpdateSignature(wiring.Signature):
    """What is to be changed in a record, from the side of the component that decides it.

    ===========  ===  =============================================================================
    ``record``   In   the record
    ``result``   Out  and ``changes``: as in :class:`CheckoutSignature`, of the fields ``writes``
    ===========  ===  =============================================================================

    No control: the owner of the checkout port says in which cycle it is valid.
    """

    def __init__(self, config, writes):
        layout = record_layout(config)
        for name in writes:
            if name not in layout.members:
                raise ValueError(f"Field to write must be one of the record, not {name!r}")
        self.config, self.writes = config, tuple(writes)
        self.result_layout = data.StructLayout(
            {n: layout.members[n] for n in writes if n != "progress"}
        )
        self.changes_layout = data.StructLayout({n: 1 for n in writes if n in NUMBERS})
        super().__init__(
            {
                "record": In(layout),
                "result": Out(self.result_layout),
                "changes": Out(self.changes_layout),
            }
        )


class CheckoutSignature(wiring.Signature):
    """How an engine gets hold of one session record, from the engine's side.

    ===========  ===  =============================================================================
    ``request``  Out  wants ``session``; both stay as they are until ``grant``
    ``session``  Out  which one
    ``grant``    In   the record is checked out; stays 1 up to and including the cycle of ``commit``
    ``record``   In   the record, stable while ``grant``
    ``commit``   Out  hand back; ``result`` holds the new values of the fields this engine writes
    ``result``   Out  a struct of the fields named by ``writes``
    ``changes``  Out  a bit for each of them that is one of :data:`NUMBERS`: it has a new value;
                      else ``result`` is not looked at there
    ===========  ===  =============================================================================

    Times are handed back from now on: ``result.deadline`` is how many ticks are left, and
    ``progress`` has no value, because if it changes it becomes the time. So the store alone adds.

    No other engine sees the record between ``grant`` and ``commit``, so an engine must never wait,
    while it holds one, for anything that could wait for another engine.
    """

    def __init__(self, config, writes):
        update = UpdateSignature(config, writes)
        self.config, self.writes = config, update.writes
        self.result_layout, self.changes_layout = update.result_layout, update.changes_layout
        super().__init__(
            {
                "request": Out(1),
                "session": Out(config.session_bits),
                "grant": In(1),
                "record": update.members["record"],
                "commit": Out(1),
                "result": update.members["result"],
                "changes": update.members["changes"],
            }
        )

    def __eq__(self, other):
        return (
            isinstance(other, CheckoutSignature)
            and self.config == other.config
            and self.writes == other.writes
        )


def send_window(config, record):
    """Bytes of the peer's last window. Of a scaled one so many as can be under way at all."""
    if not config.scaling:
        return record.snd_wnd
    shifted = record.snd_wnd << Mux(record.scaled & ~record.snd_plain, record.snd_shift, 0)
    most = (1 << config.window_bits - 1) - 1
    return Mux(shifted > most, most, shifted)


class _Number:
    """A number of the record as an engine hands it back: who assigns it, makes it change."""

    def __init__(self, name):
        self.name, self.sources = name, []

    def eq(self, value, when=1):
        """The statement that hands ``value`` back, if ``when``, and no later one is executed."""
        chosen = Signal(name=f"{self.name}_{len(self.sources)}")
        self.sources.append((chosen, value))
        return chosen.eq(when)


class Handback:
    """What an engine hands back: fields to be assigned, as attributes and as items.

    ``port`` is of :class:`CheckoutSignature` or :class:`UpdateSignature`.
    What is not assigned stays as it is. The values of a number (:data:`NUMBERS`) are looked at all
    the time and chosen by who assigned last, so ``finish`` must come after all assignments.
    """

    def __init__(self, m, port):
        self._port = port
        self._numbers = {name: _Number(name) for name in port.signature.changes_layout.members}
        for name in port.signature.writes:
            if name not in self._numbers:
                m.d.comb += port.result[name].eq(port.record[name])

    def __getitem__(self, name):
        return self._numbers[name] if name in self._numbers else self._port.result[name]

    def __getattr__(self, name):
        return self[name]

    def apply(self, update):
        """Statements that hand back what ``update``, of :class:`UpdateSignature`, changes."""
        statements = []
        for name in update.signature.writes:
            if name == "progress":
                statements.append(self._port.changes.progress.eq(update.changes.progress))
            elif name in self._numbers:
                number = self._numbers[name]
                statements.append(number.eq(update.result[name], update.changes[name]))
            else:
                statements.append(self[name].eq(update.result[name]))
        return statements

    def touch(self):
        """The statement by which ``progress`` becomes the time."""
        return self._port.changes.progress.eq(1)

    def finish(self, m):
        """Connect the numbers."""
        for name, number in self._numbers.items():
            if not number.sources:
                continue
            value = number.sources[0][1]
            for chosen, later in number.sources[1:]:
                value = Mux(chosen, later, value)
            m.d.comb += self._port.result[name].eq(value)
            changed = [chosen for chosen, _ in number.sources]
            m.d.comb += self._port.changes[name].eq(Cat(changed).any())


#: Fields that :func:`kill` writes.
KILL_WRITES = ("phase", "ack_due", "syn_due", "rst_due", "resend", "probe", "keepalive", "check")
KILL_WRITES += ("ev_closed", "ok", "released")
__all__ += ["KILL_WRITES"]


def opening(config, record):
    """Whether a record is in SYN-SENT; costs nothing where no session is opened by this side."""
    return record.phase == Phase.SYN_SENT if config.active else C(0)


def kill(port, reset):
    """Statements that end a session at once; with ``reset``, the peer is sent a RST."""
    record, result = port.record, port.result
    if port.signature.config.active:
        reset = reset & (record.phase != Phase.SYN_SENT)  # RFC 9293, 3.10.5
    return [
        result.phase.eq(Phase.CLOSED),
        result.ack_due.eq(0),
        result.syn_due.eq(0),
        result.rst_due.eq(reset),
        result.resend.eq(0),
        result.probe.eq(0),
        result.keepalive.eq(0),
        result.check.eq(1),
        result.ev_closed.eq(record.opened),
        result.ok.eq(0),
        result.released.eq(~record.opened),
    ]
