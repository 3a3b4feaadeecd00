"""DMA between drive and memory, against a model: every byte of both, and what came of each job."""

import pytest
from drive_bench import DriveModel, done_get, jobs_put
from part_sizes import at_sizes
from streams import MemoryResponder, make_rng, run, seeds, stream_checker
from trebuchet.cores.drive.port import SECTOR, DriveSignature, DriveStatus
from trebuchet.cores.drive.to_memory import DriveDma

MEMORY, SECTORS = 1 << 14, 64


def expected(jobs, memory, disk, faults, lies, n):
    """Execute ``jobs`` on copies, a byte at a time; return them and the statuses."""
    memory, disk, statuses, number = bytearray(memory), bytearray(disk), [], 0
    for job in jobs:
        size = job["count"] * SECTOR
        if not size or job["addr"] % n:
            statuses.append((job["tag"], DriveStatus.INVALID))
            continue
        kind = "write" if job["write"] else "read"
        fault = faults(kind, number, size)
        status, kept = fault or (DriveStatus.OK, size)
        for i in range(kept):
            here, there = (job["addr"] + i) % MEMORY, job["lba"] * SECTOR + i
            if job["write"]:
                disk[there] = memory[here]
            else:
                memory[here] = disk[there]
        if not job["write"] and fault and number in lies:
            status = DriveStatus.DATA
        statuses.append((job["tag"], status))
        number += 1
    return memory, disk, statuses


def random_jobs(rng, count, n):
    """Jobs of up to three sectors, some beyond the memory's end, some invalid."""
    for _ in range(count):
        sectors = rng.choice((0, 1, 1, 2, 3))
        yield {
            "write": rng.randrange(2),
            "lba": rng.randrange(SECTORS - 3),
            "count": sectors,
            "addr": rng.randrange(MEMORY // n) * n + (rng.random() < 0.1),
            "tag": rng.randrange(4),
        }


def run_jobs(dut, jobs, rng, seed, faults=None, lies=frozenset(), limit=60_000):
    """Run ``jobs`` and compare memory, disk and statuses with the model's."""
    n = dut.width // 8
    memory, disk = bytearray(rng.randbytes(MEMORY)), bytearray(rng.randbytes(SECTORS * SECTOR))
    faults = faults or (lambda kind, number, size: None)
    want_memory, want_disk, want = expected(jobs, memory, disk, faults, lies, n)
    drive = DriveModel(dut.drive, disk, rng=rng, faults=faults, lies=lies)
    got = []

    async def put(ctx):
        await jobs_put(ctx, dut.job, jobs, rng)

    async def get(ctx):
        got.extend(await done_get(ctx, dut.done, len(jobs), rng))

    checks = [stream_checker(dut.drive.wdata, "wdata"), stream_checker(dut.done, "done")]
    responder = MemoryResponder(dut.mem, memory, rng=rng)
    run(dut, put, get, drive, responder, *checks, limit=limit, seed=seed)
    assert got == want
    assert memory == want_memory
    assert disk == want_disk
    sizes = [(b["write"], b["lba"], b["count"], b["tag"]) for b in jobs]
    valid = [s for s, b in zip(sizes, jobs, strict=True) if b["count"] and b["addr"] % n == 0]
    assert drive.log == valid
    assert not responder.busy


def random_faults(seed, n):
    """A fault of every third command: at the start, at the end, or anywhere between."""

    def fault(kind, number, size):
        rng = make_rng(seed, f"fault {number}")
        if rng.random() < 0.67:
            return None
        status = rng.choice((DriveStatus.DATA, DriveStatus.TIMEOUT, DriveStatus.ABSENT))
        last = size if kind == "write" else size - n
        return status, rng.choice((0, n, last, rng.randrange(0, last, n)))

    return fault


@at_sizes("drive.to_memory.DriveDma")
@seeds(3)
def test_moves_what_the_model_moves(size, seed):
    rng = make_rng(seed, "jobs")
    dut = DriveDma(**size)
    run_jobs(dut, list(random_jobs(rng, 8, dut.width // 8)), rng, seed)


@pytest.mark.parametrize(("width", "burst"), [(32, 2), (128, 32), (64, 64)])
@seeds(2)
def test_failed_jobs_leave_the_rest_alone(width, burst, seed):
    rng = make_rng(seed, "faults")
    dut, n = DriveDma(width, burst=burst), width // 8
    jobs = list(random_jobs(rng, 8, n))
    run_jobs(dut, jobs, rng, seed, random_faults(seed, n))


@seeds(2)
def test_a_short_read_is_no_success(seed):
    """Packets that are short, or end with `error`, of which the drive reports `OK`."""
    rng, size = make_rng(seed, "lies"), 2 * SECTOR
    jobs = [
        {"write": 0, "lba": 2 * i, "count": 2, "addr": i * size, "tag": i % 4} for i in range(8)
    ]
    short = {0: size - 4, 1: size - 4, 2: 4, 3: 4, 4: SECTOR, 5: SECTOR, 6: 128, 7: 128}
    lies = lambda kind, number, size: (DriveStatus.DATA, short[number])  # noqa: E731
    run_jobs(DriveDma(32), jobs, rng, seed, lies, frozenset(range(8)))


def test_keeps_up_with_the_drive():
    """A burst of 32 beats costs one cycle more; the rest is latency."""
    dut, memory = DriveDma(32), bytearray(MEMORY)
    disk = bytearray(range(256)) * 2 * SECTORS

    async def job(ctx):
        await jobs_put(
            ctx, dut.job, [{"write": 0, "lba": 1, "count": 16, "addr": 0, "tag": 1}], None
        )
        (done,) = await done_get(ctx, dut.done, 1, None)
        assert done == (1, DriveStatus.OK)

    responder = MemoryResponder(dut.mem, memory, latency=(4, 4))
    cycles = run(dut, job, DriveModel(dut.drive, disk), responder, limit=4000)
    assert memory[: 16 * SECTOR] == disk[SECTOR : 17 * SECTOR]
    beats = 16 * SECTOR // 4
    assert cycles <= beats * 33 // 32 + 40


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((32, 2, 3), r"^Burst must be a power of two of at least 2 beats, not 3$"),
        ((32, 2, 128), r"^Burst must be at most 64 beats of 32 bits, not 128$"),
        ((128, 2, 64), r"^Burst must be at most 32 beats of 128 bits, not 64$"),
        ((32, -1), r"^Tag width must be a non-negative integer, not -1$"),
    ],
)
def test_refuses_wrong_parameters(arguments, said):
    with pytest.raises(ValueError, match=said):
        DriveDma(*arguments)


def test_signatures_compare_by_their_parameters():
    assert DriveSignature(32, 2) == DriveSignature()
    assert DriveSignature(32, 2) != DriveSignature(64, 2)
    assert DriveSignature(32, 2) != DriveSignature(32, 0)
