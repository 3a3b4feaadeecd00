"""R peak detection on D2 of a block (steps 2 to 5 of the data sheet)."""

from amaranth import C, Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...buffers import NO_COLLISIONS, StreamFifo

__all__ = ["BeatLayout", "Detector", "index_width"]

#: Of a score: eight magnitudes of at most 65,535.
SCORE_WIDTH = 19
MAGNITUDE_WIDTH = 16
#: Places for beats between detection and what follows; detection waits when they are taken.
BEATS = 16


def index_width(max_samples):
    """Bits of the index of a crossing, and of the number of D2 values of a block."""
    return (max_samples // 4).bit_length()


def BeatLayout(width):
    """A beat, or the end of a block.

    ``index`` of the crossing (R = 4 index; ``width`` bits) and the RR interval in samples;
    ``inside``: it is to be reported. Or ``end``: the block has no more beats, the rest means
    nothing.
    """
    return data.StructLayout(
        {"index": unsigned(width), "rr": unsigned(9), "inside": unsigned(1), "end": unsigned(1)}
    )


class Detector(wiring.Component):
    """From D2 of one block to its beats.

    =============  ===  ==========================================================================
    ``i_valid``    In   a value of D2 is there
    ``i_last``     In   it is the block's last
    ``i_d2``       In   signed 17
    ``low``        In   beats are reported from this index on; stable until ``done``
    ``high``       In   beats are reported below this index; stable until ``done``
    ``clear``      In   1 for one cycle: forget the block; before the first value of the next
    ``beat``       Out  stream of :func:`BeatLayout`: the reported beats, in order, then the end
    ``found``      Out  beats put on ``beat`` so far that are to be reported
    ``done``       Out  all beats of the block were found (``found`` is final)
    =============  ===  ==========================================================================

    Parameters: ``max_samples``, of a block, 64 or more; ``report_all``: accepted beats that are not
    to be reported come, too, with ``inside`` 0.

    Throughput: a value every other cycle. Latency: from the last value 3 cycles, the signal level
    at most 90 cycles (of 4,096 samples), then 3 cycles for each crossing above the least score,
    and 4 for the end.
    ``i_*`` has no back-pressure; when ``beat`` is not taken the second pass waits. Reset: as after
    ``clear``.
    """

    def __init__(self, max_samples=model.MAX_SAMPLES, report_all=False):
        if not isinstance(max_samples, int) or max_samples < model.MIN_SAMPLES:
            raise ValueError(f"Samples of a block must be at least 64, not {max_samples!r}")
        self.max_samples, self.report_all = max_samples, report_all
        self.index_width = index_width(max_samples)
        self.max_runs = max(1, max_samples // 4 >> model.RUN_LOG2)
        super().__init__(
            {
                "i_valid": In(1),
                "i_last": In(1),
                "i_d2": In(signed(17)),
                "low": In(self.index_width),
                "high": In(self.index_width),
                "clear": In(1),
                "beat": Out(stream.Signature(BeatLayout(self.index_width))),
                "found": Out(range(model.MAX_BEATS + 1)),
                "done": Out(1),
            }
        )

    # First pass: a running sum over eight magnitudes gives the score; crossings worth a second
    # look go to a RAM, the largest score of each run of 128 to `largest`. Leaving out
    # the crossings below MIN_SCORE changes nothing: all they could do is accept a
    # candidate that the next crossing, or the end, accepts as well.
    def elaborate(self, platform):
        m = Module()
        entry = data.StructLayout({"index": self.index_width, "score": SCORE_WIDTH})
        depth = self.max_samples // 4
        m.submodules.ram = ram = Memory(shape=entry, depth=depth, init=[], attrs=NO_COLLISIONS)
        layout = self.beat.payload.shape()
        m.submodules.fifo = self._fifo = StreamFifo(layout, BEATS)
        wiring.connect(m, wiring.flipped(self.beat), self._fifo.o)
        m.submodules.largest = self._largest = Memory(
            shape=SCORE_WIDTH, depth=1 << (self.max_runs - 1).bit_length(), init=[]
        )
        self._runs = Signal(range(self.max_runs + 1))
        self._entries = Signal(range(depth))
        self._level = Signal(SCORE_WIDTH)
        self._start_level, self._start_pass = Signal(), Signal()

        self._collect(m, ram)
        self._rank(m)
        self._select(m, ram)
        with m.If(self.clear):
            m.d.sync += [self.done.eq(0), self.found.eq(0)]
        return m

    def _collect(self, m, ram):
        """First pass: scores, crossings, run maxima."""
        magnitude, step, positive = Signal(MAGNITUDE_WIDTH), Signal(), Signal()
        pads = Signal(2)
        ending = Signal()
        step_last = Signal()
        m.d.sync += [
            step.eq(self.i_valid | (pads != 0)),
            step_last.eq(pads == 1),
            positive.eq(self.i_d2 >= 0),
            magnitude.eq(Mux(self.i_valid, Mux(self.i_d2 < 0, -self.i_d2, self.i_d2), 0)),
        ]
        with m.If(self.i_valid & self.i_last):
            m.d.sync += pads.eq(model.SCORE_HALF - 1)
        with m.Elif(pads != 0):
            m.d.sync += pads.eq(pads - 1)

        depth = 2 * model.SCORE_HALF
        history = [Signal(MAGNITUDE_WIDTH, name=f"history{i}") for i in range(depth)]
        signs = Signal(model.SCORE_HALF + 1)
        score = Signal(SCORE_WIDTH)
        index = Signal(
            signed(self.index_width + 2), init=-model.SCORE_HALF
        )  # of the value that `score` belongs to
        check = Signal()
        m.d.sync += [check.eq(step), ending.eq(step & step_last)]
        with m.If(step):
            m.d.sync += [
                score.eq(score + magnitude - history[-1]),
                Cat(history).eq(Cat(magnitude, history)),
                signs.eq(Cat(positive, signs)),
                index.eq(index + 1),
            ]

        crossing, best = Signal(), Signal(SCORE_WIDTH)
        running = Signal(SCORE_WIDTH)  # the largest score of the run so far
        newest = signs[model.SCORE_HALF - 1]
        m.d.comb += [
            crossing.eq((index > 0) & (newest != signs[model.SCORE_HALF])),
            best.eq(Mux(crossing & (score > running), score, running)),
        ]
        port = ram.write_port()
        m.d.comb += [
            port.addr.eq(self._entries),
            port.data.index.eq(index[: self.index_width]),
            port.data.score.eq(score),
            port.en.eq(check & crossing & (score > model.MIN_SCORE)),
        ]
        largest = self._largest.write_port()
        m.d.comb += [largest.addr.eq(self._runs), largest.data.eq(best)]
        m.d.sync += self._start_level.eq(ending)
        with m.If(check):
            m.d.sync += [self._entries.eq(self._entries + port.en), running.eq(best)]
            run_end = (index >= 0) & (index[: model.RUN_LOG2] == (1 << model.RUN_LOG2) - 1)
            with m.If(run_end | (ending & (self._runs == 0))):
                m.d.comb += largest.en.eq(1)
                m.d.sync += [self._runs.eq(self._runs + 1), running.eq(0)]
        with m.If(self.clear):
            m.d.sync += [h.eq(0) for h in history]
            m.d.sync += [score.eq(0), running.eq(0), self._runs.eq(0), self._entries.eq(0)]
            m.d.sync += index.eq(-model.SCORE_HALF)

    def _rank(self, m):
        """The lower median: the value that (runs - 1) >> 1 others come before."""
        i, j, rank = Signal.like(self._runs), Signal.like(self._runs), Signal.like(self._runs)
        value, other, before = Signal(SCORE_WIDTH), Signal(SCORE_WIDTH), Signal()
        largest = self._largest.read_port(domain="comb")
        m.d.sync += self._start_pass.eq(0)
        m.d.comb += largest.addr.eq(j)
        with m.FSM(name="rank"):
            with m.State("IDLE"):
                m.d.sync += i.eq(0)
                with m.If(self._start_level):
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.d.comb += largest.addr.eq(i)
                m.d.sync += [value.eq(largest.data), j.eq(0), rank.eq(0)]
                m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += [other.eq(largest.data), before.eq(j < i), j.eq(j + 1)]
                m.next = "COMPARE"
                with m.If(j == self._runs):
                    m.next = "DECIDE"
            with m.State("COMPARE"):
                # other < value, or equal and before it
                m.d.sync += rank.eq(rank + (Cat(C(0, 1), other) < Cat(before, value)))
                m.next = "FETCH"
            with m.State("DECIDE"):
                m.d.sync += i.eq(i + 1)
                m.next = "LOAD"
                with m.If(rank == (self._runs - 1)[: len(rank)] >> 1):
                    m.d.sync += [self._level.eq(value), self._start_pass.eq(1)]
                    m.next = "IDLE"

    def _select(self, m, ram):
        """Second pass: three cycles a crossing (fetch, accept the candidate, take the new one)."""
        port = ram.read_port()
        at = Signal.like(self._entries)
        crossing = Signal(port.data.shape())
        candidate, last = Signal(port.data.shape()), Signal(port.data.shape())
        has_candidate, has_last = Signal(), Signal()
        above, accept, end = Signal(), Signal(), Signal()
        room = self._fifo.i.ready
        m.d.comb += port.addr.eq(at)
        with m.FSM(name="select"):
            with m.State("IDLE"):
                m.d.sync += [at.eq(0), has_candidate.eq(0), has_last.eq(0)]
                with m.If(self._start_pass):
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += crossing.eq(port.data)
                with m.If(room):
                    m.d.sync += at.eq(at + 1)
                    m.next = "ACCEPT"
                    with m.If(at == self._entries):
                        m.next = "END"
            with m.State("ACCEPT"):
                apart = crossing.index - candidate.index
                m.d.comb += accept.eq(has_candidate & (apart > model.REFRACTORY))
                m.d.sync += above.eq(_exceeds(crossing.score, model.THRESHOLD, self._level))
                m.next = "TAKE"
            with m.State("TAKE"):
                far = (crossing.index - last.index) > model.T_WAVE
                strong = _exceeds(crossing.score, model.T_THRESHOLD, last.score)
                more = crossing.score > candidate.score
                with m.If(above & (~has_last | far | strong) & (~has_candidate | more)):
                    m.d.sync += [candidate.eq(crossing), has_candidate.eq(1)]
                m.next = "FETCH"
            with m.State("END"):
                m.d.comb += accept.eq(has_candidate)
                m.next = "REPORT"
            with m.State("REPORT"):  # a beat of the last cycle goes first
                m.next = "FINISH"
            with m.State("FINISH"):
                m.d.comb += end.eq(1)
                with m.If(room):
                    m.d.sync += self.done.eq(1)
                    m.next = "IDLE"
        with m.If(accept):
            m.d.sync += [last.eq(candidate), has_last.eq(1), has_candidate.eq(0)]
        self._report(m, accept, end, candidate, last, has_last)

    def _report(self, m, accept, end, candidate, last, has_last):
        """Hand an accepted beat on if it is to be reported, and the block's end.

        A cycle later: with the FIFO's level behind the subtraction that accepts a beat it was the
        longest way of a 25F, 17.5 ns. There is room then, too: whoever looks for it next does so
        two cycles after a beat.
        """
        apart = Signal(self.index_width)
        inside = Signal()
        fifo = self._fifo.i
        m.d.comb += [
            apart.eq(candidate.index - last.index),
            inside.eq((candidate.index >= self.low) & (candidate.index < self.high)),
        ]
        m.d.sync += [
            fifo.valid.eq((accept & (inside | self.report_all)) | (end & fifo.ready)),
            fifo.payload.inside.eq(inside),
            fifo.payload.index.eq(candidate.index),
            fifo.payload.rr.eq(
                Mux(has_last & (apart < (model.RR_MAX + 1) // 4), apart << 2, model.RR_MAX)
            ),
            fifo.payload.end.eq(end),
        ]
        with m.If(accept & inside):
            m.d.sync += self.found.eq(self.found + 1)


def _exceeds(score, factor, other):
    """``16 score > factor other``, without the factors of two that both sides share."""
    shift = 4
    while shift and factor % 2 == 0:
        shift, factor = shift - 1, factor // 2
    # As sums, so that no tool spends a multiplier on it.
    return (score << shift) > sum(other << i for i in range(factor.bit_length()) if factor >> i & 1)
