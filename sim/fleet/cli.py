"""``trebuchet sim --boards N`` and ``--topology FILE``: several boards on one switch."""

import os
from pathlib import Path

from rich.console import Console

from ...models.errors import TrebuchetError
from ...models.plan import Plan
from ..process import shell_code
from .run import Fleet
from .topology import PEERS, Topology, load, uniform

__all__ = ["choose", "run_fleet"]


def choose(boards: int | None, topology: Path | None) -> Topology:
    """The topology of the command line."""
    if topology is None:
        return uniform(boards or 1)
    chosen = load(topology)
    if boards is not None and boards != len(chosen.boards):
        raise TrebuchetError(f"{topology} has {len(chosen.boards)} boards, not {boards}")
    return chosen


def _announce(fleet: Fleet, console: Console) -> None:
    topology = fleet.topology
    for board in topology.boards:
        called = [c.target for c in topology.connections if c.source == board.name]
        calls = f"; may call {', '.join(called)}" if called else ""
        console.print(
            f"[bold]{board.name}[/bold] at {board.ip}, {board.mac}{calls}", highlight=False
        )
    console.print(f"A shell on their network: {fleet.inside()}")
    console.print(f"Their consoles: {fleet.folder}/*.uart\nCtrl-C ends it.")


def run_fleet(
    topology: Topology,
    command: str | None,
    *,
    seed: int,
    time_mode: str,
    busy: bool,
    plan: Plan | None = None,
) -> int:
    """Run the boards until somebody ends it, or while ``command`` runs; returns its exit code.

    ``plan``: other roles and services than the simulated board's own.
    """
    from ...soc.build import build_sim
    from ..tops import board_source
    from .build import build_fleet
    from .firmware import board_folder

    if time_mode == "soc":
        raise TrebuchetError("several boards share their time: wall or cycles:N, not soc")
    console = Console(stderr=True)
    peers = PEERS if topology.connections else 0
    with console.status("Generating Verilog and firmware …"):
        source = board_source(plan, peers=peers)
        files = build_sim(plan=plan, peers=peers)
        folders = [board_folder(files, topology, board) for board in topology.boards]
    with console.status("Compiling the simulator (once for each version of it) …"):
        binary = build_fleet(source)
    idle_sleep = not busy and command is None
    with Fleet(
        topology, binary, folders, seed=seed, time_mode=time_mode, idle_sleep=idle_sleep
    ) as fleet:
        with console.status("The boards start …"):
            fleet.wait_ready(600)
        if command is not None:
            addresses = " ".join(board.ip for board in topology.boards)
            environment = {**os.environ, "TREBUCHET_BOARDS": addresses}
            return shell_code(fleet.popen(["sh", "-c", command], env=environment).wait())
        _announce(fleet, console)
        fleet.wait_for_end()
    return 0
