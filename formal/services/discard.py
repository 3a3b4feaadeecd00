"""Proofs of services that reply at most once: ``cores/services/discard.py``, ``responder.py``.

Contract, over public ports, for an arbitrary session, told from the events that were taken: bytes
are freed up to their event's position, each once; the first event that draws a reply posts exactly
one descriptor, which closes, with the object's address and length if data drew it and without a
byte if EOF did; the session is released once, when CLOSED has come and its descriptor was
answered; whatever happens to other sessions changes nothing of this. What is due is offered
within 3 cycles, and the next event is taken when it has gone.

Not proved: more sessions than two, which differ in constants only; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from ...cores.tcp.service import SESSION_WIDTH, EventKind, EventLayout
from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

FLAGS = data.StructLayout({"posted": 1, "unanswered": 1, "dead": 1})


class SingleReplyProof(Elaboratable):
    def __init__(self, dut, on_data):
        self.dut, self.on_data = dut, on_data

    def elaborate(self, platform):
        m = new_harness()
        dut, svc = self.dut, self.dut.service
        inside = Inside(m, dut)
        free(m, svc.event.valid, svc.event.payload, svc.tx.ready, svc.free.ready)
        self.addr, self.length = getattr(dut, "addr", 0), getattr(dut, "length", 0)
        if self.on_data:
            free(m, dut.addr, dut.length)
        stream_rules(m, svc.event, Assume, "event")
        stream_rules(m, svc.tx, Assert, "tx")
        stream_rules(m, svc.free, Assert, "free")
        self._ghost(m, svc)
        self._outputs(m, svc)
        self._invariants(m, inside, svc)
        return m

    def _ghost(self, m, svc):
        """What the events ask for."""
        event = svc.event.payload
        self.session = session = Signal(SESSION_WIDTH)
        self.takes = takes = Signal()
        self.flags, self.before = Signal(FLAGS), Signal(FLAGS)
        self.now = Signal(EventLayout)  # the event in work
        self.mine = Signal()  # it is the chosen session's
        self.post, self.free_, self.release, self.full = (Signal(name=f"owes{k}") for k in range(4))
        self.rests = Signal(name="rests")  # nothing of the session is left to be done
        self.age = Signal(range(4), init=3)  # cycles since it was taken
        flags = self.flags
        m.d.comb += [
            session.eq(AnyConst(SESSION_WIDTH)),
            Assume(session < self.dut.sessions),
            Assume(event.session < self.dut.sessions),
            takes.eq(svc.event.valid & svc.event.ready),
        ]
        m.d.sync += self.age.eq(Mux(self.age == 3, 3, self.age + 1))
        for port, owed in ((svc.tx, self.post), (svc.free, self.free_)):
            with m.If(port.valid & port.ready):
                m.d.sync += owed.eq(0)
        draws = (event.kind == EventKind.DATA) & int(self.on_data)
        post, release = Signal(), Signal()
        m.d.comb += [
            post.eq((draws | (event.kind == EventKind.EOF)) & ~flags.posted),
            release.eq(
                ((event.kind == EventKind.SENT) & flags.dead)
                | ((event.kind == EventKind.CLOSED) & ~flags.unanswered)
            ),
        ]
        with m.If(takes):
            m.d.sync += [self.now.eq(event), self.age.eq(0), self.mine.eq(event.session == session)]
        with m.If(takes & (event.session == session)):
            m.d.sync += [
                self.before.eq(flags),
                self.post.eq(post),
                self.full.eq(draws),
                self.release.eq(release),
                self.free_.eq(release | (event.kind == EventKind.DATA)),
            ]
            if self.dut.rest:
                sent = event.kind == EventKind.SENT
                m.d.sync += self.free_.eq(release | (event.kind == EventKind.DATA) | sent)
                opened = event.kind == EventKind.OPEN
                out = (flags.unanswered | post) & ~sent & ~opened
                m.d.sync += self.rests.eq(~out & ~release)
            with m.If(event.kind == EventKind.OPEN):
                m.d.sync += Value.cast(flags).eq(0)
                if self.dut.rest:  # what it has closed stays closed
                    m.d.sync += flags.posted.eq(~event.ok)
            with m.If(post):
                m.d.sync += [flags.posted.eq(1), flags.unanswered.eq(1)]
            with m.If(event.kind == EventKind.SENT):
                m.d.sync += flags.unanswered.eq(0)
            with m.If(event.kind == EventKind.CLOSED):
                m.d.sync += flags.dead.eq(1)

    def _outputs(self, m, svc):
        tx, free_, now, mine = svc.tx, svc.free, self.now, self.mine
        past_addr, past_length = Signal(32), Signal(20)
        begun = Signal()  # `tx` was offered in the last cycle
        m.d.sync += [past_addr.eq(self.addr), past_length.eq(self.length), begun.eq(tx.valid)]
        with m.If(tx.valid):
            m.d.comb += [
                Assert(tx.payload.session == now.session),
                Assert(tx.payload.close & tx.payload.push & ~tx.payload.abort),
                Assert(~mine | self.post),
                Assert((now.kind == EventKind.EOF) | (now.kind == EventKind.DATA)),
                Assert((now.kind == EventKind.EOF) | int(self.on_data)),
            ]
            with m.If(now.kind == EventKind.EOF):
                m.d.comb += Assert(tx.payload.length == 0)
            with m.Elif(~begun):
                m.d.comb += Assert(tx.payload.addr == past_addr)
                m.d.comb += Assert(tx.payload.length == past_length)
        drawn = free_.payload.release | (now.kind == EventKind.DATA)
        if self.dut.rest:
            sent = now.kind == EventKind.SENT
            drawn |= sent
        with m.If(free_.valid):
            m.d.comb += [
                Assert(free_.payload.session == now.session),
                Assert(~mine | self.free_),
                Assert(~mine | (free_.payload.release == self.release)),
                Assert(drawn),
            ]
            if self.dut.rest:
                m.d.comb += Assert(~mine | (free_.payload.rest == self.rests))
                m.d.comb += Assert(~(free_.payload.rest & free_.payload.release) | ~mine)
                m.d.comb += Cover(mine & free_.payload.rest & sent & ~self.flags.unanswered)
            with m.If(~free_.payload.release):
                m.d.comb += Assert(free_.payload.position == now.position)
        with m.If(mine & (self.age >= 2)):
            m.d.comb += [Assert(tx.valid == self.post), Assert(free_.valid == self.free_)]
        with m.If(self.takes):
            m.d.comb += [Assert(~mine | ~(self.post | self.free_)), Assert(self.age == 3)]
        with m.If((self.age == 3) & ~tx.valid & ~free_.valid):
            waited = Signal()
            m.d.sync += waited.eq(1)
            m.d.comb += Assert(svc.event.ready | ~waited)
        with m.Else():
            m.d.sync += waited.eq(0)
        ended = Signal(2)
        with m.If(mine & free_.valid & free_.ready & free_.payload.release):
            m.d.sync += ended.eq(Mux(now.kind == EventKind.SENT, ended | 1, ended | 2))
        posts = tx.valid & mine & (free_.valid if self.on_data else 1)
        m.d.comb += [Cover(ended == 3), Cover(posts)]

    def _invariants(self, m, inside, svc):
        state, mine, age = inside.state, self.mine, self.age
        table = inside.parts["table"]
        peek = table.read_port(domain="comb")
        word = Value.cast(peek.data)
        latch = inside.parts["table"].read_ports[0]
        early = (state("READ") | state("ACT")) & mine
        m.d.comb += [
            peek.addr.eq(self.session),
            Assert(inside.fsm_bounded()),
            Assert(word == Mux(early, Value.cast(self.before), Value.cast(self.flags))),
            Assert(state("READ") == (age == 0)),
            Assert(state("ACT") == (age == 1)),
            Assert(~state("IDLE") | (age == 3)),
        ]
        with m.If(~state("WAIT")):
            m.d.comb += Assert(~svc.tx.valid & ~svc.free.valid)
        with m.If(~state("IDLE")):
            m.d.comb += [
                Assert(inside.event == Value.cast(self.now)),
                Assert(mine == (self.now.session == self.session)),
                Assert(self.now.session < self.dut.sessions),
            ]
        with m.If(state("IDLE")):
            m.d.comb += Assert(~mine | ~(self.post | self.free_))
        with m.If(state("READ") & mine):
            m.d.comb += Assert(Value.cast(latch.data) == Value.cast(self.before))
        with m.If(state("ACT") & mine):
            # The register `old`; Amaranth names it after the other target of its assignment.
            m.d.comb += Assert(inside.new == Value.cast(self.before))
        with m.If(early):
            self._owed(m)

    def _owed(self, m):
        """What the event in work asks for, said of the flags before it."""
        kind, before = self.now.kind, self.before
        draws = (kind == EventKind.DATA) & int(self.on_data)
        post = (draws | (kind == EventKind.EOF)) & ~before.posted
        release = ((kind == EventKind.SENT) & before.dead) | (
            (kind == EventKind.CLOSED) & ~before.unanswered
        )
        after = Signal(FLAGS, name="after")
        posted = (before.posted | post) & (kind != EventKind.OPEN)
        frees = release | (kind == EventKind.DATA)
        if self.dut.rest:
            posted |= (kind == EventKind.OPEN) & ~self.now.ok
            frees |= kind == EventKind.SENT
            m.d.comb += Assert(self.rests == (~after.unanswered & ~release))
        m.d.comb += [
            after.posted.eq(posted),
            after.unanswered.eq(
                (before.unanswered | post) & (kind != EventKind.OPEN) & (kind != EventKind.SENT)
            ),
            after.dead.eq((before.dead & (kind != EventKind.OPEN)) | (kind == EventKind.CLOSED)),
            Assert(Value.cast(self.flags) == Value.cast(after)),
            Assert(self.post == post),
            Assert(self.release == release),
            Assert(self.free_ == frees),
        ]


SINGLE_REPLY = "trebuchet.cores.services.discard"
REST_MUTANTS = (
    Mutant(
        "rests_unanswered",
        "svc.free.payload.rest.eq(~new.unanswered & ~release)",
        "svc.free.payload.rest.eq(~release)",
        16,
        where=SINGLE_REPLY,
    ),
    Mutant("closes_again", "new.posted.eq(~event.ok)", "new.posted.eq(0)", 16, where=SINGLE_REPLY),
)
MUTANTS = (
    Mutant("replies_again", "post.eq(~old.posted)", "post.eq(1)", 16),
    Mutant("releases_early", "release.eq(~old.unanswered)", "release.eq(1)", 16),
    Mutant("wrong_session", "write.addr.eq(event.session)", "write.addr.eq(0)", 16),
)

PROOFS = (
    Proof(
        name="service_discard",
        core="cores.services.discard.Discard(2)",
        says="bytes are freed once, EOF is answered by one FIN, a session is released once",
        module="trebuchet.cores.services.discard",
        build=lambda cores: SingleReplyProof(cores.Discard(2), False),
        depth=2,
        cover_depth=26,
        mutants=(
            *MUTANTS,
            Mutant(
                "wrong_position",
                "svc.free.payload.position.eq(event.position)",
                "svc.free.payload.position.eq(svc.event.payload.position)",
            ),
        ),
        assumes="the stream rules on the inputs; session numbers in range",
    ),
    Proof(
        name="service_responder",
        core="cores.services.responder.Responder(2)",
        says="the first data of a session draw one object and FIN; the rest as for discard",
        module="trebuchet.cores.services.responder",
        build=lambda cores: SingleReplyProof(cores.Responder(2), True),
        depth=2,
        cover_depth=26,
        mutants=(
            Mutant(
                "ignores_data",
                "return 1, self.addr, self.length",
                "return 0, self.addr, self.length",
            ),
            Mutant("wrong_length", "self.addr, self.length", "self.addr, self.addr"),
            Mutant(
                "answers_data_again",
                "reply_now & ~old.posted",
                "reply_now",
                16,
                where=SINGLE_REPLY,
            ),
            Mutant(
                "object_for_eof",
                "Mux(reply_now, length, 0)",
                "length",
                where=SINGLE_REPLY,
            ),
        ),
        assumes="the stream rules on the inputs; session numbers in range",
    ),
    Proof(
        name="service_discard_rest",
        core="cores.services.discard.Discard(2 places)",
        says="the same; rest with every free while no descriptor is unanswered; OPEN restores what "
        "was closed",
        module="trebuchet.cores.services.discard",
        build=lambda cores: SingleReplyProof(cores.Discard(2, rest=True), False),
        depth=2,
        cover_depth=26,
        mutants=REST_MUTANTS,
        assumes="the stream rules on the inputs; session numbers in range",
    ),
    Proof(
        name="service_responder_rest",
        core="cores.services.responder.Responder(2 places)",
        says="the same as for discard: rest with every free while nothing is unanswered, so also "
        "of data that come after its FIN; OPEN restores what was closed",
        module="trebuchet.cores.services.responder",
        build=lambda cores: SingleReplyProof(cores.Responder(2, rest=True), True),
        depth=2,
        cover_depth=26,
        mutants=REST_MUTANTS,
        assumes="the stream rules on the inputs; session numbers in range",
    ),
)
