"""The clock that a component alone reaches on an ECP5: placed and routed, median of several seeds.

Ports are not put on pins, of which there are too few, nor left open, where paths to them would
not count: every bit has a register beside it, and the whole needs four pins.
"""

import json
import os
import re
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path

from amaranth import Cat, Module, Signal
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..models.errors import TrebuchetError
from ..soc.toolchain import provide_tools

__all__ = ["DEVICES", "Clock", "Harness", "fmax"]

#: Option of nextpnr-ecp5 for each device.
DEVICES = {
    "LFE5U-25F": "--25k",
    "LFE5U-45F": "--45k",
    "LFE5U-85F": "--85k",
    "LFE5UM5G-45F": "--um5g-45k",
    "LFE5UM5G-85F": "--um5g-85k",
}

BUILD = Path(__file__).resolve().parent.parent / "build" / "fmax"


class Harness(wiring.Component):
    """``component`` with a register at each bit of its ports.

    Its inputs come from one long shift register, which begins at ``i``. Its outputs end, by way of
    registers, in their parity ``o``: no signal of the harness goes to many places.
    """

    def __init__(self, component):
        self.component = component
        super().__init__({"i": In(1), "o": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.component
        before, outputs = self.i, []
        for path, member, port in dut.signature.flatten(dut):
            name = "__".join(map(str, path))
            bits = port.as_value() if hasattr(port, "as_value") else port
            if member.flow == In:
                register = Signal(len(bits), name=f"in_{name}", reset_less=True)
                m.d.sync += register.eq(Cat(before, register))
                m.d.comb += bits.eq(register)
                before = register[-1] if len(bits) else before
            else:
                outputs.append(bits)
        layer = Cat(outputs)
        while True:
            register = Signal(len(layer), reset_less=True)
            m.d.sync += register.eq(layer)
            if len(register) == 1:
                break
            layer = Cat(register[at : at + 4].xor() for at in range(0, len(register), 4))
        m.d.comb += self.o.eq(register)
        return m


@dataclass(frozen=True)
class Clock:
    """What :func:`fmax` found."""

    #: Median of the clocks, in MHz.
    mhz: float
    #: The clock of each seed.
    all_mhz: tuple[float, ...]
    #: Cells of the device that are used, by nextpnr's names; the harness included.
    cells: dict[str, int]


def _run(command, log):
    """Run a tool; show the end of what it said when it fails."""
    with open(log, "w") as out:
        code = subprocess.run(
            [str(part) for part in command], stdout=out, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code:
        tail = " | ".join(log.read_text(errors="replace").splitlines()[-5:])
        raise TrebuchetError(f"{Path(command[0]).name} failed (see {log}): {tail}")


def _place_and_route(folder, device, speed, target, seed):
    report = folder / f"seed{seed}.json"
    command = ["nextpnr-ecp5", DEVICES[device], "--package", "CABGA381", "--speed", speed]
    command += ["--json", folder / "netlist.json", "--lpf-allow-unconstrained"]
    command += ["--freq", target, "--timing-allow-fail", "--seed", seed, "--report", report]
    command += ["--router", "router2"]
    _run(command, folder / f"seed{seed}.log")
    found = json.loads(report.read_text())
    clocks = [row["achieved"] for net, row in found["fmax"].items() if re.search(r"clk", net)]
    if len(clocks) != 1:
        raise TrebuchetError(f"{report} must tell of one clock, not {sorted(found['fmax'])}")
    return clocks[0], {cell: row["used"] for cell, row in found["utilization"].items()}


def fmax(component, device="LFE5U-85F", speed=6, seeds=(1, 2, 3), target=100):
    """Place and route ``component`` alone; returns a :class:`Clock`.

    Parameters
    ----------
    component : Component
        With ports of a signature, in one clock domain ``sync``.
    device : str
        One of :data:`DEVICES`.
    speed : int
        Speed grade: 6, 7 or 8; 6 is the slowest.
    seeds : sequence of int
        Seeds of the placer.
    target : float
        Clock that the tools aim at, in MHz.
    """
    if device not in DEVICES:
        raise ValueError(f"Device must be one of {', '.join(DEVICES)}, not {device!r}")
    if speed not in (6, 7, 8):
        raise ValueError(f"Speed grade must be 6, 7 or 8, not {speed!r}")
    if not seeds:
        raise ValueError(f"Seeds must be one or more integers, not {seeds!r}")
    provide_tools(BUILD.parent / "tools")
    folder = BUILD / f"{type(component).__name__}-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "top.il").write_text(rtlil.convert(Harness(component), name="top", emit_src=False))
    script = f"read_rtlil {folder}/top.il; synth_ecp5 -abc9 -top top -json {folder}/netlist.json"
    _run(["yosys", "-q", "-p", script], folder / "yosys.log")
    runs = [_place_and_route(folder, device, speed, target, seed) for seed in seeds]
    clocks = tuple(mhz for mhz, _ in runs)
    return Clock(statistics.median(clocks), clocks, runs[0][1])
