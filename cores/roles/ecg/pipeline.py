"""The ECG pipeline: a block of samples in, records of its beats out."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...buffers import NO_COLLISIONS
from ...stream import PacketSignature, check_data_width
from .detect import Detector, index_width
from .dwt import TwoLevelDwt
from .logarithm import FeatureStage
from .network import Network, RecordLayout, VectorLayout
from .window import FEATURE_ORDER, WindowStage

__all__ = [
    "LANES_OF_ONE",
    "BlockCounter",
    "BlockLayout",
    "EcgPipeline",
    "FrontEnd",
    "PairLayout",
    "PairSplitter",
]

#: Lanes of a network that has one front end: a beat takes it some 230 cycles.
LANES_OF_ONE = 2

PairLayout = data.StructLayout({"even": signed(16), "odd": signed(16), "last": 1})


class PairSplitter(wiring.Component):
    """Cuts a packet of little-endian 16-bit samples into pairs, one a cycle.

    ``i``: packet stream of ``width`` bits; ``o``: stream of even sample, odd sample, last. The odd
    sample of a last incomplete pair is don't-care. Combinational for 32 bits; throughput one pair
    a cycle for all widths. Back-pressure is handed on. Bad input: a last odd byte is taken as half
    a sample.
    """

    def __init__(self, width=32):
        self.width = check_data_width(width)
        super().__init__({"i": In(PacketSignature(width)), "o": Out(stream.Signature(PairLayout))})

    def elaborate(self, platform):
        m = Module()
        count = self.width // 32
        at = Signal(range(max(count, 2)))
        end = Signal()
        pair = Signal(32)
        m.d.comb += [
            end.eq((at + 1) * 4 >= self.width // 8 - self.i.payload.empty),
            pair.eq(self.i.payload.data.word_select(at, 32)),
            self.o.valid.eq(self.i.valid),
            self.o.payload.even.eq(pair[:16]),
            self.o.payload.odd.eq(pair[16:]),
            self.o.payload.last.eq(self.i.payload.last & end),
            self.i.ready.eq(self.o.ready & end),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += at.eq(Mux(end, 0, at + 1))
        return m


def BlockLayout(width):
    """A block: its number of samples; beats with ``low <= R / 4 < high`` are reported.

    The window of a reported beat must lie in the block: ``8 <= low``, ``high <= samples // 4 - 7``.
    ``width``: bits of a number of D2 values.
    """
    return data.StructLayout(
        {"samples": unsigned(width + 2), "low": unsigned(width), "high": unsigned(width)}
    )


class FrontEnd(wiring.Component):
    """Blocks of samples in, the features of their beats out.

    ==========  ===  ============================================================================
    ``block``   In   stream of :func:`BlockLayout`: a block begins
    ``pair``    In   stream of sample pairs; taken after ``block`` until the last one
    ``vector``  Out  stream of :func:`~.network.VectorLayout`, beats in order of position
    ``count``   Out  stream: number of beats of a block, in order of the blocks
    ``busy``    Out  a block is inside: being loaded or searched, or beats whose window is needed
    ==========  ===  ============================================================================

    Parameters: ``max_samples``, of a block, a multiple of 4; ``buffers``: 2 (ping-pong: a block is
    loaded and searched while the beats of the one before are worked on) or 1.

    Cycles: a block is loaded at two samples a cycle, searched in at most 90 and 3 for each crossing
    that could be a beat, then takes at most 340 a beat. With two buffers a block takes the longer
    of both. Back-pressure on ``vector`` stalls the stages one after the other; a ``count`` that is
    not taken stalls the search of the block after the next. Reset: idle.
    """

    def __init__(self, max_samples=model.MAX_SAMPLES, buffers=2):
        if max_samples % 4:
            raise ValueError(f"Samples of a block must be a multiple of 4, not {max_samples!r}")
        if buffers not in (1, 2):
            raise ValueError(f"Buffers must be 1 or 2, not {buffers!r}")
        self.max_samples, self.buffers = max_samples, buffers
        self.index_width = index_width(max_samples)
        super().__init__(
            {
                "block": In(stream.Signature(BlockLayout(self.index_width))),
                "pair": In(stream.Signature(PairLayout)),
                "vector": Out(stream.Signature(VectorLayout())),
                "count": Out(stream.Signature(range(model.MAX_BEATS + 1))),
                "busy": Out(1),
            }
        )

    # The detector puts an end after the beats of a block; when all that is before it was read from
    # the RAM, the block's half of it is free.
    def elaborate(self, platform):
        m = Module()
        m.submodules.detector = detector = Detector(self.max_samples)
        m.submodules.window = window = WindowStage(self.max_samples)
        m.submodules.feature = feature = FeatureStage()
        wiring.connect(m, window.item, feature.item)
        wiring.connect(m, feature.vector, wiring.flipped(self.vector))

        filled = Signal(range(self.buffers + 1))
        begin, freed = Signal(), Signal()
        m.d.sync += filled.eq(filled + begin - freed)
        m.d.comb += [
            self.busy.eq(filled != 0),
            freed.eq(detector.beat.valid & detector.beat.payload.end & window.beat.ready),
            window.beat.valid.eq(detector.beat.valid & ~detector.beat.payload.end),
            window.beat.payload.eq(detector.beat.payload),
            detector.beat.ready.eq(window.beat.ready),
        ]
        self._control(m, filled, begin, detector)
        self._load(m, begin, freed, detector, window)
        return m

    def _control(self, m, filled, begin, detector):
        """One block after the other is loaded, searched, and counted."""
        m.d.comb += detector.clear.eq(begin)
        self._loading = Signal()
        with m.If(self.count.ready):
            m.d.sync += self.count.valid.eq(0)
        with m.FSM(name="block"):
            with m.State("IDLE"):
                m.d.comb += self.block.ready.eq(filled != self.buffers)
                m.d.sync += [detector.low.eq(self.block.payload.low)]
                m.d.sync += [detector.high.eq(self.block.payload.high)]
                with m.If(self.block.valid & self.block.ready):
                    m.d.comb += begin.eq(1)
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += self._loading.eq(1)
                with m.If(self.pair.valid & self.pair.payload.last):
                    m.next = "SEARCH"
            with m.State("SEARCH"):
                with m.If(detector.done & ~self.count.valid):
                    m.d.sync += [self.count.valid.eq(1), self.count.payload.eq(detector.found)]
                    m.next = "IDLE"

    def _load(self, m, begin, freed, detector, window):
        """Pairs into the RAM and the transform; the window from the other half of the RAM."""
        pairs = self.max_samples // 2
        m.submodules.ram = ram = Memory(
            shape=unsigned(32), depth=self.buffers * pairs, init=[], attrs=NO_COLLISIONS
        )
        m.submodules.dwt = dwt = TwoLevelDwt(16)
        write, read = ram.write_port(), ram.read_port()
        taken = Signal()
        place, used = Signal(range(pairs)), Signal(range(pairs + 1))
        write_base, read_base = self._base(m, begin, 1), self._base(m, freed, 0)
        m.d.comb += [
            self.pair.ready.eq(self._loading),
            taken.eq(self.pair.valid & self.pair.ready),
            write.addr.eq(place + write_base),
            write.data.eq(Cat(self.pair.payload.even, self.pair.payload.odd)),
            write.en.eq(taken),
            read.addr.eq(window.addr + read_base),
            window.pair.eq(read.data),
            detector.i_valid.eq(dwt.valid2),
            detector.i_last.eq(dwt.last2),
            detector.i_d2.eq(dwt.d2),
        ]
        with m.If(begin):
            # The transform takes whole groups of four samples; the rest just lies in the RAM.
            m.d.sync += [place.eq(0), used.eq(self.block.payload.samples[2:] << 1)]
        with m.If(taken):
            m.d.sync += place.eq(place + 1)
        m.d.sync += [
            dwt.i_valid.eq(taken & (place < used)),
            dwt.i_last.eq(place == used - 1),
            dwt.i_even.eq(self.pair.payload.even),
            dwt.i_odd.eq(self.pair.payload.odd),
        ]

    def _base(self, m, step, init):
        """Address of a half of the RAM; the other half's after each ``step``."""
        if self.buffers == 1:
            return 0
        half = Signal(init=init)
        with m.If(step):
            m.d.sync += half.eq(~half)
        return Mux(half, self.max_samples // 2, 0)


class EcgPipeline(wiring.Component):
    """Blocks of samples in, the records of their beats out.

    ===========  ===  ============================================================================
    ``block``    In   stream of :func:`BlockLayout`: a block begins
    ``pair``     In   stream of sample pairs; taken after ``block`` until the last one
    ``record``   Out  stream of :data:`~.network.RecordLayout`, in order
    ``end``      Out  stream of nothing: the block has no more records; those of the next come
                      when it was taken
    ``load``     In   with ``loadable``: see :class:`~.network.Network`
    ``reload``   In   with ``loadable``: see :class:`~.network.Network`
    ``busy``     Out  a block is inside
    ===========  ===  ============================================================================

    Parameters: ``weights`` (default: the trained ones in ``models/ecg``); ``max_samples`` and
    ``buffers``, see :class:`FrontEnd`; ``lanes`` and ``loadable``, see :class:`~.network.Network`.
    Two lanes keep up with one front end.

    Cycles: those of :class:`FrontEnd`; the network works beside it. Back-pressure on ``record`` and
    ``end`` stalls the stages one after the other, nothing is lost. Reset: idle.
    """

    def __init__(
        self,
        weights=None,
        *,
        max_samples=model.MAX_SAMPLES,
        buffers=2,
        lanes=LANES_OF_ONE,
        loadable=False,
    ):
        self.weights = model.load_weights() if weights is None else weights
        self.front = FrontEnd(max_samples, buffers)
        self.network = Network(self.weights, lanes=lanes, order=FEATURE_ORDER, loadable=loadable)
        ports = {
            "block": In(stream.Signature(BlockLayout(self.front.index_width))),
            "pair": In(stream.Signature(PairLayout)),
            "record": Out(stream.Signature(RecordLayout)),
            "end": Out(stream.Signature(0)),
            "busy": Out(1),
        }
        if loadable:
            ports |= {
                "load": In(stream.Signature(unsigned(16), always_ready=True)),
                "reload": In(1),
            }
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        m.submodules.front, m.submodules.network = front, network = self.front, self.network
        m.submodules.counter = counter = BlockCounter()
        wiring.connect(m, wiring.flipped(self.block), front.block)
        wiring.connect(m, wiring.flipped(self.pair), front.pair)
        wiring.connect(m, front.vector, network.vector)
        wiring.connect(m, front.count, counter.count)
        m.d.comb += [
            counter.i.valid.eq(network.record.valid),
            counter.i.payload.eq(network.record.payload.record),
            network.record.ready.eq(counter.i.ready),
        ]
        wiring.connect(m, counter.o, wiring.flipped(self.record))
        wiring.connect(m, counter.end, wiring.flipped(self.end))
        blocks = Signal(3)  # begun, not ended: two in the RAM, one whose records are under way
        begun, ended = self.block.valid & self.block.ready, self.end.valid & self.end.ready
        m.d.sync += blocks.eq(blocks + begun - ended)
        m.d.comb += self.busy.eq(blocks != 0)
        if network.loadable:
            wiring.connect(m, wiring.flipped(self.load), network.load)
            m.d.comb += network.reload.eq(self.reload)
        return m


class BlockCounter(wiring.Component):
    """Says after which record a block ends.

    ==========  ===  ============================================================================
    ``i``       In   stream of :data:`~.network.RecordLayout`
    ``count``   In   stream: records of a block, in order of the blocks; taken with its end
    ``o``       Out  ``i``, held up at the end of a block
    ``end``     Out  stream of nothing: all records of the block were handed on
    ==========  ===  ============================================================================

    Combinational. A record may pass before the block's count is known. Reset: no block.
    """

    def __init__(self):
        super().__init__(
            {
                "i": In(stream.Signature(RecordLayout)),
                "count": In(stream.Signature(range(model.MAX_BEATS + 1))),
                "o": Out(stream.Signature(RecordLayout)),
                "end": Out(stream.Signature(0)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        given = Signal.like(self.count.payload)
        m.d.comb += [
            self.end.valid.eq(self.count.valid & (given == self.count.payload)),
            self.count.ready.eq(self.end.valid & self.end.ready),
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid & ~self.end.valid),
            self.i.ready.eq(self.o.ready & ~self.end.valid),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += given.eq(given + 1)
        with m.If(self.end.valid & self.end.ready):
            m.d.sync += given.eq(0)
        return m
