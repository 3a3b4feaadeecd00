"""Simulated boards on one switch for tests of pools and of the job server."""

import contextlib

from trebuchet.models.plan import Plan
from trebuchet.sim.fleet.build import build_fleet
from trebuchet.sim.fleet.firmware import board_folder
from trebuchet.sim.fleet.run import Fleet
from trebuchet.sim.fleet.topology import parse
from trebuchet.sim.tops import board_source

__all__ = ["boards_on_a_switch", "made"]


def made(count):
    """Boards with the roles of a model node: loopback, and benchmark once it is configured.

    Topology, program and folders, as a fleet takes them. They have no connections among each other.
    """
    from trebuchet.soc.build import build_sim  # noqa: PLC0415 - LiteX is slow to import

    plan = Plan.of_roles("loopback", "benchmark")
    topology = parse({"boards": [{"name": f"board{k}"} for k in range(count)]})
    binary = build_fleet(board_source(plan))
    files = build_sim(plan=plan)
    return topology, binary, [board_folder(files, topology, board) for board in topology.boards]


@contextlib.contextmanager
def boards_on_a_switch(count):
    """The fleet, once all boards are up."""
    with Fleet(*made(count)) as fleet:
        fleet.wait_ready(100 * count)
        yield fleet
