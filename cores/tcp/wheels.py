"""When each session is to be visited: two timer wheels, their links in external memory."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..memory import ADDR_WIDTH, MemorySignature
from .record import TIME_WIDTH, wake_width

__all__ = ["Alarm", "TimerWheels", "wake_width", "wake_limit"]

#: Bytes of a session in memory: two links of 3, and the tick at which it is visited.
WORD_BYTES = 8
LINK_BITS, WAKE_BITS = 24, 16
#: Ticks that are remembered while they cannot be served.
TICKS = (1 << 12) - 1
#: Writes that may be under way.
WRITES = 15


def _log2(value):
    return value.bit_length() - 1


def _power(value):
    return isinstance(value, int) and value > 0 and not value & (value - 1)


def _check(ok, what, expected, value):
    if not ok:
        raise ValueError(f"{what} must be {expected}, not {value!r}")


def wake_limit(window=512, windows=64):
    """Ticks ahead that a visit can be at most; one whose deadline is further off comes then."""
    return window * (windows - 1)


class Alarm(wiring.Component):
    """What the store asks of the wheels when it takes a record back. Combinational.

    ============  ===  ========================================================================
    ``now``       In   of the wheels
    ``deadline``  In   in the record, as handed back
    ``linked``    In   in the record: the session is on a wheel (or its visit is on its way)
    ``wake``      In   in the record: the tick of that visit
    ``aim``       Out  the tick at which it is to be visited: the new ``wake`` of the record
    ``ask``       Out  place it there, with this ``linked``: it is on no wheel, or it is there
                       for later than that
    ============  ===  ========================================================================

    With ``ask`` the store sends (session, ``aim``, ``linked``) to ``place`` and writes 1 and
    ``aim`` to the record; without it, both stay as they are. A deadline that moves away
    costs nothing: the visit finds it. A free session must not ask.
    """

    def __init__(self, window=512, windows=64):
        self.limit = wake_limit(window, windows)
        bits = wake_width(window, windows)
        super().__init__(
            {
                "now": In(TIME_WIDTH),
                "deadline": In(TIME_WIDTH),
                "linked": In(1),
                "wake": In(bits),
                "aim": Out(bits),
                "ask": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        bits = len(self.wake)
        left, ahead = Signal(TIME_WIDTH), Signal(bits)
        earlier = Signal(bits)
        m.d.comb += [
            left.eq(self.deadline - self.now),
            ahead.eq(Mux(left > self.limit, self.limit, left)),
            earlier.eq(self.aim - self.wake),
            self.aim.eq(self.now + ahead),
            self.ask.eq(~self.linked | earlier[-1]),
        ]
        with m.If(left[-1] | (left == 0)):  # it has passed
            m.d.comb += ahead.eq(1)
        return m


class Kind(enum.Enum, shape=2):
    """What the session in hand is there for."""

    PLACE = 0
    NEAR = 1
    FAR = 2


class TimerWheels(wiring.Component):
    """Visits each session at the tick that it was placed at; a session is in one place.

    ==========  ===  ========================================================================
    ``tick``    In   strobe: a millisecond has passed
    ``now``     Out  ticks served since reset; the last of them is being served
    ``place``   In   stream: ``session`` is to be visited at tick ``wake`` (its low bits), or at
                     the next if that has come; ``linked``: it was placed, and not visited since
    ``visit``   Out  stream of sessions: each that was placed, once, when its tick has come
    ``mem``     Out  memory port
    ==========  ===  ========================================================================

    Parameters: ``sessions``, a power of two; ``width``, ``tag_width`` of the memory port; ``base``,
    address of :attr:`size` bytes, a multiple of 16; ``window``, ticks, and ``windows``, both powers
    of two. Defaults: visits up to 32,256 ticks ahead.

    **Wheels.** The near one has a slot for each tick of this window and the next; the far one has
    a slot for each window. While a window passes, the sessions of the next one move from its far
    slot to the near wheel, which takes no visit: 131,072 sessions in one window have 512 ms for it.
    The heads of both are in one block RAM, links in memory, both ways: so a session that is placed
    for an earlier tick is taken out of its place, and is never in two.

    **Placing.** A session that is linked moves only if ``wake`` is earlier than where it is;
    else nothing happens, so that too many requests do no harm. That rule also closes the
    race with its own visit: one that has been shown at ``visit`` and not placed since counts as
    linked, was due, and no tick that can be asked for is earlier (as long as its record is handed
    back within ``window`` ticks). :class:`Alarm` makes the requests.

    **Stale entries.** There are none: a number is in one place or none, whoever owns it. The bit
    ``linked`` and ``wake`` belong to the number: they survive in the record when it is freed, and a
    visit of a free session clears ``linked``. The visitor reads off the record what is to be done.

    Cycles: a placing 6; a move, a visit, or a session that changes wheels one memory read more. A
    placing waits for one of these at most, never for ``visit`` to be taken. Exact to the tick
    as long as the visits of a tick are done within it; ticks are remembered, up to 4,095. Reset:
    time 0, empty wheels, after a cycle for each slot; the responder must be reset too.
    """

    def __init__(self, sessions, width=64, tag_width=0, *, base=0, window=512, windows=64):
        _check(
            _power(sessions) and 2 <= sessions < 1 << LINK_BITS,
            "Number of sessions",
            f"a power of two from 2 to {1 << LINK_BITS - 1}",
            sessions,
        )
        _check(_power(window) and window >= 2, "Window", "a power of two >= 2", window)
        _check(
            _power(windows) and windows >= 4 and wake_width(window, windows) <= WAKE_BITS,
            "Number of windows",
            f"a power of two >= 4, {1 << WAKE_BITS - 1} ticks in all at most",
            windows,
        )
        self.sessions, self.session_bits = sessions, _log2(sessions)
        self.window, self.windows = window, windows
        signature = MemorySignature(width, tag_width)
        _check(
            base % 16 == 0 and 0 <= base <= (1 << ADDR_WIDTH) - self.size,
            "Base",
            f"a multiple of 16 with {self.size} bytes inside the memory",
            base,
        )
        self.base, self.width = base, width
        #: Bits of a slot's number: near slots, then far ones.
        self.slot_bits = max(_log2(window) + 1, _log2(windows)) + 1
        session = unsigned(self.session_bits)
        request = data.StructLayout(
            {"session": session, "wake": wake_width(window, windows), "linked": 1}
        )
        super().__init__(
            {
                "tick": In(1),
                "now": Out(TIME_WIDTH),
                "place": In(stream.Signature(request)),
                "visit": Out(stream.Signature(session)),
                "mem": Out(signature),
            }
        )

    @property
    def size(self):
        """Bytes of memory."""
        return self.sessions * WORD_BYTES

    # A word in memory is (next, prev, wake). The first session of a slot has the slot's number in
    # place of `prev`, and bit 23 set; the last one has bit 23 of `next` set. Links are written in
    # order, with one tag; a read waits until all of them are done.
    def elaborate(self, platform):
        m = Module()
        s, slot = unsigned(self.session_bits), unsigned(self.slot_bits)
        self.head = data.StructLayout({"valid": 1, "session": s})
        m.submodules.heads = heads = Memory(
            shape=self.head,
            depth=1 << self.slot_bits,
            init=[],
            attrs={**NO_COLLISIONS, "ram_style": "block"},
        )
        self.head_r, self.head_w = heads.read_port(), heads.write_port()
        self.kind, self.session, self.slot = Signal(Kind), Signal(s), Signal(slot)
        self.wake = Signal(wake_width(self.window, self.windows))
        self.link = Signal(self._word())  # as it was read
        self.other = Signal(s)  # who was first in the slot
        self.near_done, self.far_done = Signal(init=1), Signal(init=1)
        self.turn = Signal()  # something else than a placing goes first
        self.linked = Signal()
        self._memory(m)
        self._time(m)
        m.d.comb += [self.head_r.addr.eq(self.slot), self.head_w.addr.eq(self.slot)]
        with m.If(self.visit.ready):
            m.d.sync += self.visit.valid.eq(0)
        with m.FSM():
            with m.State("CLEAR"):
                m.d.comb += self.head_w.en.eq(1)
                m.d.sync += self.slot.eq(self.slot + 1)
                with m.If(self.slot == (1 << self.slot_bits) - 1):
                    m.next = "IDLE"
            self._choose(m)
            self._take_out(m)
            self._put_in(m)
        return m

    def _word(self):
        p = max(self.session_bits, self.slot_bits)
        return data.StructLayout(
            {
                "next": self.session_bits,
                "last": 1,
                "prev": p,
                "first": 1,
                "wake": wake_width(self.window, self.windows),
            }
        )

    def _pack(self, w):
        """The 64 bits of a word."""
        parts = []
        for link, flag in ((w.next, w.last), (w.prev, w.first)):
            parts += [link, Const(0, LINK_BITS - 1 - len(link)), flag]
        return Cat(*parts, w.wake, Const(0, WAKE_BITS - len(w.wake)))

    def _unpack(self, bits):
        """What the 64 bits of a word say, in the order of its layout."""
        w, at = self.link, LINK_BITS
        return Cat(
            bits[: len(w.next)],
            bits[at - 1],
            bits[at : at + len(w.prev)],
            bits[2 * at - 1],
            bits[2 * at : 2 * at + len(w.wake)],
        )

    def _memory(self, m):
        """``self.write(session, word, strobes)`` and ``self.read(session)`` while ``self.free``."""
        mem, beats = self.mem, max(1, 8 * WORD_BYTES // self.width)
        lanes = max(1, self.width // (8 * WORD_BYTES))
        under_way = Signal(range(WRITES + 1))
        word, strobes = Signal(self._word()), Signal(3)  # next, prev, wake
        at, beat = Signal(self.session_bits), Signal(range(max(2, beats)))
        bits, mask = (
            self._pack(word),
            Cat(*(strobes[k].replicate(n) for k, n in enumerate((3, 3, 2)))),
        )
        payload = mem.wdata.payload
        self.free, self.settled = Signal(), Signal()
        starts = Signal()
        m.d.comb += [
            self.free.eq(~mem.cmd.valid & ~mem.wdata.valid & (under_way != WRITES)),
            self.settled.eq(under_way == 0),
            mem.cmd.payload.beats.eq(beats - 1),
            mem.cmd.payload.addr.eq(
                self.base + ((at >> _log2(lanes)) << _log2(lanes * WORD_BYTES))
            ),
            payload.data.eq(bits.word_select(beat, 32) if beats > 1 else bits.replicate(lanes)),
            payload.last.eq(beat == beats - 1 if beats > 1 else 1),
            mem.rdata.ready.eq(1),
            mem.wdone.ready.eq(1),
        ]
        if beats > 1:
            m.d.comb += payload.strb.eq(mask.word_select(beat, 4))
        else:
            for k in range(lanes):
                mine = (at[: _log2(lanes)] == k) if lanes > 1 else 1
                m.d.comb += payload.strb.word_select(k, 8).eq(Mux(mine, mask, 0))
        m.d.sync += under_way.eq(under_way + starts - mem.wdone.valid)
        with m.If(mem.cmd.ready):
            m.d.sync += mem.cmd.valid.eq(0)
        with m.If(mem.wdata.valid & mem.wdata.ready):
            m.d.sync += [beat.eq(beat + 1), mem.wdata.valid.eq(~payload.last)]
            with m.If(payload.last):
                m.d.sync += beat.eq(0)

        got = Signal(8 * WORD_BYTES)
        self.got = Signal()  # `link` is right from the next cycle on
        if beats > 1:
            low = Signal(32)
            m.d.comb += [got.eq(Cat(low, mem.rdata.payload.data))]
            with m.If(mem.rdata.valid):
                m.d.sync += low.eq(mem.rdata.payload.data)
        else:
            lane = at[: _log2(lanes)] if lanes > 1 else 0
            m.d.comb += got.eq(mem.rdata.payload.data.word_select(lane, 64))
        m.d.comb += self.got.eq(mem.rdata.valid & mem.rdata.payload.last)
        with m.If(self.got):
            m.d.sync += self.link.as_value().eq(self._unpack(got))

        def write(session, fields, which):
            m.d.comb += starts.eq(1)
            m.d.sync += [mem.cmd.valid.eq(1), mem.cmd.payload.write.eq(1), mem.wdata.valid.eq(1)]
            m.d.sync += [at.eq(session), strobes.eq(which)]
            m.d.sync += [word[name].eq(value) for name, value in fields.items()]

        def read(session):
            m.d.sync += [mem.cmd.valid.eq(1), mem.cmd.payload.write.eq(0), at.eq(session)]

        self.write, self.read = write, read

    def _time(self, m):
        g = _log2(self.window)
        self.ticks = ticks = Signal(range(TICKS + 1))  # not yet served
        self.taken, self.boundary = Signal(), Signal()
        m.d.comb += self.boundary.eq(self.now[:g].all())  # the next tick begins a window
        m.d.sync += ticks.eq(ticks + (self.tick & (ticks != TICKS)) - self.taken)
        with m.If(self.taken):
            m.d.sync += [self.now.eq(self.now + 1), self.near_done.eq(0)]
            with m.If(self.boundary):
                m.d.sync += self.far_done.eq(0)

    def _far(self, window):
        """The far slot of a window."""
        bits = _log2(self.windows)
        return Cat(window[:bits], Const(0, self.slot_bits - 1 - bits), Const(1, 1))

    def _choose(self, m):
        """What comes next: a placing, a visit, a tick, or one more session of the next window."""
        g, place = _log2(self.window), self.place
        visits, moves, ticks = Signal(), Signal(), Signal()
        m.d.comb += [
            visits.eq(~self.near_done & ~self.visit.valid),
            ticks.eq(self.near_done & (self.ticks != 0) & (~self.boundary | self.far_done)),
            moves.eq(~self.far_done),
        ]
        with m.State("IDLE"):
            m.d.sync += self.turn.eq(0)
            with m.If(place.valid & ~(self.turn & (visits | ticks | moves))):
                m.d.comb += place.ready.eq(1)
                m.d.sync += [self.kind.eq(Kind.PLACE), self.turn.eq(1)]
                m.d.sync += [self.session.eq(place.payload.session)]
                m.d.sync += [self.wake.eq(place.payload.wake), self.linked.eq(place.payload.linked)]
                m.next = "AIM"
            with m.Elif(visits):
                m.d.sync += [self.kind.eq(Kind.NEAR), self.slot.eq(self.now[: g + 1])]
                m.next = "PEEK"
            with m.Elif(ticks):
                m.d.comb += self.taken.eq(1)
            with m.Elif(moves):
                m.d.sync += [self.kind.eq(Kind.FAR), self.slot.eq(self._far(self.now[g:] + 1))]
                m.next = "PEEK"

    def _take_out(self, m):
        """The first session of a slot, or one that is to be visited earlier, out of its place."""
        link, head = self.link, self.head_r.data
        after = data.View(self.head, Cat(~link.last, link.next))
        with m.State("PEEK"):
            m.next = "TAKE"
        with m.State("TAKE"):
            m.d.sync += self.session.eq(head.session)
            m.next = "READ"
            with m.If(~head.valid):
                with m.If(self.kind == Kind.NEAR):
                    m.d.sync += self.near_done.eq(1)
                with m.Else():
                    m.d.sync += self.far_done.eq(1)
                m.next = "IDLE"
        with m.State("READ"):
            with m.If(self.settled):
                self.read(self.session)
                m.next = "WAIT"
        with m.State("WAIT"):
            with m.If(self.got):
                m.next = "JUDGE"
        with m.State("JUDGE"):
            earlier = Signal.like(self.wake)
            m.d.comb += earlier.eq(self.wake - link.wake)
            m.next = "UNLINK"
            with m.If((self.kind == Kind.PLACE) & ~earlier[-1]):
                m.next = "IDLE"
            with m.If(self.kind == Kind.FAR):
                m.d.sync += self.wake.eq(link.wake)
            with m.If(self.kind == Kind.NEAR):  # who is in this slot is never unlinked otherwise
                m.d.comb += [self.head_w.en.eq(1), self.head_w.data.eq(after)]
                m.d.sync += [self.visit.valid.eq(1), self.visit.payload.eq(self.session)]
                m.next = "IDLE"
        with m.State("UNLINK"):
            with m.If(link.first):
                m.d.comb += [self.head_w.addr.eq(link.prev), self.head_w.data.eq(after)]
                m.d.comb += self.head_w.en.eq(1)
                m.next = "RELINK"
            with m.Elif(self.free):
                self.write(link.prev, {"next": link.next, "last": link.last}, 0b001)
                m.next = "RELINK"
        with m.State("RELINK"):
            with m.If(link.last | self.free):
                m.next = "HEAD"
                with m.If(self.kind == Kind.FAR):
                    m.next = "SLOT"
            with m.If(~link.last & self.free):
                self.write(link.next, {"prev": link.prev, "first": link.first}, 0b010)

    def _put_in(self, m):
        """The session in hand, first into its slot."""
        g, head = _log2(self.window), self.head_r.data
        ahead, distance = Signal.like(self.wake), Signal(_log2(self.windows) + 1)
        m.d.comb += [
            ahead.eq(self.wake - self.now),
            distance.eq(self.wake[g:] - self.now[g:]),
        ]
        with m.State("AIM"):
            with m.If(ahead[-1] | (ahead == 0)):
                m.d.sync += self.wake.eq(self.now + 1)
            m.next = "SLOT"
        with m.State("SLOT"):
            m.d.sync += self.slot.eq(self.wake[: g + 1])
            with m.If(distance[1:] != 0):
                m.d.sync += self.slot.eq(self._far(self.wake[g:]))
            m.next = "HEAD"
            with m.If((self.kind == Kind.PLACE) & self.linked):
                m.next = "READ"
        with m.State("HEAD"):
            m.next = "LINK"
        with m.State("LINK"):
            with m.If(self.free):
                fields = {"next": head.session, "last": ~head.valid, "prev": self.slot, "first": 1}
                self.write(self.session, {**fields, "wake": self.wake}, 0b111)
                m.d.comb += [
                    self.head_w.en.eq(1),
                    self.head_w.data.eq(Cat(1, self.session)),
                ]
                m.d.sync += self.other.eq(head.session)
                m.next = "IDLE"
                with m.If(head.valid):
                    m.next = "OTHER"
        with m.State("OTHER"):
            with m.If(self.free):
                self.write(self.other, {"prev": self.session, "first": 0}, 0b010)
                m.next = "IDLE"
