"""The elastic router: area by synthesis, saturation and latency in Verilator.

Saturation: uniform random traffic, every VC of every source always has a packet waiting, U-turns
allowed, sinks that give a credit back at once, 4 ports, 4 VCs, 32 flits of buffer a port (8 a VC).
"""

from ..cores.router.contract import LinkConfig
from ..cores.router.router import Router
from ..sim.router import RouterSimulator, router_source
from .area import area_job
from .job import Job, Values

__all__ = ["curve", "lut4", "lut6", "traffic"]


def _router() -> Router:
    return Router(4, LinkConfig(vcs=4, buffer_flits=32), pass_through=True)


def traffic() -> Job:
    """Return the measurement of saturation with packets of 1 and 8 flits, and of the latency."""
    source = router_source(_router())

    def measure() -> Values:
        simulator = RouterSimulator(source)
        runs = {length: simulator.run(length) for length in (1, 8)}
        # One packet in two hundred cycles: hardly one meets another.
        idle = simulator.run(1, load=0.005)
        return {
            "router.saturation": round(runs[1].throughput, 3),
            "router.saturation_8": round(runs[8].throughput, 3),
            "router.latency_cycles": round(idle.latency, 2),
        }

    return Job((source,), measure)


#: What is synthesised: 4 ports, 2 VCs, flits and phits of 64 bits, 16 flits of buffer a port.
AREA = LinkConfig(vcs=2, flit_width=64, buffer_flits=16)


def lut6() -> Job:
    """Return the measurement of LUT6 of UltraScale+."""
    return area_job(lambda: Router(4, AREA), {"router.lut6": "LUT6"})


def lut4() -> Job:
    """Return the measurement of LUT4 of ECP5."""
    return area_job(lambda: Router(4, AREA), {"router.lut4": "LUT4"}, "ecp5")


def curve(length: int, loads: list[float]) -> list[tuple[float, float, float]]:
    """``(offered, delivered, latency)`` for the plot of docs/network.md."""
    simulator = RouterSimulator(_router())
    runs = [(load, simulator.run(length, load=load)) for load in loads]
    return [(load, run.throughput, run.latency) for load, run in runs]
