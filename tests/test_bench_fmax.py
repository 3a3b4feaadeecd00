"""The harness in which a component is placed and routed alone."""

import json
import os
import re
import shutil

import pytest
from amaranth import Instance, Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from trebuchet.bench import fmax as fmax_module
from trebuchet.bench.fmax import Design, Ecp5, Gowin, Harness, clock_job


class Sum(wiring.Component):
    """Ports of every kind: plain, signed, a structure, none."""

    pair: In(data.StructLayout({"x": 3, "y": 2}))
    sign: In(1)
    total: Out(4)
    copy: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.total.eq(self.pair.x + self.pair.y), self.copy.eq(self.sign)]
        return m


def test_every_port_is_reached():
    """Six bits are shifted in; three cycles after the last, `o` is the parity of five outputs."""
    dut = Harness(Sum())
    inputs = [(x, y, sign) for x in range(8) for y in range(4) for sign in range(2)]

    async def bench(ctx):
        for x, y, sign in inputs:
            # The first bit ends up highest: sign after pair in the chain, y above x in pair.
            for bit in [sign, *f"{y:02b}", *f"{x:03b}"]:
                ctx.set(dut.i, int(bit))
                await ctx.tick()
            await ctx.tick().repeat(3)
            assert ctx.get(dut.o) == ((x + y).bit_count() + sign) % 2, (x, y, sign)
            checked.append((x, y, sign))

    checked = []
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert checked == inputs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "LFE5U-12F"}, "^Device must be one of LFE5U-25F, .*, not 'LFE5U-12F'$"),
        ({"speed": 5}, "^Speed grade must be 6, 7 or 8, not 5$"),
    ],
)
def test_there_must_be_such_an_fpga(options, message):
    with pytest.raises(ValueError, match=message):
        Ecp5(**options)


class Part(wiring.Component):
    """A component with Verilog of its own."""

    def __init__(self, path):
        self.verilog_files = (path,)
        super().__init__({"a": In(4), "b": Out(4)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = Instance("part", i_a=self.a, o_b=self.b)
        return m


@pytest.fixture
def builds(request, monkeypatch):
    """Netlists are made in a folder of the tests', not below /tmp, which the tools cannot see."""
    folder = request.config.rootpath / "build" / "test_fmax"
    shutil.rmtree(folder, ignore_errors=True)
    monkeypatch.setattr(fmax_module, "BUILD", folder / "netlists")
    monkeypatch.setenv("PATH", os.environ["PATH"])
    return folder


@pytest.fixture
def part(builds):
    """A :class:`Part` whose Verilog has these comments."""

    def write(comments="", folder="a", by=3):
        path = builds / folder / "part.v"
        path.parent.mkdir(parents=True, exist_ok=True)
        body = f"assign b = a * {by} ^ {{a[0], a[3:1]}};"
        path.write_text(
            f"{comments}module part(input [3:0] a, output [3:0] b);\n{body}\nendmodule\n"
        )
        return Part(path)

    return write


def test_the_key_is_of_what_the_tools_are_given(part):
    key = Design(part(), Ecp5()).key
    assert Design(part("// a comment\n\n", folder="b"), Ecp5()).key == key
    others = [Design(part(by=5), Ecp5()), Design(part(), Ecp5(speed=7)), Design(part(), GOWIN)]
    assert len({key, *(other.key for other in others)}) == 4


GOWIN = Gowin(
    "GW2A-LV18PG256C8/I7", ("gw2a", "GW2A-18"), {"clk": "H11", "rst": "T3", "i": "T2", "o": "C13"}
)


@pytest.mark.parametrize("fpga", [Ecp5("LFE5U-25F"), GOWIN], ids=["ecp5", "gowin"])
def test_seeds_share_a_netlist(part, builds, fpga):
    job = clock_job(part(), fpga, lambda mhz, cells: {"mhz": mhz, "cells": sum(cells.values())})
    found = {seed: job.measure(seed) for seed in job.seeds}
    assert list(found) == [1, 2, 3]
    assert all(values["mhz"] > 10 and values["cells"] > 0 for values in found.values())
    (folder,) = (path for path in (builds / "netlists").iterdir() if path.is_dir())
    assert folder.name == f"Part-{Design(part(), fpga).key}"
    made = (folder / "yosys.log").stat().st_mtime_ns
    assert Design(part("// a comment\n"), fpga).place(2).mhz == found[2]["mhz"]
    assert (folder / "yosys.log").stat().st_mtime_ns == made
    cells = json.loads((folder / "netlist.json").read_text())["modules"]["top"]["cells"]
    assert all(re.fullmatch(r"cell_\d{6}", name) for name in cells)
