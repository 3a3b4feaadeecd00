"""Proof of the burn-in role's body in ``cores/roles/burnin/role.py``.

The body keeps the stream engine contract (:mod:`~trebuchet.formal.engines.contract`) around lanes
that report what they like; a packet without ``error`` comes from one that was whole and undamaged.

Not proved: what is in report and pattern (the tests compare all of it with the golden model); that
a packet ends; a reset while running.
"""

from amaranth.hdl import Assert, Cover, Signal

from ....cores.roles.burnin.lane import LANE_PORTS
from ...engines.bodies import BodyProof
from ...kit.inside import patched
from ...kit.proof import Mutant, Proof
from ..packet_role import _Any

__all__ = ["PROOFS"]


class BurninProof(BodyProof):
    """The contract of the body, with hollow lanes."""

    def __init__(self, cores):
        self.cores = cores
        super().__init__(cores.BurninBody(32, 2), _invariants)

    def elaborate(self, platform):
        with patched(self.cores, BurninLane=lambda depth: _Any(LANE_PORTS)):
            return super().elaborate(platform)

    @staticmethod
    def _cover(m, dut, rules):
        """A damaged packet leaves, then a good one with a pattern, held up at its end."""
        bad = Signal()
        stalled = Signal()
        good = Signal()
        with m.If(rules.left & dut.o.p.error):
            m.d.sync += bad.eq(1)
        with m.If(dut.o.valid & ~dut.o.ready & dut.o.p.last & ~dut.o.p.error):
            m.d.sync += stalled.eq(1)
        with m.If(rules.left & ~dut.o.p.error & bad & stalled):
            m.d.sync += good.eq(1)
        m.d.comb += Cover(good)


def _invariants(m, dut, inside, rules):
    names = ("HEADER", "SEED", "PATTERN", "PLAN", "RUN", "SUM", "REPORT", "ANSWER", "BAD")
    header, seed, pattern, plan, run, sums, report, answer, bad = (
        inside.state(name, "body") for name in names
    )
    left, o = inside.left, dut.o.p
    takes = header | pattern
    m.d.comb += [
        Assert(inside.fsm_bounded("body")),
        Assert(~header | ((left >= 1) & (left <= 4))),
        Assert(~header | (rules.begins_i == (left == 4))),
        Assert(~pattern | ~rules.begins_i),
        Assert(~seed | (rules.begins_i == inside.ended)),
        Assert(rules.level == ((seed & inside.ended) | ~(takes | seed))),
        Assert(takes | seed | rules.begins_i),
        Assert(takes | ~(rules.level[0] & rules.damaged[0]) | inside.bad),
        Assert(~(run | sums | report | answer) | ~inside.bad),
        Assert(rules.begins_o | report | answer),
        Assert(~answer | ~rules.begins_o),
        Assert(~(report | answer | bad | run | sums) | (o.first == rules.begins_o)),
        Assert(~(bad | run | sums) | o.first),
        Assert(~plan | rules.begins_o),
    ]


PROOFS = (
    Proof(
        name="burnin",
        core="cores.roles.burnin.role.BurninBody(32, 2, any lanes)",
        says="it keeps the stream engine contract; a damaged packet leaves with an error",
        module="trebuchet.cores.roles.burnin.role",
        build=BurninProof,
        depth=2,
        cover_depth=40,
        mutants=(
            Mutant("forgets_damage", "bad.eq(bad | broken)", "bad.eq(bad)", 16),
            Mutant(
                "stops_early",
                'with m.If(i.last):\n    m.next = "PLAN"',
                'with m.If(1):\n    m.next = "PLAN"',
                16,
            ),
            Mutant(
                "first_again",
                "[report.eq(report >> width), left.eq(left - 1), o.first.eq(0)]",
                "[report.eq(report >> width), left.eq(left - 1)]",
                28,
            ),
            Mutant("misses_the_end", "ended.eq(i.last)", "ended.eq(0)", 12),
        ),
        assumes="the streams' rules; lanes report what they like",
        not_proved="what report and pattern contain; that a packet ends; a reset while running",
    ),
)
