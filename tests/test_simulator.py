"""The tests' simulator computes what Amaranth's does, in every cycle."""

import pytest
import simulator
from amaranth.hdl import (
    Array,
    Assert,
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Elaboratable,
    EnableInserter,
    Module,
    Print,
    ResetInserter,
    Signal,
    Value,
)
from amaranth.lib.memory import Memory
from amaranth.sim import Simulator
from streams import make_rng, seeds

CYCLES = 400


class Design(Elaboratable):
    """Fragments of every kind, random logic, and the signals by which they are watched."""

    def __init__(self, rng):
        self.rng = rng
        self.inputs = [Signal(rng.randint(1, 9), name=f"i{k}") for k in range(4)]
        self.reset, self.enable, self.async_reset = Signal(), Signal(init=1), Signal()
        self.signals, self.signed = [*self.inputs], []

    def pick(self):
        return self.rng.choice(self.signals)

    def value(self):
        """An expression over signals that are there already, so that nothing is a loop."""
        a, b, c = self.pick(), self.pick(), self.pick()
        return self.rng.choice(
            [
                lambda: a + b,
                lambda: a ^ (b << 1),
                lambda: Cat(a, b)[1:],
                lambda: a.bit_select(b[:4], 2),
                lambda: Value.cast(Array([a, b, c, Const(5), *self.signed[-1:]])[self.pick()[:2]]),
                lambda: a.as_signed() - b,
                lambda: a.any() & ~b.all(),
            ]
        )()

    def fragment(self):
        m, rng = Module(), self.rng
        comb, held = Signal(rng.randint(1, 12)), Signal(rng.randint(1, 12), init=1)
        signed = Signal(range(-20, 21))
        domain = rng.choice(["sync", "sync", "other", "guarded"])
        m.d.comb += comb.eq(self.value())
        with m.Switch(Cat(self.pick(), 1)[:2]):
            with m.Case(0):
                m.d[domain] += held.eq(self.value() + held)
            with m.Case("1-"):
                m.d[domain] += held.bit_select(self.pick(), 1).eq(self.value())
                m.d.comb += comb.eq(held)
        with m.If(self.pick()[0]):
            m.d[domain] += signed.eq(signed - Value.cast(self.value())[:2])
        new = [comb, held, signed]
        if rng.random() < 0.4:
            new += self.memory(m)
        self.signals += [signal for signal in new if not signal.shape().signed]
        self.signed.append(signed)
        if rng.random() < 0.3:
            return ResetInserter(self.reset)(m)
        if rng.random() < 0.3:
            return EnableInserter(self.enable)(m)
        return m

    def memory(self, m):
        rng = self.rng
        m.submodules.memory = memory = Memory(shape=8, depth=rng.choice([5, 8]), init=[1, 2, 3])
        write = memory.write_port(granularity=4)
        reads = [
            memory.read_port(),
            memory.read_port(transparent_for=[write]),
            memory.read_port(domain="comb"),
        ]
        for port in (write, *reads):
            m.d.comb += port.addr.eq(self.value())
        m.d.comb += [write.data.eq(self.value()), write.en.eq(self.value())]
        m.d.comb += reads[0].en.eq(self.pick()[0])
        return [port.data for port in reads]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain()
        m.domains.other = ClockDomain(clk_edge="neg", reset_less=True)
        m.domains.guarded = guarded = ClockDomain(async_reset=True)
        m.d.comb += [
            ClockSignal("other").eq(ClockSignal()),
            guarded.clk.eq(ClockSignal()),
            guarded.rst.eq(self.async_reset),
        ]
        for number in range(12):
            m.submodules[f"part{number}"] = self.fragment()
        return m


def trace(engine, seed):
    """All signals in each cycle of two runs, of which the second is after a reset."""
    design = Design(make_rng(seed, "design"))
    sim = Simulator(design, engine=engine)
    sim.add_clock(1e-6)
    seen, runs = [], []

    async def bench(ctx):
        rng = make_rng(seed, f"run {len(runs)}")
        runs.append(None)
        for _ in range(CYCLES):
            if rng.random() < 0.3:  # they often stand still
                ctx.set(rng.choice(design.inputs), rng.getrandbits(9))
            ctx.set(design.reset, rng.random() < 0.05)
            ctx.set(design.enable, rng.random() < 0.8)
            ctx.set(design.async_reset, rng.random() < 0.03)
            if rng.random() < 0.02:  # a test may write where no clock does
                ctx.set(design.signals[5], rng.getrandbits(3))
            seen.append([ctx.get(signal) for signal in (*design.signals, *design.signed)])
            await ctx.tick()

    sim.add_testbench(bench)
    sim.run()
    sim.reset()
    sim.run()
    return seen


@seeds(12)
@pytest.mark.parametrize("part", range(3))
def test_every_signal_of_random_designs_is_amaranths(part, seed):
    number = 100 * part + seed
    assert trace(simulator.Engine, number) == trace("pysim", number)


@pytest.mark.parametrize("kind", ["assert", "print"])
def test_what_has_an_effect_happens_in_every_cycle(kind, capsys):
    """Even where nothing changes."""
    m, go = Module(), Signal(init=1)
    m.d.sync += Print("tick") if kind == "print" else Assert(go, "stopped")
    sim = Simulator(m, engine=simulator.Engine)
    sim.add_clock(1e-6)

    async def bench(ctx):
        await ctx.tick().repeat(5)
        ctx.set(go, 0)
        await ctx.tick().repeat(2)

    sim.add_testbench(bench)
    if kind == "print":
        sim.run()
        assert capsys.readouterr().out.count("tick") == 7
    else:
        with pytest.raises(AssertionError, match="stopped"):
            sim.run()


def test_what_stands_still_is_not_computed():
    """A register's process runs at start, and whenever what it reads changes."""
    m, go, held = Module(), Signal(), Signal(8)
    m.d.sync += held.eq(held | go)
    sim = Simulator(m, engine=simulator.Engine)
    sim.add_clock(1e-6)
    (changed,) = sim._engine._changed
    seen = []

    async def bench(ctx):
        for cycle in range(8):
            if cycle == 4:
                ctx.set(go, 1)
            seen.append(changed[0])
            await ctx.tick()

    sim.add_testbench(bench)
    sim.run()
    assert seen == [True, False, False, False, True, True, False, False]


def test_what_stood_still_starts_again_after_a_reset():
    m, risen = Module(), Signal()
    m.d.sync += risen.eq(1)
    sim = Simulator(m, engine=simulator.Engine)
    sim.add_clock(1e-6)
    seen = []

    async def bench(ctx):
        for _ in range(4):
            seen.append(ctx.get(risen))
            await ctx.tick()

    sim.add_testbench(bench)
    sim.run()
    sim.reset()
    sim.run()
    assert seen == [0, 1, 1, 1] * 2


def test_another_kind_of_text_is_told(monkeypatch):
    """Not simulated slowly, or wrongly."""
    monkeypatch.setattr(simulator.compiler._PythonEmitter, "flush", lambda *_: "x = 1")
    m = Module()
    m.d.sync += Signal().eq(1)
    with pytest.raises(AssertionError, match="another kind of text: 'x = 1'"):
        Simulator(m, engine=simulator.Engine)
