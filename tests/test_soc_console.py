"""The simulated board's console: a session as typed, a crash, the watchdog, a reset."""

import json
import os
import re
import subprocess
import sys

import pytest
from board_console import PROMPT, Console
from trebuchet import __version__
from trebuchet.models.progress import VARIABLE
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def board():
    top = source("board")
    with Board(build(top), uart="pty", cwd=top.folder) as running:
        running.registers = json.loads((top.folder.parent / "csr.json").read_text())
        yield running


@pytest.fixture(scope="module")
def console(board):
    found = Console(board.uart_device)
    found.start = found.until(r"ready\r\n")
    found.until(re.escape(PROMPT))
    yield found
    found.close()


def test_the_start(console):
    lines = console.start.replace("\r\n", "\n").split("\n")
    assert f"Trebuchet {__version__} on sim" in lines
    assert "start: power" in lines
    assert "mac 02:00:00:00:00:02, ip 192.0.2.2" in lines
    assert "tcp: 64 sessions" in lines
    assert "shell: enabled" in lines


def test_the_command(board, console):
    """`trebuchet console` at the same port; the fixture does not read meanwhile."""
    words = ["console", board.uart_device, "--exec", "version", "--exec", "nonsense"]
    done = subprocess.run(
        [sys.executable, "-m", "trebuchet.host.cli", *words],
        capture_output=True,
        text=True,
        env={**os.environ, VARIABLE: str(board.progress_path)},
    )
    assert done.stdout.startswith(f"Trebuchet {__version__} on sim, ")
    message = "trebuchet: nonsense: UNKNOWN_COMMAND: 'help' lists the commands\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_session(board, console):
    listed = console.run("help")
    assert {"help", "status", "role", "peek", "crash", "reset"} <= {
        line.split()[0] for line in listed.splitlines()
    }
    assert console.run("nonsense") == "error: UNKNOWN_COMMAND: 'help' lists the commands\n"
    assert console.run("peek") == ("error: BAD_ARGUMENT: the form is: peek ADDRESS [COUNT [MAP]]\n")
    assert console.run("peek 2") == "error: BAD_ARGUMENT: no memory or register is there\n"
    assert console.run("version").startswith(f"Trebuchet {__version__} on sim, VexRiscv_Min at ")
    uptime = r"\d+\.\d{3} s, started by power, 0 restarts; interrupts at most \d+ cycles late\n"
    assert re.fullmatch(uptime, console.run("uptime"))
    assert "slots 64\nused " in console.run("sessions")
    state = json.loads(console.run("status"))
    assert (state["board"], state["start"], state["restarts"]) == ("sim", "power", 0)
    assert state["memory_test"] == "none"  # a simulated memory is not tested at start
    assert state["engines"]["tcp"]
    assert "tcp.syn_rx " in console.run("counters tcp")
    scratch = board.registers["csr_registers"]["ctrl_scratch"]["addr"]
    assert console.run(f"poke {scratch} 0x12345678") == ""
    assert console.run(f"peek 0x{scratch:08x}") == f"{scratch:08x}: 12345678\n"


def test_history_and_editing(console):
    console.run("version")
    console.type("\x1b[A\r")
    console.until(f"Trebuchet {__version__} on sim, ")
    console.until(re.escape(PROMPT))
    console.type("nonsense\x15versiom\bn\r")
    console.until(f"Trebuchet {__version__} on sim, ")
    console.until(re.escape(PROMPT))
    console.type("x" * 200 + "\r")
    console.until("error: TOO_LARGE: ")
    console.until(re.escape(PROMPT))


def test_the_role_is_switched_and_the_log_tells_around_the_line(console):
    assert re.match(r"ecg at 0x[0-9a-f]{8}: on, 0 jobs, 0 errors\n", console.run("role"))
    output = console.run("role ecg off")
    assert re.search(r"\[ *\d+\.\d{3}\] info ecg: off\n", output)
    assert re.search(r"\necg at 0x\w{8}: off, ", output)
    assert console.run("log error") == "level: error\n"
    assert "info ecg: on" not in console.run("role ecg on")
    log = console.run("log")
    assert re.search(r"info ecg: off\n(.*\n)*.*info ecg: on\nlevel: error\n$", log)
    assert console.run("role other") == "error: NO_ROLE\n"
    assert console.run("log loud").startswith("error: BAD_ARGUMENT: ")


def _restarted(console, cause):
    text = console.until(r"ready\r\n")
    console.until(re.escape(PROMPT))
    assert re.findall(r"\r\nstart: (\w+)\r\n", text) == [cause], text
    return text


def test_a_crash_is_dumped_and_kept(console):
    assert console.run("crash") == "no crash is kept\n"
    console.type("crash now\r")
    text = _restarted(console, "crash")
    dump = re.search(r"crash: illegal instruction \(2\) after [^\0]*? t6  ?\w{8}", text)
    assert dump, text
    kept = console.run("crash")
    assert dump[0].replace("\r\n", "\n") in kept
    assert len(re.findall(r"\b[rsgta][a-p0-9]+ +[0-9a-f]{8}\b", kept)) == 31
    # What came before is still in the log.
    assert "info ecg: on" in console.run("log")
    assert console.run("crash clear") == ""
    assert console.run("crash") == "no crash is kept\n"


def test_the_watchdog_tells_where_the_firmware_hung(board, console):
    period = board.registers["csr_registers"]["watchdog_period"]["addr"]
    assert console.run(f"poke {period} 250") == ""
    console.type("crash hang\r")
    text = _restarted(console, "watchdog")
    assert "crash: watchdog: the firmware hung (256)" in text
    assert "watchdog: the firmware hung" in console.run("crash")


def test_a_reset_by_command(board, console):
    console.type("reset\r")
    console.until("restarting\r\n")
    _restarted(console, "command")
    assert " s, started by command, 3 restarts; " in console.run("uptime")
    with board.connect(7, timeout=60) as peer:
        peer.sendall(b"still here")
        assert peer.recv(100) == b"still here"
