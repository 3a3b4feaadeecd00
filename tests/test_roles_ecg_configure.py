"""``WeightPort``: new weights come as a job or by registers; wrong lengths change nothing."""

import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from test_roles_ecg_role import checksum, configuration
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.ecg.configure import PREFIX, WeightPort
from trebuchet.models.status import Status


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(1)
def test_weight_port(width, seed):
    rng = make_rng(seed, f"weights {width}")
    words = [rng.getrandbits(16) for _ in range(37)]
    dut = WeightPort(len(words), width)
    operand = configuration(words)
    memory = bytearray(1024)
    seen = []

    async def job(ctx, length):
        offset = rng.randrange(1024)
        for i, byte in enumerate(operand):
            memory[(offset + i) % 1024] = byte
        fields = {"source": 5, "session": 77, "id": rng.getrandbits(32)}
        place = {"base": 0, "offset": offset, "ring_log2": 10, "length": length}
        await stream_put(ctx, dut.job, {"kind": JobKind.CONFIGURE, **fields, **place}, rng=rng)
        answer = await stream_get(ctx, dut.answer, rng=rng)
        assert {name: answer[name] for name in fields} == fields
        assert answer.length == 0
        return answer.status

    async def main(ctx):
        for length in (0, PREFIX, len(operand) - 2, len(operand) + 1, 1000):
            assert await job(ctx, length) == Status.BAD_LENGTH
        assert seen == [], "a wrong length must change nothing"
        for _ in range(2):
            assert await job(ctx, len(operand)) == Status.OK
            assert seen == ["first", *words]
            assert ctx.get(dut.csr.weights_words) == len(words)
            assert ctx.get(dut.csr.weights_sum) == checksum(words)
            seen.clear()
        assert ctx.get(dut.csr.weights_dropped) == 0
        await write(ctx, dut.csr.weights_restart, 1)
        for word in [*words, 7]:
            await write(ctx, dut.csr.weights_data, 1 << 16 | word)
        await write(ctx, dut.csr.weights_data, 8)
        assert seen == ["first", *words, 7]
        assert ctx.get(dut.csr.weights_words) == len(words) + 1
        assert ctx.get(dut.csr.weights_dropped) == 1

    async def write(ctx, register, value):
        ctx.set(register, value)
        await ctx.tick()
        ctx.set(register, 0)
        await ctx.tick()

    async def watch(ctx):
        while True:
            sample = ctx.tick().sample(dut.reload, dut.load.valid, dut.load.payload)
            _, _, reload, valid, word = await sample
            seen.extend(["first"] * reload + [word] * valid)

    async def idle(ctx):
        gaps = make_rng(seed, "idle")
        while True:
            ctx.set(dut.idle, gaps.random() < 0.1)
            await ctx.tick()

    watch.background = idle.background = True
    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    run(dut, main, watch, idle, responder, stream_checker(dut.answer), limit=20_000, seed=seed)
