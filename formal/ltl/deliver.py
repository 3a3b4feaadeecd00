"""Proof of ``Deliver`` in ``cores/ltl/deliver.py``: what joins its buffers.

Messages of a channel come out of its buffer (``packet_fifo_*`` prove that), each with the
connection that was committed with it; ``level`` is the number of beats committed that have not
left; for each message that has left, ``done`` tells its connection once, before the channel's next
one ends, and channels take turns, so that each is told within a cycle a channel.

The buffers of beats are the solver's: any that hold what was committed.

Not proved: a reset while running.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.stream import PacketSignature

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules, within
from .parts import LateFifo, Law, opened

__all__ = ["PROOFS"]

SMALL = LtlConfig(width=32, connections=4, slots=4, window=2, max_message=12, buffer_beats=4, vcs=2)


class AnyPackets(wiring.Component):
    """Takes the place of ``PacketFifo``; the harness says what it may show."""

    def __init__(self, width, depth):
        self.depth = depth
        members = {"i": In(PacketSignature(width)), "o": Out(PacketSignature(width))}
        super().__init__({**members, "dropped_overflow": Out(1), "dropped_error": Out(1)})

    def elaborate(self, platform):
        m = Module()
        for signal in (self.o.valid, Value.cast(self.o.payload), self.dropped_overflow):
            m.d.comb += signal.eq(AnySeq(len(signal)))
        m.d.comb += self.i.ready.eq(1)
        return m


class DeliverProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Deliver(SMALL)

    def elaborate(self, platform):
        self.m = m = new_harness()
        self.law, dut = Law(m), self.dut
        m.submodules.dut = opened(
            dut,
            platform,
            self.cores,
            PacketFifo=AnyPackets,
            StreamFifo=lambda shape, depth, registered: LateFifo(shape, depth),
        )
        free(m, dut.valid, dut.beat, dut.vc, dut.commit, dut.words, dut.connection, dut.done.ready)
        m.d.comb += Assume(~dut.commit | (dut.words != 0))
        self.owes = [Signal(name=f"owes{v}") for v in range(2)]
        self.left = [Signal(2, name=f"left{v}") for v in range(2)]
        stream_rules(m, dut.done, Assert, "done")
        for v in range(2):
            self._channel(v)
        self._done()
        overflows = Cat(beats.dropped_overflow for beats, _ in dut.queues)
        m.d.comb += Assert(dut.overflow == overflows.any())
        return m

    def _channel(self, v):
        m, dut, out = self.m, self.dut, self.dut.o[v]
        beats, origins = dut.queues[v]
        free(m, out.ready)
        stream_rules(m, beats.o, Assume, f"beats{v}")
        stream_rules(m, out, Assert, f"o{v}")
        level, messages = Signal(4, name=f"level{v}"), Signal(4, name=f"messages{v}")
        comes, moves = dut.commit & (dut.vc == v), out.valid & out.ready
        shown, last = beats.o.payload, out.payload.last
        with m.If(comes):
            m.d.comb += Assume(level + dut.words <= SMALL.buffer_beats)
        m.d.sync += [
            level.eq(level + comes * dut.words - moves),
            messages.eq(messages + comes - (moves & last)),
        ]
        self.law(origins.level == messages)
        m.d.comb += [
            Assert(dut.level[v] == level),
            Assert(messages <= level),
            Assert(level <= SMALL.buffer_beats),
            Assert(~comes | origins.i.ready),
            # The buffer shows beats of whole messages that were committed.
            Assume(~beats.o.valid | (messages != 0)),
            Assume(~beats.o.valid | shown.last | (level > messages)),
            Assume(~beats.o.valid | ~shown.last | (messages > 1) | (level == 1)),
            Assert(beats.i.valid == (dut.valid & (dut.vc == v))),
            Assert(Value.cast(beats.i.payload) == Value.cast(dut.beat)),
            Assert(origins.i.valid == comes),
            Assert(~comes | (origins.i.payload == dut.connection)),
            Assert(beats.o.ready == moves),
            Assert(origins.o.ready == (moves & last)),
            Assert(out.valid == (beats.o.valid & origins.o.valid & ~(shown.last & self.owes[v]))),
        ]
        with m.If(out.valid):
            m.d.comb += [
                Assert(out.payload[name] == shown[name])
                for name in ("data", "empty", "first", "last", "error")
            ]
            m.d.comb += Assert(out.payload.connection == origins.words[0])
        m.d.comb += Assert(messages <= SMALL.buffer_beats)
        with m.If(moves & last):
            m.d.comb += Assert(~self.owes[v])
            m.d.sync += [self.owes[v].eq(1), self.left[v].eq(out.payload.connection)]
        m.d.comb += Cover(moves & last & (messages == 2) & (level == 3))

    def _done(self):
        m, dut = self.m, self.dut
        turn, told = Signal(name="whose"), dut.done.valid & dut.done.ready
        m.d.comb += [
            Assert(dut.done.valid == Array(self.owes)[turn]),
            Assert(~dut.done.valid | (dut.done.payload == Array(self.left)[turn])),
            Assert(dut.turn == turn),
            Assert(dut.pending == Cat(self.owes)),
        ]
        for v in range(2):
            m.d.comb += Assert(~self.owes[v] | (dut.finished[v] == self.left[v]))
            with m.If(told & (turn == v)):
                m.d.sync += self.owes[v].eq(0)
        with m.If(told | ~dut.done.valid):
            m.d.sync += turn.eq(~turn)
        waited = within(m, dut.done.valid | ~Cat(self.owes).any(), 1, "told")
        m.d.comb += Assert((waited == 0) | ~Cat(self.owes).any() | dut.done.valid)
        m.d.comb += Cover(told & (turn == 1) & self.owes[0])


PROOFS = (
    Proof(
        name="ltl_deliver",
        core="cores.ltl.deliver.Deliver(2 channels, buffers of 4 beats)",
        says="messages leave with their connections, level is exact, each is reported done once",
        module="trebuchet.cores.ltl.deliver",
        build=DeliverProof,
        depth=3,
        cover_depth=12,
        mutants=(
            Mutant(
                "level_off",
                "self.level[v] + gained - moves",
                "self.level[v] + gained - out.valid",
                8,
                context="out.ready",
            ),
            Mutant(
                "done_overwritten",
                "beats.o.payload.last & pending[v]",
                "beats.o.payload.last & 0",
                10,
            ),
            Mutant(
                "origin_every_beat",
                "origins.o.ready.eq(moves & out.payload.last)",
                "origins.o.ready.eq(moves)",
                8,
            ),
            Mutant(
                "turn_stays",
                "(turn + 1) if n & (n - 1) == 0 else Array([*range(1, n), 0])[turn]",
                "turn if n & (n - 1) == 0 else Array([*range(1, n), 0])[turn]",
                8,
            ),
            Mutant("wrong_channel", "mine.eq(self.vc == v)", "mine.eq(self.vc >= v)", 8),
        ),
        assumes="a commit has room (ltl_receive), buffers hold what was committed (packet_fifo_*)",
    ),
)
