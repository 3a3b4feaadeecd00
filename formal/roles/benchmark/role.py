"""Proof of ``BenchmarkBody`` in ``cores/roles/benchmark/role.py``: the stream engine contract.

Not proved: what a packet that leaves contains (tests against the model); that a packet
ends; other data paths than those named; behaviour under a reset while running.
"""

from amaranth.hdl import Assert

from ...engines.bodies import body_proof
from ...kit.proof import Mutant

__all__ = ["PROOFS"]


def _benchmark(m, dut, inside, rules):
    take, wait, give = (inside.state(name, "body") for name in ("TAKE", "WAIT", "GIVE"))
    m.d.comb += [
        Assert(inside.fsm_bounded("body")),
        Assert(take == (rules.level == 0)),
        Assert(take | rules.begins_i),
        Assert(rules.begins_o == (~give | dut.o.p.first)),
        Assert(~wait | dut.o.p.first),
        Assert(take | (rules.damaged[0] == inside.damaged)),
    ]


PROOFS = (
    body_proof(
        "benchmark",
        "cores.roles.benchmark.role.BenchmarkBody(32)",
        "trebuchet.cores.roles.benchmark.role",
        lambda cores: cores.BenchmarkBody(32),
        _benchmark,
        (
            Mutant("forgets_damage", "damaged.eq(i.error)", "damaged.eq(0)"),
            Mutant(
                "gives_without_end",
                'with m.If(o.last):\n    m.next = "TAKE"',
                'with m.If(0):\n    m.next = "TAKE"',
            ),
            Mutant("answers_twice", 'm.next = "TAKE"', 'm.next = "SIZE"', 16),
        ),
        cover_depth=24,
    ),
)
