"""All roles of a shell, each in its slots, behind one job and one answer port."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature
from ..memory import MemorySignature
from .contract import AnswerLayout, JobLayout
from .demux import RoleDemux
from .dispatch import Dispatcher

__all__ = ["RoleArray"]


class RoleArray(wiring.Component):
    """Roles by their numbers, and instances of each.

    Parameters
    ----------
    roles : sequence of (tuple of JobKind, sequence of RoleSlot)
        For each role the kinds of job that it takes besides ``DATA``, and the slots of its
        instances.
    width, tag_width : int
        Data path and tag bits of the slots' memory ports, in bits.

    ==============  ==========  ==================================================================
    member          dir         meaning
    ==============  ==========  ==================================================================
    ``job``         In          stream of :data:`~trebuchet.cores.roles.contract.JobLayout`
    ``answer``      Out         stream of :data:`~trebuchet.cores.roles.contract.AnswerLayout`
    ``doors``       Out         bit k: role k takes a job at once
    ``mems``        Out, array  memory ports of all slots, in their order
    ``irq``         Out         1 while a slot wants attention
    ``tick``        In          1 for one cycle every millisecond of protocol time
    ``csr_NAME``    In          registers of the slot of this name
    ==============  ==========  ==================================================================

    Jobs go by :class:`~.demux.RoleDemux` to their roles, and there to an instance that is idle and
    switched on (:class:`~.dispatch.Dispatcher`); to one instance alone, which answers ``STOPPED``
    itself, directly. Reset: of all of them.
    """

    def __init__(self, roles, width=32, tag_width=2):
        self.roles = tuple((tuple(kinds), tuple(slots)) for kinds, slots in roles)
        self.slots = [slot for _, slots in self.roles for slot in slots]
        self.verilog_files = tuple(
            dict.fromkeys(path for slot in self.slots for path in slot.verilog_files)
        )
        #: Register blocks by name.
        self.blocks = {slot.block.name: slot.block for slot in self.slots}
        mem = MemorySignature(width, tag_width)
        super().__init__(
            {
                "job": In(stream.Signature(JobLayout)),
                "answer": Out(stream.Signature(AnswerLayout)),
                "doors": Out(len(self.roles)),
                "mems": Out(mem).array(len(self.slots)),
                "irq": Out(1),
                "tick": In(1),
                **{f"csr_{name}": In(CsrSignature(b)) for name, b in self.blocks.items()},
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.demux = demux = RoleDemux([kinds for kinds, _ in self.roles])
        wiring.connect(m, wiring.flipped(self.job), demux.job)
        wiring.connect(m, demux.answer, wiring.flipped(self.answer))
        m.d.comb += self.doors.eq(demux.doors)
        for k, (_, slots) in enumerate(self.roles):
            self._instances(m, k, slots, demux.jobs[k], demux.answers[k])
        irq = 0
        for k, slot in enumerate(self.slots):
            name = slot.block.name
            m.submodules[name] = slot
            wiring.connect(m, wiring.flipped(getattr(self, f"csr_{name}")), slot.csr)
            wiring.connect(m, slot.mem, wiring.flipped(self.mems[k]))
            m.d.comb += slot.tick.eq(self.tick)
            irq |= slot.irq
        m.d.comb += self.irq.eq(irq)
        return m

    def _instances(self, m, k, slots, job, answer):
        """Role k's jobs to its slots."""
        if len(slots) == 1:
            wiring.connect(m, job, slots[0].job)
            wiring.connect(m, slots[0].answer, answer)
            return
        depth = slots[0].outstanding
        m.submodules[f"dispatcher{k}"] = share = Dispatcher(len(slots), depth)
        wiring.connect(m, job, share.job)
        wiring.connect(m, share.answer, answer)
        for i, slot in enumerate(slots):
            wiring.connect(m, share.jobs[i], slot.job)
            wiring.connect(m, slot.answer, share.answers[i])
            m.d.comb += share.enable[i].eq(slot.on)
