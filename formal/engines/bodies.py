"""Proofs of the bodies of stream engines in the tree: each keeps the contract.

The bodies are ``Wire`` (``cores/roles/loopback/role.py``), ``BenchmarkBody``
(``cores/roles/benchmark/role.py``) and ``Crc32cEngine`` (``cores/engines/crc32c/engine.py``). The
rules are those of :mod:`~trebuchet.formal.engines.contract`, for any packets at any pace, and for
registers that change in any cycle.

Not proved: what a packet that leaves contains (tests against the models; ``crc32c_*`` of the CRC's
steps); that a packet ends; other data paths than those named; behaviour under a reset while
running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal
from amaranth.lib import wiring

from ..kit.contracts import leaves_of
from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .contract import EngineRules

__all__ = ["PROOFS", "BodyProof", "register_invariants"]


class BodyProof(Elaboratable):
    """Harness of one body; ``more(m, dut, inside, rules)`` states its invariants."""

    def __init__(self, dut, more):
        self.dut, self.more = dut, more

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        free(m, *(port for _, port in leaves_of(dut, wiring.In)))
        limits = getattr(dut, "limits", None)
        rules = EngineRules(m, dut.i, dut.o, theirs=Assume, ours=Assert, limits=limits)
        self.more(m, dut, inside, rules)
        self._cover(m, dut, rules)
        return m

    @staticmethod
    def _cover(m, dut, rules):
        """A damaged packet of several beats and a good one leave, each held up on its way."""
        good, bad, stalled = Signal(), Signal(), Signal()
        with m.If(dut.o.valid & ~dut.o.ready & dut.o.p.last):
            m.d.sync += stalled.eq(1)
        with m.If(rules.left & dut.o.p.error & ~dut.o.p.first):
            m.d.sync += bad.eq(1)
        with m.If(rules.left & ~dut.o.p.error & bad & stalled):
            m.d.sync += good.eq(1)
        m.d.comb += Cover(good)


def size(beat):
    """Bytes of a beat."""
    return len(beat.data) // 8 - beat.empty


def register_invariants(m, dut, rules):
    """Of a body whose only state is the register before ``o``, which takes a beat when it is free.

    Its packets are as long as they came.
    """
    i_begins, o_begins, o = rules.begins_i, rules.begins_o, dut.o
    last = o.valid & o.p.last
    m.d.comb += [
        Assert(i_begins == Mux(o.valid, o.p.last, o_begins)),
        Assert(~o.valid | (o.p.first == o_begins)),
        Assert(rules.level == last),
        Assert(~last | (rules.damaged[0] == o.p.error)),
        Assert(rules.ahead == Mux(o.valid, size(o.p), 0)),
        Assert(rules.behind == 0),
    ]


def _wire(m, dut, inside, rules):
    m.d.comb += [
        Assert(rules.begins_i == rules.begins_o),
        Assert(rules.level == 0),
        Assert(rules.ahead == 0),
        Assert(rules.behind == 0),
    ]


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


def _proof(name, core, module, build, more, mutants, *, cover_depth, **rest):
    return Proof(
        name=f"engine_{name}",
        core=core,
        says="it keeps the stream engine contract: one packet for one, damage, growth, progress",
        module=module,
        build=lambda cores: BodyProof(build(cores), more),
        depth=2,
        cover_depth=cover_depth,
        mutants=mutants,
        **{"not_proved": "what is in a packet; that it ends; a reset while running"} | rest,
    )


PROOFS = (
    _proof(
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
    _proof(
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
    *(
        _proof(
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
