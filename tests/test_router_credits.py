"""``CreditCounter``: which virtual channels may send, against counts of places."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.router.contract import LinkConfig
from trebuchet.cores.router.credits import CreditCounter


@pytest.mark.parametrize(("places", "reserved"), [(8, 2), (6, 2), (5, 1)])
@seeds(2)
def test_ready_is_the_models(places, reserved, seed):
    """Sends and credits of all channels at once; credits too many are ignored."""
    vcs = 3
    config = LinkConfig(vcs=vcs, buffer_flits=places, reserved=reserved)
    dut, rng = CreditCounter(config), make_rng(seed, "credits")
    held = [0] * vcs
    full = set()

    def may(v):
        lent = sum(max(0, h - reserved) for h in held)
        return held[v] < reserved or lent < places - vcs * reserved

    async def bench(ctx):
        for _ in range(600):
            can = [v for v in range(vcs) if may(v)]
            assert ctx.get(dut.ready) == sum(1 << v for v in can)
            assert ctx.get(dut.idle) == (not any(held))
            full.add(len(can))
            busy = rng.random() < 0.8
            sent = rng.choice(can) if can and busy else None
            credit = [rng.random() < 0.2 for _ in range(vcs)]
            ctx.set(dut.send, 0 if sent is None else 1 << sent)
            ctx.set(dut.credit, sum(bit << v for v, bit in enumerate(credit)))
            await ctx.tick()
            for v in range(vcs):
                held[v] += (v == sent) - (credit[v] and held[v] > 0)

    run(dut, bench, limit=700, seed=seed)
    assert {0, vcs} <= full, "never full, or never free"
