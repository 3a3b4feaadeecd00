"""The canonical netlist by real tools, and keys: what changes them, and what does not."""

import json
import re

import pytest
from real_tools import SCRIPT, small_design
from trebuchet.boards import load_board
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import netlist as netlist_module
from trebuchet.soc.canonical import canonical_constraints
from trebuchet.soc.multiboot import marked
from trebuchet.soc.netlist import (
    design_key,
    kept_netlist,
    make_canonical,
    names_of,
    placed_from,
    synthesis_key,
    synthesise,
)
from trebuchet.soc.place import Placement, place, usage
from trebuchet.soc.placed import place_unless_kept
from trebuchet.soc.rom import PLACED
from trebuchet.soc.timing import clock_name

#: A few hundred cells, in two modules: adders, a shift register, a memory, a multiplexer.
VERILOG = """module part(input clk, input [15:0] a, b, output reg [15:0] s);
  reg [15:0] delay [0:15];
  reg [3:0] at;
  always @(posedge clk) begin
    at <= at + 1;
    delay[at] <= a ^ (b >> 3);
    s <= delay[at + 4'd3] + (a[0] ? b : {a[7:0], b[15:8]});
  end
endmodule

module top(input clk, input d, output q);
  reg [31:0] in;
  wire [15:0] sum, other;
  reg [15:0] all;
  part one(.clk(clk), .a(in[15:0]), .b(in[31:16]), .s(sum));
  part two(.clk(clk), .a(sum), .b(in[23:8]), .s(other));
  always @(posedge clk) begin
    in <= {in[30:0], d};
    all <= sum == other ? all + sum : all ^ other;
  end
  assign q = ^all;
endmodule
"""
COMMENTED = "// made today\n\n" + VERILOG.replace(";\n", "; // of\n\n").replace("reg", "reg /*\n*/")
OTHER = VERILOG.replace("a[7:0]", "a[8:1]")


def made(request, monkeypatch, name, verilog):
    placement = small_design(request, monkeypatch, f"test_netlist/{name}", verilog)
    synthesise(placement)
    return placement


def test_equal_logic_is_an_equal_netlist(request, monkeypatch):
    """Real tools: comments, line numbers and folders do not count, logic does."""
    first, commented, other = (
        made(request, monkeypatch, name, text)
        for name, text in (("a", VERILOG), ("else/where", COMMENTED), ("other", OTHER))
    )
    netlist = first.path(".json").read_bytes()
    assert len(json.loads(netlist)["modules"]["top"]["cells"]) > 200
    assert commented.path(".json").read_bytes() == netlist
    assert placed_from(commented) == placed_from(first)
    assert kept_netlist(commented)["inputs"] == kept_netlist(first)["inputs"]
    assert other.path(".json").read_bytes() != netlist
    assert placed_from(other) != placed_from(first)
    assert kept_netlist(other)["inputs"] != kept_netlist(first)["inputs"]
    assert any(name.startswith("one.") for name in names_of(first).nets)


def test_a_netlist_is_kept_until_something_changes(request, monkeypatch):
    placement = made(request, monkeypatch, "kept", VERILOG)
    kept = kept_netlist(placement)
    assert kept["seconds"] > 0
    assert kept["peak_bytes"] == placement.peaks[0]
    placement.path(".v").write_text(COMMENTED)
    assert kept_netlist(placement) == kept
    for path, text in ((".v", OTHER), (".json", "{}"), ("_names.json", "{}")):
        before = placement.path(path).read_text()
        placement.path(path).write_text(text)
        assert kept_netlist(placement) is None
        placement.path(path).write_text(before)
        assert kept_netlist(placement) == kept
    monkeypatch.setattr(netlist_module, "tool_names", lambda *names: ["yosys 9.9"])
    assert kept_netlist(placement) is None


MARKED = """module top(input clk, input a, output reg b);
  wire mark;
  (* keep *) LUT4 #(.INIT(16'h0000)) multiboot_mark(
    .A(1'b0), .B(1'b0), .C(1'b0), .D(1'b0), .Z(mark));
  reg inner_a;
  always @(posedge clk) begin inner_a <= a; b <= inner_a ^ mark; end
endmodule
"""


def test_what_nextpnr_writes_has_the_designs_names(request, monkeypatch):
    """Real tools: the mark of the application's bitstream is found, and so are components."""
    placement = made(request, monkeypatch, "names", MARKED)
    assert place(placement, [1]) == 1
    placed = placement.path("_placed.json").read_text()
    config = placement.path(PLACED).read_text()
    assert marked(config, placed) != config
    names = json.loads(placed)["modules"]["top"]["cells"]
    assert any(name.startswith("inner_a_TRELLIS_FF") for name in names), names
    report = json.loads(placement.path("_pnr.json").read_text())
    assert [clock_name(net) for net in report["fmax"]] == ["clk"]
    cells = {step["to"]["cell"] for path in report["critical_paths"] for step in path["path"]}
    assert any(name.startswith("inner_a_TRELLIS_FF") for name in cells), cells
    logs = placement.folder.glob("nextpnr-ecp5_*.log")
    assert not any(re.search("cell_[0-9]{6}", path.read_text()) for path in logs)


@pytest.mark.nightly
def test_a_comment_does_not_place_again(request, monkeypatch):
    """Real tools: nothing is run for a comment; logic is placed again, and so is another seed."""
    board = load_board("versa_ecp5")
    placement = small_design(request, monkeypatch, "test_netlist/placed", VERILOG)
    ran = []
    run = Placement.run
    monkeypatch.setattr(
        Placement, "run", lambda self, words, *rest: ran.append(words[0]) or run(self, words, *rest)
    )
    tools = ["nextpnr-ecp5", "yosys", "nextpnr-ecp5"]  # the first checks the pins
    assert place_unless_kept(placement, board, [3], fresh=False) == (3, False)
    assert ran == tools
    used, floorplan = usage(placement, routed=True), placement.path(".svg").read_text()
    assert used["sys_mhz"] > 50
    placement.path(".v").write_text(COMMENTED)
    assert place_unless_kept(placement, board, [3], fresh=False) == (3, True)
    assert ran == tools
    assert usage(placement, routed=True) == used
    assert placement.path(".svg").read_text() == floorplan
    placement.path(".v").write_text(OTHER)
    assert place_unless_kept(placement, board, [3], fresh=False) == (3, False)
    assert ran == tools * 2


def test_a_module_inside_is_an_error(tmp_path):
    path = tmp_path / "netlist.json"
    modules = {
        "top": {"attributes": {"top": "1"}, "cells": {"a": {"type": "part"}}},
        "part": {"attributes": {}},
        "LUT4": {"attributes": {"blackbox": "1"}},
    }
    path.write_text(json.dumps({"modules": modules}))
    with pytest.raises(
        TrebuchetError, match="^the netlist of top must be flat; part is a module inside$"
    ):
        make_canonical(path, "top")


# --- keys -----------------------------------------------------------------------------------------

DESIGN = {
    "build_top.sh": SCRIPT,
    "top.ys": "read_verilog top.v\nsynth_ecp5 -top top\nwrite_json top.json\n",
    "top.lpf": 'LOCATE COMP "clk" SITE "P3";\nFREQUENCY PORT "clk" 50.0 MHz;\n',
    "top.v": '// made today\nmodule top(input clk);\n$readmemh("top.init", ram);\nendmodule\n',
    "top.init": "5\n",
    "top.json": "{}",
}


@pytest.fixture
def design(tmp_path):
    """The :class:`Placement` of ``DESIGN``, with a change in one of its files."""

    def write(file="top.v", change=("", ""), hertz=50_000_000):
        for name, text in (DESIGN | {file: DESIGN[file].replace(*change)}).items():
            (tmp_path / name).write_text(text)
        return Placement(tmp_path, "top", hertz)

    return write


@pytest.mark.parametrize(
    ("file", "change", "keys"),
    [
        ("top.v", ("today", "tomorrow"), ()),
        ("top.v", ("\n", "\n\n  "), ()),
        ("build_top.sh", ("--seed 1", "--seed 2"), ()),
        ("build_top.sh", ("--speed 8", "--speed 6"), (design_key, placed_from)),
        ("top.ys", ("-top top", "-top top -abc2"), (design_key, synthesis_key)),
        ("top.lpf", ("50.0", "60.0"), (design_key, placed_from, synthesis_key)),
        ("top.lpf", ("LOCATE", "SYSCONFIG MCCLK_FREQ=62;\nLOCATE"), (design_key, placed_from)),
        ("top.lpf", ("LOCATE", "# today\nLOCATE"), ()),
        (
            "top.lpf",
            ("LOCATE", 'FREQUENCY NET "inner" 250 MHz;\nLOCATE'),
            (design_key, placed_from, synthesis_key),
        ),
        ("top.v", ("clk", "clock"), (design_key, synthesis_key)),
        ("top.init", ("5", "6"), (design_key, synthesis_key)),
        ("top.json", ("{}", "{ }"), (placed_from,)),
    ],
)
def test_keys_have_every_input_but_the_seed(design, file, change, keys):
    every = {design_key, placed_from, synthesis_key}
    before = {key: key(design()) for key in every}
    after = {key: key(design(file, change)) for key in every}
    assert {key for key in before if before[key] != after[key]} == set(keys)
    assert None not in after.values()


def test_the_code_of_our_own_steps_is_in_the_keys(design, monkeypatch):
    before = design_key(design()), synthesis_key(design())
    monkeypatch.setattr(netlist_module, "content_hash", lambda path: "other steps")
    after = design_key(design()), synthesis_key(design())
    assert all(a != b for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("top.ys", ("read_verilog", "read_verilog -sv")),
        ("top.ys", ("read_verilog", "read_verilog -I/mine")),
        ("top.ys", ("read_verilog top.v", "read_verilog top.v\nread_liberty cells.lib")),
        ("top.v", ("endmodule", '`include "part.v"\nendmodule')),
        ("top.v", ("$readmemh", "$readmemb")),
        ("top.v", ('"top.init"', "FILE")),
    ],
)
def test_with_inputs_that_are_not_known_nothing_is_kept(design, file, change):
    assert synthesis_key(design(file, change)) is None


def test_a_signal_that_is_called_like_a_command_is_none(design):
    assert synthesis_key(design(change=("$readmemh", "read_data <= 1;\n$readmemh"))) is not None


def test_constraints_are_written_sorted(request, monkeypatch):
    placement = made(request, monkeypatch, "sorted", "module top(input clk);\nendmodule\n")
    text = placement.path(".lpf").read_text()
    assert text == canonical_constraints(text)
