"""``EndScan`` against the model, a beat at a time, whatever is skipped and stopped at."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.web.scan import EndScan, ScanState
from trebuchet.models.http import head


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(2)
def test_equals_the_model(width, seed):
    """Beats full of CR and LF, from every state; ranges without a byte too."""
    dut, rng, n = EndScan(width), make_rng(seed, f"scan {width}"), width // 8
    seen = set()

    async def bench(ctx):
        for _ in range(1500):
            skip, stop = rng.randrange(n), rng.randrange(n + 1)
            if rng.random() < 0.3:
                data = rng.choice([b"a", b"\r\n", b"\n"]) + b"\r\n" * n
            else:
                data = bytes(rng.choice(b"\r\n\r\naG\x00") for _ in range(n))
            data = data[:n]
            state = rng.choice(list(ScanState))
            ctx.set(dut.data, int.from_bytes(data, "little"))
            ctx.set(dut.skip, skip)
            ctx.set(dut.stop, stop)
            ctx.set(dut.state, state)
            model = head.scan(head.Scan(state.value), data[skip:stop])
            found, broken = model.end is not None, model.end == head.End.BROKEN
            assert ctx.get(dut.found) == found
            assert ctx.get(dut.end) == (skip + model.used if found else stop)
            if found:
                assert ctx.get(dut.broken) == broken
            else:
                assert ctx.get(dut.after).value == int(model.scan.state)
            seen.add((found, broken))
        await ctx.tick()

    run(dut, bench, limit=10, seed=seed)
    assert seen == {(False, False), (True, False), (True, True)}
