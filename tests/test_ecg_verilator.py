"""The ECG role in Verilator, bit for bit its golden model: thousands of real beats, and garbage."""

import numpy as np
import pytest
from streams import make_rng, seeds
from trebuchet.cores.roles.ecg.role import EcgRole
from trebuchet.models.ecg import data, model
from trebuchet.models.ecg.second import SECOND
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.roles import Job, role_source, run_jobs

#: Compiling counts, too, and takes its time on a busy machine.
pytestmark = [pytest.mark.slow, pytest.mark.cpu_limit(1500)]

PRESETS = {preset.name: preset for preset in (model.FAITHFUL, SECOND)}
#: Real beats that each preset must get right.
BEATS = {"faithful": 20_000, "second": 6_000}
#: Pauses at every stream, and a memory that is slow and out of order.
PAUSES = {"stall": 0.2, "memory_stall": 0.2, "latency": (4, 60), "reorder": True}


def random_weights(preset, rng):
    """Weights that use their whole range, so that sums get large and scores differ."""
    numbers = np.random.default_rng(rng.getrandbits(32))
    shape = (preset.hidden, preset.inputs)
    return model.Weights(
        numbers.integers(-32768, 32768, shape) >> numbers.integers(0, 8, shape),
        numbers.integers(-(1 << 28), 1 << 28, preset.hidden),
        numbers.integers(-32768, 32768, (model.OUTPUTS, preset.hidden)),
        numbers.integers(-(1 << 28), 1 << 28, model.OUTPUTS),
        model.sigmoid_table(),
    )


#: By day the preset that the boards have.
TIERS = [
    name if name == "faithful" else pytest.param(name, marks=pytest.mark.nightly)
    for name in PRESETS
]


@pytest.fixture(scope="module", params=TIERS)
def simulator(request):
    """``(preset, weights, executable)``; one pipeline, random weights."""
    preset = PRESETS[request.param]
    weights = random_weights(preset, make_rng(0, preset.name))
    return preset, weights, build(role_source(EcgRole(64, weights, preset=preset)))


def check(simulator, blocks, **options):
    """Run blocks through the role; return how many beats came, and in how many cycles."""
    preset, weights, binary = simulator
    run = run_jobs(binary, [Job(b.astype("<i2").tobytes(), 1024) for b in blocks], **options)
    beats = 0
    for number, (block, answer) in enumerate(zip(blocks, run.answers, strict=True)):
        assert answer.status == Status.OK, f"block {number}"
        expected = model.classify_block(block, weights, preset)
        assert answer.result == expected, f"block {number}"
        beats += len(expected) // model.RECORD_BYTES
    assert run.registers["beats"] == beats
    return beats, run


def real_blocks(beats):
    """Full blocks of all records in turn, with about so many beats."""
    names = data.list_records(data.find_folder())
    traces = [data.load(name).samples for name in names]
    for start in range(0, max(map(len, traces)), model.MAX_SAMPLES):
        for samples in traces:
            block = samples[start : start + model.MAX_SAMPLES]
            if len(block) == model.MAX_SAMPLES:
                yield block
                beats -= 10
                if beats < 0:
                    return


@pytest.mark.skipif(data.find_folder() is None, reason="needs the records of MIT-BIH")
@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.nightly)])
def test_real_beats_equal_the_model(simulator, part):
    wanted = BEATS[simulator[0].name] // part
    beats, _ = check(simulator, list(real_blocks(wanted)), in_flight=2, **PAUSES)
    assert beats >= wanted


def pulses(rng, spacing):
    """As many beats as fit, all of the same size."""
    block = np.zeros(model.MAX_SAMPLES, np.int16)
    for at in range(40, model.MAX_SAMPLES - 10, spacing):
        block[at : at + 8] = (100, 400, 900, 1200, 800, 200, -300, -100)
    return block + np.array([rng.randint(-3, 3) for _ in block], np.int16)


def garbage(rng):
    """Blocks that no heart sends."""
    full = model.MAX_SAMPLES
    blocks = [np.full(n, v, np.int16) for n in (64, full) for v in (-32768, -1, 0, 32767)]
    for half in (1, 2, 3, 4, 7, 16, 60, 120):
        wave = np.arange(full) // half % 2
        blocks.append(np.where(wave, 32767, -32768).astype(np.int16))
    for length in (64, 65, 66, 67, 100, 511, 512, 515, 1000, full - 1, full):
        blocks.append(np.array([rng.randint(-32768, 32767) for _ in range(length)], np.int16))
        blocks.append(np.array([rng.choice((-32768, 32767)) for _ in range(length)], np.int16))
        blocks.append(np.array([rng.randint(-1, 1) for _ in range(length)], np.int16))
    blocks += [pulses(rng, spacing) for spacing in (100, 108, 112, 116, 120, 200, 512, 4000)]
    step = np.zeros(full, np.int16)
    step[full // 2 :] = 32767
    return [*blocks, step, np.linspace(-32768, 32767, full).astype(np.int16)]


@seeds(1)
def test_garbage_gets_the_answer_of_the_model(simulator, seed):
    blocks = garbage(make_rng(seed, "garbage"))
    beats, _ = check(simulator, blocks, seed=seed + 1, in_flight=3, **PAUSES)
    most = max(len(model.classify_block(b)) // model.RECORD_BYTES for b in blocks)
    assert most >= 34, "no block has as many beats as fit"
    assert beats > 200


def test_a_block_takes_no_longer_than_its_beats(simulator):
    """Issue 4: 4,096 samples with 12 beats in 4,300 cycles, sustained, memory latency included."""
    spacing = model.MAX_SAMPLES // 12
    block = pulses(make_rng(0, "rate"), spacing)
    beats, run = check(simulator, [block] * 6, in_flight=2)
    assert beats == 6 * 12
    ends = [answer.answered for answer in run.answers]
    assert max(np.diff(ends)) <= 4300
