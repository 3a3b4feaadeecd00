"""The ECG role around its pipelines: several of them, and new weights while it runs."""

import struct

import pytest
from ecg_lane_bench import SESSIONS, Work, play
from role_bench import Job, RoleBench, Write
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from test_roles_ecg import heart
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.ecg.configure import PREFIX, WeightPort
from trebuchet.cores.roles.ecg.role import EcgRole
from trebuchet.cores.roles.slot import RoleSlot
from trebuchet.models.ecg import model
from trebuchet.models.ecg.presets import PRESETS
from trebuchet.models.ecg.words import ORDERS, weight_words
from trebuchet.models.status import Status


def checksum(words):
    total = 0
    for word in words:
        total = ((total << 1 | total >> 31) + word) % (1 << 32)
    return total


@pytest.mark.nightly
@seeds(1)
def test_several_pipelines(seed):
    """Blocks of four sessions on three pipelines: each answer is its own, in any order."""
    rng = make_rng(seed, "several")
    works = []
    for _ in range(SESSIONS):
        blocks = [heart(rng, rng.choice([64, 301, 600])) for _ in range(2)]
        works.append([Work(block, model.classify_block(block)) for block in blocks])
    works[0].insert(1, Work(bytes(126), Status.BAD_LENGTH))
    works[1].insert(1, Work(heart(rng, 600, beats=3), Status.NO_ROOM, room=16))
    _, order = play(seed, works, pipelines=3)
    assert len(order) == 10


def configuration(words):
    return bytes(PREFIX) + struct.pack(f"<{len(words)}H", *words)


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


@seeds(1)
def test_weights_wait_for_the_jobs_before(seed):
    """No word comes while a job is in a pipeline, and no job begins while words come."""
    rng = make_rng(seed, "between")
    words = weight_words(model.default_weights(model.FAITHFUL), ORDERS["faithful"])
    load = Work(configuration(words), b"", JobKind.CONFIGURE)
    works = []
    for session in range(3):
        blocks = [heart(rng, 300) for _ in range(2)]
        works.append([Work(block, model.classify_block(block)) for block in blocks])
        if session == 1:
            works[1].insert(1, load)
            works[1].insert(3, Work(bytes(64), Status.BAD_LENGTH, JobKind.CONFIGURE))
    taken, got = [], []

    def watch(dut, under_way):
        async def bench(ctx):
            inside = 0
            while True:
                signals = (dut.job.valid, dut.job.ready, dut.job.payload.kind)
                signals += (dut.answer.valid, dut.answer.ready, dut.bank.load.valid)
                _, _, jv, jr, kind, av, ar, word = await ctx.tick().sample(*signals)
                if word:
                    got.append(ctx.get(dut.bank.load.payload))
                    assert inside == 1, "the job of the weights alone"
                if jv and jr:
                    taken.append(kind)
                    assert kind == JobKind.CONFIGURE.value or not word
                inside += (jv and jr) - (av and ar)

        bench.background = True
        return bench

    play(seed, works, watch, pipelines=2, loadable=True)
    assert len(got) == len(words)
    assert len(taken) == 8


def test_a_reset_in_the_middle_of_new_weights():
    """The network has neither the old ones nor the new ones: no results until they have come whole,
    whoever sends the blocks."""
    rng = make_rng(0, "half")
    words = weight_words(model.default_weights(model.FAITHFUL), ORDERS["faithful"])
    block = heart(rng, 620, beats=2)
    load = Job(configuration(words), room=16, kind=JobKind.CONFIGURE)
    work = Job(block.tobytes(), room=512)
    like_words = Job(bytes(len(load.operand)), room=512)  # of their length, and yet none
    reset = Write("reset", wait=600, idle=False)
    dut = RoleSlot(EcgRole(loadable=True), "ecg", 32, 2)
    bench = RoleBench(dut, seed=None, in_flight=1)
    answers = bench.run([load, reset, work, like_words, load, work], limit=20_000)
    statuses = [Status.ABORTED, Status.STOPPED, Status.STOPPED, Status.OK, Status.OK]
    assert [answer.status for answer in answers] == statuses
    assert answers[-1].result == model.classify_block(block)


def test_orders_are_the_gateware_s():
    for preset in PRESETS.values():
        bank = EcgRole(preset=preset).bank
        order = ORDERS[preset.name] or tuple(range(preset.inputs))
        assert bank.network.shape.order == order


def test_bad_parameters():
    for options, message in [
        ({"pipelines": 0}, "Number of pipelines must be an integer >= 1, not 0"),
        ({"pipelines": 8}, "Tag width must be at least 3, not 2"),
        ({"pipelines": 4, "scratch": 0}, "Tag width must be at least 3, not 2"),
        ({"pipelines": 4, "loadable": True}, "Tag width must be at least 3, not 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            EcgRole(**options)
    with pytest.raises(ValueError, match="Words must be 1 to 65535, not 0"):
        WeightPort(0)
