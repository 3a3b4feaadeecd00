"""Limits follow the progress of a simulation, sockets as well; without one they are wall time."""

import socket
import subprocess
import sys
import threading
import time

import pytest
from simulated_time import HZ, Simulator
from trebuchet.client import Board
from trebuchet.models import progress, sockets
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.progress import VARIABLE, Deadline, Simulation, current_simulation
from trebuchet.models.sockets import SimulatedTimeSocket


@pytest.fixture
def simulator(tmp_path):
    return Simulator(tmp_path / "progress")


@pytest.fixture
def pair(simulator):
    """Two ends of a connection, the first one in simulated time."""
    near, far = socket.socketpair()
    with SimulatedTimeSocket(Simulation(simulator.path), near) as timed, far:
        yield timed, far


def test_without_a_simulation_a_limit_is_wall_time():
    end = Deadline(0.05)
    assert 0 < end.left() <= 0.05
    assert end.pause() <= 0.05
    time.sleep(0.06)
    assert end.left() == 0
    with pytest.raises(TimeoutError, match=r"timed out after 0\.05 s$"):
        end.pause()
    assert str(end) == "0.05 s"


def test_a_limit_waits_for_the_simulation(simulator):
    end = Deadline(0.02, Simulation(simulator.path))
    time.sleep(0.04)
    assert end.left() == pytest.approx(0.02)
    simulator.advance(0.015)
    assert end.left() == pytest.approx(0.005)
    simulator.advance(0.005)
    assert end.left() == 0
    assert str(end) == "0.02 s of simulated time"


def test_a_limit_never_ends_before_the_wall(simulator):
    """The peer's kernel and the ticks of the board follow the wall."""
    end = Deadline(1000, Simulation(simulator.path))
    simulator.advance(5000)
    assert 900 < end.left() <= 1000
    assert end.pause() <= 0.1  # it looks again soon


def test_a_limit_ends_with_the_simulator(simulator):
    end = Deadline(1000, Simulation(simulator.path))
    assert end.left() > 0
    simulator.end()
    assert end.left() == 0
    assert str(end).endswith(" s; the simulator has ended")


def test_a_limit_ends_when_the_simulation_stands_still(simulator, monkeypatch):
    monkeypatch.setattr(progress, "STALL", 0.05)
    simulation = Simulation(simulator.path)
    end = Deadline(1000, simulation)
    for _ in range(3):  # a counter that advances is no stall
        time.sleep(0.03)
        simulator.advance(0.001)
        assert end.left() > 0
    time.sleep(0.06)
    assert end.left() == 0
    assert str(end).endswith("; the simulation has not advanced for 0.05 s")


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (None, "cannot read the progress of the simulation from {}.*: No such file or directory"),
        (b"", "cannot read the progress of the simulation from {}.*: it is too short"),
        (bytes(24), "{}.* is not from a simulator"),
    ],
)
def test_a_wrong_file_is_one_clear_line(tmp_path, monkeypatch, contents, reason):
    path = tmp_path / "progress"
    if contents is not None:
        path.write_bytes(contents)
    monkeypatch.setenv(VARIABLE, str(path))
    with pytest.raises(TrebuchetError, match=reason.format(path)):
        current_simulation()
    command = [sys.executable, "-m", "trebuchet.host.cli", "status", "127.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert VARIABLE in done.stderr
    assert "Traceback" not in done.stderr


def test_the_environment_names_the_simulation(simulator, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert current_simulation() is None
    monkeypatch.setenv(VARIABLE, str(simulator.path))
    assert current_simulation().nominal_hz == HZ


def later(action, *arguments):
    """Run ``action`` soon, beside the test."""
    thread = threading.Timer(0.3, action, arguments)
    thread.start()
    return thread


def test_a_time_out_of_a_socket_is_simulated_time(pair, simulator):
    timed, far = pair
    timed.settimeout(0.05)
    assert timed.gettimeout() == 0.05
    later(far.send, b"late")
    assert timed.recv(10) == b"late"  # after far more than 0.05 s of wall time
    later(simulator.advance, 1)
    begin = time.monotonic()
    with pytest.raises(TimeoutError):
        timed.recv(10)
    assert time.monotonic() - begin >= 0.25


def test_sending_waits_for_room_in_simulated_time(pair, simulator):
    timed, far = pair
    timed.settimeout(0.05)
    data = bytes(range(256)) * 8192
    received = bytearray()

    def take():
        while len(received) < len(data):
            received.extend(far.recv(1 << 16))

    thread = later(take)
    timed.sendall(data)
    thread.join()
    assert received == data
    later(simulator.advance, 1)
    with pytest.raises(TimeoutError):
        timed.sendall(data)


def test_blocking_and_non_blocking_are_as_ever(pair):
    timed, far = pair
    timed.setblocking(False)
    with pytest.raises(BlockingIOError):
        timed.recv(1)
    timed.settimeout(None)
    later(far.send, b"x")
    assert timed.recv(1) == b"x"


def test_connecting_and_accepting(simulator, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(simulator.path))
    with sockets.listen(0, 0.01) as listener:
        port = listener.getsockname()[1]
        later(simulator.advance, 1)
        with pytest.raises(TimeoutError):
            listener.accept()
        later(lambda: sockets.connect("127.0.0.1", port, 0.01).close())
        accepted, _ = listener.accept()
        with accepted:
            assert isinstance(accepted, SimulatedTimeSocket)
            assert accepted.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        sockets.connect("127.0.0.1", port, 1)


def test_a_client_says_which_time_is_over(simulator, monkeypatch):
    """The message of the README's command under load, from a peer that says nothing."""
    monkeypatch.setenv(VARIABLE, str(simulator.path))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name = f"127.0.0.1:{silent.getsockname()[1]}"
        with Board(name, timeout=0.1) as board:
            later(simulator.advance, 1)
            with pytest.raises(
                TrebuchetError, match=rf"^{name} sent nothing for 0\.1 s of simulated time$"
            ):
                board.role().call(b"")
        with Board(name, timeout=1000) as board:
            later(simulator.end)
            with pytest.raises(TrebuchetError, match="sent nothing for .* the simulator has ended"):
                board.role().call(b"")
