"""One beat's window: mean, second transform, moments, autocorrelations (steps 6 to 8)."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...buffers import StreamFifo
from .correlate import VALUE_WIDTH, Correlator
from .detect import BeatLayout, index_width
from .dwt import TwoLevelDwt

__all__ = ["FEATURE_ORDER", "ItemKind", "ItemLayout", "Moments", "WindowStage"]

PAIRS = model.WINDOW // 2
BANDS = ("d1", "d2", "a2")
#: Features in the order in which their items leave.
FEATURE_ORDER = (0, 1, 2, 3, 7, 8, 9, 10, 4, 5, 6)
#: Places for items between this stage and the next.
ITEMS = 16


class ItemKind(enum.Enum, shape=2):
    """What :class:`ItemLayout` carries."""

    VARIANCE = 0  # a = sum, b = sum of squares, size_log2, shift
    RATIO = 1  # a = max(0, maximum), b = max(0, -minimum)
    RHYTHM = 2  # a = RR interval, b = index of the beat


#: One feature on its way to its logarithm. ``last`` marks the last one of a beat.
ItemLayout = data.StructLayout(
    {
        "kind": ItemKind,
        "feature": unsigned(4),
        "last": unsigned(1),
        "size_log2": unsigned(3),
        "shift": unsigned(4),
        "a": signed(23),
        "b": unsigned(38),
    }
)


class Moments(wiring.Component):
    """Sum, sum of squares, minimum and maximum of a run of values.

    ``clear`` (one cycle) starts a run; each cycle with ``valid`` takes one of the ``lanes`` values
    in ``values`` all together. The outputs hold 3 cycles after the last one. ``bits``: of a value,
    signed; ``growth``: log2 of the longest run.
    """

    def __init__(self, bits, growth, lanes=1):
        self.bits, self.lanes = bits, lanes
        super().__init__(
            {
                "clear": In(1),
                "valid": In(1),
                "values": In(signed(bits)).array(lanes),
                "total": Out(signed(bits + growth)),
                "squares": Out(2 * bits + growth - 1),
                "least": Out(signed(bits)),
                "most": Out(signed(bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        products = [Signal(2 * self.bits - 1, name=f"product{i}") for i in range(self.lanes)]
        partial = Signal(signed(self.bits + 1))
        first, valid = Signal(), Signal()
        m.d.sync += valid.eq(self.valid)
        m.d.sync += partial.eq(sum(self.values[i] for i in range(self.lanes)))
        for i in range(self.lanes):
            m.d.sync += products[i].eq(self.values[i] * self.values[i])
        with m.If(self.clear):
            m.d.sync += [first.eq(1), self.total.eq(0), self.squares.eq(0)]
        with m.Elif(valid):
            m.d.sync += [
                self.total.eq(self.total + partial),
                self.squares.eq(self.squares + sum(products)),
            ]
        # The extrema are wanted of single values only.
        value = self.values[0]
        with m.If(self.valid):
            m.d.sync += first.eq(0)
            with m.If(first | (value < self.least)):
                m.d.sync += self.least.eq(value)
            with m.If(first | (value > self.most)):
                m.d.sync += self.most.eq(value)
        return m


class WindowStage(wiring.Component):
    """Takes beats, reads their windows, and emits what the features are made of.

    ============  ===  ========================================================================
    ``beat``      In   stream of :data:`~.detect.BeatLayout`
    ``addr``      Out  pair of samples wanted from the block's RAM (samples 2 addr, 2 addr + 1)
    ``pair``      In   that pair, one cycle later: even sample in bits 15..0
    ``item``      Out  stream of :data:`ItemLayout`; eleven a beat, the last one marked
    ``busy``      Out  a beat is inside
    ============  ===  ========================================================================

    Cycles: at most 340 a beat (34 for the mean, 50 for window and transform, 3 + 144 + 40 + 40 for
    the autocorrelations, the rest in handing over). Back-pressure on ``item`` is taken up by a
    FIFO; a beat is begun only when there is room for its items. Reset: idle.
    """

    def __init__(self, max_samples=model.MAX_SAMPLES):
        self.index_width = index_width(max_samples)
        super().__init__(
            {
                "beat": In(stream.Signature(BeatLayout(self.index_width))),
                "addr": Out(self.index_width + 1),
                "pair": In(32),
                "item": Out(stream.Signature(ItemLayout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.items = items = StreamFifo(ItemLayout, ITEMS)
        wiring.connect(m, wiring.flipped(self.item), items.o)
        beat = Signal(self.beat.payload.shape())
        begin = Signal()  # a beat was taken
        pair_valid, pair_last, even, odd, reading, subtracting = self._read(m, beat)
        mean = self._mean(m, begin, pair_valid & ~subtracting, even, odd)
        moments, rams, bands_done = self._bands(
            m, begin, pair_valid & subtracting, pair_last, even, odd, mean
        )
        pushing, pushed = Signal(), Signal()
        correlating, correlated = Signal(), Signal()
        self._push_moments(m, items.i, pushing, pushed, moments, beat)
        self._push_correlations(m, items.i, correlating, correlated, rams)

        settled = Signal(3)  # the sum of the last pair is in `mean`
        m.d.sync += settled.eq(Cat(pair_valid & pair_last & ~subtracting, settled))
        m.d.comb += self.busy.eq(1)
        with m.FSM(name="window"):
            with m.State("IDLE"):
                m.d.comb += [
                    self.busy.eq(0),
                    self.beat.ready.eq(items.level <= ITEMS - model.FEATURES),
                    begin.eq(self.beat.valid & self.beat.ready),
                ]
                m.d.sync += [beat.eq(self.beat.payload), subtracting.eq(0), reading.eq(begin)]
                with m.If(begin):
                    m.next = "MEAN"
            with m.State("MEAN"):
                with m.If(settled[-1]):
                    m.d.sync += [subtracting.eq(1), reading.eq(1)]
                    m.next = "BANDS"
            with m.State("BANDS"):
                with m.If(bands_done):
                    m.next = "MOMENTS"
            with m.State("MOMENTS"):
                m.d.comb += pushing.eq(1)
                with m.If(pushed):
                    m.next = "CORRELATE"
            with m.State("CORRELATE"):
                m.d.comb += correlating.eq(1)
                with m.If(correlated):
                    m.next = "IDLE"
        return m

    def _read(self, m, beat):
        """Read the window's pairs once for each 1 of `reading`; two cycles from address to pair."""
        reading, subtracting = Signal(), Signal()
        place = Signal(range(PAIRS))
        valid, last = Signal(2), Signal(2)
        even, odd = Signal(signed(16)), Signal(signed(16))
        m.d.comb += self.addr.eq((beat.index << 1) - PAIRS // 2 + place)
        m.d.sync += [
            valid.eq(Cat(reading, valid)),
            last.eq(Cat(place == PAIRS - 1, last)),
            even.eq(self.pair[:16]),
            odd.eq(self.pair[16:]),
        ]
        with m.If(reading):
            m.d.sync += place.eq(place + 1)
            with m.If(place == PAIRS - 1):
                m.d.sync += reading.eq(0)
        return valid[-1], last[-1], even, odd, reading, subtracting

    def _mean(self, m, clear, valid, even, odd):
        partial, total = Signal(signed(17)), Signal(signed(22))
        add = Signal()
        m.d.sync += [partial.eq(even + odd), add.eq(valid)]
        with m.If(clear):
            m.d.sync += total.eq(0)
        with m.Elif(add):
            m.d.sync += total.eq(total + partial)
        return total >> 6

    def _bands(self, m, clear, valid, last, even, odd, mean):
        """Window values, their transform, the moments of all, and the subbands in RAMs."""
        m.submodules.dwt = dwt = TwoLevelDwt(12)
        difference = [Signal(signed(17), name=f"difference{i}") for i in range(2)]
        values = [Signal(signed(12), name=f"value{i}") for i in range(2)]
        stages = Signal(2)
        stages_last = Signal(2)
        m.d.sync += [stages.eq(Cat(valid, stages)), stages_last.eq(Cat(valid & last, stages_last))]
        for i, sample in enumerate((even, odd)):
            top = difference[i][11:]
            m.d.sync += difference[i].eq(sample - mean)
            m.d.sync += values[i].eq(difference[i])
            with m.If(top.any() & ~top.all()):  # does not fit 12 bits
                sign = difference[i][-1]
                m.d.sync += values[i].eq(Mux(sign, -model.WINDOW_MAX - 1, model.WINDOW_MAX))
        m.d.comb += [
            dwt.i_valid.eq(stages[1]),
            dwt.i_last.eq(stages_last[1]),
            dwt.i_even.eq(values[0]),
            dwt.i_odd.eq(values[1]),
        ]
        moments = {"window": Moments(12, 6, lanes=2)}
        moments |= {"d1": Moments(13, 5), "d2": Moments(13, 4), "a2": Moments(12, 4)}
        for name, unit in moments.items():
            m.submodules[f"moments_{name}"] = unit
            m.d.comb += unit.clear.eq(clear)
        m.d.comb += [
            moments["window"].valid.eq(stages[1]),
            moments["window"].values[0].eq(values[0]),
            moments["window"].values[1].eq(values[1]),
        ]
        rams = {}
        for name, taken, value in (
            ("d1", dwt.valid1, dwt.d1),
            ("d2", dwt.valid2, dwt.d2),
            ("a2", dwt.valid2, dwt.a2),
        ):
            m.d.comb += [moments[name].valid.eq(taken), moments[name].values[0].eq(value)]
            depth = 32 if name == "d1" else 16
            ram = Memory(shape=signed(VALUE_WIDTH), depth=depth, init=[])
            m.submodules[f"ram_{name}"] = rams[name] = ram
            port = ram.write_port()
            m.d.comb += [port.data.eq(value), port.en.eq(taken)]
            m.d.sync += port.addr.eq(port.addr + taken)  # wraps to 0 with each window
        settled = Signal(3)
        m.d.sync += settled.eq(Cat(dwt.valid2 & dwt.last2, settled))
        return moments, rams, settled[-1]

    def _push_moments(self, m, out, pushing, pushed, moments, beat):
        """Eight items, one a cycle; there is room for them since the beat was taken."""
        items = []
        for i, name in enumerate(("window",) + BANDS):
            unit = moments[name]
            fields = {"kind": ItemKind.VARIANCE, "feature": i, "b": unit.squares}
            fields["a"] = unit.total
            fields["size_log2"] = {"window": 6, "d1": 5}.get(name, 4)
            items.append(fields)
        for i, name in enumerate(BANDS):
            unit = moments[name]
            fields = {"kind": ItemKind.RATIO, "feature": 7 + i}
            fields["a"] = Mux(unit.most > 0, unit.most, 0)
            fields["b"] = Mux(unit.least < 0, -unit.least, 0)
            items.append(fields)
        items.append({"kind": ItemKind.RHYTHM, "feature": 10, "a": beat.rr, "b": beat.index})
        at = Signal(range(len(items)))
        m.d.comb += pushed.eq(at == len(items) - 1)
        with m.If(pushing):
            m.d.comb += out.valid.eq(1)
            m.d.sync += at.eq(at + 1)
            with m.Switch(at):
                for i, fields in enumerate(items):
                    with m.Case(i):
                        m.d.comb += [out.payload[key].eq(value) for key, value in fields.items()]

    def _push_correlations(self, m, out, correlating, correlated, rams):
        """Run the correlator on the three bands; emit an item for each."""
        m.submodules.correlator = unit = Correlator()
        band, told = Signal(2), Signal(2)
        ports = {
            name: (ram.read_port(domain="comb"), ram.read_port(domain="comb"))
            for name, ram in rams.items()
        }
        started = Signal(2)
        m.d.comb += [
            unit.start.eq(correlating & ~unit.busy & (started != len(BANDS))),
            unit.size_log2.eq(Mux(band == 0, 5, 4)),
            correlated.eq(unit.done & (told == len(BANDS) - 1)),
        ]
        for i, name in enumerate(BANDS):
            left, right = ports[name]
            m.d.comb += [left.addr.eq(unit.a_addr), right.addr.eq(unit.b_addr)]
            with m.If(band == i):
                m.d.comb += [unit.a_data.eq(left.data), unit.b_data.eq(right.data)]
        with m.If(~correlating):
            m.d.sync += [started.eq(0), told.eq(0)]
        with m.If(unit.start):
            m.d.sync += [started.eq(started + 1), band.eq(started)]
        with m.If(unit.done):
            m.d.sync += told.eq(told + 1)
            m.d.comb += [
                out.valid.eq(1),
                out.payload.kind.eq(ItemKind.VARIANCE),
                out.payload.feature.eq(4 + told),
                out.payload.last.eq(told == len(BANDS) - 1),
                out.payload.size_log2.eq(Mux(told == 0, 5, 4)),
                out.payload.shift.eq(unit.shift),
                out.payload.a.eq(unit.total),
                out.payload.b.eq(unit.squares),
            ]
