"""Proof of the tables in ``cores/roles/contract.py``.

What jobs, answers and registers look like is compared, bit by bit, with the role contract.

Not proved: anything that moves; these are constants.
"""

from amaranth.hdl import Assert, Const, Cover, Elaboratable, Signal

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
)
