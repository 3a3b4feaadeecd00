"""Proof of ``BoardWindow`` in ``cores/services/smp_board.py``: four sessions, any jobs.

A job for the board is shown, unaltered, until the CPU has answered it, and gets that answer, once;
what the registers say later does not change it. Every other job passes by, and so does each answer
to one. While the board's door is open a job for it is taken in the cycle in which it is offered.

Not proved: that the CPU answers; the arbiter's fairness, which has a proof of its own.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Signal, Value

from ...cores.roles.contract import AnswerLayout
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

BOARD = 30


class BoardWindowProof(Elaboratable):
    def __init__(self, cores):
        self.dut = cores.BoardWindow(4)

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        csr, job = dut.csr, dut.job.payload
        free(m, dut.job.valid, dut.job.payload, dut.jobs.ready, dut.answer.ready)
        free(m, dut.answers.valid, dut.answers.payload)
        free(m, csr.next, csr.role, csr.answer, csr.irq_enable)
        for port, check, name in (
            (dut.job, Assume, "job"),
            (dut.answers, Assume, "answers"),
            (dut.jobs, Assert, "jobs"),
            (dut.answer, Assert, "answer"),
        ):
            stream_rules(m, port, check, name)
        mine, door = job.role == BOARD, Signal()
        shown, due = Signal(), Signal()  # a job is shown; its answer is on its way
        kept, said = Signal(dut.job.payload.shape()), Signal(AnswerLayout)
        m.d.sync += door.eq(dut.door)
        takes = moves(dut.job) & mine
        writes = shown & csr.answer[8]
        gone = moves(dut.answer) & ~moves(dut.answers)
        with m.If(takes):
            m.d.sync += [shown.eq(1), kept.eq(job)]
        with m.If(writes):
            m.d.sync += [shown.eq(0), due.eq(1)]
            m.d.sync += [said.status.eq(csr.answer), said.length.eq(csr.next)]
            m.d.sync += [said.id.eq(csr.role), said.session.eq(kept.session[:2])]
        with m.If(gone):
            m.d.sync += due.eq(0)
        m.d.comb += [
            # One at a time; others are in nobody's way.
            Assert(~takes | (~shown & ~due)),
            Assert(~(shown & due)),
            Assert(~(door & dut.job.valid & mine) | dut.job.ready),
            Assert(dut.jobs.valid == (dut.job.valid & ~mine)),
            Assert(~dut.jobs.valid | (Value.cast(dut.jobs.payload) == Value.cast(job))),
            Assert(mine | (dut.job.ready == dut.jobs.ready)),
            # What the CPU sees.
            Assert(csr.job[0] == shown),
            Assert(dut.irq == (shown & csr.irq_enable)),
            # Each answer is the board's own, or one that was offered.
            Assert(~gone | due),
            Assert(~moves(dut.answers) | moves(dut.answer)),
        ]
        with m.If(shown):
            m.d.comb += [
                Assert(csr.job[1:4] == kept.id[:3]),
                Assert(csr.job[4:] == kept.length),
                Assert(csr.address == (kept.base | kept.offset)),
            ]
        with m.If(shown | due):
            m.d.comb += Assert(csr.session == kept.session[:2])
        with m.If(moves(dut.answers)):
            ours = Value.cast(dut.answers.payload)
            m.d.comb += Assert(Value.cast(dut.answer.payload) == ours)
        with m.If(due):
            m.d.comb += Assert(said.session == kept.session[:2])
        with m.If(gone):
            m.d.comb += Assert(Value.cast(dut.answer.payload) == Value.cast(said))
        self._inside(m, due, said)
        seen = Signal(2)
        m.d.sync += seen.eq(seen | Cat(gone, moves(dut.answers)))
        m.d.comb += Cover((seen == 3) & shown)
        return m

    def _inside(self, m, due, said):
        """The answer on its way is what the arbiter's second input has on offer."""
        offer = self.dut.offer
        m.d.comb += Assert(said.source == 0)
        m.d.comb += Assert(offer.valid == due)
        m.d.comb += Assert(~due | (Value.cast(offer.payload) == Value.cast(said)))


PROOFS = (
    Proof(
        name="smp_board",
        core="cores.services.smp_board.BoardWindow(4 sessions)",
        says="a job for the board is shown unaltered and gets the CPU's answer, once; every other "
        "job and answer passes by; an open door is kept",
        module="trebuchet.cores.services.smp_board",
        build=BoardWindowProof,
        depth=2,
        cover_depth=10,
        mutants=(
            Mutant("takes_while_due", "room = ~pending & ~ours.valid", "room = ~pending", 8),
            Mutant(
                "answers_nobody",
                "m.If(pending & fields(csr, 'answer').go)",
                "m.If(fields(csr, 'answer').go)",
                6,
            ),
            Mutant("live_length", "ours.payload.length.eq(csr.next),", "", 8),
            Mutant(
                "door_too_long",
                "self.door.eq(room & ~(self.job.valid & mine))",
                "self.door.eq(room)",
                6,
            ),
        ),
        assumes="the stream rules of framer and roles",
        not_proved="that the CPU answers",
    ),
)
