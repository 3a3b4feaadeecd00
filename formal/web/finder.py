"""Proof of ``HeadFinder`` in ``cores/web/finder.py``: where request heads end.

Two slots, rings of 16 bytes, bursts of two beats. The scan is left out: it finds an end wherever it
likes. Proved, of each job, whatever the other does: its bytes are asked for from its ring, taken
and scanned in their order, each once, from its position on to its length or to the end that is
found, the position never going back; each scan begins in the state that the last one left; what
goes to ``beat`` is what was scanned, and says how the head ends; one result for each job, with what
was found. Jobs are in one place at a time, so none is lost and none hangs as long as the memory
answers and its consumer has room; no burst leaves the ring.

Not proved: other sizes; that the memory answers; a reset while running.
"""

from amaranth.hdl import Assert, Assume, C, Cat, Cover, Elaboratable, Mux, Signal, Value

from ...cores.web.finder import End
from ...cores.web.scan import ScanState
from ..kit.inside import Inside, RegisterStreamFifo, patched
from ..kit.parts import hollow, moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


LOG2, BURST, SLOTS, N, SHIFT = 4, 2, 2, 4, 2
RING = 1 << LOG2


class _Job:
    """What is known of the job of a slot; positions and bytes as of the beats that were taken."""

    def __init__(self, slot):
        self.live = Signal(name=f"live{slot}")
        self.at = Signal(LOG2, name=f"at{slot}")  # ring position of the byte that is next
        self.left = Signal(LOG2 + 1, name=f"left{slot}")  # bytes that have not been taken
        self.base = Signal(32 - LOG2, name=f"base{slot}")
        self.state = Signal(ScanState, name=f"state{slot}")  # of the bytes that were scanned
        self.done = Signal(name=f"done{slot}")  # the end has been found
        self.parse, self.whole = Signal(name=f"parse{slot}"), Signal(name=f"whole{slot}")


def _beats(job, count):
    """Beats of a burst, less one."""
    return (job.position[:SHIFT] + count - 1) >> SHIFT


class HeadFinderProof(Elaboratable):
    def __init__(self, cores):
        fifo = lambda shape, depth, registered: RegisterStreamFifo(shape, depth)  # noqa: E731
        with patched(cores, StreamFifo=fifo):
            self.dut = cores.HeadFinder(8 * N, LOG2, SLOTS, BURST)
        hollow(self.dut.scan)

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        Inside(m, dut)
        job, mem = dut.job, dut.mem
        free(m, job.valid, job.payload, dut.room, dut.result.ready, mem.cmd.ready, mem.wdata.ready)
        free(m, mem.rdata.valid, mem.rdata.payload, mem.wdone.valid)
        free(m, dut.pending.fifo.shows, dut.flight.fifo.shows)
        stream_rules(m, job, Assume, "job")
        stream_rules(m, mem.rdata, Assume, "rdata")
        stream_rules(m, mem.cmd, Assert, "cmd")
        stream_rules(m, dut.result, Assert, "result")
        self.jobs = [_Job(s) for s in range(SLOTS)]
        self.queues = [
            self._cells(dut.pending, dut.job_layout),
            self._cells(dut.flight, dut.burst_layout),
        ]
        self._memory(m)
        for slot, ghost in enumerate(self.jobs):
            self._job(m, slot, ghost)
        self._places(m)
        m.d.comb += [
            Cover(moves(dut.result) & dut.result.payload.found & (dut.result.payload.slot == 1)),
            Cover(moves(dut.result) & ~dut.result.payload.found),
            Cover(dut.again),
        ]
        return m

    def _cells(self, queue, layout):
        fifo = queue.fifo
        return [(fifo.level > k, layout(cell)) for k, cell in enumerate(fifo.cells)]

    def _memory(self, m):
        """Bursts are asked for as they are noted in ``flight``, and come in that order."""
        dut, cmd, rdata = self.dut, self.dut.mem.cmd, self.dut.mem.rdata
        front = self.queues[1][0][1]
        owed, k = Signal(3, name="owed"), Signal(2, name="beats_taken")
        self.k = k
        takes = moves(rdata)
        beats = _beats(front.job, front.count)
        m.d.sync += owed.eq(owed + moves(cmd) - (takes & rdata.payload.last))
        with m.If(takes):
            m.d.sync += k.eq(Mux(rdata.payload.last, 0, k + 1))
        m.d.comb += [
            Assume(~rdata.valid | (owed != 0)),
            Assume(~rdata.valid | (rdata.payload.last == (k == beats))),
            Assert(dut.flight.fifo.level == owed + cmd.valid),
            Assert(~cmd.payload.write),
            Assert(dut.begun == (k != 0)),
            Assert(~dut.begun | (owed != 0) & (k <= beats)),
        ]
        for there, burst in self.queues[1]:
            fits = Signal(LOG2 + 1)
            to_ring, most = RING - burst.job.position, BURST * N - burst.job.position[:SHIFT]
            room = Mux(to_ring < most, to_ring, most)
            m.d.comb += fits.eq(Mux(burst.job.length < room, burst.job.length, room))
            m.d.comb += Assert(~there | (burst.count == fits) & (fits != 0))
        begins = moves(dut.flight.i) & dut.flight.i.payload.job.parse
        m.d.comb += Assert(~begins | dut.room.bit_select(dut.flight.i.payload.job.slot, 1))
        for k_, (_, burst) in enumerate(self.queues[1]):
            with m.If(cmd.valid & (dut.flight.fifo.level == k_ + 1)):
                job = burst.job
                m.d.comb += [
                    Assert(cmd.payload.addr == Cat(C(0, SHIFT), job.position[SHIFT:], job.base)),
                    Assert(cmd.payload.beats == _beats(job, burst.count)),
                    Assert((job.position + burst.count)[: LOG2 + 1] <= RING),
                ]

    def _job(self, m, slot, ghost):
        dut, scan, taken = self.dut, self.dut.scan, self.dut.taken
        job, result, beat = dut.job.payload, dut.result, dut.beat
        mine = job.slot == slot
        front = self.queues[1][0][1]
        skip = Mux(dut.begun, 0, front.job.position[:SHIFT])
        before = Mux(dut.begun, dut.left, front.count)
        count = Mux(before < N - skip, before, N - skip)
        takes = moves(dut.mem.rdata) & (front.job.slot == slot)
        scans = dut.waits & dut.step & (taken.job.slot == slot)
        live = scans & ~ghost.done
        m.d.comb += [
            Assume(~dut.job.valid | ~mine | ~ghost.live),
            Assume(~dut.job.valid | (job.length != 0) & (job.length <= RING)),
            Assume(scan.found | (scan.end == scan.stop)),
            Assume(~scan.found | (scan.end > scan.skip) & (scan.end <= scan.stop)),
        ]
        with m.If(takes):
            m.d.sync += [ghost.at.eq(ghost.at + count), ghost.left.eq(ghost.left - count)]
            # The beat has the next bytes of the job, and they are those that count.
            place = (front.job.position[SHIFT:] + self.k)[: LOG2 - SHIFT]
            m.d.comb += Assert(Cat(skip[:SHIFT], place) == ghost.at)
            m.d.comb += Assert((count != 0) & (count <= ghost.left))
        was = Signal(name=f"took{slot}")
        kept = Signal(2 + 3 + 8 * N)
        with m.If(dut.step):
            m.d.sync += was.eq(takes)
        with m.If(takes):
            m.d.sync += kept.eq(Cat(skip[:SHIFT], (skip + count)[:3], dut.mem.rdata.payload.data))
        with m.If(dut.waits & (taken.job.slot == slot)):
            m.d.comb += Assert(was & (Cat(scan.skip, scan.stop, scan.data) == kept))
            m.d.comb += Assert(ghost.live)
        with m.If(live):
            m.d.comb += Assert(Value.cast(scan.state) == Value.cast(ghost.state))
            m.d.sync += [ghost.state.eq(scan.after), ghost.done.eq(scan.found)]
        with m.If(moves(dut.job) & mine):
            m.d.sync += [
                ghost.live.eq(1),
                ghost.at.eq(job.position),
                ghost.left.eq(job.length),
                ghost.base.eq(job.base),
                ghost.state.eq(job.state),
                ghost.done.eq(0),
                ghost.parse.eq(job.parse),
                ghost.whole.eq(job.whole),
            ]
        with m.If(moves(result) & (result.payload.slot == slot)):
            m.d.sync += ghost.live.eq(0)
        with m.If(result.valid & (result.payload.slot == slot)):
            m.d.comb += [
                Assert(ghost.live & (result.payload.found == ghost.done)),
                Assert(ghost.done | (ghost.left == 0)),
                Assert(ghost.done | (Value.cast(result.payload.state) == Value.cast(ghost.state))),
                Assert(result.payload.parse == ghost.parse),
            ]
        # What goes to the consumer is what was scanned.
        said, goes = Signal(8 * N + 2 + 3 + 2), Signal(name=f"goes{slot}")
        over = taken.last & (ghost.left == 0)
        end = Mux(scan.found, End.HEAD, Mux(over, Mux(ghost.whole, End.LONG, End.CUT), End.MORE))
        m.d.sync += goes.eq(live & ghost.parse)
        with m.If(live):
            m.d.sync += said.eq(Cat(scan.data, scan.skip, scan.end, end[:2]))
        told = dut.beat_valid & (beat.slot == slot)
        m.d.comb += Assert(told == goes)
        whole_beat = Cat(beat.data, beat.skip, beat.stop, Value.cast(beat.end))
        m.d.comb += Assert(~told | (whole_beat == said))

    def _same(self, ghost, job):
        return (job.base == ghost.base) & (job.parse == ghost.parse) & (job.whole == ghost.whole)

    def _places(self, m):
        """A job is in one place: it waits, is in flight, is scanned to its burst's end, or over."""
        dut, taken, result = self.dut, self.dut.taken, self.dut.result
        (pending, flight) = self.queues
        front = flight[0][1]
        for slot, ghost in enumerate(self.jobs):
            waits = sum((there & (job.slot == slot) for there, job in pending), C(0, 3))
            flies = sum((there & (b.job.slot == slot) for there, b in flight), C(0, 3))
            tail = dut.waits & taken.last & (taken.job.slot == slot)
            ended = result.valid & (result.payload.slot == slot)
            m.d.comb += Assert(waits + flies + tail + ended == ghost.live)
            m.d.comb += Assert(ghost.left <= RING)
            for there, job in pending:
                same = (job.position == ghost.at) & (job.length == ghost.left)
                same &= (Value.cast(job.state) == Value.cast(ghost.state)) & ~ghost.done
                same &= self._same(ghost, job) & (job.length != 0) & (job.length <= RING)
                m.d.comb += Assert(~(there & (job.slot == slot)) | same)
            for k, (there, burst) in enumerate(flight):
                mine = there & (burst.job.slot == slot)
                fresh = mine & ~dut.begun if k == 0 else mine
                job = burst.job
                same = (job.position == ghost.at) & (job.length == ghost.left) & ~ghost.done
                same &= Value.cast(job.state) == Value.cast(ghost.state)
                m.d.comb += Assert(~fresh | same)
                m.d.comb += Assert(~mine | self._same(ghost, job) & (job.length <= RING))
            begun = dut.begun & (front.job.slot == slot)
            past = front.count - dut.left
            m.d.comb += [
                Assert(~begun | (dut.left != 0) & (dut.left < front.count)),
                Assert(~begun | ((front.job.position + past)[:LOG2] == ghost.at)),
                Assert(~begun | (front.job.length == ghost.left + past)),
                Assert(~begun | ((front.job.position[:SHIFT] + past) == (self.k << SHIFT))),
            ]
            scanning = begun & ~dut.waits | dut.waits & ~taken.first & (taken.job.slot == slot)
            first = dut.waits & taken.first & (taken.job.slot == slot)
            state = Value.cast(ghost.state)
            m.d.comb += [
                Assert(~scanning | (dut.done == ghost.done)),
                Assert(~scanning | ghost.done | (Value.cast(dut.state) == state)),
                Assert(~first | ~ghost.done & (Value.cast(taken.job.state) == state)),
                Assert(~tail | (taken.job.position == ghost.at) & (taken.job.length == ghost.left)),
                Assert(~(dut.waits & (taken.job.slot == slot)) | self._same(ghost, taken.job)),
            ]
            carried = dut.waits & ~taken.last & (taken.job.slot == slot)
            m.d.comb += Assert(~carried | begun)
        m.d.comb += [
            Assert(dut.pending.fifo.level <= 3),
            Assert(dut.flight.fifo.level <= 2),
            Assert(~(dut.waits & ~taken.last) | dut.begun),
            Assert(~dut.begun | ~dut.waits | (front.job.slot == taken.job.slot) & ~taken.last),
            Assert(~(dut.waits & taken.last) | ~dut.begun | 1),
        ]


PROOFS = (
    Proof(
        name="web_finder",
        core="cores.web.finder.HeadFinder(32, rings of 16 bytes, 2 slots, 2 beats), scan hollow",
        says="each byte of a job is asked for, scanned and handed on once, in order, up to the end "
        "that is found; one result a job, none lost; no burst leaves the ring",
        module="trebuchet.cores.web.finder",
        build=HeadFinderProof,
        depth=1,
        cover_depth=16,
        mutants=(
            Mutant("leaves_the_ring", "Mux(last_span & (to_ring < most), to_ring, most)", "most"),
            Mutant("forgets_the_state", "self.scan.after", "self.taken.job.state", within="_issue"),
            Mutant("looks_behind_the_end", "live.eq(taken.first | ~self.done)", "live.eq(1)"),
            Mutant("looks_beyond", "Mux(left >= n - skip, n, skip + left)", "n"),
            Mutant(
                "loses_a_job",
                "pending.i.ready & ~self.again & ~rotates",
                "pending.i.ready & ~rotates",
            ),
            Mutant("forgets_what_is_long", "Mux(taken.job.whole, End.LONG, End.CUT)", "End.CUT"),
            Mutant("has_no_room", "~job.parse | self.room.bit_select(job.slot, 1)", "1", 6),
        ),
        assumes="one job a slot; read data as asked for; the scan finds an end among its bytes",
        not_proved="other sizes; that the memory answers; a reset while running",
    ),
)
