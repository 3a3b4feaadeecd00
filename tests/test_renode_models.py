"""The models against the gateware: the same accesses, the same console, the same status page.

What needs Renode is skipped without it; the gateware's half of the register test runs all the same.
"""

import json
import re
import socket
import time
import urllib.request

import pytest
from board_console import PROMPT, Console
from patience import Patience, wait_until
from sim_tops import needs_network
from trebuchet.models.renode import find_renode
from trebuchet.sim.build import build
from trebuchet.sim.renode import accesses, emit
from trebuchet.sim.renode.client import Renode
from trebuchet.sim.renode.cosim.gateware import GatewareBus
from trebuchet.sim.renode.platform import describe, read_build, role_of
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source
from trebuchet.soc.build import build_software

pytestmark = pytest.mark.nightly

needs_renode = pytest.mark.skipif(
    find_renode() is None, reason="Renode is not here; trebuchet doctor says how to get it"
)


@pytest.fixture(scope="module")
def board_build():
    return read_build(build_software("sim"))


@pytest.fixture
def machine(board_build):
    """The board in Renode, loaded, not started."""
    with Renode() as renode:
        platform = describe(board_build, role="none", mailbox_port=0)
        script = emit.write([platform], renode.folder, board_build.board)
        renode.do(f"include @{script}")
        yield renode


def sequences(board_build):
    yield "generated", accesses.generated(board_build)
    yield "mailbox", accesses.mailbox_idle(board_build)
    yield "role slot", accesses.role_slot(board_build, role_of(board_build))


def assert_passes(bus, board_build):
    for name, sequence in sequences(board_build):
        assert accesses.run(bus, sequence) == [], name


@needs_network
def test_registers_of_the_gateware(board_build):
    with GatewareBus() as bus:
        assert_passes(bus, board_build)


@needs_renode
def test_registers_of_the_models(board_build, machine):
    machine.do("cpu IsHalted true")
    machine.do("start")
    assert_passes(machine, board_build)


def start(machine):
    """Start; what the firmware prints up to ``ready``, and the seconds until then."""
    log = machine.folder / "uart.log"
    machine.do(f"sysbus.uart CreateFileBackend @{log} true")
    begin = time.monotonic()
    machine.do("start")
    wait_until(lambda: log.exists() and "ready" in log.read_text(), 60, "the firmware is not up")
    return log.read_text(), time.monotonic() - begin


class RenodeConsole:
    """As :class:`board_console.Console`, for a machine that has been started."""

    def __init__(self, machine):
        self.machine, self.taken = machine, 0

    def until(self, text):
        """Everything up to and with ``text``."""
        patience = Patience(60)
        while True:
            printed = (self.machine.folder / "uart.log").read_text()[self.taken :]
            if (end := printed.find(text) + len(text)) >= len(text):
                self.taken += end
                return printed[:end]
            assert not patience.over(), f"no {text!r} in {printed[-2000:]!r}"
            time.sleep(0.02)

    def run(self, line):
        for character in line + "\r":
            self.machine.do(f"sysbus.uart WriteChar {ord(character)}")
        self.until(line + "\n")
        return self.until(PROMPT).removesuffix(PROMPT)


#: Commands whose answers do not depend on when they come.
SESSION = (
    "help",
    "help role",
    "version",
    "nonsense",
    "peek",
    "peek 2",
    "role",
    "role ecg off",
    "role ecg on",
    "role other",
    "sessions",
    "counters mailbox",
    "ip",
    "config show",
    "config set ip 192.0.2.300",
    "config set name board one",
    "config set ip 192.0.2.9",
    "config save",
    "config show",
    "image show",
    "image boot",
    "crash",
    "log",
)


def without_times(text):
    """Log lines begin with a time; so slow a board may need another second."""
    return re.sub(r"\[ *\d+\.\d{3}\]", "[]", text.replace("\r\n", "\n"))


def conversation(console):
    return [without_times(text) for text in (console.until(PROMPT), *map(console.run, SESSION))]


@needs_renode
@needs_network
def test_the_same_session_as_on_the_verilated_board(machine):
    """The same ELF prints the same, from the first line to the last command."""
    _, seconds = start(machine)
    print(f"ready after {seconds:.2f} s of wall time")
    in_renode = conversation(RenodeConsole(machine))
    top = source("board")
    with Board(build(top), uart="pty", cwd=top.folder) as board:
        console = Console(board.uart_device)
        on_the_board = conversation(console)
        console.close()
    for line, ours, theirs in zip(("", *SESSION), in_renode, on_the_board, strict=True):
        assert ours == theirs, line


def ask(port, request):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(request)
        answer = b""
        while part := connection.recv(4096):
            answer += part
        return answer


@needs_renode
def test_status_page_through_the_mailbox(board_build, machine):
    start(machine)
    port = int(machine.do("sysbus.mailbox Port"), 16)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status") as answer:
        status = json.load(answer)
    assert status["board"] == board_build.board
    assert status["engines"]["mailbox"]["requests"] == 1
    # In two parts, and one that breaks off: answered all the same.
    assert ask(port, b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n").startswith(b"HTTP/1.1 404 ")
    assert ask(port, b"G" * 1024).startswith(b"HTTP/1.1 4")
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"HTTP/1.1 400 ")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status") as answer:
        assert json.load(answer)["engines"]["mailbox"]["requests"] == 5
