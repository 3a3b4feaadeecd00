"""The ECG role around its pipelines: several of them, and new weights while it runs."""

import struct

import pytest
from ecg_lane_bench import SESSIONS, Work, play
from role_bench import Job, RoleBench, Write
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from test_roles_ecg_pipeline import block, heart
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


@pytest.mark.parametrize(
    "width", [64, *(pytest.param(n, marks=pytest.mark.nightly) for n in (32, 128))]
)
@seeds(2)
def test_role_answers_jobs(width, seed):
    rng = make_rng(seed, "jobs")
    dut = EcgRole(width=width)
    memory = bytearray(rng.randbytes(1 << 16))
    cases = [("heart", 2048, None), ("flat", 2048, None), ("short", 16, None)]
    cases += [("heart", 0, None), ("heart", 2048, 126), ("heart", 2048, 8194), ("heart", 2048, 201)]
    plan = []
    for number, (kind, room, length) in enumerate(cases):
        samples = heart(rng, 800) if kind == "heart" else block(kind, rng)
        raw = samples.astype("<i2").tobytes()
        ring_log2, base = 14, 0x4000 * rng.randint(0, 1)
        offset = rng.randrange(1 << ring_log2)
        expected = model.classify_block(samples) if length is None else b""
        status = Status.OK if length is None else Status.BAD_LENGTH
        if len(expected) > room:
            expected, status = b"", Status.NO_ROOM
        job = {
            "source": rng.randrange(16),
            "session": rng.randrange(1 << 17),
            "id": rng.getrandbits(32),
            "base": base,
            "offset": offset,
            "ring_log2": ring_log2,
            "length": len(raw) if length is None else length,
            "result": 0x8000 + 0x1000 * number,
            "room": room,
        }
        plan.append((job, raw, expected, status))

    async def bench(ctx):
        for job, raw, expected, status in plan:
            for i, byte in enumerate(raw):
                memory[job["base"] + (job["offset"] + i) % (1 << 14)] = byte
            before = bytes(memory)
            await stream_put(ctx, dut.job, job, rng=rng)
            answer = await stream_get(ctx, dut.answer, rng=rng)
            for name in ("source", "session", "id"):
                assert answer[name] == job[name]
            assert answer.status == status
            assert answer.length == len(expected)
            at = job["result"]
            assert memory[at : at + len(expected)] == expected
            room = at + job["room"]
            assert memory[:at] == before[:at], "wrote before the result"
            assert memory[room:] == before[room:], "wrote past its room"

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    checkers = [stream_checker(s) for s in (dut.answer, dut.mem.cmd, dut.mem.wdata)]
    run(dut, bench, responder, *checkers, limit=60_000, seed=seed)
