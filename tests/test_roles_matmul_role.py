"""The matrix-multiply role against its golden model, bit for bit."""

import operator
import re

import numpy as np
import pytest
from role_bench import Job, RoleBench, Write
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.matmul.array import Shape
from trebuchet.cores.roles.matmul.lane import MacLane
from trebuchet.cores.roles.matmul.role import MatmulRole, Multiplier
from trebuchet.cores.roles.matmul.sequencer import Sequencer
from trebuchet.cores.roles.slot import RoleSlot
from trebuchet.models import matmul
from trebuchet.models.status import Status

#: (order, MACs, data path): one group of lanes and several, one tile and several, and sweeps that
#: their own results hold up.
SHAPES = [(8, 4, 32), (8, 8, 32), (8, 8, 64), (8, 4, 128), (16, 8, 64)]
LARGE_SHAPES = [(16, 16, 128), (32, 32, 64)]
RESULTS = 0x8000


def naive(a, b):
    """The reference's sums, in C's arithmetic."""
    columns = list(zip(*b.tolist(), strict=True))
    total = [[sum(map(operator.mul, row, column)) for column in columns] for row in a.tolist()]
    return [[(x + 2**31) % 2**32 - 2**31 for x in row] for row in total]


def packed(beats, width):
    return [
        int.from_bytes(beats[i : i + width // 8], "little")
        for i in range(0, len(beats), width // 8)
    ]


@seeds(2)
def test_model_is_the_loop_in_c(seed):
    rng = make_rng(seed, "model")
    operand = matmul.random_operand(rng, 12, 8)
    pairs = np.frombuffer(operand, "<i4").reshape(-1, 2, 8, 8)
    results = np.frombuffer(matmul.result(operand, 8), "<i4").reshape(-1, 8, 8)
    for (a, b), c in zip(pairs, results, strict=True):
        assert c.tolist() == naive(a, b)
    assert {-(2**31), -1, 0} <= set(pairs.ravel().tolist()), "extreme values must be there"


@pytest.mark.parametrize("length", [0, 4, 511, 513])
def test_model_refuses_other_lengths(length):
    with pytest.raises(
        ValueError, match=f"^Operand must be a positive .* 512 bytes, not {length}$"
    ):
        matmul.result(bytes(length), 8)


@pytest.mark.parametrize(
    "shape",
    [*SHAPES, *(pytest.param(shape, marks=pytest.mark.nightly) for shape in LARGE_SHAPES)],
    ids=str,
)
@seeds(1)
def test_multiplier_equals_model(shape, seed):
    n, macs, width = shape
    rng = make_rng(seed, f"multiplier/{shape}")
    sizes = Shape(n, macs, width)
    # A FIFO of one and a half sweeps makes the array wait for its reader most of the time.
    dut = Multiplier(sizes, depth=sizes.sweep_beats * 3 // 2)
    operand = matmul.random_operand(rng, 5 if n == 8 else 2, n)
    expected = packed(matmul.result(operand, n), width)

    async def put(ctx):
        gaps = make_rng(seed, "put")
        for beat in packed(operand, width):
            await stream_put(ctx, dut.i, beat, rng=gaps, idle=0.1)

    async def get(ctx):
        stalls = make_rng(seed, "get")
        for number, beat in enumerate(expected):
            stall = 0.7 if number % 64 < 40 else 0.1
            assert await stream_get(ctx, dut.o, rng=stalls, stall=stall) == beat, number

    run(dut, put, get, stream_checker(dut.o), limit=40_000, seed=seed)


#: Pairs, bytes more than those, bytes of room more than their products need.
JOBS = [(1, 0, 0), (3, 0, 16), (0, 0, 64), (1, 4, 64), (2, 0, -4), (1, -512, 64), (0, 511, 0)]
JOBS += [(2, 0, 0), (1, 1, 4096), (1, 0, -256), (2, 0, 1), (1, 0, 0), (1, 0, 0)]


@pytest.mark.parametrize(
    "width", [64, *(pytest.param(n, marks=pytest.mark.nightly) for n in (32, 128))]
)
@seeds(2)
def test_role_answers_jobs(width, seed):
    """Good and bad jobs, several in the role at a time, a memory as awkward as it may be."""
    rng = make_rng(seed, f"jobs/{width}")
    n = 8
    jobs, expected = [], []
    for pairs, more, spare in JOBS:
        operand = matmul.random_operand(rng, pairs, n) + bytes(max(0, more))
        operand = operand[: len(operand) + min(0, more)]
        room = matmul.result_bytes(n) * pairs + spare
        jobs.append(Job(operand, room=max(0, room)))
        if more or not pairs:
            expected.append((Status.BAD_LENGTH, b""))
        elif spare < 0:
            expected.append((Status.NO_ROOM, b""))
        else:
            expected.append((Status.OK, matmul.result(operand, n)))
    answers = RoleBench(MatmulRole(width, macs=8, n=n), seed=seed).run(jobs, limit=40_000)
    assert [(answer.status, answer.result) for answer in answers] == expected


@seeds(2)
def test_reset_while_it_works(seed):
    """In a slot, at any time: jobs in the role are answered ABORTED, later ones are right."""
    rng = make_rng(seed, "reset")
    n = 8
    operations = []
    for pairs in (1, 2, 1, 3, 1):
        operations.append(Job(matmul.random_operand(rng, pairs, n), room=1024))
        operations.append(Write("reset", wait=rng.randrange(700), idle=False))
    operations.append(Job(matmul.random_operand(rng, 2, n), room=1024))
    slot = RoleSlot(MatmulRole(64, macs=4, n=n), "matmul", 64)
    answers = RoleBench(slot, seed=seed).run(operations, limit=40_000)
    for job, answer in zip(operations[::2], answers, strict=True):
        assert answer.status in (Status.OK, Status.ABORTED)
        assert answer.result == (
            matmul.result(job.operand, n) if answer.status == Status.OK else b""
        )
    assert answers[-1].status == Status.OK


def test_other_kinds_of_job_are_refused():
    job = Job(bytes(512), room=256, kind=JobKind.STREAM)
    (answer,) = RoleBench(MatmulRole(macs=4, n=8), seed=0).run([job], limit=1000)
    assert (answer.status, answer.result) == (Status.BAD_TYPE, b"")


@pytest.mark.parametrize("jobs", [1, pytest.param(6, marks=pytest.mark.nightly)])
def test_macs_never_wait(jobs):
    """Six products cost six times n**3 / macs cycles and one load, in one job or in six."""
    n, macs, width, products = 16, 8, 64, 6
    rng = make_rng(0, "rate")
    dut = MatmulRole(width, macs=macs, n=n)
    operand = matmul.random_operand(rng, products, n)
    memory = bytearray(operand.ljust(RESULTS, b"\0") + bytes(RESULTS))
    share = len(operand) // jobs

    async def put(ctx):
        for number in range(jobs):
            job = {"ring_log2": 15, "offset": number * share, "length": share}
            job |= {"result": RESULTS + number * share // 2, "room": share // 2}
            await stream_put(ctx, dut.job, job)

    async def get(ctx):
        for _ in range(jobs):
            assert (await stream_get(ctx, dut.answer)).status == Status.OK
        assert ctx.get(dut.csr.products) == products
        assert ctx.get(dut.csr.mac_cycles) == products * n**3 // macs

    responder = MemoryResponder(dut.mem, memory, latency=(40, 40))
    cycles = run(dut, put, get, responder, limit=10_000)
    load = Shape(n, macs, width).pair_beats
    assert cycles <= products * n**3 // macs + load + 240
    assert memory[RESULTS:][: len(operand) // 2] == matmul.result(operand, n)


def test_slot_runs_it_for_network_and_cpu():
    """In a slot: a job of the network, one of the CPU, one while it is switched off."""
    n = 8
    rng = make_rng(0, "slot")
    slot = RoleSlot(MatmulRole(64, macs=8, n=n), "matmul", 64)
    operand = matmul.random_operand(rng, 2, n)
    size = len(operand)
    expected = matmul.result(operand, n)
    memory = bytearray(operand.ljust(RESULTS, b"\0") + bytes(RESULTS))
    job = {"source": 2, "id": 9, "ring_log2": 15, "length": size, "result": RESULTS, "room": 4096}

    async def bench(ctx):
        csr = slot.csr
        ctx.set(csr.enable, 1)
        await stream_put(ctx, slot.job, job)
        answer = await stream_get(ctx, slot.answer)
        assert (answer.source, answer.id, answer.status) == (2, 9, Status.OK)
        assert memory[RESULTS : RESULTS + size // 2] == expected

        ctx.set(csr.operand_addr, size // 2)
        ctx.set(csr.operand_length, size // 2)
        ctx.set(csr.result_addr, RESULTS + 0x1000)
        ctx.set(csr.result_room, size // 4)
        ctx.set(csr.start, 1)
        await ctx.tick()
        ctx.set(csr.start, 0)
        await ctx.tick().until(csr.interrupt_status[0])
        assert ctx.get(csr.result_status) == Status.OK
        assert ctx.get(csr.result_length) == size // 4
        assert memory[RESULTS + 0x1000 :][: size // 4] == expected[size // 4 :]
        assert ctx.get(csr.products) == 3

        ctx.set(csr.enable, 0)
        await stream_put(ctx, slot.job, job)
        assert (await stream_get(ctx, slot.answer)).status == Status.STOPPED

    responder = MemoryResponder(slot.mem, memory, rng=make_rng(0, "memory"))
    run(slot, bench, responder, limit=20_000)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shape(n=48), "Order of the matrices must be 4, 8, 16, 32 or 64, not 48"),
        (lambda: Shape(macs=48), "Number of MACs must be a power of two from 4 to 64, not 48"),
        (lambda: Shape(n=8, macs=16), "Number of MACs must be a power of two from 4 to 8, not 16"),
        (lambda: Shape(macs=2), "Number of MACs must be a power of two from 4 to 64, not 2"),
        (lambda: MacLane(1), "Depth of a bank must be an integer >= 2, not 1"),
        (
            lambda: Sequencer(Shape(), 31),
            "Depth must be at least the 32 beats of a sweep, not 31",
        ),
    ],
)
def test_constructors_say_what_is_wrong(make, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
