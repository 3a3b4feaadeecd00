"""``trebuchet sim --boards N`` and ``--topology FILE``: several boards on one switch."""

import os
from pathlib import Path

from rich.console import Console

from ...models.errors import TrebuchetError
from .run import Fleet
from .topology import Topology, load, uniform

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
    for board in fleet.topology.boards:
        console.print(f"[bold]{board.name}[/bold] at {board.ip}, {board.mac}", highlight=False)
    inside = " ".join(fleet.namespace.enter([], tether=False))
    console.print(f"A shell on their network: {inside}")
    console.print(f"Their consoles: {fleet.folder}/*.uart\nCtrl-C ends it.")


def run_fleet(
    topology: Topology, command: str | None, *, seed: int, time_mode: str, busy: bool
) -> int:
    """Run the boards until somebody ends it, or while ``command`` runs; returns its exit code."""
    from ...soc.build import build_sim
    from ..tops import board_source
    from .build import build_fleet
    from .firmware import board_folder

    if time_mode == "soc":
        raise TrebuchetError("several boards share their time: wall or cycles:N, not soc")
    console = Console(stderr=True)
    if topology.connections:
        console.print(
            f"[yellow]{len(topology.connections)} LTL connections are checked, but not set up: "
            "the simulated board has no LTL engine yet.[/yellow]"
        )
    with console.status("Generating Verilog and firmware …"):
        source, files = board_source(), build_sim()
        folders = [board_folder(files, board) for board in topology.boards]
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
            return fleet.popen(["sh", "-c", command], env=environment).wait()
        _announce(fleet, console)
        fleet.wait_for_end()
    return 0
