"""A router, or a network of them, in Verilator under uniform random traffic.

::

    simulator = RouterSimulator(Router(4, LinkConfig(vcs=4, buffer_flits=32)))
    simulator.run(length=8).throughput         # infinite backlog
    simulator.run(length=8, load=0.4).latency  # flits a port and cycle are offered

The sinks (``sim/router_harness``) check content, order, destination and credits of every flit; at
the end the network is drained and every credit counted.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from amaranth import Elaboratable, Module, Signal
from amaranth.back import verilog

from ..models.errors import TrebuchetError
from ..soc.toolchain import provide_tools
from .build import (
    _MAKE,
    _VERILATOR,
    _cached,
    _digest,
    _jobs,
    _need,
    _run,
    _verilator_root,
    build_folder,
)
from .flat import add_clock

__all__ = ["RouterFault", "RouterSimulator", "Traffic"]

HARNESS = Path(__file__).resolve().parent / "router_harness" / "router.cpp"
FIELDS = ("data", "dest", "vc", "head", "tail")


class RouterFault(TrebuchetError):
    """A flit was lost, changed, reordered or misled, or a credit did not come back."""


@dataclass(frozen=True)
class Traffic:
    """What came of a run."""

    #: Flits per port and cycle, after the warm-up.
    throughput: float
    #: Cycles from a packet's making to its last flit at the sink, on average.
    latency: float
    packets: int


class _Top(Elaboratable):
    """``dut`` with one port for each field of each link."""

    def __init__(self, dut, ports):
        self.dut, self.names = dut, {}
        self.clk, self.rst = Signal(name="clk"), Signal(name="rst")
        for side, out in (("i", False), ("o", True)):
            for p in range(ports):
                link = getattr(dut, side)[p]
                for field in FIELDS:
                    self._port(f"{side}{field}{p}", link.phit[field], out)
                self._port(f"{side}valid{p}", link.valid, out)
                self._port(f"{side}credit{p}", link.credit, not out)
        self._port("idle", dut.idle, True)

    def _port(self, name, inner, out):
        self.names[name] = (Signal(len(inner), name=name), inner, out)

    def elaborate(self, platform):
        m = Module()
        add_clock(m, self.clk, self.rst)
        m.submodules.dut = self.dut
        for port, inner, out in self.names.values():
            m.d.comb += port.eq(inner) if out else inner.eq(port)
        return m

    def verilog(self):
        provide_tools(build_folder().parent / "tools")
        ports = [port for port, _, _ in self.names.values()]
        ports += [self.clk, self.rst]
        return verilog.convert(
            self, name="top", ports=ports, emit_src=False, strip_internal_attrs=True
        )


def _header(ports, config):
    """``router_ports.h``: the ports by number."""
    lines = [
        f"constexpr int PORTS = {ports}, VCS = {config.vcs};",
        f"constexpr int BUFFER = {config.buffer_flits}, RESERVED = {config.reserved};",
    ]
    functions = {
        "inline void put(Vtop& t, int p, const Flit& f)": "t.ivalid{p} = f.valid; "
        + " ".join(f"t.i{field}{{p}} = f.{field};" for field in FIELDS)
        + " return;",
        "inline void credit_in(Vtop& t, int p, unsigned c)": "t.ocredit{p} = c; return;",
        "inline unsigned credit_out(Vtop& t, int p)": "return t.icredit{p};",
        "inline Flit get(Vtop& t, int p)": "return {{"
        + ", ".join(f"t.o{field}{{p}}" for field in FIELDS)
        + ", bool(t.ovalid{p})}};",
    }
    for head, body in functions.items():
        body = body.replace("t.ohead{p}", "bool(t.ohead{p})")
        body = body.replace("t.otail{p}", "bool(t.otail{p})")
        cases = [f"    case {p}: {body.format(p=p)}" for p in range(ports)]
        lines += [f"{head} {{", "    switch (p) {", *cases, "    }", "    abort();", "}"]
    return "\n".join(lines) + "\n"


class RouterSimulator:
    """``dut``, a ``Router`` or a ``Network`` with one phit a flit, compiled once by content."""

    def __init__(self, dut) -> None:
        config, ports = dut.config, len(dut.i)
        if config.phits != 1 or config.flit_width != 64:
            raise ValueError(
                f"Simulated flits must have one phit of 64 bits, "
                f"not {config.phits} of {config.phit_width}"
            )
        self.ports = ports
        self.texts = {"top.v": _Top(dut, ports).verilog(), "router_ports.h": _header(ports, config)}
        parts = [*sorted(self.texts.items()), ("harness", HARNESS.read_bytes())]
        parts += [("verilator", _verilator_root()), ("options", [*_VERILATOR, *_MAKE])]
        self.binary = _cached(f"router-{_digest(parts)}", self._compile) / "sim"

    def _compile(self, folder: Path) -> None:
        for name, text in self.texts.items():
            (folder / name).write_text(text)
        root, log = _verilator_root(), folder / "build.log"
        command = [root / "bin" / "verilator_bin", *_VERILATOR, "--top-module", "top"]
        command += ["--Mdir", folder / "obj", "--exe", "-o", folder / "sim"]
        command += ["-CFLAGS", "-std=c++17", "-CFLAGS", f"-I{folder}", folder / "top.v", HARNESS]
        _run(command, log, env={**os.environ, "VERILATOR_ROOT": str(root)})
        make = [_need("make", "make"), "-s", "-C", folder / "obj", "-f", "Vtop.mk", "-j", _jobs()]
        _run([*make, *_MAKE, f"PYTHON3={sys.executable}"], log)

    def run(
        self,
        length: int = 1,
        load: float | None = None,
        back: float = 1.0,
        warm_up: int = 2000,
        cycles: int = 20000,
        seed: int = 1,
    ) -> Traffic:
        """Uniform random traffic.

        Parameters
        ----------
        length : int
            Flits a packet, at most 256.
        load : float or None
            Flits a port and cycle that the sources make; None: each VC of each source always has
            a packet waiting.
        back : float
            Probability that a sink gives a flit's credit back in a cycle; 1: at once.
        warm_up, cycles : int
            Cycles before measuring, and of it.
        seed : int
        """
        arguments = [length, -1 if load is None else load, back, warm_up, cycles, seed]
        result = subprocess.run(
            [self.binary, *map(str, arguments)], capture_output=True, text=True, check=False
        )
        if result.returncode not in (0, 1):
            raise RouterFault(f"router simulation failed: {result.stderr.strip()[-300:]}")
        values = json.loads(result.stdout)
        if "fault" in values:
            raise RouterFault(f"{values['fault']} (cycle {values['cycle']}, seed {seed})")
        return Traffic(**values)
