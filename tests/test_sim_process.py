"""Boards leave nothing behind; the command line; builds are kept."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import gone
from sim_tops import mirror, needs_network
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.kept import kept
from trebuchet.models.lock import FileLock
from trebuchet.sim import build as build_module
from trebuchet.sim import cli
from trebuchet.sim.build import Source, build
from trebuchet.sim.fabric import FabricOptions, FabricTop
from trebuchet.sim.mirror import Mirror
from trebuchet.sim.netns import Namespace, NamespaceError
from trebuchet.sim.process import SimulatorProcess, run_limited
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

OWNER = """
import signal, subprocess, sys, time
from trebuchet.sim.run import Board
# A job in the background of a shell is started with SIGINT ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
board = Board(sys.argv[1])
child = board.popen(["sleep", "600"])
print(board.namespace.pid, board.pid, child.pid, flush=True)
time.sleep(600)
"""


def _cpu_seconds(pid):
    """Processor time that a process has used."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_gone(pids):
    """However long that takes: nothing is to be computed for it."""
    while not all(map(gone, pids)):
        time.sleep(0.02)


@needs_network
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_outlives_its_owner(number):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, mirror()], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with owner.stdout:
        pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 3
    assert not any(map(gone, pids))
    owner.send_signal(number)
    owner.wait()
    wait_until_gone(pids)


@needs_network
def test_close_ends_everything():
    with Board(mirror()) as board:
        sleeper = board.popen(["sleep", "600"])
        pids = [board.namespace.pid, board.pid, sleeper.pid]
        folder = board.folder
        assert folder.is_dir()
    wait_until_gone(pids)
    assert not folder.exists()


@needs_network
def test_two_boards_do_not_meet():
    with Board(mirror()) as one, Board(mirror()) as two:
        for board, text in ((one, b"one"), (two, b"two")):
            with board.socket(type=socket.SOCK_DGRAM) as s:
                s.settimeout(20)
                s.bind((board.host_ip, 77))
                s.sendto(text, (board.ip, 77))
                assert s.recv(100) == text
        assert one.counters()["mirror.frames"] == two.counters()["mirror.frames"] == 1


@needs_network
def test_commands_run_on_the_boards_network():
    with Board(mirror()) as board:
        done = board.run(["cat", "/proc/net/dev"])
        assert done.returncode == 0
        assert "tap0" in done.stdout
        assert board.run(["false"]).returncode == 1
    assert "tap0" not in Path("/proc/net/dev").read_text()


@needs_network
def test_death_of_the_simulator_is_noticed():
    with Board(mirror()) as board:
        os.kill(board.pid, signal.SIGKILL)
        with pytest.raises(TrebuchetError, match="the simulator has ended"):
            board.stats()
        with pytest.raises(TrebuchetError, match="the simulator has ended"):
            board.wait_port(7)


@needs_network
def test_the_progress_is_published():
    """To this process, and to what the simulator's owner starts on the network."""
    with Board(mirror(), busy=True) as board:
        board.pass_ticks(20)
        before = board.simulation.cycles
        board.sleep(0.01)
        assert board.simulation.cycles >= before + 0.01 * board.simulation.nominal_hz
        stats = board.stats()
        assert before < stats["cycles"] <= board.simulation.cycles + 4096
        assert 20 <= stats["counters"]["mirror.ticks"] <= board.simulation.ticks + 1
        script = "from trebuchet.models import progress as p; print(p.current_simulation().cycles)"
        done = board.run([sys.executable, "-c", script])
        assert int(done.stdout) > before, done.stderr
        assert board.run(["sleep", "0"], env={"PATH": os.environ["PATH"]}).returncode == 0


@needs_network
def test_ticks_can_hurry():
    """Of a design, not of its peer; the wall clock's go on."""
    with Board(mirror(), time="cycles:1000") as board:
        with pytest.raises(TrebuchetError, match="^ticks that do not follow the wall clock"):
            board.hurry(10)
        assert board.ask("nonsense") == {"error": "unknown command"}
    with Board(mirror()) as board:
        before, cycles = board.simulation.ticks, board.stats()["cycles"]
        board.hurry(100_000)
        stats = board.stats()
        assert stats["counters"]["mirror.ticks"] >= before + 100_000
        assert stats["cycles"] - cycles < 100 * board.simulation.nominal_hz


@needs_network
def test_a_board_on_which_nothing_happens_sleeps():
    """And what ends sleep is answered at once; sleep counts as simulated time."""
    with Board(mirror(), arguments=["--max-rate", "4e6"]) as board:
        board.sleep(0.5)
        cycles, published = board.stats()["cycles"], board.simulation.cycles
        used = _cpu_seconds(board.pid)
        board.sleep(2)
        assert board.simulation.cycles - published >= 2 * board.simulation.nominal_hz
        assert board.stats()["cycles"] - cycles < 1.5 * board.simulation.nominal_hz
        assert _cpu_seconds(board.pid) - used < 1


@needs_network
def test_limits_end_with_the_simulator():
    with Board(mirror()) as board:
        with board.socket(type=socket.SOCK_DGRAM) as s:
            s.settimeout(10_000)
            os.kill(board.pid, signal.SIGKILL)
            with pytest.raises(TimeoutError, match="the simulator has ended"):
                s.recv(100)
        with pytest.raises(subprocess.TimeoutExpired):
            board.run(["sleep", "10000"], timeout=10_000)


@needs_network
def test_a_command_that_takes_too_long_is_killed():
    with Board(mirror()) as board:
        with pytest.raises(subprocess.TimeoutExpired):
            board.run(["sleep", "10000"], timeout=0.2)


def test_computations_are_limited_by_processor_time():
    spin = [sys.executable, "-c", "while True: pass"]
    with pytest.raises(subprocess.TimeoutExpired, match="timed out after 1 seconds"):
        run_limited(spin, 1)
    done = run_limited(["sh", "-c", "sleep 1.5; pwd; echo no >&2; exit 3"], 1, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (3, "/\n", "no\n")


@needs_network
def test_wrong_option_of_a_board():
    with pytest.raises(TrebuchetError, match="did not start: unknown option '--nonsense'"):
        Board(mirror(), ["--nonsense"])


@needs_network
def test_namespace_without_privileges_hands_out_sockets():
    with Namespace() as namespace:
        with namespace.socket() as server, namespace.socket() as client:
            server.bind(("127.0.0.1", 5))
            server.listen()
            client.connect(("127.0.0.1", 5))
        with pytest.raises(OSError, match="no socket in the namespace"):
            namespace.socket(family=9999)
    with pytest.raises(NamespaceError, match="the namespace is closed"):
        namespace.socket()


def trebuchet(*arguments):
    return subprocess.run(
        ["trebuchet", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@needs_network
def test_command_exec(tmp_path):
    mirror()
    script = (
        "import socket; s = socket.socket(type=socket.SOCK_DGRAM);"
        "s.bind(('192.0.2.1', 9)); s.sendto(b'there', ('192.0.2.2', 9)); print(s.recv(9).decode())"
    )
    capture = tmp_path / "x.pcap"
    done = trebuchet(
        "sim", "mirror", "--exec", f'{sys.executable} -c "{script}"', "--pcap", capture
    )
    assert (done.returncode, done.stdout) == (0, "there\n"), done.stderr
    assert capture.stat().st_size > 100
    assert trebuchet("sim", "mirror", "--exec", "exit 3").returncode == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "the top to simulate must be one of "),
        (["mirror", "--loss", "7"], "--loss must be a chance from 0 to 1 or in per cent, like 3%"),
    ],
)
def test_command_explains_wrong_use(arguments, message):
    done = trebuchet("sim", *arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("command", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("true", 0)])
def test_exit_codes_are_those_of_a_shell(command, code):
    class Here:
        """This machine's network instead of a board's."""

        ip = "192.0.2.2"
        popen = staticmethod(subprocess.Popen)

    assert cli._execute(Here, command) == code


@pytest.mark.parametrize(
    "start",
    [
        lambda: SimulatorProcess("x", lambda descriptor: ["true"]),
        lambda: kept(build_module.build_folder() / "key", lambda folder: None),
    ],
)
@pytest.mark.parametrize("where", ["/proc/nowhere", "file"])
def test_a_build_folder_that_cannot_be_is_one_line(monkeypatch, tmp_path, start, where):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TREBUCHET_BUILD", str(tmp_path / where))
    with pytest.raises(TrebuchetError, match=f"^cannot write .*{where}/verilator"):
        start()


def test_a_lock_that_cannot_be_is_one_line(tmp_path):
    (tmp_path / "lock").mkdir()
    with pytest.raises(TrebuchetError, match="^cannot write .*lock: Is a directory;"):
        FileLock(tmp_path / "lock").__enter__()


def test_builds_are_kept(monkeypatch, tmp_path):
    first = mirror()
    stamp = first.stat().st_mtime_ns
    monkeypatch.setattr(build_module, "_run", lambda *a, **k: pytest.fail("compiled again"))
    assert mirror() == first
    assert first.stat().st_mtime_ns == stamp


def test_broken_verilog_is_explained(tmp_path, monkeypatch):
    monkeypatch.setenv("TREBUCHET_BUILD", str(tmp_path))
    # The shared parts would take a while and are not what this is about.
    monkeypatch.setattr(build_module, "_compile_harness", lambda folder: None)
    monkeypatch.setattr(build_module, "_compile_runtime", lambda folder, trace: None)
    with pytest.raises(TrebuchetError, match="compiling the simulator failed .*syntax error"):
        build(Source("board", "top", {"top.v": "module top(; endmodule"}))


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
@pytest.mark.parametrize("depth", [0, 15, "many"])
def test_mirror_checks_its_parameter(depth):
    with pytest.raises(ValueError, match=f"at least 16 beats, not {depth!r}"):
        Mirror(depth)


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_fabric_top_checks_registers():
    for csr, message in (
        ({"csr_x": {}}, r"CSR member must be one of \['csr_mirror'\], not 'csr_x'"),
        ({"csr_mirror": {"frames": 1}}, r"must be one of \['enable'\], not 'frames'"),
    ):
        with pytest.raises(ValueError, match=message):
            FabricTop(Mirror(), FabricOptions(csr=csr))


def test_fabric_top_lists_every_counter():
    ports = source("mirror").texts["fabric_ports.h"]
    for name in ("frames", "others", "errors", "ticks"):
        assert f'X("mirror.{name}", csr_mirror_{name})' in ports
