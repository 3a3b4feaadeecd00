"""Proofs of ``EngineStage`` in ``cores/engines/stage.py``, around bodies that may be any.

``engine_stage_any_body``: the body does what it likes in every cycle. Whatever that is, and
whenever registers are written, the stage's streams keep the rules, one packet leaves for each that
comes, in order and never too early; what the body is given keeps the rules, too, from each reset
on; its registers hold still while a packet is at work; in bypass it is given nothing and packets
pass as they are; counters count what leaves.

``engine_stage``: the body keeps the contract (:mod:`~trebuchet.formal.engines.contract`, which is
assumed here and asserted by ``engine_wire``, ``engine_crc32c_*`` and the like). Then the stage
makes no abort by itself, a damaged packet stays so, also in an abort, and what the body takes and
gives is what the stage takes and gives, beat by beat.

``engine_stage_progress``: with registers that are not written, the stage is due and does nothing
for at most 3 cycles more than the body; after a reset, in which they settle.

Not proved: more than 3 packets at work; that an abort ends although its packet does not; the
registers' values for packets that begin in the 2 cycles after a write.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import (
    Assert,
    Assume,
    Cat,
    Cover,
    Elaboratable,
    Module,
    Mux,
    ResetInserter,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from ...cores.csr import Register, RegisterBlock
from ...cores.engines.contract import EngineLimits, StreamEngineSignature
from ...cores.stream import PacketSignature
from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .contract import EngineRules

__all__ = ["PROOFS", "AnyBody"]

MOST, LATENCY, PATIENCE = 3, 1, 3
BLOCK = RegisterBlock(
    "any",
    (
        Register("key", "rw", 2, "set", reset=2),
        Register("go", "stb", 2, "struck"),
        Register("seen", "ro", 2, "read"),
        Register("event", "w1c", 2, "cleared"),
    ),
)


class AnyBody(wiring.Component):
    """A body whose outputs are chosen by the solver, in every cycle anew."""

    limits = EngineLimits(latency=LATENCY)

    def __init__(self, width=32, block=BLOCK):
        super().__init__(StreamEngineSignature(width, block))

    def elaborate(self, platform):
        m = Module()
        for _, member, value in self.signature.flatten(self):
            if member.flow == Out:
                m.d.comb += Value.cast(value).eq(AnySeq(len(Value.cast(value))))
        return m


class ResetBody(AnyBody):
    """One that shows its resets: ``ran`` is 0 in the cycle after one."""

    def __init__(self):
        super().__init__()
        self.ran = Signal()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.d.sync += self.ran.eq(1)
        return m


class StageProof(Elaboratable):
    """``keeps``: the body keeps the contract; ``still``: registers are not written."""

    def __init__(self, cores, *, keeps=False, still=False):
        self.keeps, self.still = keeps, still
        more = (Register("more", "ro", 2, "of whoever uses the stage"),)
        sizes = {"most": MOST, "patience": PATIENCE}
        body = ResetBody() if keeps else AnyBody()
        self.dut = cores.EngineStage(body, 32, **sizes, extra=more)

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        self.inside = Inside(m, dut)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready, dut.extras["more"])
        self._settings(m, dut)
        limits = EngineLimits(latency=LATENCY + 3) if self.still else None
        rules = EngineRules(
            *(m, dut.i, dut.o),
            theirs=Assume,
            ours=Assert,
            capacity=MOST + 1,
            limits=limits,
            damage=self.keeps,
            name="stage",
        )
        # What the body is given begins anew with each reset of it.
        inner, sub = dut.body, Module()
        unused = PacketSignature(32).create(path=("unused",))
        with sub.If(~dut.flush):
            if self.keeps:
                body = EngineRules(
                    *(sub, inner.i, inner.o),
                    theirs=Assert,
                    ours=Assume,
                    capacity=MOST,
                    limits=inner.limits,
                    name="body",
                )
            else:
                body = EngineRules(
                    *(sub, inner.i, unused),
                    theirs=Assert,
                    ours=Assume,
                    capacity=MOST,
                    damage=False,
                    name="body",
                )
        m.submodules.rules = ResetInserter(dut.flush)(sub)
        self._invariants(m, dut, rules)
        if self.keeps:
            self._keeps(m, dut, rules, body)
        else:
            m.d.comb += Assert(dut.flush | (body.begins_i == (rules.begins_i | ~dut.on)))
            self._registers(m, dut)
            self._counters(m, dut, rules)
        return m

    def _settings(self, m, dut):
        csr = dut.csr
        if self.still:
            m.d.comb += [
                Cat(dut.enable, csr.enable, csr.key).eq(AnyConst(4)),
                csr.reset.eq(0),
            ]
        else:
            free(m, dut.enable, csr.enable, csr.key, csr.reset, csr.go, csr.event_clear)

    def _invariants(self, m, dut, rules):
        o, count, inside = dut.o, dut.count, dut.inside
        last = o.valid & o.p.last
        m.d.comb += [
            Assert(count <= MOST),
            Assert(rules.level == count - inside + last),
            Assert(~inside | (count != 0)),
            Assert(rules.begins_i | inside),
            Assert(~inside | ~rules.begins_i | dut.i.valid),
            Assert(dut.begins == Mux(o.valid, o.p.last, rules.begins_o)),
            Assert(~o.valid | (o.p.first == rules.begins_o)),
            Assert(dut.begins | (count != 0)),
            Assert(dut.on | dut.flush | (count == inside)),
            Assert(dut.waited <= PATIENCE),
            Assert((dut.waited == 0) | dut.on),
            Assert(dut.on | dut.flush | (dut.begins == rules.begins_i)),
        ]

    def _keeps(self, m, dut, rules, body):
        o, i, inner = dut.o, dut.i, dut.body
        last, works = o.valid & o.p.last, Signal()
        m.d.comb += works.eq(dut.on & ~dut.flush)
        with m.If(~dut.flush):
            m.d.comb += [
                Assert(body.level == Mux(dut.on, dut.count - dut.inside, 0)),
                Assert(body.begins_i == (rules.begins_i | ~dut.on)),
                Assert(body.begins_o == (dut.begins | ~dut.on)),
                Assert(body.damaged == Mux(dut.on, rules.damaged >> last, 0)),
                Assert(dut.waited == body.waited),
                Assert(body.waited <= LATENCY),
            ]
        m.d.comb += [
            Assert(dut.waited < PATIENCE),
            Assert(~last | ~rules.damaged[0] | o.p.error),
            Assert(~dut.stray),
        ]
        # Only a write to `reset` makes a flush, and that resets the body.
        cause, flushed = Signal(), Signal()
        m.d.sync += [cause.eq(dut.csr.reset | (cause & dut.flush)), flushed.eq(dut.flush)]
        m.d.comb += [Assert(~dut.flush | cause), Assert(~flushed | ~inner.ran)]
        # Beat by beat: at `i` at once, at `o` in the next cycle.
        gives, given = Signal(), Signal.like(o.p)
        m.d.sync += [gives.eq(works & inner.o.valid & inner.o.ready), given.eq(inner.o.p)]
        with m.If(works):
            m.d.comb += [
                Assert((inner.i.valid & inner.i.ready) == (i.valid & i.ready)),
                Assert(~inner.i.valid | (Value.cast(inner.i.p) == Value.cast(i.p))),
            ]
        with m.If(gives):
            m.d.comb += Assert(o.valid & (Value.cast(o.p) == Value.cast(given)))
        if self.still:
            m.d.comb += Assert(~dut.flush)
            self._settling(m, dut, rules, body)
        damaged = Signal()
        with m.If(rules.left & o.p.error & ~dut.flush):
            m.d.sync += damaged.eq(1)
        m.d.comb += Cover(damaged & rules.left & ~o.p.error & ~o.p.first & dut.on)
        if not self.still:
            m.d.comb += Cover(dut.flush & (dut.count == 2) & rules.left & o.p.error & ~o.p.first)

    def _settling(self, m, dut, rules, body):
        """Registers settle once, when no packet is at work: then a packet waits for 2 cycles."""
        ran = Signal()
        m.d.sync += ran.eq(1)
        same = Cat(dut.on, dut.body.csr.key) == Cat(dut.enable & dut.csr.enable, dut.csr.key)
        empty, waited, o = dut.count == 0, rules.waited, dut.o
        m.d.comb += [
            Assert(dut.changed | same | ~ran),
            Assert(~dut.changed | ran),
            Assert(~dut.changed | ~same | empty),
            Assert(o.valid | same | ~dut.changed | ~empty | (waited == 0)),
            Assert(o.valid | ~same | ~dut.changed | (waited <= 1)),
            Assert(o.valid | (dut.changed & empty) | (waited <= body.waited + 2)),
        ]

    def _registers(self, m, dut):
        ours, theirs = dut.csr, dut.body.csr
        held, past, worked = Cat(dut.on, theirs.key), Signal(3), Signal()
        m.d.sync += [past.eq(held), worked.eq((dut.count != 0) | dut.body.i.valid)]
        with m.If(worked):
            m.d.comb += Assert(held == past)
        m.d.comb += [
            Assert(theirs.go == ours.go),
            Assert(ours.seen == theirs.seen),
            Assert(ours.more == dut.extras["more"]),
            Assert(ours.event == theirs.event),
            Assert(theirs.event_clear == ours.event_clear),
            Assert(ours.state == Cat((dut.count != 0) | dut.o.valid, ~dut.on)),
            Assert(~dut.body.i.valid | (dut.on & ~dut.flush)),
        ]
        # In bypass a beat is there in the next cycle.
        passes, passed = Signal(), Signal.like(dut.o.p)
        m.d.sync += [passes.eq(dut.i.valid & dut.i.ready & ~dut.on & ~dut.flush)]
        m.d.sync += passed.eq(dut.i.p)
        with m.If(passes):
            m.d.comb += Assert(dut.o.valid & (Value.cast(dut.o.p) == Value.cast(passed)))
        m.d.comb += [
            Cover((past != held) & (past[0] == held[0])),
            Cover(passes & (dut.o.p.last & ~dut.o.p.first)),
            Cover(dut.flush & (dut.count == 3)),
            Cover(dut.csr.faults == 2),
        ]

    def _counters(self, m, dut, rules):
        left, bad = Signal(32), Signal(32)
        last, error = dut.o.valid & dut.o.p.last, dut.o.p.error
        m.d.sync += [left.eq(left + rules.left), bad.eq(bad + (rules.left & error))]
        inside, csr = self.inside, dut.csr
        m.d.comb += [
            Assert((csr.packets + inside.packets_now)[:32] == (left + last)[:32]),
            Assert((csr.errors + inside.errors_now)[:32] == (bad + (last & error))[:32]),
        ]


MUTANTS = (
    Mutant("takes_over_a_stalled_beat", "room.eq(~self.o.valid | self.o.ready)", "room.eq(1)"),
    Mutant("counts_no_start", "self.count + starts - ends", "self.count + starts", 16),
    Mutant(
        "withdraws",
        "(self.inside & ~self.flush) | starts",
        "starts | (self.inside & admits)",
        context="admits = ~self.changed & ~self.flush & (self.count != self.most)",
    ),
    Mutant(
        "believes_in_first",
        "[o.p.first.eq(self.begins), self.begins.eq(aborts | beat.last)]",
        "[self.begins.eq(aborts | beat.last)]",
    ),
    Mutant(
        "believes_in_the_end",
        "(self.inside | starts) & ~(room & beat.last & ~passes_last)",
        "self.inside | starts",
        16,
    ),
    Mutant(
        "settles_at_once",
        "with m.If(self.changed & (self.count == 0)):",
        "with m.If(self.changed):",
    ),
    Mutant(
        "shows_in_bypass",
        "body.i.valid.eq(i.valid & gate & self.on)",
        "body.i.valid.eq(i.valid & gate)",
    ),
    Mutant("aborts_short", "with m.Elif(self.count == 0):", "with m.Elif(self.count <= 1):", 16),
    Mutant(
        "swallows_too_much",
        "Mux(self.flush, self.inside, gate & Mux(self.on, body.i.ready, room))",
        "Mux(self.flush, 1, gate & Mux(self.on, body.i.ready, room))",
        16,
    ),
)
KEEPS = (
    Mutant("hides_damage", "o.p.error.eq(beat.last & beat.error)", "o.p.error.eq(0)"),
    Mutant(
        "aborts_without_error",
        "[o.p.last.eq(1), o.p.empty.eq(0), o.p.error.eq(1)]",
        "[o.p.last.eq(1), o.p.empty.eq(0)]",
        16,
    ),
    Mutant("no_patience", "self.waited == self.patience", "self.waited == 1", 16),
    Mutant("resets_nothing", "ResetInserter(self.flush)(self.body)", "self.body", 16),
)
STILL = (
    Mutant("never_settles", "self.changed.eq(Cat(wanted) != Cat(held))", "self.changed.eq(1)", 16),
)


def _proof(name, says, mutants, assumes, **options):
    return Proof(
        name=name,
        core=f"cores.engines.stage.EngineStage({says[0]}, 32, most={MOST}, patience={PATIENCE})",
        says=says[1],
        module="trebuchet.cores.engines.stage",
        build=lambda cores: StageProof(cores, **options),
        depth=2,
        cover_depth=16,
        mutants=mutants,
        assumes=assumes,
        not_proved="more packets at work; that packets end; a reset of the stage while running",
    )


PROOFS = (
    _proof(
        "engine_stage_any_body",
        ("any body, which may break the rules", "one packet leaves for each; registers hold still"),
        MUTANTS,
        "the stream rules on `i`",
    ),
    _proof(
        "engine_stage",
        ("any body that keeps the contract", "nothing is aborted but by a reset; damage stays"),
        KEEPS,
        "the stream rules on `i`; the body keeps the contract",
        keeps=True,
    ),
    _proof(
        "engine_stage_progress",
        ("any body that keeps the contract", "it waits for at most 3 cycles more than its body"),
        STILL[:1],
        "the stream rules on `i`; the body keeps the contract; registers are not written",
        keeps=True,
        still=True,
    ),
)
