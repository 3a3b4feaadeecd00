"""Proof of the shares of ``FairMux`` in ``cores/bridge/fair.py``.

By induction: over any time in which both inputs always wait, from an arbitrary cycle on, the beats
that they have sent differ by no more than twice the quantum.

Not proved: other sizes than those named; behaviour under a reset while running.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, signed

from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


class ShareProof(Elaboratable):
    """Beats of both inputs since a cycle that the solver picks, while both always wait."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        o, q = dut.o, dut.quantum
        free(m, o.ready)
        begun = []
        for k in range(2):
            free(m, dut.i[k].valid, dut.i[k].payload)
            begun.append(stream_rules(m, dut.i[k], Assume, f"i{k}"))
        both, counts, moves_o = Signal(), Signal(), moves(o)
        # Beats of the packet under way; those of input 1 less those of input 0; less its lead.
        nth, ahead, slack = Signal(4), Signal(signed(8)), Signal(signed(8))
        first = Signal(init=1)  # the packet in which the count began is still under way
        begins_now = Signal()
        m.d.comb += [
            both.eq(dut.i[0].valid & dut.i[1].valid),
            begins_now.eq(AnySeq(1)),
            slack.eq(ahead - dut.lead),
            Assume(~o.valid | o.p.last | (nth < q - 1)),  # no packet is longer than the quantum
        ]
        with m.If(moves_o):
            m.d.sync += nth.eq(Mux(o.p.last, 0, nth + 1))
        with m.If(~both | begins_now):
            m.d.sync += [counts.eq(both), ahead.eq(0), first.eq(1)]
        with m.Elif(counts & moves_o):
            m.d.sync += [ahead.eq(Mux(dut.index, ahead + 1, ahead - 1))]
            m.d.sync += first.eq(first & ~o.p.last)
        with m.If(counts & both):
            m.d.comb += [Assert(ahead <= 2 * q), Assert(ahead >= -2 * q)]
            m.d.comb += [Cover(ahead == q), Cover(ahead == -q)]
        # Invariants: after the first packet the lead is never cut off at the quantum.
        m.d.comb += [
            Assert((dut.lead <= q) & (dut.lead >= -q)),
            Assert(nth < q),
            Assert(dut.started == (nth != 0)),
        ]
        for k in range(2):
            m.d.comb += Assert(begun[k] == ~(dut.started & (dut.index == k)))
        lead = Mux(dut.index, dut.lead, -dut.lead)  # of the granted input
        beats = Mux(dut.index, ahead, -ahead)
        with m.If(counts):
            m.d.comb += [Assert(slack <= q), Assert(slack >= -q)]
            with m.If(first):
                m.d.comb += [Assert(beats >= 0), Assert(beats <= nth)]
            with m.Else():
                m.d.comb += Assert(lead <= nth)
        return m


PROOFS = (
    Proof(
        name="bridge_mux_share",
        core="cores.bridge.fair.FairMux(32, quantum=3)",
        says="while both inputs wait, the beats that they send differ by at most twice the quantum",
        module="trebuchet.cores.bridge.fair",
        build=lambda cores: ShareProof(cores.FairMux(32, 3)),
        depth=3,
        cover_depth=14,
        mutants=(
            Mutant("turns_by_packets", "Mux(grant, following >= 0, following <= 0)", "1", 16),
            Mutant(
                "counts_one_side",
                "with m.If(grant & (lead != self.quantum)):",
                "with m.If(grant & (lead < 0)):",
                16,
            ),
        ),
        assumes="the stream rules on the inputs; no packet is longer than the quantum",
    ),
)
