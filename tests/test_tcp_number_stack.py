"""``NumberStack`` against a list, with its end in memory."""

import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.tcp.number_stack import NumberStack


@pytest.mark.parametrize(("width", "numbers"), [(32, None), (64, None), (64, 31)])
@seeds(2)
def test_number_stack(width, numbers, seed):
    """Each number is out once; all can be out; what came back last goes out first."""
    dut = NumberStack(32, 0x40, width, numbers=numbers, depth=16, burst=2)
    count = numbers or 32
    rng = make_rng(seed, "stack")
    memory = bytearray(rng.randbytes(0x40 + dut.size))
    before, responder = bytes(memory), MemoryResponder(dut.mem, memory, rng=rng, latency=(2, 20))
    out = []

    async def script(ctx):
        for aim in (count, 0, 20, 4, count, 3):
            while len(out) != aim:
                if len(out) > aim or rng.random() < 0.3 and out:
                    number = out.pop(rng.randrange(len(out)))
                    await stream_put(ctx, dut.give, number, rng=rng)
                    if rng.random() < 0.3 and len(out) < count - 1:  # there are two
                        again = [await stream_get(ctx, dut.take), await stream_get(ctx, dut.take)]
                        assert number in again
                        out.extend(again)
                else:
                    assert not ctx.get(dut.none)
                    number = await stream_get(ctx, dut.take, rng=rng)
                    assert number not in out
                    assert number < count
                    out.append(number)
            if aim == count:
                await ctx.tick().repeat(3)
                assert ctx.get(dut.none)
                assert not ctx.get(dut.take.valid)

    run(dut, script, responder, stream_checker(dut.take), limit=6000, seed=seed)
    assert memory[:0x40] == before[:0x40]
    assert any(burst.write for burst in responder.log)
    assert any(not burst.write for burst in responder.log)
