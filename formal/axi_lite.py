"""Registers behind AXI4-Lite: every stream keeps the ready/valid contract, as AXI asks.

Not proved: what a register's access does, which is tested (``tests/test_axi_lite.py``).
"""

from trebuchet.cores.csr import Register, RegisterBlock

from .kit.contracts import contract
from .kit.proof import Mutant

__all__ = ["PROOFS"]


def _registers():
    return RegisterBlock(
        "few",
        (
            Register("level", "rw", 16, reset=5),
            Register("start", "stb", 40),
            Register("alarm", "w1c", 8),
            Register("done", "ro", 1),
        ),
    )


PROOFS = (
    contract(
        "axi_lite.AxiLiteRegisters",
        lambda cls: cls([_registers()]),
        (
            Mutant("overwrites", "aw.valid & w.valid & ~b.valid", "aw.valid & w.valid"),
            Mutant("reads_on", "ar.ready.eq(~pending & ~r.valid)", "ar.ready.eq(~pending)"),
        ),
        size="four registers",
    ),
)
