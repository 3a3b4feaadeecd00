"""Proof of the tables and bounds in ``cores/services/smp_registers.py``.

Types of message, counted statuses, registers and bounds of the SMP framer are compared with
``models/smp_framing.py`` and its data sheet: what is just right is taken, what is just wrong
refused.

Not proved: anything that moves; these are constants.
"""

from ...cores.roles.contract import JobKind
from ...models.status import Status
from ..kit.proof import Mutant, Proof
from ..roles.contract import Table

__all__ = ["PROOFS"]

TYPES = {"CONFIGURE": 1, "DATA": 3, "STREAM": 4}
COUNTED = ("BAD_TYPE", "BAD_LENGTH", "TOO_LARGE", "NO_ROLE", "STOPPED", "NO_ROOM")
COUNTED += ("TIMED_OUT", "STALE")
LAST = ("aborted", "lease", "guard")


def _raises(function, *args):
    try:
        function(*args)
    except ValueError:
        return True
    return False


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
