"""Platforms that could be ported to, and the board files that a port begins with."""

import json
import re

import pytest
from trebuchet.boards import NAMES, load_board
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc.candidates import board_file, candidate, candidates
from typer.testing import CliRunner

#: Those without a board of ours that a file can be written for, with the device to name.
NEW = {
    "colorlight_5a_75e": None,
    "colorlight_i5a_907": None,
    "machdyne_kopflos": "45F",
    "machdyne_mozart_ml1": None,
    "muselab_icesugar_pro": None,
    "rcs_arctic_tern_bmc_card": None,
}


def test_what_a_platform_has():
    found = {entry.platform: entry for entry in candidates()}
    versa = found["lattice_versa_ecp5"]
    assert (versa.ethernet, versa.memory, versa.memory_bits) == ("rgmii", "ddram", 16)
    assert (versa.target, versa.chips) == ("lattice_versa_ecp5", ("MT41K64M16",))
    assert versa.boards == ("versa_ecp5",)
    assert not versa.lacks
    assert found["colorlight_5a_75b"].target == "colorlight_5a_75x"
    assert not found["colorlight_5a_75b"].masks
    assert found["machdyne_kopflos"].ethernet == "rmii"
    assert found["fpc_iii"].lacks[-1] == "a PHY of rgmii or rmii: it has mii"
    assert found["lattice_ecp5_evn"].lacks[0] == "memory"
    assert "kosagi_fomu_evt" not in found  # of another FPGA
    ours = {board for entry in candidates() for board in entry.boards}
    assert ours <= set(NAMES)


def test_those_without_a_board_are_the_ones_that_are_tried_here():
    assert {e.platform for e in candidates() if not e.lacks and not e.boards} == set(NEW)


@pytest.mark.parametrize("platform", NEW)
def test_a_new_file_describes_a_board(tmp_path, platform):
    """`trebuchet board check` generates its SoC as well, which nightly tests do."""
    path = tmp_path / "my_board.py"
    path.write_text(board_file("my_board", platform, NEW[platform]))
    board = load_board(path)
    assert board.name == "my_board"
    assert board.device == board.platform().device
    assert re.search(r"\n\n\nBOARD", path.read_text())


@pytest.mark.nightly
@pytest.mark.parametrize("platform", NEW)
def test_a_new_file_passes_the_check(tmp_path, monkeypatch, platform):
    words = ["board", "new", f"my_{platform}"[:24], "--from", platform]
    words += ["--device", NEW[platform]] if NEW[platform] else []
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    made = runner.invoke(app, words)
    assert made.exit_code == 0, made.exception
    (command,) = re.findall(r"trebuchet (board check \S+)", made.output)
    checked = runner.invoke(app, command.split())
    assert checked.exit_code == 0, checked.exception
    assert str(runner.invoke(app, words).exception).endswith("exists already; choose another name")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("b", "logicbon"),
            "there is no platform 'logicbon' with an ECP5, did you mean 'logicbone'",
        ),
        (
            ("b", "fpc_iii"),
            "platform fpc_iii lacks a console, a PHY of rgmii or rmii: it has mii; ",
        ),
        (
            ("b", "machdyne_kopflos"),
            "platform machdyne_kopflos: an LFE5U-12F-6BG256 has no room fo",
        ),
        (
            ("b", "logicbone", "33F"),
            "platform logicbone: we cannot write a file for its LFE5UM5G-3",
        ),
        (("b", "trellisboard", "45F"), "there is no platform trellisboard(device='45F'): TypeErro"),
    ],
)
def test_what_cannot_be_ported_is_said(words, message):
    with pytest.raises(TrebuchetError) as caught:
        board_file(*words)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("name", ["Board", "versa_ecp5", "x" * 25, "../b"])
def test_names_of_new_boards(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["board", "new", name, "--from", "logicbone"])
    assert str(done.exception).startswith("a board's name must be up to 24 lower-case letters")
    assert not list(tmp_path.rglob("*.py"))


def test_the_commands_list_them():
    runner = CliRunner()
    rows = json.loads(runner.invoke(app, ["board", "candidates", "--json"]).output)
    assert {row["platform"] for row in rows} == {e.platform for e in candidates() if not e.lacks}
    table = runner.invoke(app, ["board", "candidates"], env={"COLUMNS": "80"}).output
    words = [line.split() for line in table.splitlines()]
    assert ["trellisboard", "LFE5UM5G-85F-8BG756C", "DDR3", "x32", "rgmii", "yes"] in words
    assert [candidate("machdyne_kopflos").platform, "LFE5U-", "DDR3", "x16", "rmii", "-"] in words
    assert "hackaday_hadbadge" in runner.invoke(app, ["board", "candidates", "--all"]).output
