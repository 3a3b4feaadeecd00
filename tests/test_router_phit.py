"""Flits into phits and back: order, pace, and the fields beside the data."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from streams import make_rng, run, seeds
from trebuchet.cores.router.contract import LinkConfig
from trebuchet.cores.router.phit import PhitReceiver, PhitSender


class Link(wiring.Component):
    """A sender and a receiver, wired together."""

    def __init__(self, config):
        self.tx, self.rx = PhitSender(config), PhitReceiver(config)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.tx, m.submodules.rx = self.tx, self.rx
        m.d.comb += [self.rx.valid.eq(self.tx.valid), self.rx.phit.eq(self.tx.phit)]
        return m


@pytest.mark.parametrize("phits", [1, 2, 3, 4])
@seeds(2)
def test_flits_come_as_they_went(phits, seed):
    """Each in the cycle of its last phit: ``phits`` cycles after it was put, without a gap."""
    width = 8 * phits
    dut, rng = Link(LinkConfig(flit_width=width, phit_width=8)), make_rng(seed, "flits")
    shape = dut.tx.flit.shape()
    words = [rng.getrandbits(shape.size) for _ in range(60)]
    gaps = [rng.choice([0, 0, 1, 5]) for _ in words]
    put_at, got = [], []
    cycle = 0

    async def put(ctx):
        nonlocal cycle
        for word, gap in zip(words, gaps, strict=True):
            for _ in range(gap):
                await ctx.tick()
                cycle += 1
            ctx.set(dut.tx.flit, shape.from_bits(word))
            ctx.set(dut.tx.put, 1)
            while not ctx.get(dut.tx.ready):
                ctx.set(dut.tx.put, 0)
                await ctx.tick()
                cycle += 1
            ctx.set(dut.tx.put, 1)
            put_at.append(cycle)
            await ctx.tick()
            cycle += 1
            ctx.set(dut.tx.put, 0)
            ctx.set(dut.tx.flit, shape.from_bits(rng.getrandbits(shape.size)))
        await ctx.tick().repeat(phits + 1)

    async def get(ctx):
        at = 0
        async for _, _, valid, flit in ctx.tick().sample(dut.rx.get, dut.rx.flit):
            if valid:
                got.append((at, flit.as_bits()))
            at += 1

    get.background = True
    run(dut, put, get, limit=2000, seed=seed)
    assert [word for _, word in got] == words
    assert [at for at, _ in got] == [at + phits for at in put_at]
    follow = [b - a for a, b, gap in zip(put_at, put_at[1:], gaps[1:], strict=False) if not gap]
    assert set(follow) == {phits}
