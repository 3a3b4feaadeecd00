"""The minimal clients of `examples/clients`, each made a command."""

import shutil
import subprocess

import pytest

__all__ = ["FOLDER", "MADE", "make_client", "run_client"]

FOLDER = "examples/clients"
#: How each is made a command, by the compiler or interpreter that must be there.
MADE = {
    "client.c": ("cc", ["cc", "-Wall", "-Werror", "-o", "{out}", "{source}"]),
    "client.go": ("go", ["go", "build", "-o", "{out}", "{source}"]),
    "client.rs": ("rustc", ["rustc", "-Dwarnings", "-o", "{out}", "{source}"]),
    "client.js": ("node", None),
    "client.sh": ("bash", None),
}


def _works(tool):
    """A tool is there; ``rustc`` may be but a link to a manager that has no compiler."""
    if shutil.which(tool) is None:
        return False
    return tool != "rustc" or not subprocess.run([tool, "-V"], capture_output=True).returncode


def make_client(root, name, folder):
    """The words that start a client, compiled in ``folder``; the test is skipped without tools."""
    tool, build = MADE[name]
    if not _works(tool):
        pytest.skip(f"{tool} is not here to build or run {name}")
    source = root / FOLDER / name
    if build is None:
        return [tool, str(source)]
    out = folder / "client"
    words = [word.format(out=out, source=source) for word in build]
    subprocess.run(words, check=True, cwd=folder)
    return [str(out)]


def run_client(command, host, port, text):
    words = [*command, host, str(port), text]
    return subprocess.run(words, capture_output=True, timeout=60)
