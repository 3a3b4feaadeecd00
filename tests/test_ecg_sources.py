"""ECG records of other sources: units, invalid samples, formats, names of leads, rates."""

import numpy as np
import pytest
from ecg_files import Lead, annotate, refusal, write
from trebuchet.host.ecg import client
from trebuchet.models.ecg import conversion, data, leads, wfdb_formats, wfdb_header, wfdb_record

RATE = data.RATE


@pytest.fixture(autouse=True)
def database(tmp_path, monkeypatch):
    """The folder of records is the test's own."""
    monkeypatch.setenv(data.VARIABLE, str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def ecg():
    """A minute of ECG in millivolts, and the samples that it came from."""
    return data.load("synthetic", 1)


def millivolts(record):
    return record.samples / conversion.COUNTS_PER_MV


def wave(seconds=20, rate=RATE):
    """A smooth signal of the amplitude of an ECG, which any rate can carry."""
    time = np.arange(round(seconds * rate)) / rate
    return np.sin(2 * np.pi * 3 * time) + 0.3 * np.sin(2 * np.pi * 17 * time)


# Units and gains


UNITS = {
    "mV": ("200(0)/mV", 200),
    "no unit": ("200", 200),
    "upper case": ("1000/MV", 1000),
    "uV": ("1(0)/uV", 1000),
    "µV": ("0.5/µV", 500),
    "μV": ("2/μV", 2000),
    "V": ("2e5/V", 200),
    "nV": ("0.001/nV", 1000),
    "uncalibrated": ("0", 200),
    "uncalibrated in mV": ("0/mV", 200),
}


@pytest.mark.parametrize("kind", UNITS)
def test_every_unit_of_voltage_is_scaled(tmp_path, ecg, kind):
    text, gain = UNITS[kind]
    lead = Lead("MLII", millivolts(ecg), gain, form="32", gain_text=text)
    write(tmp_path, "x", lead)
    record = data.load("x")
    assert np.abs(record.samples.astype(int) - ecg.samples).max() <= 1
    same = kind in ("mV", "no unit", "upper case")
    assert same != any("scaled from" in n or "uncalibrated" in n for n in record.notes)


def test_a_header_in_latin_1_has_its_unit(tmp_path, ecg):
    header = write(tmp_path, "x", Lead("MLII", millivolts(ecg), 1000, gain_text="1/µV"))
    header.write_bytes(header.read_text("utf-8").encode("latin-1"))
    assert np.abs(data.load("x").samples.astype(int) - ecg.samples).max() <= 1


@pytest.mark.parametrize("unit", ["mmHg", "NU", "g", "degC", "%", "adu", "bpm", "mV/s", "pm"])
def test_other_units_are_refused(tmp_path, unit):
    write(tmp_path, "x", Lead("MLII", wave(), unit=unit))
    message = refusal()
    assert f"none of its signals is an ECG lead by name and unit: MLII ({unit})" in message
    assert f"signal MLII is in {unit}, which is no voltage" in refusal(lead="MLII")


def test_a_baseline_is_0_mv_whichever_field_has_it(tmp_path, ecg):
    lead = Lead("MLII", millivolts(ecg), baseline=1024)
    for text, zero in (("200(1024)/mV", 0), ("200(1024)", 7), ("200", 1024), ("200/mV", 1024)):
        header = write(tmp_path, "x", lead)
        words = header.read_text().splitlines()[1].split()
        words[2], words[4] = text, str(zero)
        header.write_text(f"x 1 360 {len(ecg.samples)}\n" + " ".join(words) + "\n")
        assert (data.load("x").samples == ecg.samples).all()


@pytest.mark.parametrize(
    ("gain", "reason"),
    [
        ("nan", "gain must be a finite number, not 'nan'"),
        ("inf", "gain must be a finite number"),
        ("1e999", "gain must be a finite number"),
        ("x", "gain must be a finite number, not 'x'"),
        ("1_0", "gain must be a finite number"),
        ("1e-300", "an ECG is within 164 mV, not"),
        ("1e-5", "an ECG is within 164 mV, not"),
        ("1e300", "an ECG spans at least 0.02 mV, not"),
        ("1e6", "an ECG spans at least 0.02 mV, not"),
        ("200(99999999)", "an ECG is within 164 mV, not -5e+05"),
        ("200(-2147483648)", "an ECG is within 164 mV"),
        ("200(99999999999)", "baseline must be a whole number from -2147483648 to 2147483647"),
        ("200(1.5)", "baseline must be a whole number"),
        ("200()/mV", "baseline must be a whole number"),
        ("(0)/mV", "the gain must be GAIN(BASELINE)/UNIT, not '(0)/mV'"),
    ],
)
def test_absurd_gains_and_baselines_are_refused(tmp_path, ecg, gain, reason):
    write(tmp_path, "x", Lead("MLII", millivolts(ecg), gain_text=gain))
    assert reason in refusal()


def test_an_electrode_s_offset_is_removed(tmp_path, ecg):
    write(tmp_path, "x", Lead("MLII", millivolts(ecg) + 250, 100, form="32"))
    record = data.load("x")
    assert record.notes[0] == "an offset of 250 mV was removed"
    assert np.ptp(record.samples.astype(int)) == pytest.approx(np.ptp(ecg.samples), abs=2)


# Invalid samples


def test_invalid_samples_are_interpolated(tmp_path):
    values = wave()
    for place in (0, 100, 3000, 3001, len(values) - 1):
        values[place] = np.nan
    write(tmp_path, "x", Lead("MLII", values, 200))
    record = data.load("x")
    assert record.notes == (
        "5 invalid samples (0.069 %) were replaced by interpolation",
        "no annotations (x.atr is not there)",
    )
    assert record.gaps == ()
    expected = np.rint(np.where(np.isnan(values), wave(), values) * 200)
    assert np.abs(record.samples - expected).max() < 30, "no spike of -32768"


def test_beats_in_a_gap_do_not_count(tmp_path, ecg):
    values = millivolts(ecg)
    first, last = 20 * RATE, 30 * RATE - 1
    values[first : last + 1] = np.nan
    write(tmp_path, "x", Lead("MLII", values))
    record = data.load("x")
    assert record.gaps == ((first, last),)
    assert "1 gaps, 10.0 s together: beats in them do not count" in record.notes
    assert record.first(0.2).gaps == ()
    for streamed in (True, False):
        found = client.read_with_model(record, streamed).positions
        assert not ((found >= first) & (found <= last)).any()
        whole = client.read_with_model(ecg, streamed).positions
        apart = whole[(whole < first - 3 * RATE) | (whole > last + 3 * RATE)]
        assert len(np.intersect1d(found, apart)) > 0.8 * len(apart)


def test_a_lead_without_valid_samples_is_refused_or_passed_over(tmp_path):
    nothing = np.full(7200, np.nan)
    write(tmp_path, "x", Lead("MLII", nothing), Lead("V5", wave()))
    record = data.load("x")
    assert record.source.endswith("lead V5, record x")
    assert "lead MLII has no valid samples" in record.notes
    assert "lead MLII cannot be used: it has no valid samples" in refusal(lead="MLII")
    write(tmp_path, "x", Lead("MLII", nothing))
    assert "lead MLII cannot be used: it has no valid samples" in refusal()


FORMATS = ["8", "16", "24", "32", "61", "80", "160", "212", "310", "311"]


@pytest.mark.filterwarnings("ignore::Warning:wfdb")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("signals", "length"), [(1, 1), (1, 1000), (1, 1001), (2, 7), (3, 1003)])
def test_every_format_is_read_as_another_reader_does(tmp_path, form, signals, length):
    wfdb = pytest.importorskip("wfdb", reason="wfdb comes with the development packages")
    rng = np.random.default_rng(length)
    size = wfdb_formats.FORMATS[form].bytes_of(signals * length)
    stored = np.frombuffer(rng.bytes(-(-size // 4) * 4), "<u4")
    # The two highest bits of format 311 are unused, and the other reader takes one for a sample's.
    stored = stored & 0x3FFFFFFF if form == "311" else stored
    (tmp_path / "x.dat").write_bytes(stored.tobytes())
    lines = [f"x {signals} 360 {length}"]
    lines += [f"x.dat {form} 200(3)/mV 12 0 5" for n in range(signals)]
    (tmp_path / "x.hea").write_text("\n".join(lines) + "\n")
    theirs = wfdb.rdrecord(str(tmp_path / "x"), physical=False)
    header = wfdb_header.read_header(tmp_path / "x.hea")
    for n in range(signals):
        assert (wfdb_record.read_counts(tmp_path, header, n) == theirs.d_signal[:, n]).all()
    assert wfdb_formats.FORMATS[form].samples_of(size) >= signals * length


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_its_marker_of_invalid_samples(form):
    wfdb = pytest.importorskip("wfdb", reason="wfdb comes with the development packages")
    assert wfdb_formats.FORMATS[form].invalid == wfdb.io._signal.INVALID_SAMPLE_VALUE[form]


def test_lengths_and_chunks_agree_for_every_format(tmp_path, monkeypatch):
    """A file is unpacked in pieces; wherever they are cut, the samples are the same."""
    for form in FORMATS:
        size = wfdb_formats.FORMATS[form].bytes_of(3 * 100)
        (tmp_path / "x.dat").write_bytes(np.random.default_rng(1).bytes(size + 1))
        lines = [f"x 2 360 100\nx.dat {form}x2\nx.dat {form}"]
        (tmp_path / "x.hea").write_text(lines[0])
        header = wfdb_header.read_header(tmp_path / "x.hea")
        whole = [wfdb_record.read_counts(tmp_path, header, n) for n in range(2)]
        assert [len(part) for part in whole] == [200, 100]
        with monkeypatch.context() as patch:
            patch.setattr(wfdb_record, "CHUNK", 18)
            for n in range(2):
                assert (wfdb_record.read_counts(tmp_path, header, n) == whole[n]).all()
        counts = wfdb_formats.FORMATS[form]
        for count in range(20):
            assert count <= counts.samples_of(counts.bytes_of(count)) <= count + (form == "310")


@pytest.mark.parametrize("form", ["0", "9", "508", "516", "524", "313", "999999999"])
def test_other_formats_are_refused(tmp_path, form):
    (tmp_path / "x.hea").write_text(f"x 1 360 100\nx.dat {form} 200 12 0 0 0 0 II\n")
    (tmp_path / "x.dat").write_bytes(bytes(400))
    assert "signals must be of format 8, 16, 24, 32, 61, 80, 160, 212, 310, 311" in refusal()


# Which signal is an ECG


def test_blood_pressure_is_not_taken_for_an_ecg(tmp_path, ecg):
    pressure = Lead("ABP", 80 + 20 * wave(60), unit="mmHg")
    write(tmp_path, "x", pressure, Lead("ECG II", millivolts(ecg)))
    record = data.load("x")
    assert (record.samples == ecg.samples).all()
    assert "lead ECG II," in record.source
    write(tmp_path, "y", pressure)
    message = refusal("y")
    assert message.startswith(f"cannot read record y in {tmp_path}: none of its signals is an ECG")
    assert message.endswith("ABP (mmHg); if one is, name it with --lead")


@pytest.mark.parametrize(
    "name",
    ["PLETH", "RESP", "Resp", "ABP", "ART", "PAP", "CVP", "EEG C3-A2", "EMG chin", "EOG(L)"]
    + ["SpO2", "BP", "NIBP", "PPG1", "CO2", "Temp", "HR", "abp 1", "Airflow resp", "P1", "C3-A2"],
)
def test_other_signals_in_millivolts_are_no_ecg(tmp_path, name):
    write(tmp_path, "x", Lead(name, wave()))
    assert "none of its signals is an ECG lead" in refusal()


PREFERRED = [
    (["V5", "MLII"], "MLII"),
    (["V5", "ml ii"], "ml ii"),
    (["V1", "ECG II"], "ECG II"),
    (["I", "lead II", "III"], "lead II"),
    (["ABP", "V5 "], "V5"),
    (["II", "MLII"], "MLII"),
    (["RESP", "ECG"], "ECG"),
    (["PLETH", "ECG lead V2"], "ECG lead V2"),
    (["ECG", "V1"], "V1"),
    (["ECG1", "ECG2"], "ECG1"),
    (["aVR", "ECG_II_filtered"], "ECG_II_filtered"),
    (["RESP", "modified lead II", "V"], "modified lead II"),
    (["EEG", "MCL1"], "MCL1"),
    (["D3", "DII"], "DII"),
    (["CM5", "CC5"], "CM5"),
    (["E-S", "A-S", "A-I"], "E-S"),
    (["vx", "vy", "vz"], "vx"),
    (["leadII"], "leadII"),
    (["mod.V1"], "mod.V1"),
    (["ECG 1", "RESP"], "ECG 1"),
    (["abdominal ECG"], "abdominal ECG"),
    (["Art", "AVF"], "AVF"),
    (["", ""], "signal 0"),
    (["channel 1"], "channel 1"),
    (["col 2"], "col 2"),
]


@pytest.mark.parametrize(("names", "chosen"), PREFERRED)
def test_the_best_lead_is_chosen_however_it_is_spelled(tmp_path, names, chosen):
    write(tmp_path, "x", *(Lead(name, wave(seconds=5)) for name in names))
    assert f"lead {chosen}, record x" in data.load("x").source


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("V5", "V5"),
        ("v5", "V5"),
        (" V5 ", "V5"),
        ("lead v5", "V5"),
        ("ECG V5", "V5"),
        ("MLII", "ml ii"),
        ("ML-II", "ml ii"),
        ("sensor", "sensor"),
        ("signal 2", "sensor"),
        ("signal 1", "V5"),
    ],
)
def test_a_lead_can_be_named(tmp_path, wanted, found):
    names = ("ml ii", "V5 ", "sensor", "ABP")
    write(tmp_path, "x", *(Lead(name, wave(seconds=5)) for name in names))
    assert f"lead {found}, record x" in data.load("x", lead=wanted).source


@pytest.mark.parametrize("wanted", ["V9", "", "ECG", "signal 9", "signal -1", "5", "\n", "²"])
def test_a_lead_that_is_not_there_is_named_with_those_that_are(tmp_path, wanted):
    write(tmp_path, "x", Lead("ml ii", wave()), Lead("ABP", wave(), unit="mmHg"))
    message = refusal(lead=wanted)
    assert f"there is no lead {wanted!r}; the signals are ml ii (mV), ABP (mmHg)" in message


def test_a_named_signal_must_be_an_ecg_too(tmp_path):
    write(tmp_path, "x", Lead("PLETH", wave()), Lead("II", wave()))
    assert "signal PLETH is no ECG, by its name" in refusal(lead="pleth")


def test_records_of_one_lead_have_no_other(tmp_path):
    assert "its only lead is synthetic" in refusal("synthetic", lead="V5")


def test_two_signals_of_one_name_are_told_apart(tmp_path):
    write(tmp_path, "x", Lead("ECG", wave()), Lead("ECG", 2 * wave()))
    assert "lead ECG, " in data.load("x").source
    record = data.load("x", lead="signal 1")
    assert "lead ECG (signal 1), " in record.source
    assert np.abs(record.samples).max() > 400


def test_names_of_leads_are_compared_without_what_does_not_matter():
    assert {leads.lead_key(n) for n in ("MLII", "ml ii", "ECG ML-II", "Lead: mlii (mV)")} == {
        "mlii"
    }


# Rates


@pytest.mark.parametrize("rate", [100, 125, 128, 200, 250, 257, 359.5, 500, 999.56, 1000, 5000])
def test_other_rates_are_resampled(tmp_path, rate):
    write(tmp_path, "x", Lead("MLII", wave(rate=rate), 1000), rate=rate)
    annotate(tmp_path, "x", [round(0.2 * rate)])
    record = data.load("x")
    assert f"resampled from {rate:g} to 360 samples a second" in record.notes
    assert abs(len(record.samples) - 20 * RATE) <= 4
    assert abs(record.positions[0] - 0.2 * RATE) <= 0.5 * RATE / rate + 0.5
    inner = slice(RATE, 19 * RATE)
    error = record.samples[inner] - 200 * wave(rate=RATE)[: len(record.samples)][inner]
    assert np.abs(error).max() < 4, "1 % of the amplitude"


def test_what_the_lower_rate_cannot_carry_is_filtered(tmp_path):
    time = np.arange(20000) / 1000
    write(tmp_path, "x", Lead("MLII", wave(rate=1000) + np.sin(2 * np.pi * 330 * time)), rate=1000)
    inner = data.load("x").samples[RATE : 19 * RATE]
    assert np.abs(inner - 200 * wave()[RATE : 19 * RATE]).max() < 4


@pytest.mark.parametrize("rate", [250, 500, 1000])
def test_a_resampled_record_has_the_same_beats(tmp_path, ecg, rate):
    values = conversion.resample(millivolts(ecg), RATE, rate)
    write(tmp_path, "x", Lead("II", values, 1000), rate=rate)
    ours, theirs = (client.read_with_model(record) for record in (data.load("x"), ecg))
    assert len(ours.positions) == len(theirs.positions)
    assert np.abs(ours.positions - theirs.positions).max() <= 8
    assert (ours.labels == theirs.labels).mean() > 0.95


@pytest.mark.parametrize("rate", ["1", "50", "99", "20001", "1e6"])
def test_rates_that_carry_no_ecg_are_refused(tmp_path, rate):
    header = write(tmp_path, "x", Lead("MLII", wave()))
    header.write_text(header.read_text().replace(" 360 ", f" {rate} ", 1))
    assert "an ECG must have 100 to 20000 samples a second, not " in refusal()


def test_signals_of_more_samples_a_frame_have_their_own_rate(tmp_path):
    """Two samples of II for each of ABP, as multi-parameter monitors store them."""
    frames = np.stack(
        [200 * wave(rate=250)[::2], 200 * wave(rate=250)[1::2], 0 * wave(rate=125)], 1
    )
    (tmp_path / "x.dat").write_bytes(np.rint(frames).astype("<i2").tobytes())
    lines = ["x 2 125 2500", "x.dat 16x2 200 16 0 0 0 0 II", "x.dat 16 200/mmHg 16 0 0 0 0 ABP"]
    lines[1] = f"x.dat 16x2 200 16 0 0 {int(np.rint(frames[:, :2]).sum()) % 65536} 0 II"
    (tmp_path / "x.hea").write_text("\n".join(lines))
    annotate(tmp_path, "x", [125])
    record = data.load("x")
    assert "resampled from 250 to 360 samples a second" in record.notes
    assert record.positions.tolist() == [360], "annotations count frames"
    inner = slice(RATE, 19 * RATE)
    assert np.abs(record.samples[inner] - 200 * wave()[inner]).max() < 4


def test_only_what_was_asked_for_is_resampled(tmp_path, ecg):
    write(tmp_path, "x", Lead("II", wave(rate=500), 1000), rate=500)
    short, whole = data.load("x", 0.1), data.load("x")
    assert (short.samples == whole.samples[: 6 * RATE]).all()


def test_notes_of_a_resolution_are_followed(tmp_path):
    write(tmp_path, "x", Lead("II", wave(rate=250), 1000), rate=250)
    text = b"## time resolution: 500"
    words = [22 << 10, 63 << 10 | len(text)]
    notes = np.array(words, "<u2").tobytes() + text + bytes(len(text) % 2)
    (tmp_path / "x.atr").write_bytes(notes + np.array([1 << 10 | 500, 0], "<u2").tobytes())
    assert data.load("x").positions.tolist() == [360]
