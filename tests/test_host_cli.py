"""The command: lazy loading, and one clear line for every failure."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import typer
from trebuchet import __version__
from trebuchet.host import cli, entry
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


def test_a_name_near_a_command_is_suggested():
    assert "No such command 'stat'. Did you mean 'status'?" in run("stat").stderr
    assert "There is no" not in run("fly").stderr
    line = run("build", "ecpx5").stderr
    assert line.startswith("trebuchet: there is no board 'ecpx5', did you mean 'ecpix5'?; ")


@pytest.mark.parametrize("words", [(), ("board",), ("board", "list"), ("prove",)])
def test_help_is_asked_for_by_h(words):
    """Options that take no value have no type; paragraphs are wrapped at the terminal only."""
    result = run(*words, "-h", env={"COLUMNS": "300", "TERMINAL_WIDTH": "300"})
    assert result.returncode == 0
    assert "<bool>" not in result.stdout
    assert "Show this message and exit." in result.stdout
    if words == ("prove",):
        assert "failures come first in the table at the end, and are shown" in result.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_commands(shell):
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # the shell is an argument then
    script = run("--show-completion", shell, env=named).stdout
    assert "_TREBUCHET_COMPLETE" in script
    state = {"_TREBUCHET_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": "trebuchet sta"}
    state |= {"COMP_WORDS": "trebuchet sta", "COMP_CWORD": "1"}
    state["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    assert "status" in run(env=state).stdout


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


MODULE = [sys.executable, "-m", "trebuchet.host.cli"]
#: Environments in which Python's standard streams or files are not UTF-8.
ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "cp1252, strict": {"PYTHONIOENCODING": "cp1252:strict"},
    "C": {"LC_ALL": "C"},
    "C as it is": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    "POSIX, ascii": {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"},
}
SHORT = {
    "help": ["--help"],
    "sim": ["sim", "--help"],
    "ecg": ["ecg", "run", "--record", "synthetic", "--minutes", "0.2"],
    "board": ["board", "list"],
    "role": ["role", "csr", "ecg", "--svd"],
    "error": ["ecg", "run", "--record", "Müller µV 心 \udcff"],
    "no file": ["image", "show", "ü\udcff"],
}


@pytest.mark.parametrize(
    "command",
    [
        name
        if name in ("help", "board", "error")
        else pytest.param(name, marks=pytest.mark.nightly)
        for name in SHORT
    ],
)
@pytest.mark.parametrize("kind", ENCODINGS)
def test_output_in_any_encoding(tmp_path, kind, command):
    names = ("PYTHONIOENCODING", "PYTHONUTF8", "LANG")
    kept = {name: value for name, value in os.environ.items() if name not in names}
    environment = kept | {"XDG_CACHE_HOME": str(tmp_path)} | ENCODINGS[kind]
    result = subprocess.run([*MODULE, *SHORT[command]], capture_output=True, env=environment)
    assert b"internal error" not in result.stderr
    assert b"Traceback" not in result.stderr
    assert result.returncode == (1 if command in ("error", "no file") else 0), result.stderr
    if command == "error":
        assert result.stderr.startswith(b"trebuchet: there is no record M")


def test_files_are_utf_8_in_any_locale(tmp_path):
    """Commands write files with text that the locale's encoding lacks."""
    code = "from trebuchet.host.output import use_utf8\nuse_utf8()\nimport pathlib, sys\n"
    code += "pathlib.Path(sys.argv[1]).write_text('\\u00b5 \\u2026')"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    subprocess.run([sys.executable, "-c", code, tmp_path / "x"], env=environment, check=True)
    assert (tmp_path / "x").read_bytes() == "µ …".encode()


@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("command", ["help", "ecg", "board", "role"])
def test_a_full_disk_on_standard_output_is_one_line(tmp_path, command, unbuffered):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    environment |= {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*MODULE, *SHORT[command]], stdout=full, stderr=subprocess.PIPE, env=environment
        )
    assert result.stderr == b"trebuchet: cannot write the output: No space left on device\n"
    assert result.returncode == 1


@pytest.mark.parametrize("command", ["help", "ecg", "error"])
def test_full_or_closed_streams_end_a_command_without_a_bug(tmp_path, command):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    for streams in (">/dev/full 2>&1", ">&-", "2>/dev/full", "2>&-", ">&- 2>&-", "| true"):
        line = f'set -o pipefail; "$@" {streams}'
        words = ["bash", "-c", line, "bash", *MODULE, *SHORT[command]]
        result = subprocess.run(words, capture_output=True, env=environment)
        assert result.returncode in (0, 1), (streams, result.stderr)
        assert b"internal error" not in result.stderr
        assert b"Traceback" not in result.stderr
        assert b"Exception ignored" not in result.stderr


def test_a_full_disk_under_a_file_names_it():
    error = OSError(errno.ENOSPC, "No space left on device", "x.json")
    assert cli.explain(error) == (1, "cannot write x.json: No space left on device")


MAKERS = [name for name, entry in cli.COMMANDS.items() if entry.makes]


@pytest.mark.parametrize("name", MAKERS)
def test_a_checkout_that_make_cannot_build_in_is_named_first(monkeypatch, capsys, tmp_path, name):
    tree = tmp_path / "mein Ordner"
    tree.mkdir()
    (tree / "pyproject.toml").touch()
    monkeypatch.setattr(cli, "TREE", tree)
    words = {"build": ["sim"], "run": ["sim"], "nightly": ["--list"]}.get(name, [])
    with pytest.raises(SystemExit) as ended:
        cli.main([name, *words])
    assert ended.value.code == 1
    line = f"trebuchet: make cannot build in {str(tree)!r}, which has a space in it; "
    assert capsys.readouterr().err == f"{line}move the checkout to a folder without\n"
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    assert ended.value.code == 0


def test_the_folder_of_builds_is_checked_too(monkeypatch, capsys):
    monkeypatch.setenv("TREBUCHET_BUILD", "/tmp/a#b")
    with pytest.raises(SystemExit):
        cli.main(["sim"])
    assert capsys.readouterr().err == (
        "trebuchet: make cannot build in '/tmp/a#b', which has # in it; "
        "move the folder of TREBUCHET_BUILD to a folder without\n"
    )


@pytest.mark.parametrize("command", ["node", "jobd --node 127.0.0.1:1 --user-port 0 --node-port 0"])
def test_a_signal_ends_the_compiler_of_the_job_server(tmp_path, command):
    """SIGTERM came to the command alone, and its compiler went on."""
    started, programs = tmp_path / "started", tmp_path / "bin"
    programs.mkdir()
    make = programs / "make"
    make.write_text(
        f"#!/bin/sh\necho $$ > {started}.new\nmv {started}.new {started}\nexec sleep 600\n"
    )
    make.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "TREBUCHET_BUILD": str(tmp_path / "build")}
    words = [sys.executable, "-m", "trebuchet.host.cli", *command.split()]
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE) as process:
        while not started.exists():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(int(started.read_text()), 0)
    names = [path.name for path in (tmp_path / "build" / "jobd").iterdir() if path.is_dir()]
    assert all(name.endswith(".new") for name in names), f"half a build passes as whole: {names}"


def test_an_interrupt_while_the_command_is_imported(monkeypatch):
    class Interrupt:
        def find_spec(self, name, path=None, target=None):
            if name == cli.__name__:
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, cli.__name__)
    monkeypatch.setattr(sys, "meta_path", [Interrupt(), *sys.meta_path])
    with pytest.raises(SystemExit) as end:
        entry.main()
    assert end.value.code == 130
