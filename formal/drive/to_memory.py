"""Proof of ``DriveDma`` in ``cores/drive/to_memory.py``, with bursts of 2 and of 64 beats.

Contract, over public ports, for any drive that keeps :class:`~.rules.DriveRules` without those
about lengths, and any memory: each job is one command to the drive, as stated; completions come
in the order of the list, one a job. From the drive: beat *k* of the packet is written to
``addr + k * n``, once, with all strobes, and no other byte is written; bursts that the packet does
not fill are completed without strobes; ``done`` comes when memory has reported every burst. The
status is ``OK`` only if the drive said so, and exactly the right number of undamaged beats was
written. To the drive: beat *k* of the region is beat *k* of the packet, which has the job's
length; at most two bursts are asked for beyond what the drive took, and read data are taken at
once. A job that is invalid touches neither. A command to memory waits for nothing but its data,
a place in the FIFO, and seven bursts that memory has not reported.

The solver picks the beat that is followed. The FIFO is the real one.

Not proved: that drive and memory answer; other widths; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.drive.port import SECTOR, DriveStatus

from ..buffers import fifo_invariants
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated, state_is
from ..stream import Queue, free, new_harness, stream_rules
from .rules import DriveRules

__all__ = ["PROOFS"]

BITS = 25  # of a number of beats


class DriveDmaProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        self.n = dut.width // 8
        self._environment(m)
        self._job(m)
        self._reads(m)
        self._writes(m)
        self._invariants(m)
        self._covers(m)
        return m

    def _environment(self, m):
        dut, drive, mem = self.dut, self.dut.drive, self.dut.mem
        for stream in (dut.job, drive.rdata, drive.done, mem.rdata, mem.wdone):
            free(m, stream.valid, stream.payload)
        free(m, dut.done.ready, drive.cmd.ready, drive.wdata.ready, mem.cmd.ready, mem.wdata.ready)
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, dut.done, Assert, "done")
        stream_rules(m, drive.cmd, Assert, "drive_cmd")
        self.first = stream_rules(m, drive.wdata, Assert, "drive_wdata")
        stream_rules(m, mem.cmd, Assert, "mem_cmd")
        self.drive = DriveRules(m, drive, Assume, lax=True)
        # Memory answers what it was asked for: beats that are due, bursts whose data it has.
        self.due, self.written = Signal(BITS), Signal(BITS, name="written")
        m.d.comb += [
            Assume(~mem.rdata.valid | (self.due != 0)),
            Assume(~mem.wdone.valid | (self.written != 0)),
        ]
        asks = moves(mem.cmd) & ~mem.cmd.payload.write
        ends = moves(mem.wdata) & mem.wdata.payload.last
        m.d.sync += self.due.eq(self.due + Mux(asks, dut.burst, 0) - moves(mem.rdata))
        m.d.sync += self.written.eq(self.written + ends - moves(mem.wdone))

    def _job(self, m):
        dut, drive = self.dut, self.dut.drive
        self.job = job = Signal(dut.job.payload.shape(), name="held_job")
        self.busy, self.issued = Signal(name="job_busy"), Signal()
        self.total = Signal(BITS)
        self.invalid = Signal()
        m.d.comb += [
            self.total.eq(job.count * (SECTOR // self.n)),
            self.invalid.eq((job.count == 0) | (job.addr % self.n != 0)),
            Assert(~dut.job.ready | ~self.busy),
            Assert(~dut.done.valid | self.busy),
            Assert(~dut.done.valid | (dut.done.payload.tag == job.tag)),
        ]
        with m.If(drive.cmd.valid):
            m.d.comb += [Assert(self.busy & ~self.issued & ~self.invalid)]
            m.d.comb += [
                Assert(getattr(drive.cmd.payload, name) == getattr(job, name))
                for name in ("write", "lba", "count", "tag")
            ]
        with m.If(moves(drive.cmd)):
            m.d.sync += self.issued.eq(1)
        with m.If(moves(dut.job)):
            m.d.sync += [job.eq(dut.job.payload), self.busy.eq(1), self.issued.eq(0)]
        with m.If(moves(dut.done)):
            m.d.sync += self.busy.eq(0)
        # Commands to memory, beats of its write data and of the drive's packet, of this job.
        names = ("asked", "put", "sent", "got", "came")
        self.asked, self.put, self.sent, self.got, self.came = (
            Signal(BITS, name=name) for name in names
        )
        mem = dut.mem
        m.d.sync += [
            self.asked.eq(self.asked + Mux(moves(mem.cmd), dut.burst, 0)),
            self.put.eq(self.put + moves(mem.wdata)),
            self.sent.eq(self.sent + moves(drive.wdata)),
            self.got.eq(self.got + (moves(drive.rdata) & ~self.got.all())),  # a packet without end
            self.came.eq(self.came + moves(mem.rdata)),
        ]
        with m.If(moves(dut.job)):
            m.d.sync += [count.eq(0) for count in (self.asked, self.put, self.sent)]
            m.d.sync += [self.got.eq(0), self.came.eq(0)]
        with m.If(mem.cmd.valid):
            cmd = mem.cmd.payload
            m.d.comb += [
                Assert(self.busy & self.issued & (self.asked < self.total)),
                Assert(cmd.write == ~job.write),
                Assert(cmd.addr == (job.addr + self.asked * self.n)[:32]),
                Assert(cmd.beats == dut.burst - 1),
            ]
        self.reported = Signal(DriveStatus)
        with m.If(moves(drive.done)):
            m.d.sync += self.reported.eq(drive.done.payload.status)

    def _reads(self, m):
        """From the drive to memory."""
        dut, mem, rdata = self.dut, self.dut.mem, self.dut.drive.rdata
        beat, wdata = rdata.payload, mem.wdata.payload
        self.chosen, self.word = Signal(BITS, name="chosen_beat"), Signal(dut.width, name="word")
        self.good, self.stored = Signal(BITS), Signal(BITS)
        self.damaged = Signal()
        now = Signal(dut.width)
        sound = moves(rdata) & ~(beat.last & beat.error)
        m.d.comb += [
            self.chosen.eq(AnyConst(BITS)),
            now.eq(Mux(moves(rdata) & (self.got == self.chosen), beat.data, self.word)),
        ]
        with m.If(moves(rdata) & (self.got == self.chosen)):
            m.d.sync += self.word.eq(beat.data)
        strobed = moves(mem.wdata) & wdata.strb.any()
        m.d.sync += [
            self.good.eq(self.good + (sound & ~self.good.all())),
            self.stored.eq(self.stored + strobed),
        ]
        with m.If(moves(rdata) & beat.last & (beat.error | (beat.empty != 0))):
            m.d.sync += self.damaged.eq(1)
        with m.If(moves(dut.job)):
            m.d.sync += [self.good.eq(0), self.stored.eq(0), self.damaged.eq(0)]
        with m.If(mem.wdata.valid):
            m.d.comb += [
                Assert(self.busy & ~self.job.write & (self.put < self.asked)),
                Assert(wdata.last == ((self.put + 1) % dut.burst == 0)),
                Assert((wdata.strb == 0) | wdata.strb.all()),
                # What is not strobed comes after all that is.
                Assert((wdata.strb == 0) | (self.stored == self.put)),
            ]
        with m.If(strobed):
            m.d.comb += Assert(self.put < self.good + sound)
            with m.If(self.put == self.chosen):
                m.d.comb += Assert(wdata.data == now)
        stalled, held = Signal(), Signal(dut.width + self.n)
        payload = Mux(wdata.strb.any(), wdata.data, 0)
        m.d.sync += [stalled.eq(mem.wdata.valid & ~mem.wdata.ready)]
        m.d.sync += held.eq(payload | (wdata.strb.any() << dut.width))
        with m.If(stalled):
            m.d.comb += Assert(mem.wdata.valid)
            m.d.comb += Assert(held == (payload | (wdata.strb.any() << dut.width)))
        done = dut.done
        with m.If(done.valid & ~self.invalid):
            m.d.comb += [
                Assert((self.put == self.asked) | self.job.write),
                Assert(self.written == 0),
                Assert(self.issued),
            ]
        with m.If(done.valid & (done.payload.status == DriveStatus.OK)):
            m.d.comb += Assert(~self.invalid & (self.reported == DriveStatus.OK))
            with m.If(~self.job.write):
                m.d.comb += [
                    Assert((self.stored == self.total) & (self.good == self.total)),
                    Assert((self.got == self.total) & ~self.damaged),
                ]
        with m.If(done.valid & ~self.invalid & (self.reported != DriveStatus.OK)):
            m.d.comb += Assert(done.payload.status == self.reported)
        with m.If(done.valid & self.invalid):
            m.d.comb += Assert(done.payload.status == DriveStatus.INVALID)
            m.d.comb += Assert(~self.issued & (self.asked == 0))

    def _writes(self, m):
        """From memory to the drive."""
        dut, mem, wdata = self.dut, self.dut.mem, self.dut.drive.wdata
        self.queue = Queue(
            m,
            puts=moves(mem.rdata),
            put_word=mem.rdata.payload.data,
            gets=moves(wdata),
            get_valid=wdata.valid,
            get_word=wdata.payload.data,
            capacity=2 * dut.burst,
        )
        m.d.comb += [
            Assert(~mem.rdata.valid | mem.rdata.ready),
            Assert(mem.wdone.ready),
            Assert(self.due + self.queue.level <= 2 * dut.burst),
        ]
        with m.If(wdata.valid):
            m.d.comb += [
                Assert(self.busy & self.issued & self.job.write & (self.sent < self.total)),
                Assert(wdata.payload.last == (self.sent + 1 == self.total)),
                Assert(wdata.payload.empty == 0),
                Assert(~wdata.payload.error),
            ]
        with m.If(self.dut.done.valid & self.issued & self.job.write):
            m.d.comb += Assert((self.sent == self.total) & (self.came == self.total))

    def _invariants(self, m):
        dut, drive, job = self.dut, self.drive, self.job
        burst, total = dut.burst, self.total
        fifo_invariants(m, dut.fifo, self.queue)
        state = {n: state_is(dut.fsm, n) for n in ("IDLE", "ISSUE", "READ", "WRITE", "DONE")}
        moving = state["READ"] | state["WRITE"]
        shift = (burst - 1).bit_length()
        moved = Mux(job.write, self.sent, self.put)
        m.d.comb += [
            Assert(state["IDLE"] == ~self.busy),
            Assert(~moving | self.issued),
            Assert(~state["ISSUE"] | ~self.issued),
            Assert(drive.busy == moving),
            Assert(~moving | (drive.write == job.write)),
            Assert(~state["READ"] | ~job.write),
            Assert(~state["WRITE"] | job.write),
            Assert(~self.busy | (dut.held.write == job.write)),
            Assert(~self.busy | (dut.held.lba == job.lba)),
            Assert(~self.busy | (dut.held.count == job.count)),
            Assert(~self.busy | (dut.held.tag == job.tag)),
            Assert(~self.busy | (dut.held.addr == (job.addr + self.asked * self.n)[:32])),
            Assert(~self.busy | state["DONE"] | ~self.invalid),
            Assert(~self.busy | ((dut.to_ask << shift) + self.asked == total)),
            Assert(~self.busy | (self.asked <= total)),
            Assert(~self.busy | (self.asked[:shift] == 0)),
            Assert(~self.busy | ((dut.to_move << shift) + moved == total + dut.beat)),
            Assert(~self.busy | (moved <= total)),
            Assert(dut.beat == moved[:shift]),
            Assert(moving | (dut.beat == 0)),
            Assert(dut.reserved == self.due + self.queue.level),
            Assert(dut.begun == ~self.first),
            Assert(dut.begun == (state["WRITE"] & (self.sent != 0) & (self.sent != total))),
        ]
        self._of_reads(m, state, shift)
        self._of_writes(m, state)

    def _of_reads(self, m, state, shift):
        dut, drive, reading = self.dut, self.drive, state["READ"]
        ok = self.dut.done.valid & (self.dut.done.payload.status == DriveStatus.OK)
        m.d.comb += [
            Assert(~dut.open_ | reading),
            Assert(reading | (dut.owed == 0)),
            Assert(dut.owed == self.written + dut.open_),
            Assert(dut.owed <= dut.OUTSTANDING),
            Assert(~reading | (self.asked == (self.put >> shift << shift) + (dut.open_ << shift))),
            Assert(~dut.open_ | (self.put < self.asked)),
            Assert(~reading | dut.open_ | (dut.beat == 0)),
            Assert(~(self.busy & self.job.write) | ((self.put == 0) & (self.got == 0))),
            Assert(self.busy | ~dut.open_),
            Assert(~(self.busy & ~state["DONE"]) | (dut.ended == (drive.over & reading))),
            Assert(~state["ISSUE"] | ~(dut.ended | dut.failed)),
            Assert(~state["ISSUE"] | ((self.asked == 0) & (self.put == 0) & (self.got == 0))),
            Assert(~state["ISSUE"] | ((self.sent == 0) & (self.came == 0) & (self.good == 0))),
            Assert(~state["ISSUE"] | ((self.stored == 0) & ~self.damaged)),
            Assert(~dut.failed | dut.ended),
            Assert(~self.damaged | dut.failed | state["DONE"] | ~self.busy),
        ]
        with m.If(reading & ~dut.ended):
            m.d.comb += [
                Assert((self.got == self.put) | ((self.put == self.total) & ~dut.open_)),
                Assert((self.good == self.got) & (self.stored == self.put)),
                Assert(~self.damaged),
                Assert(self.put <= self.got),
            ]
        with m.If(reading & dut.ended):
            m.d.comb += Assert((self.stored <= self.put) & (self.stored <= self.good))
            with m.If(~dut.failed):
                m.d.comb += [
                    Assert((self.put == self.total) & (self.got == self.total) & ~dut.open_),
                    Assert((self.good == self.total) & (self.stored == self.total)),
                    Assert(~self.damaged),
                ]
        with m.If(ok & ~self.job.write):
            m.d.comb += Assert((self.put == self.total) & (self.got == self.total))

    def _of_writes(self, m, state):
        dut, writing = self.dut, state["WRITE"]
        m.d.comb += [
            Assert(writing | ((self.due == 0) & (self.queue.level == 0))),
            Assert(~writing | (self.asked == self.came + self.due)),
            Assert(~writing | (self.came == self.sent + self.queue.level)),
            Assert(~writing | ~(dut.failed | dut.ended)),
            Assert(~writing | (self.drive.over == (self.sent == self.total))),
        ]

    def _covers(self, m):
        dut, done = self.dut, self.dut.done
        padded, twice = Signal(), Signal(2)
        wdata = dut.mem.wdata
        with m.If(moves(wdata) & (wdata.payload.strb == 0)):
            m.d.sync += padded.eq(1)
        with m.If(moves(done) & ~twice.all()):
            m.d.sync += twice.eq(twice + 1)
        beats = 3 * dut.burst if dut.burst == 2 else 2  # a long burst takes a solver long
        m.d.comb += [
            Cover((twice == 1) & moves(done) & (done.payload.status == DriveStatus.INVALID)),
            Cover((self.stored == beats) & (self.sent == 0)),
            Cover((self.sent == beats) & (self.due >= 2)),
        ]
        if dut.burst == 2:
            m.d.comb += [
                Cover(moves(done) & padded & (done.payload.status == DriveStatus.DATA)),
                Cover(moves(done) & self.issued & (self.stored == 0) & ~self.job.write),
                Cover(self.queue.level == 2 * dut.burst),
            ]


MUTANTS = (
    Mutant("pads_with_strobes", "self.ended | (beat.last & beat.error)", "beat.last & beat.error"),
    Mutant("writes_damaged_beat", "self.ended | (beat.last & beat.error)", "self.ended"),
    Mutant(
        "hides_a_failure",
        "self.failed & (reported == DriveStatus.OK)",
        "0 & (reported == DriveStatus.OK)",
    ),
    Mutant("short_is_whole", "beat.error | short | (beat.empty != 0)", "beat.error"),
    Mutant("forgets_address", "held.addr + self.burst * (self.width // 8)", "held.addr + 0", 16),
    Mutant(
        "before_written", "self.ended & ~self.open_ & (self.owed == 0)", "self.ended & ~self.open_"
    ),
    Mutant("leaves_a_burst", "self.ended & ~self.open_ & (self.owed == 0)", "self.ended", 12),
    Mutant("asks_without_room", "self.reserved <= self.burst", "self.reserved <= self.burst + 1"),
    Mutant("next_while_busy", "with m.If(self.done.ready):", "with m.If(1):"),
    Mutant("accepts_no_sectors", "odd | (self.job.payload.count == 0)", "odd"),
    Mutant(
        "eighth_burst",
        "room = self.owed != self.OUTSTANDING",
        "room = 1",
        depth=40,
    ),
)

#: With long bursts a failed read takes long to end; with one a sector, the last comes soon.
LONG = (
    *MUTANTS[:2],
    Mutant(
        "asks_on",
        "mem.cmd.valid.eq((self.to_ask != 0) & (self.reserved <= self.burst))",
        "mem.cmd.valid.eq(self.reserved <= self.burst)",
    ),
)

PROOFS = tuple(
    Proof(
        name=f"drive_dma_{burst}",
        core=f"cores.drive.to_memory.DriveDma({width}, 1, {burst})",
        says="each beat of a job moves once, to or from its place; a failed read is marked",
        module="trebuchet.cores.drive.to_memory",
        build=lambda cores, w=width, b=burst: DriveDmaProof(cores.DriveDma(w, 1, b)),
        depth=3,
        cover_depth=24,
        mutants=MUTANTS if burst == 2 else LONG,
        assumes="the drive's rules but lengths; memory answers what it was asked for",
        not_proved="that drive and memory answer; a reset while running",
    )
    for width, burst in ((32, 2), (64, 64))
)
