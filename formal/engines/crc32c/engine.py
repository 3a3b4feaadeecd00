"""Proof of ``cores/engines/crc32c/engine.py``: it keeps the stream engine contract.

Not proved: what a packet that leaves contains (tests against the model; ``crc32c_*`` of the CRC's
steps); that a packet ends; other data paths than those named; a reset while running.
"""

from amaranth.hdl import Assert, Mux

from ...kit.proof import Mutant
from ..bodies import body_proof, size

__all__ = ["PROOFS"]


def _crc32c(m, dut, inside, rules):
    o, held, growth = dut.o, dut.held, dut.limits.growth
    passes, sums, last, crc = (inside.state(x, "engine") for x in ("PASS", "SUM", "LAST", "CRC"))
    m.d.comb += [
        Assert(inside.fsm_bounded("engine")),
        Assert(rules.behind == 0),
        Assert(~o.valid | (o.p.first == rules.begins_o)),
    ]
    with m.If(passes):
        ended = o.valid & o.p.last
        m.d.comb += [
            Assert(rules.begins_i == Mux(o.valid, o.p.last, rules.begins_o)),
            Assert(rules.level == ended),
            Assert(~ended | o.p.error | ~rules.damaged[0]),
            Assert(Mux(ended, rules.ahead >= size(o.p), 1)),
            Assert(ended | (rules.ahead == growth + Mux(o.valid, size(o.p), 0))),
        ]
    with m.Else():
        m.d.comb += [
            Assert(rules.begins_i),
            Assert(rules.level == 1),
            Assert(rules.damaged[0] == held.error),
            Assert(rules.ahead == growth + size(held)),
            Assert(held.last),
        ]
    with m.If(sums | last):
        m.d.comb += [Assert(~o.valid), Assert(held.first == rules.begins_o)]
        m.d.comb += Assert(rules.waited == size(held) - Mux(sums, dut.left, 0))
    with m.If(sums):
        m.d.comb += Assert((dut.left != 0) & (dut.left <= size(held)))
    with m.If(crc):
        m.d.comb += Assert(o.valid & ~o.p.last & (held.empty < growth))


PROOFS = (
    *(
        body_proof(
            f"crc32c_{width}",
            f"cores.engines.crc32c.engine.Crc32cEngine({width})",
            "trebuchet.cores.engines.crc32c.engine",
            lambda cores, width=width: cores.Crc32cEngine(width),
            _crc32c,
            (
                Mutant("overwrites", "room.eq(~o.valid | o.ready)", "room.eq(1)"),
                Mutant("forgets_damage", "held.error | wrong", "wrong"),
                Mutant("grows_more", "held.empty + n - SIZE", "held.empty + n - SIZE - 1"),
                Mutant(
                    "first_again",
                    "[o.valid.eq(1), o.p.eq(held), o.p.first.eq(0)]",
                    "[o.valid.eq(1), o.p.eq(held), o.p.first.eq(1)]",
                ),
                Mutant("adds_too_much", "left.eq(n - i.p.empty)", "left.eq(n)", 16),
                Mutant("drops_the_end", 'm.next = "CRC"', 'm.next = "PASS"', 16),
            ),
            cover_depth=24,
        )
        for width in (32, 64)
    ),
)
