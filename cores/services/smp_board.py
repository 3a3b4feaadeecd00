"""The board's firmware as a role: a window to the CPU for parts of configuration messages."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import StreamArbiter
from ..csr import CsrSignature, Field, Register, RegisterBlock, fields
from ..memory import ADDR_WIDTH
from ..roles.contract import ROLE_WIDTH, STATUS_WIDTH, AnswerLayout, JobLayout
from ..tcp.service import LENGTH_WIDTH, SESSION_WIDTH
from .discard import check_sessions
from .smp_registers import BOARD

__all__ = ["BOARD_BLOCK", "BoardWindow"]

BOARD_BLOCK = RegisterBlock(
    "smp_board",
    (
        Register(
            "job",
            "ro",
            4 + LENGTH_WIDTH,
            "what waits for an answer",
            fields=(
                Field("pending", 0, 1, "a part waits; the other fields and registers are its"),
                Field("header", 1, 1, "it is a message's header"),
                Field("late", 2, 1, "length 0: the rest of the message has not come in time"),
                Field("gone", 3, 1, "length 0: the connection is over; the answer is dropped"),
                Field(
                    "length", 4, LENGTH_WIDTH, "its bytes; 0, but not late or gone: FIN has come"
                ),
            ),
        ),
        Register("session", "ro", SESSION_WIDTH, "session of the message, or its place"),
        Register("address", "ro", ADDR_WIDTH, "of the first byte, in the session's ring"),
        Register(
            "next",
            "rw",
            LENGTH_WIDTH,
            "status OK: bytes of the next part, at most the largest message, 0: this was the last; "
            "another status: 1: close the connection",
        ),
        Register(
            "role",
            "rw",
            ROLE_WIDTH + 1,
            "status OK: role of the connection's messages from now on",
            fields=(
                Field("number", 0, ROLE_WIDTH, "number of the role"),
                Field("given", ROLE_WIDTH, 1, "0: it stays as it was"),
            ),
        ),
        Register(
            "answer",
            "stb",
            1 + STATUS_WIDTH,
            "answer the part with what `next` and `role` say; ignored while none waits",
            fields=(
                Field("status", 0, STATUS_WIDTH, "status"),
                Field("go", STATUS_WIDTH, 1, "must be 1"),
            ),
        ),
        Register("irq_enable", "rw", 1, "1: interrupt while a part waits"),
    ),
    "SMP configuration messages to the board's firmware",
)


class BoardWindow(wiring.Component):
    """Lies between the SMP framer and the roles; shows the CPU jobs for the board, one at a time.

    Parameters
    ----------
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.

    =========== ==== ==========================================================================
    member      dir  meaning
    =========== ==== ==========================================================================
    ``job``     In   stream of :data:`~trebuchet.cores.roles.contract.JobLayout`, of the framer
    ``answer``  Out  stream of :data:`~trebuchet.cores.roles.contract.AnswerLayout`, to it
    ``jobs``    Out  jobs for all other roles, as they came
    ``answers`` In   their answers
    ``door``    Out  a job for the board, offered in the next cycle, is taken at once
    ``csr``     In   :data:`BOARD_BLOCK`
    ``irq``     Out  level: a part waits and ``irq_enable`` is set
    =========== ==== ==========================================================================

    1. A job whose ``role`` is :data:`~.smp_registers.BOARD` is shown in the registers until the
       CPU writes ``answer``. Bits 0 to 2 of its ``id`` are the fields ``header``, ``late``,
       ``gone``. The part's bytes are in the session's ring from ``address`` on until then; the
       ring's end is a multiple of its size, where the part goes on at its start.
    2. The answer has the job's session, the status, ``next`` as its length and ``role`` as its ID.
       It does not change after the write, whatever the registers do.
    3. Jobs of other roles and their answers pass by; answers take turns.

    Latency: a job shows after 1 cycle, an answer is offered after 1 to 2; others: none, an answer 1
    cycle when both had some. Throughput: one part at a time. Back-pressure: a job for the board is
    not taken while another is shown or its answer on offer. Reset: nothing is shown. Bad input: an
    ``answer`` without a job is ignored; another job's ``source`` than 0 is lost.
    """

    def __init__(self, sessions):
        self.sessions = check_sessions(sessions)
        # No port: for proofs.
        self.offer = stream.Signature(AnswerLayout).create()
        super().__init__(
            {
                "job": In(stream.Signature(JobLayout)),
                "answer": Out(stream.Signature(AnswerLayout)),
                "jobs": Out(stream.Signature(JobLayout)),
                "answers": In(stream.Signature(AnswerLayout)),
                "door": Out(1),
                "csr": In(CsrSignature(BOARD_BLOCK)),
                "irq": Out(1),
            }
        )

    # The registers of the answer are held back from the CPU's by `posted`: the write of `answer`
    # copies them, so that the CPU may prepare the next answer.
    def elaborate(self, platform):
        m = Module()
        m.submodules.merge = merge = StreamArbiter(AnswerLayout, 2)
        wiring.connect(m, wiring.flipped(self.answers), merge.i[0])
        wiring.connect(m, merge.o, wiring.flipped(self.answer))
        job, csr, ours = self.job.payload, self.csr, self.offer
        wiring.connect(m, ours, merge.i[1])
        session = Signal(range(self.sessions))
        why, length = Signal(3), Signal(LENGTH_WIDTH)
        pending = Signal()
        mine = job.role == BOARD
        room = ~pending & ~ours.valid
        taken = self.job.valid & mine & room
        m.d.comb += [
            self.jobs.payload.eq(job),
            self.jobs.valid.eq(self.job.valid & ~mine),
            self.door.eq(room & ~(self.job.valid & mine)),
            self.job.ready.eq((mine & room) | (~mine & self.jobs.ready)),
            csr.job.eq(Cat(pending, why, length)),
            csr.session.eq(session),
            self.irq.eq(pending & csr.irq_enable),
            ours.payload.session.eq(session),
        ]
        with m.If(taken):
            m.d.sync += [
                pending.eq(1),
                session.eq(job.session),
                why.eq(job.id),
                length.eq(job.length),
                csr.address.eq(job.base | job.offset),
            ]
        with m.If(ours.ready):
            m.d.sync += ours.valid.eq(0)
        with m.If(pending & fields(csr, "answer").go):
            m.d.sync += [
                pending.eq(0),
                ours.valid.eq(1),
                ours.payload.status.eq(csr.answer),
                ours.payload.length.eq(csr.next),
                ours.payload.id.eq(csr.role),
            ]
        return m
