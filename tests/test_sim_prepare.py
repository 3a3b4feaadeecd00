"""Making a simulated board's parts in processes of their own, and how far they are."""

import os
import sys
import time
from contextlib import contextmanager

import pytest
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim import build, prepare
from trebuchet.soc.build import build_sim


@contextmanager
def child(monkeypatch, script):
    """What :func:`prepare.making` yields, with a script of our own in its place."""
    real = prepare.subprocess.Popen

    def popen(command, **options):
        assert command[1:3] == ["-m", "trebuchet.sim.prepare"]
        return real([sys.executable, "-c", script], **options)

    monkeypatch.setattr(prepare.subprocess, "Popen", popen)
    with prepare.making("common") as process:
        yield process


def test_a_part_that_fails_gives_its_reason(monkeypatch):
    script = "import sys; print('more', file=sys.stderr); sys.exit('g++ is missing')"
    with child(monkeypatch, script) as process:
        with pytest.raises(TrebuchetError, match="^making the simulated board failed: g.. is miss"):
            prepare.wait(process)


def test_a_part_that_is_made(monkeypatch):
    with child(monkeypatch, "") as process:
        prepare.wait(process)
    assert process.returncode == 0


def test_nothing_is_left_of_a_part_that_is_not_wanted_any_more(monkeypatch):
    script = "import subprocess; subprocess.run(['sleep', '1000'])"
    with pytest.raises(KeyError), child(monkeypatch, script) as process:
        raise KeyError
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_parts_are_made_by_name(monkeypatch):
    done = []
    monkeypatch.setattr(os, "nice", done.append)
    monkeypatch.setattr(build, "make_libraries", lambda: done.append("libraries"))
    prepare.main("common")
    assert done == [prepare.NICENESS["common"], "libraries"]

    def fail():
        raise TrebuchetError("no\ncompiler")

    monkeypatch.setitem(prepare.PARTS, "common", fail)
    with pytest.raises(SystemExit, match="^no compiler$"):
        prepare.main("common")


def test_what_is_compiled_is_counted(monkeypatch, tmp_path):
    monkeypatch.setattr(build, "build_folder", lambda: tmp_path)
    assert prepare.compiled() is None
    folder = tmp_path / "board-1.new" / "obj"
    folder.mkdir(parents=True)
    for name in ("a.cpp", "b.cpp", "a.o"):
        (folder / name).touch()
    assert prepare.compiled() == (1, 2)


def test_the_c_library_is_counted_from_the_log(monkeypatch, tmp_path):
    log = tmp_path / "litex.log"
    monkeypatch.setattr(prepare, "LOG", log)
    assert prepare.generated(0) is None
    log.write_text("SoC\n")
    assert prepare.generated(0) is None
    log.write_text("[1/886] a\n[2/886] b\n")
    assert prepare.generated(0) == (2, 886)
    assert prepare.generated(time.time() + 1000) is None, "of an earlier build"


def test_a_folder_with_a_space_is_refused_by_its_name(monkeypatch, tmp_path):
    """make splits names at spaces, and says so in its own way only."""
    monkeypatch.setenv("TREBUCHET_BUILD", str(tmp_path / "mein Ordner"))
    with pytest.raises(TrebuchetError, match="^make cannot build in .*mein Ordner.*has a space"):
        build.build_folder()
    with pytest.raises(TrebuchetError, match="^make cannot build in .*mein Ordner.*has a space"):
        build_sim(tmp_path / "mein Ordner" / "sim")
    assert list(tmp_path.iterdir()) == []


def test_comments_do_not_make_another_simulator(monkeypatch, tmp_path):
    """LiteX writes the time of the build into comments; directives to Verilator do count."""
    made = []
    monkeypatch.setattr(build, "kept", lambda folder, make: made.append(folder) or folder)
    texts = (
        "// Date : yesterday\nmodule top;\nendmodule\n",
        "// Date : today\nmodule top;\nendmodule\n",
        "// Date : today\n// verilator lint_off WIDTH\nmodule top;\nendmodule\n",
        "module top;\nwire a;\nendmodule\n",
    )
    found = []
    for text in texts:
        (tmp_path / "top.v").write_text(text)
        found.append(build.build(build.Source("board", "top", {}, (tmp_path / "top.v",))))
    assert found[0] == found[1]
    assert len({found[1], found[2], found[3]}) == 3
