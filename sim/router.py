"""A router, or a network of them, in Verilator under uniform random traffic.

::

    simulator = RouterSimulator(Router(4, LinkConfig(vcs=4, buffer_flits=32)))
    simulator.run(length=8).throughput         # infinite backlog
    simulator.run(length=8, load=0.4).latency  # flits a port and cycle are offered

The sinks (``sim/router_harness``) check content, order, destination and credits of every flit; at
the end the network is drained and every credit counted.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from ..models.errors import TrebuchetError
from .build import Source, build
from .flat import FlatTop

__all__ = ["RouterFault", "RouterSimulator", "Traffic", "router_source"]

TOP = "trebuchet_router"
HARNESS = Path(__file__).resolve().parent / "router_harness"
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


class RouterTop(FlatTop):
    """``dut`` with one port for each field of each link."""

    def __init__(self, dut):
        super().__init__(dut)
        for side, driven in (("i", False), ("o", True)):
            for p, link in enumerate(getattr(dut, side)):
                for field in FIELDS:
                    self.port(f"{side}{field}{p}", link.phit[field], driven)
                self.port(f"{side}valid{p}", link.valid, driven)
                self.port(f"{side}credit{p}", link.credit, not driven)
        self.port("idle", dut.idle, True)


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


def router_source(dut) -> Source:
    """The :class:`~trebuchet.sim.build.Source` of ``dut``, a ``Router`` or a ``Network``.

    Its flits must have one phit of 64 bits.
    """
    config, ports = dut.config, len(dut.i)
    if config.phits != 1 or config.flit_width != 64:
        raise ValueError(
            f"Simulated flits must have one phit of 64 bits, "
            f"not {config.phits} of {config.phit_width}"
        )
    texts = {"top.v": RouterTop(dut).verilog(TOP), "router_ports.h": _header(ports, config)}
    return Source("router", TOP, texts, main=HARNESS / "router.cpp")


class RouterSimulator:
    """``dut``, a ``Router`` or a ``Network``, compiled once by content; or its source."""

    def __init__(self, dut) -> None:
        self.binary = build(dut if isinstance(dut, Source) else router_source(dut))

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
