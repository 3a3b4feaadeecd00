"""Crossings between clocks: each kind that is known, faults of each, and those of the boards."""

import os
import re
import shutil
import subprocess

import pytest
from trebuchet.boards import load_board
from trebuchet.soc.build import environment, generate_only
from trebuchet.soc.domains import read_netlist

pytestmark = pytest.mark.slow


def flat(root, name, script, top):
    """The netlist of what ``script`` reads; Yosys sees no folder but the checkout's."""
    folder = root / "build" / "domains" / f"{name}_{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lines = [*script, f"hierarchy -top {top}", "proc", "flatten", "opt_clean"]
        lines += ["memory_collect", f"write_json {folder}/flat.json"]
        (folder / "flat.ys").write_text("\n".join(lines) + "\n")
        with environment(folder):
            subprocess.run(["yosys", "-q", folder / "flat.ys"], check=True, cwd=root)
        return read_netlist(folder / "flat.json", top)
    finally:
        shutil.rmtree(folder)


def kinds(root, request, body):
    """Kind of each crossing of a module with clocks a and b, by target."""
    name = re.sub(r"\W", "_", request.node.name)
    path = root / "build" / "domains" / f"{name}_{os.getpid()}.v"
    path.parent.mkdir(parents=True, exist_ok=True)
    ports = "input a, input b, input [2:0] i, output reg [2:0] o"
    path.write_text(f"module top({ports});\n{body}\nendmodule\n")
    try:
        found = flat(root, name, [f"read_verilog {path}"], "top").crossings()
    finally:
        path.unlink()
    return {crossing.target: crossing.kind for crossing in found}


SAFE = """
reg x, first, second;
always @(posedge a) x <= i[0];
always @(posedge b) begin first <= x; second <= first; o <= {3{second}}; end
"""


def test_two_registers_are_a_synchroniser(root, request):
    assert kinds(root, request, SAFE) == {"first": "synchroniser"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("second <= first; o <= {3{second}}", "o <= {3{first & i[1]}}"),  # one stage
        ("second <= first;", "second <= first ^ i[1];"),  # logic between the two
        ("first <= x;", "first <= x & i[1];"),  # logic before the first
        ("{3{second}}", "{first, second, second}"),  # the first is looked at, too
        ("second <= first;", "if (first) second <= i[1];"),  # as an enable
    ],
)
def test_what_is_no_synchroniser(root, request, old, new):
    assert old in SAFE
    assert kinds(root, request, SAFE.replace(old, new))["first"] is None


BUS = """
reg [2:0] NAME, first, second;
always @(posedge a) NAME <= i;
always @(posedge b) begin first <= NAME; second <= first; o <= second; end
"""


@pytest.mark.parametrize(
    ("name", "kind"), [("tx_crossing_pointer00", "gray"), ("rx_count", None), ("pointer", None)]
)
def test_several_bits_need_a_pointer_in_gray_code(root, request, name, kind):
    assert kinds(root, request, BUS.replace("NAME", name)) == {"first": kind}


MEMORY = """
reg [2:0] memory[0:7], at_a, at_b, a_crossing_pointer0, b_crossing_pointer0;
reg [2:0] to_a, in_a, to_b, in_b;
always @(posedge a) begin
    memory[at_a] <= i; at_a <= at_a + 1; a_crossing_pointer0 <= at_a;
    to_a <= b_crossing_pointer0; in_a <= to_a;
end
always @(posedge b) begin
    at_b <= at_b + (in_b != at_b); b_crossing_pointer0 <= at_b; o <= memory[at_b];
    to_b <= a_crossing_pointer0; in_b <= to_b;
end
wire keep = ^in_a;
"""


def test_a_memory_between_pointers(root, request):
    body = MEMORY.replace("at_a <= at_a + 1", "at_a <= at_a + ^in_a")
    assert kinds(root, request, body) == {"o": "memory", "to_a": "gray", "to_b": "gray"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("memory[at_b]", "memory[at_a]"),  # an address of the other clock
        ("to_a <= b_crossing_pointer0", "to_a <= i"),  # nothing comes back
    ],
)
def test_a_memory_without_pointers(root, request, old, new):
    assert old in MEMORY
    assert kinds(root, request, MEMORY.replace(old, new))["o"] is None


@pytest.mark.parametrize(("at", "found"), [("at_b", set()), ("at_a", {"memory"})])
def test_each_write_port_of_a_memory_has_a_clock(root, request, at, found):
    """The second one's address is to be of the second one's clock. No pointer guards the read."""
    body = f"""
    reg [2:0] memory[0:7], at_a, at_b;
    always @(posedge a) begin if (i[0]) memory[at_a] <= i; at_a <= i; end
    always @(posedge b) begin if (i[1]) memory[{at}] <= i; at_b <= i; end
    always @(posedge b) o <= memory[at_b];
    """
    assert kinds(root, request, body) == dict.fromkeys(found | {"o"})


BOARDS = [
    pytest.param("colorlight_5a_75b", True, id="bridge"),
    pytest.param("colorlight_i9", False, id="colorlight_i9", marks=pytest.mark.nightly),
    pytest.param("versa_ecp5", False, id="versa_ecp5", marks=pytest.mark.nightly),
    pytest.param("orangecrab", False, id="orangecrab", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize(("name", "bridge"), BOARDS)
def test_every_crossing_of_a_board_is_of_a_known_kind(root, name, bridge):
    board = load_board(name).variant(name=f"domains_{os.getpid()}", bridge=bridge)
    folder = root / "build" / board.name
    try:
        placement = generate_only(board, folder)
        script = placement.path(".ys").read_text().splitlines()
        reads = [line for line in script if line.startswith("read_verilog ")]
        found = flat(root, name, reads, placement.top).crossings()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    unknown = [crossing for crossing in found if crossing.kind is None]
    assert not unknown, "\n".join(map(str, unknown))
    assert sum(crossing.kind == "gray" for crossing in found) >= 4 * (1 + bridge)
