"""``trebuchet renode``: a board in Renode."""

import dataclasses
import re
import socket
import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ...models.errors import TrebuchetError
from ...models.files import check_files
from ...models.renode import check_version, need_renode, starting
from . import emit
from .client import free_port
from .flashes import board_flashes
from .platform import Build, check_role, describe, need_firmware, read_build
from .suites import find_suites, run_suites
from .terminal import run_with_console

__all__ = ["renode"]

GDB_PORT = 3333
ROBOT_SECONDS = 3600


def _build(board: str, console: Console) -> Path:
    """Where the board's maps and firmware lie; they are made unless they are there."""
    from ...soc.build import build_software

    with console.status("Generating the register maps and the firmware …"):
        folder: Path = build_software(board)
    return folder


def _check_elf(path: Path) -> None:
    try:
        magic = path.read_bytes()[:4]
    except OSError as error:
        raise TrebuchetError(f"--firmware {path}: {error.strerror}; is the path right?") from error
    if magic != b"\x7fELF":
        raise TrebuchetError(f"--firmware {path}: that is no ELF file; give one, such as bios.elf")


def _check_tap(name: str | None) -> None:
    if name is not None and not re.fullmatch(r"[A-Za-z0-9_.-]{1,15}", name):
        raise TrebuchetError(
            f"--tap must be a device's name of up to 15 letters, digits, _, . and -, not {name!r}"
        )


def _other_firmware(build: Build, elf: Path) -> Build:
    """The build with the firmware ``elf``, of the same board, in the place of its own."""
    from ...soc.toolchain import require_tool

    image = build.folder / "renode" / "firmware.bin"
    image.parent.mkdir(parents=True, exist_ok=True)
    objcopy = require_tool("riscv64-unknown-elf-objcopy")
    subprocess.run([objcopy, "-O", "binary", elf, image], check=True)
    image.with_suffix(".elf").write_bytes(elf.read_bytes())
    return dataclasses.replace(build, firmware=image)


def _check_port(port: int) -> None:
    """Renode ends with a stack trace if somebody has the mailbox's port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise TrebuchetError(
                f"--mailbox-port {port}: {error.strerror}; choose another port"
            ) from error


def _with_monitor(script: Path, gui: bool, start: bool) -> int:
    """Renode with its monitor in this terminal, or with windows."""
    launcher = need_renode()
    options = [] if gui else ["--disable-gui", "--console"]
    options += ["-e", f"include @{script}", *(["-e", "start"] if start else [])]
    with starting(launcher):
        return subprocess.run([launcher, *options], check=False).returncode


def renode(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="Such as sim, versa_ecp5.")] = "sim",
    suites: Annotated[
        list[str] | None,
        typer.Argument(metavar="SUITE", help="With --robot: only these, by name or file."),
    ] = None,
    robot: Annotated[bool, typer.Option("--robot", help="Run the Robot Framework tests.")] = False,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, help="What --robot may take.")
    ] = ROBOT_SECONDS,
    gdb: Annotated[
        bool,
        typer.Option("--gdb", help=f"Wait for GDB on port {GDB_PORT} (and the next ones)."),
    ] = False,
    monitor: Annotated[
        bool, typer.Option("--monitor", help="Renode's monitor here, not the board's console.")
    ] = False,
    gui: Annotated[bool, typer.Option("--gui", help="Show the UART in a window.")] = False,
    print_only: Annotated[
        bool, typer.Option("--print-only", help="Write and check the files; needs no Renode.")
    ] = False,
    boards: Annotated[int, typer.Option(min=1, max=16, help="So many, on one switch.")] = 1,
    tap: Annotated[
        str | None, typer.Option(metavar="NAME", help="Join the switch to this TAP device.")
    ] = None,
    role: Annotated[
        str, typer.Option(help="What the model of the role slot does: none or loopback.")
    ] = "none",
    flash: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Contents of the flash; made if missing.")
    ] = None,
    firmware: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Another ELF of firmware for this board.")
    ] = None,
    mailbox_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Status page: 127.0.0.1:PORT/status.")
    ] = None,
) -> None:
    """Run a board in Renode: the same firmware, models of every register block."""
    console = Console(stderr=True)
    if suites and not robot:
        raise TrebuchetError(f"suites are for --robot; leave out {suites[0]!r}, or add that")
    if robot:
        find_suites(suites or ())
    check_role(role)
    _check_tap(tap)
    check_files({"flash": flash if boards == 1 else None})
    if firmware is not None:
        _check_elf(firmware)
    if not print_only:
        check_version(need_renode())
    if boards > 1 and mailbox_port:
        raise TrebuchetError("several boards cannot have one --mailbox-port; give it for one board")
    if mailbox_port and not print_only:
        _check_port(mailbox_port)
    build = read_build(_build(board, console))
    if firmware is not None:
        build = _other_firmware(build, firmware)
    need_firmware(build)
    if robot:
        raise typer.Exit(run_suites(build, suites or (), timeout))
    folder = build.folder / "renode"
    platforms = [
        describe(build, role=role, mailbox_port=mailbox_port, flash=path)
        for path in board_flashes(build, boards, flash, folder)
    ]
    terminal = None if monitor or gui or print_only else free_port()
    script = emit.write(
        platforms,
        folder,
        build.board,
        tap=tap,
        gdb=GDB_PORT if gdb else None,
        gui=gui,
        terminal=terminal,
    )
    if print_only:
        for name in emit.machines(build.board, boards):
            typer.echo(folder / f"{name}.repl")
        typer.echo(script)
        return
    if gdb:
        console.print(f"GDB starts the board: target remote :{GDB_PORT}, then continue")
    if terminal is None:
        raise typer.Exit(_with_monitor(script, gui, start=not gdb))
    console.print("The board's console; Control-] ends it.")
    raise typer.Exit(run_with_console(need_renode(), script, terminal, start=not gdb))
