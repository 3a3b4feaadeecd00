"""`trebuchet doctor`: what it finds, what it says about the rest."""

import json
from contextlib import nullcontext

import pytest
import typer
from trebuchet.host import doctor as module
from trebuchet.host.doctor import CHECKS, Check, command, distribution, either, examine
from trebuchet.models import renode


def test_finds_a_program_and_its_version(tmp_path, monkeypatch):
    tool = tmp_path / "frobnicate"
    tool.write_text("#!/bin/sh\necho 'Frobnicate Pro 12.34 (build 5)'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert command("frobnicate")() == (str(tool), "12.34")


def test_a_program_that_fails_counts_as_missing(tmp_path, monkeypatch):
    tool = tmp_path / "frobnicate"
    tool.write_text("#!/bin/sh\nexit 3\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert command("frobnicate")() is None


@pytest.mark.parametrize(
    ("contents", "version"),
    [
        (b"no program", None),
        (b"#!/nowhere/interpreter\n", None),
        (b"#!/bin/sh\nexec sleep 60\n", None),
        (b"#!/bin/sh\nprintf '\\377\\n'\n", "unknown"),
        (b"#!/bin/sh\nprintf 'Renode \\377 v1.16.1.2\\n'\n", "1.16.1"),
    ],
)
def test_what_the_variable_names_may_be_anything(tmp_path, monkeypatch, contents, version):
    tool = tmp_path / "renode"
    tool.write_bytes(contents)
    tool.chmod(0o755)
    monkeypatch.setenv("RENODE", str(tool))
    monkeypatch.setattr(renode, "_VERSION_SECONDS", 0.5, raising=False)
    assert module.renode() == (version and (str(tool), version))


def test_output_of_a_program_that_is_no_utf8(tmp_path, monkeypatch):
    tool = tmp_path / "frobnicate"
    tool.write_bytes(b"#!/bin/sh\nprintf '\\377 1.2\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert command("frobnicate")() == (str(tool), "1.2")


def test_distribution_and_either():
    where, version = distribution("pytest")()
    assert version == pytest.__version__
    assert where
    assert distribution("no-such-distribution")() is None
    assert either(distribution("no-such-distribution"), distribution("pytest"))()[1] == version


def test_checks_are_distinct_and_say_what_to_do():
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert all(check.hint for check in CHECKS)


def test_nothing_needed_for_the_demo_is_missing_here():
    """The set-up of this checkout did its work."""
    lacking = [f for f in examine() if not f.ok and f.needed_for == "demo"]
    assert lacking == []


@pytest.mark.parametrize(("needed_for", "code"), [("demo", 1), ("renode", 0)])
def test_exit_code_tells_whether_the_demo_can_run(monkeypatch, capsys, needed_for, code):
    checks = (
        Check("there", "demo", lambda: ("/bin/there", "1.2"), "get there"),
        Check("gone", needed_for, lambda: None, "get gone"),
    )
    monkeypatch.setattr(module, "examine", lambda: examine(checks))
    caught = 0
    try:
        module.doctor(as_json=True)
    except typer.Exit as leave:
        caught = leave.exit_code
    out = capsys.readouterr()
    assert caught == code
    there, gone = json.loads(out.out)
    assert (there["ok"], there["where"], there["version"]) == (True, "/bin/there", "1.2")
    assert (gone["ok"], gone["hint"]) == (False, "get gone")
    assert ("missing for the demo: gone" in out.err) == bool(code)
    with pytest.raises(typer.Exit) if code else nullcontext():
        module.doctor(as_json=False)
    table = capsys.readouterr().out
    assert "/bin/there" in table
    assert "get gone" in table
