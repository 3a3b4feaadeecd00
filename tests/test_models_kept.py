"""What takes long to make is made once, and is whole or not there."""

import multiprocessing
import time

import pytest
from trebuchet.models.kept import kept


def slowly(folder):
    time.sleep(0.2)
    with (folder.parent / "made").open("a") as file:
        file.write("x")
    (folder / "result").write_text("whole")


def test_it_is_made_once_by_one_of_several_processes(tmp_path):
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        folders = pool.starmap(kept, [(tmp_path / "thing", slowly)] * 6)
    assert folders == [tmp_path / "thing"] * 6
    assert (tmp_path / "thing" / "result").read_text() == "whole"
    assert (tmp_path / "made").read_text() == "x"


def test_what_was_broken_off_is_made_again(tmp_path):
    def broken(folder):
        (folder / "half").write_text("half")
        raise RuntimeError("broken off")

    with pytest.raises(RuntimeError, match="broken off"):
        kept(tmp_path / "thing", broken)
    assert not (tmp_path / "thing").exists()
    kept(tmp_path / "thing", slowly)
    assert [path.name for path in (tmp_path / "thing").iterdir()] == ["result"]
