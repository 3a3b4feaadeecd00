"""`trebuchet probe` on a fake trace core: captures, tables, waves, and wrong input."""

import json

import pytest
from fake_board import BOARDS, HOST, closed_port
from fake_probe import DEPTH, HZ, SIGNALS, ProbeBoard
from fake_registers import RegisterBoard
from trebuchet.client import Board
from trebuchet.host.cli import main
from trebuchet.models import register_map
from trebuchet.sim.wave_names import signals

START, TRIGGER, END = (1 << 24) - 10, (1 << 24) + 2, (1 << 24) + 40


def sample(valid=0, ready=0, seq=0, count=0):
    """A sample of the signals of the fake; ``rx.valid`` stays 0."""
    return valid | ready << 1 | seq << 2 | count << 43


RECORDS = (
    (START, sample()),
    (START + 3, sample(1, 0, 7)),
    (START + 4, sample(1, 1, 7)),
    (START + 5, sample()),
    (1 << 24, sample()),
    (TRIGGER, sample(count=1)),
    (TRIGGER + 2, sample(1, 1, 1 << 39, 1)),
    (TRIGGER + 4, sample(count=1)),
)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    monkeypatch.setattr(register_map, "BUILD", tmp_path / "build")
    monkeypatch.setattr(register_map, "MAPS", tmp_path / "build" / "register_maps")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "build" / "fake").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def fake(folder):
    with ProbeBoard(folder / "build" / "fake") as fake:
        core = fake.registers
        core.records, core.trigger, core.end = RECORDS, TRIGGER, END
        yield fake


def run(capsys, fake, *words):
    """Exit code, stdout and stderr of `trebuchet probe`."""
    with pytest.raises(SystemExit) as left:
        main(["probe", f"{HOST}:{fake.management}", *map(str, words)])
    out, err = capsys.readouterr()
    return left.value.code or 0, out, err


def test_it_lists_the_probes(capsys, fake):
    code, out, err = run(capsys, fake, "--list")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "tx.valid        1 bit",
        "tx.ready        1 bit",
        "tx.payload.seq  40 bits",
        "rx.valid        1 bit",
        "count           4 bits",
        f"47 bits, {DEPTH} records",
    ]
    listed = json.loads(run(capsys, fake, "--list", "--json")[1])
    assert listed["depth"] == DEPTH
    assert [p["name"].replace(".", "__") for p in listed["probes"]] == [n for n, _ in SIGNALS]


def test_a_capture_is_shown_around_its_trigger(capsys, fake):
    code, out, err = run(capsys, fake, "--trigger", "count:change", "--trigger", "tx.valid=0")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "8 records, 51 cycles (0.051 ms); from the trigger on:",
        "-12           tx.valid=0x0 tx.ready=0x0 tx.payload.seq=0x0 rx.valid=0x0 count=0x0",
        "-9            tx.valid=0x1 tx.payload.seq=0x7",
        "-8            tx.ready=0x1",
        "-7            tx.valid=0x0 tx.ready=0x0 tx.payload.seq=0x0",
        "-2",
        "+0   trigger  count=0x1",
        "+2            tx.valid=0x1 tx.ready=0x1 tx.payload.seq=0x8000000000",
        "+4            tx.valid=0x0 tx.ready=0x0 tx.payload.seq=0x0",
    ]
    words, at = fake.registers.words, fake.registers.at
    assert [words[at[f"mask_{k}"]] for k in (0, 1)] == [1, 0]
    assert [words[at[f"value_{k}"]] for k in (0, 1)] == [0, 0]
    assert [words[at[f"edge_{k}"]] for k in (0, 1)] == [0, 0xF << 11]
    assert words[at["before"]] == DEPTH // 4


def test_transfers_of_a_stream(capsys, fake):
    """Each cycle with valid and ready is one; two in a row have one record."""
    code, out, err = run(capsys, fake, "--transfers", "tx")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["cycle", "ms", "seq"],
        ["-8", "-0.0080", "7"],
        ["+2", "+0.0020", str(1 << 39)],
        ["+3", "+0.0030", str(1 << 39)],
    ]
    said = json.loads(run(capsys, fake, "--transfers", "tx", "--json")[1])
    assert said["transfers"][0] == {"cycle": TRIGGER - 8, "values": {"seq": 7}}
    assert (said["hz"], said["trigger"], said["end"]) == (HZ, TRIGGER, END)
    fake.registers.records = RECORDS[:1]
    assert run(capsys, fake, "--transfers", "tx")[1].endswith("no transfer of tx in the capture\n")


def test_waves_have_the_names_of_the_probes(capsys, fake, tmp_path):
    pytest.importorskip("pylibfst")
    code, out, err = run(capsys, fake, "-o", tmp_path / "w.fst")
    assert (code, err) == (0, "")
    assert {s.path for s in signals(tmp_path / "w.fst")} == {
        "trebuchet." + name
        for name in ("cycle", "trigger", "count", "rx.valid", "tx.valid", "tx.ready")
    } | {"trebuchet.tx.payload.seq"}
    assert "trebuchet.tx.payload.seq[39:0]" in (tmp_path / "w.gtkw").read_text()
    assert "variable_add trebuchet.tx.valid" in (tmp_path / "w.sucl").read_text()
    assert f"surfer --command-file {tmp_path / 'w.sucl'}" in out
    said = json.loads(run(capsys, fake, "-o", tmp_path / "w.vcd", "--json")[1])
    assert said["files"]["waves"] == str(tmp_path / "w.vcd")
    text = (tmp_path / "w.vcd").read_text()
    assert "$scope module payload $end\n$var wire 40 " in text
    assert f"\n#{12 * 1_000_000}\n" in text  # of the trigger, in ps


def test_a_capture_is_begun_and_read_later(capsys, fake):
    assert run(capsys, fake, "--arm", "--before", "5")[:2] == (0, "armed; go on with --read\n")
    assert fake.registers.words[fake.registers.at["before"]] == 5
    assert run(capsys, fake, "--read")[1].startswith("8 records")
    fake.registers.met = False
    code, out, _ = run(capsys, fake, "--wait", "0.1", "--anyway")
    assert (code, out.splitlines()[0]) == (
        *(0, "8 records, 51 cycles (0.051 ms); stopped before the trigger"),
    )


@pytest.mark.parametrize("client", BOARDS)
def test_the_library_captures(fake, client):
    with BOARDS[client](fake.address, **fake.options()) as board:
        assert board.probe_layout().depth == DEPTH
        board.arm_probes(["count:change"])
        assert board.probe_state().done
        captured = board.read_probes()
    assert (captured.records, captured.trigger, captured.end) == (RECORDS, TRIGGER, END)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--trigger", "cuont:change"], "there is no probe 'cuont', did you mean 'count'?"),
        (["--trigger", "valid=1"], "several probes end in 'valid'; there are: tx.valid, rx.valid"),
        (["--trigger", "count=16"], "trigger 'count=16': '16' must be a number from 0 to 15"),
        (["--trigger", "count:rise"], "trigger 'count:rise': rise is of a single bit"),
        (["--trigger", "count=1", "--trigger", "count=2"], "trigger 'count=2' contradicts anothe"),
        (["--trigger", "count"], "a trigger must be NAME=VALUE, NAME=VALUE/MASK, or NAME:rise"),
        (["--before", "64"], f"{HOST} keeps 64 records, so those before the trigger must be 0 to "),
        (["--transfers", "rx"], "no stream is sampled that is called 'rx'; there are: tx"),
        (["-o", "waves.txt"], "waves must be written to a file .fst or .vcd, not 'waves.txt'"),
        (["-o", "no/where.fst"], "-o no/where.fst: it must be a file in a folder that there is"),
        (["--list", "--arm"], "--list, --arm and --read exclude each other; choose one of them"),
        (["--read", "--before", "3"], "--trigger and --before are said when a capture begins"),
    ],
)
def test_wrong_input_is_one_line(capsys, fake, words, said):
    code, out, err = run(capsys, fake, *words)
    assert (code, out) == (1, "")
    assert err.startswith(f"trebuchet: {said}")
    assert err.count("\n") == 1
    assert fake.registers.at["control"] not in fake.registers.words


def test_a_trigger_that_is_not_met(capsys, fake):
    fake.registers.met = False
    code, out, err = run(capsys, fake, "--wait", "0.2")
    assert (code, out) == (1, "")
    assert err == (
        "trebuchet: the trigger was not met within 0.2 s; wait longer with --wait, or take what "
        "there is with --anyway\n"
    )


def test_records_that_another_reads_meanwhile(capsys, fake):
    fake.registers.disturbed = True
    code, out, err = run(capsys, fake)
    assert (code, out) == (1, "")
    assert "somebody else read the records of 127.0.0.1" in err
    assert err.endswith("meanwhile; try again\n")


def test_a_board_without_a_trace_core(capsys, folder):
    with RegisterBoard(folder / "build" / "fake") as plain:
        for words in (["--list"], [], ["--read"]):
            code, out, err = run(capsys, plain, *words)
            assert (code, out) == (1, "")
            assert err == (
                f"trebuchet: {HOST} has no trace core: build the board, or start `trebuchet sim`, "
                "with --probe SIGNAL (docs/probe.md)\n"
            )
        with Board(plain.address, **plain.options()) as board:
            with pytest.raises(Exception, match="has no trace core"):
                board.read_probes()


def test_a_board_that_cannot_be_reached(capsys, folder):
    with pytest.raises(SystemExit) as left:
        main(["probe", f"{HOST}:{closed_port()}", "--timeout", "0.5"])
    out, err = capsys.readouterr()
    assert (left.value.code, out) == (1, "")
    assert err.startswith("trebuchet: ")
    assert f"{HOST}" in err
    assert err.count("\n") == 1
