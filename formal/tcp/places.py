"""Proof of ``PlacePools`` in ``cores/tcp/places.py``: two services with four places each.

No place is used twice, none is lost: what is offered is free in the pool of the service that is
picked, and of each pool the places that are free, by the number that is shown, and those that were
taken and not given back are always four. A place that is free is offered when nothing has changed
for two cycles. The holder of a place is the session that took it last.

Not proved: other sizes; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

PLACES, SERVICES, SESSION_BITS = 4, 2, 3
BITS = 2


class PlacesProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        Inside(m, dut)
        free(m, dut.pick, dut.take, dut.session, dut.asked, dut.give, dut.given)
        self.used = used = [Signal(PLACES, name=f"used_{k}") for k in range(SERVICES)]
        full = Signal()  # all places of service 0 were taken
        place, service = dut.given[:BITS], dut.given[BITS:]
        m.d.comb += [
            Assume(dut.valid | ~dut.take),
            # What is given back was taken, and not given back before.
            Assume(~dut.give | Array(used)[service].bit_select(place, 1)),
        ]
        for k, own in enumerate(used):
            takes, gives = dut.take & (dut.pick == k), dut.give & (service == k)
            m.d.sync += own.eq((own | (takes << dut.number)) & ~(gives << place))
            with m.If(dut.valid & (dut.pick == k)):
                m.d.comb += Assert(~own.bit_select(dut.number, 1))
            m.d.comb += Assert(dut.free[k] + sum(own) == PLACES)
        self._offers(m)
        self._holders(m)
        self._invariants(m)
        with m.If(used[0].all()):
            m.d.sync += full.eq(1)
        m.d.comb += Cover(full & (used[0] == 0b0100) & (used[1] == 0b0010))
        return m

    def _offers(self, m):
        """A free place is offered as soon as nothing has changed for two cycles."""
        dut = self.dut
        still, pick = Signal(2), Signal.like(dut.pick)
        changes = dut.take | dut.give | (dut.pick != pick) | ~dut.filled
        m.d.sync += [pick.eq(dut.pick), still.eq(Mux(changes, 0, still + (still != 2)))]
        with m.If((still == 2) & ~dut.give & (dut.pick == pick)):
            m.d.comb += Assert(dut.valid == (Array(dut.free)[dut.pick] != 0))
        with m.If((still != 0) & (dut.pick == pick)):  # invariant
            m.d.comb += [Assert(~dut.wrote), Assert(dut.filled)]
            m.d.comb += Assert((still < 2) | (dut.last == self._top()))

    def _top(self):
        level = Array(self.dut.free)[self.dut.pick]
        return Cat((level - 1)[:BITS], self.dut.pick)

    def _holders(self, m):
        """Whose an arbitrary place is."""
        dut = self.dut
        place, session, taken = Signal(BITS + 1), Signal(SESSION_BITS), Signal(name="ever_taken")
        asked, then = Signal(), Signal(SESSION_BITS, name="session_then")
        m.d.comb += place.eq(AnyConst(BITS + 1))
        with m.If(dut.take & (Cat(dut.number, dut.pick) == place)):
            m.d.sync += [session.eq(dut.session), taken.eq(1)]
        m.d.sync += [asked.eq(taken & (dut.asked == place)), then.eq(session)]
        peek = dut.memories[1].read_port(domain="comb")
        m.d.comb += [
            peek.addr.eq(place),
            Assert(~taken | (peek.data == session)),
            Assert(~asked | (dut.holder == then)),
        ]

    def _invariants(self, m):
        """Each place is on its stack once, or taken; before, the stacks are being filled."""
        dut = self.dut
        words = []
        for at in range(PLACES * SERVICES):
            peek = dut.memories[0].read_port(domain="comb")
            m.d.comb += peek.addr.eq(at)
            words.append(peek.data)
            with m.If(~dut.filled & (dut.fill > at)):
                m.d.comb += Assert(peek.data == at % PLACES)
        with m.If(dut.filled):
            for k, own in enumerate(self.used):
                for n in range(PLACES):
                    rows = enumerate(words[k * PLACES : (k + 1) * PLACES])
                    waits = [(dut.free[k] > row) & (word == n) for row, word in rows]
                    m.d.comb += Assert(sum(waits) + own[n] == 1)
        with m.Else():
            m.d.comb += [Assert(own == 0) for own in self.used]
        read = dut.memories[0].read_ports[0]
        with m.If(~dut.wrote & dut.filled):
            m.d.comb += Assert(read.data == Array(words)[dut.last])


PROOFS = (
    Proof(
        name="tcp_places",
        quick=True,
        core="cores.tcp.places.PlacePools(2 services with 4 places)",
        says="no place is used twice or lost; what is free is offered; whose a place is, is known",
        module="trebuchet.cores.tcp.places",
        build=lambda cores: PlacesProof(cores.PlacePools(PLACES, SERVICES, SESSION_BITS)),
        depth=2,
        cover_depth=36,
        mutants=(
            Mutant(
                "offers_the_last_again",
                "(last == read.addr) & ~wrote & ~self.give",
                "(last == read.addr) & ~self.give",
                18,
            ),
            Mutant("offers_another_pools", "(level != 0) & (last == read.addr)", "level != 0", 18),
            Mutant(
                "two_at_once",
                "filled & (level != 0) & (last == read.addr) & ~wrote & ~self.give",
                "filled & (level != 0) & (last == read.addr) & ~wrote",
                18,
            ),
            Mutant("loses_one", "Cat(back[: self.bits], service)", "Cat(back[1:], service)", 18),
            Mutant("of_any_service", "self.take & (self.pick == k)", "self.take", 18),
            Mutant("whose_it_was", "enter.en.eq(self.take)", "enter.en.eq(self.give)", 18),
        ),
        assumes="a place is taken only while it is offered, and given back only while taken",
        not_proved="other sizes; a reset while running",
    ),
)
