"""Proof of ``ConfigPort`` in ``cores/multiboot/start.py``.

Contract, over public ports: the configuration port is selected for eight cycles in a row, from the
second cycle after the key was written while nothing was under way, and never else; it is told the
words of a warm boot of the address that stood in the register when the key was written, each byte's
bits swapped; ``rdwrb`` is 0 in these cycles and in the one before.

Not proved: what the FPGA makes of the words; a reset while they go out.
"""

from amaranth.hdl import Array, Assert, Cat, Const, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness

__all__ = ["PROOFS"]

KEY = 0xB007_C0DE
#: UG570, "IPROG Using ICAP"; None is the address.
WORDS = (0xFFFFFFFF, 0xAA995566, 0x20000000, 0x30020001, None, 0x30008001, 0xF, 0x20000000)


class ConfigPortProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        free(m, dut.csr.start, dut.csr.address, dut.application)
        # What is still to go, and what is at the port in this cycle.
        to_go, shown, place = Signal(range(9)), Signal(), Signal(3)
        address, starts, before = Signal(32), Signal(), Signal(init=1)
        m.d.comb += starts.eq((dut.csr.start == KEY) & (to_go == 0))
        m.d.sync += [
            to_go.eq(Mux(starts, 8, Mux(to_go == 0, 0, to_go - 1))),
            shown.eq(to_go != 0),
            place.eq(8 - to_go),
            before.eq(dut.rdwrb),
        ]
        with m.If(starts):
            m.d.sync += address.eq(dut.csr.address)
        # Bytes as they are, bits of each in reverse.
        data = Cat(*(dut.data.word_select(byte, 8)[::-1] for byte in range(4)))
        word = Array(address if w is None else Const(w, 32) for w in WORDS)[place]
        m.d.comb += [
            Assert(dut.csib == ~shown),
            Assert(~shown | (data == word)),
            Assert(~shown | ~(dut.rdwrb | before)),
            Assert(dut.csr.application == dut.application),
            Cover(shown & (place == 7) & (address == 0xF800) & (to_go == 0)),
            Cover(shown & (place == 0) & (dut.csr.start == KEY)),
        ]
        self._invariants(m, to_go, shown, place, address, before)
        return m

    def _invariants(self, m, to_go, shown, place, address, before):
        dut = self.dut
        under_way = (to_go != 0) | shown
        m.d.comb += [
            Assert(dut.left == to_go),
            Assert(to_go <= 8),
            Assert(~under_way | (dut.address == address)),
            Assert(~under_way | ~dut.rdwrb),
            Assert(~shown | ~before),
            Assert(~shown | (to_go == 0) | (place == 7 - to_go)),
            Assert(~shown | (to_go != 0) | (place == 7)),
        ]


PROOFS = (
    Proof(
        name="multiboot",
        core="cores.multiboot.start.ConfigPort()",
        says="the key, and nothing else, sends the words of a warm boot of the address, once",
        module="trebuchet.cores.multiboot.start",
        build=lambda cores: ConfigPortProof(cores.ConfigPort()),
        depth=2,
        cover_depth=16,
        assumes="nothing",
        not_proved="what the FPGA makes of the words; a reset while they go out",
        mutants=(
            Mutant(
                "any_value_starts", "m.Elif(self.csr.start == KEY)", "m.Elif(self.csr.start != 0)"
            ),
            Mutant(
                "starts_while_busy",
                "with m.Elif(self.csr.start == KEY):",
                "with m.If(self.csr.start == KEY):",
            ),
            Mutant("bits_not_swapped", "byte + 7 - bit", "byte + bit", depth=8),
            Mutant("address_of_now", "_WRITE_WBSTAR, address,", "_WRITE_WBSTAR, 0,", depth=12),
            Mutant(
                "reads",
                "[left.eq(len(words)), address.eq(self.csr.address), self.rdwrb.eq(0)]",
                "[left.eq(len(words)), address.eq(self.csr.address)]",
                depth=8,
            ),
            Mutant("one_word_less", "left.eq(len(words))", "left.eq(len(words) - 1)", depth=8),
        ),
    ),
)
