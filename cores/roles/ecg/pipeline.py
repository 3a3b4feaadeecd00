"""The ECG pipeline: a block of samples in, records of its beats out."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...stream import PacketSignature, check_data_width
from .detect import Detector
from .dwt import TwoLevelDwt
from .logarithm import FeatureStage
from .network import Network, RecordLayout
from .window import WindowStage

__all__ = ["EcgPipeline", "PairLayout", "PairSplitter"]

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


class EcgPipeline(wiring.Component):
    """One block of samples in, its records out.

    ===========  ===  ============================================================================
    ``samples``  In   number of samples in the block, 64 to 4,096; stable while ``busy``
    ``start``    In   1 for one cycle while not ``busy``: a block begins
    ``pair``     In   stream of sample pairs; taken while a block is being loaded
    ``record``   Out  stream of :data:`~.network.RecordLayout`, in order of position
    ``found``    Out  records the block has, final when ``counted``
    ``counted``  Out  the whole block was searched for beats
    ``busy``     Out  a block is inside: loading, or beats not yet handed out
    ===========  ===  ============================================================================

    Parameters: ``weights`` (default: the trained ones in ``models/ecg``).

    Cycles for 4,096 samples: 2,048 to load, detection at most 90 and 3 for each crossing that could
    be a beat, then at most 340 a beat, overlapping detection; the network works beside it.
    Back-pressure on ``record`` stalls the stages one after the other, nothing is lost. Reset: idle.
    """

    def __init__(self, weights=None):
        self.weights = model.load_weights() if weights is None else weights
        super().__init__(
            {
                "samples": In(13),
                "start": In(1),
                "pair": In(stream.Signature(PairLayout)),
                "record": Out(stream.Signature(RecordLayout)),
                "found": Out(range(model.MAX_BEATS + 1)),
                "counted": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = ram = Memory(shape=unsigned(32), depth=model.MAX_SAMPLES // 2, init=[])
        m.submodules.dwt = dwt = TwoLevelDwt(16)
        m.submodules.detector = detector = Detector()
        m.submodules.window = window = WindowStage()
        m.submodules.feature = feature = FeatureStage()
        m.submodules.network = network = Network(self.weights)
        wiring.connect(m, detector.beat, window.beat)
        wiring.connect(m, window.item, feature.item)
        wiring.connect(m, feature.go, network.go)
        wiring.connect(m, wiring.flipped(self.record), network.record)

        place = Signal(range(model.MAX_SAMPLES // 2))
        loading = Signal()
        write, read = ram.write_port(), ram.read_port()
        taken = Signal()
        m.d.comb += [
            self.pair.ready.eq(loading),
            taken.eq(self.pair.valid & self.pair.ready),
            write.addr.eq(place),
            write.data.eq(Cat(self.pair.payload.even, self.pair.payload.odd)),
            write.en.eq(taken),
            read.addr.eq(window.addr),
            window.pair.eq(read.data),
            detector.samples.eq(self.samples),
            detector.clear.eq(self.start),
            detector.i_valid.eq(dwt.valid2),
            detector.i_last.eq(dwt.last2),
            detector.i_d2.eq(dwt.d2),
            network.f_valid.eq(feature.valid),
            network.f_index.eq(feature.feature),
            network.f_value.eq(feature.value),
            self.found.eq(detector.found),
            self.counted.eq(detector.done),
        ]
        # The transform takes whole groups of four samples only; the rest just lies in the RAM.
        used = Signal(range(model.MAX_SAMPLES // 2 + 1))
        m.d.comb += used.eq(self.samples[2:] << 1)
        m.d.sync += [
            dwt.i_valid.eq(taken & (place < used)),
            dwt.i_last.eq(place == used - 1),
            dwt.i_even.eq(self.pair.payload.even),
            dwt.i_odd.eq(self.pair.payload.odd),
        ]
        given = Signal.like(self.found)
        with m.If(taken):
            m.d.sync += [place.eq(place + 1), loading.eq(~self.pair.payload.last)]
        with m.If(self.record.valid & self.record.ready):
            m.d.sync += given.eq(given + 1)
        with m.If(self.counted & (given == self.found)):
            m.d.sync += self.busy.eq(0)
        with m.If(self.start):
            m.d.sync += [place.eq(0), given.eq(0), loading.eq(1), self.busy.eq(1)]
        return m
