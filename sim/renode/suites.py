"""The Robot Framework suites, ours and the user's, by the runner that comes with Renode."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from ...models.ending import start_group
from ...models.errors import TrebuchetError
from ...models.renode import need_renode, starting
from . import emit
from .client import free_port
from .flashes import board_flashes, suite_flashes
from .platform import Build, describe, role_of

__all__ = ["find_suites", "run_suites"]

#: The suites are tests, which use the host's clients.
ROBOT = Path(__file__).resolve().parents[2] / "tests" / "renode_suites"


def find_suites(names: Sequence[str]) -> list[Path]:
    """Suites by name (``boot``) or by path; all of ours if none is named."""
    ours = {path.stem: path for path in sorted(ROBOT.glob("*.robot"))}
    found = []
    for name in names:
        path = ours.get(name, Path(name).resolve())
        if not path.exists():
            known = ", ".join(ours)
            raise TrebuchetError(f"there is no suite {name!r}; ours are {known}, or give a file")
        found.append(path)
    return found or list(ours.values())


def _flash_variables(build: Build, folder: Path) -> dict[str, object]:
    """The suites' variables about flash; without them the tests of it skip themselves."""
    name, files = build.board, suite_flashes(build, folder)
    variables: dict[str, object] = {}
    for kind, path in files.items():
        platform = describe(build, flash=path)
        variables[f"SCRIPT_{kind.upper()}"] = emit.write([platform], folder, f"{name}_{kind}")
    if files:
        flash = folder / "managed.flash"
        managed = describe(build, role="loopback", mailbox_port=0, flash=flash)
        two = [describe(build, flash=path) for path in board_flashes(build, 2, None, folder)]
        variables |= {
            "SCRIPT_MANAGED": emit.write([managed], folder, f"{name}_managed"),
            "SCRIPT_TWO": emit.write(two, folder, f"{name}_two"),
            "FLASH": flash,
            "APPLICATION": build.firmware.with_name("application.bin"),
        }
    return variables


def _variables(build: Build, folder: Path) -> dict[str, object]:
    """What a suite may use, whoever wrote it."""
    name = build.board
    plain, loopback = describe(build), describe(build, role="loopback")
    return {
        "NAME": f"{name}_two",
        "SCRIPT": emit.write([plain], folder, name),
        "SCRIPT_LOOPBACK": emit.write([loopback], folder, f"{name}_loopback"),
        "ELF": build.elf,
        "BOARD": name,
        "PYTHON": sys.executable,
        "ROLE": role_of(build),
        "ROLE_BASE": hex(build.regions[role_of(build)]),
        "SCRATCH": f"0x{build.csrs['ctrl_scratch']['addr']:x}",
        # Suites of what a firmware does not have skip themselves.
        "HAS_CONSOLE": b"trebuchet> " in build.firmware.read_bytes(),
        "RAM": hex(_untouched(build)),
        "SUITES": ROBOT,  # where trebuchet.resource is, for suites that lie elsewhere
        **_flash_variables(build, folder),
    }


def _untouched(build: Build) -> int:
    """Offset of what neither the firmware nor its memory test uses of main RAM: the last MiB."""
    return int(build.memories["main_ram"]["size"]) - (1 << 20)


def run_suites(build: Build, names: Sequence[str], timeout: float) -> int:
    """Run suites on a build; returns the runner's exit code, 0 if all passed.

    After ``timeout`` seconds everything is ended, and :class:`TrebuchetError` raised.
    """
    suites = find_suites(names)
    launcher = need_renode().resolve()
    runner = launcher.with_name("renode-test")
    if not runner.is_file():
        raise TrebuchetError(f"the test runner renode-test must lie beside {launcher}")
    folder = build.folder / "renode"
    options = [f"--variable={key}:{value}" for key, value in _variables(build, folder).items()]
    # Renode chooses a port by itself, too, but another Renode may have it already.
    command = [runner, "-P", free_port(), *options, "-r", folder / "robot", *suites]
    words = [str(word) for word in command]
    with starting(runner), start_group(words, cwd=folder) as process:  # Renode is in the group
        try:
            return process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise TrebuchetError(
                f"the suites did not end within {timeout:g} s; give more with --timeout, "
                f"or see {folder / 'robot'}"
            ) from None
