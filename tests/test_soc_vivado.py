"""Boards of the vendor's flow: their project, Vivado or what stands in for it, and what is refused.

Vivado is a script here that leaves what the real one leaves. Yosys and Verilator are real.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest
from soc_placeholder import PlaceholderShell
from trebuchet.boards import load_board, ultrascale
from trebuchet.boards.ultrascale import KU040
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import build as build_module
from trebuchet.soc.build import build_board
from trebuchet.soc.place import Placement
from trebuchet.soc.toolchain import provide_tools
from trebuchet.soc.vendor_cells import stubs
from trebuchet.soc.vivado import check_fit, map_design, write_project
from typer.testing import CliRunner

KCU105 = load_board("kcu105")
TOP = """`timescale 1ns/1ps
module top(input wire clk_p, input wire clk_n, output wire q);
wire clk;
IBUFDS #(
    .DIFF_TERM("TRUE")
) IBUFDS (
    .I (clk_p),
    .IB (clk_n),
    .O (clk)
);
part part(.clk(clk), .q(q));
endmodule
"""
PART = """(* src = "/home/me/part.py:5" *)
module part(input wire clk, output wire q);
reg [7:0] count = 0;
always @(posedge clk) count <= count + 1;
assign q = count[7];
endmodule
"""
XDC = "".join(
    f"set_property LOC {pin} [get_ports {{{port}}}]\n"
    f"set_property IOSTANDARD LVDS [get_ports {{{port}}}]\n"
    for port, pin in {"clk_p": "G10", "clk_n": "F10", "q": "F9"}.items()
)
#: As much of LiteX's script as matters here.
TCL = """create_project -force -name top -part xcku040-ffva1156-2-e
read_verilog {{{elsewhere}/part.v}}
read_verilog {{{folder}/top.v}}
set_property library work [get_files {{{folder}/top.v}}]
read_xdc top.xdc
write_bitstream -force top.bit
"""
TABLE = """\
+----------------------------+--------+-------+------------+-----------+-------+
|          Site Type         |  Used  | Fixed | Prohibited | Available | Util% |
+----------------------------+--------+-------+------------+-----------+-------+
| CLB LUTs*                  |  61000 |     0 |          0 |    242400 | 25.17 |
| CLB Registers              |  52000 |     0 |          0 |    484800 | 10.73 |
| Block RAM Tile             |   90.5 |     0 |          0 |       600 | 15.08 |
| DSPs                       |     12 |     0 |          0 |      1920 |  0.63 |
"""
GOOD = f"""#!/bin/sh
echo "$PWD $@" > "$LOG"
echo bits | tee top.bit > top_application.bin
echo "All user specified timing constraints are met." > top_timing.rpt
cat > top_utilization_place.rpt <<'END'
{TABLE}END
"""


def generated(folder, part=PART, xdc=XDC):
    """A folder like one that LiteX has generated a SoC in, with a file that lies elsewhere."""
    gateware, elsewhere = folder / "gateware", folder / "elsewhere"
    for path in (gateware, elsewhere):
        path.mkdir(parents=True, exist_ok=True)
    (gateware / "top.v").write_text(TOP)
    (gateware / "top.xdc").write_text(xdc)
    (gateware / "top_rom.init").write_text("0\n")
    (gateware / "top.tcl").write_text(TCL.format(folder=gateware, elsewhere=elsewhere))
    (elsewhere / "part.v").write_text(part)
    return Placement(gateware, "top", 125_000_000)


@pytest.fixture
def litex(monkeypatch):
    """LiteX is quick: what it generates is :func:`generated`, with changes that a test may set."""
    changes = {}

    def build_soc(board, shell, directory, **options):
        generated(directory, **changes)
        return SimpleNamespace(platform=SimpleNamespace(name="top"))

    monkeypatch.setattr(build_module, "_build_soc", build_soc)
    return changes


@pytest.fixture
def vivado(tmp_path, monkeypatch):
    """Puts a script on PATH as Vivado, ``vivado(text)``; returns the log that it may write."""
    folder = tmp_path / "installed"
    folder.mkdir()

    def install(text=GOOD):
        (folder / "vivado").write_text(text)
        (folder / "vivado").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=":")
        monkeypatch.setenv("LOG", str(folder / "log"))
        return folder / "log"

    return install


def refused(function, *arguments, **named):
    with pytest.raises(TrebuchetError) as caught:
        function(*arguments, **named)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def cli_refused(*arguments):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert isinstance(result.exception, TrebuchetError), result.exception
    return str(result.exception)


# --- the project ----------------------------------------------------------------------------------


def test_the_project_is_complete_and_can_be_moved(tmp_path, vivado):
    chip = KCU105.flash.part
    project = write_project(generated(tmp_path), KCU105.device, tmp_path / "vivado", chip)
    moved = tmp_path / "moved"
    project.folder.rename(moved)
    files = {path.name: path.read_text() for path in moved.iterdir()}
    scripts = {"build.sh", "program.sh", "program.tcl", "flash.sh", "flash.tcl"}
    mark = {".trebuchet"}
    assert set(files) == scripts | mark | {"top.v", "part.v", "top.xdc", "top.tcl", "top_rom.init"}
    for name, text in files.items():
        assert str(tmp_path) not in text, name
        assert not re.search(r"[{\" ](/[a-z]+){2}", text), name
    for name in re.findall(r"(?:read_verilog|read_xdc) \{?([^}\n]+)", files["top.tcl"]):
        assert name in files
    assert "get_hw_devices xcku040*" in files["program.tcl"]
    log = vivado()
    names = {"build.sh": "top.tcl", "program.sh": "program.tcl", "flash.sh": "flash.tcl"}
    for script, source in names.items():
        subprocess.run(["sh", moved / script], cwd="/", check=True)
        assert log.read_text() == f"{moved} -mode batch -source {source}\n"


def test_a_project_takes_the_place_of_an_older_one(tmp_path):
    write_project(generated(tmp_path), KCU105.device, tmp_path / "vivado")
    (tmp_path / "vivado" / "old.v").write_text("")
    write_project(generated(tmp_path), KCU105.device, tmp_path / "vivado")
    assert not (tmp_path / "vivado" / "old.v").exists()
    assert not (tmp_path / "vivado.partial").exists()


def test_a_project_that_cannot_be_written_leaves_nothing(tmp_path):
    placement = generated(tmp_path)
    (tmp_path / "elsewhere" / "part.v").unlink()
    message = refused(write_project, placement, KCU105.device, tmp_path / "vivado")
    assert message.startswith(f"the project {tmp_path}/vivado cannot be written: ")
    assert "part.v" in message
    assert not list(tmp_path.glob("vivado*"))


def test_an_older_project_stays_until_the_new_one_is_complete(tmp_path):
    write_project(generated(tmp_path), KCU105.device, tmp_path / "vivado")
    placement = generated(tmp_path)
    (tmp_path / "elsewhere" / "part.v").unlink()
    refused(write_project, placement, KCU105.device, tmp_path / "vivado")
    assert (tmp_path / "vivado" / "part.v").exists()
    assert not (tmp_path / "vivado.partial").exists()


def test_two_files_of_one_name_are_refused(tmp_path):
    placement = generated(tmp_path)
    script = placement.path(".tcl")
    script.write_text(f"{script.read_text()}read_verilog {{{tmp_path}/other/part.v}}\n")
    message = refused(write_project, placement, KCU105.device, tmp_path / "vivado")
    assert message == "two files of the design are called 'part.v'; rename one"


# --- Vivado ---------------------------------------------------------------------------------------


def test_vivado_is_run_and_its_figures_are_reported(tmp_path, litex, vivado):
    log = vivado()
    report = build_board("kcu105", tmp_path / "out")
    project = tmp_path / "out" / "vivado"
    assert log.read_text() == f"{project} -mode batch -source top.tcl\n"
    assert report["tools"] == ["vivado"]
    assert report["project"] == str(project)
    assert report["bitstream"] == str(project / "top.bit")
    assert report["bitstream_sha256"] == hashlib.sha256(b"bits\n").hexdigest()
    assert report["used"] == {"lut6": 61000, "ff": 52000, "bram36": 90.5, "dsp": 12}
    assert report["available"]["lut6"] == KU040.lut6
    log.unlink()
    assert build_board("kcu105", tmp_path / "out") == report  # finished, so not built again
    assert not log.exists()
    result = CliRunner().invoke(app, ["build", "kcu105", "--output", str(tmp_path / "out")])
    assert "load it with: trebuchet load kcu105" in result.stdout
    assert "application's bitstream (docs/multiboot.md): " in result.stdout
    assert "25.2%" in result.stdout
    assert "61,000" in result.stdout


def test_reports_that_vivado_did_not_write_are_no_figures(tmp_path, litex, vivado):
    vivado("#!/bin/sh\necho bits > top.bit\n")
    assert set(build_board("kcu105", tmp_path / "out")["used"].values()) == {None}
    result = CliRunner().invoke(app, ["build", "kcu105", "--output", str(tmp_path / "out")])
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            "echo 'ERROR: [Synth 8-439] module part not found'; exit 1",
            r"vivado failed, see .*: ERROR: \[Synth 8-439\] module part not found",
        ),
        ("true", r"vivado wrote no top\.bit; see .*/vivado"),
        (
            "touch top.bit; echo 'Timing constraints are not met.' > top_timing.rpt",
            r"the design misses its clocks, see .*_timing\.rpt; lower sys_clk_hz of the board",
        ),
    ],
)
def test_vivados_failure_is_one_line_and_no_report(tmp_path, litex, vivado, script, message):
    vivado(f"#!/bin/sh\n{script}\n")
    assert re.fullmatch(message, refused(build_board, "kcu105", tmp_path / "out"))
    assert not (tmp_path / "out" / "report.json").exists()
    assert (tmp_path / "out" / "vivado" / "build.sh").exists()  # for another try by hand


def test_loading(tmp_path, litex, vivado):
    options = ["--output", tmp_path / "out"]
    assert cli_refused("load", "kcu105", "--flash", *options) == (
        "the flash of board 'kcu105' is written by: trebuchet flash kcu105"
    )
    log = vivado()
    message = cli_refused("load", "kcu105", *options)
    assert (
        message == "there is no bitstream for 'kcu105' yet; build it with: trebuchet build kcu105"
    )
    build_board("kcu105", tmp_path / "out")
    assert CliRunner().invoke(app, ["load", "kcu105", *map(str, options)]).exit_code == 0
    assert log.read_text() == f"{tmp_path}/out/vivado -mode batch -source program.tcl\n"
    vivado("#!/bin/sh\nexit 1\n")
    message = cli_refused("load", "kcu105", *options)
    assert message == "Vivado could not load the board; is it connected and powered?"


def test_writing_the_flash(tmp_path, litex, vivado):
    options = ["--output", tmp_path / "out"]
    log = vivado()
    assert cli_refused("flash", "kcu105", *options) == (
        "there is no bitstream for 'kcu105' yet; build it with: trebuchet build kcu105"
    )
    report = build_board("kcu105", tmp_path / "out")
    project = tmp_path / "out" / "vivado"
    assert report["application"] == str(project / "top_application.bin")
    assert "get_cfgmem_parts n25q256-1.8v-spi-x1_x2_x4" in (project / "flash.tcl").read_text()
    assert cli_refused("flash", "kcu105", *options) == f"vivado wrote no top.mcs; see {project}"
    (project / "top.mcs").touch()
    assert CliRunner().invoke(app, ["flash", "kcu105", *map(str, options)]).exit_code == 0
    assert log.read_text() == f"{project} -mode batch -source flash.tcl\n"
    vivado("#!/bin/sh\nexit 1\n")
    assert cli_refused("flash", "kcu105", *options) == (
        "Vivado could not write the flash; is the board connected, powered?"
    )


def test_what_vivado_makes_for_the_flash():
    """Golden and application are the same design; they differ in USR_ACCESS."""
    toolchain = SimpleNamespace(bitstream_commands=[], additional_commands=[])
    ultrascale.flash(SimpleNamespace(board=KCU105, platform=SimpleNamespace(toolchain=toolchain)))
    before = [line.split()[1:3] for line in toolchain.bitstream_commands]
    assert ["BITSTREAM.CONFIG.CONFIGFALLBACK", "ENABLE"] in before
    assert ["BITSTREAM.CONFIG.SPI_32BIT_ADDR", "YES"] in before
    assert ["BITSTREAM.CONFIG.TIMER_CFG", "0x30000000"] in before
    assert before[-1] == ["BITSTREAM.CONFIG.USR_ACCESS", "0x00000000"]
    after = [line.format(build_name="top") for line in toolchain.additional_commands]
    assert after == [
        "write_cfgmem -force -format mcs -interface SPIx4 -size 32 "
        '-loadbit "up 0x0 top.bit" -file top.mcs',
        "set_property BITSTREAM.CONFIG.USR_ACCESS 0x00000001 [current_design]",
        "write_bitstream -force -bin_file top_application.bit",
    ]


def test_loading_without_vivado(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert cli_refused("load", "kcu105", "--output", tmp_path) == (
        "the tool 'vivado' is not on PATH; install AMD Vivado and source its settings64.sh"
    )


@pytest.mark.parametrize("option", [("--seed", "2"), ("--seeds", "3"), ("--timing",)])
def test_options_of_other_flows_are_refused(option):
    assert cli_refused("build", "kcu105", *option) == (
        "board 'kcu105' is built by Vivado, which has no seeds and reports timing in files; "
        "leave out --seed, --seeds and --timing"
    )


# --- open tools -----------------------------------------------------------------------------------


@pytest.fixture
def no_vivado(monkeypatch):
    folders = os.environ["PATH"].split(":")
    kept = [f for f in folders if not os.path.exists(os.path.join(f, "vivado"))]
    monkeypatch.setenv("PATH", ":".join(kept))


@pytest.mark.nightly
def test_without_vivado_the_fit_is_reported(tmp_path, litex, no_vivado):
    report = build_board("kcu105", tmp_path / "out")
    assert report["tools"] == ["yosys", "verilator"]
    assert report["bitstream"] is None
    assert report["used"]["ff"] == 8
    assert 0 < report["used"]["lut6"] <= 8
    assert report == json.loads((tmp_path / "out" / "report.json").read_text())
    assert (tmp_path / "out" / "vivado" / "top.tcl").exists()
    shutil.rmtree(tmp_path / "out" / "vivado")
    assert build_board("kcu105", tmp_path / "out") == report  # the project is lost, so it is anew
    assert (tmp_path / "out" / "vivado" / "top.tcl").exists()
    result = CliRunner().invoke(app, ["build", "kcu105", "--output", str(tmp_path / "out")])
    assert "run there: sh build.sh" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "count[7]",
            "count[7] & nothing",
            r"verilator found a fault, see .*lint\.log: %\S+ part\.v",
        ),
        ("count + 1;", "count + ;", r"verilator found a fault, see .*: %Error: part\.v:4:"),
        (
            "assign",
            "wire a;\nBUFG y (\n.I(clk),\n.Y(a)\n);\nassign",
            r"verilator found a fault, .*'Y'",
        ),
        (
            "assign",
            "wire a;\nBUFG #(\n.NOPE(1)\n) y (\n.I(clk),\n.O(a)\n);\nassign",
            r"yosys failed, see .*does not have a parameter named 'NOPE'\.",
        ),
    ],
)
def test_faults_in_the_design_are_one_line(tmp_path, litex, no_vivado, old, new, message):
    assert old in PART
    litex["part"] = PART.replace(old, new)
    found = refused(build_board, "kcu105", tmp_path / "out")
    assert re.match(message, found), found
    assert not list((tmp_path / "out").glob("vivado*"))
    assert not (tmp_path / "out" / "report.json").exists()


@pytest.mark.nightly
def test_a_loop_of_logic_is_found(tmp_path):
    loop = "wire a; assign a = ~(a & count[0]); assign q = a;"
    placement = generated(tmp_path, PART.replace("assign q = count[7];", loop))
    provide_tools(tmp_path / "bin")
    message = refused(map_design, placement, KU040, tmp_path / "check")
    assert re.match(r"found logic loop in module \S+, see .*yosys_all\.log$", message), message


@pytest.mark.nightly
def test_deep_memories_are_block_ram(tmp_path):
    """Which Yosys' own choice of LUT RAM cannot map."""
    memory = """reg [31:0] deep[0:2047];
reg [10:0] to = 0;
reg [10:0] at;
always @(posedge clk) begin
    to <= to + 5;
    if (count[0]) deep[to][7:0] <= count;
    if (count[1]) deep[to][31:8] <= {3{count}};
    at <= to;
end
wire [31:0] word = deep[at];
assign q = ^word;"""
    placement = generated(tmp_path, PART.replace("assign q = count[7];", memory))
    provide_tools(tmp_path / "bin")
    assert map_design(placement, KU040, tmp_path / "check")["bram36"] == 2


@pytest.mark.nightly
def test_a_design_that_does_not_fit(tmp_path, litex, no_vivado, monkeypatch):
    tiny = dataclasses.replace(KCU105, capacity=dataclasses.replace(KU040, ff=4))
    monkeypatch.setattr(build_module, "load_board", lambda name: tiny)
    message = refused(build_board, "kcu105", tmp_path / "out")
    assert message.startswith(
        "board 'kcu105' needs 8 FF of 4; leave something out: roles of the plan, "
    )
    assert not list((tmp_path / "out").glob("vivado*"))
    used = {"lut6": 242_400, "ff": 1, "bram36": 600, "dsp": 0}
    check_fit(KCU105, used)
    with pytest.raises(TrebuchetError, match=r"needs 600\.5 BRAM36 of 600; "):
        check_fit(KCU105, {**used, "bram36": 600.5})


def test_stubs_have_the_ports_of_yosys_and_the_parameters_that_are_given():
    ports = {
        "I": {"direction": "input", "bits": [2]},
        "Q": {"direction": "output", "bits": [3, 4, 5, 6]},
    }
    cells = json.dumps({"modules": {"SERDES": {"ports": ports}, "UNUSED": {"ports": {}}}})
    text = "module top();\nSERDES #(\n    .WIDTH (4),\n    .DELAY (1.5)\n) SERDES (\n.I(1'd0)\n);\n"
    assert stubs(cells, text) == (
        "module SERDES #(parameter DELAY = 0, parameter WIDTH = 0) "
        "(input wire [0:0] I, output wire [3:0] Q);\nendmodule\n"
    )


# --- pins -----------------------------------------------------------------------------------------


def test_a_wrong_pin_leaves_no_project(tmp_path, litex, vivado):
    vivado()
    litex["xdc"] = XDC.replace("F10", "A77")
    message = refused(build_board, "kcu105", tmp_path / "out")
    assert message.startswith("'clk_n' is on pin 'A77', which the package of xcku040-ffva1156-2-e")
    assert not list((tmp_path / "out").glob("vivado*"))
    litex["xdc"] = XDC.replace("LOC F9", "SLEW FAST")
    message = refused(build_board, "kcu105", tmp_path / "out")
    assert message == "'q' has no pin; the board's platform must name one"
    assert not list((tmp_path / "out").glob("vivado*"))


# --- the boards -----------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.cpu_limit(3600)
def test_a_project_from_beginning_to_end(root, no_vivado):
    """With the placeholder in the shell's place, which shortens the mapping."""
    directory = root / "build" / "test_vivado"
    report = build_board("aesku40", directory, shell=PlaceholderShell(), fresh=True)
    assert 3_000 < report["used"]["lut6"] < 40_000
    assert report["used"]["bram36"] > 8
    files = {path.name for path in (directory / "vivado").iterdir()}
    assert {"avnet_aesku40.v", "avnet_aesku40.xdc", "avnet_aesku40.tcl", "build.sh"} <= files
    assert {"avnet_aesku40_rom.init", "VexRiscv_Min.v", "litedram_adapter.v"} <= files
    for path in (directory / "vivado").iterdir():
        assert str(root) not in path.read_text(), path
