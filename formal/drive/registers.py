"""Proof of ``DriveRegisters`` in ``cores/drive/registers.py``.

Contract, over public ports, for a DMA that completes only a job that it has taken: a job is offered
for each ``start.go`` while none is under way, and for no other; it is what the registers were in
that cycle, and stays until it is taken; ``busy`` holds from then to its completion; ``status`` is
that of the last completion; completions are counted, and those with another status than ``OK``;
an event is pending from the cycle after it happened until it was cleared in a later cycle than
that; the interrupt is what is pending and enabled.

Not proved: a reset while a job is under way.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.drive.port import DriveStatus

from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


class DriveRegistersProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        csr, job, done = dut.csr, dut.job, dut.done
        free(m, csr.lba, csr.count, csr.address, csr.start, csr.events_clear, csr.irq_enable)
        free(m, dut.sectors, dut.ready, dut.present, job.ready, done.valid, done.payload)
        stream_rules(m, job, Assert, "job")
        waiting, taken, go = Signal(), Signal(), Signal()
        held = Signal(job.payload.shape(), name="held")
        status, pending = Signal(3, name="last_status"), Signal(2)
        jobs, failures = Signal(32, name="jobs_seen"), Signal(32, name="failures_seen")
        m.d.comb += [
            Assume(~done.valid | taken),
            go.eq(csr.start[0] & ~(waiting | taken)),
            Assert(job.valid == waiting),
            Assert(~waiting | (job.payload == held)),
            Assert(done.ready),
            Assert(csr.state[0] == (waiting | taken)),
            Assert(csr.state[1] == dut.ready),
            Assert(csr.state[2] == dut.present),
            Assert(csr.state[3:] == status),
            Assert(csr.sectors == dut.sectors),
            Assert(csr.events == pending),
            Assert(dut.irq == ((pending & csr.irq_enable) != 0)),
            Assert(~(waiting & taken)),
            Assert(csr.jobs == jobs),
            Assert(csr.failures == failures),
        ]
        m.d.sync += [
            waiting.eq(go | (waiting & ~job.ready)),
            taken.eq(moves(job) | (taken & ~done.valid)),
            pending[0].eq(done.valid | (pending[0] & ~csr.events_clear[0])),
            pending[1].eq(~dut.ready | (pending[1] & ~csr.events_clear[1])),
            status.eq(Mux(done.valid, done.payload.status, status)),
            jobs.eq(jobs + done.valid),
            failures.eq(failures + (done.valid & (done.payload.status != DriveStatus.OK))),
        ]
        with m.If(go):
            m.d.sync += [
                held.write.eq(csr.start[1]),
                held.lba.eq(csr.lba),
                held.count.eq(csr.count),
                held.addr.eq(csr.address),
            ]
        ends = Signal(2)
        m.d.sync += ends.eq(ends + (done.valid & ~ends.all()))
        m.d.comb += [
            Cover((ends == 2) & (status == 3) & dut.irq),
            Cover(waiting & (held.lba == 0x1234_5678_9ABC) & held.write),
        ]
        return m


PROOFS = (
    Proof(
        name="drive_registers",
        core="cores.drive.registers.DriveRegisters()",
        says="each start while idle offers the job that the registers describe, once; "
        "its status and the events are kept",
        module="trebuchet.cores.drive.registers",
        build=lambda cores: DriveRegistersProof(cores.DriveRegisters()),
        depth=2,
        cover_depth=12,
        assumes="the DMA completes a job only after it took it",
        not_proved="a reset while a job is under way",
        mutants=(
            Mutant("starts_while_busy", "start.go & ~busy", "start.go & ~self.job.valid", depth=8),
            Mutant("forgets_write", "job.payload.write.eq(start.write)", "job.payload.write.eq(0)"),
            Mutant(
                "offers_twice",
                "with m.If(job.ready):",
                "with m.If(self.job.ready & self.csr.start[0]):",
                depth=8,
            ),
            Mutant(
                "clear_wins",
                "events & ~csr.events_clear | ended | (~self.ready << 1)",
                "(events | ended | (~self.ready << 1)) & ~csr.events_clear",
            ),
            Mutant(
                "idle_too_soon", "with m.If(ended):", "with m.If(self.job.ready | ended):", depth=8
            ),
            Mutant(
                "counts_successes",
                "self.done.payload.status != DriveStatus.OK",
                "self.done.payload.status == DriveStatus.OK",
                depth=8,
            ),
            Mutant("interrupts_always", "(events & csr.irq_enable).any()", "events.any()"),
        ),
    ),
)
