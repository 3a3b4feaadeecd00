"""Verilog files of other people: what both tools accept is accepted, and the rest is explained."""

import subprocess

import pytest
from trebuchet.bench.area import area
from trebuchet.cores.roles.packet_role import PacketRole
from trebuchet.cores.roles.verilog import VerilogBody
from trebuchet.cores.roles.verilog_source import LANGUAGE, module_names, readable
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.build import _verilator_root, build_folder
from trebuchet.soc import vivado
from trebuchet.soc.synthesis import with_local_sources
from trebuchet.soc.verilog import check_verilog

PORTS = """
 input clk, input rst,
 input i_valid, output i_ready, input [31:0] i_data, input [1:0] i_empty, input i_first,
 input i_last, input i_error, output o_valid, input o_ready, output [31:0] o_data,
 output [1:0] o_empty, output o_first, output o_last, output o_error
"""
REST = """
assign o_valid = i_valid; assign i_ready = o_ready;
assign {o_empty, o_first, o_last, o_error} = {i_empty, i_first, i_last, i_error};
"""
LOGIC = PORTS.replace("input ", "input logic ").replace("output ", "output logic ")


def body(head="module mine", data="assign o_data = ~i_data;", ports=PORTS, tail="endmodule"):
    return f"{head} ({ports});{REST}{data}\n{tail}\n"


ACCEPTED = {
    "plain": (body(), "mine"),
    "attribute": (body('(* keep_hierarchy = "yes" *) module mine'), "mine"),
    "attributes over lines": (body("(* keep_hierarchy,\n dont_touch *)\nmodule mine"), "mine"),
    "comment before": (body("/* (c) somebody */ module mine"), "mine"),
    "comment after": (body("module /* this */ mine // that\n"), "mine"),
    "new line": (body("module\n\tmine"), "mine"),
    "directives": (body("`timescale 1ns/1ps\n`default_nettype wire\nmodule mine"), "mine"),
    "on one line": ("module other(input a, output b); assign b = a; endmodule " + body(), "mine"),
    "byte-order mark": (b"\xef\xbb\xbf" + body().encode(), "mine"),
    "Latin-1": ("// Verstärkung in µV\n".encode("latin-1") + body().encode(), "mine"),
    "UTF-8": ("// Verstärkung in µV, 心\n" + body(), "mine"),
    "CR LF": (body().replace("\n", "\r\n"), "mine"),
    "CR": (body().replace("\n", "\r"), "mine"),
    "escaped": (body("module \\my-role "), "my-role"),
    "escaped, as it is written": (body("module \\my-role "), "\\my-role "),
    "escaped for no reason": (body("module \\mine "), "mine"),
    "dollar": (body("module mine$1"), "mine$1"),
    "macromodule": (body("macromodule mine"), "mine"),
    "SystemVerilog": (body(data="always_comb o_data = ~i_data;", ports=LOGIC), "mine"),
    "automatic": (body("module automatic mine"), "mine"),
    "name at the end": (body(tail="endmodule : mine"), "mine"),
    "include": ('`include "inv.vh"\n' + body(data="assign o_data = `INV(i_data);"), "mine"),
}
#: What Verilator or Yosys does not take.
ONE_TOOL = {"macromodule", "automatic"}


def write(folder, content, name="mine.v"):
    (folder / "inv.vh").write_text('`include "deep.vh"\n')
    (folder / "deep.vh").write_text("`define INV(x) (~(x))\n")
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("kind", ACCEPTED)
@pytest.mark.parametrize("name", ["mine.v", "mine.sv"])
def test_files_that_verilator_accepts_are_roles(tmp_path, kind, name):
    content, module = ACCEPTED[kind]
    component = VerilogBody(write(tmp_path, content, name), module)
    (copy,) = component.verilog_files
    assert copy.read_bytes().isascii()
    assert copy.suffix == f".{name.partition('.')[2]}"
    if kind in ("plain", "attribute", "escaped", "SystemVerilog"):
        assert copy == tmp_path / name, "no copy of what all tools read"


@pytest.mark.parametrize("kind", sorted(set(ACCEPTED) - ONE_TOOL))
def test_verilator_and_yosys_read_the_copies(tmp_path, kind):
    content, module = ACCEPTED[kind]
    files = VerilogBody(write(tmp_path, content), module).verilog_files
    check_verilog(files, build_folder().parent / "tools")
    root = _verilator_root()
    lint = [root / "bin" / "verilator_bin", "--lint-only", "-Wno-fatal", "-Wno-MULTITOP", *files]
    subprocess.run(lint, check=True, env={"VERILATOR_ROOT": str(root)}, capture_output=True)


REFUSED = {
    "class": "class c; endclass\n" + body(),
    "syntax": body(data="assign o_data = ;"),
    "reserved word": body(data="wire [31:0] bit = i_data; assign o_data = bit;"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_the_first_error_states_the_language(tmp_path, kind):
    path = write(tmp_path, REFUSED[kind])
    files = VerilogBody(path, "mine").verilog_files
    with pytest.raises(TrebuchetError) as caught:
        check_verilog(files, build_folder().parent / "tools")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}:")
    assert message.endswith(f"(Verilog of roles must be {LANGUAGE})")


HIDDEN = {
    "line comment": "// module mine(input a);\n",
    "comment": "/* module mine(input a); */\n",
    "string": 'module x; initial $display("\\" module mine"); endmodule\n',
    "attribute": '(* note = "module mine" *) module x; endmodule\n',
    "macro": "`module mine\n",
    "prefix": "module mine2; endmodule\n",
    "path": "module x; y.module mine(); endmodule\n",
}


@pytest.mark.parametrize("kind", HIDDEN)
def test_what_is_no_module_is_not_taken_for_one(tmp_path, kind):
    path = write(tmp_path, HIDDEN[kind])
    with pytest.raises(ValueError, match="must contain module 'mine'; its modules are ") as caught:
        VerilogBody(path, "mine")
    assert str(caught.value).endswith(f"read as {LANGUAGE}")


def test_a_sensitivity_list_is_no_attribute():
    text = "module a; always @(*) x = 1; endmodule module b; always @( * ) x = 1; endmodule"
    assert module_names(text) == ["a", "b"]
    assert module_names("module \\a//b (input c); endmodule") == ["a//b"]


def test_a_file_that_includes_itself_is_refused(tmp_path):
    path = write(tmp_path, '`include "mine.v"\n')
    with pytest.raises(ValueError, match="must not include itself"):
        readable(path)


def test_a_build_reads_system_verilog_as_such(tmp_path):
    path = write(tmp_path, body(ports=LOGIC), "mine.sv")
    script = f"read_verilog top.v\nread_verilog -sv {path}\nsynth_ecp5"
    (tmp_path / "top.v").write_text("module top; endmodule\n")
    folder = tmp_path / "local"
    folder.mkdir()
    local = with_local_sources(script.replace("top.v", str(tmp_path / "top.v")), folder)
    assert local.splitlines() == ["read_verilog top.v", "read_verilog -sv mine.sv", "synth_ecp5"]


def test_a_vivado_project_is_checked_with_system_verilog_as_such():
    tcl = "read_verilog {top.v}\nread_verilog -v {a.v}\n"
    tcl += "set_property file_type SystemVerilog [get_files {a.v}]\n"
    assert vivado._reads(["top.v", "a.v"], tcl) == "read_verilog top.v\nread_verilog -sv a.v"
    assert vivado._reads(["top.v"], tcl) == "read_verilog top.v"


@pytest.mark.nightly
def test_the_area_of_a_module_that_keeps_its_hierarchy(tmp_path):
    head = '(* keep_hierarchy = "yes" *) module mine'
    paths = [write(tmp_path, body(h), n) for h, n in ((head, "a.sv"), ("module mine", "b.v"))]
    kept, flat = (area(PacketRole(VerilogBody(path, "mine")), "ecp5") for path in paths)
    assert kept == flat
