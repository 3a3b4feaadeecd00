"""From sums to features: variances and Mitchell logarithms, one step a cycle (step 8)."""

from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from .detect import INDEX_WIDTH
from .window import ItemKind, ItemLayout

__all__ = ["FeatureStage"]

WIDTH = 44
SUM_WIDTH = 22


class FeatureStage(wiring.Component):
    """Turns items into features.

    ==================================  ===  ====================================================
    ``item``                            In   stream of :data:`~.window.ItemLayout`
    ``valid`` ``feature`` ``value``     Out  feature number ``feature`` is ``value`` (signed 16)
    ``go``                              Out  stream: all features of a beat were put out;
                                             payload: the index of the beat
    ==================================  ===  ====================================================

    Cycles: at most 43 for a variance, 30 for a ratio, 2 for the rhythm: 395 a beat. The next item
    is taken when ``go`` was. Reset: idle.
    """

    def __init__(self):
        super().__init__(
            {
                "item": In(stream.Signature(ItemLayout)),
                "valid": Out(1),
                "feature": Out(4),
                "value": Out(signed(16)),
                "go": Out(stream.Signature(INDEX_WIDTH)),
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
        steps = Signal(range(SUM_WIDTH))
        exponent = Signal(6)
        positive = Signal(signed(16))  # logarithm of the maximum, of a ratio
        second = Signal()  # the ratio's second logarithm
        logarithm = Signal(signed(16))
        magnitude = Signal(SUM_WIDTH)

        m.d.comb += [
            logarithm.eq(0),
            self.feature.eq(item.feature),
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
                            self.valid.eq(1),
                            self.value.eq(item.a[:9] << model.RR_SHIFT),
                        ]
                        m.d.sync += self.go.payload.eq(item.b)
                        m.next = "IDLE"
            with m.State("SCALE"):
                m.d.sync += [value.eq(value << 1), steps.eq(steps - 1)]
                with m.If(steps == 0):
                    m.d.sync += steps.eq(SUM_WIDTH - 1)
                    m.next = "SQUARE"
            with m.State("SQUARE"):
                m.d.sync += [shifted.eq(shifted << 1), bits.eq(bits >> 1), steps.eq(steps - 1)]
                with m.If(bits[0]):
                    m.d.sync += value.eq(value - shifted)
                with m.If(steps == 0):
                    m.next = "NORMALISE"
            with m.State("NORMALISE"):
                with m.If(value[-1] | (exponent == 0)):
                    m.next = "EMIT"
                with m.Elif((exponent >= 8) & ~value[WIDTH - 8 :].any()):
                    m.d.sync += [value.eq(value << 8), exponent.eq(exponent - 8)]
                with m.Else():
                    m.d.sync += [value.eq(value << 1), exponent.eq(exponent - 1)]
            with m.State("EMIT"):
                m.next = "IDLE"
                with m.If(item.kind == ItemKind.VARIANCE):
                    scale = item.shift << (model.PLOG_FRACTION + 1)
                    m.d.comb += [self.valid.eq(1), self.value.eq(logarithm + scale)]
                    with m.If(item.last):
                        m.next = "GO"
                with m.Elif(~second):
                    m.d.sync += [positive.eq(logarithm), second.eq(1)]
                    m.next = "SET"
                with m.Else():
                    m.d.comb += [self.valid.eq(1), self.value.eq(logarithm - positive)]
            with m.State("GO"):
                m.d.comb += self.go.valid.eq(1)
                with m.If(self.go.ready):
                    m.next = "IDLE"
        return m
