"""Clocks of boards by seed: one netlist for all, missed clocks are recorded, keys have no seed."""

import json
from types import SimpleNamespace

import pytest
from real_tools import small_design
from trebuchet.boards import load_board
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import measure as measure_module
from trebuchet.soc.measure import measure_board, placement_key
from trebuchet.soc.netlist import synthesise

VERILOG = """module top(input clk, input [7:0] step, output reg [31:0] count);
  always @(posedge clk) count <= count + step;
endmodule
"""


@pytest.fixture
def small(request, monkeypatch):
    """A board whose SoC is a counter, for the real tools, and what was generated and made of it."""
    placement = small_design(
        request, monkeypatch, "test_measure/build/board.measured/gateware", VERILOG
    )
    board = load_board("versa_ecp5").variant(name="board", sys_clk_hz=placement.sys_clk_hz)
    seen = SimpleNamespace(placement=placement, board=board, ran=[])

    def generated(name, board, directory, software):
        seen.ran.append(("generate", directory.name, software))
        return {"top": "top", "key": "the key"}

    def made(placement):
        seen.ran.append("synthesise")
        return synthesise(placement)

    monkeypatch.setattr(measure_module, "ROOT", request.config.rootpath / "build" / "test_measure")
    monkeypatch.setattr(measure_module, "load_board", lambda name: seen.board)
    monkeypatch.setattr(measure_module, "_generated", generated)
    monkeypatch.setattr(measure_module, "synthesise", made)
    return seen


def test_seeds_share_a_netlist(small):
    first, second = measure_board("board", 1), measure_board("board", 2)
    assert small.ran.count("synthesise") == 1
    assert small.ran[:2] == [
        ("generate", "board.check", False),
        ("generate", "board.measured", True),
    ]
    assert (first["seed"], second["seed"]) == (1, 2)
    assert first["met"]
    assert second["met"]
    (clock,) = first["clocks"].values()
    assert clock == {"mhz": first["sys_mhz"], "target": 50.0}
    for name in ("board", "key", "netlist", "lut4", "ff", "bram", "dsp", "lut4_available"):
        assert first[name] == second[name], name
    assert (first["board"], first["key"], first["ff"], first["bram"]) == ("board", "the key", 32, 0)
    assert first["peak_bytes"] > 1 << 20
    assert first["minutes"] > 0
    json.dumps(first)  # as rows are kept
    for seed in (1, 2):
        folder = small.placement.folder.with_name(f"seed{seed}")
        assert [path.name for path in folder.glob("*.json")] == [f"top_seed{seed}_pnr.json"]


def test_a_missed_clock_is_a_measurement(small):
    small.placement.path(".lpf").write_text('FREQUENCY PORT "clk" 500.0 MHz;\n')
    small.board = small.board.variant(sys_clk_hz=500_000_000)
    found = measure_board("board", 1)
    assert not found["met"]
    assert 100 < found["sys_mhz"] < 500
    (clock,) = found["clocks"].values()
    assert clock == {"mhz": found["sys_mhz"], "target": 500.0}


def test_a_design_without_the_systems_clock_is_an_error(small):
    small.board = small.board.variant(sys_clk_hz=60_000_000)
    with pytest.raises(TrebuchetError, match="^none of the clocks in .* is 60000000 Hz$"):
        measure_board("board", 1)


@pytest.mark.parametrize("measure", [placement_key, lambda name: measure_board(name, 1)])
@pytest.mark.parametrize(("name", "flow"), [("kcu105", "vivado"), ("sim", "sim")])
def test_boards_of_other_flows_are_refused(measure, name, flow):
    with pytest.raises(
        TrebuchetError, match=f"^board '{name}' is not .* open tools: flow '{flow}'$"
    ):
        measure(name)


@pytest.fixture
def process(tmp_path, monkeypatch):
    """A generation that is none; ``inputs`` is the hash that it is kept by."""
    seen = SimpleNamespace(inputs="a", runs=0, code=0)

    def run_group(command, stdout, stderr):
        seen.runs += 1
        folder = tmp_path / "build" / "versa_ecp5.check"
        (folder / "gateware").mkdir(exist_ok=True)
        (folder / "gateware" / "top.v").touch()
        (folder / "made.json").write_text(json.dumps({"top": "top", "key": f"key {seen.runs}"}))
        stdout.write("first line\nthe reason\n")
        stdout.flush()
        return SimpleNamespace(returncode=seen.code)

    monkeypatch.setattr(measure_module, "ROOT", tmp_path)
    monkeypatch.setattr(measure_module, "run_group", run_group)
    monkeypatch.setattr(measure_module, "input_hash", lambda *extra: seen.inputs)
    return seen


def test_a_key_is_kept_by_content(process, tmp_path):
    assert placement_key("versa_ecp5") == placement_key("versa_ecp5") == "key 1"
    process.inputs = "b"
    assert placement_key("versa_ecp5") == "key 2"
    (tmp_path / "build" / "versa_ecp5.check" / "gateware" / "top.v").unlink()
    assert placement_key("versa_ecp5") == "key 3"
    (tmp_path / "build" / "versa_ecp5.check" / "generated.json").write_text("{")
    assert placement_key("versa_ecp5") == "key 4"


def test_a_board_that_cannot_be_generated_is_told(process):
    process.code = 1
    with pytest.raises(
        TrebuchetError, match="^board 'versa_ecp5' could not be generated: the reason$"
    ):
        placement_key("versa_ecp5")
    process.code = 0
    assert placement_key("versa_ecp5") == "key 2"
