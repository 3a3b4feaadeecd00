"""Blocks, scoring, records and training of the ECG network."""

import numpy as np
import pytest
from trebuchet.bench import ecg_accuracy
from trebuchet.models.ecg import blocks, data, model, train
from trebuchet.models.ecg.adam import Recipe
from trebuchet.models.ecg.presets import PRESETS, preset_named
from trebuchet.models.ecg.scoring import match, peaks_score, score
from trebuchet.models.ecg.synthetic import synthesise
from trebuchet.models.ecg.wfdb_annotations import Annotations
from trebuchet.models.errors import TrebuchetError


def read(samples):
    parts = blocks.cut(samples)
    return blocks.merge(parts, [model.reported(part.samples) for part in parts])


@pytest.mark.parametrize("count", [64, 705, 4095, 4096, 4097, 4100, 7488, 7489, 20001])
def test_blocks_cover_the_record_once(count):
    samples = np.arange(count).astype(np.int16)
    parts = blocks.cut(samples)
    assert parts[0].low == 0
    assert parts[-1].high == count
    for part in parts:
        assert part.offset % 4 == 0
        assert model.MIN_SAMPLES <= len(part.samples) <= model.MAX_SAMPLES
        end = part.offset + len(part.samples)
        assert (part.samples == samples[part.offset : end]).all()
        assert part.offset <= part.low < part.high <= end
        assert len(part.payload()) == 2 * len(part.samples)
    for one, following in zip(parts, parts[1:], strict=False):
        assert one.high == following.low
        assert following.low - following.offset >= blocks.LEAD
        assert one.offset + len(one.samples) - one.high == blocks.TAIL
    if count >= model.MAX_SAMPLES:
        assert all(len(part.samples) > model.MAX_SAMPLES - 4 for part in parts)


def test_short_records_are_refused():
    with pytest.raises(ValueError, match="^a record must have at least 64 samples, not 63$"):
        blocks.cut(np.zeros(63, np.int16))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_beat_is_lost_or_doubled_at_a_border(seed):
    samples, positions, _ = synthesise(4, seed)
    found = read(samples)
    places = np.array([place for place, _ in found])
    inner = positions[(positions > 100) & (positions < len(samples) - 100)]
    matched = match(inner, places)
    assert sorted(matched[matched >= 0]) == list(range(len(inner))), f"seed {seed}"
    assert len(places) <= len(positions), f"seed {seed}"
    # The RR interval is right for every beat, whichever block speaks for it.
    rr = np.array([rr for _, rr in found])
    assert (rr[1:] == np.minimum(np.diff(places), 511)).all(), f"seed {seed}"


def test_merge_drops_a_double_across_a_border():
    parts = blocks.cut(np.zeros(8000, np.int16))
    border = parts[0].high
    first = [(border - 8,)]
    second = [(border + 4 - parts[1].offset,), (border + 400 - parts[1].offset,)]
    rest = [[] for _ in parts[2:]]
    assert blocks.merge(parts, [first, second, *rest]) == [(border - 8,), (border + 400,)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:wfdb")
def test_matching_agrees_with_wfdb():
    from wfdb.processing import compare_annotations  # noqa: PLC0415 - slow to import

    rng = np.random.default_rng(3)
    for _ in range(20):
        annotated = np.cumsum(rng.integers(110, 500, 60))
        kept = annotated[rng.random(60) > 0.1] + rng.integers(-20, 21)
        extra = rng.integers(0, annotated[-1], 4)
        detected = np.unique(np.concatenate([kept, extra]))
        pairs = match(annotated, detected)
        used = pairs[pairs >= 0]
        assert len(np.unique(used)) == len(used)
        assert (np.abs(annotated[used] - detected[pairs >= 0]) <= 54).all()
        theirs = compare_annotations(annotated, detected, 54)
        assert abs(theirs.tp - len(used)) <= 2  # they leave some close calls unmatched


def test_score_counts_every_beat_once():
    annotated = np.array([100, 400, 700, 1000, 1300])
    truth = np.array([0, 4, 0, -1, 3])
    result = score(annotated, truth, np.array([104, 396, 800, 1000]), np.array([0, 0, 4, 0]))
    assert (result.annotated, result.detected, result.matched) == (5, 4, 3)
    expected = np.zeros((7, 7), int)
    expected[0, 0] = expected[4, 0] = 1  # one right, one PVC called N
    expected[0, 6] = expected[3, 6] = 1  # two missed
    expected[6, 4] = expected[6, 0] = 1  # found where nothing is; a beat of another class
    assert (result.confusion == expected).all()
    assert result.accuracy == 1 / 4
    assert result.found_accuracy == 1 / 2
    assert result.sensitivity == 3 / 5
    assert result.predictivity == 3 / 4


def test_synthetic_record_is_known_and_repeatable():
    record = data.load("synthetic", 2)
    again = data.load("synthetic", 2)
    assert (record.samples == again.samples).all()
    assert len(record.samples) == 2 * 60 * 360
    assert "no real patient" in record.source
    assert (np.diff(record.positions) > 100).all()
    first = record.first(1)
    assert len(first.samples) == 60 * 360
    assert first.positions.max() < 60 * 360
    with pytest.raises(TrebuchetError, match="must be above 0 and at most 1440, not 0$"):
        record.first(0)


@pytest.fixture(scope="module", params=list(PRESETS))
def trained_on_synthetic(request):
    """(preset, beats, a short training of it)"""
    preset = PRESETS[request.param]
    beats = train.gather(data.load("synthetic", 8), preset, EFFORT.shifts)
    known = beats.labels >= 0
    return preset, beats, train.fit(beats.copies[:, known], beats.labels[known], preset, EFFORT)


EFFORT = train.Effort(
    iterations=60,
    teachers=1,
    teacher_hidden=64,
    teacher=Recipe(200, batch=128, rise=20),
    pupil=Recipe(400, batch=128, rise=20),
    shifts=(0, 2),
)


def test_training_is_repeatable_and_survives_rounding(trained_on_synthetic, tmp_path):
    preset, beats, trained = trained_on_synthetic
    known = beats.labels >= 0
    labels, copies = beats.labels[known], beats.copies[:, known]
    weights = train.quantise(trained, preset)
    again = train.quantise(train.fit(copies, labels, preset, EFFORT), preset)
    for name in ("w1", "b1", "w2", "b2"):
        assert (getattr(weights, name) == getattr(again, name)).all()
    called = model.network(copies[0], weights, preset.shifts)[0]
    assert (called == labels).mean() > 0.95
    assert (called == trained.classify(copies[0])).mean() > 0.99
    path = tmp_path / "weights.json"
    train.write_weights(weights, path)
    assert (preset.load_weights(path).w1 == weights.w1).all()


def test_scores_of_the_network_are_its_probabilities(trained_on_synthetic):
    preset, beats, trained = trained_on_synthetic
    exact = trained.probabilities(beats.vectors)
    weights = train.quantise(trained, preset)
    got = model.network(beats.vectors, weights, preset.shifts)[1] / 65535
    assert np.quantile(np.abs(got - exact), 0.99) < 0.03


def test_weights_of_another_preset_are_refused():
    faithful, second = PRESETS["faithful"], PRESETS["second"]
    with pytest.raises(ValueError, match="of the second preset, 95 inputs and 48 hidden neurons"):
        second.load_weights(faithful.weights_file)
    with pytest.raises(TrebuchetError, match="^the preset must be one of faithful, second, not"):
        preset_named("third")


def test_a_larger_number_of_beats_is_split_once_and_for_all():
    """The halves are those of the annotated beats, found or not; each class is split evenly."""
    rng = np.random.default_rng(4)
    truth = rng.choice([-1, 0, 0, 0, 1, 2, 3, 4, 5], 4000)
    places = 300 * np.arange(1, 4001)
    found = rng.random(4000) > 0.1
    parts = []
    for detected in (np.ones(4000, bool), found):
        copies = np.zeros((1, detected.sum(), 3), np.int16)
        labels = truth[detected]
        parts.append(train.Beats("x", copies, places[detected], labels, places, truth))
    whole, some = (train.halves([part]) for part in parts)
    assert not whole.missed.any()
    assert (whole.trained_on[found] == some.trained_on).all()
    assert (whole.tested[found] == some.tested).all()
    assert not (whole.trained_on & whole.tested).any()
    assert ((whole.trained_on | whole.tested) == (truth >= 0)).all()
    lost = np.bincount(truth[whole.tested & ~found], minlength=6)
    assert (some.missed == lost).all()
    result = train.split_score(some, parts[1].labels, np.maximum(parts[1].labels, 0))
    assert result.annotated == whole.tested.sum()
    assert result.accuracy == 1 - lost.sum() / whole.tested.sum()
    counts = [np.bincount(truth[mask], minlength=6) for mask in (whole.trained_on, whole.tested)]
    assert (np.abs(counts[0] - counts[1]) <= 1).all()


def test_accuracy_is_not_measured_without_records(tmp_path, monkeypatch):
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    with pytest.raises(TrebuchetError, match="^accuracy is measured on 35 records .* 0 are here"):
        ecg_accuracy.accuracy()


def test_flutter_is_left_out_of_the_r_peaks():
    annotated = np.array([100, 400, 900, 1200])
    detected = np.array([104, 500, 650, 700, 905, 1500])
    whole = peaks_score(annotated, detected)
    assert (whole.annotated, whole.detected, whole.matched) == (4, 6, 2)
    less = peaks_score(annotated, detected, ((450, 720), (1450, 1600)))
    assert (less.annotated, less.detected, less.matched) == (4, 2, 2)
    # A pair at the edge of an episode stays a pair.
    edge = peaks_score(annotated, detected, ((102, 110), (1000, 1300)))
    assert (edge.annotated, edge.detected, edge.matched) == (3, 6, 2)


def test_episodes_of_flutter_are_between_their_marks():
    notes = Annotations(np.array([10, 20, 30, 40, 50, 60]), tuple("N[!]N["))
    assert data.episodes(notes, 100) == ((20, 40), (60, 99))
    record = data.Record("x", "", np.zeros(100), np.array([10]), np.array([0]), ((20, 40),))
    assert record.first(0.25 / 60 / 360 * 100).flutter == ((20, 40),)
    assert record.first(10 / 60 / 360).flutter == ()
