"""Lint and types do not depend on where the checkout lies, or what its folder is called."""

import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.whole_tree

#: A folder of the build, because a file system of /tmp may be another; and what lies in it.
PLACES = {"name": "trebuchet", "path": "mein Ordner ü/x"}


@pytest.fixture(params=["path", pytest.param("name", marks=pytest.mark.nightly)])
def copy(root, request):
    """The tracked files in another place, with this environment as their `.venv`."""
    top = root / "build" / "lint" / request.param
    shutil.rmtree(top, ignore_errors=True)
    place = top / PLACES[request.param]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).exists():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, place / name)
    # What it installs is no matter here, and it would install.
    (place / "tools" / "bootstrap.py").write_text("")
    environment = place / ".venv" / "bin"
    environment.mkdir(parents=True)
    (environment / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (environment / "python").chmod(0o755)
    yield place
    shutil.rmtree(top)


@pytest.mark.slow
def test_lint_and_types_pass_wherever_the_checkout_lies(copy):
    for target in ("lint", "types"):
        done = subprocess.run(
            ["make", target], cwd=copy, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "files already formatted"
        in subprocess.run(
            [sys.executable, "-m", "ruff", "format", "--check", "."],
            cwd=copy,
            capture_output=True,
            text=True,
        ).stdout
    )


def test_order_of_imports_does_not_depend_on_the_folder(root, tmp_path):
    """The cheap part: one file of the tests in folders of both kinds."""
    for name in ("trebuchet", "x"):
        folder = tmp_path / name
        folder.mkdir()
        for path in (root / "pyproject.toml", root / "tests" / "test_smp.py", root / "README.md"):
            shutil.copy2(path, folder / path.name)
        (folder / "__init__.py").touch()
        done = subprocess.run(
            [sys.executable, "-m", "ruff", "check", "--no-cache", "."],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
