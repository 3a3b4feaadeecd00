"""``trebuchet renode``: a board in Renode."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ...models import config_block
from ...models.errors import TrebuchetError
from ...models.renode import need_renode, starting
from . import emit
from .client import free_port
from .platform import Build, describe, read_build, role_of

__all__ = ["renode"]

#: The suites are tests, which use the host's clients.
ROBOT = Path(__file__).resolve().parents[2] / "tests" / "renode_suites"

GDB_PORT = 3333


def _build(board: str, console: Console) -> Path:
    """Where the board's maps and firmware lie; they are made unless they are there."""
    from ...soc.build import build_software

    with console.status("Generating the register maps and the firmware …"):
        folder: Path = build_software(board)
    return folder


def _start(script: Path, gui: bool) -> int:
    launcher = need_renode()
    options = [] if gui else ["--disable-gui", "--console"]
    with starting(launcher):
        return subprocess.run(
            [launcher, *options, "-e", f"include @{script}", "-e", "start"], check=False
        ).returncode


#: The header of an image lies in the last sector of its slot (firmware/image.c).
_SECTOR = 4096


def _flash_files(build: Build, folder: Path) -> dict[str, Path]:
    """Flashes that the suites need, by name; none for a board without one.

    ``bad_image``: the application slot holds a damaged image; ``dhcp``: the configuration has
    DHCP on.
    """
    size = build.constants.get("trebuchet_flash_size")
    if size is None:
        return {}
    slot = build.constants["trebuchet_flash_firmware"]
    header = slot + build.constants["trebuchet_flash_firmware_bytes"] - _SECTOR
    parts = {
        "bad_image": (header, b"TBIM" + bytes(range(60))),
        "dhcp": (build.constants["trebuchet_flash_config"], config_block.pack("dhcp=1\n", 1)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, (at, part) in parts.items():
        contents = bytearray(b"\xff" * size)
        contents[at : at + len(part)] = part
        paths[name] = folder / f"{name}.flash"
        paths[name].write_bytes(contents)
    return paths


def _flash_variables(build: Build, folder: Path) -> dict[str, object]:
    """The suites' variables about flash; without them the tests of it skip themselves."""
    name, files = build.board, _flash_files(build, folder)
    variables: dict[str, object] = {}
    for kind, path in files.items():
        platform = describe(build, flash=path)
        variables[f"SCRIPT_{kind.upper()}"] = emit.write(platform, folder, f"{name}_{kind}")
    if files:
        flash = folder / "managed.flash"
        managed = describe(build, role="loopback", mailbox_port=0, flash=flash)
        variables |= {
            "SCRIPT_MANAGED": emit.write(managed, folder, f"{name}_managed"),
            "FLASH": flash,
            "APPLICATION": build.firmware.with_name("application.bin"),
        }
    return variables


def _robot(build: Build) -> int:
    """The Robot Framework suite, by the runner that comes with Renode."""
    launcher = need_renode().resolve()
    runner = launcher.with_name("renode-test")
    if not runner.is_file():
        raise TrebuchetError(f"the test runner renode-test must lie beside {launcher}")
    folder, name = build.folder / "renode", build.board
    plain, loopback = describe(build), describe(build, role="loopback")
    variables: dict[str, object] = {
        "NAME": f"{name}_two",
        "SCRIPT": emit.write(plain, folder, name),
        "SCRIPT_TWO": emit.write(plain, folder, f"{name}_two", boards=2),
        "SCRIPT_LOOPBACK": emit.write(loopback, folder, f"{name}_loopback"),
        "ELF": build.elf,
        "BOARD": name,
        "PYTHON": sys.executable,
        "ROLE": role_of(build),
        "ROLE_BASE": hex(build.regions[role_of(build)]),
        "SCRATCH": f"0x{build.csrs['ctrl_scratch']['addr']:x}",
        # Suites of what a firmware does not have skip themselves.
        "HAS_CONSOLE": b"trebuchet> " in build.firmware.read_bytes(),
        **_flash_variables(build, folder),
    }
    options = [f"--variable={key}:{value}" for key, value in variables.items()]
    suites = sorted(ROBOT.glob("*.robot"))
    with starting(runner):
        return subprocess.run(
            # Renode chooses a port by itself, too, but another Renode may have it already.
            [runner, "-P", str(free_port()), *options, "-r", folder / "robot", *suites],
            cwd=folder,
            check=False,
        ).returncode


def renode(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="Such as sim, versa_ecp5.")] = "sim",
    robot: Annotated[bool, typer.Option("--robot", help="Run the Robot Framework tests.")] = False,
    gdb: Annotated[
        bool, typer.Option("--gdb", help=f"Wait for GDB on port {GDB_PORT} (and the next ones).")
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
    mailbox_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Status page: 127.0.0.1:PORT/status.")
    ] = None,
) -> None:
    """Run a board in Renode: the same firmware, models of every register block."""
    console = Console(stderr=True)
    if not print_only:
        need_renode()
    if boards > 1 and mailbox_port:
        raise TrebuchetError("several boards cannot have one --mailbox-port; give it for one board")
    build = read_build(_build(board, console))
    if robot:
        raise typer.Exit(_robot(build))
    platform = describe(build, role=role, mailbox_port=mailbox_port, flash=flash)
    script = emit.write(
        platform,
        build.folder / "renode",
        build.board,
        boards=boards,
        tap=tap,
        gdb=GDB_PORT if gdb else None,
        gui=gui,
    )
    if print_only:
        typer.echo(script.with_suffix(".repl"))
        typer.echo(script)
        return
    raise typer.Exit(_start(script, gui))
