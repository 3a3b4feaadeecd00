"""The Yosys script that maps for area: what it does to a design of two clocks, by Yosys itself."""

import json
import subprocess

import pytest
from trebuchet.soc.synthesis import (
    clocks_faster_than,
    map_for_area,
    plain_verilog,
    with_local_sources,
)
from trebuchet.soc.toolchain import provide_tools

LPF = """\
LOCATE COMP "fast" SITE "L20";
FREQUENCY PORT "clk100" 100.0 MHz;

FREQUENCY PORT "fast" 125.0 MHz;
FREQUENCY PORT "slow" 50.0 MHz;
"""

# The function from `a` to `q` is wide enough for several levels; `p` has one in the other clock.
VERILOG = """\
module top(input slow, input fast, input [15:0] a, output reg q, output reg p);
  reg [15:0] f, s;
  always @(posedge fast) begin f <= a; q <= ^f & (f[3:0] != 4'd9) | &f[15:4]; end
  always @(posedge slow) begin s <= a; p <= ^s | (s[7:0] == 8'd77); end
endmodule
"""

#: What was mapped, as Yosys' own models of the cells, against the Verilog.
EQUIVALENT = """
tee -q -o stat.json stat -json -top top
write_verilog -noattr mapped.v
design -reset
read_verilog top.v
prep -top top
rename top gold
design -stash gold
read_verilog -nooverwrite mapped.v +/ecp5/cells_sim.v
prep -flatten -top top
rename top gate
design -stash gate
design -copy-from gold gold
design -copy-from gate gate
equiv_make gold gate both
prep -flatten -top both
opt -full
equiv_simple -undef
equiv_induct -undef
equiv_status -assert
"""


def test_clocks_are_compared_with_the_systems():
    assert clocks_faster_than(LPF, 50e6) == ["clk100", "fast"]
    assert clocks_faster_than(LPF, 100e6) == ["fast"]
    assert clocks_faster_than(LPF, 125e6) == []


@pytest.mark.parametrize("clocks", [(), ("fast",), ("clk100", "fast"), ("slow", "fast")])
def test_a_design_is_mapped_and_stays_what_it_was(request, clocks):
    # Not below /tmp, which the WebAssembly tools cannot see.
    folder = request.config.rootpath / "build" / "test_synthesis" / ("_".join(clocks) or "none")
    folder.mkdir(parents=True, exist_ok=True)
    provide_tools(folder / "bin")
    (folder / "top.v").write_text(VERILOG)
    script = map_for_area("read_verilog top.v\nsynth_ecp5 -nowidelut -top top", "top", 50e6, clocks)
    script += EQUIVALENT
    (folder / "top.ys").write_text(script)
    done = subprocess.run(
        ["yosys", "-l", "top.log", "top.ys"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    cells = json.loads((folder / "stat.json").read_text())["design"]["num_cells_by_type"]
    assert set(cells) <= {"LUT4", "TRELLIS_FF"}, cells
    assert cells["TRELLIS_FF"] == 34
    assert ("fast_logic" in (folder / "top.log").read_text()) == bool(clocks)


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_sources_are_the_same_wherever_they_were_made(tmp_path, order):
    """What is read depends neither on the folder nor on the order of LiteX's picture."""
    made, elsewhere = tmp_path / "made", tmp_path / "elsewhere" / order
    made.mkdir(parents=True)
    elsewhere.mkdir(parents=True)
    picture = "".join(f"└─── [{name}]\n" for name in order)
    (made / "top.v").write_text(f"module top;\n/*\n{picture}*/\nwire a; // {{}}\nendmodule\n")
    (elsewhere / "cpu.v").write_text(
        f'module cpu;\n  (* src = "{tmp_path}/{order}.py:3" *)\n'
        "  wire b; /* c */ wire d;\nendmodule\n"
    )
    script = f"read_verilog {made}/top.v\nread_verilog {elsewhere}/cpu.v\nsynth_ecp5 -top top\n"
    assert with_local_sources(script, made) == (
        "read_verilog top.v\nread_verilog cpu.v\nsynth_ecp5 -top top\n"
    )
    assert (made / "top.v").read_text() == "module top;\nwire a;\nendmodule\n"
    assert (made / "cpu.v").read_text() == "module cpu;\nwire b; wire d;\nendmodule\n"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("// first\n\nwire a;", "wire a;\n"),
        ("wire a; // last", "wire a;\n"),
        ("wire /* in\nbetween */ a;", "wire a;\n"),
        ("wire/**/a;\n\n\n  wire b;", "wire a;\nwire b;\n"),
        ('x = "// no comment /*";  y = 1; // "', 'x = "// no comment /*"; y = 1;\n'),
        ('x = "\\"//"; // y', 'x = "\\"//";\n'),
        (r"wire \a//b  ; wire \c/*d ;", "wire \\a//b ; wire \\c/*d ;\n"),
        ('(* src = "a.py:3" *)\n(* keep = 1 *) wire a;', "(* keep = 1 *) wire a;\n"),
        ("`ifdef A // if\n\twire a;\n`endif", "`ifdef A\nwire a;\n`endif\n"),
        ("// synthesis translate_off\na\n", "// synthesis translate_off\na\n"),
        ("case (a) /* synthesis full_case */\n", "case (a) /* synthesis full_case */\n"),
    ],
)
def test_what_tools_do_not_read_is_left_out(text, plain):
    assert plain_verilog(text) == plain
    assert plain_verilog(plain) == plain
