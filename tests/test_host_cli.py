"""The command: lazy loading, and one clear line for every failure."""

import json
import os
import subprocess
import sys

import pytest
import typer
from trebuchet import __version__
from trebuchet.host import cli
from trebuchet.models.errors import TrebuchetError


def run(*args, env=None):
    code = "import sys; from trebuchet.host.cli import main; main(sys.argv[1:])"
    return subprocess.run(
        [sys.executable, "-c", code, *args],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
    )


def test_version():
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"trebuchet {__version__}\n")


def test_help_lists_every_command_and_imports_none():
    code = (
        "import sys\nfrom trebuchet.host.cli import main\n"
        "try:\n    main(['--help'])\nfinally:\n"
        "    bad = {'amaranth', 'litex', 'migen', 'numpy'} & set(sys.modules)\n"
        "    print('IMPORTED', sorted(bad))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0
    assert result.stdout.endswith("IMPORTED []\n")
    for name in cli.COMMANDS:
        assert f" {name} " in result.stdout


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_loads(name):
    """Each string in the table names a command that exists, and `--help` of it works."""
    result = run(name, "--help")
    assert result.returncode == 0, result.stderr
    assert "Usage: trebuchet " + name in result.stdout


def test_unknown_command_is_wrong_usage():
    result = run("fly")
    assert result.returncode == 2
    assert "No such command 'fly'" in result.stderr


def test_errors_become_one_line():
    assert cli.explain(TrebuchetError("no board at x")) == (1, "no board at x")
    code, line = cli.explain(ModuleNotFoundError("No module named 'amaranth'", name="amaranth"))
    assert code == 1
    assert "needs the Python package 'amaranth'" in line
    code, line = cli.explain(ModuleNotFoundError("x", name="trebuchet.lost"))
    assert code == cli.EXIT_BUG
    code, line = cli.explain(ZeroDivisionError("division by zero"))
    assert code == cli.EXIT_BUG
    assert "ZeroDivisionError: division by zero" in line
    assert "--debug" in line


@pytest.mark.parametrize("debug", [False, True])
def test_main_prints_the_line_and_keeps_the_traceback_for_debug(monkeypatch, capsys, debug):
    def fail() -> None:
        raise TrebuchetError("the board\nis gone")

    monkeypatch.setattr(cli, "fail", fail, raising=False)
    monkeypatch.setitem(cli.COMMANDS, "fail", cli.LazyEntry("trebuchet.host.cli:fail", "Fail."))
    monkeypatch.setenv("TREBUCHET_DEBUG", "0")
    with pytest.raises(SystemExit) as caught:
        cli.main(["--debug", "fail"] if debug else ["fail"])
    assert caught.value.code == 1
    stderr = capsys.readouterr().err
    assert stderr.endswith("trebuchet: the board is gone\n")
    assert ("Traceback" in stderr) is debug


def test_lazy_command_may_be_an_application_with_commands(monkeypatch, capsys):
    tree = typer.Typer()

    @tree.command("one")
    def one(number: int) -> None:
        typer.echo(json.dumps({"one": number}))

    @tree.command("two")
    def two() -> None:
        typer.echo("two")

    monkeypatch.setattr(cli, "tree", tree, raising=False)
    monkeypatch.setitem(cli.COMMANDS, "t", cli.LazyEntry("trebuchet.host.cli:tree", "Tree."))
    with pytest.raises(SystemExit) as caught:
        cli.main(["t", "one", "7"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == '{"one": 7}\n'
