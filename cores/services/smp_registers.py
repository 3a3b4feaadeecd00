"""What the SMP framer is told and tells: message types, counted statuses, registers; its bounds."""

from trebuchet.models.epoch import EPOCH_BITS, NO_EPOCH
from trebuchet.models.smp_framing import TYPE_CONFIGURATION, TYPE_DATA, TYPE_STREAM
from trebuchet.models.status import Status

from ..csr import Register, RegisterBlock, counter
from ..roles.contract import NO_ROLE, ROLE_WIDTH, SOURCE_CPU, JobKind
from ..tcp.service import LENGTH_WIDTH

__all__ = [
    "BOARD",
    "COUNTED",
    "GIVES_ROLE",
    "HEADER_BYTES",
    "SMP_BLOCK",
    "TYPES",
    "check_largest",
    "check_roles",
    "check_slots",
    "check_source",
    "is_stale",
]

HEADER_BYTES = 8
#: ``role`` of jobs for the board's firmware; no message can name it.
BOARD = NO_ROLE - 1
#: Bit of the ID of its answers: the bits below are the connection's role from now on.
GIVES_ROLE = ROLE_WIDTH
#: The message type that asks for each kind of job.
TYPES = {
    JobKind.DATA: TYPE_DATA,
    JobKind.STREAM: TYPE_STREAM,
    JobKind.CONFIGURE: TYPE_CONFIGURATION,
}

#: Counted statuses; an answer with another one is sent, not counted.
COUNTED = (
    Status.BAD_TYPE,
    Status.BAD_LENGTH,
    Status.TOO_LARGE,
    Status.NO_ROLE,
    Status.STOPPED,
    Status.NO_ROOM,
    Status.TIMED_OUT,
    Status.STALE,
)

SMP_BLOCK = RegisterBlock(
    "smp",
    (
        counter("messages", "data messages given to the role"),
        counter("answers", "results posted"),
        *(
            Register(s.name.lower(), "ro", 16, f"error answers with status {s.name} (wraps)")
            for s in COUNTED
        ),
        Register("aborted", "ro", 16, "connections lost in mid-message or mid-job (wraps)"),
        Register(
            "lease", "rw", EPOCH_BITS, "epoch of the board's lease; 0: none, no message has it"
        ),
        Register("guard", "rw", 1, "1: messages with another epoch are answered STALE"),
    ),
    "SMP framer: messages to roles",
)


def is_stale(epoch, lease, guard):
    """Whether the guard refuses a message of this epoch; values of gateware or of Python."""
    return guard & ((epoch != lease) | (lease == NO_EPOCH))


def check_largest(largest, segment):
    """Return the bytes of the largest message, a segment if ``largest`` is None."""
    if largest is None:
        return segment
    if not isinstance(largest, int) or not HEADER_BYTES < largest <= segment:
        raise ValueError(
            f"Largest message must be {HEADER_BYTES + 1} to {segment} bytes, not {largest!r}"
        )
    return largest


def check_roles(roles):
    """Return the role of each TCP port as a tuple, or raise ``ValueError``."""
    roles = tuple(roles)
    if not roles or not all(isinstance(role, int) and 0 <= role <= NO_ROLE for role in roles):
        raise ValueError(f"Roles by port must be numbers 0 to {NO_ROLE}, not {roles!r}")
    return roles


def check_source(source):
    """Return the source of the framer's jobs, or raise ``ValueError``."""
    if not isinstance(source, int) or not 0 <= source < SOURCE_CPU:
        raise ValueError(f"Job source must be 0 to {SOURCE_CPU - 1}, not {source!r}")
    return source


def check_slots(base, size):
    """Raise ``ValueError`` unless result slots of ``size`` bytes can lie from ``base`` on."""
    if not isinstance(base, int) or base % 16 or not 0 <= base < 1 << 32:
        raise ValueError(f"Base of the slots must be a multiple of 16, not {base!r}")
    if size not in [1 << i for i in range(5, LENGTH_WIDTH)]:
        raise ValueError(
            f"Bytes of a slot must be a power of two from 32 to {1 << (LENGTH_WIDTH - 1)}, "
            f"not {size!r}"
        )
