"""Proofs of the wavelet transform, ``cores/roles/ecg/dwt.py``.

``DwtLevel``: the coefficients of every pair are those of the defining sums over it and its
neighbours, at a block's ends over itself; they come in order, two cycles after the pair to the
right, or ``gap`` and two after the last; nothing else comes. ``TwoLevelDwt``, its levels left out:
the second level gets the first's approximations in twos, from each block's beginning.

Not proved: other widths than those named; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, signed
from amaranth.lib import data

from ...kit.contracts import Inside, leaves_of
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness

__all__ = ["PROOFS"]


class DwtLevelProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        bits = dut.bits
        inside = Inside(m, dut)
        free(m, dut.i_valid, dut.i_last, dut.i_even, dut.i_odd)
        pair = data.StructLayout({name: signed(bits) for name in ("even", "odd", "before")})
        waits, have = Signal(pair), Signal()  # the pair that lacks its neighbour
        since = Signal(range(dut.gap + 1))  # cycles since a block's last pair came
        ends = since == dut.gap
        m.d.comb += Assume(~dut.i_valid | (since == 0))
        with m.If(dut.i_valid):
            before = Mux(have, waits.odd, dut.i_even)
            m.d.sync += [waits.even.eq(dut.i_even), waits.odd.eq(dut.i_odd), have.eq(1)]
            m.d.sync += [waits.before.eq(before), since.eq(dut.i_last)]
        with m.Elif(since != 0):
            m.d.sync += since.eq(Mux(ends, 0, since + 1))
        with m.If(ends):
            m.d.sync += have.eq(0)

        known = data.StructLayout({"valid": 1, "last": 1, "a": signed(bits), "d": signed(bits + 1)})
        begun, done = Signal(known), Signal(known)
        after = Mux(ends, waits.odd, dut.i_even)
        m.d.sync += [
            begun.valid.eq(ends | (dut.i_valid & have)),
            begun.last.eq(ends),
            begun.a.eq((waits.before + 3 * waits.even + 3 * waits.odd + after + 4) >> 3),
            begun.d.eq(waits.even - waits.odd),
            done.eq(begun),
        ]
        m.d.comb += [
            Assert(dut.o_valid == done.valid),
            Assert(dut.o_last == done.last),
            Cover(done.valid & done.last & (done.a != 0) & (done.d != 0)),
            Cover(done.valid & ~done.last & begun.valid & (dut.o_a < 0)),
        ]
        with m.If(done.valid):
            m.d.comb += [Assert(dut.o_a == done.a), Assert(dut.o_d == done.d)]
        self._invariants(m, inside, waits, have, since)
        return m

    def _invariants(self, m, inside, waits, have, since):
        m.d.comb += [
            Assert(inside["waiting"] == have),
            Assert(have | (since == 0)),
            Assert(inside["flushes"] == Mux(since == 0, 0, 1 << since >> 1)),
        ]
        with m.If(have):
            m.d.comb += [Assert(inside[n] == waits[n]) for n in ("even", "odd", "before")]


class TwoLevelProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut)
        free(m, *(port for _, port in leaves_of(dut, dut.signature.members["i_valid"].flow)))
        one, two = inside.parts["level1"], inside.parts["level2"]
        second, past = Signal(), Signal(signed(dut.bits))
        with m.If(one.o_valid):
            m.d.sync += [second.eq(~second & ~one.o_last), past.eq(one.o_a)]
        m.d.comb += [
            Assert(two.i_valid == (one.o_valid & second)),
            Assert(~two.i_valid | ((two.i_even == past) & (two.i_odd == one.o_a))),
            Assert(two.i_last == one.o_last),
            Assert((one.i_valid == dut.i_valid) & (one.i_last == dut.i_last)),
            Assert((one.i_even == dut.i_even) & (one.i_odd == dut.i_odd)),
            Assert((dut.valid1 == one.o_valid) & (dut.a1 == one.o_a) & (dut.d1 == one.o_d)),
            Assert((dut.valid2 == two.o_valid) & (dut.last2 == two.o_last)),
            Assert((dut.a2 == two.o_a) & (dut.d2 == two.o_d)),
            Cover(two.i_valid & two.i_last),
            Assert(inside["odd"] == second),  # two invariants
            Assert(~second | (inside["held"] == past)),
        ]
        return m


PROOFS = (
    *(
        Proof(
            name=f"ecg_dwt_{gap}",
            core=f"cores.roles.ecg.dwt.DwtLevel(4, gap={gap})",
            says="coefficients are the defining sums of each pair and its neighbours, in order",
            module="trebuchet.cores.roles.ecg.dwt",
            build=lambda cores, gap=gap: DwtLevelProof(cores.DwtLevel(4, gap)),
            depth=3,
            cover_depth=10,
            mutants=mutants,
            assumes="no pair until the last one's sums are begun",
        )
        for gap, mutants in (
            (
                1,
                (
                    Mutant(
                        "rounds_down",
                        "sides.eq(before - ~after), detail.eq(even - odd)",
                        "sides.eq(before + after), detail.eq(even - odd)",
                    ),
                    Mutant(
                        "own_neighbour",
                        "m.d.comb += after.eq(self.i_even)",
                        "m.d.comb += after.eq(self.i_odd)",
                    ),
                    Mutant(
                        "forgets_the_edge",
                        "m.d.sync += before.eq(self.i_even)",
                        "m.d.sync += before.eq(0)",
                    ),
                    Mutant(
                        "weighs_twice", "(middle << 1) + middle + sides", "(middle << 1) + sides"
                    ),
                    Mutant("stays_open", "m.d.sync += waiting.eq(0)", "m.d.sync += waiting.eq(1)"),
                ),
            ),
            (
                3,
                (
                    Mutant("flushes_early", "flush.eq(flushes[-1])", "flush.eq(flushes[0])"),
                    Mutant("wrong_sign", "detail.eq(even - odd)", "detail.eq(odd - even)"),
                ),
            ),
        )
    ),
    Proof(
        name="ecg_dwt_levels",
        core="cores.roles.ecg.dwt.TwoLevelDwt(4)",
        says="the second level gets the first's approximations in twos, from a block's beginning",
        module="trebuchet.cores.roles.ecg.dwt",
        build=lambda cores: TwoLevelProof(cores.TwoLevelDwt(4)),
        depth=2,
        cover_depth=6,
        mutants=(
            Mutant("out_of_step", "odd.eq(~odd & ~level1.o_last)", "odd.eq(~odd)"),
            Mutant("details_instead", "held.eq(level1.o_a)", "held.eq(level1.o_d)"),
            Mutant("every_value", "level1.o_valid & odd", "level1.o_valid"),
        ),
        assumes="nothing",
    ),
)
