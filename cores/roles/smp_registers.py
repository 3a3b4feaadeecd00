"""What the SMP framer is told and tells: message types, counted statuses, registers."""

from trebuchet.models.smp_framing import TYPE_CONFIGURATION, TYPE_DATA, TYPE_STREAM
from trebuchet.models.status import Status

from ..csr import Register, RegisterBlock, counter
from .contract import JobKind

__all__ = ["COUNTED", "HEADER_BYTES", "SMP_BLOCK", "TYPES"]

HEADER_BYTES = 8
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
    ),
    "SMP framer: messages on TCP port 4000",
)
