"""``trebuchet sim``: options are checked before anything is compiled; its network is entered."""

import json
import os
import re
import subprocess
import sys

import pytest
from sim_tops import needs_network
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim import running
from trebuchet.sim.options import chance_of
from typer.testing import CliRunner

SIM = [sys.executable, "-m", "trebuchet.host.cli", "sim"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--loss", "200%"], "--loss must be a chance from 0 to 1 or in per cent, like 3%, not '2"),
        (["--corrupt", "nan"], "--corrupt must be a chance from 0 to 1 or in per cent, like 3%, n"),
        (["--reorder", "-1"], "--reorder must be a chance from 0 to 1 or in per cent, like 3%, n"),
        (["--time", "cycles:0"], "--time must be wall, soc or cycles:N, not 'cycles:0'"),
        (["--uart", "com1"], "--uart must be none, stdout, stdio, pty or file:PATH, not 'com1'"),
        (["--pcap", "none/x"], "--pcap none/x: there is no folder "),
        (["--trace", "x.gtkw"], "--trace x.gtkw: waves are in FST; end the name in .fst"),
        (["--trace", "."], "--trace .: this is a folder; name a file in it"),
        (["--pid", "4"], "--pid says which network `trebuchet sim shell` enters; leave it out"),
        (["--boards", "2", "--loss", "3%"], "--loss is for one board; links of several are desc"),
    ],
)
def test_bad_options_are_refused_at_once(words, message, monkeypatch):
    monkeypatch.setattr("trebuchet.sim.cli._compile", None)
    monkeypatch.setattr("trebuchet.sim.cli.run_fleet", None)
    done = CliRunner().invoke(app, ["sim", *words])
    assert isinstance(done.exception, TrebuchetError)
    assert str(done.exception).startswith(message)


@pytest.mark.parametrize(
    ("value", "chance"),
    [("3%", 0.03), ("0.25", 0.25), ("100%", 1.0), (1, 1.0), (0, 0.0)]
    + [(value, None) for value in ("", "%", "101%", "x", "nan", "inf", -1, 2, True, None)],
)
def test_chances(value, chance):
    assert chance_of(value) == chance


def test_a_simulation_is_found_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(TrebuchetError, match="^no simulation runs; start one with: trebuchet sim$"):
        running.find()
    ours = running.Running(os.getpid(), "board", "env A=1", {"B": "2"})
    other = running.Running(os.getppid(), "fabric", "env A=1", {})
    with running.announced(ours):
        assert running.find() == running.find(os.getpid()) == ours
        with running.announced(other):
            line = f"several simulations run; name one with --pid: .*{os.getpid()} \\(board\\)"
            with pytest.raises(TrebuchetError, match=line):
                running.find()
            with pytest.raises(TrebuchetError, match="no simulation has process id 1; name one"):
                running.find(1)
            assert running.find(os.getppid()) == other
    assert not list(tmp_path.rglob("*.json"))


def test_what_is_left_of_a_killed_one_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    gone = subprocess.Popen(["true"])
    gone.wait()
    folder = tmp_path / f"trebuchet-{os.getuid()}"
    folder.mkdir()
    left, broken = folder / f"{gone.pid}.json", folder / "1.json"
    left.write_text(json.dumps({"pid": gone.pid, "top": "board", "inside": "", "environment": {}}))
    broken.write_text("{")
    with pytest.raises(TrebuchetError, match="no simulation runs"):
        running.find()
    assert not left.exists()


@needs_network
def test_another_terminal_enters_the_network(tmp_path):
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    board = subprocess.Popen([*SIM, "mirror"], stderr=subprocess.PIPE, text=True, env=environment)
    try:
        said = ""
        while "Ctrl-C ends it." not in said:
            line = board.stderr.readline()
            assert line, said
            said += line
        assert re.search(r"trebuchet sim\s+shell", said)
        command = "ip -o -4 address show dev tap0; echo $TREBUCHET_BOARD; exit 3"
        done = subprocess.run(
            [*SIM, "shell", "--exec", command], capture_output=True, text=True, env=environment
        )
        assert done.returncode == 3, done.stderr
        assert "192.0.2.1/24" in done.stdout
        assert done.stdout.splitlines()[-1] == "192.0.2.2"
    finally:
        board.terminate()
        assert board.wait() == 143
        board.stderr.close()
