"""`trebuchet run`: which commands it calls, in which order, and how it finds the address."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from trebuchet.boards import load_board
from trebuchet.host import run
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from typer.testing import CliRunner

BITSTREAM = "/b/versa_ecp5/gateware/versa_ecp5.bit"


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (["status"], ["status", "A"]),
        (["ecg", "run", "--minutes", "1"], ["ecg", "run", "A", "--minutes", "1"]),
        (["manage", "@", "version"], ["manage", "A", "version"]),
        (["ecg", "run", "@", "--json"], ["ecg", "run", "A", "--json"]),
    ],
)
def test_where_the_address_is_put(words, result):
    assert run.command_for(words, "A") == result


class Bench:
    """Stands for the other commands, the serial port and the network; ``log`` has what happened."""

    def __init__(self, monkeypatch, *, bitstream=BITSTREAM, answers=("10.1.1.7",), deaf=0):
        self.log, self.answers, self.bitstream, self.deaf = [], list(answers), bitstream, deaf
        self.now = 0.0
        monkeypatch.setattr("trebuchet.soc.toolchain.require_tool", lambda name: name)
        monkeypatch.setattr(run.Path, "is_char_device", lambda path: "tty" in path.name)
        monkeypatch.setattr(run.subprocess, "run", self._run)
        monkeypatch.setattr(run, "SerialConsole", self._console)
        monkeypatch.setattr(run, "serial_ports", lambda: [("/dev/ttyUSB0", "FT2232")])
        monkeypatch.setattr(run.socket, "create_connection", self._connect)
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)
        monkeypatch.setattr(run, "time", clock)

    def _sleep(self, seconds):
        self.now += seconds

    def _run(self, words, **_):
        assert words[:3] == [sys.executable, "-m", "trebuchet.host.cli"]
        self.log.append(" ".join(words[3:]))
        report = json.dumps({"bitstream": self.bitstream})
        return SimpleNamespace(returncode=0, stdout=report, stderr="")

    def _console(self, port, baud, timeout):
        self.log.append(f"open {port} {baud}")
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.log.append("close")

    def until(self, pattern):
        self.log.append("wait for ready")

    def run(self, command):
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return f"address    {found}\nnetmask    -\n"

    def _connect(self, place, timeout):
        self.now += timeout
        if self.now < self.deaf:
            raise ConnectionRefusedError(111, "refused")
        self.log.append(f"connect {place[0]}:{place[1]}")
        return SimpleNamespace(close=lambda: None)

    def invoke(self, *words):
        return CliRunner().invoke(app, ["run", *words])


def test_a_board_is_built_loaded_and_asked_on_its_console(monkeypatch):
    """The port is open before the board starts; an address that is not there yet is waited for."""
    bench = Bench(monkeypatch, answers=["-", "-", "10.1.1.7"], deaf=20)
    done = bench.invoke("versa_ecp5", "--role", "loopback", "--", "ecg", "run", "--json")
    assert done.exit_code == 0, done.exception
    assert bench.log == [
        "build versa_ecp5 --json --role loopback",
        "open /dev/ttyUSB0 115200",
        "load versa_ecp5 --output /b/versa_ecp5",
        "wait for ready",
        "close",
        "connect 10.1.1.7:80",
        "ecg run 10.1.1.7 --json",
    ]


def test_a_board_without_a_processor_has_the_address_of_its_file(monkeypatch):
    bench = Bench(monkeypatch)
    assert bench.invoke("colorlight_i5").exit_code == 0
    address = load_board("colorlight_i5").ip
    assert bench.log[-2:] == ["load colorlight_i5 --output /b/versa_ecp5", f"connect {address}:7"]


def test_an_address_that_is_named_needs_no_console(monkeypatch):
    bench = Bench(monkeypatch)
    assert bench.invoke("versa_ecp5", "--address", "10.9.9.9").exit_code == 0
    assert bench.log[1:] == [
        "load versa_ecp5 --output /b/versa_ecp5",
        "connect 10.9.9.9:80",
        "status 10.9.9.9",
    ]


def test_no_address(monkeypatch):
    bench = Bench(monkeypatch, answers=["-"])
    message = "the board has no address after 60 s; is there a DHCP server on its network? "
    assert str(bench.invoke("versa_ecp5").exception).startswith(message)
    bench = Bench(monkeypatch)
    monkeypatch.setattr(run, "serial_ports", list)
    asking = load_board("versa_ecp5").variant(dhcp=True)
    monkeypatch.setattr("trebuchet.boards.load_board", lambda name: asking)
    message = "board versa_ecp5 gets its address by DHCP; name it with --address, or with --port "
    assert str(bench.invoke("versa_ecp5").exception).startswith(message)
    assert not any(line.startswith("load") for line in bench.log)


def test_a_board_that_does_not_answer(monkeypatch):
    bench = Bench(monkeypatch, deaf=1e9)
    message = "the board is loaded, but 10.1.1.7 does not answer on TCP port 80 within 60 s "
    assert str(bench.invoke("versa_ecp5").exception).startswith(message)


def test_a_vendor_s_board_has_a_project_only(monkeypatch):
    bench = Bench(monkeypatch, bitstream=None)
    done = bench.invoke("kcu105")
    assert str(done.exception).startswith("board kcu105 has a Vivado project, no bitstream yet;")


def test_the_reason_of_another_command_is_given(monkeypatch):
    fails = SimpleNamespace(returncode=1, stdout="", stderr="x\ntrebuchet: no clock\n")
    monkeypatch.setattr(run.subprocess, "run", lambda *_, **__: fails)
    with pytest.raises(TrebuchetError, match="^trebuchet build versa_ecp5 --json: no clock$"):
        run._built("versa_ecp5", [])


def test_the_simulated_board_is_started_by_its_own_command(monkeypatch):
    called = []
    monkeypatch.setattr(run.os, "execv", lambda path, words: called.append(words))
    monkeypatch.setattr(run, "_loaded", lambda *_: "192.0.2.2")
    monkeypatch.setattr(run.subprocess, "run", lambda *_: SimpleNamespace(returncode=0))
    CliRunner().invoke(app, ["run", "sim", "--role", "matmul", "--", "matmul", "run"])
    assert called[0][3:6] == ["sim", "--role", "matmul"]
    assert called[0][6] == "--exec"
    assert called[0][7].endswith("-m trebuchet.host.cli matmul run 192.0.2.2")
    done = CliRunner().invoke(app, ["run", "sim", "--port", "x"])
    assert (
        str(done.exception)
        == "the simulated board has neither --address nor --port; leave them out"
    )


@pytest.mark.nightly
def test_the_simulated_board_answers():
    words = ["run", "sim", "--", "manage", "@", "version"]
    done = subprocess.run(
        [sys.executable, "-m", "trebuchet.host.cli", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Trebuchet ")
