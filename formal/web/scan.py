"""Proof of ``EndScan`` in ``cores/web/scan.py``: where request heads end.

Beats of any alignment and number, one after the other, each begun in the state in which the one
before ended, are compared with the definition, of which the last three bytes are kept. The end is
found with the first CR LF CR LF, or the first byte that shows a CR or LF to be no part of a CR LF,
and nowhere else.

Not proved: other sizes.
"""

from amaranth.hdl import Assert, Assume, C, Cat, Cover, Elaboratable, Mux, Signal, Value

from ...cores.web.scan import CR, LF, ScanState
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]


class EndScanProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        state, self.over = Signal(ScanState), Signal(name="is_over")
        another = Signal(name="another")  # head
        free(m, dut.data, dut.skip, dut.stop, another)
        # What the bytes so far end with, and how many they are, up to 3.
        self.tail, self.count = Signal(24, name="last_bytes"), Signal(2, name="bytes_so_far")
        tail, count, over, end, broken = self._beat(m)
        m.d.comb += [Assume(dut.stop <= dut.width // 8), dut.state.eq(state)]
        m.d.sync += [state.eq(dut.after), self.tail.eq(tail), self.count.eq(count)]
        m.d.sync += self.over.eq(over)
        with m.If(another):
            m.d.sync += [self.tail.eq(0), self.count.eq(0), self.over.eq(0)]
            m.d.sync += state.eq(ScanState.START)
        with m.If(~self.over):
            m.d.comb += [
                Assert(dut.found == over),
                Assert(dut.end == end),
                Assert(~over | (dut.broken == broken)),
            ]
            self._states(m, state)
        ends = over & ~self.over
        m.d.comb += [Cover(ends & ~broken & (end == 3)), Cover(ends & broken)]
        return m

    def _beat(self, m):
        """The definition, a byte after the other: what is known behind the beat."""
        dut = self.dut
        known = self.tail, self.count, self.over, dut.stop, C(0, 1)
        names = ("tail", "count", "over", "end", "broken")
        for k in range(dut.width // 8):
            tail, count, over, end, broken = known
            byte, before = dut.data.word_select(k, 8), Mux(count != 0, tail[:8], 0)
            here = (dut.skip <= k) & (dut.stop > k) & ~over
            bare = ((before == CR) & (byte != LF)) | ((byte == LF) & (before != CR))
            empty = (count == 3) & (Cat(byte, tail) == Cat(C(b, 8) for b in (LF, CR, LF, CR)))
            ends = here & (bare | empty)
            known = tuple(
                Signal(len(Value.cast(value)), name=f"{name}{k}")
                for name, value in zip(names, known, strict=True)
            )
            m.d.comb += [
                known[0].eq(Mux(here, Cat(byte, tail[:16]), tail)),
                known[1].eq(Mux(here & (count != 3), count + 1, count)),
                known[2].eq(over | ends),
                known[3].eq(Mux(ends, k + 1, end)),
                known[4].eq(Mux(ends, bare, broken)),
            ]
        return known

    def _states(self, m, state):
        """Which bytes a state stands for."""
        tail, count = self.tail, self.count
        cr, lf = (count != 0) & (tail[:8] == CR), (count != 0) & (tail[:8] == LF)
        line = (count >= 2) & (tail[:16] == Cat(C(LF, 8), C(CR, 8)))
        last_cr = cr & (count == 3) & (tail[8:] == Cat(C(LF, 8), C(CR, 8)))
        m.d.comb += Assert(Value.cast(state) < len(ScanState))
        for number, holds in (
            (ScanState.START, count == 0),
            (ScanState.EMPTY, cr & (count == 1)),
            (ScanState.LINE, line),
            (ScanState.TEXT, (count != 0) & ~cr & ~lf),
            (ScanState.LINE_CR, cr & (count != 1) & ~last_cr),
            (ScanState.LAST_CR, last_cr),
        ):
            m.d.comb += Assert((state == number) == holds)


PROOFS = (
    Proof(
        name="web_scan",
        core="cores.web.scan.EndScan(64)",
        says="an end is found at the first empty line, or at a bare CR or LF, and nowhere else",
        module="trebuchet.cores.web.scan",
        build=lambda cores: EndScanProof(cores.EndScan(64)),
        depth=1,
        cover_depth=4,
        mutants=(
            Mutant("bare_lf", "breaks.eq(lf)", "breaks.eq(0)", 4, within="with m.Default():"),
            Mutant(
                "cr_alone",
                "after.eq(ScanState.LINE), breaks.eq(~lf)",
                "after.eq(ScanState.LINE), breaks.eq(0)",
                4,
            ),
            Mutant("goes_on", "now & ~found & (ends | breaks)", "now & (ends | breaks)", 4),
            Mutant(
                "empty_line_ends", "after.eq(ScanState.EMPTY)", "after.eq(ScanState.LAST_CR)", 4
            ),
        ),
        assumes="nothing",
        not_proved="nothing: no state",
    ),
)
