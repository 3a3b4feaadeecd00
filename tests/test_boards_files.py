"""Board files of one's own: where they may lie, and what is said of those that are wrong."""

import re
from importlib.machinery import SourceFileLoader

import pytest
from trebuchet.boards import BUILT, NAMES, VENDOR, load_board
from trebuchet.boards.flash import flash_layout
from trebuchet.boards.presets import TCP_FIELDS, TCP_PRESETS
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
    with pytest.raises(TrebuchetError, match="there is a board called 'ulx3s' already; give "):
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
            r"my_board\.py:5: TypeError: .*unexpected keyword argument 'tittle'; docs/",
        ),
        (GOOD.replace("50_000_000", "50"), "^Board 'mine': sys_clk_hz must be an integer from "),
        (GOOD.replace('"45F"', '"44F"'), r"my_board\.py:\d+: KeyError: '44F'; docs/"),
        (
            GOOD.replace("lut4_budget", 'tcp="huge", lut4_budget'),
            r"^Board 'mine': tcp must be one of \('lean', 'tiny', 'small', .*\), not 'huge'$",
        ),
        (GOOD.replace("32 << 20", '"32M"'), "^Board 'mine': dram_bytes must be an integer from "),
        (GOOD.replace("lambda: None", "None"), "^Board 'mine': platform must be a function, not N"),
        ("", r"my_board\.py must define BOARD, a "),
        ("import sys\nsys.exit(3)\n", r"my_board\.py:2: SystemExit: 3; docs/"),
        ("\nraise GeneratorExit\n", r"my_board\.py:2: GeneratorExit; docs/"),
        (
            "def __getattr__(name):\n    raise ValueError(name)\n",
            r"my_board\.py:2: ValueError: BOARD; docs/",
        ),
        ("\nraise RuntimeError('a\\nb')\n", r"my_board\.py:2: RuntimeError: a b; docs/"),
        ("raise RuntimeError\n", r"my_board\.py:1: RuntimeError; docs/"),
        # Python 3.11.4 has made a SyntaxError of it.
        ("x\0y\n", r"my_board\.py: (Syntax|Value)Error: source code .* contain null bytes; docs/"),
        (
            "class Odd(Exception):\n    def __str__(self):\n        return 1 / 0\n\n\nraise Odd\n",
            r"my_board\.py:6: Odd; docs/",
        ),
    ],
)
def test_a_wrong_file_is_named_with_its_line(written, text, message):
    with pytest.raises(TrebuchetError, match=message) as caught:
        load_board(written(text))
    assert "\n" not in str(caught.value)


def test_the_line_is_told_of_a_relative_path_too(written, monkeypatch):
    monkeypatch.chdir(written("x = 1\nx.y\n").parent)
    with pytest.raises(TrebuchetError, match=r"^my_board\.py:2: AttributeError: "):
        load_board("my_board.py")


def test_a_file_that_is_no_text(written):
    path = written("")
    path.write_bytes(b'x = "\xff\xfe"\n')
    with pytest.raises(TrebuchetError, match=r"my_board\.py:1: SyntaxError: \(unicode error\) "):
        load_board(path)


def test_the_line_is_told_through_a_link_too(written, tmp_path):
    written("x = 1\nx.y\n")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(TrebuchetError, match=r"link/my_board\.py:2: AttributeError: "):
        load_board(tmp_path / "link" / "my_board.py")


def test_names_of_files(written, tmp_path, root):
    assert load_board(written(GOOD, "my.own.board.py")).name == "mine"
    written(GOOD, "no_suffix")
    with pytest.raises(TrebuchetError, match=r"must end in \.py, not \S+no_suffix$"):
        load_board(tmp_path / "no_suffix")
    (tmp_path / "my_link.py").symlink_to(root / "boards" / "ecpix5.py")
    assert load_board(tmp_path / "my_link.py") is load_board("ecpix5")


def test_a_file_outside_the_tree_is_remembered(written, root):
    path = written("from trebuchet.boards.ecpix5 import BOARD as B\nBOARD = B.variant(name='b')\n")
    assert load_board(path).source == path.resolve()
    assert load_board("ecpix5").source is load_board(root / "boards" / "ecpix5.py").source is None


def test_a_folder_is_no_board_file(tmp_path):
    with pytest.raises(TrebuchetError, match=r" is a folder, not a board file; name a file in it$"):
        load_board(f"{tmp_path}/")


def test_a_file_that_may_not_be_read(written, monkeypatch):
    """By whoever runs the tests it always may, so the loader says that it may not."""

    def refuse(self, path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(SourceFileLoader, "get_data", refuse)
    with pytest.raises(TrebuchetError, match=r"my_board\.py: PermissionError: .*Permission denied"):
        load_board(written(GOOD))


def test_unknown_boards():
    with pytest.raises(TrebuchetError, match=r"^there is no board file nothing\.py$"):
        load_board("./nothing.py")
    message = "^there is no board 'nexys'; the boards are: sim, .*; or name a file of yours"
    with pytest.raises(TrebuchetError, match=message):
        load_board("nexys")


@pytest.mark.parametrize("name", BUILT)
def test_a_board_has_the_luts_of_its_device_and_a_loader(name):
    board = load_board(name)
    size = re.search(r"-(\d\dF)-", board.device)[1]
    assert board.lut4_budget == {"25F": 24_288, "45F": 43_848, "85F": 83_640}[size]
    assert board.loader


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"45F"]', '"85F"]', "lut4_budget must be 43848 with device 'LFE5U-45F-6BG381C', or left "),
        ('ecp5.COMB["45F"]', "0", "lut4_budget must be 43848 with device 'LFE5U-45F-6BG381C', or "),
        ("LFE5U-45F", "LFE5U-44F", "device must be an ECP5 like LFE5U-45F-6BG381C, of size 12F, "),
        ("LFE5U-45F-6BG381C", "", "device must be a line of text, not ''"),
    ],
)
def test_a_size_that_the_device_does_not_have(written, old, new, message):
    with pytest.raises(TrebuchetError, match=f"^Board 'mine': {message}"):
        load_board(written(GOOD.replace(old, new)))


@pytest.mark.parametrize("device", ["lfe5u-45f-6bg381c", "LFE5UM5G-45F-8BG381C", "LFE5U-45F"])
def test_the_luts_may_be_left_out(written, device):
    text = GOOD.replace("LFE5U-45F-6BG381C", device).replace('lut4_budget=ecp5.COMB["45F"],', "")
    board = load_board(written(text))
    assert board.lut4_budget == 43_848
    assert board.variant(device="LFE5U-85F-6BG381C").lut4_budget == 83_640


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


@pytest.mark.parametrize("name", BUILT)
def test_a_board_says_nothing_that_its_preset_says(name, root):
    """Nor the usual layout of the flash, part by part."""
    board, text = load_board(name), (root / "boards" / f"{name}.py").read_text()
    preset = TCP_PRESETS[board.tcp]
    said = [f for f in TCP_FIELDS if re.search(rf"^ +{f}=", text, re.MULTILINE)]
    assert [f for f in said if getattr(board, f) == getattr(preset, f)] == []
    if board.flash is not None:
        usual = flash_layout(board.flash.size, board.flash.golden[0], max_hz=board.flash.max_hz)
        assert "flash_layout(" in text or "variant(" in text or board.flash != usual


@pytest.mark.parametrize("name", BUILT)
def test_a_slot_for_a_bitstream_is_there_where_one_can_be_loaded(name):
    """By the FPGA itself, or by its PROGRAMN pin after a golden one at 0."""
    board = load_board(name)
    if board.flash is not None and "bitstream" in board.flash.parts:
        assert board.multiboot != "none" or board.flash.golden[0] == 0


@pytest.fixture
def guide(root):
    """The guide's text, and the board file in it."""
    text = (root / "docs" / "porting.md").read_text()
    return text, re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]


def test_the_guide_shows_a_board_that_is_built(guide, root):
    _, block = guide
    moved = block.replace("from trebuchet.boards import", "from . import")
    moved = moved.replace("from trebuchet.boards.", "from .").replace("my_logicbone", "logicbone")
    assert moved == (root / "boards" / "logicbone.py").read_text()


def test_the_guides_file_is_a_board_wherever_it_lies(guide, written):
    """And its commands are given the path of that file until it goes into the tree."""
    text, block = guide
    assert load_board(written(block)).name == "my_logicbone"
    until, _, _ = text.partition("## 7. Into the tree")
    calls = re.findall(r"trebuchet (board check|build|load|flash) +([^\s`]+)", until)
    assert {command for command, _ in calls} >= {"board check", "build", "load"}
    assert {board for _, board in calls} == {"./my_board.py"}
