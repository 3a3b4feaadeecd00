"""Proof of ``BandSums`` in ``cores/roles/ecg/moments.py``: sum and extrema since ``clear``.

Not proved: sums of squares (compared with the model in the tests); behaviour under a reset while
running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Signal

from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness

__all__ = ["PROOFS"]


class BandSumsProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.x, dut.x_valid, dut.clear)
        x, took, cleared = Signal.like(dut.x), Signal(), Signal()
        total, most, least = (Signal.like(s) for s in (dut.total, dut.most, dut.least))
        m.d.comb += Assume(~(dut.clear & dut.x_valid))
        m.d.sync += [x.eq(dut.x), took.eq(dut.x_valid), cleared.eq(dut.clear)]
        m.d.sync += [total.eq(dut.total), most.eq(dut.most), least.eq(dut.least)]
        with m.If(cleared):
            m.d.comb += Assert((dut.total == 0) & (dut.most == 0) & (dut.least == 0))
        with m.Elif(took):
            m.d.comb += [
                Assert(dut.total == (total + x)[: len(total)].as_signed()),
                Assert((dut.most >= x) & (dut.most >= most)),
                Assert((dut.least <= x) & (dut.least <= least)),
                Assert((dut.most == x) | (dut.most == most)),
                Assert((dut.least == x) | (dut.least == least)),
            ]
        with m.Else():
            m.d.comb += Assert((dut.total == total) & (dut.most == most) & (dut.least == least))
        m.d.comb += Assert((dut.most >= 0) & (dut.least <= 0))
        m.d.comb += Cover((dut.most == 100) & (dut.least == -3) & (dut.total == 90))
        return m


PROOFS = (
    Proof(
        name="ecg_band_sums",
        core="cores.roles.ecg.moments.BandSums()",
        says="sum, largest and smallest of the values since `clear`",
        module="trebuchet.cores.roles.ecg.moments",
        build=lambda cores: BandSumsProof(cores.BandSums()),
        depth=2,
        cover_depth=6,
        mutants=(
            Mutant("keeps_the_least", "with m.If(self.x < self.least):", "with m.If(self.x > 0):"),
            Mutant("sums_late", "self.total.eq(self.total + self.x)", "self.total.eq(self.x)"),
            Mutant(
                "keeps_the_most",
                "[self.total.eq(0), self.most.eq(0), self.least.eq(0)]",
                "[self.total.eq(0), self.least.eq(0)]",
            ),
        ),
        assumes="`clear` only without a value",
    ),
)
