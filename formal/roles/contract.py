"""Proofs of tables that cores share: ``cores/roles/contract.py`` and ``smp_registers.py``.

What jobs, answers and registers look like is compared, bit by bit, with the tables of the role
contract; types of message, counted statuses and bounds of the SMP framer with
``models/smp_framing.py`` and its data sheet: what is just right is taken, what is just wrong
refused.

Not proved: anything that moves; these are constants.
"""

from amaranth.hdl import Assert, Const, Cover, Elaboratable, Signal

from ...cores.roles.contract import JobKind
from ...models.status import Status
from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS"]

JOB = {
    "kind": 2,
    "first": 1,
    "role": 5,
    "source": 4,
    "session": 17,
    "id": 32,
    "base": 32,
    "offset": 20,
    "ring_log2": 5,
    "length": 20,
    "result": 32,
    "room": 20,
}
ANSWER = {"source": 4, "session": 17, "id": 32, "status": 8, "length": 20}
KINDS = {"DATA": 0, "STREAM": 1, "CONFIGURE": 2}
#: Kind of access and bits of each register.
REGISTERS = {
    "busy": ("ro", 64),
    "start": ("stb", 64),
    "interrupt_enable": ("rw", 64),
    "interrupt_status": ("w1c", 64),
    "enable": ("rw", 1),
    "reset": ("stb", 1),
    "state": ("ro", 3),
    "watchdog": ("rw", 16),
    "hangs": ("ro", 16),
    "operand_addr": ("rw", 32),
    "operand_length": ("rw", 20),
    "result_addr": ("rw", 32),
    "result_room": ("rw", 20),
    "result_length": ("ro", 20),
    "result_status": ("ro", 8),
    "jobs": ("ro", 32),
    "errors": ("ro", 16),
    "cycles": ("ro", 32),
}
TYPES = {"CONFIGURE": 1, "DATA": 3, "STREAM": 4}
COUNTED = ("BAD_TYPE", "BAD_LENGTH", "TOO_LARGE", "NO_ROLE", "STOPPED", "NO_ROOM")
COUNTED += ("TIMED_OUT", "STALE")
LAST = ("aborted", "lease", "guard")


class Table(Elaboratable):
    """Facts that must hold, each an assertion of its own."""

    def __init__(self, facts):
        self.facts = facts

    def elaborate(self, platform):
        m = new_harness()
        ran = Signal()
        m.d.sync += ran.eq(1)
        m.d.comb += [Assert(Const(bool(fact), 1)) for fact in self.facts]
        m.d.comb += Cover(ran)
        return m


def _bits(layout):
    return {name: layout[name].width for name in layout.members}


def _raises(function, *args):
    try:
        function(*args)
    except ValueError:
        return True
    return False


def _contract(cores):
    block = cores.role_block("any")
    fields = {r.name: {f.name: f.offset for f in r.fields} for r in block.registers}
    return (
        _bits(cores.JobLayout) == JOB,
        list(cores.JobLayout.members) == list(JOB),
        _bits(cores.AnswerLayout) == ANSWER,
        list(cores.AnswerLayout.members) == list(ANSWER),
        {kind.name: kind.value for kind in cores.JobKind} == KINDS,
        {r.name: (r.access, r.width) for r in block.registers} == REGISTERS,
        [r.name for r in block.registers] == list(REGISTERS),
        fields["interrupt_status"] == {"done": 0, "interrupt_status": 1},
        fields["state"] == {"active": 0, "resetting": 1, "barred": 2},
        {r.name: r.reset for r in block.registers if r.reset} == {"enable": 1, "watchdog": 10_000},
        cores.SOURCE_CPU == 15,
        cores.NO_ROLE == 31,
    )


def _smp(cores):
    names = [r.name for r in cores.SMP_BLOCK.registers]
    widths = [r.width for r in cores.SMP_BLOCK.registers]
    largest, slots = cores.check_largest, cores.check_slots
    return (
        cores.HEADER_BYTES == 8,
        {JobKind[name]: value for name, value in TYPES.items()} == cores.TYPES,
        tuple(Status[name] for name in COUNTED) == cores.COUNTED,
        names == ["messages", "answers", *(name.lower() for name in COUNTED), *LAST],
        widths == [32, 32, *(16 for _ in COUNTED), 16, 16, 1],
        [r.reset for r in cores.SMP_BLOCK.registers if r.access == "rw"] == [0, 0],
        largest(None, 256) == 256,
        largest(9, 256) == 9,
        largest(256, 256) == 256,
        _raises(largest, 8, 256),
        _raises(largest, 257, 256),
        not _raises(slots, 16, 32),
        not _raises(slots, (1 << 32) - 16, 1 << 19),
        _raises(slots, 8, 32),
        _raises(slots, 1 << 32, 32),
        _raises(slots, 16, 16),
        _raises(slots, 16, 48),
        _raises(slots, 16, 1 << 20),
    )


PROOFS = (
    Proof(
        name="role_contract",
        core="cores.roles.contract: layouts and standard registers",
        says="jobs, answers and registers have the fields, bits, order and resets of the contract",
        module="trebuchet.cores.roles.contract",
        build=lambda cores: Table(_contract(cores)),
        depth=1,
        cover_depth=3,
        mutants=(
            Mutant("narrow_ring", '"ring_log2": unsigned(5)', '"ring_log2": unsigned(4)'),
            Mutant(
                "off_after_reset",
                'Register("enable", "rw", 1, "1: jobs are run; 0: they are answered '
                'STOPPED", reset=1)',
                'Register("enable", "rw", 1, "1: jobs are run; 0: they are answered STOPPED")',
            ),
            Mutant(
                "swapped_bits",
                'Field("done", 0), Field("interrupt_status", 1)',
                'Field("done", 1), Field("interrupt_status", 0)',
            ),
        ),
        assumes="nothing",
        not_proved="anything that moves",
    ),
    Proof(
        name="smp_tables",
        core="cores.services.smp_registers: types, counted statuses, bounds",
        says="types, counters and bounds are those of SMP; what is just out of bounds is refused",
        module="trebuchet.cores.services.smp_registers",
        build=lambda cores: Table(_smp(cores)),
        depth=1,
        cover_depth=3,
        mutants=(
            Mutant(
                "header_alone",
                "HEADER_BYTES < largest <= segment",
                "HEADER_BYTES <= largest <= segment",
            ),
            Mutant("any_base", "base % 16", "base % 8"),
            Mutant("not_counted", "    Status.STOPPED,\n", ""),
            Mutant("stale_not_counted", "    Status.STALE,\n", ""),
        ),
        assumes="nothing",
        not_proved="anything that moves",
    ),
)
