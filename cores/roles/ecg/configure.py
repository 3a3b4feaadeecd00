"""New weights for the network while the board runs, by message or by the CPU."""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ....models.status import Status
from ...csr import CsrSignature, Field, Register, RegisterBlock, fields
from ...memory import MemorySignature
from ...stream import check_data_width
from ...tcp.service import SESSION_WIDTH
from ..contract import ID_WIDTH, SOURCE_WIDTH, AnswerLayout, JobKind, JobLayout
from ..fetch import OperandReader

__all__ = ["PREFIX", "WEIGHTS_BLOCK", "WeightPort"]

#: Bytes of a configuration message before the words: its output size and number of cores.
PREFIX = 8

WEIGHTS_BLOCK = RegisterBlock(
    "weights",
    (
        Register("weights_restart", "stb", 1, "write 1: the next word is the first"),
        Register(
            "weights_data",
            "stb",
            32,
            "write: one word to the next address",
            fields=(Field("word", 0, 16), Field("valid", 16, 1, "1: there is a word")),
        ),
        Register("weights_words", "ro", 16, "words since the restart, those dropped included"),
        Register("weights_sum", "ro", 32, "sum of those words, each after a rotation by one bit"),
        Register("weights_dropped", "ro", 16, "words after the last address, which were dropped"),
    ),
    "weights of the network",
)

TicketLayout = data.StructLayout(
    {
        "source": unsigned(SOURCE_WIDTH),
        "session": unsigned(SESSION_WIDTH),
        "id": unsigned(ID_WIDTH),
    }
)


class WeightPort(wiring.Component):
    """Takes ``CONFIGURE`` jobs and register writes, gives their words to the network.

    Parameters
    ----------
    words : int
        Words that the network has (:mod:`trebuchet.models.ecg.words`).
    width, tag_width : int
        Of the memory port.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``job``      In    ``CONFIGURE`` jobs; all jobs while ``partial``
    ``answer``   Out   their answers; the result is empty
    ``idle``     In    the role has no other job; it gets none while ``busy``
    ``busy``     Out   a job is here
    ``partial``  Out   of a job's words some have come, and not all
    ``mem``      Out   memory port; reads only
    ``load``     Out   words for the network, each for one cycle
    ``reload``   Out   1 for one cycle: the next word is the first
    ``csr``      In    :data:`WEIGHTS_BLOCK`
    ===========  ====  ==========================================================================

    1. The operand is the rest of a configuration message after its first field: 8 bytes that are
       ignored, then exactly ``words`` words, little-endian. Another length is answered
       ``BAD_LENGTH`` and changes nothing.
    2. A job waits until the role is idle, so that no result is computed with weights half old,
       half new. Its answer comes when all words are in place.
    3. Words from the registers go to the network as they come, and results mean nothing meanwhile:
       firmware switches the role off before. While a job is here they are ignored.
    4. Words after the last are dropped and counted. ``weights_sum`` tells whether what lies in the
       network is what was sent: ``sum = rotate_left(sum, 1) + word`` modulo 2**32.

    5. A reset between the first and the last word of a job leaves a network that is neither the old
       nor the new one. ``partial`` survives it: jobs of other kinds are answered ``STOPPED`` until
       all words have come, by a job or the registers.

    Cycles: a word a cycle, and a memory latency. Reset: the weights stay; counters are 0.
    """

    def __init__(self, words, width=32, tag_width=2):
        if not isinstance(words, int) or not 1 <= words < 1 << 16:
            raise ValueError(f"Words must be 1 to 65535, not {words!r}")
        self.words, self.width, self.tag_width = words, check_data_width(width), tag_width
        super().__init__(
            {
                "job": In(stream.Signature(JobLayout)),
                "answer": Out(stream.Signature(AnswerLayout)),
                "idle": In(1),
                "busy": Out(1),
                "partial": Out(1),
                "mem": Out(MemorySignature(width, tag_width)),
                "load": Out(stream.Signature(unsigned(16), always_ready=True)),
                "reload": Out(1),
                "csr": In(CsrSignature(WEIGHTS_BLOCK)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = OperandReader(self.width, self.tag_width)
        wiring.connect(m, reader.mem, wiring.flipped(self.mem))
        job, answer, csr = self.job.payload, self.answer.payload, self.csr
        ticket = Signal(TicketLayout)
        fits = Signal()
        word, valid, restart = Signal(16), Signal(), Signal()
        weight = fields(csr, "weights_data")
        for name in ("base", "offset", "ring_log2", "length"):
            m.d.comb += reader.request.payload[name].eq(job[name])
        for name in TicketLayout.members:
            m.d.comb += answer[name].eq(ticket[name])
        ours = job.kind == JobKind.CONFIGURE
        m.d.comb += fits.eq(ours & (job.length == PREFIX + 2 * self.words))
        packet_word, packet_valid = self._cut(m, reader.packet, restart)
        with m.FSM(name="configure"):
            with m.State("IDLE"):
                with m.If(self.job.valid):
                    m.d.comb += self.busy.eq(1)
                    m.d.sync += [ticket[name].eq(job[name]) for name in TicketLayout.members]
                    m.next = "DRAIN"
                with m.Else():
                    m.d.comb += [
                        restart.eq(csr.weights_restart),
                        word.eq(weight.word),
                        valid.eq(weight.valid),
                    ]
            with m.State("DRAIN"):
                m.d.comb += self.busy.eq(1)
                with m.If(self.idle):
                    m.d.comb += [
                        self.job.ready.eq(1),
                        reader.request.valid.eq(fits),
                        restart.eq(fits),
                    ]
                    refusal = Mux(ours, Status.BAD_LENGTH, Status.STOPPED)
                    m.d.sync += answer.status.eq(Mux(fits, Status.OK, refusal))
                    m.next = "ANSWER"
                    with m.If(fits):
                        m.next = "WORDS"
            with m.State("WORDS"):
                m.d.comb += [self.busy.eq(1), word.eq(packet_word), valid.eq(packet_valid)]
                with m.If(reader.done):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += [self.busy.eq(1), self.answer.valid.eq(1)]
                with m.If(self.answer.ready):
                    m.next = "IDLE"
        m.d.comb += [
            self.load.payload.eq(word),
            self.load.valid.eq(valid),
            self.reload.eq(restart),
        ]
        self._count(m, word, valid, restart)
        return m

    def _cut(self, m, packet, restart):
        """(word, valid) of the words in a packet, without the first PREFIX bytes; one a cycle."""
        per_beat = self.width // 16
        at = Signal(range(per_beat))
        skip = Signal(range(PREFIX // 2 + 1))
        last = at == per_beat - 1 - packet.payload.empty[1:]
        m.d.comb += packet.ready.eq(last)
        with m.If(restart):
            m.d.sync += [at.eq(0), skip.eq(PREFIX // 2)]
        with m.Elif(packet.valid):
            m.d.sync += at.eq(Mux(last, 0, at + 1))
            with m.If(skip != 0):
                m.d.sync += skip.eq(skip - 1)
        return packet.payload.data.word_select(at, 16), packet.valid & (skip == 0)

    def _count(self, m, word, valid, restart):
        csr, partial = self.csr, Signal(reset_less=True)
        m.d.comb += self.partial.eq(partial)
        with m.If(valid):
            left = csr.weights_words < self.words - 1
            m.d.sync += partial.eq((partial | self.busy) & left)
        with m.If(restart):
            m.d.sync += [csr.weights_words.eq(0), csr.weights_sum.eq(0)]
        with m.Elif(valid):
            m.d.sync += [
                csr.weights_words.eq(csr.weights_words + 1),
                csr.weights_sum.eq(Cat(csr.weights_sum[-1], csr.weights_sum[:-1]) + word),
            ]
            with m.If(csr.weights_words >= self.words):
                m.d.sync += csr.weights_dropped.eq(csr.weights_dropped + 1)
