"""Proof of ``CreditCounter`` in ``cores/router/credits.py`` against rule 3 of the contract.

Over public ports: flits of each VC are counted naively, a credit for a VC that holds nothing is
ignored; ``ready`` is, for each VC, exactly what rule 3 says of these counts, so that the reserve of
a VC is never lent and shared places are lent to whoever comes, all of them; ``idle`` tells that
nothing is held.

Not proved: a reset while running; other sizes than those named.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS"]


class CreditsProof(Elaboratable):
    def __init__(self, dut, vcs, places, reserved):
        self.dut, self.vcs, self.places, self.reserved = dut, vcs, places, reserved

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        shared = self.places - self.vcs * self.reserved
        wanted = Signal(self.vcs)
        m.d.comb += [
            wanted.eq(AnySeq(self.vcs)),
            dut.credit.eq(AnySeq(self.vcs)),
            Assume((wanted & (wanted - 1)) == 0),
            dut.send.eq(wanted & dut.ready),
        ]
        held = [Signal(5, name=f"count{v}") for v in range(self.vcs)]
        excess = [Mux(h > self.reserved, h - self.reserved, 0) for h in held]
        lent = Signal(5)
        m.d.comb += lent.eq(sum(excess))
        for v, count in enumerate(held):
            owed = dut.credit[v] & (count != 0)
            m.d.sync += count.eq(count + dut.send[v] - owed)
            may = (count < self.reserved) | (lent < shared)
            m.d.comb += Assert(dut.ready[v] == may)
            m.d.comb += Assert(dut.held[v] == count)  # an invariant
        m.d.comb += [Assert(dut.idle == (sum(held) == 0)), Assert(sum(held) <= self.places)]
        m.d.comb += [Assert(lent <= shared), Assert(dut.lent == lent)]  # invariants
        full = Signal()
        with m.If(sum(held) == self.places):
            m.d.sync += full.eq(1)
        m.d.comb += [
            Cover(full & dut.idle),
            Cover(held[0] == shared + self.reserved),
            Cover(full & dut.send.any() & dut.credit.all() & (held[-1] == 0)),
        ]
        return m


def _proof(name, vcs, places, reserved, mutants):
    def build(cores):
        contract = __import__("trebuchet.cores.router.contract", fromlist=["LinkConfig"])
        config = contract.LinkConfig(vcs=vcs, flit_width=1, buffer_flits=places, reserved=reserved)
        return CreditsProof(cores.CreditCounter(config), vcs, places, reserved)

    return Proof(
        name=f"router_credits_{name}",
        core=f"cores.router.credits.CreditCounter({vcs} VCs, {places} flits, {reserved} reserved)",
        says="ready is rule 3 of the contract, of the flits that are held; idle says if any is",
        module="trebuchet.cores.router.credits",
        build=build,
        depth=2,
        cover_depth=16,
        mutants=mutants,
        assumes="one flit a cycle is sent, only with its bit of `ready`",
    )


PROOFS = (
    _proof(
        "3",
        3,
        5,
        1,
        (
            Mutant("lends_the_reserve", "self.lent != shared", "1"),
            Mutant("lends_one_less", "self.lent != shared", "self.lent < shared - 1"),
            Mutant("believes_any_credit", "self.credit[v] & (held != 0)", "self.credit[v]"),
            Mutant("repays_once", "sum(repays[1:], repays[0])", "Cat(repays).any()"),
            Mutant("forgets_the_last", "~Cat(self.held).any()", "~Cat(self.held[:-1]).any()"),
        ),
    ),
    _proof(
        "reserved",
        2,
        6,
        3,
        (
            Mutant("one_less", "self.ready[v].eq(held < reserved)", "self.ready[v].eq(held < 2)"),
            Mutant("one_more", "self.ready[v].eq(held < reserved)", "self.ready[v].eq(held < 4)"),
            Mutant("counts_one_way", "credit & ~self.send[v]", "credit"),
        ),
    ),
)
