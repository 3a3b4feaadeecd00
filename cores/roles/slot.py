"""The role slot: what every role has around it, so that a role is only its data path."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from trebuchet.models.status import Status

from ..csr import CsrSignature, fields
from ..memory import ADDR_WIDTH, MemorySignature
from ..tcp.service import LENGTH_WIDTH
from .contract import SOURCE_CPU, AnswerLayout, JobLayout, role_block
from .gate import MemoryGate

__all__ = ["RoleSlot"]

#: Jobs that a role may hold if it does not say (rule 4 of the contract).
OUTSTANDING = 3
#: Resets by the watchdog in a row after which a role is barred.
STRIKES = 3
IDENTITY = ("source", "session", "id")
IdentityLayout = data.StructLayout({name: JobLayout[name].shape for name in IDENTITY})


class RoleSlot(wiring.Component):
    """Wraps a role: standard registers, life cycle, jobs started by the CPU, counters.

    Parameters
    ----------
    role : Component or None
        A component with :class:`~trebuchet.cores.roles.contract.RoleSignature`; ``None``: an empty
        slot, which answers every job ``NO_ROLE``. Its attribute ``outstanding``, if it has one, is
        how many jobs it may hold; ``prompt_writes`` says that its memory port is prompt (see
        ``cores/memory_arbiter.py``), which the slot's ``prompt`` repeats; without it it is not.
    name : str
        Name of the slot's register block.
    width, tag_width : int
        Data path and tag bits of the memory port, in bits; those of the role.

    ==========  ====  ===========================================================================
    member      dir   meaning
    ==========  ====  ===========================================================================
    ``job``     In    stream of :data:`~trebuchet.cores.roles.contract.JobLayout`
    ``answer``  Out   stream of :data:`~trebuchet.cores.roles.contract.AnswerLayout`
    ``csr``     In    :func:`~trebuchet.cores.roles.contract.role_block`
    ``irq``     Out   1 while bit 1 of ``interrupt_status`` is set
    ``tick``    In    1 for one cycle every millisecond of protocol time
    ``on``      Out   jobs are run: ``enable``, and the watchdog has not barred the role
    ``mem``     Out   the role's memory port behind a ``MemoryGate``; idle in an empty slot
    ==========  ====  ===========================================================================

    1. ``on`` is looked at when a job is taken: 0 answers it ``STOPPED``. Jobs in the role
       finish: it is off when ``state.active`` is 0, too.
    2. Writing 1 to ``reset`` resets the role, and nothing else: its commands and data on offer are
       taken first, what the memory still owes is awaited, then each job in the role is answered
       ``ABORTED``. ``state.resetting`` is 1 until then, and no job is taken. Switched off or on, it
       stays so. This takes as long as the memory does, whatever the role does.
    3. ``start`` with bit 0 set, while ``busy`` is 0, copies the operand registers and queues one
       job; it goes before a waiting job of the network. At the end ``result_status`` and
       ``result_length`` are set, ``busy`` falls, bit 0 of ``interrupt_status`` rises, and bit 1
       if ``interrupt_enable`` is set. A start while busy is ignored.
    4. The operand of a CPU job may have any alignment and is handed over as an operand in a ring of
       1 MiB: one that crosses a multiple of 1 MiB goes on at the one before. When ``result_addr``
       is no multiple of 16, the job is answered ``BAD_LENGTH`` by the slot.
    5. ``jobs`` counts every job taken, ``errors`` every answer that is not ``OK``, those of the
       slot included.
    6. The ``id`` that the role sees is a number of the slot's own; the answer has the job's again.

    7. A job that is in the role, or on offer to it, for longer than ``watchdog`` ticks, at most
       twice as long, resets the role as ``reset`` does; ``hangs`` counts it. After three such
       resets without an answer of the role's between them it is barred, as if it were off, until
       ``reset`` is written or ``enable`` is 0.

    ``verilog_files`` are those of the role (``cores/roles/verilog.py``).

    Latency: 1 cycle each way. Throughput: a job or an answer every 2 cycles. Back-pressure: an
    answer that is not taken holds all further answers, and in the end jobs; a role that holds
    ``outstanding`` jobs gets no more. Reset: forgets all, with the role. Bad input: 1, 4; a role
    that answers a job twice, or in the cycle in which it takes it, is not caught.
    """

    def __init__(self, role, name, width=32, tag_width=2):
        self.role, self.width, self.tag_width = role, width, tag_width
        mem = MemorySignature(width, tag_width)
        own = ()
        if role is not None:
            members = role.signature.members
            if members["mem"].signature != mem:
                raise ValueError(
                    f"Memory port of role {name!r} must be {mem!r}, "
                    f"not {members['mem'].signature!r}"
                )
            if "csr" in members:
                own = members["csr"].signature.block.registers
        self.own = own
        self.verilog_files = getattr(role, "verilog_files", ())
        self.prompt = role is None or getattr(role, "prompt_writes", False)
        self.outstanding = getattr(role, "outstanding", OUTSTANDING)
        if not isinstance(self.outstanding, int) or not 1 <= self.outstanding < 256:
            raise ValueError(
                f"Attribute 'outstanding' of role {name!r} must be 1 to 255, "
                f"not {self.outstanding!r}"
            )
        self.block = role_block(name, own, f"the slot of role {name!r}")
        super().__init__(
            {
                "job": In(stream.Signature(JobLayout)),
                "answer": Out(stream.Signature(AnswerLayout)),
                "csr": In(CsrSignature(self.block)),
                "irq": Out(1),
                "tick": In(1),
                "on": Out(1),
                "mem": Out(mem),
            }
        )

    # Who asked lies in a table, and the role gets its row as `id`: so whatever the answer is, the
    # role's, a refusal or ABORTED, it says who asked from there. Row `outstanding` is for refusals,
    # which need no room in the role. Answers for the CPU are turned to its registers.
    def elaborate(self, platform):
        m = Module()
        n = self.outstanding
        m.submodules.table = table = Memory(shape=IdentityLayout, depth=n + 1, init=[])
        self.table_write = table.write_port()
        self.table_read = table.read_port(domain="comb")
        self.used = Signal(n)  # rows of jobs in the role
        self.stuck = Signal()  # the watchdog resets the role
        self.barred = Signal()
        self.resetting = Signal()
        self.drained = Signal()  # the role is in reset and the memory owes nothing
        self.cpu_job = Signal(JobLayout)
        self.cpu_waits = Signal()  # the CPU's job is not yet taken
        self.cpu_bad = Signal()
        self.refusal = Signal(8)  # status of the job in the refusals' row; OK: there is none
        self.role_job = stream.Signature(JobLayout).create()
        self.role_answer = stream.Signature(AnswerLayout).create()
        if self.role is not None:
            self._wrap_role(m)
            self._connect_registers(m)
        else:
            m.d.comb += [self.mem.rdata.ready.eq(1), self.mem.wdone.ready.eq(1)]
            m.d.comb += self.drained.eq(1)
        self._take_jobs(m)
        self._give_answers(m)
        self._cpu(m)
        self._watch(m)
        m.d.comb += self.csr.state.eq(Cat(self.used.any(), self.resetting, self.barred))
        return m

    def _wrap_role(self, m):
        role = self.role
        m.submodules.gate = gate = MemoryGate(self.width, self.tag_width)
        m.submodules.role = ResetInserter(gate.shut)(role)
        wiring.connect(m, role.mem, gate.i)
        wiring.connect(m, gate.o, wiring.flipped(self.mem))
        m.d.comb += [
            gate.stop.eq(self.resetting),
            self.drained.eq(gate.idle),
            role.job.valid.eq(self.role_job.valid),
            role.job.payload.eq(self.role_job.payload),
            self.role_job.ready.eq(role.job.ready),
            self.role_answer.valid.eq(role.answer.valid),
            self.role_answer.payload.eq(role.answer.payload),
            role.answer.ready.eq(self.role_answer.ready),
        ]

    def _connect_registers(self, m):
        for register in self.own:
            inner = getattr(self.role.csr, register.name)
            outer = getattr(self.csr, register.name)
            if register.access in ("ro", "w1c"):
                m.d.comb += outer.eq(inner)
            else:
                m.d.comb += inner.eq(outer)
            if register.access == "w1c":
                clear = register.name + "_clear"
                m.d.comb += getattr(self.role.csr, clear).eq(getattr(self.csr, clear))

    def _take_jobs(self, m):
        csr, role_job, write = self.csr, self.role_job, self.table_write
        n = self.outstanding
        cpu = Signal()  # whose job is being handed over
        chosen = Signal(JobLayout)
        status = Signal(8)
        row, free = Signal(range(n + 1)), Signal(range(n + 1))
        taken = Signal()
        for k in reversed(range(n)):
            with m.If(~self.used[k]):
                m.d.comb += free.eq(k)
        m.d.comb += [
            chosen.eq(Mux(cpu, self.cpu_job, self.job.payload)),
            role_job.payload.eq(chosen),
            role_job.payload.id.eq(row),
            write.addr.eq(row),
            *(write.data[name].eq(chosen[name]) for name in IDENTITY),
            self.job.ready.eq(taken & ~cpu),
        ]
        next_status = Signal(8)
        if self.role is None:
            m.d.comb += next_status.eq(Status.NO_ROLE)
        else:
            with m.If(~self.on):
                m.d.comb += next_status.eq(Status.STOPPED)
            with m.Elif(self.cpu_waits & self.cpu_bad):
                m.d.comb += next_status.eq(Status.BAD_LENGTH)
        fits = ~self.used.all() | (next_status != Status.OK)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [
                    cpu.eq(self.cpu_waits),
                    status.eq(next_status),
                    row.eq(Mux(next_status == Status.OK, free, n)),
                ]
                with m.If((self.cpu_waits | self.job.valid) & fits & ~self.resetting):
                    m.next = "HAND"
            with m.State("HAND"):
                m.d.comb += write.en.eq(taken)
                with m.If(self.resetting):
                    m.next = "IDLE"
                with m.Elif(status == Status.OK):
                    m.d.comb += [role_job.valid.eq(1), taken.eq(role_job.ready)]
                    with m.If(taken):
                        m.d.sync += self.used.bit_select(row, 1).eq(1)
                with m.Elif(self.refusal == Status.OK):
                    m.d.comb += taken.eq(1)
                    m.d.sync += self.refusal.eq(status)
                with m.If(taken):
                    m.next = "IDLE"
                    m.d.sync += csr.jobs.eq(csr.jobs + 1)
                    with m.If(cpu):
                        m.d.sync += self.cpu_waits.eq(0)
        with m.If(self.used.any()):
            m.d.sync += csr.cycles.eq(csr.cycles + 1)

    def _give_answers(self, m):
        n = self.outstanding
        answer = Signal(AnswerLayout)
        self.got = Signal(AnswerLayout)  # an answer that the CPU's registers take
        self.got_valid = Signal()
        full = Signal()
        to_cpu = answer.source == SOURCE_CPU
        m.d.comb += [
            self.got.eq(answer),
            self.got_valid.eq(full & to_cpu),
            self.answer.payload.eq(answer),
            self.answer.valid.eq(full & ~to_cpu),
        ]
        row, ends = Signal(range(n + 1)), Signal()  # the row, and that a job in the role ends
        refuses = self.refusal != Status.OK
        m.d.comb += [self.table_read.addr.eq(row), row.eq(self.role_answer.payload.id)]
        with m.If(self.resetting):
            for k in reversed(range(n)):
                with m.If(self.used[k]):
                    m.d.comb += row.eq(k)
        with m.If(refuses):
            m.d.comb += row.eq(n)
        with m.If(~full):
            m.d.sync += [answer[name].eq(self.table_read.data[name]) for name in IDENTITY]
            m.d.sync += [full.eq(refuses | ends), answer.length.eq(0)]
            with m.If(refuses):
                m.d.sync += [answer.status.eq(self.refusal), self.refusal.eq(Status.OK)]
            with m.Elif(self.resetting):
                m.d.comb += ends.eq(self.drained & self.used.any())
                m.d.sync += answer.status.eq(Status.ABORTED)
            with m.Else():
                m.d.comb += [self.role_answer.ready.eq(1), ends.eq(self.role_answer.valid)]
                m.d.sync += [
                    answer.status.eq(self.role_answer.payload.status),
                    answer.length.eq(self.role_answer.payload.length),
                ]
        with m.Elif(self.answer.ready | to_cpu):
            m.d.sync += full.eq(0)
            with m.If(answer.status != Status.OK):
                m.d.sync += self.csr.errors.eq(self.csr.errors + 1)
        with m.If(ends):
            m.d.sync += self.used.bit_select(row, 1).eq(0)
        with m.If(self.csr.reset | self.stuck):
            m.d.sync += self.resetting.eq(1)
        with m.Elif(self.drained & ~self.used.any()):
            m.d.sync += self.resetting.eq(0)

    # Time is measured once for all jobs: what was there when the last period began, and still is
    # when it ends, is too old. A row that is free in between is young again.
    def _watch(self, m):
        csr, n = self.csr, self.outstanding
        passed = Signal(16)
        self.old = Signal(n + 1)  # jobs from before this period; the last: one on offer
        self.strikes = Signal(2)  # resets without an answer between them
        offered = self.role_job.valid & ~self.role_job.ready
        here = Cat(self.used, offered)
        answered = self.role_answer.valid & self.role_answer.ready
        m.d.comb += self.on.eq(csr.enable & ~self.barred)
        m.d.sync += self.old.eq(self.old & here)
        with m.If((csr.watchdog == 0) | self.resetting | (here == 0)):
            m.d.sync += [passed.eq(0), self.old.eq(0)]
        with m.Elif(self.tick):
            m.d.sync += passed.eq(passed + 1)
            with m.If(passed + 1 >= csr.watchdog):
                m.d.sync += [passed.eq(0), self.old.eq(here)]
                m.d.comb += self.stuck.eq((self.old & here).any())
        with m.If(self.stuck):
            m.d.sync += [csr.hangs.eq(csr.hangs + 1), self.strikes.eq(self.strikes + 1)]
            with m.If(self.strikes == STRIKES - 1):
                m.d.sync += self.barred.eq(1)
        with m.If(answered & ~self.resetting):
            m.d.sync += self.strikes.eq(0)
        with m.If(csr.reset | ~csr.enable):
            m.d.sync += [self.barred.eq(0), self.strikes.eq(0)]

    def _cpu(self, m):
        csr, job = self.csr, self.cpu_job
        pending = Signal(2)
        m.d.comb += [csr.interrupt_status.eq(pending), self.irq.eq(pending[1])]
        left = pending & ~csr.interrupt_status_clear[:2]
        m.d.sync += pending.eq(left)
        with m.If(fields(csr, "start").start & ~fields(csr, "busy").busy):
            m.d.sync += [
                csr.busy.eq(1),
                self.cpu_waits.eq(1),
                self.cpu_bad.eq(csr.result_addr[:4] != 0),
                job.source.eq(SOURCE_CPU),
                job.base.eq(csr.operand_addr & -(1 << LENGTH_WIDTH) & ((1 << ADDR_WIDTH) - 1)),
                job.offset.eq(csr.operand_addr),
                job.ring_log2.eq(LENGTH_WIDTH),
                job.length.eq(csr.operand_length),
                job.result.eq(csr.result_addr),
                job.room.eq(csr.result_room),
            ]
        with m.If(self.got_valid):
            m.d.sync += [
                csr.busy.eq(0),
                csr.result_status.eq(self.got.status),
                csr.result_length.eq(self.got.length),
                pending.eq(left | 1 | fields(csr, "interrupt_enable").done << 1),
            ]
