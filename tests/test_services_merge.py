"""Several service ports as one: events keep their order and say whose they are."""

import pytest
from streams import make_rng, plain, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.services.merge import ServiceMerge
from trebuchet.cores.tcp.service import EventKind, EventLayout, FreeLayout, TxLayout


def any_of(rng, layout, number):
    return {
        name: rng.choice(list(EventKind))
        if field.shape is EventKind
        else rng.getrandbits(field.width)
        for name, field in layout
    } | {"session": number}


@pytest.mark.parametrize("n", [1, 2, 3, 8])
@seeds(3)
def test_random(n, seed):
    dut = ServiceMerge(n)
    rng = make_rng(seed, "what")
    events = [[any_of(rng, EventLayout, 1000 * k + i) for i in range(20)] for k in range(n)]
    sent = [
        (rng.randrange(n), any_of(rng, TxLayout, i), any_of(rng, FreeLayout, i)) for i in range(40)
    ]
    seen, txs, frees = [], [[] for _ in range(n)], [[] for _ in range(n)]

    def engine(k):
        async def put(ctx):
            rng = make_rng(seed, f"event{k}")
            for event in events[k]:
                await stream_put(ctx, dut.ports[k].event, event, rng=rng)

        return put

    def taker(k, name, to):
        async def take(ctx):
            rng = make_rng(seed, f"{name}{k}")
            while True:
                to[k].append(plain(await stream_get(ctx, getattr(dut.ports[k], name), rng=rng)))

        take.background = True
        return take

    async def service(ctx):
        """Looks at ``origin`` while the event is on offer, as the framer does."""
        rng = make_rng(seed, "service")
        while len(seen) < 20 * n:
            await ctx.tick().until(dut.service.event.valid)
            origin = ctx.get(dut.origin)
            event = plain(await stream_get(ctx, dut.service.event, rng=rng))
            seen.append((origin, event["session"], event["position"]))

    async def send(ctx):
        rng = make_rng(seed, "send")
        for to, tx, free in sent:
            ctx.set(dut.to, to)
            await stream_put(ctx, dut.service.tx, tx, rng=rng)
            await stream_put(ctx, dut.service.free, free, rng=rng)

    benches = [engine(k) for k in range(n)]
    for name, to in (("tx", txs), ("free", frees)):
        benches += [taker(k, name, to) for k in range(n)]
    run(dut, *benches, service, send, stream_checker(dut.service.event), limit=20_000, seed=seed)
    for k in range(n):
        assert [(s, p) for origin, s, p in seen if origin == k] == [
            (event["session"], event["position"]) for event in events[k]
        ]
        assert txs[k] == [tx for to, tx, _ in sent if to == k]
        assert frees[k] == [free for to, _, free in sent if to == k]


def test_there_is_a_port():
    with pytest.raises(ValueError, match="^Number of service ports must be an integer >= 1, not 0"):
        ServiceMerge(0)
