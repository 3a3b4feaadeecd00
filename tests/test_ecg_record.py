"""Records in parts: no beat is lost and none counted twice, however the record is cut."""

import numpy as np
import pytest
from trebuchet.models.ecg import model, record
from trebuchet.models.ecg.presets import PRESETS
from trebuchet.models.ecg.scoring import match
from trebuchet.models.ecg.synthetic import synthesise

presets = pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)


def read_cut(samples, sizes, preset):
    """Places of the beats of ``samples``, streamed in parts of the given sizes, and the answers."""
    stream = record.RecordStream(preset)
    at, beats, answers = 0, [], []
    for size in [*sizes, 0]:
        offset = stream.offset
        assert offset == max(0, at - record.KEPT)
        answer = stream.block(samples[at : at + size]) if size else stream.end()
        at += size
        answers.append(answer)
        beats += [(offset + b.position, b.label) for b in model.unpack_records(answer)]
    return beats, answers


def random_sizes(rng, count):
    """Parts of all sizes that are allowed, small ones often; together at most ``count``."""
    sizes, left = [], count
    while left >= 64:
        longest = min(left, record.MAX_PART) // 4
        size = 4 * int(rng.choice([16, rng.integers(16, longest + 1), min(longest, 60), longest]))
        sizes.append(size)
        left -= size
    return sizes


@presets
@pytest.mark.parametrize("seed", range(4))
def test_no_beat_is_lost_or_doubled_wherever_the_record_is_cut(seed, preset):
    samples, positions, _ = synthesise(1.5, seed + 1)
    rng = np.random.default_rng(seed)
    sizes = [record.MAX_PART] * 9 if seed == 0 else random_sizes(rng, len(samples))
    beats, _ = read_cut(samples, sizes, preset)
    places = np.array([place for place, _ in beats])
    inner = positions[(positions > 100) & (positions < sum(sizes) - 100)]
    pairs = match(inner, places)
    assert sorted(pairs[pairs >= 0]) == list(range(len(inner))), (seed, sizes)
    assert len(places) <= len(positions), (seed, sizes)
    assert (np.diff(places) >= record.GAP).all(), (seed, sizes)


@presets
def test_a_record_of_one_part_is_a_block(preset):
    samples, _, _ = synthesise(1, 3)
    part = samples[: record.MAX_PART]
    stream = record.RecordStream(preset)
    first = model.unpack_records(stream.block(part))
    whole = model.unpack_records(model.classify_block(part, preset=preset))
    assert first == [beat for beat in whole if beat.position < len(part) - preset.tail]
    last = [len(part) - record.KEPT + beat.position for beat in model.unpack_records(stream.end())]
    assert [beat.position for beat in first] + last == [beat.position for beat in whole]


def test_read_record_is_the_sum_of_the_answers():
    samples, _, _ = synthesise(1, 5)
    parts = list(record.parts_of(samples))
    assert sum(map(len, parts)) == len(samples) // 4 * 4
    _, answers = read_cut(samples, [len(part) for part in parts], model.FAITHFUL)
    assert [beat[1:] for beat in record.read_record(samples)] == [
        (beat.label, beat.scores) for answer in answers for beat in model.unpack_records(answer)
    ]


@pytest.mark.parametrize("count", [60, 66, 3396])
def test_a_part_of_another_length_is_refused_and_ends_the_record(count):
    samples, _, _ = synthesise(1, 5)
    stream = record.RecordStream()
    stream.block(samples[:1000])
    assert stream.offset == 296
    message = f"^a part must have 64 to 3392 samples, a multiple of 4, not {count}$"
    with pytest.raises(ValueError, match=message):
        stream.block(np.zeros(count, np.int16))
    assert stream.offset == 0
    assert stream.end() == b""
    fresh = record.RecordStream()
    assert stream.block(samples[:2000]) == fresh.block(samples[:2000])


def test_two_blocks_that_place_a_beat_differently_report_it_once():
    """After a beat at its zone's end the next zone begins 72 samples behind that, however late."""
    found = iter([[(480,)], [], [(40 + 480,), (40 + 550,), (40 + 556,)], [(40 + 700,)]])
    reader = record.PartReader(160, lambda block: next(found))
    assert reader.part(np.zeros(644, np.int16)) == (0, [(480,)])  # the zone ends at 484
    assert reader.part(np.zeros(64, np.int16)) == (0, [])  # at 548, the gap lasts until 552
    # 772 samples so far, of which the last 704 were kept: positions are 4 less.
    reader.part(np.zeros(64, np.int16))
    assert reader.offset == 68
