"""Inputs of the second preset: traces, template and intervals (steps 6 to 8)."""

from amaranth import Array, C, Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model, second
from ...buffers import NO_COLLISIONS
from .detect import BeatLayout
from .network import VectorLayout

__all__ = ["Logarithm", "TraceBuffer", "TraceStage"]

#: Beats of a block at most, a power of two.
LIST = model.MAX_BEATS
VALUES = second.BEFORE + second.AFTER
#: The later of the two beats of each interval, counted from the beat at hand.
LATER = (0, 1, -1, 2)


class TraceBuffer(wiring.Component):
    """Keeps the 64 values around a beat, and their average around several, less their means.

    ===========  ===  ==========================================================================
    ``add``      In   1 for one cycle while ``idle``: take the values around ``index``
    ``index``    In   of the beat; stable until ``idle``
    ``common``   In   0: for the trace; 1: for the template; stable until ``idle``
    ``first``    In   of the beats that are averaged; ``final``: the last; stable until ``idle``
    ``log2``     In   of their number; stable until ``idle``
    ``emit``     In   1 for one cycle while ``idle``: put out the trace or the template (``common``)
    ``last``     In   index of the block's last value
    ``addr``     Out  value of A2 wanted
    ``a2``       In   that value, one cycle later
    ``value``    Out  stream of signed 12
    ``idle``     Out  nothing is under way; all values were taken
    ===========  ===  ==========================================================================

    Parameters: ``width``, bits of an index. Cycles: 64 and 4 to add, 45 and 5 to emit if
    ``value`` is always taken. Reset: idle.
    """

    def __init__(self, width):
        self.width = width
        super().__init__(
            {
                "add": In(1),
                "index": In(width),
                "common": In(1),
                "first": In(1),
                "final": In(1),
                "log2": In(range(second.TEMPLATE_BEATS_LOG2 + 1)),
                "emit": In(1),
                "last": In(width),
                "addr": Out(width),
                "a2": In(signed(16)),
                "value": Out(stream.Signature(signed(12))),
                "idle": Out(1),
            }
        )

    # Both go through the same RAM, one half each. Stages when adding: the latches of both RAMs, the
    # sum, the sum's way back. Stages when emitting: latch, difference, saturated value.
    def elaborate(self, platform):
        m = Module()
        sum_width = 16 + second.TEMPLATE_BEATS_LOG2
        m.submodules.ram = ram = Memory(
            shape=signed(sum_width), depth=2 * VALUES, init=[], attrs=NO_COLLISIONS
        )
        read, write = ram.read_port(), ram.write_port()
        at, reading = Signal(range(VALUES)), Signal()
        adding = Signal()
        step = Signal()
        latched, summed = Signal(), Signal()
        means = [Signal(signed(16), name=f"mean{i}") for i in range(2)]
        with m.FSM(name="buffer"):
            with m.State("IDLE"):
                m.d.comb += self.idle.eq(1)
                m.d.sync += at.eq(0)
                with m.If(self.add):
                    m.next = "ADD"
                with m.If(self.emit):
                    m.next = "EMIT"
            with m.State("ADD"):
                m.d.comb += [reading.eq(1), adding.eq(1)]
                with m.If(at == VALUES - 1):
                    m.next = "DRAIN"
            with m.State("DRAIN"):
                m.d.comb += adding.eq(1)
                with m.If(~latched & ~summed):
                    m.next = "MEAN"
            with m.State("MEAN"):
                m.next = "IDLE"
            with m.State("EMIT"):
                m.d.comb += reading.eq(1)
                with m.If(step & (at == int(second.PLACES[-1]))):
                    m.next = "END"
            with m.State("END"):
                with m.If(~latched & ~summed & ~self.value.valid):
                    m.next = "IDLE"
        m.d.comb += step.eq(~self.value.valid | self.value.ready)
        # Away from the QRS complex every other value is put out.
        fine = (at >= second.FINE) & (at < second.FINE_END)
        with m.If(reading & step):
            m.d.sync += at.eq(at + Mux(adding | fine, 1, 2))
        with m.If(step):
            m.d.sync += [latched.eq(reading), summed.eq(latched)]

        place = Signal(signed(self.width + 2))
        m.d.comb += [
            place.eq(self.index + at - second.BEFORE),
            self.addr.eq(Mux(place > self.last, self.last, place)),
            read.addr.eq(Cat(at, self.common)),
            read.en.eq(step),
        ]
        with m.If(place < 0):
            m.d.comb += self.addr.eq(0)

        total, back = Signal(signed(22)), Signal(range(VALUES))
        result = Signal(signed(sum_width))
        scaled = Signal(signed(sum_width))
        mean = Mux(self.common, means[1], means[0])
        m.d.comb += [
            scaled.eq(Mux(self.final, result >> self.log2, result)),
            write.addr.eq(Cat(back, self.common)),
            write.data.eq(scaled),
            write.en.eq(summed & adding),
        ]
        with m.If(self.idle):
            m.d.sync += [back.eq(0), total.eq(0)]
        with m.Elif(write.en):
            m.d.sync += [back.eq(back + 1), total.eq(total + scaled)]
        with m.If(adding):
            m.d.sync += result.eq(Mux(self.first, 0, read.data) + self.a2)
        with m.Elif(step):
            m.d.sync += result.eq(read.data - mean)
        for i in range(2):
            with m.If(adding & (self.common == i)):
                m.d.sync += means[i].eq(total >> 6)

        top = result[11:]
        over = top.any() & ~top.all()  # does not fit 12 bits
        with m.If(step):
            m.d.sync += [
                self.value.valid.eq(summed & ~adding),
                self.value.payload.eq(
                    Cat(Mux(over, (~top[-1]).replicate(11), result[:11]), top[-1])
                ),
            ]
        return m


class Logarithm(wiring.Component):
    """Mitchell's logarithm of ``value``, from its ``load`` on when ``valid``; one place a cycle.

    ``width``: bits of ``value``, which is not 0. ``log``: unsigned 16.
    """

    def __init__(self, width):
        self.width = max(width, model.PLOG_FRACTION + 1)
        super().__init__({"load": In(1), "value": In(width), "log": Out(16), "valid": Out(1)})

    def elaborate(self, platform):
        m = Module()
        width = self.width
        value, exponent = Signal(width), Signal(range(width + 1))
        m.d.comb += [
            self.log.eq(Cat(value[width - 1 - model.PLOG_FRACTION : width - 1], exponent)),
            self.valid.eq(value[-1]),
        ]
        with m.If(self.load):
            m.d.sync += [value.eq(self.value), exponent.eq(width)]
        with m.Elif(~value[-1]):
            m.d.sync += [value.eq(value << 1), exponent.eq(exponent - 1)]
        return m


class TraceStage(wiring.Component):
    """Collects the beats of a block; then, for each that is to be reported, emits its inputs.

    ===========  ===  ==========================================================================
    ``beat``     In   stream of :func:`~.detect.BeatLayout`: all beats of a block, and its end
    ``last``     In   index of the block's last value of A2; stable until ``freed``
    ``addr``     Out  value of A2 wanted
    ``a2``       In   that value, one cycle later
    ``freed``    Out  1 for one cycle: the block is done with
    ``vector``   Out  stream of :func:`~.network.VectorLayout`: steps 6 to 8 of the data sheet
                      (:mod:`trebuchet.models.ecg.second`)
    ===========  ===  ==========================================================================

    Parameters: ``width``, bits of an index.

    Cycles: 70 for each of up to 16 beats and 60 a block, then 260 a beat if ``vector`` is always
    taken. Reset: idle.
    """

    def __init__(self, width):
        self.width = width
        super().__init__(
            {
                "beat": In(stream.Signature(BeatLayout(width))),
                "last": In(width),
                "addr": Out(width),
                "a2": In(signed(16)),
                "freed": Out(1),
                "vector": Out(stream.Signature(VectorLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = self.width
        m.submodules.buffer = buffer = TraceBuffer(width)
        m.submodules.logarithm = logarithm = Logarithm(width)
        m.submodules.beats = beats = Memory(
            shape=unsigned(width + 1), depth=LIST, init=[], attrs=NO_COLLISIONS
        )
        write, read = beats.write_port(), beats.read_port()
        count, number = Signal(range(LIST + 1)), Signal(range(LIST + 1))
        first, newest, index = (Signal(width, name=n) for n in ("first", "newest", "index"))
        at_place, inside = Signal(width), Signal()
        sending, final = Signal(), Signal()  # an interval; the last of them
        interval = Signal(signed(16))
        common, log2 = Signal(), Signal(range(second.TEMPLATE_BEATS_LOG2 + 1))
        out = self.vector
        m.d.comb += [
            write.addr.eq(count),
            write.data.eq(Cat(self.beat.payload.index, self.beat.payload.inside)),
            Cat(at_place, inside).eq(read.data),
            read.addr.eq(number),
            buffer.index.eq(index),
            buffer.common.eq(common),
            buffer.log2.eq(Mux(common, log2, 0)),
            buffer.first.eq(~common | (number == 0)),
            buffer.final.eq(~common | ((number + 1) == (1 << log2))),
            buffer.last.eq(self.last),
            self.addr.eq(buffer.addr),
            buffer.a2.eq(self.a2),
            buffer.value.ready.eq(out.ready),
            out.valid.eq(sending | buffer.value.valid),
            out.payload.value.eq(Mux(sending, interval, buffer.value.payload)),
            out.payload.last.eq(final),
            out.payload.index.eq(index),
        ]
        for i in range(1, second.TEMPLATE_BEATS_LOG2 + 1):
            with m.If(count[i:].any()):
                m.d.comb += log2.eq(i)
        mean_interval = Signal(signed(16))
        gap = Signal(range(len(LATER)))
        place, later = Signal(signed(8)), Signal(width)  # in the list, of the later beat; its index
        m.d.comb += place.eq(number + Array(C(offset, signed(3)) for offset in LATER)[gap])
        with m.FSM(name="trace"):
            with m.State("COLLECT"):
                m.d.comb += [
                    self.beat.ready.eq(1),
                    write.en.eq(self.beat.valid & ~self.beat.payload.end),
                    self.freed.eq(self.beat.valid & self.beat.payload.end & (count == 0)),
                ]
                m.d.sync += [number.eq(0), common.eq(1)]
                with m.If(write.en):
                    m.d.sync += [count.eq(count + 1), newest.eq(self.beat.payload.index)]
                    with m.If(count == 0):
                        m.d.sync += first.eq(self.beat.payload.index)
                with m.Elif(self.beat.valid & (count != 0)):
                    m.next = "LENGTH"
            self._mean_interval(m, logarithm, newest - first, count, mean_interval)
            with m.State("COMMON"):
                m.d.sync += index.eq(at_place)
                m.next = "ADD COMMON"
            with m.State("ADD COMMON"):
                m.d.comb += buffer.add.eq(1)
                m.next = "AVERAGE"
            with m.State("AVERAGE"):
                with m.If(buffer.idle):
                    m.d.sync += number.eq(number + 1)
                    m.next = "NEXT COMMON"
                    with m.If(buffer.final):
                        m.d.sync += number.eq(0)
                        m.next = "FETCH"
            with m.State("NEXT COMMON"):
                m.next = "COMMON"
            # One beat after the other.
            with m.State("FETCH"):
                m.d.sync += common.eq(0)
                m.next = "BEAT"
                with m.If(number == count):
                    m.d.comb += self.freed.eq(1)
                    m.d.sync += count.eq(0)
                    m.next = "COLLECT"
            with m.State("BEAT"):
                m.d.sync += index.eq(at_place)
                m.next = "ADD"
                with m.If(~inside):
                    m.d.sync += number.eq(number + 1)
                    m.next = "FETCH"
            with m.State("ADD"):
                m.d.comb += buffer.add.eq(1)
                m.next = "EMIT"
            with m.State("EMIT"):
                with m.If(buffer.idle):
                    m.d.comb += buffer.emit.eq(1)
                    m.next = "EMITTING"
            with m.State("EMITTING"):
                with m.If(buffer.idle):
                    m.d.sync += common.eq(1)
                    m.next = "EMIT"
                    with m.If(common):
                        m.next = "LATER"
            self._intervals(m, logarithm, read, gap, place, later, count, at_place)
            with m.State("GAP LOG"):
                m.d.comb += [sending.eq(logarithm.valid), interval.eq(logarithm.log)]
                with m.If(sending & out.ready):
                    m.d.sync += gap.eq(gap + 1)
                    m.next = "LATER"
                    with m.If(gap == len(LATER) - 1):
                        m.d.sync += gap.eq(0)
                        m.next = "MEAN"
            with m.State("MEAN"):
                m.d.comb += [sending.eq(1), interval.eq(mean_interval), final.eq(1)]
                with m.If(out.ready):
                    m.d.sync += number.eq(number + 1)
                    m.next = "FETCH"
        return m

    def _mean_interval(self, m, logarithm, length, count, mean_interval):
        """The states that find the mean interval of a block's beats."""
        with m.State("LENGTH"):
            m.d.comb += [logarithm.load.eq(1), logarithm.value.eq(length)]
            m.next = "LENGTH LOG"
            with m.If(count == 1):
                m.d.sync += mean_interval.eq(int(second.intervals([0])[0, -1]))
                m.next = "COMMON"
        with m.State("LENGTH LOG"):
            m.d.sync += mean_interval.eq(logarithm.log)
            with m.If(logarithm.valid):
                m.d.comb += [logarithm.load.eq(1), logarithm.value.eq(count - 1)]
                m.next = "COUNT LOG"
        with m.State("COUNT LOG"):
            with m.If(logarithm.valid):
                m.d.sync += mean_interval.eq(mean_interval - logarithm.log)
                m.next = "COMMON"

    def _intervals(self, m, logarithm, read, gap, place, later, count, at_place):
        """The states that find one of the four intervals around a beat, for its logarithm."""
        exists = (place > 0) & (place < count)
        apart = Signal(self.width)
        with m.State("LATER"):
            m.d.comb += read.addr.eq(place)
            m.next = "EARLIER"
        with m.State("EARLIER"):
            m.d.comb += read.addr.eq(place - 1)
            m.d.sync += later.eq(at_place)
            m.next = "GAP"
        with m.State("GAP"):
            m.d.comb += [
                logarithm.load.eq(1),
                logarithm.value.eq(second.GAP_MAX),
                apart.eq(later - at_place),
            ]
            with m.If(exists & (apart < second.GAP_MAX)):
                m.d.comb += logarithm.value.eq(apart)
            m.next = "GAP LOG"
