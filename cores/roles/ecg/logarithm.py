"""From sums to features: variances and Mitchell logarithms, one step a cycle (step 8)."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from .network import VectorLayout
from .window import ItemKind, ItemLayout

__all__ = ["FeatureStage"]

WIDTH = 44
SUM_WIDTH = 22


class FeatureStage(wiring.Component):
    """Turns items into features.

    ==========  ===  ==========================================================================
    ``item``    In   stream of :data:`~.window.ItemLayout`
    ``vector``  Out  stream of :func:`~.network.VectorLayout`, in the order of the items
    ==========  ===  ==========================================================================

    Cycles: at most 43 for a variance, 30 for a ratio, 2 for the rhythm: 395 a beat. A feature that
    is not taken holds up what follows. Reset: idle.
    """

    def __init__(self):
        super().__init__(
            {
                "item": In(stream.Signature(ItemLayout)),
                "vector": Out(stream.Signature(VectorLayout())),
            }
        )

    # One register does it all: the sum of squares moves up until it is n times itself, sum**2 is
    # subtracted bit by bit (all partial differences are >= 0), then the leading one moves to the
    # top, eight places and one place at a time, and says the logarithm.
    def elaborate(self, platform):
        m = Module()
        item = Signal(ItemLayout)
        value, shifted = Signal(WIDTH), Signal(WIDTH)
        bits = Signal(SUM_WIDTH)
        steps = Signal(3)
        exponent = Signal(6)
        positive = Signal(signed(16))  # logarithm of the maximum, of a ratio
        second = Signal()  # the ratio's second logarithm
        logarithm = Signal(signed(16))
        magnitude = Signal(SUM_WIDTH)

        out = self.vector
        index = Signal(14)
        m.d.comb += [
            logarithm.eq(0),
            out.payload.last.eq(item.last),
            out.payload.index.eq(index),
            magnitude.eq(Mux(item.a[-1], -item.a, item.a)),
        ]
        with m.If(value[-1]):
            fraction = value[WIDTH - 1 - model.PLOG_FRACTION : WIDTH - 1]
            m.d.comb += logarithm.eq(Cat(fraction, exponent))

        with m.FSM(name="feature"):
            with m.State("IDLE"):
                m.d.comb += self.item.ready.eq(1)
                m.d.sync += [item.eq(self.item.payload), second.eq(0)]
                with m.If(self.item.valid):
                    m.next = "SET"
            with m.State("SET"):
                m.d.sync += [
                    shifted.eq(magnitude),
                    bits.eq(magnitude),
                    steps.eq(item.size_log2 - 1),
                    exponent.eq(WIDTH),
                    value.eq(Mux((item.kind == ItemKind.RATIO) & ~second, magnitude, item.b)),
                ]
                with m.Switch(item.kind):
                    with m.Case(ItemKind.VARIANCE):
                        m.next = "SCALE"
                    with m.Case(ItemKind.RATIO):
                        m.next = "NORMALISE"
                    with m.Default():
                        m.d.comb += [
                            out.valid.eq(1),
                            out.payload.value.eq(item.a[:9] << model.RR_SHIFT),
                        ]
                        m.d.sync += index.eq(item.b)
                        with m.If(out.ready):
                            m.next = "IDLE"
            with m.State("SCALE"):
                m.d.sync += [value.eq(value << 1), steps.eq(steps - 1)]
                with m.If(steps == 0):
                    m.next = "SQUARE"
            with m.State("SQUARE"):
                m.d.sync += [shifted.eq(shifted << 1), bits.eq(bits >> 1)]
                with m.If(bits[0]):
                    m.d.sync += value.eq(value - shifted)
                with m.If(~bits[1:].any()):
                    m.next = "NORMALISE"
            with m.State("NORMALISE"):
                with m.If(value[-1] | (exponent == 0)):
                    m.next = "EMIT"
                with m.Elif((exponent >= 8) & ~value[WIDTH - 8 :].any()):
                    m.d.sync += [value.eq(value << 8), exponent.eq(exponent - 8)]
                with m.Else():
                    m.d.sync += [value.eq(value << 1), exponent.eq(exponent - 1)]
            with m.State("EMIT"):
                with m.If((item.kind == ItemKind.RATIO) & ~second):
                    m.d.sync += [positive.eq(logarithm), second.eq(1)]
                    m.next = "SET"
                with m.Else():
                    scale = item.shift << (model.PLOG_FRACTION + 1)
                    m.d.comb += out.valid.eq(1)
                    m.d.comb += out.payload.value.eq(
                        Mux(second, logarithm - positive, logarithm + scale)
                    )
                    with m.If(out.ready):
                        m.next = "IDLE"
        return m
