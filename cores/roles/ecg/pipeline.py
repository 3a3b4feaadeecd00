"""The ECG pipeline: a block of samples in, records of its beats out."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...stream import PacketSignature, check_data_width
from .front import BlockLayout, PairLayout, front_end
from .network import Network, RecordLayout

__all__ = [
    "BlockCounter",
    "BlockLayout",
    "EcgPipeline",
    "PairLayout",
    "PairSplitter",
    "lanes_of_one",
]

#: Cycles that a front end takes for a beat.
BEAT_CYCLES = 335


def lanes_of_one(preset):
    """The fewest lanes with which a network keeps up with one front end."""
    for lanes in range(1, preset.inputs + 1):
        rows = preset.hidden * -(-preset.inputs // lanes)
        rows += model.OUTPUTS * -(-preset.hidden // lanes)
        latency = 2 * (lanes - 1).bit_length() + 18
        if rows + latency <= BEAT_CYCLES:
            return lanes
    raise ValueError(f"no number of lanes is enough for the {preset.name} preset")


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

    Parameters: ``weights`` (default: the trained ones in ``models/ecg``); ``preset``, features and
    size of the network; ``max_samples`` and ``buffers``, see :class:`~.front.FrontEnd`; ``lanes``
    and ``loadable``, see :class:`~.network.Network`; ``lanes`` None: as many as keep up with one
    front end.

    Cycles: those of :class:`~.front.FrontEnd`; the network works beside it. Back-pressure on
    ``record`` and ``end`` stalls the stages one after the other, nothing is lost. Reset: idle.
    """

    def __init__(
        self,
        weights=None,
        *,
        preset=model.FAITHFUL,
        max_samples=model.MAX_SAMPLES,
        buffers=2,
        lanes=None,
        loadable=False,
    ):
        self.weights = preset.load_weights() if weights is None else weights
        self.front = front_end(preset, max_samples, buffers)
        self.network = Network(
            self.weights,
            lanes=lanes_of_one(preset) if lanes is None else lanes,
            order=self.front.order,
            shifts=preset.shifts,
            vectors=self.front.vectors,
            loadable=loadable,
        )
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
