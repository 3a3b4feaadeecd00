"""The session index's walks: both buckets of a tuple, and the overflow list, read and searched."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal
from amaranth.lib import data, enum, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..memory import ADDR_WIDTH, MemorySignature
from .index_layout import SPILLED, place_layout

__all__ = ["IndexReader"]

#: Bursts asked for whose data have not come, at most.
BURSTS = 8


class Burst(enum.IntEnum, shape=2):
    LEFT = 0
    RIGHT = 1
    SCAN = 2


class IndexReader(wiring.Component):
    """Walks for several *slots*, each with a tuple's code; slot ``slots - 1`` also with a number.

    ===============  ===  ===================================================================
    ``codes``        In   the slots' codes, which stay as they are during the walk
    ``wanted``       In   the number that the last slot looks for
    ``spilled``      In   entries on the overflow list
    ``ask``          In   begin a walk for slot ``who``; only while ``ready``
    ``ready``        Out  a walk can begin
    ``finished``     Out  strobe: the walk for slot ``whose`` is over, and this is what it found:
    ``found``        Out  the tuple, with ``number``, is ``where``; index ``SPILLED``: on the
                          overflow list, there at place ``index``
    ``room``         Out  a place of its buckets is free: ``place``, in the emptier of the two
    ``last_code``    Out  of the last entry of the overflow list that was read, and
    ``last_number``  Out  its number
    ``mem``          Out  memory port; it only reads
    ===============  ===  ===================================================================

    Parameters: ``layout``; ``slots``; ``width`` of the port, 32 or 64.

    Both buckets are asked for at once, so a walk takes the memory's latency, the beats of two
    buckets and 4 cycles. Walks overlap, unless there is something on the overflow list, which is
    then read after the buckets, a burst at a time: 16 bytes an entry. Read data never wait. Reset:
    idle.
    """

    def __init__(self, layout, slots, width=64):
        self.layout, self.slots, self.width = layout, slots, width
        s = layout.session_bits
        super().__init__(
            {
                "codes": In(64).array(slots),
                "wanted": In(s),
                "spilled": In(s + 1),
                "ask": In(1),
                "who": In(range(slots)),
                "ready": Out(1),
                "finished": Out(1),
                "whose": Out(range(slots)),
                "found": Out(1),
                "number": Out(s),
                "where": Out(place_layout()),
                "index": Out(s),
                "room": Out(1),
                "place": Out(place_layout()),
                "last_code": Out(64),
                "last_number": Out(s),
                "mem": Out(MemorySignature(width, 0)),
            }
        )

    # A beat passes three stages: it is taken, compared as part of a word, counted. What is found is
    # collected from the first word of the left bucket to the last one of the walk, so it needs
    # no registers a slot: bursts of a walk follow each other.
    def elaborate(self, platform):
        m = Module()
        layout, mem = self.layout, self.mem
        self.burst = burst = data.StructLayout(
            {"who": range(self.slots), "kind": Burst, "alone": 1}
        )
        m.submodules.order = self.order = order = StreamFifo(burst, BURSTS)
        self.asking = asking = Signal(burst)
        self.alone = alone = Signal()  # the walk under way may have to go through the list
        self.scan_at = scan_at = Signal(layout.session_bits + 2)
        code, address = Signal(64), Signal(ADDR_WIDTH)
        m.d.comb += [
            code.eq(Array(self.codes)[asking.who]),
            mem.cmd.payload.addr.eq(address),
            mem.cmd.payload.beats.eq(layout.bucket_words * 64 // self.width - 1),
            order.i.payload.eq(asking),
            mem.wdone.ready.eq(1),
        ]
        with m.If(asking.kind == Burst.SCAN):
            m.d.comb += address.eq(layout.spill_base + (scan_at << 4))
        with m.Else():
            side = asking.kind == Burst.RIGHT
            m.d.comb += address.eq(layout.address(layout.bucket(code, side)))
        walked, of = self._search(m)
        entries = layout.bucket_words // 2  # of the list, in a burst
        scanned, next_at = of.kind == Burst.SCAN, Signal.like(scan_at)
        m.d.comb += next_at.eq(Mux(scanned, scan_at + entries, 0))
        more = of.alone & (next_at < self.spilled)
        m.d.comb += self.finished.eq(walked & ~more)
        with m.If(self.finished & of.alone):
            m.d.sync += alone.eq(0)
        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                # Room in `order` for both bursts; and nobody may be about to go through the list.
                m.d.comb += self.ready.eq((order.level <= BURSTS - 2) & ~alone)
                with m.If(self.ask):
                    m.d.sync += [asking.who.eq(self.who), asking.kind.eq(Burst.LEFT)]
                    m.d.sync += [asking.alone.eq(self.spilled != 0), alone.eq(self.spilled != 0)]
                    m.next = "ASK"
                with m.Elif(walked & more):
                    m.d.sync += [asking.kind.eq(Burst.SCAN), scan_at.eq(next_at)]
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += mem.cmd.valid.eq(1)
                with m.If(mem.cmd.ready):
                    m.d.comb += order.i.valid.eq(1)
                    m.d.sync += asking.kind.eq(Burst.RIGHT)
                    with m.If(asking.kind != Burst.LEFT):
                        m.next = "IDLE"
        return m

    def _search(self, m):
        """Compare each word; tell the end of a walk's right bucket or part of the list."""
        layout, rdata, burst = self.layout, self.mem.rdata, self.order.o
        s, low = layout.session_bits, layout.low_bits
        takes, full = rdata.valid & rdata.ready, Signal()
        word, past, header = Signal(64), Signal(64), Signal(56)
        at, of, ends = Signal(range(layout.bucket_words)), Signal(self.burst), Signal()
        m.d.comb += [rdata.ready.eq(burst.valid), burst.ready.eq(takes & rdata.payload.last)]
        m.d.sync += full.eq(takes)
        if self.width == 32:
            half = Signal()
            m.d.sync += [half.eq(half ^ takes), full.eq(takes & half)]
        with m.If(takes):
            m.d.sync += [word.eq(Cat(word, rdata.payload.data)[-64:]), of.eq(burst.payload)]
            m.d.sync += ends.eq(rdata.payload.last)
        with m.If(full):
            m.d.sync += [at.eq(at + 1), past.eq(word)]
            with m.If(at == 0):
                m.d.sync += header.eq(word[8:])

        code, rest, high = Signal(64), Signal(64 - layout.bucket_bits), Signal(8)
        index, scans = Signal(s + 2), of.kind == Burst.SCAN
        m.d.comb += [
            code.eq(Array(self.codes)[of.who]),
            rest.eq(layout.rest(code, of.kind == Burst.RIGHT)),
            high.eq(header.word_select((at - 1)[: len(at)], 8)),
            index.eq(self.scan_at + (at >> 1)),
        ]
        number, listed = Mux(scans, word[:s], word[1 : s + 1]), index < self.spilled
        same = (word[s + 1 : s + 1 + low] == rest[:low]) & word[0] & (at != 0)
        same = same & (high[: layout.high_bits] == rest[low:])
        same = Mux(scans, at[0] & (past == code) & listed, same)
        mine = (of.who != self.slots - 1) | (number == self.wanted)
        with m.If(full & scans & at[0] & listed):
            m.d.sync += [self.last_code.eq(past), self.last_number.eq(word[:s])]

        hit, its_number, its_index = Signal(), Signal(s), Signal(s)
        seen, place, taken, over = Signal(), Signal.like(at), Signal(), Signal()
        its = Signal(self.burst)
        m.d.sync += [
            seen.eq(full),
            hit.eq(full & same & mine),
            its_number.eq(number),
            its_index.eq(index),
            place.eq(at),
            taken.eq(word[0]),
            its.eq(of),
            over.eq(full & ends & (of.kind != Burst.LEFT)),
        ]
        walked, whose = Signal(), Signal(self.burst)
        m.d.sync += [walked.eq(over), whose.eq(its)]
        m.d.comb += self.whose.eq(whose.who)
        self._collect(m, seen, its.kind, place, taken)
        with m.If(hit):
            m.d.sync += [self.found.eq(1), self.number.eq(its_number), self.index.eq(its_index)]
            m.d.sync += self.where.side.eq(its.kind == Burst.RIGHT)
            m.d.sync += self.where.index.eq(Mux(its.kind == Burst.SCAN, SPILLED, place - 1))
        return walked, whose

    def _collect(self, m, seen, kind, place, taken):
        """Count the entries of each bucket, note its first free place, choose between the two."""
        layout = self.layout
        load, free, any_free = Signal(3), Signal(3), Signal()
        left_load, left_free = Signal(3), Signal(3)
        with m.If(seen & (kind != Burst.SCAN)):
            with m.If(place == 0):
                m.d.sync += [load.eq(0), any_free.eq(0)]
                m.d.sync += [left_load.eq(load), left_free.eq(free)]
                with m.If(kind == Burst.LEFT):
                    m.d.sync += self.found.eq(0)
            with m.Elif(taken):
                m.d.sync += load.eq(load + 1)
            with m.Elif(~any_free):
                m.d.sync += [any_free.eq(1), free.eq(place - 1)]
        right = load < left_load
        m.d.comb += [
            self.place.side.eq(right),
            self.place.index.eq(Mux(right, free, left_free)),
            self.room.eq((load != layout.places) | (left_load != layout.places)),
        ]
