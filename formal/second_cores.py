"""Cores that are deliberately unlike ours in ``cores/``, as examples for ``formal/second.py``."""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PromptArbiter", "ShiftFifo"]


class ShiftFifo(wiring.Component):
    """FIFO as a shift register: the oldest word is always in place 0. Ports as ``StreamFifo``."""

    def __init__(self, shape, depth):
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )
        self.places = [Signal(shape, name=f"place{k}") for k in range(depth)]

    def elaborate(self, platform):
        m = Module()
        put, get, after = Signal(), Signal(), Signal.like(self.level)
        m.d.comb += [
            self.i.ready.eq(self.level != self.depth),
            self.o.valid.eq(self.level != 0),
            self.o.payload.eq(self.places[0]),
            put.eq(self.i.valid & self.i.ready),
            get.eq(self.o.valid & self.o.ready),
            after.eq(self.level - get),
        ]
        m.d.sync += self.level.eq(after + put)
        with m.If(get):
            m.d.sync += [a.eq(b) for a, b in zip(self.places, self.places[1:], strict=False)]
        with m.If(put):
            m.d.sync += Array(self.places)[after].eq(self.i.payload)
        return m


class PromptArbiter(wiring.Component):
    """Arbiter that picks in the same cycle. Ports and parameters as ``StreamArbiter``.

    ``served`` is who had the last unit: the next is that of the first input behind it that waits.
    What is shown and not taken, or not at its end, is ``held``.
    """

    def __init__(self, shape, n, last=None):
        self.shape, self.n, self.last = shape, n, last
        super().__init__(
            {
                "i": In(stream.Signature(shape)).array(n),
                "o": Out(stream.Signature(shape)),
                "index": Out(range(n)),
            }
        )
        self.served, self.held = Signal(range(n), init=n - 1), Signal()

    def elaborate(self, platform):
        m = Module()
        inputs = [self.i[k] for k in range(self.n)]
        kept, ends = Signal.like(self.index), Signal()
        valid, payload = Array(i.valid for i in inputs), Array(i.payload for i in inputs)
        m.d.comb += [
            self.index.eq(kept),
            ends.eq(self.o.payload[self.last] if self.last else 1),
        ]
        with m.If(~self.held):
            for k in reversed(range(1, self.n + 1)):
                behind = Signal.like(self.index, name=f"behind{k}")
                wraps = self.served + k >= self.n
                m.d.comb += behind.eq(Mux(wraps, self.served + k - self.n, self.served + k))
                with m.If(valid[behind]):
                    m.d.comb += self.index.eq(behind)
        m.d.comb += [
            self.o.valid.eq(valid[self.index]),
            self.o.payload.eq(payload[self.index]),
            Array(i.ready for i in inputs)[self.index].eq(self.o.ready),
        ]
        m.d.sync += kept.eq(self.index)
        with m.If(self.o.valid):
            m.d.sync += self.held.eq(~(self.o.ready & ends))
            with m.If(self.o.ready & ends):
                m.d.sync += self.served.eq(self.index)
        return m
