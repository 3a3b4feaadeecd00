"""The role slot: what every role has around it, so that a role is only its data path."""

from amaranth import C, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from trebuchet.models.status import Status

from ..csr import CsrSignature
from ..memory import ADDR_WIDTH, MemorySignature
from ..tcp.service import LENGTH_WIDTH
from .contract import SOURCE_CPU, AnswerLayout, JobLayout, role_block

__all__ = ["RoleSlot"]

#: Jobs a role may have taken and not answered; a further one waits outside.
IN_FLIGHT = 255


class RoleSlot(wiring.Component):
    """Wraps a role: standard registers, on/off switch, jobs started by the CPU, counters.

    Parameters
    ----------
    role : Component or None
        A component with :class:`~trebuchet.cores.roles.contract.RoleSignature`; ``None``: an empty
        slot, which answers every job ``NO_ROLE``.
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
    ``mem``     Out   the role's memory port; idle in an empty slot
    ==========  ====  ===========================================================================

    1. ``enable`` is looked at when a job is taken: 0 answers it ``STOPPED``. Jobs in the role
       finish.
    2. ``start`` with bit 0 set, while ``busy`` is 0, copies the operand registers and queues one
       job; it goes before a waiting job of the network. At the end ``result_status`` and
       ``result_length`` are set, ``busy`` falls, bit 0 of ``interrupt_status`` rises, and bit 1
       if ``interrupt_enable`` is set. A start while busy is ignored.
    3. The operand of a CPU job may have any alignment but must not cross a multiple of
       1 MiB: it is handed over as an operand in a ring of that size. Otherwise, and when
       ``result_addr`` is no multiple of 16, the job is answered ``BAD_LENGTH`` by the slot.
    4. ``jobs`` counts every job taken, ``errors`` every answer that is not ``OK``, those of the
       slot included.

    Latency: 1 cycle each way. Throughput: a job or an answer every 2 cycles. Back-pressure: an
    answer that is not taken holds all further answers, and in the end jobs. Reset: forgets all;
    the role must be reset with it. Bad input: 1 and 3.
    """

    def __init__(self, role, name, width=32, tag_width=2):
        self.role = role
        mem = MemorySignature(width, tag_width)
        if role is not None and role.signature.members["mem"].signature != mem:
            raise ValueError(
                f"Memory port of role {name!r} must be {mem!r}, "
                f"not {role.signature.members['mem'].signature!r}"
            )
        own = role.signature.members.get("csr") if role is not None else None
        own = own.signature.block.registers if own is not None else ()
        self.own = own
        super().__init__(
            {
                "job": In(stream.Signature(JobLayout)),
                "answer": Out(stream.Signature(AnswerLayout)),
                "csr": In(CsrSignature(role_block(name, own))),
                "irq": Out(1),
                "mem": Out(mem),
            }
        )

    # A job goes to the role or to the slot's own answer register (`refused`); answers of the role
    # and that register meet again, and those for the CPU are turned to its registers.
    def elaborate(self, platform):
        m = Module()
        self.cpu_job = Signal(JobLayout)
        self.cpu_waits = Signal()  # the CPU's job is not yet taken
        self.cpu_bad = Signal()
        self.refused = Signal(AnswerLayout)
        self.refusing = Signal()
        self.role_job = stream.Signature(JobLayout).create()
        self.role_answer = stream.Signature(AnswerLayout).create()
        if self.role is not None:
            m.submodules.role = role = self.role
            wiring.connect(m, wiring.flipped(self.mem), role.mem)
            m.d.comb += [
                role.job.valid.eq(self.role_job.valid),
                role.job.payload.eq(self.role_job.payload),
                self.role_job.ready.eq(role.job.ready),
                self.role_answer.valid.eq(role.answer.valid),
                self.role_answer.payload.eq(role.answer.payload),
                role.answer.ready.eq(self.role_answer.ready),
            ]
            self._connect_registers(m)
        else:
            m.d.comb += [self.mem.rdata.ready.eq(1), self.mem.wdone.ready.eq(1)]
        self._take_jobs(m)
        self._give_answers(m)
        self._cpu(m)
        return m

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
        csr, role_job = self.csr, self.role_job
        cpu = Signal()  # whose job is being handed over
        chosen = Signal(JobLayout)
        status = Signal(8)
        self.taken = Signal()
        self.in_flight = Signal(range(IN_FLIGHT + 1))
        m.d.comb += chosen.eq(Mux(cpu, self.cpu_job, self.job.payload))
        absent = C(self.role is None, 1)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += cpu.eq(self.cpu_waits)
                m.d.sync += status.eq(
                    Mux(
                        absent,
                        Status.NO_ROLE,
                        Mux(
                            ~csr.enable,
                            Status.STOPPED,
                            Mux(self.cpu_waits & self.cpu_bad, Status.BAD_LENGTH, Status.OK),
                        ),
                    )
                )
                with m.If((self.cpu_waits | self.job.valid) & (self.in_flight != IN_FLIGHT)):
                    m.next = "HAND"
            with m.State("HAND"):
                with m.If(status == Status.OK):
                    m.d.comb += [
                        role_job.valid.eq(1),
                        role_job.payload.eq(chosen),
                        self.taken.eq(role_job.ready),
                    ]
                with m.Elif(~self.refusing):
                    m.d.comb += self.taken.eq(1)
                    m.d.sync += [
                        self.refusing.eq(1),
                        self.refused.source.eq(chosen.source),
                        self.refused.session.eq(chosen.session),
                        self.refused.id.eq(chosen.id),
                        self.refused.status.eq(status),
                    ]
                m.d.comb += self.job.ready.eq(self.taken & ~cpu)
                with m.If(self.taken):
                    m.next = "IDLE"
                    m.d.sync += csr.jobs.eq(csr.jobs + 1)
                    with m.If(cpu):
                        m.d.sync += self.cpu_waits.eq(0)
        entered = role_job.valid & role_job.ready
        left = self.role_answer.valid & self.role_answer.ready
        m.d.sync += self.in_flight.eq(self.in_flight + entered - left)
        with m.If(self.in_flight != 0):
            m.d.sync += csr.cycles.eq(csr.cycles + 1)

    def _give_answers(self, m):
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
        with m.If(~full):
            with m.If(self.refusing):
                m.d.sync += [answer.eq(self.refused), full.eq(1), self.refusing.eq(0)]
            with m.Else():
                m.d.comb += self.role_answer.ready.eq(1)
                m.d.sync += [answer.eq(self.role_answer.payload), full.eq(self.role_answer.valid)]
        with m.Elif(self.answer.ready | to_cpu):
            m.d.sync += full.eq(0)
            with m.If(answer.status != Status.OK):
                m.d.sync += self.csr.errors.eq(self.csr.errors + 1)

    def _cpu(self, m):
        csr, job = self.csr, self.cpu_job
        pending = Signal(2)
        m.d.comb += [csr.interrupt_status.eq(pending), self.irq.eq(pending[1])]
        left = pending & ~csr.interrupt_status_clear[:2]
        m.d.sync += pending.eq(left)
        end = Signal(LENGTH_WIDTH + 1)
        m.d.comb += end.eq(csr.operand_addr[:LENGTH_WIDTH] + csr.operand_length)
        with m.If(csr.start[0] & ~csr.busy[0]):
            m.d.sync += [
                csr.busy.eq(1),
                self.cpu_waits.eq(1),
                self.cpu_bad.eq((end > 1 << LENGTH_WIDTH) | (csr.result_addr[:4] != 0)),
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
                pending.eq(left | 1 | csr.interrupt_enable[0] << 1),
            ]
