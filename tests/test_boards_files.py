"""Board files of one's own: where they may lie, and what is said of those that are wrong."""

import re

import pytest
from trebuchet.boards import BUILT, NAMES, VENDOR, load_board
from trebuchet.models.errors import TrebuchetError

GOOD = """
from trebuchet.boards import ecp5
from trebuchet.boards.schema import Board

BOARD = Board(
    name="mine", title="mine", flow="trellis", device="LFE5U-45F-6BG381C",
    sys_clk_hz=50_000_000, dram_bytes=32 << 20, platform=lambda: None, attach=lambda soc: None,
    lut4_budget=ecp5.COMB["45F"],
)
"""


@pytest.fixture
def written(tmp_path):
    """Writes a board file: ``written(text)``."""

    def write(text, name="my_board.py"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_a_file_anywhere_is_a_board(written, monkeypatch):
    path = written(GOOD)
    assert load_board(path).name == "mine"
    assert load_board(str(path)).lut4_budget == 43_848
    monkeypatch.chdir(path.parent)
    assert load_board("./my_board.py").name == "mine"
    assert load_board("my_board.py").name == "mine"


def test_a_boards_own_file_is_that_board(root):
    assert load_board(root / "boards" / "ecpix5.py") is load_board("ecpix5")


def test_two_boards_cannot_have_one_name(written):
    path = written(GOOD.replace('name="mine"', 'name="ulx3s"'))
    with pytest.raises(TrebuchetError, match="there is a board called 'ulx3s' already$"):
        load_board(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BOARD = 5\n", r"my_board\.py must define BOARD, a trebuchet\.boards\.schema\.Board$"),
        ("x = 1\n", r"my_board\.py must define BOARD"),
        ("x = 1\nBOARD = (\n", r"my_board\.py:2: SyntaxError: "),
        ("\n\nimport nothing_like_this\n", r"my_board\.py:3: ModuleNotFoundError: No module named"),
        (
            GOOD.replace("title=", "tittle="),
            r"my_board\.py:5: TypeError: .*unexpected keyword argument 'tittle'$",
        ),
        (GOOD.replace("50_000_000", "50"), "^Board 'mine': sys_clk_hz must be an integer from "),
        (GOOD.replace('"45F"', '"44F"'), r"my_board\.py:\d+: KeyError: '44F'$"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(written, text, message):
    with pytest.raises(TrebuchetError, match=message) as caught:
        load_board(written(text))
    assert "\n" not in str(caught.value)


def test_unknown_boards():
    with pytest.raises(TrebuchetError, match=r"^there is no board file nothing\.py$"):
        load_board("./nothing.py")
    message = "^there is no board 'nexys'; the boards are: sim, .*; or name a file of yours"
    with pytest.raises(TrebuchetError, match=message):
        load_board("nexys")


@pytest.mark.parametrize("name", BUILT)
def test_a_board_says_how_many_luts_its_device_has(name):
    from trebuchet.boards import ecp5

    board = load_board(name)
    size = re.search(r"-(\d\dF)-", board.device)[1]
    assert board.lut4_budget == ecp5.COMB[size]
    assert board.loader


@pytest.mark.parametrize("name", [*BUILT, *VENDOR])
def test_a_board_file_is_short(name, root):
    """ "One file each, of at most 60 lines.\""""
    lines = (root / "boards" / f"{name}.py").read_text().splitlines()
    assert len(lines) <= 60


def test_names_are_sorted_behind_the_simulated_board():
    assert ("sim", *sorted((*BUILT, *VENDOR))) == NAMES
    assert list(BUILT) == sorted(BUILT)


@pytest.mark.parametrize(
    ("names", "flow"), [(("sim",), "sim"), (BUILT, "trellis"), (VENDOR, "vivado")]
)
def test_lists_of_boards_are_by_flow(names, flow):
    assert {load_board(name).flow for name in names} == {flow}


def test_the_guide_shows_a_board_that_is_built(root):
    text = (root / "docs" / "porting.md").read_text()
    block = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    assert block == (root / "boards" / "logicbone.py").read_text()
