"""``FeatureStage``: each kind of item against the golden model's arithmetic."""

from streams import make_rng, run, seeds, stream_put
from trebuchet.cores.roles.ecg.logarithm import FeatureStage
from trebuchet.cores.roles.ecg.window import ItemKind
from trebuchet.models.ecg import model


def variance_item(rng):
    """Sums of ``2 ** size_log2`` numbers, and what becomes of them."""
    log2, shift = rng.randrange(4, 7), rng.choice([0, 0, rng.randrange(15)])
    most = rng.choice([0, 1, 30, 2047, 65_535 if log2 < 6 else 2047])
    values = [rng.randint(-most, most) for _ in range(1 << log2)]
    if rng.random() < 0.2:
        values = [rng.choice([-most, most])] * len(values)
    total, squares = sum(values), sum(v * v for v in values)
    item = {"kind": ItemKind.VARIANCE, "size_log2": log2, "shift": shift, "a": total, "b": squares}
    variance = (squares << log2) - total * total
    return item, int(model.plog(variance)) + (shift << model.PLOG_FRACTION + 1)


def ratio_item(rng):
    most, least = (rng.choice([0, 1, rng.randrange(4096)]) for _ in range(2))
    item = {"kind": ItemKind.RATIO, "a": most, "b": least}
    return item, int(model.plog(least)) - int(model.plog(most))


def rhythm_item(rng):
    rr, index = rng.randrange(model.RR_MAX + 1), rng.randrange(1 << 10)
    item = {"kind": ItemKind.RHYTHM, "a": rr, "b": index}
    return item, rr << model.RR_SHIFT


async def take(ctx, stream, rng):
    """A feature under back-pressure: ``(value, last, index)``, the index only with the last one.

    Nothing of it changes while it waits. Without ``last`` its index is not part of it.
    """
    held = None
    while True:
        ready = rng.random() < 0.7
        ctx.set(stream.ready, ready)
        _, _, valid, found = await ctx.tick().sample(stream.valid, stream.payload)
        if valid:
            said = found.value, found.last, found.index if found.last else None
            assert held in (None, said), "it changed while it waited"
            if ready:
                ctx.set(stream.ready, 0)
                return said
            held = said
        else:
            assert held is None, "it went away while it waited"


@seeds(3)
def test_features_are_the_models(seed):
    """In order; the last one carries the mark and the beat's index; a feature takes 43 cycles."""
    dut, rng = FeatureStage(), make_rng(seed, "items")
    items = []
    for number in range(60):
        item, value = rng.choice([variance_item, variance_item, ratio_item, rhythm_item])(rng)
        # The rhythm is a beat's first item, never its last one.
        last = item["kind"] != ItemKind.RHYTHM and number % 5 == 4
        items.append((item | {"last": int(last)}, value))
    items.insert(0, ({"kind": ItemKind.RHYTHM, "a": 5, "b": 77, "last": 0}, 5 << model.RR_SHIFT))

    async def put(ctx):
        for item, _ in items:
            await stream_put(ctx, dut.item, item, rng=rng)

    async def get(ctx):
        waits, index = make_rng(seed, "waits"), None
        for item, value in items:
            if item["kind"] == ItemKind.RHYTHM:
                index = item["b"]
            last = item["last"]
            assert await take(ctx, dut.vector, waits) == (value, last, index if last else None)

    run(dut, put, get, limit=6000, seed=seed)


def test_cycles():
    """A variance at most 43 cycles, a ratio 30, the rhythm 2."""
    rng = make_rng(0, "cycles")
    for make, most in ((variance_item, 43), (ratio_item, 30), (rhythm_item, 2)):
        dut, items = FeatureStage(), [make(rng)[0] for _ in range(20)]

        async def bench(ctx, dut=dut, items=items, most=most):
            ctx.set(dut.vector.ready, 1)
            for item in items:
                await stream_put(ctx, dut.item, item)
                cycles = 0
                while not ctx.get(dut.item.ready):
                    await ctx.tick()
                    cycles += 1
                assert cycles < most + 1

        run(dut, bench, limit=1500)
