"""Proof of how the receive engine, ``cores/tcp/receive.py``, goes about a segment.

The engine's state is held against a table of its ways; then, of any session table, store, memory
and sender that keep their contracts:

* one lookup a segment, of its addresses, from a valid segment to its end, which takes the segment;
* a request for a record lasts until it is granted, for the same session; the record is handed back
  once, seven cycles later, or as many more as it takes to join the text with what is kept beyond
  gaps, waiting for nobody;
* the judgement, the new time-out and the numbers of a new session have had the time they need;
* the stream rules of verdict and reply; each payload gets exactly one verdict, dropped if it was
  not ordered to be written;
* a segment of no session is answered by the RST of RFC 9293, 3.10.7.1, but not if it is one; a SYN
  makes a session only if a service listens, and within the limits.

Not proved: that the engine gets on (its partners may stall it); a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.admission import latency
from trebuchet.cores.tcp.record import Phase
from trebuchet.cores.tcp.service import SESSION_WIDTH

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .classifier import SMALL
from .receive import free_partners, opened

__all__ = ["STATES", "FlowProof", "PROOFS"]

#: Cycles that a record is held before it is handed back: the pipelines are 6 deep. How many more
#: ``ReassemblyBlocks`` takes, beside one for each run.
TIME, JOIN = 7, 3
STATES = ["IDLE", "LOOKUP", "DECIDE", "ROOM", "CLAIM", "WORK", "MAKE", "GAPS", "COMMIT", "REPLY"]
STATES += ["TAIL"]


class FlowProof(Elaboratable):
    """``states`` of the engine, and what a proof of more of them adds: see the hooks below."""

    states = tuple(STATES)

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        port = dut.port
        free(m, dut.input.valid, dut.input.payload, dut.now, port.grant, port.record)
        free(m, dut.pool.valid, dut.pool.payload)
        free_partners(m, dut)
        m.d.comb += dut.settings.as_value().eq(AnyConst(len(dut.settings.as_value())))
        stream_rules(m, dut.input, Assume, "input")
        stream_rules(m, dut.verdict, Assert, "verdict")
        stream_rules(m, dut.reply, Assert, "reply")
        code = dut.fsm.encoding
        assert set(code) == set(self.states)
        self.at = {name: dut.fsm.state == code[name] for name in self.states}
        m.d.comb += Assert(sum(self.at.values()) == 1)
        self.long = TIME + dut.config.runs + JOIN
        self.busy, self.age, self.held = Signal(), Signal(range(self.long + 2)), Signal()
        self.given = Signal()
        self.new, self.replied = (
            self._new(m, s, n) for s, n in ((dut.verdict, "v"), (dut.reply, "r"))
        )
        self._partners(m)
        self._contract(m)
        self._ways(m)
        self._verdicts(m)
        self._replies(m)
        return m

    # What engines with more states say otherwise.

    def _dialogues(self):
        """The segment is taken; no look-up is under way."""
        return self.dut.lookup.finish, self.at["IDLE"]

    def _tuple(self):
        """What is looked up."""
        seg = self.dut.input.payload.body.segment
        return Cat(seg.local_port, seg.remote_port, seg.ip)

    def _more_ways(self, ways, counts, stranger, crowded):
        """Add to the ways, and to what counters count: ``stranger`` has no session and asks for
        none, ``crowded`` gets none, in DECIDE, because of too many handshakes."""

    def _vouched(self):
        """May have a session without a SYN, however many handshakes are under way."""
        return 0

    @staticmethod
    def _new(m, stream, name):
        """Whether an item is offered for the first time."""
        stalled = Signal(name=f"{name}_was_stalled")
        m.d.sync += stalled.eq(stream.valid & ~stream.ready)
        return stream.valid & ~stalled

    def _partners(self, m):
        """What the table and the store keep to."""
        dut, port = self.dut, self.dut.port
        done, was = Signal(), Signal(1 + len(dut.lookup.session))
        told = Signal(1 + len(dut.lookup.session))
        m.d.comb += told.eq(dut.lookup.found | dut.lookup.session << 1)
        m.d.sync += [done.eq(dut.lookup.done & ~dut.lookup.finish), was.eq(told)]
        m.d.comb += Assume(~done | (dut.lookup.done & (told == was)))
        record = Signal(len(Value.cast(port.record)))
        m.d.sync += [record.eq(port.record.as_value()), self.held.eq(port.grant & ~port.commit)]
        m.d.comb += [
            Assume(port.grant == (self.held | (port.grant & port.request))),
            Assume(~self.held | port.grant),
            Assume(~self.held | (port.record.as_value() == record)),
        ]

    def _contract(self, m):
        dut, port = self.dut, self.dut.port
        wants, session, looked_up = Signal(), Signal.like(port.session), Signal(64)
        m.d.sync += [wants.eq(port.request & ~port.grant), session.eq(port.session)]
        m.d.sync += looked_up.eq(dut.lookup.tuple)
        with m.If(dut.lookup.start):
            m.d.sync += self.busy.eq(1)
        with m.If(dut.lookup.finish):
            m.d.sync += self.busy.eq(0)
        m.d.sync += self.age.eq(Mux(port.grant & ~port.commit, self.age + 1, 0))
        fresh = Signal()
        with m.If(port.grant & ~port.commit & port.request):
            m.d.sync += fresh.eq(~dut.lookup.found)
        made = Signal()
        m.d.sync += made.eq(~dut.lookup.finish & (made | (port.commit & (self.age == 1))))
        handed = port.commit & ~port.request
        timely = (self.age == TIME) | (self.age == self.long)
        joins = self.at["GAPS"]
        taken, silent = self._dialogues()
        m.d.comb += [
            Assert(~dut.lookup.start | (dut.input.valid & dut.lookup.ready & ~self.busy)),
            Assert(taken == dut.input.ready),
            Assert(~dut.lookup.finish | (self.busy & dut.lookup.done)),
            Assert(dut.lookup.insert == (dut.lookup.finish & made)),
            Assert(dut.lookup.tuple == self._tuple()),
            Assert(~self.busy | (dut.lookup.tuple == looked_up)),
            Assert(~port.request | self.busy),
            Assert(~wants | (port.request & (port.session == session))),
            Assert(~self.held | (port.session == session)),
            Assert(~port.commit | port.grant),
            Assert(self.age <= self.long),
            Assert(~handed | timely | ((self.age == 1) & dut.count.accepted)),
            Cover(handed & (self.age == TIME) & dut.count.accepted),
            Cover(handed & (self.age == self.long)),
            Cover(dut.lookup.insert & (port.session != 0)),
            # Invariants.
            Assert(self.busy == ~silent),
            Assert(self.at["IDLE"] | dut.input.valid),
            Assert(self.held == (self.age != 0)),
            Assert(self.held == (self.at["WORK"] | self.at["MAKE"] | joins | self.at["COMMIT"])),
            Assert(~joins | ((self.age >= TIME) & (self.age < self.long))),
            Assert(dut.gaps.go == Mux(joins, (1 << self.age) >> TIME, 0)[: len(dut.gaps.go)]),
            Assert(dut.gaps.done == (joins & (self.age == self.long - 1))),
            Assert(~self.at["WORK"] | ((dut.step + 1 == self.age) & (self.age < TIME))),
            Assert(~self.at["COMMIT"] | timely),
            Assert(~self.at["MAKE"] | (self.age == TIME) | (self.age == 1)),
            Assert(~self.at["WORK"] | ~dut.fresh),
            Assert(~self.at["MAKE"] | (dut.fresh == (self.age == 1))),
            Assert(self.at["IDLE"] | (dut.made == made)),
            Assert(~made | self.at["TAIL"]),
            Assert(silent | self.at["LOOKUP"] | dut.lookup.done),
        ]

    def _room(self, m, accept):
        """Whether the service that is wanted may have one more session; and if there is a free
        number, too; and if no more than that many handshakes are under way.

        All is what it was a cycle ago, when the segment had been there for two cycles or more and
        the last session that was made had been counted.
        """
        dut, seg, s = self.dut, self.dut.input.payload.body.segment, self.dut.settings
        wanted, heard = Signal.like(dut.wanted, name="heard_by"), Signal(len(dut.config.ports))
        for k in range(len(dut.config.ports)):  # the last one counts
            with m.If(s.listen[k] & (seg.local_port == s[f"port_{k}"])):
                m.d.comb += [wanted.eq(k), heard[k].eq(1)]
        asked = dut.connects if dut.config.active else 0
        admitted, crowded = Signal(name="was_admitted"), Signal(name="was_crowded")
        chosen = Mux(asked, dut.service, dut.handshake.service)
        crowd = dut.half_open >= s.half_open_limit
        m.d.sync += admitted.eq(dut.admits.bit_select(chosen, 1))
        m.d.sync += crowded.eq(crowd & ~dut.below.bit_select(chosen, 1))
        delay = latency(dut.config) + 1
        stands, since = Signal(range(4)), Signal(range(delay + 1))
        begins = dut.input.ready | (self.at["IDLE"] & ~dut.lookup.start)
        m.d.sync += stands.eq(Mux(begins, 0, stands + (stands != 3)))
        m.d.sync += since.eq(since + (since != delay))
        with m.If(self.at["MAKE"]):
            m.d.sync += since.eq(0)
        decides = self.at["DECIDE"] & (dut.settled == 0)
        m.d.comb += [
            Assert(~decides | ((since == delay) & (stands == 3))),
            Assert(dut.wanted == chosen),
            Assert((stands < 2) | (heard == 0) | (dut.handshake.service == wanted)),
            # Invariants.
            Assert((stands < 1) | (dut.handshake.local == heard)),
            Assert((since <= delay) & (dut.settled <= delay)),
            Assert(since + dut.settled >= delay),
            Assert(self.at["IDLE"] | (stands + dut.settled >= 3)),
        ]
        there = dut.lookup.free_valid & admitted
        return admitted, there, there & (~crowded | self._vouched())

    def _accept(self):
        """A SYN for a port that somebody listens to."""
        dut, seg, s = self.dut, self.dut.input.payload.body.segment, self.dut.settings
        ports = [name for name in s.shape().members if name.startswith("port_")]
        heard = sum(s.listen[k] & (seg.local_port == s[name]) for k, name in enumerate(ports))
        f = seg.flags
        return f.syn & ~f.ack & ~f.rst & (heard != 0) & s.enable & dut.input.valid

    def _ways(self, m):
        """From each state to the next, by the first case that holds."""
        dut, port, seg, at = self.dut, self.dut.port, self.dut.input.payload.body.segment, self.at
        r, j = port.record, dut.j
        phase = Value.cast(r.phase)  # a mutant's Phase is another class
        accept, gone, reusable = self._accept() | self._vouched(), Signal(), Signal()
        over = dut.input.ready | at["IDLE"]
        m.d.sync += gone.eq(~over & (gone | (port.commit & port.request)))
        m.d.sync += reusable.eq(
            (phase == Phase.TIME_WAIT.value)
            & r.released
            & self._accept()
            & j.ahead
            & (r.count == 0)
            & (r.flight == 0)
            & (r.rcv_nxt == r.rcv_pub)
            & (r.service == dut.wanted)
        )
        known = dut.lookup.found & ~gone
        admitted, free_slot, room = self._room(m, accept)
        waits = dut.settled != 0
        ended = self.age == TIME - 1
        joins = (r.kept != 0) | j.keep
        ways = {
            "IDLE": [(dut.input.valid & dut.lookup.ready, "LOOKUP")],
            "LOOKUP": [
                (dut.lookup.done & (dut.lookup.hash_valid | ~dut.lookup.want_hash), "DECIDE")
            ],
            "DECIDE": [
                (waits, "DECIDE"),
                (known | (accept & room), "ROOM"),
                (accept | seg.flags.rst, "TAIL"),
                (1, "REPLY"),
            ],
            "ROOM": [(~dut.verdict.valid, "CLAIM")],
            "CLAIM": [
                (~port.grant, "CLAIM"),
                (~known, "MAKE"),
                (phase == Phase.FREE.value, "DECIDE"),
                (1, "WORK"),
            ],
            "WORK": [(ended & reusable, "MAKE"), (ended & joins, "GAPS"), (ended, "COMMIT")],
            "GAPS": [(self.age == self.long - 1, "COMMIT")],
            "MAKE": [(1, "TAIL")],
            "COMMIT": [(dut.answer_rst, "REPLY"), (1, "TAIL")],
            "REPLY": [(~dut.reply.valid, "TAIL")],
            "TAIL": [(~self.owes(seg) | ~dut.verdict.valid, "IDLE")],
        }
        refuses = at["DECIDE"] & ~waits & ~known & accept
        stranger = at["DECIDE"] & ~waits & ~known & ~accept
        crowded = refuses & free_slot & ~room
        counts = {
            "syn_rx": at["IDLE"]
            & dut.lookup.start
            & seg.flags.syn
            & ~seg.flags.ack
            & ~seg.flags.rst,
            "refused_full": refuses & ~free_slot,
            "refused_half_open": crowded,
            "time_wait_reused": at["WORK"] & ended & reusable,
            "rst_tx": at["REPLY"] & ~dut.reply.valid,
            "unknown": stranger,
        }
        m.d.comb += Assert(dut.refused == (refuses & ~admitted))
        self._more_ways(ways, counts, stranger, crowded)
        code = dut.fsm.encoding
        after, begun = Signal.like(dut.fsm.state), Signal()
        for name, cases in ways.items():
            value = code[name]
            for condition, to in reversed(cases):
                value = Mux(condition, code[to], value)
            with m.If(at[name]):
                m.d.sync += [after.eq(value), begun.eq(1)]
        m.d.comb += [
            Assert(~begun | (dut.fsm.state == after)),
            Assert(at["IDLE"] | (dut.gone == gone)),
        ]
        if self.states == FlowProof.states:
            m.d.comb += Assert(~gone | (dut.lookup.found & self.busy & ~at["LOOKUP"]))
        claims = at["ROOM"] | at["CLAIM"]
        m.d.comb += [
            Assert(~claims | (dut.fresh == ~known)),
            Assert(~claims | known | accept),
            Assert(~(claims & known) | (port.session == dut.lookup.session)),
            Assert(~at["MAKE"] | accept),
            Cover(at["MAKE"] & gone),
            Cover(at["REPLY"] & gone),
        ]
        for name, value in counts.items():  # a segment of a closed session is unknown, too
            unknown = at["COMMIT"] if name == "unknown" else 0
            m.d.comb += Assert(unknown | (dut.count[name] == value))
        listens = Signal(range(3))  # how long the segment stands still
        m.d.sync += listens.eq(Mux(dut.input.valid & ~dut.input.ready, 2, 0))
        m.d.comb += Assert(~self.busy | (listens != 0))
        heard = self._accept()
        past = Signal()
        m.d.sync += past.eq(heard)
        with m.If(self.busy & ~at["LOOKUP"]):
            syn = seg.flags.syn & ~seg.flags.ack & ~seg.flags.rst & dut.settings.enable
            m.d.comb += Assert((dut.handshake.local.any() & syn) == heard)

    def owes(self, seg):
        return (seg.length != 0) & ~(self.given | self.new)

    def _verdicts(self, m):
        dut, seg, v = self.dut, self.dut.input.payload.body.segment, self.dut.verdict
        dropped, arrived = Signal(), Signal(16)
        m.d.sync += [dropped.eq(dut.input.ready & self.owes(seg)), arrived.eq(seg.length)]
        with m.If(dut.lookup.start):
            m.d.sync += self.given.eq(0)
        with m.Elif(self.new):
            m.d.sync += self.given.eq(1)
        with m.If(dropped):
            m.d.comb += [
                Assert(self.new & ~v.payload.commit & ~v.payload.fin & ~v.payload.ahead),
                Assert((v.payload.length == 0) & (v.payload.skip == 0)),
                Assert(v.payload.arrived == arrived[: len(v.payload.arrived)]),
            ]
        with m.Elif(self.new):
            m.d.comb += Assert(v.payload.commit & self.busy & ~self.given)
        m.d.comb += [
            Assert(~self.busy | dropped | (dut.owed == self.owes(seg))),
            Assert(~dropped | self.at["IDLE"]),
            Assert(~(self.held | self.at["CLAIM"]) | ~v.valid),
            Cover(dropped & ~v.ready),
        ]
        early = self.at["LOOKUP"] | self.at["DECIDE"] | self.at["ROOM"] | self.at["CLAIM"]
        m.d.comb += Assert(~(early | self.held) | ~self.given)

    def _reply(self, seg, f):
        """What answers the segment: RFC 9293, 3.10.7.1."""
        answer = (seg.seq + seg.length + f.syn + f.fin)[:32]
        return {
            "session": (1 << SESSION_WIDTH) - 1,
            "mac": seg.mac,
            "ip": seg.ip,
            "remote_port": seg.remote_port,
            "local_port": seg.local_port,
            "seq": Mux(f.ack, seg.ack, 0),
            "ack": Mux(f.ack, 0, answer),
            "flags": Mux(f.ack, 0b00100, 0b10100),
            "window": 0,
            "mss": 0,
            "addr": 0,
            "length": 0,
        }

    def _replies(self, m):
        seg, o = self.dut.input.payload.body.segment, self.dut.reply.payload
        f = seg.flags
        want = self._reply(seg, f)
        m.d.comb += Assume(~self.at["COMMIT"] | ~self.dut.j.refused | ~f.rst)  # tcp_classifier
        m.d.comb += Assert(~self.at["REPLY"] | ~f.rst)
        with m.If(self.replied):
            m.d.comb += Assert(self.at["TAIL"] & ~f.rst)
            m.d.comb += [Assert(Value.cast(o[name]) == value) for name, value in want.items()]
            m.d.comb += [Cover(f.ack), Cover(~f.ack & f.syn)]


PROOFS = (
    Proof(
        name="tcp_receive_flow",
        core="cores.tcp.receive.ReceiveEngine",
        says="one lookup, at most one record, one verdict and the right RST for each segment",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: FlowProof(cores.ReceiveEngine(SMALL)),
        depth=2,
        cover_depth=22,
        mutants=(
            Mutant("judges_early", "with m.If(step == 5):", "with m.If(step == 3):", 18),
            Mutant(
                "one_too_many",
                "self.half_open >= self.settings.half_open_limit",
                "self.half_open > self.settings.half_open_limit",
                14,
            ),
            Mutant(
                "admits_anybody",
                "~self.lookup.free_valid | ~self.admitted",
                "~self.lookup.free_valid",
                14,
            ),
            Mutant(
                "ports_swapped",
                "Cat(peer.local_port, peer.remote_port, peer.ip)",
                "Cat(peer.remote_port, peer.remote_port, peer.ip)",
                6,
                where="trebuchet.cores.tcp.lookup",
            ),
            Mutant("decides_early", "with m.If(self.settled == 0):", "with m.If(1):", 14),
            Mutant("forgets_the_last", "self.settled.eq(self.settling)", "self.step.eq(0)", 18),
            Mutant(
                "resets_a_reset",
                'with m.If(~seg.flags.rst):\n    m.next = "REPLY"',
                'with m.If(1):\n    m.next = "REPLY"',
                14,
            ),
            Mutant(
                "acks_no_fin",
                "segment.length + segment.flags.syn + segment.flags.fin",
                "segment.length + segment.flags.syn",
                16,
                where="trebuchet.cores.tcp.segment",
            ),
        ),
        assumes="the contracts of session table, store, memory and sender; registers stand still; "
        "a RST is not refused (tcp_classifier)",
        not_proved="progress, which depends on the partners; a reset while running",
    ),
)
