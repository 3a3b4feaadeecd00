"""The picture of a record: which beats count as errors, and that a picture comes out."""

import numpy as np
import pytest
from trebuchet.host.ecg_plot import COLOURS, draw, errors_of
from trebuchet.models.ecg.data import RATE, Record
from trebuchet.models.ecg.model import CLASSES


def record(positions, labels, seconds=90):
    samples = np.random.default_rng(1).integers(-200, 200, seconds * RATE).astype(np.int16)
    if positions is None:
        return Record("r", "test", samples, None, None)
    return Record("r", "test", samples, np.array(positions), np.array(labels))


def errors(positions, labels, detected, called):
    wrong, missed = errors_of(record(positions, labels), np.array(detected), np.array(called))
    return wrong.tolist(), missed.tolist()


def test_agreement_is_no_error():
    assert errors([400, 800], [0, 4], [402, 790], [0, 4]) == ([], [])


def test_wrong_class_false_beat_and_missed_beat():
    positions, labels = [400, 800, 1200], [0, 4, 0]
    assert errors(positions, labels, [400, 600, 800], [0, 0, 0]) == ([1, 2], [1200])


def test_a_beat_of_no_such_class_is_no_error_whatever_it_is_called():
    assert errors([400, 800], [-1, 0], [400, 800], [4, 0]) == ([], [])


def test_a_record_without_annotations_has_no_errors():
    wrong, missed = errors_of(record(None, None), np.array([400]), np.array([0]))
    assert (len(wrong), len(missed)) == (0, 0)


def test_classes_have_colours_of_their_own():
    assert len(set(COLOURS)) == len(CLASSES)


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize("beats", [[], [(400, 0, ()), (25000, 4, ())]])
def test_draws_a_strip_a_minute(tmp_path, annotated, beats):
    path = tmp_path / "new" / "ecg.png"
    subject = record([400, 20000], [0, 1]) if annotated else record(None, None)
    draw(subject, beats, "title", path)
    picture = path.read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[i : i + 4], "big") for i in (16, 20))
    assert (width, height) == (1800, 320)  # two strips of a minute
