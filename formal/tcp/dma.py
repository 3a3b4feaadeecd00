"""Proofs of the receive DMA in ``cores/tcp/dma.py``: its jobs, and what it reports.

*Jobs*, for each verdict, whatever comes on the wire: the commands cover the beats from the one with
the first byte to the one with the last, one after the other, wrapping in the ring that the
address lies in; none crosses a block of 64 beats, so none crosses the end of the ring; each beat
of data belongs to the next place of these, ends its burst where the command does, and enables
exactly the bytes of the payload. The data are the aligner's, in order, none lost; what does not fit
is dropped. The aligner gets the verdict's numbers and the payload's beats, up to its last and no
further. A verdict without commit writes nothing. Each committed verdict is noted once, with the
number of its commands and the verdict's own fields, after its last beat, and there is room.

*Report*: what is noted is reported in order, once, exactly when as many bursts are done as it and
all before it had; what is ahead of a gap is not reported.

The aligner (``cores/realign.py``) and the queue of notes (``stream_fifo_latched``) are replaced by
anything that keeps the stream rules, the aligner by one that gives at least the bytes to be
written.

Not proved: the aligner; behaviour under a reset while running; other sizes.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated, only_part, state_is
from ..stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=2, ports=(7,), segment_log2=9, rx_buffer=2048)
N, RING, BLOCK = 4, 512, 256  # bytes of a beat, of a segment, of the largest burst
BITS = 12  # of a payload's length


class _Dma(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        parts = elaborated(dut).submodules
        self.trim, self.prepend, self.pending = parts.trim, parts.prepend, parts.pending
        for part in (self.trim, self.prepend, self.pending):
            stands = only_part(part)
        stands.submodules.ram = self.pending.ram  # which nobody uses
        aligned, notes = self.prepend.o, self.pending
        free(m, dut.verdict.valid, dut.verdict.payload, dut.payload.valid, dut.payload.payload)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.wdone.valid, dut.written.ready)
        free(m, self.trim.i.ready, self.trim.o.valid, self.trim.o.payload, self.prepend.i.ready)
        free(m, aligned.valid, aligned.payload)
        free(m, notes.i.ready, notes.o.valid, notes.o.payload, notes.level)
        for name, stream in {
            "verdict": dut.verdict,
            "payload": dut.payload,
            "trimmed": self.trim.o,
            "aligned": aligned,
            "notes": notes.o,
        }.items():
            stream_rules(m, stream, Assume, name)
        room = self.room = Signal()  # the queue of notes has room until one is put into it
        m.d.sync += room.eq(notes.i.ready & ~notes.i.valid)
        m.d.comb += Assume(~room | notes.i.ready)
        self.spec(m)
        return m


def _moves(stream):
    return stream.valid & stream.ready


class JobProof(_Dma):
    def spec(self, m):
        dut, pending = self.dut, self.pending.i
        self.job = job = Signal(dut.verdict.payload.shape(), name="job_")
        verdict = dut.verdict.payload
        with m.If(dut.verdict.valid):
            m.d.comb += [
                Assume(verdict.commit | (verdict.arrived != 0)),
                Assume(verdict.skip + verdict.length <= verdict.arrived),
                Assume(verdict.length <= RING),
                Assume(verdict.arrived <= CONFIG.rx_buffer),
            ]
        # What is being done: a plan; a payload that vanishes; beats to write; the rest of them.
        names = ("planning", "vanishing", "feeding", "fed")
        self.do = {name: Signal(name=name) for name in names}
        do = self.do
        self.left, self.asked = Signal(BITS), Signal(BITS)  # beats to write; those without command
        self.total, self.bursts = Signal(BITS), Signal(8)
        self.next = Signal(32)  # address of the next command
        lane = job.addr % N
        busy = do["planning"] | do["vanishing"] | do["feeding"]
        m.d.comb += Assert(dut.verdict.ready == ~busy)
        done = Signal()
        with m.If(_moves(dut.verdict)):
            m.d.sync += [job.eq(verdict), do["planning"].eq(1), do["fed"].eq(0)]
            m.d.sync += self.bursts.eq(0)
        with m.If(do["planning"] & pending.ready):
            m.d.sync += do["planning"].eq(0)
            with m.If(job.commit & (job.arrived == 0)):
                m.d.comb += done.eq(1)
            with m.Elif(~job.commit | (job.length == 0)):
                m.d.sync += do["vanishing"].eq(1)
            with m.Else():
                beats = (lane + job.length + N - 1) // N
                m.d.sync += [do["feeding"].eq(1), self.left.eq(beats), self.asked.eq(beats)]
                m.d.sync += [self.total.eq(beats), self.next.eq(job.addr - lane)]
        ends = dut.payload.valid & dut.payload.payload.last
        with m.If(do["vanishing"] & ends):
            m.d.comb += done.eq(1)
            m.d.sync += do["vanishing"].eq(0)
        aligned = self.prepend.o
        with m.If(do["feeding"] & _moves(aligned) & aligned.payload.last):
            m.d.comb += done.eq(1)
            m.d.sync += do["feeding"].eq(0)
        self._note(m, done)
        self._align(m)
        self._command(m)
        self._write(m)
        self._invariants(m)
        with m.If(~busy):
            idle = (self.pending.level == 0) & ~dut.written.valid
            m.d.comb += Assert(dut.idle == idle)
        m.d.comb += Assert(~busy | ~dut.idle)
        m.d.comb += Cover(done & (self.bursts == 2) & (lane == 3) & (job.length == 9))
        m.d.comb += Cover(done & do["vanishing"] & job.commit)
        m.d.comb += Cover(done & do["planning"] & job.fin)

    def _note(self, m, done):
        note, job = self.pending.i, self.job
        m.d.comb += Assert(note.valid == (done & job.commit))
        with m.If(note.valid):
            m.d.comb += [
                Assert(note.ready),
                Assert(note.payload.bursts == self.bursts),
                Assert(note.payload.text == (job.length != 0)),
            ]
            for name in ("session", "end", "fin", "ahead"):
                m.d.comb += Assert(note.payload[name] == job[name])

    def _align(self, m):
        """The payload goes into the aligner once, and its numbers are the verdict's."""
        dut, do, job = self.dut, self.do, self.job
        trim, prepend, payload = self.trim, self.prepend, self.dut.payload
        planned = do["planning"] & self.pending.i.ready & job.commit & (job.length != 0)
        feeds = (do["feeding"] | planned) & ~do["fed"]
        taken = _moves(trim.i)
        with m.If(taken & payload.payload.last):
            m.d.sync += do["fed"].eq(1)
        m.d.comb += [
            Assert(trim.i.valid == (payload.valid & feeds)),
            Assert(_moves(payload) == (taken | (do["vanishing"] & payload.valid))),
            Assert(Value.cast(trim.i.payload) == Value.cast(payload.payload)),
            Assert(prepend.i.valid == trim.o.valid),
            Assert(Value.cast(prepend.i.payload) == Value.cast(trim.o.payload)),
            Assert(trim.o.ready == prepend.i.ready),
            Assert(trim.max_skip >= dut.config.rx_buffer),
        ]
        with m.If(do["feeding"] | planned):
            m.d.comb += Assert(trim.skip == job.skip)
            m.d.comb += Assert(prepend.count == job.addr % N)
        # The aligner has beats of this payload only, and all that are to be written.
        out = prepend.o
        with m.If(out.valid):
            m.d.comb += Assume(do["feeding"])
            m.d.comb += Assume(~out.payload.last | (do["fed"] & (self.left <= 1)))

    def _command(self, m):
        cmd, p = self.dut.mem.cmd, self.dut.mem.cmd.payload
        to_border = (BLOCK - self.next % BLOCK) // N
        beats = Signal(BITS)
        m.d.comb += beats.eq(Mux(self.asked < to_border, self.asked, to_border))
        m.d.comb += Assert(cmd.valid == (self.asked != 0))
        with m.If(cmd.valid):
            m.d.comb += [
                Assert(p.write),
                Assert(p.tag == 0),
                Assert(p.addr == self.next),
                Assert(p.beats + 1 == beats),
                Assert(p.addr // RING == self.job.addr // RING),
                Assert(p.addr % RING + N * beats <= RING),
            ]
        with m.If(_moves(cmd)):
            after = self.next + N * beats
            m.d.sync += [
                self.asked.eq(self.asked - beats),
                self.bursts.eq(self.bursts + 1),
                self.next.eq(Cat((after % RING)[:9], self.next[9:])),
            ]

    def _write(self, m):
        job, wdata, out = self.job, self.dut.mem.wdata, self.prepend.o
        place = Signal(BITS + 2)  # of the beat's first byte, from the first beat's
        m.d.comb += place.eq(N * (self.total - self.left))
        final, lane = self.left == 1, job.addr % N
        start = (job.addr - lane) % BLOCK
        writes = self.do["feeding"] & (self.left != 0)
        border = (start + place + N) % BLOCK == 0
        m.d.comb += [
            Assert(wdata.valid == (writes & out.valid & ~(final & (self.asked != 0)))),
            Assert(~_moves(wdata) | _moves(out)),
            Assert(~(_moves(out) & writes) | _moves(wdata)),
            Assert(~(self.do["feeding"] & ~writes) | out.ready),
        ]
        with m.If(wdata.valid):
            m.d.comb += Assert(wdata.payload.last == (final | border))
            m.d.comb += Assert(wdata.payload.data == out.payload.data)
            for k in range(N):
                inside = (place + k >= lane) & (place + k < lane + job.length)
                m.d.comb += Assert(wdata.payload.strb[k] == inside)
        with m.If(_moves(wdata)):
            m.d.sync += self.left.eq(self.left - 1)

    def _invariants(self, m):
        dut, do, job = self.dut, self.do, self.job
        asking, bursts, low, high = dut.commands
        at, end, first, end_lane = dut.beats

        def state(*names):
            return state_is(dut.fsm, *names)

        busy = ~state("IDLE")
        m.d.comb += [
            Assert(state("PLAN") == do["planning"]),
            Assert(state("VANISH") == do["vanishing"]),
            Assert(state("DATA", "REST") == do["feeding"]),
            Assert(do["planning"] + do["vanishing"] + do["feeding"] == busy),
            Assert(~busy | (Value.cast(dut.job) == Value.cast(job))),
            Assert(~busy | (dut._fed == do["fed"])),
            Assert(asking == (self.asked != 0)),
            Assert(~busy | (bursts == self.bursts)),
            Assert(~asking | state("DATA")),
            Assert(~state("REST") | (self.left == 0)),
            Assert(~state("PLAN") | ((self.bursts == 0) & first & ~do["fed"])),
            Assert(~state("VANISH") | (self.bursts == 0)),
            Assert(~busy | (job.length <= RING)),
            Assert(~busy | job.commit | (job.arrived != 0)),
        ]
        with m.If(state("DATA", "REST")):
            m.d.comb += Assert(job.commit & (job.length != 0))
        with m.If(state("VANISH")):
            m.d.comb += Assert(~job.commit | (job.length == 0))
        with m.If(state("DATA", "REST", "VANISH")):
            m.d.comb += Assert(self.room)
        with m.If(busy & (job.arrived == 0)):
            m.d.comb += Assert(job.length == 0)
        with m.If(state("DATA")):
            start = (job.addr % BLOCK) // N
            m.d.comb += [
                Assert(self.left != 0),
                Assert(self.left <= self.total),
                Assert(self.total == (job.addr % N + job.length + N - 1) // N),
                Assert(self.left == end - at + 1),
                Assert(at == start + self.total - self.left),
                Assert(first == (self.left == self.total)),
                Assert(end_lane == (job.addr + job.length) % N),
                Assert(self.asked <= self.total),
            ]
            with m.If(asking):
                asked_to = 64 * bursts + low  # beats that have commands, from the block's start
                m.d.comb += [
                    Assert(self.asked == end + 1 - asked_to),
                    Assert(self.next == Cat(0, 0, low, high, job.addr[9:])),
                    Assert((bursts == 0) | (low == 0)),
                    Assert((bursts != 0) | (low == start)),
                    Assert(bursts <= end[6:]),
                ]


class ReportProof(_Dma):
    def spec(self, m):
        dut, note = self.dut, self.pending.o
        stream_rules(m, dut.written, Assert, "written")
        out, p = dut.written, note.payload
        credit = Signal(13)  # bursts done that were counted for no note
        done = dut.mem.wdone
        m.d.comb += [
            Assert(done.ready),
            Assume(~done.valid | (credit < 2047)),  # far more than can be under way
        ]
        takes = note.valid & (credit >= p.bursts) & (~out.valid | out.ready)
        m.d.comb += Assert(_moves(note) == takes)
        m.d.sync += credit.eq(credit + done.valid - Mux(takes, p.bursts, 0))
        queue = Queue(
            m,
            puts=takes & ~p.ahead,
            put_word=Cat(p[name] for name in ("session", "end", "fin", "text")),
            gets=_moves(out),
            get_valid=out.valid,
            get_word=Cat(out.payload[name] for name in ("session", "end", "fin", "text")),
            capacity=1,
        )
        m.d.comb += Assert(out.valid == (queue.level != 0))
        late = Signal()
        with m.If(note.valid & ~takes & (p.bursts == 2)):
            m.d.sync += late.eq(1)
        ahead = Signal()
        with m.If(takes & p.ahead & (p.bursts == 1)):
            m.d.sync += ahead.eq(1)
        m.d.comb += Cover(late & ahead & _moves(out) & out.payload.text)
        m.d.comb += [Assert(dut.done == credit), Assert(credit < 2048)]  # invariants


_CORE = "cores.tcp.dma.ReceiveDma(2 sessions, 512-byte segments, 2048-byte payloads)"

PROOFS = (
    Proof(
        name="tcp_dma_jobs",
        core=_CORE,
        says="writes the bytes of the payload to their places in the ring and nothing else, once",
        module="trebuchet.cores.tcp.dma",
        build=lambda cores: JobProof(cores.ReceiveDma(CONFIG)),
        depth=2,
        cover_depth=16,
        mutants=(
            Mutant("a_byte_more", "(k < end_lane)", "(k <= end_lane)"),
            Mutant(
                "beat_off_by_one",
                "(job.addr[:block] + job.length - 1) >> lane",
                "(job.addr[:block] + job.length) >> lane",
            ),
            Mutant(
                "leaves_the_ring",
                "C(0, lane), low, high, job.addr[ring:]",
                "C(0, lane), low, high, job.addr[ring + 1 :]",
            ),
            Mutant(
                "ends_late", "final | at[:BEATS_WIDTH].all()", "final | (at[:BEATS_WIDTH] == 0)", 12
            ),
            Mutant("reloads_early", "prepend.o.valid & ~(final & asking)", "prepend.o.valid"),
        ),
        assumes="the stream rules; what is to be written arrived, and fits a ring",
        not_proved="the aligner; other sizes",
    ),
    Proof(
        name="tcp_dma_report",
        core=_CORE,
        says="each note is reported once, in order, when all its bursts are done, unless ahead",
        module="trebuchet.cores.tcp.dma",
        build=lambda cores: ReportProof(cores.ReceiveDma(CONFIG)),
        depth=2,
        cover_depth=14,
        mutants=(
            Mutant("does_not_wait", "done >= head.bursts", "done + 1 >= head.bursts"),
            Mutant(
                "reports_what_is_ahead",
                "self.written.valid.eq(~head.ahead)",
                "self.written.valid.eq(1)",
            ),
            Mutant(
                "counts_twice",
                "done + self.mem.wdone.valid - Mux(take, head.bursts, 0)",
                "done + self.mem.wdone.valid - Mux(take, head.bursts - 1, 0)",
            ),
            Mutant("overwrites", "enough & (~self.written.valid | self.written.ready)", "enough"),
        ),
        assumes="the stream rules; fewer than 2048 bursts are done that no note was about",
        not_proved="other sizes",
    ),
)
