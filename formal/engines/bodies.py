"""What the proofs of the bodies of stream engines share: each keeps the contract.

The rules are those of :mod:`~trebuchet.formal.engines.contract`, for any packets at any pace, and
for registers that change in any cycle. Each body's proof is at the path of its core.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal
from amaranth.lib import wiring

from ..kit.contracts import leaves_of
from ..kit.inside import Inside
from ..kit.proof import Proof
from ..stream import free, new_harness
from .contract import EngineRules

__all__ = ["BodyProof", "body_proof", "register_invariants", "size"]


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


def body_proof(name, core, module, build, more, mutants, *, cover_depth, **rest):
    """The proof of a body that ``build`` makes; ``more`` states its invariants."""
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
