"""Proof of ``Receiver`` in ``cores/ltl/receive.py``: order, exactly once, what is owed to the peer.

The network is the adversary: any frame of any connection may come at any time, with any sequence
number, doubled, late, out of order, or bad. :func:`parser_rules` is all that is assumed of it, and
``ltl_parser`` proves that of the parser. A ghost keeps what docs/network.md says of one connection,
which the solver chooses, and every output is compared with it in every cycle.

Since the ghost's ``expected`` is the number of frames delivered since the connection was opened,
what is delivered is, modulo the sequence space, frame 0, 1, 2 …: in order, exactly once, whatever
the network does. A frame older than half the space could pass for a new one; docs/network.md says
why there is none.

Not proved: a reset while running; frames that begin before the table is cleared; sequence numbers
of 32 bits (here they have 4), messages of more than 3 beats.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.ltl.config import TIME_BITS, Kind, LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .parts import opened

__all__ = ["PROOFS", "SMALL", "parser_rules"]

SMALL = LtlConfig(
    width=32, connections=3, slots=4, window=2, max_message=12, buffer_beats=4, seq_bits=4
)


class FrameGhost:
    """Where in a frame the parser is: ``inside`` from ``lookup`` to ``end``, ``bodies`` beats."""

    def __init__(self, m, port):
        self.inside, self.age = Signal(name="inside"), Signal(3, name="age")
        self.about, self.bodies = Signal(16, name="about_held"), Signal(3, name="bodies")
        self.quiet = Signal(2, name="quiet")  # cycles for which the header has not changed
        self.past = Signal.like(Value.cast(port.header), name="past_header")
        self.same = Signal(name="same_header")
        m.d.comb += self.same.eq(Value.cast(port.header) == self.past)
        m.d.sync += self.past.eq(port.header)
        self.still = Signal(name="still")  # the header has not changed for 3 cycles
        m.d.comb += self.still.eq(self.same & (self.quiet >= 2))
        m.d.sync += self.quiet.eq(Mux(self.same, self.quiet + (self.quiet != 3), 0))
        m.d.sync += self.age.eq(self.age + (self.age != 7))
        with m.If(port.lookup):
            m.d.sync += [self.inside.eq(1), self.age.eq(1), self.about.eq(port.about)]
            m.d.sync += self.bodies.eq(0)
        with m.Else():
            with m.If(port.end):
                m.d.sync += self.inside.eq(0)
            with m.If(port.body & self.inside):
                m.d.sync += self.bodies.eq(self.bodies + (self.bodies != 7))


def parser_rules(m, port, config, check):
    """What a receiver may rely on, stated of the parser's outputs with Assert or Assume."""
    ghost, header = FrameGhost(m, port), port.header
    n = config.bytes
    words = Signal(17, name="message_words")
    m.d.comb += words.eq((header.length + (n - 1)) // n)
    m.d.comb += check(~port.lookup | ~(ghost.inside | port.end | port.body))
    with m.If(ghost.inside & (ghost.age >= 3) & (ghost.bodies != 0)):
        m.d.comb += check(ghost.same)
    with m.If(port.body):
        m.d.comb += [
            check(ghost.inside & (ghost.age >= 5) & ghost.still & ~port.good),
            check(header.connection == ghost.about),
        ]
    with m.If(port.end & port.good):
        m.d.comb += [
            check(ghost.inside & (ghost.age >= 4) & ghost.still),
            check(header.connection == ghost.about),
            check((header.kind >= Kind.DATA) & (header.kind <= Kind.PROBE)),
            check(ghost.bodies == words),
            check((header.length != 0) == (header.kind == Kind.DATA)),
            check(header.length <= config.max_message),
        ]
    m.d.comb += check(~port.good | port.end)
    return ghost


class ReceiverProof(Elaboratable):
    def __init__(self, dut):
        self.dut, self.config = dut, dut.config

    def elaborate(self, platform):
        m = new_harness()
        dut, config = self.dut, self.config
        m.submodules.dut = opened(dut, platform)
        free(m, dut.lookup, dut.about, dut.header, dut.body, dut.data, dut.last, dut.end, dut.good)
        free(m, dut.command.valid, dut.command.payload, dut.request.ready, dut.response.ready)
        free(m, dut.entry_addr, dut.now, dut.cnp_interval, *dut.level)
        self.frame = parser_rules(m, dut, config, Assume)
        m.d.comb += Assume(~dut.command.valid | (dut.command.payload.connection < 3))
        self.chosen = Signal(config.connection_layout, name="chosen")
        m.d.comb += [self.chosen.eq(AnyConst(2)), Assume(self.chosen < config.connections)]
        self._boot(m)
        self.g = Signal(dut.entry.shape(), name="ghost")
        self.total = Signal(config.total_layout, name="delivered_ever")
        self._meaning(m)
        self._entry(m)
        self._room(m)
        self._beats(m)
        self._verdict(m)
        self._covers(m)
        return m

    def _boot(self, m):
        """No command is taken while the table is cleared."""
        dut, count = self.dut, Signal(2, name="booted")
        self.up = Signal(name="up")
        m.d.comb += self.up.eq(count == self.config.connections)
        with m.If(~self.up):
            m.d.sync += count.eq(count + 1)
            m.d.comb += [Assert(~dut.command.ready), Assert(dut.clear == count)]
        with m.Else():
            waits = self.frame.inside | dut.lookup | dut.end
            m.d.comb += Assert(dut.command.ready == ~waits)
        m.d.comb += [Assert(dut.clearing == ~self.up), Assert(dut.busy == self.frame.inside)]

    def _meaning(self, m):
        """What the frame is to the chosen connection."""
        dut, g, header, bits = self.dut, self.g, self.dut.header, self.config.seq_bits
        self.mine, self.match = Signal(name="mine"), Signal(name="match")
        self.delta, self.beyond = Signal(bits, name="delta_"), Signal(bits, name="beyond")
        self.now, self.interval = Signal(TIME_BITS), Signal(TIME_BITS)
        m.d.sync += [self.now.eq(dut.now), self.interval.eq(dut.cnp_interval)]
        m.d.comb += [
            self.mine.eq(self.frame.inside & (self.frame.about == self.chosen)),
            self.match.eq(g.open & (header.incarnation == g.incarnation)),
            self.delta.eq(header.seq - g.expected),
            self.beyond.eq(header.seq - g.ahead),
        ]

    def _entry(self, m):
        """The table holds the ghost, and its second port shows it; so with the total."""
        dut, g = self.dut, self.g
        peek = dut.table.read_port(domain="comb")
        m.d.comb += [peek.addr.eq(self.chosen), Assert(Value.cast(peek.data) == Value.cast(g))]
        count = dut.totals.read_port(domain="comb")
        m.d.comb += [count.addr.eq(self.chosen), Assert(count.data == self.total)]
        asked, past, before = Signal(), Signal.like(Value.cast(g)), Signal.like(self.total)
        m.d.sync += [asked.eq(dut.entry_addr == self.chosen), past.eq(g), before.eq(self.total)]
        with m.If(asked):
            m.d.comb += [Assert(Value.cast(dut.entry) == past), Assert(dut.total == before)]
        m.d.comb += Assert(~self.frame.inside | (self.frame.age != 0))
        with m.If(self.mine & (self.frame.age >= 2)):
            m.d.comb += Assert(Value.cast(dut.entry_held) == Value.cast(g))
            m.d.comb += Assert(dut.total_held == self.total)

    def _room(self, m):
        """Room for the message, as it was two cycles before its first beat."""
        dut, config = self.dut, self.config
        level = [Signal.like(dut.level[v], name=f"level{v}") for v in range(config.vcs)]
        older = [Signal.like(dut.level[v], name=f"older{v}") for v in range(config.vcs)]
        for v in range(config.vcs):
            m.d.sync += [level[v].eq(dut.level[v]), older[v].eq(level[v])]
        self.words = Signal(range(config.message_beats + 1), name="beats_needed")
        self.proper = Signal(name="proper")
        m.d.comb += [
            self.words.eq((dut.header.length + 3) // 4),
            self.proper.eq(dut.header.length <= config.max_message),
        ]
        now, then, self.room = Signal(), Signal(), Signal(name="has_room")
        begun = self.frame.bodies != 0
        m.d.comb += [
            now.eq(Array(older)[self.g.vc] + self.words <= config.buffer_beats),
            self.room.eq(Mux(begun, then, now)),
        ]
        with m.If(dut.body & ~begun):
            m.d.sync += then.eq(now)
        m.d.comb += Assert(dut.begun == (self.frame.inside & begun))
        with m.If(self.mine & begun & self.proper):
            m.d.comb += Assert(dut.room_then == then)

    def _beats(self, m):
        """A message is written if its frame is the next one and there is room; else nothing."""
        dut, g, header, frame = self.dut, self.g, self.dut.header, self.frame
        self.takes = Signal(name="takes")
        is_data = header.kind == Kind.DATA
        m.d.comb += self.takes.eq(self.match & is_data & (self.delta == 0) & self.room)
        begun, past = frame.bodies != 0, Signal(32, name="past_data")
        with m.If(dut.body):
            m.d.sync += past.eq(dut.data)
        with m.If(self.mine & self.proper & (frame.still | begun)):
            writes = self.takes & begun
            m.d.comb += Assert(dut.valid == (writes & (dut.body | dut.end)))
        with m.If(self.mine & dut.valid):
            empty = Signal(2)
            m.d.comb += empty.eq(Mux(dut.end & dut.good, -header.length, 0))
            m.d.comb += [
                Assert(dut.beat.data == past),
                Assert(dut.beat.first == (frame.bodies == 1)),
                Assert(dut.beat.last == dut.end),
                Assert(dut.beat.error == (dut.end & ~dut.good)),
                Assert(dut.beat.empty == empty),
                Assert(dut.vc == g.vc),
            ]
        with m.If(frame.inside & (frame.about >= self.config.connections)):
            m.d.comb += [Assert(~dut.valid), Assert(~dut.have)]
        # Invariants.
        m.d.comb += [
            Assert(~dut.have | (frame.inside & begun)),
            Assert(dut.have | dut.first),
            Assert(frame.inside | ~dut.valid),
        ]
        with m.If(begun & frame.inside):
            m.d.comb += [Assert(frame.age >= 6), Assert(frame.quiet == 3)]
            m.d.comb += Assert(dut.have == dut.accept)
        with m.If(dut.have):
            m.d.comb += [Assert(dut.held == past), Assert(dut.first == (frame.bodies == 1))]
        with m.If(begun & self.mine & self.proper):
            m.d.comb += Assert(dut.have == self.takes)

    def _verdict(self, m):
        dut, g, header, event = self.dut, self.g, self.dut.header, self.dut.events
        exists = self.frame.about < self.config.connections
        good, is_ack = dut.end & dut.good, header.kind == Kind.ACK
        ours, nack, cnp = (Signal(name=f"spec_{n}") for n in ("ours", "nack", "cnp"))
        data, early, late = (Signal(name=f"spec_{n}") for n in ("data", "early", "late"))
        half = 1 << (self.config.seq_bits - 1)
        m.d.comb += [
            ours.eq(good & ~is_ack & self.mine & self.match),
            data.eq(ours & (header.kind == Kind.DATA)),
            early.eq(data & (self.delta >= half)),
            late.eq(data & (self.delta != 0) & (self.delta < half)),
            nack.eq(late & (~g.nacked | (self.beyond == 0) | (self.beyond >= half))),
            cnp.eq(ours & header.marked & ((self.now - g.notified)[:16] >= self.interval)),
        ]
        delivered = data & self.takes
        owes = delivered | early | nack | cnp | (ours & (header.kind == Kind.PROBE))
        with m.If(self.mine | ~self.frame.inside | ~exists):
            m.d.comb += [
                Assert(dut.commit == delivered),
                Assert(dut.request.valid == owes),
                Assert(event.delivered == delivered),
                Assert(event.duplicates == early),
                Assert(event.out_of_order == late),
                Assert(event.no_room == (data & (self.delta == 0) & ~self.takes)),
                Assert(event.marked == (ours & header.marked)),
                Assert(event.incarnation == (good & ~is_ack & self.mine & g.open & ~self.match)),
            ]
            nobody = Mux(is_ack, ~exists, ~exists | ~g.open)
            m.d.comb += Assert(event.unknown == (good & nobody))
        with m.If(dut.request.valid & self.mine):
            request = dut.request.payload
            m.d.comb += [
                Assert(request.connection == self.chosen),
                Assert(request.nack == nack),
                Assert(request.cnp == cnp),
            ]
        with m.If(dut.commit & self.mine):
            m.d.comb += [Assert(dut.words == self.words), Assert(dut.connection == self.chosen)]
            m.d.comb += Assert(dut.valid & dut.beat.last & ~dut.beat.error)
        self._response(m, good & is_ack & exists)
        self._update(m, ours, delivered, late, cnp)
        self.nack, self.early, self.delivered = nack, early, delivered

    def _response(self, m, answers):
        dut, header, said = self.dut, self.dut.header, self.dut.response.payload
        m.d.comb += Assert(dut.response.valid == answers)
        m.d.comb += Assert(dut.events.ack_overflow == (answers & ~dut.response.ready))
        with m.If(dut.response.valid):
            m.d.comb += [
                Assert(said.connection == self.frame.about),
                Assert(said.incarnation == header.incarnation),
                Assert(said.seq == header.seq[: self.config.seq_bits]),
                Assert(said.credit == Mux(header.credit > 255, 255, header.credit)),
                Assert(said.nack == header.nack),
                Assert(said.cnp == header.cnp),
            ]

    def _update(self, m, ours, delivered, late, cnp):
        dut, g, command = self.dut, self.g, self.dut.command.payload
        with m.If(cnp):
            m.d.sync += g.notified.eq(dut.now)
        with m.If(delivered):
            m.d.sync += [g.expected.eq(g.expected + 1), g.nacked.eq(0)]
            m.d.sync += self.total.eq(self.total + 1)  # which no command changes
        with m.If(late):
            m.d.sync += [g.ahead.eq(dut.header.seq), g.nacked.eq(1)]
        opens = dut.command.valid & dut.command.ready & (command.connection == self.chosen)
        with m.If(opens):
            m.d.sync += [
                Value.cast(g).eq(0),
                g.open.eq(command.open),
                g.vc.eq(command.vc),
                g.credit.eq(command.credit),
                g.incarnation.eq(command.incarnation),
                g.notified.eq(dut.now - dut.cnp_interval),
            ]

    def _covers(self, m):
        dut, nacks, twice = self.dut, Signal(2), Signal()
        with m.If(self.nack & (nacks != 3)):
            m.d.sync += nacks.eq(nacks + 1)
        with m.If(self.delivered & (self.frame.bodies == 3)):
            m.d.sync += twice.eq(1)
        m.d.comb += [
            Cover(self.delivered & twice & (dut.beat.empty == 3)),
            Cover(self.early & twice),
            Cover(self.nack & (nacks == 1)),
            Cover(dut.events.no_room & self.mine),
            Cover(dut.valid & dut.beat.error & ~dut.beat.first),
        ]


PROOFS = (
    Proof(
        name="ltl_receive",
        core="cores.ltl.receive.Receiver(3 connections, 4-bit sequence numbers)",
        says="frames are delivered in order, once, and answered as documented, in any network",
        module="trebuchet.cores.ltl.receive",
        build=lambda cores: ReceiverProof(cores.Receiver(SMALL)),
        depth=5,
        cover_depth=24,
        mutants=(
            Mutant(
                "takes_repeated", "self.next.eq(delta == 0)", "self.next.eq(delta[1:] == 0)", 20
            ),
            Mutant("swaps_early", "self.early.eq(delta[-1])", "self.early.eq(~delta[-1])", 16),
            Mutant("any_incarnation", "entry.open & self.mine\n", "entry.open\n", 16),
            Mutant("total_begins_anew", "total.en.eq(self.commit)", "total.en.eq(0)", 16),
            Mutant(
                "room_off_by_one",
                "level + words <= config.buffer_beats",
                "level + words < config.buffer_beats",
                16,
            ),
        ),
        assumes="the parser's rules (ltl_parser proves them)",
        not_proved="32-bit sequence numbers; a reset while running",
    ),
)
