"""`trebuchet renode`: what is refused, what it writes, the console; with a stand-in for Renode."""

import json
import socket
import subprocess
import sys
import textwrap

import pytest
from patience import gone, wait_until
from trebuchet.models import config_block
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.renode import check_version
from trebuchet.sim.renode import cli, emit, flashes, suites, terminal
from trebuchet.sim.renode.client import free_port
from trebuchet.sim.renode.platform import describe, need_firmware, read_build
from trebuchet.soc.build import build_software

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def build():
    return read_build(build_software("sim"))


@pytest.fixture
def launcher(tmp_path, monkeypatch):
    """A function that makes a program the Renode of this test."""

    def make(text):
        path = tmp_path / "renode"
        path.write_text(f"#!{sys.executable}\n{textwrap.dedent(text)}")
        path.chmod(0o755)
        monkeypatch.setenv("RENODE", str(path))
        return path

    return make


@pytest.mark.parametrize(
    ("version", "is_refused"),
    [("v1.15.3.4", True), ("v1.16.1.0", False), ("v2.0", False), ("unversioned", False)],
)
def test_the_version_is_looked_at(launcher, version, is_refused):
    path = launcher(f"print('Renode {version}')")
    if not is_refused:
        check_version(path)
        return
    with pytest.raises(
        TrebuchetError, match=r"is Renode 1\.15\.3; 1\.16 or newer is needed; unpack"
    ):
        check_version(path)


def test_several_boards_have_addresses_and_flashes_of_their_own(build, tmp_path):
    paths = flashes.board_flashes(build, 3, None, tmp_path)
    assert len(set(paths)) == 3
    found = [
        config_block.unpack(path.read_bytes()[build.constants["trebuchet_flash_config"] :]).text
        for path in paths
    ]
    assert found == [f"mac=02:00:00:00:00:0{k}\nip=192.0.2.{k}\n" for k in (2, 3, 4)]
    script = emit.write([describe(build, flash=path) for path in paths], tmp_path, "three")
    for number, path in enumerate(paths):
        assert f"$ORIGIN/three{number}.repl" in script.read_text()
        assert f'file: "{path}"' in (tmp_path / f"three{number}.repl").read_text()


def test_a_flash_that_is_there_is_kept(build, tmp_path):
    named = tmp_path / "mine"
    assert flashes.board_flashes(build, 1, named, tmp_path) == [named]
    second = tmp_path / "mine1"
    second.write_bytes(b"kept")
    flashes.board_flashes(build, 2, named, tmp_path)
    assert second.read_bytes() == b"kept"
    assert (tmp_path / "mine0").stat().st_size == build.constants["trebuchet_flash_size"]


def test_a_flash_in_no_folder(build, tmp_path):
    with pytest.raises(TrebuchetError, match="--flash .*/no/file: there is no folder .*/no"):
        flashes.board_flashes(build, 1, tmp_path / "no" / "file", tmp_path)


def test_suites_are_found_by_name_or_path(tmp_path):
    own = tmp_path / "mine.robot"
    own.touch()
    assert [path.stem for path in suites.find_suites(["boot", str(own)])] == ["boot", "mine"]
    assert len(suites.find_suites([])) >= 9
    with pytest.raises(TrebuchetError, match="there is no suite 'bot'; ours are boards, boot, "):
        suites.find_suites(["bot"])


def test_suites_that_do_not_end_are_ended(build, launcher, tmp_path):
    path = launcher("")
    runner = path.with_name("renode-test")
    told = tmp_path / "pid"
    runner.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {told}\nwait\n")
    runner.chmod(0o755)
    with pytest.raises(TrebuchetError, match="did not end within 1 s; give more with --timeout"):
        suites.run_suites(build, ["boot"], 1)
    wait_until(lambda: gone(int(told.read_text())), 20, "what the runner has started did not end")


def test_a_mailbox_port_that_is_taken():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(TrebuchetError, match=f"--mailbox-port {port}: Address already in use"):
            cli._check_port(port)


def test_another_firmware(build, tmp_path):
    other = cli._other_firmware(build, build.elf)
    assert other.firmware.read_bytes() == build.firmware.read_bytes()
    assert other.elf.read_bytes() == build.elf.read_bytes()
    text = tmp_path / "bios.bin"
    text.write_bytes(b"no ELF")
    with pytest.raises(TrebuchetError, match=r"bios\.bin: that is no ELF file; give one, such"):
        cli._check_elf(text)
    with pytest.raises(TrebuchetError, match="nowhere: No such file or directory"):
        cli._check_elf(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["csr.json", "registers.json"])
def test_builds_that_lack_something(build, tmp_path, name):
    for file in ("csr.json", "registers.json"):
        (tmp_path / file).write_bytes((build.folder / file).read_bytes())
    with pytest.raises(TrebuchetError, match=r"bios\.bin is missing; remove the folder"):
        need_firmware(read_build(tmp_path))
    for text in ("[]", "{}", json.dumps({"csr_bases": {"tcp": "here"}})):
        (tmp_path / name).write_text(text)
        with pytest.raises(TrebuchetError, match=r"is damaged \(.*\); remove the folder .*"):
            read_build(tmp_path)


#: A Renode that has a UART: it says what it was told, and what was typed in capitals.
_ECHO = """
    import socket, sys
    listener = socket.create_server(("127.0.0.1", PORT))
    print("Renode is there", flush=True)
    uart = listener.accept()[0]
    uart.sendall(sys.stdin.readline().encode())
    while typed := uart.recv(100):
        uart.sendall(typed.upper())
        if b"end" in typed:
            break
"""


@pytest.mark.parametrize("start", [True, False])
def test_the_console_is_in_this_terminal(launcher, tmp_path, start):
    port = free_port()
    path = launcher(_ECHO.replace("PORT", str(port)))
    program = (
        "import sys; from pathlib import Path;"
        "from trebuchet.sim.renode.terminal import run_with_console;"
        f"path, script = Path({str(path)!r}), Path({str(tmp_path / 's.resc')!r});"
        f"sys.exit(run_with_console(path, script, {port}, start={start}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=b"help\x1d" if not start else b"help end",
        capture_output=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == (b"start\nHELP END" if start else b"")
    assert (tmp_path / "s.log").read_text() == "Renode is there\n"


def test_a_renode_that_does_not_start_says_why(launcher, tmp_path):
    path = launcher("print('no models here'); raise SystemExit(1)")
    with pytest.raises(TrebuchetError, match=r"Renode did not start: no models here; see .*s\.log"):
        terminal.run_with_console(path, tmp_path / "s.resc", free_port())


def test_a_script_that_fails_is_told(launcher, tmp_path):
    path = launcher("print('There was an error executing command X', flush=True); input()")
    with pytest.raises(TrebuchetError, match="Renode did not start: There was an error executing"):
        terminal.run_with_console(path, tmp_path / "s.resc", free_port())
