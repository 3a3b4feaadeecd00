"""Records in parts through the ECG role: no beat lost, none counted twice."""

import numpy as np
import pytest
from ecg_lane_bench import Work, play
from streams import make_rng, seeds
from test_roles_ecg_pipeline import heart
from trebuchet.cores.roles.contract import JobKind
from trebuchet.models.ecg import model
from trebuchet.models.ecg.record import MAX_PART, RecordStream
from trebuchet.models.status import Status

pytestmark = pytest.mark.slow


def cut(rng, samples, longest=MAX_PART):
    """Cut a record into parts of random size, short ones and long ones."""
    at, parts = 0, []
    while len(samples) - at >= 64:
        limit = min(longest, (len(samples) - at) // 4 * 4)
        size = rng.choice([4 * rng.randint(16, limit // 4), 64, limit])
        parts.append(samples[at : at + size])
        at += size
    return parts


def part_work(stream, part, first):
    return Work(part, stream.block(part), JobKind.STREAM, first)


def end_work(stream, first=0):
    return Work(b"", stream.end(), JobKind.STREAM, first)


def record_work(parts, first=1):
    """The jobs of a record. Only the first of a connection says ``first``."""
    stream = RecordStream()
    works = [part_work(stream, part, first and i == 0) for i, part in enumerate(parts)]
    return [*works, end_work(stream)]


@pytest.mark.parametrize(
    ("width", "pipelines"),
    [
        (32, 1),
        pytest.param(64, 2, marks=pytest.mark.nightly),
        pytest.param(128, 1, marks=pytest.mark.nightly),
    ],
)
@seeds(1)
def test_records_in_parts(width, pipelines, seed):
    """Sessions at the same time: records one after the other, and independent blocks between."""
    rng = make_rng(seed, f"records {width}")
    works = []
    for session in range(2):
        jobs = []
        for number in range(2):
            beats = heart(rng, rng.randint(700, 1200), beats=4)
            parts = cut(rng, beats, longest=rng.choice([300, 1200]))
            jobs += record_work(parts, first=number == 0)
        if session == 0:
            block = heart(rng, 500)
            jobs.insert(rng.randrange(1, 4), Work(block, model.classify_block(block)))
        works.append(jobs)
    assert any(len(work.expected) > 16 for jobs in works for work in jobs)
    play(seed, works, width=width, pipelines=pipelines)


@pytest.mark.nightly
def test_a_part_of_full_size():
    """What is kept and the longest part are a whole block; the next part begins at once."""
    rng = make_rng(0, "full")
    samples = heart(rng, MAX_PART + 1200)
    parts = [samples[:800], samples[800 : 800 + MAX_PART], samples[800 + MAX_PART :]]
    assert sum(len(part) for part in parts) == len(samples)
    play(0, [record_work(parts)], stall=0)


@pytest.mark.nightly
@seeds(1)
def test_a_new_connection_inherits_nothing(seed):
    """The session's number is used again in the middle of a record: ``first`` forgets it."""
    rng = make_rng(seed, "again")
    works = []
    for _ in range(2):
        parts = cut(rng, heart(rng, 700, beats=3), longest=400)
        works += record_work(parts)[: rng.randint(1, len(parts))]
    play(seed, [works], pipelines=2)


def test_records_without_samples():
    """A record ends at once: as the first message, after another record, after a refused part."""
    rng = make_rng(3, "empty")
    stream = RecordStream()
    bad = Work(bytes(2 * 66), Status.BAD_LENGTH, JobKind.STREAM)
    part = heart(rng, 800)
    works = [
        end_work(RecordStream(), first=1),
        end_work(RecordStream()),
        *record_work([part], first=0),
        part_work(stream, part, 0),
        bad,
        part_work(RecordStream(), part, 1),
    ]
    play(3, [works])


def test_lengths():
    """64 to 3,392 samples in fours, or none; each wrong length is answered and nothing hangs."""
    wrong = [1, 2, 8, 2 * 63, 2 * 60, 2 * 66, 2 * 64 + 1, 2 * MAX_PART + 8, 2 * 4096]
    works = [Work(bytes(n), Status.BAD_LENGTH, JobKind.STREAM, 1) for n in wrong]
    quiet = np.zeros(64, np.int16)
    works += [Work(quiet, b"", JobKind.STREAM, 1), Work(bytes(2 * 65), b"")]
    works += record_work([np.zeros(MAX_PART, np.int16)])
    play(4, [works])
