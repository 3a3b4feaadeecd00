"""Proof of ``Wire`` in ``cores/roles/loopback/role.py``: it keeps the stream engine contract.

Not proved: what a packet that leaves contains (tests against the model); that a packet
ends; other data paths than those named; behaviour under a reset while running.
"""

from amaranth.hdl import Assert

from ...engines.bodies import body_proof
from ...kit.proof import Mutant

__all__ = ["PROOFS"]


def _wire(m, dut, inside, rules):
    m.d.comb += [
        Assert(rules.begins_i == rules.begins_o),
        Assert(rules.level == 0),
        Assert(rules.ahead == 0),
        Assert(rules.behind == 0),
    ]


PROOFS = (
    body_proof(
        "wire",
        "cores.roles.loopback.role.Wire(32)",
        "trebuchet.cores.roles.loopback.role",
        lambda cores: cores.Wire(32),
        _wire,
        (
            Mutant(
                "takes_what_it_does_not_give",
                "wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))",
                "m.d.comb += [self.o.valid.eq(self.i.valid), self.o.p.eq(self.i.p), "
                "self.i.ready.eq(1)]",
            ),
        ),
        cover_depth=8,
    ),
)
