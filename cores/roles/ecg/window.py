"""One beat's window: mean, second transform, autocorrelations, sums (steps 6 to 8)."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...buffers import NO_COLLISIONS, StreamFifo
from .correlate import BANDS, VALUE_WIDTH, Correlator
from .detect import BeatLayout, index_width
from .dwt import TwoLevelDwt
from .moments import BandSums, ScaledSums

__all__ = ["FEATURE_ORDER", "ItemKind", "ItemLayout", "WindowStage"]

#: Features in the order in which their items leave.
FEATURE_ORDER = (10, 0, 1, 7, 4, 2, 8, 5, 3, 9, 6)
#: Places for items between this stage and the next.
ITEMS = 16


class ItemKind(enum.Enum, shape=2):
    """What :data:`ItemLayout` carries."""

    VARIANCE = 0  # a = sum, b = sum of squares, size_log2, shift
    RATIO = 1  # a = max(0, maximum), b = max(0, -minimum)
    RHYTHM = 2  # a = RR interval, b = index of the beat


#: One feature on its way to its logarithm. ``last`` marks the last one of a beat.
ItemLayout = data.StructLayout(
    {
        "kind": ItemKind,
        "last": unsigned(1),
        "size_log2": unsigned(3),
        "shift": unsigned(4),
        "a": signed(23),
        "b": unsigned(38),
    }
)


class SampleReader(wiring.Component):
    """Reads the samples of a beat's window twice: for their mean, then less their mean.

    =============  ===  =======================================================================
    ``beat``       In   stream of :func:`~.detect.BeatLayout`; taken when all is read
    ``addr``       Out  pair of samples wanted from the block's RAM (samples 2 addr, 2 addr + 1)
    ``pair``       In   that pair, one cycle later: even sample in bits 15..0
    ``current``    Out  the beat that was taken last
    ``go``         In   the values may come
    ``value``      Out  a sample less the mean, saturated: signed 12; no back-pressure
    ``valid``      Out  ``value`` is there; 64 in succession
    ``last``       Out  it is the beat's last
    =============  ===  =======================================================================

    Parameters: ``width``, bits of an index. Cycles: 68 from the transfer on ``beat`` until it waits
    for ``go``; 68 from there to ``last``, when it takes the next. Reset: idle.
    """

    def __init__(self, width):
        self.width = width
        super().__init__(
            {
                "beat": In(stream.Signature(BeatLayout(width))),
                "addr": Out(width + 1),
                "pair": In(32),
                "current": Out(BeatLayout(width)),
                "go": In(1),
                "value": Out(signed(12)),
                "valid": Out(1),
                "last": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        flags = data.StructLayout({"valid": 1, "last": 1, "second": 1, "odd": 1})
        stage = [Signal(flags, name=f"flags{i}") for i in range(4)]
        place = Signal(range(model.WINDOW))
        reading, second = Signal(), Signal()
        last = reading & (place == model.WINDOW - 1)
        m.d.comb += self.addr.eq((self.current.index << 1) - model.WINDOW // 4 + place[1:])
        with m.FSM(name="window"):
            with m.State("IDLE"):
                m.d.comb += self.beat.ready.eq(1)
                m.d.sync += [self.current.eq(self.beat.payload), second.eq(0)]
                with m.If(self.beat.valid):
                    m.next = "MEAN"
            with m.State("MEAN"):
                m.d.comb += reading.eq(1)
                with m.If(last):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.d.sync += second.eq(1)
                with m.If(self.go):
                    m.next = "VALUES"
            with m.State("VALUES"):
                m.d.comb += reading.eq(1)
                with m.If(last):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                # The mean is needed as long as there are values.
                with m.If(~stage[2].valid):
                    m.next = "IDLE"
        with m.If(reading):
            m.d.sync += place.eq(place + 1)

        # Stages: the RAM's read latch, one of the pair, the difference, the saturated value. The
        # mean is complete three cycles after the last sample was asked for; the first value
        # comes to the difference later than that.
        m.d.comb += [
            stage[0].valid.eq(reading),
            stage[0].last.eq(last),
            stage[0].second.eq(second),
            stage[0].odd.eq(place[0]),
        ]
        m.d.sync += [after.eq(before) for before, after in zip(stage, stage[1:], strict=False)]
        sample = Signal(signed(16))
        total = Signal(signed(22))
        m.d.sync += sample.eq(self.pair.word_select(stage[1].odd, 16))
        with m.If(self.beat.ready):
            m.d.sync += total.eq(0)
        with m.Elif(stage[2].valid & ~stage[2].second):
            m.d.sync += total.eq(total + sample)
        difference = Signal(signed(17))
        top = difference[11:]
        over = top.any() & ~top.all()  # does not fit 12 bits
        m.d.sync += [
            difference.eq(sample - (total >> 6)),
            self.value.eq(Cat(Mux(over, (~top[-1]).replicate(11), difference[:11]), top[-1])),
            self.valid.eq(stage[3].valid & stage[3].second),
            self.last.eq(stage[3].last),
        ]
        return m


class WindowStage(wiring.Component):
    """Takes beats, reads their windows, and emits what the features are made of.

    ============  ===  ========================================================================
    ``beat``      In   stream of :func:`~.detect.BeatLayout`
    ``addr``      Out  pair of samples wanted from the block's RAM (samples 2 addr, 2 addr + 1)
    ``pair``      In   that pair, one cycle later: even sample in bits 15..0
    ``item``      Out  stream of :data:`ItemLayout`, in :data:`FEATURE_ORDER`, the last one marked
    ============  ===  ========================================================================

    Parameters: ``max_samples``, of a block.

    Cycles: at most 330 a beat (81 for window and transform, 224 and 14 for the autocorrelations);
    the mean of the next window is found meanwhile. ``beat`` is ready when nothing is to be read for
    the beat before. Back-pressure on ``item`` is taken up by a FIFO; the work on a window begins
    only when there is room for its items. Reset: idle.
    """

    def __init__(self, max_samples=model.MAX_SAMPLES):
        self.index_width = index_width(max_samples)
        super().__init__(
            {
                "beat": In(stream.Signature(BeatLayout(self.index_width))),
                "addr": Out(self.index_width + 1),
                "pair": In(32),
                "item": Out(stream.Signature(ItemLayout)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.items = items = StreamFifo(ItemLayout, ITEMS)
        m.submodules.reader = reader = SampleReader(self.index_width)
        m.submodules.correlator = correlator = Correlator()
        m.submodules.band_sums = band_sums = BandSums()
        m.submodules.sums = sums = ScaledSums()
        wiring.connect(m, wiring.flipped(self.item), items.o)
        wiring.connect(m, wiring.flipped(self.beat), reader.beat)
        m.d.comb += [self.addr.eq(reader.addr), reader.pair.eq(self.pair)]
        place, value, valid, stored = self._transform(m, reader)
        self._ram(m, correlator, place, value, valid)
        for name in ("x", "x_valid", "r", "r_valid", "r_first"):
            target = band_sums if name.startswith("x") else sums
            m.d.comb += getattr(target, name).eq(getattr(correlator, name))
        m.d.comb += [sums.r_last.eq(correlator.r_last), sums.value.eq(reader.value)]
        m.d.comb += sums.value_valid.eq(reader.valid)

        first = correlator.r_valid & correlator.r_first
        ratio, window = Signal(), Signal()
        band = Signal(range(len(BANDS)))
        rhythm = Signal()
        m.d.sync += ratio.eq(first)
        m.d.comb += [
            band_sums.clear.eq(ratio),
            sums.clear.eq(window | sums.done),
            correlator.start.eq(window),
            items.i.valid.eq(rhythm | window | first | ratio | sums.done),
        ]
        with m.If(window):
            m.d.sync += band.eq(0)
        with m.Elif(sums.done):
            m.d.sync += band.eq(band + 1)
        with m.FSM(name="stage"):
            with m.State("IDLE"):
                m.d.comb += [
                    reader.go.eq(items.level <= ITEMS - model.FEATURES),
                    rhythm.eq(reader.valid),
                ]
                with m.If(reader.valid):
                    m.next = "VALUES"
            with m.State("VALUES"):
                with m.If(stored):
                    m.next = "WINDOW"
            with m.State("WINDOW"):
                m.d.comb += window.eq(1)
                m.next = "BANDS"
            with m.State("BANDS"):
                with m.If(sums.done & (band == len(BANDS) - 1)):
                    m.next = "IDLE"
        self._item(m, items.i.payload, rhythm, first, ratio, reader, band, correlator)
        return m

    def _item(self, m, item, rhythm, first, ratio, reader, band, correlator):
        """The item for what is at hand: of the window or an autocorrelation if nothing else is."""
        sums, band_sums = m.submodules.sums, m.submodules.band_sums
        m.d.comb += [
            item.kind.eq(ItemKind.VARIANCE),
            item.last.eq(sums.done & (band == len(BANDS) - 1)),
            item.size_log2.eq(Mux(band == 0, BANDS[0][2], BANDS[1][2])),
            item.a.eq(sums.total),
            item.b.eq(sums.squares),
        ]
        with m.If(sums.done):
            m.d.comb += item.shift.eq(sums.shift)
        with m.If(rhythm):
            m.d.comb += [
                item.kind.eq(ItemKind.RHYTHM),
                item.a.eq(reader.current.rr),
                item.b.eq(reader.current.index),
            ]
        with m.If(correlator.start):
            m.d.comb += item.size_log2.eq(model.WINDOW.bit_length() - 1)
        with m.If(first):
            m.d.comb += [item.a.eq(band_sums.total), item.b.eq(correlator.r)]
        with m.If(ratio):
            m.d.comb += [
                item.kind.eq(ItemKind.RATIO),
                item.a.eq(band_sums.most),
                item.b.eq(-band_sums.least),
            ]

    def _transform(self, m, reader):
        """The transform's coefficients one at a time: ``(place, value, valid)``."""
        m.submodules.dwt = dwt = TwoLevelDwt(12, gap=2)
        even, odd = Signal(signed(12)), Signal()
        with m.If(reader.valid):
            m.d.sync += [even.eq(reader.value), odd.eq(~odd)]
        m.d.comb += [
            dwt.i_valid.eq(reader.valid & odd),
            dwt.i_last.eq(reader.last),
            dwt.i_even.eq(even),
            dwt.i_odd.eq(reader.value),
        ]
        # D1 comes every other cycle; in between there is time for what comes every fourth.
        d2, a2 = Signal(signed(VALUE_WIDTH)), Signal(signed(VALUE_WIDTH))
        d2_waits, a2_waits = Signal(), Signal()
        place1, place2 = Signal(5), Signal(4)
        place, value = Signal(6), Signal(signed(VALUE_WIDTH))
        m.d.comb += [place.eq(place1), value.eq(dwt.d1)]
        with m.If(dwt.valid1):
            m.d.sync += place1.eq(place1 + 1)
        with m.Elif(d2_waits):
            m.d.comb += [place.eq(BANDS[1][1] | place2), value.eq(d2)]
            m.d.sync += d2_waits.eq(0)
        with m.Else():
            m.d.comb += [place.eq(BANDS[2][1] | place2), value.eq(a2)]
            m.d.sync += [a2_waits.eq(0), place2.eq(place2 + a2_waits)]
        with m.If(dwt.valid2):
            m.d.sync += [d2.eq(dwt.d2), a2.eq(dwt.a2), d2_waits.eq(1), a2_waits.eq(1)]
        valid = dwt.valid1 | d2_waits | a2_waits
        stored = Signal(4)
        m.d.sync += stored.eq(Cat(dwt.valid2 & dwt.last2, stored))
        return place, value, valid, stored[-1]

    def _ram(self, m, correlator, place, value, valid):
        """The bands, in block RAM: as LUT RAM they and their multiplexers are large."""
        m.submodules.ram = ram = Memory(
            shape=signed(VALUE_WIDTH), depth=64, init=[], attrs=NO_COLLISIONS
        )
        ram.attrs["ram_style"] = "block"
        write, a, b = ram.write_port(), ram.read_port(), ram.read_port()
        m.d.comb += [
            write.addr.eq(place),
            write.data.eq(value),
            write.en.eq(valid),
            a.addr.eq(correlator.a_addr),
            b.addr.eq(correlator.b_addr),
            correlator.a_data.eq(a.data),
            correlator.b_data.eq(b.data),
        ]
