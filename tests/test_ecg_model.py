"""The golden model of the ECG role: against a second implementation, and at its limits."""

import ecg_reference as reference
import numpy as np
import pytest
from trebuchet.models.ecg import data, model, second
from trebuchet.models.ecg.presets import PRESETS
from trebuchet.models.ecg.synthetic import synthesise

WEIGHTS = model.load_weights()


def garbage(seed):
    """Blocks that no heart makes: noise, steps, spikes, saturation, of random length."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(64, 4097))
    kind = seed % 6
    if kind == 0:
        block = rng.integers(-32768, 32768, count)
    elif kind == 1:
        block = rng.choice([-32768, 32767], count)
    elif kind == 2:
        block = np.repeat(rng.integers(-32768, 32768, count), 40)[:count]
    elif kind == 3:
        block = np.zeros(count, int)
        block[rng.integers(0, count, 20)] = rng.choice([-32768, 32767, 1, 300], 20)
    elif kind == 4:
        block = np.full(count, rng.choice([-32768, 0, 32767]))
    else:
        block = (rng.standard_normal(count) * rng.choice([1, 5, 30])).round()
    return block.astype(np.int16)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
@pytest.mark.parametrize("seed", range(18))
def test_equals_the_reference_on_garbage(seed, preset):
    block = garbage(seed)
    expected = reference.classify(block.tolist(), preset.load_weights(), preset)
    assert model.classify_block(block, preset=preset) == expected


@pytest.mark.parametrize("count", [64, 65, 66, 67, 511, 512, 513, 515, 1024, 3001, 4093, 4096])
@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_equals_the_reference_on_hearts(count, preset):
    samples, _, _ = synthesise(0.5, seed=count)
    block = samples[100 : 100 + count]
    expected = reference.classify(block.tolist(), preset.load_weights(), preset)
    assert model.classify_block(block, preset=preset) == expected


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_equals_the_reference_on_a_real_record(preset):
    names = data.list_records(data.find_folder())
    if not names:
        pytest.skip("no MIT-BIH records on this machine")
    for name in names[:: max(1, len(names) // 6)]:
        block = data.load(name).samples[5000:9096]
        got = model.classify_block(block, preset=preset)
        assert got
        assert got == reference.classify(block.tolist(), preset.load_weights(), preset), name


def test_extreme_weights_stay_inside_the_accumulators():
    """The reference checks 36 bits after every product; here all are as large as they may be."""
    for sign in (1, -1):
        weights = model.Weights(
            np.full((20, 11), sign * 32767),
            np.full(20, sign * ((1 << 33) - 1)),
            np.full((6, 20), sign * 32767),
            np.full(6, sign * ((1 << 33) - 1)),
            model.sigmoid_table(),
        )
        block = garbage(0)
        assert model.classify_block(block, weights) == reference.classify(block.tolist(), weights)


def test_loudest_window_stays_inside_its_widths():
    """Feature by feature at the extremes of 12-bit windows."""
    rng = np.random.default_rng(5)
    windows = rng.choice([-2048, 2047], (50, 64))
    windows[0], windows[1, :32], windows[1, 32:] = -2048, -2048, 2047
    windows[2] = np.tile([-2048, 2047], 32)
    vectors = model.features(windows, np.full(50, 511))
    assert np.abs(vectors).max() < 1 << 15
    for qrs, vector in zip(windows.tolist(), vectors.tolist(), strict=True):
        a1, d1 = reference.level(qrs, 12, 13)
        a2, d2 = reference.level(a1, 12, 13)
        expected = [reference.plog(reference.variance(qrs, 36))]
        expected += [reference.plog(reference.variance(x, 36)) for x in (d1, d2, a2)]
        expected += [reference.correlation(x) for x in (d1, d2, a2)]
        expected += [reference.ratio(x) for x in (d1, d2, a2)]
        assert vector == [*expected, 8 * 511]


def test_loudest_traces_stay_inside_their_widths():
    """The reference checks the widths of the second preset's inputs; here they are extreme."""
    rng = np.random.default_rng(7)
    preset = PRESETS["second"]
    weights = preset.load_weights()
    for sign in (1, -1):
        loud = np.repeat(rng.choice([-32768, 32767], 60), 67)[:4000].astype(np.int16)
        largest = model.Weights(
            np.full(weights.w1.shape, sign * 32767),
            np.full(weights.b1.shape, sign * ((1 << 33) - 1)),
            np.full(weights.w2.shape, sign * 32767),
            np.full(6, sign * ((1 << 33) - 1)),
            weights.table,
        )
        got = model.classify_block(loud, largest, preset)
        assert got == reference.classify(loud.tolist(), largest, preset)
        assert len(got) > 100
    peaks = model.r_peaks(loud)
    vectors = second.second_vectors(loud, peaks, model.inside(loud, peaks))
    traces = vectors[:, : second.TRACE + second.TEMPLATE]
    assert traces.max() == 2047
    assert traces.min() == -2048


def test_intervals_of_one_beat_and_of_two():
    far = model.plog(255)
    assert second.intervals(np.array([40])).tolist() == [[far] * 4 + [far - model.plog(1)]]
    gap = model.plog(100)
    mean = gap - model.plog(1)
    expected = [[far, gap, far, far, mean], [gap, far, far, far, mean]]
    assert second.intervals(np.array([40, 140])).tolist() == expected


def test_plog_is_mitchells_logarithm():
    for value in [0, 1, 2, 3, 4, 255, 256, 257, 511, 512, 1023, 2**35 - 1, 2**42 - 1, 2**42]:
        assert model.plog(value) == reference.plog(value)
    assert model.plog(1) == 256
    assert model.plog(3) == 2 * 256 + 128
    values = model.plog(np.arange(1, 5000))
    assert (np.diff(values) >= 0).all()
    exact = 256 * (np.log2(np.arange(1, 5000)) + 1)
    assert (exact - values < 0.0861 * 256 + 1).all()  # Mitchell's bound, and the cut fraction
    assert (values <= exact + 1e-9).all()


def test_d2_shows_a_positive_peak_as_minimum_then_maximum():
    block = np.zeros(256, np.int16)
    block[128 - 8 : 128 + 9] = 25 * (9 - np.abs(np.arange(-8, 9)))
    d2 = model.block_d2(block)
    low, high = int(np.argmin(d2)), int(np.argmax(d2))
    assert low < high
    assert d2[low] < 0 < d2[high]
    assert [position for position, _ in model.r_peaks(block)] == [128]
    assert [position for position, _ in model.r_peaks(-block)] == [128]


def test_beats_at_the_ends_count_for_rr_but_are_not_reported():
    block = np.zeros(1024, np.int16)
    peak = (25 * (9 - np.abs(np.arange(-8, 9)))).astype(np.int16)
    for place in (20, 320, 700, 1008):
        block[place - 8 : place + 9] += peak[: 1024 - place + 8]
    assert model.r_peaks(block) == [(20, 511), (320, 300), (700, 380), (1008, 308)]
    reported = [beat.position for beat in model.unpack_records(model.classify_block(block))]
    assert reported == [320, 700]


def test_no_beats_in_silence():
    assert model.classify_block(np.zeros(4096, np.int16)) == b""
    assert model.classify_block(np.full(64, -32768, np.int16)) == b""


def test_number_of_beats_is_bounded():
    most = 0
    for period in range(100, 140, 4):
        place = np.arange(4096) % period
        block = (400 * np.exp(-(((place - period / 2) / 5) ** 2))).astype(np.int16)
        positions = [r for r, _ in model.r_peaks(block)]
        assert (np.diff(positions) > 4 * model.REFRACTORY).all()
        most = max(most, len(model.classify_block(block)))
    assert 30 * model.RECORD_BYTES < most <= 40 * model.RECORD_BYTES <= model.MAX_RESULT


@pytest.mark.parametrize("count", [0, 63, 4097])
def test_rejects_other_lengths(count):
    with pytest.raises(ValueError, match=f"^a block must have 64 to 4096 samples, not {count}$"):
        model.classify_block(np.zeros(count, np.int16))


def test_records_survive_packing():
    beats = [model.Beat(4095, 5, (0, 1, 65535, 256, 255, 77)), model.Beat(32, 0, (9,) * 6)]
    packed = b"".join(beat.pack() for beat in beats)
    assert packed[:4] == b"\xff\x0f\x05\x00"
    assert model.unpack_records(packed) == beats
    with pytest.raises(ValueError, match="^a result must be a multiple of 16 bytes, not 17$"):
        model.unpack_records(bytes(17))


def test_weights_out_of_range_are_refused():
    good = {name: getattr(WEIGHTS, name) for name in ("w1", "b1", "w2", "b2", "table")}
    cases = {
        "w1": (np.full((20, 11), 32768), "^w1 must be 16 bit, not 32768$"),
        "b2": (np.full(6, 1 << 33), "^b2 must be 34 bit signed$"),
        "w2": (np.zeros((6, 21), int), r"^w2 must be \(6, 20\), not \(6, 21\)$"),
        "table": (np.full(1024, 65536), "^table must be 16 bit unsigned$"),
    }
    for name, (value, message) in cases.items():
        with pytest.raises(ValueError, match=message):
            model.Weights(**{**good, name: value})


def test_table_is_the_data_sheets():
    assert (WEIGHTS.table == model.sigmoid_table()).all()
    assert (np.diff(WEIGHTS.table) >= 0).all()
    assert (WEIGHTS.table + WEIGHTS.table[::-1] == 65535).all()
