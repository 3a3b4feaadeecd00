"""tools/bootstrap.py: what it installs, what it says when it may not, when it does nothing."""

import importlib.util
import subprocess
import sys

import pytest
from trebuchet.soc.toolchain import LINKS


@pytest.fixture
def bootstrap(root, tmp_path, monkeypatch):
    """The script as a module, with a virtual environment of its own and nothing to run."""
    spec = importlib.util.spec_from_file_location("bootstrap", root / "tools" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ran = []
    monkeypatch.setattr(module, "run", lambda command, why, out=None: module.ran.append(command))
    monkeypatch.setattr(module, "VENV", tmp_path)
    return module


def test_nothing_to_do_here(root):
    """The set-up of this checkout is complete: a second run installs nothing and says nothing."""
    result = subprocess.run(
        [sys.executable, root / "tools" / "bootstrap.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert result.stdout + result.stderr == ""


def test_an_ordinary_user_gets_the_exact_line(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "missing_packages", lambda: ["g++", "iproute2"])
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.install_debian_packages()
    line = "sudo apt-get update && sudo apt-get install -y --no-install-recommends g++ iproute2"
    assert line in str(caught.value)
    assert bootstrap.ran == []


def test_root_gets_the_packages_installed(bootstrap, monkeypatch):
    answers = [["g++", "iproute2"], []]
    monkeypatch.setattr(bootstrap, "missing_packages", lambda: answers.pop(0))
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    bootstrap.install_debian_packages()
    update, install = bootstrap.ran
    assert update[:2] == ["apt-get", "update"]
    assert install[:2] == ["apt-get", "install"]
    assert install[-2:] == ["g++", "iproute2"]


def test_an_installation_that_does_not_help_is_an_error(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "missing_packages", lambda: ["g++"])
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    with pytest.raises(bootstrap.SetupError, match=r"still missing .*: g\+\+"):
        bootstrap.install_debian_packages()


def test_finds_out_what_is_missing(bootstrap, monkeypatch, tmp_path):
    assert bootstrap.is_there("sh")
    assert not bootstrap.is_there("no-such-program")
    monkeypatch.setattr(bootstrap, "PACKAGES", {"lost": "no-such-program"})
    monkeypatch.setattr(bootstrap, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(bootstrap, "has_venv", lambda python: False)
    monkeypatch.setattr(bootstrap, "find_python", lambda: "/opt/bin/python3.12")
    assert bootstrap.missing_packages() == ["lost", "python3.12-venv"]
    monkeypatch.setattr(bootstrap, "find_python", lambda: "/usr/bin/python3")
    assert bootstrap.missing_packages() == ["lost", "python3-venv"]
    monkeypatch.setattr(bootstrap, "find_python", lambda: None)
    assert bootstrap.missing_packages() == ["lost", "python3.11", "python3.11-venv"]


def test_stamps_are_keyed_by_content(bootstrap):
    done = []
    for key in ("a", "a", "b", "a"):
        bootstrap.stamped("step", key, lambda key=key: done.append(key))
    assert done == ["a", "b", "a"]


def test_a_step_that_fails_leaves_no_stamp(bootstrap, tmp_path):
    def fail():
        raise bootstrap.SetupError("no network")

    with pytest.raises(bootstrap.SetupError):
        bootstrap.stamped("step", "a", fail)
    assert list(tmp_path.iterdir()) == []


def test_build_tools_come_from_the_lock(bootstrap):
    entries = bootstrap.locked("setuptools", "wheel")
    assert [entry.partition("==")[0] for entry in entries] == ["setuptools", "wheel"]
    assert all("--hash=sha256:" in entry for entry in entries)
    bootstrap.install_python_packages()
    tools, everything = bootstrap.ran
    assert "--require-hashes" in tools
    assert "--require-hashes" in everything
    assert "--no-build-isolation" in everything


@pytest.mark.parametrize(("user", "cargo"), [(0, True), (1000, False)])
def test_what_only_tests_need(bootstrap, monkeypatch, user, cargo):
    """Root gets the packages, who has cargo the crates; nobody is asked for anything."""
    monkeypatch.setattr(bootstrap, "TEST_PACKAGES", {"liblwip-dev": "/nowhere/tcp.h"})
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: user)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: cargo or name != "cargo" or None)
    bootstrap.install_for_tests()
    said = [" ".join(map(str, command)) for command in bootstrap.ran]
    assert any(line.endswith(" liblwip-dev") for line in said) == (user == 0)
    assert any(line.startswith("cargo fetch -q --locked ") for line in said) == cargo


def test_what_only_tests_need_may_fail(bootstrap, monkeypatch, capsys):
    def run(command, why):
        raise bootstrap.SetupError(f"{why} failed")

    monkeypatch.setattr(bootstrap, "run", run)
    monkeypatch.setattr(bootstrap, "TEST_PACKAGES", {"liblwip-dev": "/nowhere/tcp.h"})
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: name)
    bootstrap.install_for_tests()
    said = capsys.readouterr().err.splitlines()
    assert set(said) == {"set-up: getting what some tests need failed; these tests will be skipped"}


def test_tools_compile_themselves_one_by_one_at_set_up(bootstrap):
    """All that stand in for a tool: two builds at once would run them for the first time."""
    bootstrap.compile_tools()
    assert {command[0].name for command in bootstrap.ran} >= set(LINKS.values())
