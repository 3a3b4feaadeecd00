"""Several front ends that share one network."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...arbiter import StreamArbiter, StreamDemux
from ...buffers import StreamFifo
from .front import BlockLayout, PairLayout, front_end
from .network import LANES, Network, RecordLayout, VectorLayout
from .pipeline import BlockCounter, lanes_of_one

__all__ = ["PipelineBank", "PipelineSignature", "VectorStore"]

#: Records that wait for a pipeline's writer without keeping the network from the others' beats.
RECORDS = 4
#: Vectors of a front end that wait for the network.
VECTORS = 2


class PipelineSignature(wiring.Signature):
    """A pipeline, seen by who uses it: the members are those of :class:`~.pipeline.EcgPipeline`.

    ``width``: bits of a number of D2 values.
    """

    def __init__(self, width):
        self.width = width
        super().__init__(
            {
                "block": Out(stream.Signature(BlockLayout(width))),
                "pair": Out(stream.Signature(PairLayout)),
                "record": In(stream.Signature(RecordLayout)),
                "end": In(stream.Signature(0)),
            }
        )

    def __eq__(self, other):
        return isinstance(other, PipelineSignature) and self.width == other.width


class VectorStore(wiring.Component):
    """Offers a vector only when all of it is there, so that it then takes a cycle a value.

    ``i``, ``o``: streams of :func:`~.network.VectorLayout`. Parameter: ``inputs``, values of a
    vector; there is room for two vectors. Latency: 2 cycles (3 above 64 values) behind the last
    value. Back-pressure: ``i`` waits while the store is full. Reset: empty. Bad input: a vector of
    more than twice ``inputs`` values never comes out.
    """

    def __init__(self, inputs):
        self.inputs = inputs
        super().__init__(
            {
                "i": In(stream.Signature(VectorLayout())),
                "o": Out(stream.Signature(VectorLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        depth = max(2, VECTORS * self.inputs)
        m.submodules.fifo = fifo = StreamFifo(VectorLayout(), depth)
        wiring.connect(m, wiring.flipped(self.i), fifo.i)
        complete = Signal(range(depth + 1))  # vectors inside, up to their last value
        offered = Signal()
        arrives = self.i.valid & self.i.ready & self.i.payload.last
        leaves = self.o.valid & self.o.ready & self.o.payload.last
        m.d.sync += complete.eq(complete + arrives - leaves)
        m.d.comb += [
            offered.eq(complete != 0),
            self.o.valid.eq(fifo.o.valid & offered),
            self.o.payload.eq(fifo.o.payload),
            fifo.o.ready.eq(self.o.ready & offered),
        ]
        return m


class PipelineBank(wiring.Component):
    """``n`` pipelines with one network.

    ==============  ==========  ==================================================================
    ``pipelines``   In, array   ``n`` times :class:`PipelineSignature`
    ``load``        In          with ``loadable``: see :class:`~.network.Network`
    ``reload``      In          with ``loadable``: see :class:`~.network.Network`
    ==============  ==========  ==================================================================

    Parameters: ``n``; ``preset``; ``weights``, ``lanes``, ``loadable``: the network's;
    ``max_samples`` and ``buffers``: of each :class:`~.front.FrontEnd`. ``lanes``: None takes as
    many as keep up with one front end (faithful: two), or eleven for several.

    Beats reach the network in turn, whole vectors, each when all of it is there: a front end takes
    as long over a vector as the network over several. Records go back by the tag. A pipeline whose
    records are not taken holds up the others when it has more than four. Cycles: those of the front
    ends, and at least the network's for all their beats. Reset: idle.
    """

    def __init__(
        self,
        n,
        weights,
        *,
        preset=model.FAITHFUL,
        lanes=None,
        loadable=False,
        max_samples=model.MAX_SAMPLES,
        buffers=2,
    ):
        self.n = n
        if lanes is None:
            lanes = lanes_of_one(preset) if n == 1 else LANES
        self.fronts = [front_end(preset, max_samples, buffers) for _ in range(n)]
        self.tag_width = (n - 1).bit_length()
        self.network = Network(
            weights,
            lanes=lanes,
            order=self.fronts[0].order,
            shifts=preset.shifts,
            vectors=self.fronts[0].vectors,
            loadable=loadable,
            tag_width=self.tag_width,
        )
        self.pipeline_signature = PipelineSignature(self.fronts[0].index_width)
        ports = {"pipelines": In(self.pipeline_signature).array(n)}
        if loadable:
            ports["load"] = In(stream.Signature(unsigned(16), always_ready=True))
            ports["reload"] = In(1)
        super().__init__(ports)

    def elaborate(self, platform):
        m = Module()
        m.submodules.network = network = self.network
        m.submodules.demux = demux = StreamDemux(RecordLayout, self.n)
        m.submodules.arbiter = arbiter = StreamArbiter(VectorLayout(self.tag_width), self.n, "last")
        wiring.connect(m, arbiter.o, network.vector)
        m.d.comb += [
            demux.i.valid.eq(network.record.valid),
            demux.i.payload.eq(network.record.payload.record),
            demux.select.eq(network.record.payload.tag),
            network.record.ready.eq(demux.i.ready),
        ]
        for i, (front, port) in enumerate(zip(self.fronts, self.pipelines, strict=True)):
            m.submodules[f"front{i}"] = front
            m.submodules[f"counter{i}"] = counter = BlockCounter()
            wiring.connect(m, wiring.flipped(port.block), front.block)
            wiring.connect(m, wiring.flipped(port.pair), front.pair)
            wiring.connect(m, front.count, counter.count)
            wiring.connect(m, counter.o, wiring.flipped(port.record))
            wiring.connect(m, counter.end, wiring.flipped(port.end))
            vector = arbiter.i[i]
            whole = front.vector
            if self.n > 1:
                m.submodules[f"vectors{i}"] = store = VectorStore(network.shape.inputs)
                wiring.connect(m, front.vector, store.i)
                whole = store.o
            m.d.comb += [vector.valid.eq(whole.valid), whole.ready.eq(vector.ready)]
            for name in whole.payload.shape().members:
                m.d.comb += vector.payload[name].eq(whole.payload[name])
            m.d.comb += vector.payload.tag.eq(i)
            if self.n == 1:
                wiring.connect(m, demux.o[i], counter.i)
                continue
            m.submodules[f"records{i}"] = fifo = StreamFifo(RecordLayout, RECORDS)
            wiring.connect(m, demux.o[i], fifo.i)
            wiring.connect(m, fifo.o, counter.i)
        if network.loadable:
            wiring.connect(m, wiring.flipped(self.load), network.load)
            m.d.comb += network.reload.eq(self.reload)
        return m
