"""ECG records in files: the WFDB format, where records are looked for, and the excerpt of one."""

import numpy as np
import pytest
from trebuchet.models.ecg import data, wfdb_annotations, wfdb_header, wfdb_record
from trebuchet.models.errors import TrebuchetError

LENGTH = 1001


def pack_212(counts):
    """Format 212: two counts of 12 bits in three bytes."""
    flat = np.asarray(counts).reshape(-1).tolist()
    flat += [0] * (len(flat) % 2)
    packed = bytearray()
    for low, high in zip(flat[::2], flat[1::2], strict=True):
        low, high = low & 0xFFF, high & 0xFFF
        packed += bytes([low & 0xFF, low >> 8 | high >> 8 << 4, high & 0xFF])
    return bytes(packed)


def word(code, value):
    return (code << 10 | value).to_bytes(2, "little")


def far(interval):
    """SKIP: an interval of 32 bits, its high half first."""
    value = interval & 0xFFFFFFFF
    return (
        word(59, 0) + (value >> 16).to_bytes(2, "little") + (value & 0xFFFF).to_bytes(2, "little")
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A database of one record, ``x1``; its signals and where its annotations are."""
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path, "x1")
    return tmp_path


def signals():
    return np.random.default_rng(1).integers(-2048, 2048, (LENGTH, 2))


def write(folder, name):
    counts = signals()
    sums = [int(counts[:, n].sum()) % 65536 for n in range(2)]
    (folder / f"{name}.dat").write_bytes(pack_212(counts))
    lines = [f"{name} 2 360 {LENGTH}"]
    lines += [f"{name}.dat 212 200 11 1024 {counts[0, 0]} {sums[0]} 0 V5"]
    lines += [f"{name}.dat 212 200 11 1024 {counts[0, 1]} {sums[1]} 0 MLII"]
    (folder / f"{name}.hea").write_text("\n".join([*lines, "# a comment"]) + "\n", "ascii")
    notes = word(28, 18) + word(63, 3) + b"(N\0\0"  # a rhythm mark and its text
    notes += word(1, 82) + word(60, 1) + word(5, 300) + far(70) + word(8, 0) + word(38, 100)
    notes += word(32, 10) + word(33, 20) + word(0, 0)
    (folder / f"{name}.atr").write_bytes(notes)


def test_records_are_read_as_they_were_written(folder):
    record = data.load("x1")
    assert (record.samples == signals()[:, 1] - 1024).all(), "lead MLII, its zero at 1024"
    assert record.positions.tolist() == [100, 400, 470, 570]
    assert record.labels.tolist() == [0, 4, 3, -1]
    assert record.flutter == ((580, 600),)
    assert record.source == f"WFDB files in {folder}, lead MLII, record x1"
    assert record.notes == record.gaps == ()


@pytest.mark.filterwarnings("ignore::Warning:wfdb")
def test_another_reader_reads_the_same(folder):
    wfdb = pytest.importorskip("wfdb", reason="wfdb comes with the development packages")
    header = wfdb_header.read_header(folder / "x1.hea")
    theirs = wfdb.rdrecord(str(folder / "x1"), physical=False)
    for n, signal in enumerate(header.signals):
        counts = wfdb_record.read_counts(folder, header, n)
        assert (counts == theirs.d_signal[:, n]).all()
        assert signal.baseline == theirs.baseline[n]
        assert signal.gain == theirs.adc_gain[n]
    found = wfdb_annotations.read_annotations(folder / "x1.atr")
    notes = wfdb.rdann(f"{folder}/x1", "atr")
    assert found.places.tolist() == notes.sample.tolist()
    assert list(found.symbols) == notes.symbol


BROKEN = {
    "empty header": ("hea", lambda old: b"", "the header is empty"),
    "short header": ("hea", lambda old: old[:20], "must describe 2 signals"),
    "no text": ("hea", lambda old: b"\xff" * 20, "the first line must be NAME SIGNALS RATE LENGTH"),
    "other format": ("hea", lambda old: old.replace(b" 212 ", b" 516 "), "must be of format 8, 16"),
    "short signals": ("dat", lambda old: old[:-1], "x1.dat must have 3003 bytes, not 3002"),
    "spoiled": ("dat", lambda old: b"\x55" + old[1:], "does not have its header's checksum"),
    "no notes": ("atr", lambda old: b"", "x1.atr has no end"),
    "cut notes": ("atr", lambda old: old[:-2], "x1.atr has no end"),
    "odd notes": ("atr", lambda old: word(50, 1) + old, "an annotation of the unknown code 50"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_one_line(folder, kind):
    end, spoil, message = BROKEN[kind]
    path = folder / f"x1.{end}"
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(
        TrebuchetError, match=f"^cannot read record x1 in .*: .*({message})"
    ) as caught:
        data.load("x1")
    assert "\n" not in str(caught.value)


def test_records_are_looked_for_where_the_docs_say(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(data.VARIABLE, str(tmp_path / "none"))
    with pytest.raises(TrebuchetError, match="^TREBUCHET_MITDB names .*none, which is not a f"):
        data.find_folder()
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    assert data.find_folder() == tmp_path
    assert data.default_record() == "synthetic"
    with pytest.raises(TrebuchetError, match="^there is no record 100: .*trebuchet ecg fetch"):
        data.load("100")
    for end in ("hea", "dat"):
        (tmp_path / f"x1.{end}").write_bytes(b"garbage")
    assert data.list_records(tmp_path) == []
    (tmp_path / "x1.atr").write_bytes(b"")
    assert data.list_records(tmp_path) == ["x1"]
    assert data.default_record() == "x1"
    with pytest.raises(TrebuchetError, match="^cannot read record x1 in "):
        data.load("x1")


def test_the_cache_is_the_database_without_the_variable(tmp_path, monkeypatch):
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data.find_folder() is None
    data.cache_folder().mkdir(parents=True)
    write(data.cache_folder(), "x1")
    assert data.find_folder() == tmp_path / "trebuchet" / "mitdb"


def test_the_demos_record_is_the_default_and_no_database(tmp_path, monkeypatch):
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data.demo_folder().mkdir(parents=True)
    counts = np.arange(1000, 1000 + 360 * 60, dtype=np.uint16) % 2048
    with (data.demo_folder() / data.EXCERPT_FILE).open("wb") as file:
        np.savez(file, ecg=counts)
    assert data.default_record() == data.EXCERPT
    record = data.load(data.EXCERPT, 0.5)
    assert (record.samples == counts[: 180 * 60].astype(int) - 1024).all()
    assert record.positions is None
    assert "five minutes of record 208 from SciPy 1.9.3, no annotations" in record.source
    write(data.demo_folder(), data.DEMO)
    assert data.default_record() == data.DEMO
    assert len(data.load(data.DEMO).positions) == 4
    assert data.find_folder() is None, "one record is nothing to train on"


def test_a_spoiled_excerpt_is_one_line(tmp_path, monkeypatch):
    monkeypatch.delenv(data.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data.demo_folder().mkdir(parents=True)
    for content in (b"", b"PK\x03\x04 cut", b"no archive"):
        (data.demo_folder() / data.EXCERPT_FILE).write_bytes(content)
        with pytest.raises(TrebuchetError, match=r"^cannot read .*ecg\.dat: .*fetch --demo`$"):
            data.load(data.EXCERPT)
