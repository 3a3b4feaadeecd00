"""Proof of ``SdClock`` in ``cores/sd/clock.py``.

Contract, over public ports, for any half periods that change at any time: the clock never glitches:
each level lasts at least the cycles that ``half`` named at its edge, the high one no longer; it
rises only if ``run`` was 1; ``fall`` marks exactly the cycles before falling edges; and each rising
edge at which the host did not drive the line has exactly one sample, ``delay`` + 1 cycles after it,
also if the clock has stopped since.

Not proved: behaviour under a reset while running, and samples in flight while ``delay`` changes.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness

__all__ = ["PROOFS"]


class SdClockProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        free(m, dut.half, dut.run, dut.cmd_driven, dut.dat_driven)
        m.d.comb += dut.delay.eq(AnyConst(2))
        past, past_run, past_fall = Signal(), Signal(), Signal()
        rises, changes = Signal(), Signal()
        # Cycles since the last edge, of which this is the first; what `half` was before it.
        since, half, past_half = Signal(10, init=512), Signal(8), Signal(8)
        now, level = Signal(10), Signal(8)
        m.d.comb += [
            rises.eq(dut.sd_clk & ~past),
            changes.eq(dut.sd_clk ^ past),
            now.eq(Mux(changes, 0, since)),
            level.eq(Mux(changes, past_half, half)),
            Assert(~changes | (since > half)),
            Assert(~dut.sd_clk | (now <= level)),
            Assert(~rises | past_run),
            Assert(past_fall == (past & ~dut.sd_clk)),
            Assert(dut.count == Mux(now <= level, level - now, 0)),
        ]
        m.d.sync += [past.eq(dut.sd_clk), past_run.eq(dut.run), past_fall.eq(dut.fall)]
        m.d.sync += [past_half.eq(dut.half), half.eq(level), since.eq(now + ~now[9])]
        for name in ("cmd", "dat"):
            driven = Signal(name=f"{name}_was_driven")
            history = Signal(3, name=f"{name}_history")
            edges = Cat(rises & ~driven, history)
            m.d.sync += [driven.eq(getattr(dut, f"{name}_driven")), history.eq(edges)]
            m.d.comb += Assert(getattr(dut, f"{name}_sample") == Array(edges)[dut.delay])
            m.d.comb += Assert(dut.lines[name] == edges)
        m.d.comb += [
            Cover(rises & (half == 2) & dut.cmd_driven & dut.dat_sample),
            Cover(dut.cmd_sample & ~dut.sd_clk & (now == 2) & (dut.delay == 3)),
        ]
        return m


PROOFS = (
    Proof(
        name="sd_clock",
        core="cores.sd.clock.SdClock()",
        says="the bus clock has no glitch; each rising edge has its sample if the card drives",
        module="trebuchet.cores.sd.clock",
        build=lambda cores: SdClockProof(cores.SdClock()),
        depth=2,
        cover_depth=24,
        mutants=(
            Mutant("cut_short", "with m.If(count != 0):", "with m.If((count != 0) & self.run):"),
            Mutant("stops_high", "self.sd_clk | self.run", "self.run", depth=6),
            Mutant("rises_unasked", "self.sd_clk | self.run", "1", depth=6),
            Mutant("own_levels", "rise & ~driven", "rise", depth=6),
            Mutant("samples_late", "Array(line)[self.delay]", "line[3]", depth=6),
        ),
        assumes="`delay` is constant",
        not_proved="a reset while running; samples in flight while `delay` changes",
    ),
)
