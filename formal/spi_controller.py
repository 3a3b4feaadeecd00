"""Proof of ``SpiController`` in ``cores/spi_controller.py``.

Contract, over public ports: a byte is taken exactly when it is written with ``go`` and none is
under way; then the serial clock makes eight periods, low first, each half of ``half_period``
cycles, and nothing else moves it; in period ``k``, for the whole of it, ``mosi`` is bit ``7 - k``
of the byte; ``miso`` is taken in the last cycle of each high half, and only then; ``busy`` holds
for those cycles; afterwards ``received`` is what was taken, until the next byte is written. Chip
select is the register's, inverted. So it is a source of bytes for ``WordReader``.

Not proved: other periods than those named; behaviour under a reset while running; that firmware
keeps ``select`` while a byte is under way.
"""

from amaranth.hdl import Array, Assert, Cat, Const, Cover, Elaboratable, Mux, Signal

from .kit.proof import Mutant, Proof
from .kit.standins import elaborated
from .stream import free, new_harness
from .word_reader import byte_source_rules

__all__ = ["PROOFS"]


class SpiControllerProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        half = dut.half_period
        free(m, dut.csr.control, dut.csr.send, dut.miso)
        # The byte under way: what it is, which half of which period it is in, what has come.
        active, sent, got = Signal(), Signal(8), Signal(8)
        cycle, halves = Signal(range(half + 1)), Signal(range(17))
        starts, ends_half = Signal(), Signal()
        m.d.comb += [
            starts.eq(dut.csr.send[8] & ~active),
            ends_half.eq(active & (cycle == half - 1)),
        ]
        m.d.sync += cycle.eq(Mux(active & ~ends_half, cycle + 1, 0))
        with m.If(starts):
            m.d.sync += [active.eq(1), sent.eq(dut.csr.send[:8]), halves.eq(0)]
        with m.If(ends_half):
            m.d.sync += halves.eq(halves + 1)
            with m.If(halves[0]):
                m.d.sync += got.eq(Cat(dut.miso, got))
            with m.If(halves == 15):
                m.d.sync += active.eq(0)
        busy = dut.csr.received[8]
        m.d.comb += [
            Assert(dut.cs_n == ~dut.csr.control),
            Assert(busy == active),
            Assert(dut.sck == (active & halves[0])),
        ]
        with m.If(active):
            m.d.comb += Assert(dut.mosi == Array(reversed(list(sent)))[halves[1:4]])
        with m.If(~active & (halves == 16)):
            m.d.comb += Assert(dut.csr.received[:8] == got)
        byte_source_rules(m, starts, busy, dut.csr.received[:8], Assert)
        self._covers(m, active, halves, sent)
        self._invariants(m, active, cycle, halves, sent, got)
        return m

    def _covers(self, m, active, halves, sent):
        dut, refused, bytes_sent = self.dut, Signal(), Signal(2)
        ended, was_active = Signal(), Signal()
        m.d.sync += was_active.eq(active)
        m.d.comb += ended.eq(was_active & ~active)
        m.d.sync += refused.eq(refused | (active & (dut.csr.send == 0x155)))
        m.d.sync += bytes_sent.eq(bytes_sent + ended)
        m.d.comb += [
            Cover(ended & (sent == 0xA3) & (dut.csr.received == 0x3C) & refused),
            Cover(ended & (bytes_sent == 1)),
        ]

    def _invariants(self, m, active, cycle, halves, sent, got):
        dut, half = self.dut, self.dut.half_period
        gone = Array(
            Cat(got[:k], sent[: 8 - k]) if k < 8 else Cat(got) for k in range(9)
        )  # bits that came at the low end, those still to go at the high end
        m.d.comb += [
            Assert(dut.left == Mux(active, 16 - halves, 0)),
            Assert(~active | (halves < 16)),
            Assert(~active | (cycle < half)),
            Assert(active | (cycle == 0)),
            Assert(active | (halves == 0) | (halves == 16)),
            Assert(~active | (dut.shift == gone[halves[1:]])),
            Assert(active | (halves != 16) | (dut.shift == got)),
        ]
        if half > 1:
            m.d.comb += Assert(dut.wait == Mux(active, Const(half - 1) - cycle, dut.wait))


def _proof(name, half_period, cover_depth, **options):
    return Proof(
        name=name,
        core=f"cores.spi_controller.SpiController({half_period})",
        says="a byte makes eight clocks of mode 0; mosi and miso are its bits, the highest first",
        module="trebuchet.cores.spi_controller",
        build=lambda cores: SpiControllerProof(cores.SpiController(half_period)),
        depth=2,
        cover_depth=cover_depth,
        assumes="nothing",
        not_proved="other periods; a reset while running; chip select held during a byte",
        **options,
    )


PROOFS = (
    _proof(
        "spi_controller",
        3,
        102,
        mutants=(
            Mutant("takes_while_busy", "with m.Elif(sent.go):", "with m.If(sent.go):"),
            Mutant("samples_early", "with m.If(self.sck):", "with m.If(~self.sck):"),
            Mutant("least_bit_first", "self.mosi.eq(shift[7])", "self.mosi.eq(shift[0])", depth=8),
            Mutant("one_clock_short", "left.eq(16)", "left.eq(14)"),
            Mutant(
                "short_first_half",
                "[shift.eq(sent.byte), left.eq(16), wait.eq(self.half_period - 1)]",
                "[shift.eq(sent.byte), left.eq(16)]",
                depth=110,
            ),
            Mutant(
                "select_held_by_busy",
                "self.cs_n.eq(~self.csr.control)",
                "self.cs_n.eq(~(self.csr.control | busy))",
                context="busy, last = Signal(), Signal()",
            ),
        ),
    ),
    _proof(
        "spi_controller_fast",
        1,
        38,
        mutants=(
            Mutant("clock_high_at_rest", "self.sck.eq(left[0])", "self.sck.eq(~left[0])"),
            Mutant("forgets_go", "with m.Elif(sent.go):", "with m.Else():"),
            Mutant("loses_a_bit", "shift << 1 | self.miso", "shift << 1"),
        ),
    ),
)
