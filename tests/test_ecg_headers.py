"""WFDB records: segments, absurd headers, no annotations, other files; `ecg run --lead`."""

import contextlib
import json

import numpy as np
import pytest
from ecg_files import Lead, annotate, refusal, write, write_segments
from trebuchet.host.ecg import cli, client
from trebuchet.models.ecg import data, wfdb_header, wfdb_record
from trebuchet.models.errors import TrebuchetError
from typer.testing import CliRunner

RATE = data.RATE


@pytest.fixture(autouse=True)
def database(tmp_path, monkeypatch):
    """The folder of records is the test's own."""
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def wave(seconds=10):
    time = np.arange(seconds * RATE) / RATE
    return np.sin(2 * np.pi * 3 * time)


# Segments


def test_segments_and_gaps_are_one_record(tmp_path):
    write(tmp_path, "a", Lead("II", wave()))
    write(tmp_path, "b", Lead("II", 2 * wave(), 100))
    write_segments(tmp_path, "x", ("a", 3600), ("~", 720), ("b", 3600))
    annotate(tmp_path, "x", [100, 1000, 2000, 3000, 4000, 5000])
    record = data.load("x")
    assert len(record.samples) == 7920
    assert (record.samples[:3600] == np.rint(200 * wave())).all()
    assert np.abs(record.samples[4320:] - 400 * wave()).max() <= 2, "its own gain"
    assert record.gaps == ((3600, 4319),)
    assert record.positions.tolist() == [100, 1000, 2000, 3000, 4000, 5000]
    assert any(line.startswith("720 invalid samples") for line in record.notes)
    assert len(data.load("x", 0.1).samples) == 6 * RATE, "the second segment is not needed"


def test_segments_may_have_other_signals(tmp_path):
    """The variable layout: a header of all signals, then segments with some, in any order."""
    lines = ["x_layout 3 360 0", "~ 0 200 12 0 0 0 0 V", "~ 0 200 12 0 0 0 0 II"]
    layout = "\n".join([*lines, "~ 0 1/mmHg 12 0 0 0 0 ABP"])
    (tmp_path / "x_layout.hea").write_text(layout)
    pressure = Lead("ABP", 80 + wave(), unit="mmHg")
    write(tmp_path, "a", pressure, Lead("II", wave()))
    write(tmp_path, "b", Lead("II", wave(), 1, unit="uV", gain_text="0.2(0)/uV", form="32"))
    write(tmp_path, "c", Lead("V", wave()), pressure)
    parts = [("x_layout", 0), ("a", 3600), ("~", 36), ("b", 3600), ("c", 3600)]
    write_segments(tmp_path, "x", *parts)
    record = data.load("x")
    assert "lead II, record x" in record.source
    assert len(record.samples) == 10836
    assert record.gaps == ((7236, 10835),), "the 36 samples are no gap, segment c has no II"
    assert "lead V, record x" in data.load("x", lead="V").source
    write_segments(tmp_path, "y", ("x_layout", 0), ("a", 3600), *[("c", 3600)] * 3)
    assert "lead V, record y" in data.load("y").source, "II is there for too short a time"


def test_a_record_of_gaps_alone_is_refused(tmp_path):
    write_segments(tmp_path, "x", ("~", 3600))
    assert "none of its signals is an ECG lead by name and unit: no signals" in refusal()
    write(tmp_path, "a", Lead("II", wave()))
    write_segments(tmp_path, "x", ("~", RATE * 3000), ("a", 3600))
    assert "lead II cannot be used: it has no valid samples" in refusal(minutes=10)


BROKEN_SEGMENTS = {
    "missing": ("x/1 1 360 10\nb 10", "b.hea, the header of a segment, is not there"),
    "nested": ("x/1 1 360 3600\nx 3600", "x.hea: a segment must not have segments itself"),
    "few": ("x/3 1 360 3600\na 3600", "the header must list 3 segments; it has 1"),
    "none": ("x/0 1 360 3600\na 3600", "the number of segments must be a whole number from 1"),
    "no number": ("x/ 1 360 3600\na 3600", "the number of segments must be a whole number"),
    "other total": ("x/1 1 360 99\na 3600", "the segments must have 99 samples together, not 3600"),
    "other length": ("x/1 1 360 100\na 100", "a.hea: its length must be 100, not 3600"),
    "other rate": ("x/1 1 250 3600\na 3600", "a.hea: its rate must be 250, not 360"),
    "outside": ("x/1 1 360 10\n../a 10", "its record must lie beside the header"),
    "absolute": ("x/1 1 360 10\n/etc/a 10", "its record must lie beside the header"),
    "parent": ("x/1 1 360 10\n.. 10", "its record must lie beside the header"),
    "no length": ("x/1 1 360\na", "segment 0 must have a name and a length"),
    "negative": ("x/1 1 360\na -5", "segment 0: length must be a whole number from 0"),
    "huge gap": ("x/2 1 360\na 3600\n~ 999999999999", None),
    "huger gap": ("x/2 1 360\na 3600\n~ 9999999999999999", "segment 1: length must be a whole"),
}


@pytest.mark.parametrize("kind", BROKEN_SEGMENTS)
def test_broken_segments_are_one_line(tmp_path, kind):
    text, reason = BROKEN_SEGMENTS[kind]
    write(tmp_path, "a", Lead("II", wave()))
    (tmp_path / "x.hea").write_text(text)
    if reason is None:
        assert len(data.load("x", 1).samples) == 60 * RATE
    else:
        assert reason in refusal()


def test_too_many_samples_at_a_time_are_refused(tmp_path, monkeypatch):
    write(tmp_path, "a", Lead("II", wave()))
    write_segments(tmp_path, "x", ("a", 3600), ("~", 99999))
    monkeypatch.setattr(wfdb_record, "MAX_SAMPLES", 50000)
    assert "103599 samples are too many: name fewer --minutes" in refusal()


# Headers


HEADERS = {
    "nothing": ("", "the header is empty"),
    "a comment": ("# x\n\n", "the header is empty"),
    "a word": ("x", "the first line must be NAME SIGNALS RATE LENGTH, not 'x'"),
    "signals": ("x many 360 10", "number of signals must be a whole number from 0 to 1024"),
    "too many signals": ("x 99999999 360 10", "number of signals must be a whole number"),
    "missing signals": ("x 2 360 10\nx.dat 16", "the header must describe 2 signals; it has 1"),
    "no signals": ("x 0 360 10", "none of its signals is an ECG lead by name and unit: no signals"),
    "negative": ("x -1 360 10", "number of signals must be a whole number from 0 to 1024"),
    "rate": ("x 1 fast 10\nx.dat 16", "the rate must be a finite number, not 'fast'"),
    "rate nan": ("x 1 nan 10\nx.dat 16", "the rate must be a finite number, not 'nan'"),
    "rate inf": ("x 1 inf 10\nx.dat 16", "the rate must be a finite number, not 'inf'"),
    "rate 0": ("x 1 0 10\nx.dat 16", "the rate must be above 0 and at most 1e+06 Hz, not 0"),
    "rate below 0": ("x 1 -360 10\nx.dat 16", "the rate must be above 0"),
    "length": ("x 1 360 1e3\nx.dat 16", "the length must be a whole number from 0"),
    "length below 0": ("x 1 360 -1\nx.dat 16", "the length must be a whole number from 0"),
    "long": ("x 1 360 999999999\nx.dat 16", "x.dat must have 1999999998 bytes, not 7200"),
    "longer": ("x 1 360 99999999999999999\nx.dat 16", "the length must be a whole number"),
    "longest": ("x 1 360 " + "9" * 5000 + "\nx.dat 16", "the length must be a whole number"),
    "digits": ("x 1 360 ٣\nx.dat 16", "the length must be a whole number"),
    "format": ("x 1 360 10\nx.dat wav", "signal 0: the format must be a number, not 'wav'"),
    "frame": ("x 1 360 10\nx.dat 16x0", "samples a frame must be a whole number from 1"),
    "frames": ("x 1 360 10\nx.dat 16x99999999", "samples a frame must be a whole number from 1"),
    "skew": ("x 1 360 10\nx.dat 16:99999999999", "skew must be a whole number from 0"),
    "offset": ("x 1 360 10\nx.dat 16+9999999", "x.dat must have 10000019 bytes, not 7200"),
    "zero": ("x 1 360 10\nx.dat 16 200 12 1e9", "ADC zero must be a whole number from"),
    "checksum": ("x 1 360 10\nx.dat 16 200 12 0 0 x", "checksum must be a whole number"),
    "absolute": ("x 1 360 10\n/dev/zero 16", "its file must lie beside the header"),
    "outside": ("x 1 360 10\n../x.dat 16", "its file must lie beside the header"),
    "a pipe": ("x 1 360 10\n- 16", "its file must lie beside the header"),
    "a folder": ("x 1 360 10\n. 16", "the header's file of samples, ., is not there"),
    "no file": ("x 1 360 10\ny.dat 16", "the header's file of samples, y.dat, is not there"),
    "formats": (
        "x 2 360 10\nx.dat 16\nx.dat 212",
        "the signals of x.dat must all be of one format",
    ),
    "NUL": ("x 1 360 10\nx\0.dat 16", "is not there"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_absurd_headers_are_one_line(tmp_path, kind):
    text, reason = HEADERS[kind]
    write(tmp_path, "x", Lead("II", wave()))
    (tmp_path / "x.hea").write_text(text, "utf-8")
    message = refusal()
    assert message.startswith(f"cannot read record x in {tmp_path}: ")
    assert reason in message
    assert len(message) < 400


def test_random_headers_never_raise_anything_else(tmp_path):
    """Fields of real headers, shuffled and spoiled."""
    write(tmp_path, "x", Lead("II", wave()))
    rng = np.random.default_rng(4)
    words = ["x", "1", "2", "360", "1e9", "-7", "nan", "16", "212", "16x3:1+5", "x.dat", "~", "II"]
    words += ["200(0)/mV", "0/uV", "1/V", "#", "x/2", "9e999", "\\", "µ"]
    for _ in range(400):
        lines = [
            " ".join(rng.choice(words, rng.integers(1, 11))) for _ in range(rng.integers(1, 5))
        ]
        (tmp_path / "x.hea").write_text("\n".join(lines), "utf-8")
        with contextlib.suppress(TrebuchetError):
            data.load("x", 0.1)


def test_fields_that_are_optional_may_be_left_out(tmp_path):
    """Rate (250), length, gain and all that follows."""
    (tmp_path / "x.dat").write_bytes(np.rint(200 * wave()).astype("<i2").tobytes())
    (tmp_path / "x.hea").write_bytes(b"\xef\xbb\xbfx 1\r\n\r\n# a comment\r\nx.dat 16\r\n")
    header = wfdb_header.read_header(tmp_path / "x.hea")
    assert (header.rate, header.length, header.names) == (250, None, ("signal 0",))
    record = data.load("x")
    assert len(record.samples) == 3600 * RATE // 250
    assert "uncalibrated: 200 counts a millivolt are assumed" in record.notes


def test_a_prologue_and_a_skew_are_skipped(tmp_path):
    """A MAT-file of the PhysioNet challenges: 24 bytes, then samples of format 16."""
    counts = np.rint(1000 * wave()).astype("<i2")
    (tmp_path / "x.mat").write_bytes(bytes(24) + counts.tobytes())
    (tmp_path / "x.hea").write_text("x 1 360 3600\nx.mat 16:100+24 1000/mV 16 0 0 1 0 II")
    assert "does not have its header's checksum" in refusal()
    total = int(counts.sum(dtype=np.int64)) % 65536
    (tmp_path / "x.hea").write_text(f"x 1 360 3600\nx.mat 16:100+24 1000/mV 16 0 0 {total} 0 II")
    record = data.load("x")
    (tmp_path / "x.hea").write_text("x 1 360 3600\nx.mat 16:100+24 1000/mV 16 0 0 0 0 II")
    assert (data.load("x").samples == record.samples).all(), "no checksum was written"
    assert np.abs(record.samples[:3500] - 200 * wave()[100:]).max() <= 1
    assert record.notes[0].startswith("100 invalid samples")


# Files


def test_samples_may_have_any_name_and_annotations_may_be_missing(tmp_path):
    write(tmp_path, "x", Lead("II", wave()), file="measured data.bin".replace(" ", "_"))
    assert data.list_records(tmp_path) == [], "nothing to train on"
    assert data.all_records(tmp_path) == ["x"]
    assert data.default_record() == "x"
    record = data.load("x")
    assert record.positions is None
    assert record.notes == ("no annotations (x.atr is not there)",)
    annotate(tmp_path, "x", [100])
    assert data.list_records(tmp_path) == ["x"]
    assert data.load("x").positions.tolist() == [100]


def test_signals_may_lie_in_several_files(tmp_path):
    write(tmp_path, "a", Lead("V1", wave()))
    write(tmp_path, "b", Lead("II", 2 * wave()))
    lines = [(tmp_path / f"{n}.hea").read_text().splitlines()[1] for n in "ab"]
    (tmp_path / "x.hea").write_text("\n".join(["x 2 360 3600", *lines]))
    assert np.abs(data.load("x").samples).max() == 400
    assert np.abs(data.load("x", lead="V1").samples).max() == 200


@pytest.mark.parametrize("end", ["", ".hea"])
def test_a_record_may_be_named_by_its_path(tmp_path, monkeypatch, end):
    folder = tmp_path / "else where"
    folder.mkdir()
    write(folder, "x", Lead("II", wave()))
    record = data.load(f"{folder}/x{end}")
    assert (record.name, record.source) == ("x", f"WFDB files in {folder}, lead II, record x")
    monkeypatch.chdir(folder)
    assert len(data.load(f"./x{end}").samples) == 3600
    message = refusal(f"{folder}/y{end}")
    assert message.endswith(f"its header, {folder}/y.hea, is not there")


def test_annotations_of_other_databases_are_read(tmp_path):
    """Codes 42 to 49 are a database's own; places may go back, or beyond the samples."""
    write(tmp_path, "x", Lead("II", wave()))
    words = [42 << 10 | 5, 49 << 10 | 5, 1 << 10 | 490, 59 << 10, 0xFFFF, 0x10000 - 400, 5 << 10]
    words += [1 << 10 | 1000, 59 << 10, 1, 0, 1 << 10, 0]
    (tmp_path / "x.atr").write_bytes(np.array(words, "<u2").tobytes())
    record = data.load("x")
    assert record.positions.tolist() == [100, 500, 1100]
    assert record.labels.tolist() == [4, 0, 0]


# Command line


def run(*arguments):
    shown = CliRunner().invoke(cli.app, ["run", *arguments], env={"COLUMNS": "500"})
    if shown.exception and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    return " ".join(shown.output.split())


def test_the_command_says_what_was_changed(tmp_path):
    values = 1000 * wave(20)
    values[50] = np.nan
    write(tmp_path, "x", Lead("ABP", wave(20)), Lead("ECG [V5]", values, 1, unit="uV"), rate=250)
    output = run("--record", "x", "--lead", "v5")
    assert "lead ECG [V5], record x" in output
    assert "scaled from uV to mV" in output
    assert "1 invalid samples" in output
    assert "resampled from 250 to 360 samples a second" in output
    assert "no annotations (x.atr is not there)" in output
    with pytest.raises(TrebuchetError, match="there is no lead 'MLII'; the signals are ABP"):
        run("--record", "x", "--lead", "MLII")


def test_help_and_info_say_so(tmp_path):
    output = CliRunner().invoke(cli.app, ["run", "--help"], env={"COLUMNS": "200"}).output
    assert "--lead" in output
    assert "resampled" in output
    write(tmp_path, "x", Lead("II", wave()))
    assert "without annotations: x" in CliRunner().invoke(cli.app, ["info"]).output


def test_json_has_the_notes(tmp_path):
    write(tmp_path, "x", Lead("II", wave()))
    record = data.load("x")
    reading = client.read_with_model(record)
    report = cli.as_dict(client.Run(record, reading, reading, 1, 0.1, True, ()))
    assert json.loads(json.dumps(report))["notes"] == ["no annotations (x.atr is not there)"]
