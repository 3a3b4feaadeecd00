"""R peak detection on D2 of a block (steps 2 to 5 of the data sheet)."""

from amaranth import Cat, Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ....models.ecg import model
from ...buffers import StreamFifo

__all__ = ["BeatLayout", "Detector"]

SCORE_WIDTH = 20
INDEX_WIDTH = 10
MAX_RUNS = 8

#: A beat to classify: ``index`` of the crossing (R = 4 index) and the RR interval in samples.
BeatLayout = data.StructLayout({"index": unsigned(INDEX_WIDTH), "rr": unsigned(9)})


class Detector(wiring.Component):
    """From D2 of one block to its beats.

    =============  ===  ==========================================================================
    ``i_valid``    In   a value of D2 is there
    ``i_last``     In   it is the block's last
    ``i_d2``       In   signed 17
    ``samples``    In   samples in the block, stable while ``busy``
    ``clear``      In   1 for one cycle: forget the block; before the first value of the next
    ``beat``       Out  stream of :data:`BeatLayout`: the reported beats, in order
    ``found``      Out  beats put on ``beat`` so far
    ``done``       Out  all beats of the block were found (``found`` is final)
    =============  ===  ==========================================================================

    Throughput: a value every other cycle. Latency: from the last value 3 cycles, the signal level
    at most 90 cycles, then 3 cycles for each crossing above the least score. ``i_*`` has no
    back-pressure; ``beat`` is buffered for a whole block, so it may wait for ever. Reset: as
    after ``clear``.
    """

    def __init__(self):
        super().__init__(
            {
                "i_valid": In(1),
                "i_last": In(1),
                "i_d2": In(signed(17)),
                "samples": In(13),
                "clear": In(1),
                "beat": Out(stream.Signature(BeatLayout)),
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
        entry = data.StructLayout({"index": INDEX_WIDTH, "score": SCORE_WIDTH})
        m.submodules.ram = ram = Memory(shape=entry, depth=1 << INDEX_WIDTH, init=[])
        m.submodules.fifo = self._fifo = StreamFifo(BeatLayout, model.MAX_BEATS)
        wiring.connect(m, wiring.flipped(self.beat), self._fifo.o)
        m.submodules.largest = self._largest = Memory(shape=SCORE_WIDTH, depth=MAX_RUNS, init=[])
        self._runs = Signal(range(MAX_RUNS + 1))
        self._entries = Signal(INDEX_WIDTH)
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
        magnitude, step, positive = Signal(17), Signal(), Signal()
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
        history = [Signal(17, name=f"history{i}") for i in range(depth)]
        signs = Signal(model.SCORE_HALF + 1)
        score = Signal(SCORE_WIDTH)
        index = Signal(
            signed(INDEX_WIDTH + 2), init=-model.SCORE_HALF
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
            port.data.index.eq(index[:INDEX_WIDTH]),
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
        i, j, rank = Signal(3), Signal(range(MAX_RUNS + 1)), Signal(range(MAX_RUNS + 1))
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
                m.d.sync += rank.eq(rank + ((other < value) | ((other == value) & before)))
                m.next = "FETCH"
            with m.State("DECIDE"):
                m.d.sync += i.eq(i + 1)
                m.next = "LOAD"
                with m.If(rank == (self._runs - 1)[:4] >> 1):
                    m.d.sync += [self._level.eq(value), self._start_pass.eq(1)]
                    m.next = "IDLE"

    def _select(self, m, ram):
        """Second pass: three cycles a crossing (fetch, accept the candidate, take the new one)."""
        port = ram.read_port()
        at = Signal(INDEX_WIDTH)
        crossing = Signal(port.data.shape())
        candidate, last = Signal(port.data.shape()), Signal(port.data.shape())
        has_candidate, has_last = Signal(), Signal()
        threshold = Signal(SCORE_WIDTH + 3)
        above, accept = Signal(), Signal()
        m.d.comb += port.addr.eq(at)
        with m.FSM(name="select"):
            with m.State("IDLE"):
                m.d.sync += [at.eq(0), has_candidate.eq(0), has_last.eq(0)]
                with m.If(self._start_pass):
                    m.d.sync += threshold.eq(model.THRESHOLD * self._level)
                    m.next = "WAIT"
            with m.State("WAIT"):
                m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += [crossing.eq(port.data), at.eq(at + 1)]
                m.next = "ACCEPT"
                with m.If(at == self._entries):
                    m.next = "END"
            with m.State("ACCEPT"):
                apart = crossing.index - candidate.index
                m.d.comb += accept.eq(has_candidate & (apart > model.REFRACTORY))
                m.d.sync += above.eq((crossing.score << 4) > threshold)
                m.next = "TAKE"
            with m.State("TAKE"):
                far = (crossing.index - last.index) > model.T_WAVE
                strong = (crossing.score << 4) > model.T_THRESHOLD * last.score
                more = crossing.score > candidate.score
                with m.If(above & (~has_last | far | strong) & (~has_candidate | more)):
                    m.d.sync += [candidate.eq(crossing), has_candidate.eq(1)]
                m.next = "FETCH"
            with m.State("END"):
                m.d.comb += accept.eq(has_candidate)
                m.next = "FINISH"
            with m.State("FINISH"):
                m.d.sync += self.done.eq(1)
                m.next = "IDLE"
        with m.If(accept):
            m.d.sync += [last.eq(candidate), has_last.eq(1), has_candidate.eq(0)]
        self._report(m, accept, candidate, last, has_last)

    def _report(self, m, accept, candidate, last, has_last):
        """Hand an accepted beat on if its window lies inside the block."""
        half = model.WINDOW // 2 // 4
        apart = Signal(INDEX_WIDTH)
        inside = Signal()
        fifo = self._fifo.i
        m.d.comb += [
            apart.eq(candidate.index - last.index),
            inside.eq((candidate.index >= half) & (candidate.index <= self.samples[2:] - half)),
            fifo.valid.eq(accept & inside),
            fifo.payload.index.eq(candidate.index),
            fifo.payload.rr.eq(
                Mux(has_last & (apart < (model.RR_MAX + 1) // 4), apart << 2, model.RR_MAX)
            ),
        ]
        with m.If(fifo.valid):
            m.d.sync += self.found.eq(self.found + 1)
