"""What the simulated board writes: on a full disk it fails with one line, and nothing is lost."""

import subprocess
import sys

import pytest
from sim_tops import mirror, needs_network
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim import cli, waves
from trebuchet.sim.run import Board

FULL = "/dev/full"
CAPTURE = f"cannot write capture '{FULL}': No space left on device"
STATISTICS = f"cannot write statistics '{FULL}': No space left on device"


def batch(*options):
    """Run the mirror for a while, without a network."""
    command = [str(mirror()), "--cycles", "20000", *options]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--pcap", FULL), CAPTURE),
        (("--stats", FULL), STATISTICS),
        (("--pcap", FULL, "--stats", "-"), CAPTURE),
    ],
)
def test_a_full_disk_is_a_fault(options, line):
    done = batch(*options)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"sim: {line}")


@pytest.mark.parametrize("option", ["--pcap", "--stats", "--events"])
def test_a_file_that_cannot_be_made_ends_the_run_before_it_begins(tmp_path, option):
    done = batch(option, tmp_path / "none" / "x")
    assert done.returncode == 2
    assert done.stderr.endswith("/none/x': No such file or directory\n")
    assert "seed" not in done.stderr


def test_standard_output_may_be_full():
    command = [str(mirror()), "--cycles", "20000", "--stats", "-"]
    with open(FULL, "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    line = "sim: cannot write statistics '-': No space left on device"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, line)


@needs_network
def test_a_board_s_end_says_why():
    with Board(mirror(), ["--pcap", FULL, "--cycles", "20000"]) as board:
        with pytest.raises(TrebuchetError) as caught:
            board.wait_for_end()
    assert str(caught.value) == f"the simulator reported a fault: {CAPTURE} (exit code 2)"


@needs_network
def test_a_command_ends_with_its_board():
    """`sim --exec`: a command that waits for a board that is no more would wait for ever."""
    with Board(mirror(), ["--pcap", FULL, "--cycles", "20000"]) as board:
        with pytest.raises(TrebuchetError, match=f"^the simulator has ended: {CAPTURE}$"):
            cli._execute(board, "sleep 600")


@needs_network
def test_a_board_that_ends_before_it_is_ready_says_why():
    with Board(mirror(), ["--pcap", FULL, "--cycles", "2000000"]) as board:
        with pytest.raises(TrebuchetError, match=f"^the simulator has ended: {CAPTURE}$"):
            cli._wait_ready(board, 7)


@needs_network
def test_a_fault_after_the_command_is_reported():
    with Board(mirror(), ["--stats", FULL]) as board:
        assert cli._execute(board, "exit 3") == 3
        assert board.close() == 2
        assert board.last_words == STATISTICS


@needs_network
def test_output_that_is_no_text_is_replaced():
    with Board(mirror()) as board:
        code = "import sys; sys.stdout.buffer.write(bytes([0xB5, 0x0A]))"
        assert board.run([sys.executable, "-c", code]).stdout == "\ufffd\n"


def test_waves_must_be_whole(tmp_path):
    def block(kind, size):
        return bytes([kind]) + (8 + size).to_bytes(8, "big") + bytes(size)

    path = tmp_path / "x.fst"
    whole = block(0, 321) + block(1, 40) + block(3, 24) + block(6, 16)
    path.write_bytes(whole)
    waves.require_waves(path)
    for cut in (0, 1, 9, 100, 330, 400, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(TrebuchetError, match=r"^cannot write waves .*x\.fst.*not whole"):
            waves.require_waves(path)
    path.write_bytes(bytes(100))
    with pytest.raises(TrebuchetError, match="not whole"):
        waves.require_waves(path)
    with pytest.raises(TrebuchetError, match="not whole"):
        waves.require_waves(tmp_path / "none")
    with pytest.raises(TrebuchetError, match="not whole"):
        waves.require_waves(waves.Path(FULL))
