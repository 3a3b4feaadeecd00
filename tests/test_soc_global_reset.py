"""Large resets on the global network: in netlists of a few cells, and through the real tools."""

import pytest
from real_tools import small_design
from trebuchet.soc import global_reset
from trebuchet.soc.global_reset import promote_resets
from trebuchet.soc.netlist import synthesise
from trebuchet.soc.place import place
from trebuchet.soc.rom import PLACED

#: A line of flip-flops, more than are worth a global net, and two that a LUT resets as well.
DESIGN = """module top(
    input clk, input reset, input clear, input d, output q, output reg [1:0] n);
  reg [1099:0] line;
  always @(posedge clk) if (reset) line <= 0; else line <= {line[1098:0], d};
  always @(posedge clk) if (reset | clear) n <= 0; else n <= n + line[7];
  assign q = line[1099];
endmodule
"""


def _flip_flop(reset):
    connections = {"CLK": [2], "LSR": [reset], "DI": [3], "Q": [4]}
    return {"type": "TRELLIS_FF", "connections": connections}


def _module(**counts):
    """A module with so many flip-flops for each reset, ``n5=3``: three at net 5."""
    cells = {"lut": {"type": "LUT4", "connections": {"A": [5], "Z": [9]}}}
    for net, count in counts.items():
        for k in range(count):
            cells[f"{net}_{k}"] = _flip_flop(int(net[1:]))
    cells["free"] = {"type": "TRELLIS_FF", "connections": {"CLK": [2], "DI": [3], "Q": [4]}}
    cells["constant"] = _flip_flop("0")
    return {"cells": cells, "netnames": {"top": {"bits": [20]}}}


def _resets(module):
    found = {}
    for name, cell in module["cells"].items():
        if cell["type"] == "TRELLIS_FF" and cell["connections"].get("LSR"):
            found.setdefault(cell["connections"]["LSR"][0], []).append(name)
    return found


@pytest.fixture
def three(monkeypatch):
    monkeypatch.setattr(global_reset, "FLIP_FLOPS", 3)


def test_the_largest_resets_alone_are_promoted(three):
    module = _module(n5=3, n6=9, n7=4, n8=2)
    assert promote_resets(module) == 2
    buffers = {n: c for n, c in module["cells"].items() if c["type"] == "DCCA"}
    ways = {c["connections"]["CLKI"][0]: c["connections"]["CLKO"][0] for c in buffers.values()}
    assert ways == {6: 21, 7: 22}  # numbers that no other net has
    assert {net: len(names) for net, names in _resets(module).items()} == {
        5: 3,
        21: 9,
        22: 4,
        8: 2,
        "0": 1,
    }
    assert module["cells"]["lut"]["connections"] == {"A": [5], "Z": [9]}
    for k, (name, cell) in enumerate(buffers.items()):
        assert name == f"global_reset{k}"
        assert cell["connections"]["CE"] == ["1"]
        assert module["netnames"][name]["bits"] == cell["connections"]["CLKO"]


def test_equal_resets_are_chosen_by_number(three):
    for counts in ({"n7": 3, "n6": 3, "n8": 3}, {"n8": 3, "n7": 3, "n6": 3}):
        module = _module(**counts)
        promote_resets(module)
        assert [module["cells"][f"global_reset{k}"]["connections"]["CLKI"] for k in (0, 1)] == [
            [6],
            [7],
        ]


def test_small_resets_and_those_of_luts_stay(three):
    module = _module(n5=2)
    before = {name: dict(cell["connections"]) for name, cell in module["cells"].items()}
    assert promote_resets(module) == 0
    assert {name: cell["connections"] for name, cell in module["cells"].items()} == before


def test_other_sinks_keep_the_net(three):
    module = _module(n5=4)
    assert promote_resets(module) == 1
    assert module["cells"]["lut"]["connections"]["A"] == [5]
    assert len(_resets(module)[21]) == 4


@pytest.mark.nightly
def test_nextpnr_routes_it_on_a_global_net(request, monkeypatch):
    placed = small_design(request, monkeypatch, "test_global_reset", DESIGN)
    folder = placed.folder
    synthesise(placed)
    assert place(placed, [1]) == 1
    log = (folder / "nextpnr-ecp5_1.log").read_text()
    assert "routing clock net global_reset0 using global" in log
    # The way into the global network, and the resets of slices that come from it.
    config = placed.path(PLACED).read_text()
    assert "G_VPTX" in config or "G_HPBX" in config
