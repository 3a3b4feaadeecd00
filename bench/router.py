"""The elastic router: area by synthesis, saturation and latency in Verilator.

Saturation: uniform random traffic, every VC of every source always has a packet waiting, U-turns
allowed, sinks that give a credit back at once, 4 ports, 4 VCs, 32 flits of buffer a port (8 a VC).
"""

from ..cores.router.contract import LinkConfig
from ..cores.router.router import Router
from ..sim.router import RouterSimulator
from .area import area

__all__ = ["curve", "measure", "measure_lut4", "measure_lut6"]


def _simulator(through: bool = True) -> RouterSimulator:
    return RouterSimulator(Router(4, LinkConfig(vcs=4, buffer_flits=32), pass_through=through))


def measure() -> dict[str, float]:
    """Saturation with packets of 1 and 8 flits, and the latency of a router that is almost idle."""
    simulator = _simulator()
    runs = {length: simulator.run(length) for length in (1, 8)}
    # One packet in two hundred cycles: hardly one meets another.
    idle = simulator.run(1, load=0.005)
    return {
        "router.saturation": round(runs[1].throughput, 3),
        "router.saturation_8": round(runs[8].throughput, 3),
        "router.latency_cycles": round(idle.latency, 2),
    }


#: What is synthesised: 4 ports, 2 VCs, flits and phits of 64 bits, 16 flits of buffer a port.
AREA = LinkConfig(vcs=2, flit_width=64, buffer_flits=16)


def measure_lut6() -> dict[str, float]:
    """LUT6 of UltraScale+."""
    return {"router.lut6": area(Router(4, AREA), "xcup")["LUT6"]}


def measure_lut4() -> dict[str, float]:
    """LUT4 of ECP5."""
    return {"router.lut4": area(Router(4, AREA), "ecp5")["LUT4"]}


def curve(length: int, loads: list[float]) -> list[tuple[float, float, float]]:
    """``(offered, delivered, latency)`` for the plot of docs/network.md."""
    simulator = _simulator()
    runs = [(load, simulator.run(length, load=load)) for load in loads]
    return [(load, run.throughput, run.latency) for load, run in runs]
