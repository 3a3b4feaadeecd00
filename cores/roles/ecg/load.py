"""From a job's operand to the sample pairs of one block."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model, record
from ...memory import MemorySignature
from ...stream import PacketSignature, check_data_width
from ...tcp.service import SESSION_WIDTH
from ..fetch import MemoryJoin, OperandLayout, OperandReader, ResultWriter
from .pipeline import BlockLayout, PairLayout, PairSplitter

__all__ = [
    "HEADER_OFFSET",
    "HOLD",
    "STORE_LOG2",
    "BlockLoader",
    "LoadLayout",
    "PairPacker",
    "RecordLoader",
    "TAIL",
    "ZoneLayout",
]

#: Groups of four samples (values of D2) that are kept of a record from part to part.
HOLD = record.KEPT // 4
#: Samples between a zone's end and its block's end, in the faithful preset.
TAIL = 160
#: Of a window, each side of its crossing, in groups.
HALF = model.WINDOW // 2 // 4
#: Each session has ``2**STORE_LOG2`` bytes of scratch memory: the samples that are kept, then
#: 16 bytes with their number (bits 7..0 of the first word, in groups of four) and the groups by
#: which the next zone begins later because the last zone's last beat is so near (bits 15..8).
STORE_LOG2 = 11
HEADER_OFFSET = HOLD * 8

LoadLayout = data.StructLayout(
    {
        "operand": OperandLayout,
        "stream": unsigned(1),
        "first": unsigned(1),
        "session": unsigned(SESSION_WIDTH),
    }
)

#: Of the block that was last offered, for who takes its beats: whether it is a part of a record,
#: whether the record's last; where its zone begins and ends (crossings), and its groups.
ZoneLayout = data.StructLayout(
    {
        "stream": unsigned(1),
        "ending": unsigned(1),
        "low": unsigned(11),
        "high": unsigned(11),
        "groups": unsigned(11),
    }
)


class BlockLoader(wiring.Component):
    """Loads independent blocks.

    ===========  ===  ============================================================================
    ``request``  In   stream of :data:`LoadLayout`: an operand of a length that is allowed
    ``block``    Out  stream of :func:`~.pipeline.BlockLayout`: offered before the block's pairs
    ``pair``     Out  stream of :data:`~.pipeline.PairLayout`
    ``done``     Out  1 for one cycle when the last pair of a request was handed over
    ``mem``      Out  memory port; reads only
    ===========  ===  ============================================================================

    Parameters: ``width`` and ``tag_width`` of the memory port; ``index_width``, bits of a number of
    D2 values. A request is taken when the one
    before is done and its block is taken in the same cycle. Throughput: two samples a cycle while
    the memory delivers as much. Latency and reset: those of
    :class:`~trebuchet.cores.roles.fetch.OperandReader`.
    """

    def __init__(self, width=32, tag_width=2, index_width=11):
        self.width, self.tag_width = check_data_width(width), tag_width
        super().__init__(
            {
                "request": In(stream.Signature(LoadLayout)),
                "block": Out(stream.Signature(BlockLayout(index_width))),
                "pair": Out(stream.Signature(PairLayout)),
                "done": Out(1),
                "mem": Out(MemorySignature(width, tag_width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = OperandReader(self.width, self.tag_width)
        m.submodules.splitter = splitter = PairSplitter(self.width)
        wiring.connect(m, reader.packet, splitter.i)
        wiring.connect(m, splitter.o, wiring.flipped(self.pair))
        wiring.connect(m, reader.mem, wiring.flipped(self.mem))
        length = self.request.payload.operand.length
        m.d.comb += [
            reader.request.valid.eq(self.request.valid & self.block.ready),
            reader.request.payload.eq(self.request.payload.operand),
            self.block.valid.eq(self.request.valid & reader.request.ready),
            self.block.payload.samples.eq(length[1:]),
            self.block.payload.low.eq(HALF),
            self.block.payload.high.eq(length[3:] - (HALF - 1)),
            self.request.ready.eq(reader.request.ready & self.block.ready),
            self.done.eq(reader.done),
        ]
        return m


class PairPacker(wiring.Component):
    """The reverse of :class:`~.pipeline.PairSplitter`: pairs in, a packet out; pairs are whole."""

    def __init__(self, width=32):
        self.width = check_data_width(width)
        super().__init__({"i": In(stream.Signature(PairLayout)), "o": Out(PacketSignature(width))})

    def elaborate(self, platform):
        m = Module()
        count = self.width // 32
        at = Signal(range(max(count, 2)))
        held = Signal(self.width)
        begun = Signal()
        pair = Cat(self.i.payload.even, self.i.payload.odd)
        end = self.i.payload.last | (at == count - 1)
        m.d.comb += [
            self.o.payload.data.eq(held),
            self.o.payload.data.word_select(at, 32).eq(pair),
            self.o.payload.empty.eq((count - 1 - at) << 2),
            self.o.payload.first.eq(~begun),
            self.o.payload.last.eq(self.i.payload.last),
            self.o.valid.eq(self.i.valid & end),
            self.i.ready.eq(self.o.ready | ~end),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [held.word_select(at, 32).eq(pair), at.eq(Mux(end, 0, at + 1))]
            with m.If(end):
                m.d.sync += begun.eq(~self.i.payload.last)
        return m


class RecordLoader(wiring.Component):
    """Loads independent blocks, and the parts of records with what was kept of the part before.

    Parameters
    ----------
    width, tag_width : int
        Of the memory port.
    scratch : int
        Address of the sessions' scratch memory, a multiple of 2 KiB.
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    tail : int
        Samples between the end of a part's zone and the end of its block, a multiple of four.
    index_width : int
        Bits of a number of D2 values.

    Ports: those of :class:`BlockLoader`, but ``mem`` also writes; and ``zone``, a
    :data:`ZoneLayout`, valid from the transfer on ``block`` until the next request is taken. For a
    request with ``stream`` = 1,
    whose operand has 0 or 64 to 3,392 samples, a multiple of four:

    1. With ``first`` = 0 the session's header is read. The block is what was kept and then the
       operand. Its zone begins where the one of the part before ended, or 72 samples after the last
       beat there; it ends ``tail`` samples before the end of the block.
    2. The block's last 704 samples, or all of it if it is shorter, go to the session's memory
       before ``done``. Whoever takes the beats writes the header.
    3. An empty operand ends the record: the zone reaches to the end, nothing is kept. If there is
       nothing at all, the block is 64 samples of anything, and no crossing is in its zone.

    Throughput: as :class:`BlockLoader` but for two more memory latencies. Reset: abandons all.
    """

    def __init__(self, width=32, tag_width=2, *, scratch, sessions, tail=TAIL, index_width=11):
        self.width, self.tag_width = check_data_width(width), tag_width
        if tail % 4 or not model.WINDOW // 2 <= tail < record.KEPT:
            raise ValueError(
                f"Tail must be a multiple of 4, {model.WINDOW // 2} to {record.KEPT - 4}, "
                f"not {tail!r}"
            )
        self.tail = tail // 4
        if not isinstance(scratch, int) or scratch % (1 << STORE_LOG2) or scratch < 0:
            raise ValueError(
                f"Scratch memory must begin at a multiple of {1 << STORE_LOG2}, not {scratch!r}"
            )
        self.scratch, self.sessions = scratch, sessions
        super().__init__(
            {
                "request": In(stream.Signature(LoadLayout)),
                "block": Out(stream.Signature(BlockLayout(index_width))),
                "pair": Out(stream.Signature(PairLayout)),
                "done": Out(1),
                "zone": Out(ZoneLayout),
                "mem": Out(MemorySignature(width, tag_width)),
            }
        )

    def store(self, session):
        """Address of a session's scratch memory."""
        bits = max(1, (self.sessions - 1).bit_length())
        return self.scratch + (session[:bits] << STORE_LOG2)

    # One reader fetches header, kept samples and operand one after the other; the pairs of the last
    # two look like one block. Those that are kept go to memory while they pass: they never
    # overwrite a pair that was not yet read, because they move towards the beginning.
    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = OperandReader(self.width, self.tag_width)
        m.submodules.writer = writer = ResultWriter(self.width, self.tag_width)
        m.submodules.join = join = MemoryJoin(self.width, self.tag_width)
        wiring.connect(m, reader.mem, join.reader)
        wiring.connect(m, writer.mem, join.writer)
        wiring.connect(m, join.mem, wiring.flipped(self.mem))
        load = Signal(LoadLayout)
        held, late = Signal(8), Signal(8)
        saving = Signal()
        self.passing_kept, self.passing_operand = Signal(), Signal()
        self._plan(m, load, held, late)
        ending = load.operand.length == 0
        fetch = reader.request
        with m.If(writer.done):
            m.d.sync += saving.eq(0)
        with m.FSM(name="load"):
            with m.State("IDLE"):
                m.d.comb += self.request.ready.eq(1)
                with m.If(self.request.valid):
                    m.d.sync += [load.eq(self.request.payload), held.eq(0), late.eq(0)]
                    m.next = "PLAN"
                    with m.If(self.request.payload.stream & ~self.request.payload.first):
                        m.next = "HEADER"
            with m.State("HEADER"):
                self._fetch(m, fetch, load, HEADER_OFFSET, 16)
                with m.If(fetch.ready):
                    m.next = "PARSE"
            with m.State("PARSE"):
                with m.If(reader.packet.valid & reader.packet.payload.first):
                    m.d.sync += Cat(held, late).eq(reader.packet.payload.data[:16])
                with m.If(reader.done):
                    m.next = "PLAN"
            with m.State("PLAN"):
                m.next = "ZONE"
            with m.State("ZONE"):
                m.next = "BLOCK"
            with m.State("BLOCK"):
                m.d.comb += self.block.valid.eq(1)
                with m.If(self.block.ready):
                    m.d.sync += saving.eq(load.stream & ~ending)
                    m.d.comb += writer.request.valid.eq(load.stream & ~ending)
                    m.next = "OPERAND"
                    with m.If(load.stream & ((held != 0) | ending)):
                        m.next = "KEPT"
            with m.State("KEPT"):
                self._fetch(m, fetch, load, 0, Mux(held == 0, 8 * 16, held << 3))
                with m.If(fetch.ready):
                    m.next = "PASS_KEPT"
            with m.State("PASS_KEPT"):
                m.d.comb += self.passing_kept.eq(1)
                with m.If(reader.done):
                    m.next = "OPERAND"
                    with m.If(ending):
                        m.next = "SAVE"
            with m.State("OPERAND"):
                m.d.comb += [fetch.valid.eq(1), fetch.payload.eq(load.operand)]
                with m.If(fetch.ready):
                    m.next = "PASS_OPERAND"
            with m.State("PASS_OPERAND"):
                m.d.comb += self.passing_operand.eq(1)
                with m.If(reader.done):
                    m.next = "SAVE"
            with m.State("SAVE"):
                m.d.comb += self.done.eq(~saving)
                with m.If(~saving):
                    m.next = "IDLE"
        m.d.comb += [
            writer.request.payload.addr.eq(self.store(load.session)),
            writer.request.payload.room.eq(8 * HOLD),
        ]
        self._pass(m, reader, writer, load, ending)
        return m

    def _fetch(self, m, fetch, load, offset, length):
        """Ask for bytes of the session's scratch memory."""
        m.d.comb += [
            fetch.valid.eq(1),
            fetch.payload.base.eq(self.store(load.session)),
            fetch.payload.offset.eq(offset),
            fetch.payload.ring_log2.eq(STORE_LOG2),
            fetch.payload.length.eq(length),
        ]

    def _plan(self, m, load, held, late):
        """Size and zone of the block, each a register behind the other: PLAN, then ZONE."""
        block, zone = self.block.payload, self.zone
        operand = load.operand.length
        groups = zone.groups
        m.d.sync += [
            groups.eq(operand[3:] + held),
            zone.low.eq(Mux(held > self.tail, held - self.tail, 0) + late),
            zone.high.eq(Mux(groups > self.tail, groups - self.tail, 0)),
        ]
        with m.If(operand == 0):
            m.d.sync += zone.high.eq(groups)
        m.d.comb += [
            zone.stream.eq(load.stream),
            zone.ending.eq(operand == 0),
            block.samples.eq(operand[1:]),
            block.low.eq(HALF),
            block.high.eq(groups - (HALF - 1)),
        ]
        with m.If(load.stream):
            m.d.comb += [
                block.samples.eq(groups << 2),
                block.low.eq(Mux(zone.low > HALF, zone.low, HALF)),
            ]
            with m.If(groups == 0):
                m.d.comb += [block.samples.eq(model.MIN_SAMPLES), block.high.eq(0)]
            with m.Elif(~zone.ending):
                m.d.comb += block.high.eq(zone.high)

    def _pass(self, m, reader, writer, load, ending):
        """Hand the samples on; those of the last HOLD groups are also written."""
        m.submodules.splitter = splitter = PairSplitter(self.width)
        m.submodules.packer = packer = PairPacker(self.width)
        wiring.connect(m, packer.o, writer.packet)
        groups = self.zone.groups
        begin = Signal(12)  # the first pair that is kept
        at = Signal(12)
        keep, taken = Signal(), Signal()
        passing = Signal()
        pair = splitter.o
        ours = self.pair
        m.d.sync += begin.eq(Mux(groups > HOLD, groups - HOLD, 0) << 1)
        with m.If(self.block.valid):
            m.d.sync += at.eq(0)
        with m.Elif(taken):
            m.d.sync += at.eq(at + 1)
        m.d.comb += [
            passing.eq(self.passing_kept | self.passing_operand),
            splitter.i.valid.eq(reader.packet.valid & passing),
            splitter.i.payload.eq(reader.packet.payload),
            reader.packet.ready.eq(splitter.i.ready | ~passing),
            keep.eq(load.stream & ~ending & (at >= begin)),
            ours.valid.eq(pair.valid & (packer.i.ready | ~keep)),
            ours.payload.eq(pair.payload),
            ours.payload.last.eq(pair.payload.last & (self.passing_operand | ending)),
            packer.i.valid.eq(pair.valid & keep & ours.ready),
            packer.i.payload.eq(ours.payload),
            taken.eq(ours.valid & ours.ready),
            pair.ready.eq(taken),
        ]
