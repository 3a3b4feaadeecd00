"""Proof of ``PortSender`` in ``cores/bridge/sender.py``.

By induction: every beat leaves once by each port of its frame, in order, as it is, and by no other;
the ports are those that its first six bytes say.

Not proved: other data paths than 32 bits; addresses that change while a frame is under way;
behaviour under a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


class SenderProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        i, ports = dut.i, [dut.o[0], dut.o[1]]
        free(m, i.valid, i.payload, *(port.ready for port in ports))
        m.d.comb += dut.host.eq(AnyConst(48))
        begins_in = stream_rules(m, i, Assume, "i")
        begins = [stream_rules(m, port, Assert, f"o{k}") for k, port in enumerate(ports)]
        # The model: the beat that came last, and the ports that have had it.
        held, holds, had, route = Signal(i.p.shape()), Signal(), Signal(2), Signal(2)
        sent, should = Signal(2), Signal(2)
        m.d.comb += sent.eq(Cat(moves(port) for port in ports))
        with m.If(held.first):
            m.d.comb += should.eq(self._ports(held, i.p))
        with m.Else():
            m.d.comb += should.eq(route)
        ended = (had | sent) == should
        known = i.valid | held.last | ~held.first
        with m.If(moves(i)):
            m.d.sync += [holds.eq(1), held.eq(i.p), had.eq(0), route.eq(should)]
            m.d.comb += Assert(~holds | ended)
        with m.Elif(i.ready):
            m.d.sync += holds.eq(0)
            m.d.comb += Assert(~holds | (known & ended))
        with m.Else():
            m.d.sync += had.eq(had | sent)
        for k, port in enumerate(ports):
            m.d.comb += Assert(
                ~port.valid | (holds & known & should[k] & ~had[k] & self._same(port.p, held))
            )
        self._progress(m, i, ports, holds, known)
        self._invariants(m, holds, held, known, had, should)
        self._places(m, begins_in, begins, holds, held, had, should, route)
        m.d.comb += [
            Cover(moves(i) & ~held.first & (should == bits) & holds) for bits in (0b01, 0b10, 0b11)
        ]
        return m

    @staticmethod
    def _same(one, other):
        return Value.cast(one) == Value.cast(other)

    def _ports(self, first, second):
        """By the first six bytes of a frame; of a single beat only four are known."""
        address = Cat(first.data, second.data)[:48]
        lone = Mux((address == self.dut.host) & ~first.last, 0b10, 0b01)
        return Mux(first.data[0], 0b11, lone)

    def _progress(self, m, i, ports, holds, known):
        """A beat whose ports are known is offered a cycle later at the latest."""
        waited = Signal()
        offered = ports[0].valid | ports[1].valid
        m.d.sync += waited.eq(holds & known & ~offered & ~moves(i))
        with m.If(waited):
            m.d.comb += Assert(offered)

    def _invariants(self, m, holds, held, known, had, should):
        dut = self.dut
        decided = holds & ~dut.undecided
        m.d.comb += [
            Assert(dut.holds == holds),
            Assert(~holds | self._same(dut.held, held)),
            Assert(~dut.undecided | (holds & held.first & (had == 0))),
            Assert(dut.owed == Mux(decided, should & ~had, 0)),
            Assert(~decided | (known & (dut.route == should) & ((had & ~should) == 0))),
            Assert(~decided | (dut.owed != 0)),
        ]

    def _places(self, m, begins_in, begins, holds, held, had, should, route):
        """Invariants: where in a frame the input and each port are."""
        inside = ~holds & ~begins_in
        m.d.comb += [
            Assert(~holds | (begins_in == held.last)),
            Assert(~holds | held.last | ((held.empty == 0) & ~held.error)),
            Assert(~inside | (~held.first & (self.dut.route == route) & route.any())),
        ]
        for k, begin in enumerate(begins):
            within = Mux(had[k], held.last, held.first | ~should[k])
            m.d.comb += Assert(begin == Mux(holds, within, begins_in | ~route[k]))


PROOFS = (
    Proof(
        name="bridge_sender",
        quick=True,
        core="cores.bridge.sender.PortSender(32)",
        says="a frame leaves once by each port of its destination, in order, and by no other",
        module="trebuchet.cores.bridge.sender",
        build=lambda cores: SenderProof(cores.PortSender(32)),
        depth=2,
        cover_depth=10,
        mutants=(
            Mutant("groups_to_the_host", "choice.eq(0b11)", "choice.eq(0b10)"),
            Mutant(
                "all_to_the_network",
                "(bits == self.host) & whole, 0b10, 0b01",
                "(bits == self.host) & whole, 0b01, 0b01",
            ),
            Mutant("does_not_wait", "~(owed & ~ready).any()", "(ready | ~owed).any()"),
            Mutant("twice", "owed.eq(owed & ~ready)", "owed.eq(owed)"),
            Mutant("too_soon", "with m.If(i.valid | held.last):", "with m.If(1):"),
            Mutant(
                "forgets_its_route",
                "i.valid & ~i.p.first, route, 0",
                "i.valid & ~i.p.first, 0b01, 0",
            ),
        ),
        assumes="the stream rules on the input; the host's address is constant",
    ),
)
