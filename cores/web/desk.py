"""Requests that the web service hands to firmware, and what firmware answers."""

from amaranth import Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...models.http.limits import LIMITS
from ..buffers import StreamFifo
from ..csr import CsrSignature, Field, Register, RegisterBlock, fields
from ..memory import ADDR_WIDTH
from ..tcp.service import LENGTH_WIDTH, SESSION_WIDTH
from .answer import Kind, answer_layout

__all__ = ["BUFFERS", "DEPTH", "DESK_REGISTERS", "Desk", "handed_layout", "reply_layout"]

#: Requests that wait for firmware; beyond them they are refused.
DEPTH = 16
#: Memory for headers that firmware writes: so many are being sent at a time.
BUFFERS = 8

DESK_REGISTERS = (
    Register("slow", "rw", 1, "1: firmware answers what gateware does not, and is interrupted"),
    Register(
        "request",
        "ro",
        32,
        "the oldest request that waits for firmware",
        fields=(
            Field("pending", 0, 1, "there is one"),
            Field("first", 1, 1, "it is a head; else content of the session's last one"),
            Field("length", 8, 24, "its bytes"),
        ),
    ),
    Register("request_session", "ro", SESSION_WIDTH, "its session"),
    Register("request_address", "ro", ADDR_WIDTH, "where it begins, in the session's ring"),
    Register("reply_address", "rw", ADDR_WIDTH, "first part of the response"),
    Register("reply_length", "rw", LENGTH_WIDTH, "its bytes"),
    Register("reply_rest_address", "rw", ADDR_WIDTH, "second part, in the image"),
    Register("reply_rest", "rw", 32, "its bytes; or 0"),
    Register(
        "reply",
        "stb",
        32,
        "answer the request",
        fields=(
            Field("go", 0, 1, "must be 1"),
            Field("close", 1, 1, "close the connection behind the response"),
            Field("more", 2, 1, "no response: show further bytes of the session when they come"),
            Field("part", 3, 1, "with more: the response, but further parts of it follow"),
            Field("buffer", 4, 4, "number of the buffer that the first part lies in, 0: none"),
            Field("consumed", 8, 24, "bytes of the request that are consumed"),
        ),
    ),
    Register("buffers", "ro", BUFFERS, "bit k: buffer k + 1 is being sent from"),
)
_BLOCK = RegisterBlock("web", DESK_REGISTERS)  # a part of that of the service


def handed_layout(bits):
    """A request: ``length`` bytes, of ``bits`` bits, at ``addr``; ``first``: it is a head."""
    return data.StructLayout(
        {
            "session": unsigned(SESSION_WIDTH),
            "addr": unsigned(ADDR_WIDTH),
            "length": unsigned(bits),
            "first": 1,
        }
    )


def reply_layout(head=LIMITS.head):
    """An answer (:func:`~.answer.answer_layout`), with further fields of ``reply``."""
    return data.StructLayout({"answer": answer_layout(head), "more": 1, "part": 1, "buffer": 4})


class Desk(wiring.Component):
    """Queue of requests between the sessions' records and the CPU.

    Parameters
    ----------
    bits : int
        Bits of a request's length.
    head : int
        Largest head.

    ===========  ===  ============================================================================
    member       dir  meaning
    ===========  ===  ============================================================================
    ``i``        In   stream of :func:`handed_layout`
    ``o``        Out  stream of :func:`reply_layout`: the answer to the oldest request
    ``csr``      In   :data:`DESK_REGISTERS`
    ``hold``     In   strobe: the buffer of number ``number`` is being sent from
    ``drop``     In   strobe: it is no longer; not with ``hold``
    ``number``   In   0: nothing happens
    ``irq``      Out  a request waits for firmware
    ===========  ===  ============================================================================

    The requests of all sessions are shown in order, each until it is answered. ``go`` while nothing
    is pending, or while the last answer is not taken, does nothing.

    Latency: 2 cycles to the registers, 1 from ``reply`` to ``o``. Back-pressure: ``i`` waits when
    16 requests are there. Reset: empty; no buffer is being sent from. Bad input: more consumed
    bytes than the request has are not noticed; the session's stream is then read from elsewhere.
    """

    def __init__(self, bits, head=LIMITS.head):
        self.queue = StreamFifo(handed_layout(bits), DEPTH, registered=False)
        super().__init__(
            {
                "i": In(stream.Signature(handed_layout(bits))),
                "o": Out(stream.Signature(reply_layout(head))),
                "csr": In(CsrSignature(_BLOCK)),
                "hold": In(1),
                "drop": In(1),
                "number": In(4),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        wiring.connect(m, wiring.flipped(self.i), queue.i)
        csr, o = self.csr, self.o
        asked, shown, reply = queue.o.payload, fields(csr, "request"), fields(csr, "reply")
        pending, go = Signal(), Signal()
        m.d.comb += [
            pending.eq(queue.o.valid & ~o.valid),
            go.eq(pending & reply.go),
            shown.pending.eq(pending),
            shown.first.eq(asked.first),
            shown.length.eq(asked.length),
            csr.request_session.eq(asked.session),
            csr.request_address.eq(asked.addr),
            self.irq.eq(pending & csr.slow),
            queue.o.ready.eq(go),
        ]
        with m.If(o.ready):
            m.d.sync += o.valid.eq(0)
        with m.If(go):
            self._reply(m, reply)
        for k in range(BUFFERS):
            with m.If((self.hold | self.drop) & (self.number == k + 1)):
                m.d.sync += csr.buffers[k].eq(self.hold)
        return m

    def _reply(self, m, reply):
        csr, said = self.csr, self.o.payload
        m.d.sync += [
            self.o.valid.eq(1),
            said.more.eq(reply.more),
            said.part.eq(reply.part),
            said.buffer.eq(reply.buffer),
            said.answer.kind.eq(Kind.BY_FIRMWARE),
            said.answer.session.eq(self.queue.o.payload.session),
            said.answer.bytes.eq(reply.consumed),
            said.answer.close.eq(reply.close),
            said.answer.addr.eq(csr.reply_address),
            said.answer.length.eq(csr.reply_length),
            said.answer.rest_addr.eq(csr.reply_rest_address),
            said.answer.rest.eq(csr.reply_rest),
        ]
