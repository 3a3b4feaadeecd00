"""Each wrong input: one line with what was wrong and the next step; nothing partial; no trace."""

import re
import shlex
import socket
import threading

import pytest
from serving import serving
from trebuchet.host.cli import main
from wrong_inputs import BOARD_FILES, CASES, FILES, FOLDERS, LATE_CASES, MORE, PLANS

#: What a line has that says what to do next, or what would be right.
NEXT = re.compile(
    r"must be|must have|must define|may have|should be|did you mean|Did you mean|--help|docs/"
    r"|trebuchet [a-z]+|choose|there is no|one of|it has:|can be set|near it|another"
    r"|is it |is there|are there|is the path|try |give |name |use |leave |add |its only |install "
)

#: Lines of a step that took long, on a machine that is busy.
PROGRESS = re.compile(r": (\d+ s of about \d+ s|(done in|stopped after) \d+ s)$")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a user stands, with files that are wrong."""
    for stem, (text, _) in BOARD_FILES.items():
        (tmp_path / f"{stem}.py").write_text(text)
    for stem, (text, _) in PLANS.items():
        (tmp_path / f"{stem}.toml").write_text(text)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name, inside in FOLDERS.items():
        (tmp_path / name).mkdir()
        for file in inside:
            (tmp_path / name / file).write_text("x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # where simulations are found
    return tmp_path


@pytest.mark.parametrize(("words", "said"), CASES, ids=[words for words, _ in CASES])
def test_wrong_input(folder, capfd, words, said):
    out, _ = refused(folder, capfd, words, said)
    assert out == ""


@pytest.fixture(scope="module")
def hangs_up():
    """A port of this machine where each connection is closed at once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve():
            while True:
                try:
                    listener.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield str(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.fixture(scope="module")
def another():
    """Address of a server that is no board and answers ``GET /status`` with an object."""
    with serving(b'{"status": "up", "load": 0.5}') as address:
        yield address


@pytest.mark.parametrize(("words", "said"), MORE, ids=[words for words, _ in MORE])
def test_wrong_input_of_places_and_numbers(folder, hangs_up, another, capfd, words, said):
    words = words.replace("ANOTHER", another)
    words = words.replace("HANGS_UP", f"127.0.0.1:{hangs_up}").replace("PORT", hangs_up)
    out, _ = refused(folder, capfd, words, said)
    assert out == ""


@pytest.mark.slow
@pytest.mark.parametrize(("words", "said"), LATE_CASES, ids=[words for words, _ in LATE_CASES])
def test_what_is_found_late(folder, capfd, words, said):
    """The lines of the checks that passed come before."""
    out, _ = refused(folder, capfd, words, said)
    assert "build it with" not in out


def refused(folder, capfd, words, said):
    """Run a command that must fail; return what it printed on stdout and on stderr."""
    there = {path.name for path in folder.iterdir()}
    with pytest.raises(SystemExit) as end:
        main(shlex.split(words))
    out, err = capfd.readouterr()
    assert end.value.code in (1, 2), f"exit code {end.value.code}: {out}{err}"
    lines = [line for line in err.splitlines() if not PROGRESS.search(line)]
    assert len(lines) == 1, err
    assert lines[0].startswith("trebuchet: ")
    assert "Traceback" not in err
    assert "internal error" not in err
    assert said in lines[0]
    assert NEXT.search(lines[0].removeprefix("trebuchet: ")), f"no next step: {lines[0]}"
    left = {path.name for path in folder.iterdir()} - there - {"__pycache__"}
    assert not left, f"left behind: {left}"
    return out, err
