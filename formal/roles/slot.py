"""Proof of ``RoleSlot`` in ``cores/roles/slot.py`` around a role that does what it likes.

The role is left to the solver: it answers jobs that it has, in any order, with anything. Contract,
over public ports, the role's included: each job that is taken goes to the role once, unaltered but
for its number, or is refused once, and for the reason that the data sheet says; never more than
``outstanding`` are in the role; each answer of the role leaves once, with who asked; a reset
answers each job that is in the role ``ABORTED``, and only when the role is in reset and the memory
owes nothing; the registers count what happened; ``start`` runs one job of the CPU with its operand
registers, ``busy`` from then until its result is in the registers; an interrupt is never lost, also
when it comes in the cycle in which the last one is cleared. The watchdog resets the role when a job
has been in it, or on offer, for at least its time, and no job is there for more than twice its
time; the third such reset without an answer bars the role.

Not proved: the gate (``memory_gate``); a slot's own reset; that the role or the memory answers.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import (
    Array,
    Assert,
    Assume,
    Cat,
    Const,
    Cover,
    Elaboratable,
    Module,
    Mux,
    Signal,
    Value,
)
from amaranth.lib import wiring

from ...cores.roles.contract import AnswerLayout, RoleSignature
from ...models.status import Status
from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

CPU = 15
ROWS = 2
IDENTITY = ("source", "session", "id")


def _moves(stream):
    return stream.valid & stream.ready


class AnyRole(wiring.Component):
    """A role of which nothing is known but what the harness assumes."""

    outstanding = ROWS

    def __init__(self):
        super().__init__(RoleSignature(None, 32, 1))

    def elaborate(self, platform):
        m = Module()
        for signal in (self.answer.valid, self.answer.payload, self.job.ready, self.mem.cmd.valid):
            m.d.comb += Value.cast(signal).eq(AnySeq(len(Value.cast(signal))))
        return m


class RoleSlotProof(Elaboratable):
    def __init__(self, cores):
        self.role = AnyRole()
        self.dut = cores.RoleSlot(self.role, "any", 32, 1)

    def elaborate(self, platform):
        m = new_harness()
        dut, csr = self.dut, self.dut.csr
        self.inside = Inside(m, dut)
        self.gate = self.inside.parts["gate"]
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        free(m, dut.mem.rdata.payload)
        names = ("start", "interrupt_enable", "interrupt_status_clear", "enable", "reset")
        names += ("watchdog",)
        operands = ("operand_addr", "operand_length", "result_addr", "result_room")
        free(m, dut.tick, *(getattr(csr, name) for name in (*names, *operands)))
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, dut.answer, Assert, "answer")
        m.d.comb += Assume(dut.job.payload.source != CPU)
        self._role(m)
        self._cpu_job(m)
        self._jobs(m)
        self._answers(m)
        self._watchdog(m)
        self._registers(m)
        self._invariants(m)
        return m

    def _role(self, m):
        """The role answers jobs that it has, and forgets them when it is reset."""
        job, answer = self.role.job, self.role.answer
        self.has = has = Signal(ROWS)
        number = answer.payload.id
        stream_rules(m, answer, Assume, "role")
        m.d.comb += Assume(~answer.valid | ((number < ROWS) & has.bit_select(number[:1], 1)))
        with m.If(_moves(answer)):
            m.d.sync += has.bit_select(number[:1], 1).eq(0)
        with m.If(_moves(job)):
            m.d.sync += has.bit_select(job.payload.id[:1], 1).eq(1)
        with m.If(self.gate.shut):
            m.d.sync += has.eq(0)

    def _cpu_job(self, m):
        """What ``start`` asks for, and whether it waits."""
        csr = self.dut.csr
        self.busy, self.waits, self.bad = Signal(), Signal(), Signal()
        self.cpu_job = job = Signal(self.dut.job.payload.shape())
        starts = Signal()
        m.d.comb += starts.eq(csr.start[0] & ~self.busy)
        with m.If(starts):
            m.d.sync += [
                self.busy.eq(1),
                self.waits.eq(1),
                self.bad.eq(csr.result_addr % 16 != 0),
                job.source.eq(CPU),
                job.base.eq(Cat(Const(0, 20), csr.operand_addr[20:])),
                job.offset.eq(csr.operand_addr[:20]),
                job.ring_log2.eq(20),
                job.length.eq(csr.operand_length),
                job.result.eq(csr.result_addr),
                job.room.eq(csr.result_room),
            ]
        m.d.comb += [
            Assert(csr.busy == self.busy),
            Assert(self.inside.cpu_waits == self.waits),
            Assert(~self.waits | self.busy),
        ]
        m.d.comb += [
            Assert(~self.waits | (job.source == CPU)),
            Assert(Cat(Value.cast(job.kind), job.first, job.session, job.id) == 0),
            Assert(self.inside.cpu_bad == self.bad),
            Assert(self.inside.cpu_job == Value.cast(job)),
        ]

    def _jobs(self, m):
        dut, i = self.dut, self.inside
        job, role_job = dut.job, self.role.job
        given, taken, cpu = _moves(role_job), i.taken, i.cpu
        self.taken, self.given = taken, given
        self.refused, self.reason = Signal(), Signal(8)
        self.used = Signal(ROWS)
        self.who = [Signal(53, name=f"who{k}") for k in range(ROWS + 1)]
        past_enable, past_waits = Signal(), Signal()  # when it was chosen
        with m.If(i.state("IDLE")):
            m.d.sync += [past_enable.eq(dut.on), past_waits.eq(self.waits)]
        chosen = Mux(cpu, Value.cast(self.cpu_job), Value.cast(job.payload))
        identity = Signal(53)
        source = Mux(cpu, self.cpu_job.source, job.payload.source)
        session = Mux(cpu, self.cpu_job.session, job.payload.session)
        number = Mux(cpu, self.cpu_job.id, job.payload.id)
        m.d.comb += identity.eq(Cat(source, session, number))
        refuses = taken & ~given
        reason = Mux(past_enable, Status.BAD_LENGTH, Status.STOPPED)
        m.d.comb += [
            Assert(_moves(job) == (taken & ~cpu)),
            Assert(~taken | ~cpu | self.waits),
            Assert(~taken | (cpu == past_waits)),
            Assert(~given | taken),
            Assert(~role_job.valid | ~i.resetting),
            Assert(~taken | ~i.resetting),
            # Refused: off, or a result that is not aligned.
            Assert(~role_job.valid | (past_enable & ~(cpu & self.bad))),
            Assert(~refuses | ~past_enable | (cpu & self.bad)),
            Assert(~refuses | ~self.refused),
        ]
        wrong = Mux(cpu & self.bad, Status.BAD_LENGTH, Status.OK)
        with m.If(i.state("HAND")):
            m.d.comb += [
                Assert(cpu == past_waits),
                Assert(i.status == Mux(past_enable, wrong, Status.STOPPED)),
                Assert((i.status == Status.OK) | (role_job.payload.id == ROWS)),
            ]
        row = role_job.payload.id
        with m.If(role_job.valid):
            theirs = Signal(dut.job.payload.shape(), name="theirs")
            m.d.comb += [
                Value.cast(theirs).eq(chosen),
                Assert(row < ROWS),
                Assert(~self.used.bit_select(row[:1], 1)),
            ]
            for name in dut.job.payload.shape().members:
                if name != "id":
                    ours = Value.cast(role_job.payload[name])
                    m.d.comb += Assert(ours == Value.cast(theirs[name]))
        with m.If(taken & cpu):
            m.d.sync += self.waits.eq(0)
        with m.If(given):
            m.d.sync += self.used.bit_select(row[:1], 1).eq(1)
            for k in range(ROWS):
                with m.If(row == k):
                    m.d.sync += self.who[k].eq(identity)
        with m.If(refuses):
            m.d.sync += [self.refused.eq(1), self.reason.eq(reason), self.who[-1].eq(identity)]
        waiting = job.valid & ~i.resetting & ~self.refused & ~self.waits & ~self.used.all()
        within(m, ~(waiting & role_job.ready) | job.ready, 3, "take")

    def _answers(self, m):
        """Out goes what was refused, else what a reset ended, else what the role says."""
        dut, i, role = self.dut, self.inside, self.role.answer
        self.full, self.out = Signal(), Signal(AnswerLayout)
        out = self.out
        to_cpu = out.source == CPU
        self.to_registers = Signal()
        aborts = Signal()
        m.d.comb += [
            self.to_registers.eq(self.full & to_cpu),
            Assert(dut.answer.valid == (self.full & ~to_cpu)),
            aborts.eq(i.resetting & self.gate.idle & self.used.any()),
            Assert(role.ready == (~self.full & ~self.refused & ~i.resetting)),
            Assert(~self.gate.idle | self.gate.shut),
        ]
        with m.If(dut.answer.valid):
            m.d.comb += Assert(Value.cast(dut.answer.payload) == Value.cast(out))
        row = Mux(i.resetting, Mux(self.used[0], 0, 1), role.payload.id[:1])
        with m.If(self.full):
            with m.If(to_cpu | dut.answer.ready):
                m.d.sync += self.full.eq(0)
        with m.Elif(self.refused):
            m.d.sync += [self.full.eq(1), self.refused.eq(0), out.status.eq(self.reason)]
            m.d.sync += [self._who(out).eq(self.who[-1]), out.length.eq(0)]
        with m.Elif(aborts | _moves(role)):
            m.d.sync += [self.full.eq(1), self.used.bit_select(row, 1).eq(0)]
            m.d.sync += self._who(out).eq(Array(self.who[:ROWS])[row])
            m.d.sync += out.status.eq(Mux(i.resetting, Status.ABORTED, role.payload.status))
            m.d.sync += out.length.eq(Mux(i.resetting, 0, role.payload.length))
        ended, cleared = Signal(2), Signal()
        with m.If(dut.answer.valid & dut.answer.ready & (ended != 3)):
            m.d.sync += ended.eq(ended + 1)
        with m.If(dut.answer.valid & (out.status == Status.ABORTED)):
            m.d.sync += cleared.eq(1)
        m.d.comb += [
            Cover((ended == 2) & self.used.all()),
            Cover(cleared & (self.used != 0) & ~i.resetting),
            Cover(dut.answer.valid & (out.status == Status.STOPPED) & self.used[0]),
        ]

    @staticmethod
    def _who(answer):
        return Cat(answer.source, answer.session, answer.id)

    def _watchdog(self, m):
        """Ages of jobs in ticks, each counted on its own, and what the watchdog makes of them."""
        dut, csr, i = self.dut, self.dut.csr, self.inside
        limit, before = csr.watchdog, Signal(16)
        started = Signal()
        m.d.sync += [before.eq(limit), started.eq(1)]
        m.d.comb += Assume(~started | (limit == before))
        offered = self.role.job.valid & ~self.role.job.ready
        old = []
        for k, here in enumerate((*self.used, offered)):
            age = Signal(18, name=f"age{k}")
            with m.If(~here | i.resetting | i.stuck):
                m.d.sync += age.eq(0)
            with m.Elif(dut.tick):
                m.d.sync += age.eq(age + 1)
            was = here & i.old[k]
            old.append(was & (age + 1 >= limit))
            with m.If(here & ~i.resetting & (limit != 0)):
                m.d.comb += [
                    Assert(age <= Mux(i.old[k], limit, 0) + i.passed),
                    Assert(~i.old[k] | (age >= i.passed)),
                    Assert(age < 2 * limit),
                ]
        self.hangs, self.barred, strikes = Signal(16), Signal(), Signal(2)
        m.d.comb += [
            Assert(~i.stuck | (dut.tick & (limit != 0) & ~i.resetting & Cat(old).any())),
            Assert((limit == 0) | (i.passed < limit)),
            Assert(i.strikes == strikes),
            Assert(strikes <= 3),
            Assert((strikes != 3) | self.barred),
            Cover(self.barred & dut.answer.valid),
        ]
        answers = _moves(self.role.answer) & ~i.resetting
        with m.If(i.stuck):
            m.d.sync += [self.hangs.eq(self.hangs + 1), strikes.eq(strikes + 1)]
            with m.If(strikes == 2):
                m.d.sync += self.barred.eq(1)
        with m.If(answers):
            m.d.sync += strikes.eq(0)
        with m.If(csr.reset | ~csr.enable):
            m.d.sync += [self.barred.eq(0), strikes.eq(0)]

    def _registers(self, m):
        dut, csr = self.dut, self.dut.csr
        jobs, errors, cycles = Signal(32), Signal(16), Signal(32)
        pending, ends = Signal(2), self.to_registers
        status, length = Signal(8), Signal(20)
        answered = self.full & (ends | dut.answer.ready)
        m.d.sync += [
            jobs.eq(jobs + self.taken),
            errors.eq(errors + (answered & (self.out.status != Status.OK))),
            cycles.eq(cycles + self.used.any()),
            # What is cleared now and comes now stays.
            pending[0].eq((pending[0] & ~csr.interrupt_status_clear[0]) | ends),
            pending[1].eq(
                (pending[1] & ~csr.interrupt_status_clear[1]) | (ends & csr.interrupt_enable[0])
            ),
        ]
        with m.If(ends):
            m.d.sync += [self.busy.eq(0), status.eq(self.out.status), length.eq(self.out.length)]
        lost = pending[1] & csr.interrupt_status_clear[1] & ends & csr.interrupt_enable[0]
        resetting = Signal()
        resets = csr.reset | self.inside.stuck
        m.d.sync += resetting.eq(resets | (resetting & ~(self.gate.idle & (self.used == 0))))
        m.d.comb += [
            Assert(csr.jobs == jobs),
            Assert(csr.errors == errors),
            Assert(csr.cycles == cycles),
            Assert(csr.state == Cat(self.used.any(), resetting, self.barred)),
            Assert(csr.hangs == self.hangs),
            Assert(dut.on == (csr.enable & ~self.barred)),
            Assert(csr.interrupt_status == pending),
            Assert(dut.irq == pending[1]),
            Assert(csr.result_status == status),
            Assert(csr.result_length == length),
            Assert(self.gate.stop == resetting),
            Cover(lost),
        ]

    def _invariants(self, m):
        i, csr = self.inside, self.dut.csr
        table = i.parts["table"]
        for k, who in enumerate(self.who):
            peek = table.read_port(domain="comb")
            m.d.comb += peek.addr.eq(k)
            with m.If(self.refused if k == ROWS else self.used[k]):
                m.d.comb += Assert(Value.cast(peek.data) == who)
        m.d.comb += [
            Assert(i.fsm_bounded()),
            Assert(i.used == self.used),
            Assert(i.full == self.full),
            Assert(csr.state[1] == i.resetting),
            Assert((self.has & ~self.used) == 0),
            Assert((i.refusal != Status.OK) == self.refused),
            Assert(~self.refused | (i.refusal == self.reason)),
        ]
        with m.If(self.full):
            m.d.comb += Assert(i.answer == Value.cast(self.out))
        # The CPU has one job: it waits, or is somewhere.
        mine = [self.used[k] & (self.who[k][:4] == CPU) for k in range(ROWS)]
        mine += [self.refused & (self.who[-1][:4] == CPU), self.to_registers, self.waits]
        m.d.comb += Assert(sum(mine) == self.busy)
        with m.If(i.state("HAND")):
            m.d.comb += [Assert(~i.cpu | self.waits), Assert(i.cpu | self.dut.job.valid)]


class EmptySlotProof(Elaboratable):
    """A slot without a role answers every job ``NO_ROLE``."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        csr = dut.csr
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready, csr.enable, csr.reset)
        free(m, dut.mem.rdata.valid, dut.mem.wdone.valid)
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, dut.answer, Assert, "answer")
        level, first, second = Signal(range(4)), Signal(53), Signal(53)
        identity = Cat(*(dut.job.payload[name] for name in IDENTITY))
        theirs = Cat(*(dut.answer.payload[name] for name in IDENTITY))
        puts, gets = _moves(dut.job), _moves(dut.answer)
        m.d.comb += [
            Assume(dut.job.payload.source != CPU),
            Assert(level <= 2),
            Assert(~dut.answer.valid | (level != 0)),
            Assert(~dut.mem.cmd.valid & ~dut.mem.wdata.valid & ~dut.irq),
            Cover(gets & (level == 2)),
        ]
        m.d.sync += level.eq(level + puts - gets)
        with m.If(gets):
            m.d.sync += first.eq(second)
        with m.If(puts):
            with m.If(level - gets == 0):
                m.d.sync += first.eq(identity)
            with m.Else():
                m.d.sync += second.eq(identity)
        with m.If(dut.answer.valid):
            m.d.comb += [
                Assert(theirs == first),
                Assert(dut.answer.payload.status == Status.NO_ROLE),
                Assert(dut.answer.payload.length == 0),
            ]
        return m


PROOFS = (
    Proof(
        name="role_slot",
        core="cores.roles.slot.RoleSlot(a role with 2 jobs)",
        says="each job goes to the role once or is refused, and is answered once to who asked; "
        "registers and interrupt say what happened",
        module="trebuchet.cores.roles.slot",
        build=RoleSlotProof,
        depth=2,
        cover_depth=18,
        mutants=(
            Mutant(
                "clears_new_one",
                "pending.eq(left | 1 | fields(csr, 'interrupt_enable').done << 1)",
                "pending.eq((pending | 1 | fields(csr, 'interrupt_enable').done << 1) & left)",
                14,
            ),
            Mutant("wrong_owner", "row.eq(self.role_answer.payload.id)", "row.eq(0)", 16),
            Mutant("runs_while_off", "with m.If(~self.on):", "with m.If(0):"),
            Mutant(
                "resets_the_young", "self.stuck.eq((self.old & here).any())", "self.stuck.eq(1)", 8
            ),
            Mutant("never_bars", "self.strikes == STRIKES - 1", "self.strikes == STRIKES", 40),
            Mutant(
                "aborts_early",
                "ends.eq(self.drained & self.used.any())",
                "ends.eq(self.used.any())",
            ),
            Mutant(
                "restarts",
                "fields(csr, 'start').start & ~fields(csr, 'busy').busy",
                "fields(csr, 'start').start",
            ),
            Mutant("bad_alignment", "csr.result_addr[:4] != 0", "csr.result_addr[:3] != 0"),
        ),
        assumes="a role that answers jobs it has, once; the stream rules; no job names the CPU",
        not_proved="the gate, which has its own proof; that the role or the memory answers",
    ),
)
