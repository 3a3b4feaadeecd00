"""Front ends: blocks of samples in, the network's inputs for their beats out."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...buffers import NO_COLLISIONS
from .detect import Detector, index_width
from .dwt import TwoLevelDwt
from .logarithm import FeatureStage
from .network import VectorLayout
from .trace import TraceStage
from .window import FEATURE_ORDER, WindowStage

__all__ = [
    "BlockLayout",
    "FaithfulFrontEnd",
    "FrontEnd",
    "PairLayout",
    "SecondFrontEnd",
    "front_end",
]

#: Two samples; ``last`` marks the block's last pair.
PairLayout = data.StructLayout({"even": signed(16), "odd": signed(16), "last": 1})


def BlockLayout(width):
    """A block: its number of samples; beats with ``low <= R / 4 < high`` are reported.

    The window of a reported beat must lie in the block: ``8 <= low``, ``high <= samples // 4 - 7``.
    ``width``: bits of a number of D2 values.
    """
    return data.StructLayout(
        {"samples": unsigned(width + 2), "low": unsigned(width), "high": unsigned(width)}
    )


class FrontEnd(wiring.Component):
    """What the front ends of all presets have in common: load, transform, search.

    ==========  ===  ============================================================================
    ``block``   In   stream of :func:`BlockLayout`: a block begins
    ``pair``    In   stream of sample pairs; taken after ``block`` until the last one
    ``vector``  Out  stream of :func:`~.network.VectorLayout`, beats in order of position
    ``count``   Out  stream: number of beats of a block, in order of the blocks
    ``busy``    Out  a block is inside: being loaded or searched, or beats that need its samples
    ==========  ===  ============================================================================

    Parameters: ``max_samples``, of a block, a multiple of 4; ``buffers``: 2 (ping-pong: a block is
    loaded and searched while the beats of the one before are worked on) or 1.

    Cycles: a block is loaded at two samples a cycle, searched in at most 90 and 3 for each crossing
    that could be a beat, then takes at most 340 a beat. With two buffers a block takes the longer
    of both. Back-pressure on ``vector`` stalls the stages one after the other; a ``count`` that is
    not taken stalls the search of the block after the next. Reset: idle.
    """

    #: Whether the beats' stage wants those, too, that are not reported.
    report_all = False
    #: Vectors that the network should take ahead of the one it works on, and that one.
    vectors = 2
    #: Features in the order in which the network gets them; None: as in the model.
    order: tuple | None = None

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
        m.submodules.detector = detector = Detector(self.max_samples, self.report_all)
        m.submodules.dwt = dwt = TwoLevelDwt(16)
        filled = Signal(range(self.buffers + 1))
        begin, taken = Signal(), Signal()
        self._loaded = Signal()  # the block that came last was searched
        self._place = Signal(range(self.max_samples // 2))  # of the pair that comes next
        freed = self._beats(m, detector, dwt, begin, taken)
        m.d.sync += filled.eq(filled + begin - freed)
        m.d.comb += self.busy.eq(filled != 0)
        self._control(m, filled, begin, detector)
        self._transform(m, begin, taken, detector, dwt)
        return m

    def _beats(self, m, detector, dwt, begin, taken):
        """The preset's part: from beats and what is kept of the block to ``vector``. ``begin``: a
        block begins; ``taken``: a pair of it. Return whether the oldest block is not needed."""
        raise NotImplementedError

    def _control(self, m, filled, begin, detector):
        """One block after the other is loaded, searched, and counted."""
        m.d.comb += detector.clear.eq(begin)
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
                m.d.comb += self.pair.ready.eq(1)
                with m.If(self.pair.valid & self.pair.payload.last):
                    m.next = "SEARCH"
            with m.State("SEARCH"):
                with m.If(detector.done & ~self.count.valid):
                    m.d.comb += self._loaded.eq(1)
                    m.d.sync += [self.count.valid.eq(1), self.count.payload.eq(detector.found)]
                    m.next = "IDLE"

    def _transform(self, m, begin, taken, detector, dwt):
        """Pairs into the transform, its D2 into the detector."""
        place = self._place
        used = Signal(range(self.max_samples // 2 + 1))
        m.d.comb += [
            taken.eq(self.pair.valid & self.pair.ready),
            detector.i_valid.eq(dwt.valid2),
            detector.i_last.eq(dwt.last2),
            detector.i_d2.eq(dwt.d2),
        ]
        with m.If(begin):
            # The transform takes whole groups of four samples.
            m.d.sync += [place.eq(0), used.eq(self.block.payload.samples[2:] << 1)]
        with m.If(taken):
            m.d.sync += place.eq(place + 1)
        m.d.sync += [
            dwt.i_valid.eq(taken & (place < used)),
            dwt.i_last.eq(place == used - 1),
            dwt.i_even.eq(self.pair.payload.even),
            dwt.i_odd.eq(self.pair.payload.odd),
        ]

    def _half(self, m, step):
        """Which half of a RAM is in use: 0, and after each ``step`` the other if there are two."""
        half = Signal()
        if self.buffers == 2:
            with m.If(step):
                m.d.sync += half.eq(~half)
        return half


class FaithfulFrontEnd(FrontEnd):
    """The front end of the faithful preset: 11 features of a window of 64 samples.

    Ports, parameters and times: :class:`FrontEnd`.
    """

    order = FEATURE_ORDER

    def _beats(self, m, detector, dwt, begin, taken):
        m.submodules.window = window = WindowStage(self.max_samples)
        m.submodules.feature = feature = FeatureStage()
        wiring.connect(m, window.item, feature.item)
        wiring.connect(m, feature.vector, wiring.flipped(self.vector))
        beat, freed = detector.beat, Signal()
        m.d.comb += [
            freed.eq(beat.valid & beat.payload.end & window.beat.ready),
            window.beat.valid.eq(beat.valid & ~beat.payload.end),
            window.beat.payload.eq(beat.payload),
            beat.ready.eq(window.beat.ready),
        ]
        pairs = self.max_samples // 2
        m.submodules.ram = ram = Memory(
            shape=unsigned(32), depth=self.buffers * pairs, init=[], attrs=NO_COLLISIONS
        )
        write, read = ram.write_port(), ram.read_port()
        write_half, read_half = self._half(m, self._loaded), self._half(m, freed)
        m.d.comb += [
            write.addr.eq(self._place + Mux(write_half, pairs, 0)),
            write.data.eq(Cat(self.pair.payload.even, self.pair.payload.odd)),
            write.en.eq(taken),
            read.addr.eq(window.addr + Mux(read_half, pairs, 0)),
            window.pair.eq(read.data),
        ]
        return freed


class SecondFrontEnd(FrontEnd):
    """The front end of the second preset: traces, a template of the block's beats, intervals.

    Ports, parameters and times: :class:`FrontEnd`. What is kept of a block is its A2. The template
    takes some 600 cycles at the begin of a block; the network has vectors for longer.
    """

    report_all = True
    vectors = 4

    def _beats(self, m, detector, dwt, begin, taken):
        m.submodules.trace = trace = TraceStage(self.index_width)
        wiring.connect(m, detector.beat, trace.beat)
        wiring.connect(m, trace.vector, wiring.flipped(self.vector))
        groups = self.max_samples // 4
        m.submodules.ram = ram = Memory(
            shape=signed(16), depth=self.buffers * groups, init=[], attrs=NO_COLLISIONS
        )
        write, read = ram.write_port(), ram.read_port()
        index = Signal(range(groups))
        with m.If(begin):
            m.d.sync += index.eq(0)
        with m.Elif(dwt.valid2):
            m.d.sync += index.eq(index + 1)
        write_half, read_half = self._half(m, self._loaded), self._half(m, trace.freed)
        m.d.comb += [
            write.addr.eq(index + Mux(write_half, groups, 0)),
            write.data.eq(dwt.a2),
            write.en.eq(dwt.valid2),
            read.addr.eq(trace.addr + Mux(read_half, groups, 0)),
            trace.a2.eq(read.data),
        ]
        lasts = [Signal(self.index_width, name=f"last{half}") for half in range(self.buffers)]
        for half, last in enumerate(lasts):
            with m.If(begin & (write_half == half)):
                m.d.sync += last.eq(self.block.payload.samples[2:] - 1)
        m.d.comb += trace.last.eq(Mux(read_half, lasts[-1], lasts[0]))
        return trace.freed


#: Front ends by the name of their preset.
_FRONT_ENDS = {"faithful": FaithfulFrontEnd, "second": SecondFrontEnd}


def front_end(preset, max_samples=model.MAX_SAMPLES, buffers=2):
    """The front end of a :class:`~trebuchet.models.ecg.model.Preset`."""
    return _FRONT_ENDS[preset.name](max_samples, buffers)
