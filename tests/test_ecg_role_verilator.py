"""The whole ECG role in Verilator: sustained rate, records through real pipelines, new weights."""

import numpy as np
import pytest
from streams import make_rng
from test_ecg_stream import cut
from test_roles_ecg_pipeline import heart
from test_roles_ecg_role import checksum, configuration
from trebuchet.bench.ecg import block_of
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.roles.ecg.load import STORE_LOG2
from trebuchet.cores.roles.ecg.role import EcgRole
from trebuchet.models.ecg import model
from trebuchet.models.ecg.record import RecordStream
from trebuchet.models.ecg.words import ORDERS, weight_words
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.roles import Job, Write, role_source, run_jobs

pytestmark = pytest.mark.slow

SESSIONS, SCRATCH = 4, 0x4000
MEMORY = {"scratch": (SCRATCH, SESSIONS << STORE_LOG2)}
PAUSES = {"stall": 0.2, "memory_stall": 0.2, "latency": (4, 60), "reorder": True}
#: Width of the memory port, pipelines, and cycles that a block may take.
ROLES = {"narrow": (32, 1, 4300), "wide": (64, 2, 4300 / 2)}


@pytest.fixture(scope="module", params=["wide", pytest.param("narrow", marks=pytest.mark.nightly)])
def role(request):
    """``(executable, pipelines, cycles)``"""
    width, pipelines, cycles = ROLES[request.param]
    options = {"scratch": SCRATCH, "sessions": SESSIONS, "loadable": True}
    dut = EcgRole(width, tag_width=4, pipelines=pipelines, **options)
    return build(role_source(dut)), pipelines, cycles


def job_of(samples, **options):
    return Job(samples.astype("<i2").tobytes(), room=1024, **options)


def test_acquisition_is_hidden_behind_processing(role):
    """4,096 samples with 12 beats, memory latency 40: at most 4,300 cycles a pipeline."""
    binary, pipelines, cycles = role
    block = block_of(12)
    run = run_jobs(binary, [job_of(block)] * 16, in_flight=2 * pipelines, **MEMORY)
    expected = model.classify_block(block)
    assert all(answer.result == expected for answer in run.answers)
    ends = sorted(answer.answered for answer in run.answers)
    warm = 2 * pipelines
    assert (ends[-1] - ends[warm]) / (len(ends) - 1 - warm) <= cycles


@pytest.mark.parametrize("options", [{}, PAUSES], ids=["free", "paused"])
def test_records_in_parts(role, options):
    """Two sessions in turn; with one pipeline two of their parts are in the role at a time."""
    binary, pipelines, _ = role
    rng = make_rng(0, "records")
    queues = []
    for session in (1, 2):
        stream, jobs = RecordStream(), []
        for number, part in enumerate(cut(rng, heart(rng, 30_000))):
            fields = {"kind": JobKind.STREAM, "first": number == 0, "session": session}
            jobs.append((job_of(part, **fields), stream.block(part)))
        fields["first"] = 0
        jobs.append((Job(b"", room=1024, **fields), stream.end()))
        queues.append(jobs)
    pairs = [pair for both in zip(*queues, strict=False) for pair in both]
    run = run_jobs(
        binary, [job for job, _ in pairs], in_flight=2 if pipelines == 1 else 1, **MEMORY, **options
    )
    for number, (answer, (_, expected)) in enumerate(zip(run.answers, pairs, strict=True)):
        assert (answer.status, answer.result) == (Status.OK, expected), f"part {number}"
    assert sum(len(expected) for _, expected in pairs) > 100 * 16


def other_weights(rng):
    numbers = np.random.default_rng(rng.getrandbits(32))
    return model.Weights(
        numbers.integers(-32768, 32768, (model.HIDDEN, model.FEATURES)) >> 6,
        numbers.integers(-(1 << 28), 1 << 28, model.HIDDEN),
        numbers.integers(-32768, 32768, (model.OUTPUTS, model.HIDDEN)),
        numbers.integers(-(1 << 28), 1 << 28, model.OUTPUTS),
        numbers.permutation(model.sigmoid_table()),
    )


def test_new_weights(role):
    """By message among other jobs, then by register; each block by the weights before it."""
    binary, _, _ = role
    rng = make_rng(0, "weights")
    blocks = [heart(rng, 1500) for _ in range(4)]
    sets = [model.load_weights(), other_weights(rng), other_weights(rng)]
    words = [weight_words(weights, ORDERS["faithful"]) for weights in sets]
    load = Job(configuration(words[1]), kind=JobKind.CONFIGURE)
    short = Job(configuration(words[2][:-1]), kind=JobKind.CONFIGURE)
    # A few cycles after the last answer: while a job is there, registers are ignored.
    by_register = [Write("weights_restart", 1, wait=4, idle=True)]
    by_register += [Write("weights_data", 1 << 16 | word, idle=False) for word in words[2]]
    operations = [job_of(blocks[0]), job_of(blocks[1]), load, job_of(blocks[2]), short]
    run = run_jobs(
        binary, [*operations, *by_register, job_of(blocks[3])], in_flight=4, **MEMORY, **PAUSES
    )
    expected = [
        (Status.OK, model.classify_block(blocks[0])),
        (Status.OK, model.classify_block(blocks[1])),
        (Status.OK, b""),
        (Status.OK, model.classify_block(blocks[2], sets[1])),
        (Status.BAD_LENGTH, b""),
        (Status.OK, model.classify_block(blocks[3], sets[2])),
    ]
    assert [(answer.status, answer.result) for answer in run.answers] == expected
    assert run.registers["weights_words"] == len(words[2])
    assert run.registers["weights_sum"] == checksum(words[2])
    assert run.registers["weights_dropped"] == 0
