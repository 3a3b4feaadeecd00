"""How the SMP framer makes a job of a message."""

from amaranth import Signal
from trebuchet.models.smp_framing import MESSAGE_HEADER

from ..roles.contract import JobKind
from .smp_registers import TYPES

__all__ = ["SmpJobs"]


class SmpJobs:
    """Methods of :class:`~trebuchet.cores.services.framer.SmpFramer`.

    ``total`` says how many bytes of the ring the job is for.
    """

    def _give_job(self, m, state, new, slot, skip):
        """What all jobs have in common; the operand begins ``skip`` bytes after the first."""
        job = self.job.payload
        offset = Signal(self.segment_log2, name=f"offset{skip}")
        m.d.comb += offset.eq(state.consumed[: self.segment_log2] + skip)
        m.d.comb += [
            new.need.eq(self.total),
            new.old.eq(0),
            new.late.eq(0),
            new.busy.eq(1),
            new.job_slot.eq(slot),
            new.slots.bit_select(slot, 1).eq(1),
        ]
        m.d.sync += [
            self.job.valid.eq(1),
            job.source.eq(self.source),
            job.session.eq(self.machine.session),
            job.base.eq(state.base << self.segment_log2),
            job.offset.eq(offset),
            job.ring_log2.eq(self.segment_log2),
            job.result.eq(self._slot_address(slot) + 16),
            job.room.eq(self.slot_bytes - 16),
        ]

    def _post_job(self, m, state, new, header, slot):
        job = self.job.payload
        self._give_job(m, state, new, slot, MESSAGE_HEADER)
        m.d.sync += [
            job.role.eq(self.choice.role),
            job.id.eq(header[64:96]),
            job.length.eq(self.total - MESSAGE_HEADER),
        ]
        if self.board:
            m.d.comb += new.job_board.eq(0)
        if self.kinds:
            m.d.sync += job.kind.eq(JobKind.DATA)
        for kind in self.kinds:
            asked = header[:8] == TYPES[kind]
            with m.If(asked):
                m.d.sync += job.kind.eq(kind)
            if kind == JobKind.STREAM:
                m.d.comb += new.job_stream.eq(asked)
                m.d.sync += job.first.eq(~state.going)
            else:
                m.d.comb += new.job_configure.eq(asked)
        self._count(m, "messages")
