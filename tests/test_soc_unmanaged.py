"""Boards without a processor: what their files may say; real clients before the whole SoC."""

import dataclasses
import json
import os
import re
import shutil
import sys

import pytest
from e2e_board import know_address
from e2e_clients import ECHO, SMP, echo, reset, run_clients
from sim_tops import needs_network
from trebuchet.boards import BUILT, load_board
from trebuchet.boards.flash import Flash, flash_layout
from trebuchet.boards.schema import BoardError
from trebuchet.boards.sim import without_cpu
from trebuchet.cores.shell import Shell
from trebuchet.cores.shell_config import ShellConfig
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source
from trebuchet.soc.build import build_software, generate_only, shell_config

UNMANAGED = without_cpu(load_board("sim"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"active": True}, "active must be off with cpu_variant 'none', which leaves no firmware"),
        ({"inspect": True}, "inspect must be off with cpu_variant 'none'"),
        ({"programmable": True}, "programmable must be off with cpu_variant 'none'"),
        ({"dhcp": True}, "dhcp must be off with cpu_variant 'none'"),
        ({"peers": 2}, "peers must be off with cpu_variant 'none'"),
        ({"flash": flash_layout(16 << 20)}, "flash must be nothing but a golden bitstream with cp"),
        ({"cpu_variant": None}, "cpu_variant must be one of ('none', 'minimal', "),
    ],
)
def test_what_needs_a_processor_is_refused(changes, message):
    with pytest.raises(BoardError, match=f"^Board 'sim': {re.escape(message)}"):
        dataclasses.replace(UNMANAGED, **changes)


def test_a_golden_bitstream_needs_none():
    flash = Flash(size=2 << 20, golden=(0, 1 << 20))
    assert dataclasses.replace(UNMANAGED, flash=flash).flash is flash


def test_a_shell_without_firmware_has_no_registers():
    config = shell_config(UNMANAGED)
    assert config.tcp.ports == (7, 9, 4000)
    shell = Shell(config)
    assert not [name for name in shell.signature.members if name.startswith("csr_")]
    assert {"enable", "mac", "ip"} < set(shell.signature.members)
    managed = ShellConfig()
    assert managed.tcp.ports == (7, 9, 80, 4000, 8080)
    assert "enable" not in Shell(managed).signature.members
    with pytest.raises(ValueError, match="^A shell without firmware must have no peers$"):
        ShellConfig(peers=1, managed=False)


def test_the_key_of_sequence_numbers_is_the_files():
    key = 0x0123456789ABCDEF_FEDCBA9876543210
    board = dataclasses.replace(UNMANAGED, isn_key=key)
    assert shell_config(board).tcp.isn_key == key
    assert shell_config(UNMANAGED).tcp.isn_key == TcpConfig().isn_key


@pytest.mark.nightly
def test_memory_that_must_be_trained_is_refused(root):
    versa = load_board("versa_ecp5")
    off = {"cpu_variant": "none", "flash": None, "firmware": "rom", "name": "test_unmanaged"}
    folder = root / "build" / "test_unmanaged"
    try:
        with pytest.raises(
            TrebuchetError, match=r"^board 'test_unmanaged': cpu_variant 'none' .*; DDR3 "
        ):
            generate_only(dataclasses.replace(versa, **off), folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_there_is_no_firmware_to_build():
    without = [name for name in BUILT if not load_board(name).has_cpu]
    assert without
    for name in without:
        with pytest.raises(TrebuchetError, match=f"^board '{name}' has no processor"):
            build_software(name)


@pytest.fixture(scope="module")
def board():
    top = source("unmanaged")
    with Board(build(top), ["--loss", "1%"], cwd=top.folder, uart="none") as running:
        know_address(running)
        running.wait_port(ECHO)
        yield running


def _echo(board, length):
    """Echo of so many random bytes; both directions at once, as the window allows."""
    with board.connect(ECHO) as peer:
        echo(peer, os.urandom(length))


@pytest.mark.nightly
@needs_network
def test_echo_over_a_lossy_link(board):
    for length in (1, 1460, 100_000):
        _echo(board, length)


@pytest.mark.nightly
@needs_network
def test_the_role_answers(board):
    command = [sys.executable, "-m", "trebuchet.host.cli", "ecg", "run", board.ip]
    command += ["--record", "synthetic", "--minutes", "0.5", "--independent", "--json"]
    done = board.run(command, timeout=120)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert run["differing_messages"] == 0
    assert run["board"]["sensitivity"] > 0.9


@pytest.mark.nightly
@needs_network
def test_services_of_firmware_are_refused(board):
    for port in (80, 8080):
        with pytest.raises(ConnectionRefusedError):
            board.connect(port)


@pytest.mark.nightly
@needs_network
def test_clients_that_vanish_leave_every_session_free(board):
    """All sessions, thrice, ended by a reset in mid-message; then all of them do their work.

    All but one of each of the other two services, which is theirs.
    """
    count = UNMANAGED.sessions - 2
    for _ in range(3):
        peers = [board.connect(SMP) for _ in range(count)]
        for peer in peers:
            peer.sendall(b"\x00\x01")
            reset(peer)
        # Where the link lost the reset, the message has to be late, and its answer is reset.
        board.hurry(21_000)
        board.sleep(1)
    run_clients([lambda: _echo(board, 5_000)] * count, 60)
