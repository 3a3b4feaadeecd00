"""The role contract: the ports by which any role plugs into the shell.

A role has three ports besides clock and reset (directions as the role sees them):

==========  ====  ================================================================================
member      dir   meaning
==========  ====  ================================================================================
``job``     In    stream of :data:`JobLayout`: a control message that asks for one piece of work
``answer``  Out   stream of :data:`AnswerLayout`: one for each job, in any order
``mem``     Out   :class:`~trebuchet.cores.memory.MemorySignature`: bulk data
``csr``     In    :class:`~trebuchet.cores.csr.CsrSignature` of :func:`role_block`
==========  ====  ================================================================================

**A job** says where the operand's bytes lie and where the result may go:

=============  =====  =======================================================================
field          width  meaning
=============  =====  =======================================================================
``kind``       2      what is asked for, a :class:`JobKind`
``first``      1      for ``STREAM``: the record begins here. 1 as long as no stream message of
                      the connection was answered ``OK``, and again after any that was not
``role``       5      which role it is for: its number in the shell's plan, or
                      :data:`NO_ROLE`; of no concern to the role itself
``source``     4      who asked; the answer goes back there
``session``    17     the session it belongs to, or its place; opaque to the role
``id``         32     which job this is, opaque to the role
``base``       32     start of the ring the operand lies in, a multiple of the ring's size
``offset``     20     where in the ring the operand begins
``ring_log2``  5      the ring's size is ``2**ring_log2`` bytes: byte i of the operand is at
                      ``base + (offset + i) mod 2**ring_log2``
``length``     20     bytes of operand, >= 0
``result``     32     where the result goes, a multiple of 16
``room``       20     bytes the result may have
=============  =====  =======================================================================

**An answer** carries ``source``, ``session`` and ``id`` of its job, a ``status``
(:class:`trebuchet.models.status.Status`) and the ``length`` of the result (0 unless ``OK``).

Rules:

1. Each accepted job is answered exactly once, from the cycle after it was taken on, whatever its
   contents, within a bound the role states. Wrong input is answered with the status that names
   the reason.
2. A role reads the operand only between taking the job and offering its answer. When the answer
   is offered, the result is in memory (every ``wdone`` has come).
3. A role writes nothing outside ``result`` .. ``result + room`` and the scratch memory that the
   shell sets aside for it.
4. A role may take further jobs before it answers earlier ones. One that holds more than three has
   an attribute ``outstanding``, the number of jobs it may hold: the slot gives it no more. One
   whose results can be longer than 2 KiB has a static method ``largest_result(operand)``, the
   bytes of the longest for operands of at most ``operand`` bytes: the shell makes that room.
   One that has all data of a write burst when it offers the command has an attribute
   ``prompt_writes = True`` (:class:`~trebuchet.cores.memory_arbiter.MemoryArbiter`), as those have
   that write through ``ResultWriter`` alone; for any other the shell has a buffer.
5. Writing 1 to ``start`` runs one job from the CSR operand registers (``source`` =
   :data:`SOURCE_CPU`) when ``busy`` is 0; ``done`` says it is finished. The role *slot*
   (``cores/roles/slot.py``) does this and the on/off switch for every role alike.
6. ``DATA`` jobs are independent of each other; every role knows them. ``STREAM`` jobs of a session
   are parts of one record, in order, one at a time; ``CONFIGURE`` changes the role itself. They
   come only where shell and role were built for them.

The CSR block begins with the standard layout of distributed-fpga-framework, table 3.1: ``busy`` at
0x00, ``start`` at 0x08, ``interrupt_enable`` at 0x10, ``interrupt_status`` at 0x18 (bit 0 ``done``,
bit 1 ``interrupt_status``, write 1 to clear); then the slot's registers, then the role's own.
"""

from amaranth import unsigned
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, Field, Register, RegisterBlock, counter
from ..memory import ADDR_WIDTH, MemorySignature
from ..tcp.service import LENGTH_WIDTH, SESSION_WIDTH

__all__ = [
    "ID_WIDTH",
    "SOURCE_CPU",
    "SOURCE_WIDTH",
    "WATCHDOG",
    "STATUS_WIDTH",
    "AnswerLayout",
    "JobKind",
    "JobLayout",
    "NO_ROLE",
    "ROLE_WIDTH",
    "RoleSignature",
    "check_kinds",
    "role_block",
]

ROLE_WIDTH = 5
#: ``role`` of a job that is for no role of the shell.
NO_ROLE = (1 << ROLE_WIDTH) - 1
SOURCE_WIDTH = 4
#: ``source`` of a job that the CPU started through the CSRs.
SOURCE_CPU = 15
ID_WIDTH = 32
#: Ticks that a job may take before the role is reset, after start.
WATCHDOG = 10_000
STATUS_WIDTH = 8


class JobKind(enum.Enum, shape=2):
    """What a job asks for (rule 6)."""

    DATA = 0
    STREAM = 1
    CONFIGURE = 2


def check_kinds(kinds):
    """Return the kinds of job that a role takes besides ``DATA``, or raise ``ValueError``."""
    for kind in kinds:
        if kind not in (JobKind.STREAM, JobKind.CONFIGURE):
            raise ValueError(f"Kinds must be STREAM or CONFIGURE, not {kind!r}")
    return tuple(kinds)


JobLayout = data.StructLayout(
    {
        "kind": JobKind,
        "first": unsigned(1),
        "role": unsigned(ROLE_WIDTH),
        "source": unsigned(SOURCE_WIDTH),
        "session": unsigned(SESSION_WIDTH),
        "id": unsigned(ID_WIDTH),
        "base": unsigned(ADDR_WIDTH),
        "offset": unsigned(LENGTH_WIDTH),
        "ring_log2": unsigned(5),
        "length": unsigned(LENGTH_WIDTH),
        "result": unsigned(ADDR_WIDTH),
        "room": unsigned(LENGTH_WIDTH),
    }
)

AnswerLayout = data.StructLayout(
    {
        "source": unsigned(SOURCE_WIDTH),
        "session": unsigned(SESSION_WIDTH),
        "id": unsigned(ID_WIDTH),
        "status": unsigned(STATUS_WIDTH),
        "length": unsigned(LENGTH_WIDTH),
    }
)


def role_block(name, registers=(), description=""):
    """Register block of a role: the standard layout, then the slot's, then ``registers``."""
    standard = (
        Register(
            "busy",
            "ro",
            64,
            "1 while a job that the CPU started is running",
            0,
            (Field("busy", 0),),
        ),
        Register(
            "start",
            "stb",
            64,
            "write 1: run the job in the operand registers",
            0,
            (Field("start", 0),),
        ),
        Register(
            "interrupt_enable",
            "rw",
            64,
            "raise the interrupt when done",
            fields=(Field("done", 0),),
        ),
        Register(
            "interrupt_status",
            "w1c",
            64,
            "completion of a job that the CPU started",
            fields=(Field("done", 0), Field("interrupt_status", 1)),
        ),
        Register("enable", "rw", 1, "1: jobs are run; 0: they are answered STOPPED", reset=1),
        Register("reset", "stb", 1, "write 1: reset the role; its jobs are answered ABORTED"),
        Register(
            "state",
            "ro",
            3,
            "of the role's life cycle",
            fields=(
                Field("active", 0, 1, "a job is in the role"),
                Field("resetting", 1, 1, "the role is being reset"),
                Field("barred", 2, 1, "the watchdog has switched it off; until it is reset or off"),
            ),
        ),
        Register(
            "watchdog",
            "rw",
            16,
            "ticks that a job may take, at most twice as many; then the role is reset; 0: any time",
            reset=WATCHDOG,
        ),
        Register("hangs", "ro", 16, "times that the watchdog has reset the role (wraps)"),
        Register("operand_addr", "rw", 32, "address of the operand (linear)"),
        Register("operand_length", "rw", LENGTH_WIDTH, "bytes of operand"),
        Register("result_addr", "rw", 32, "address for the result, a multiple of 16"),
        Register("result_room", "rw", LENGTH_WIDTH, "bytes the result may have"),
        Register("result_length", "ro", LENGTH_WIDTH, "bytes of result of the last CPU job"),
        Register("result_status", "ro", STATUS_WIDTH, "status of the last CPU job"),
        counter("jobs", "jobs taken"),
        Register("errors", "ro", 16, "jobs answered with another status than OK (wraps)"),
        counter("cycles", "clock cycles in which a job was in the role"),
    )
    return RegisterBlock(name, standard + tuple(registers), description)


class RoleSignature(wiring.Signature):
    """Signature of a role, from the role's side.

    Parameters
    ----------
    block : RegisterBlock or None
        The role's own registers, without the standard ones (the slot has those); ``None``
        for a role that has none.
    width : int
        Data path of the memory port, in bits.
    """

    def __init__(self, block=None, width=32, tag_width=2):
        self.block = block
        members = {
            "job": In(stream.Signature(JobLayout)),
            "answer": Out(stream.Signature(AnswerLayout)),
            "mem": Out(MemorySignature(width, tag_width)),
        }
        if block is not None:
            members["csr"] = In(CsrSignature(block))
        super().__init__(members)
