"""Running several simulated boards on one switch: :class:`Fleet`.

>>> with Fleet(topology, binary, folders) as fleet:
...     fleet.wait_ready()
...     fleet.popen(["trebuchet", "status", topology.boards[2].ip]).wait()
...     fleet.stats()["ports"]["board2"]
"""

import time
from collections.abc import Sequence
from pathlib import Path

from ...models.errors import TrebuchetError
from ..process import SimulatorProcess
from .topology import BoardSpec, Topology

__all__ = ["Fleet", "plan_text"]


def plan_text(
    topology: Topology,
    folders: Sequence[Path],
    uarts: Sequence[str],
    *,
    seed: int = 1,
    time_mode: str = "wall",
    tap: bool = True,
    control: int | None = None,
    idle_sleep: bool = False,
    cycles: int = 0,
    progress: Path | None = None,
) -> str:
    """The plan for the harness (``harness/plan.h``): the host's port first, then the boards."""
    lines = [f"seed {seed}", f"time {time_mode}"]
    lines += [f"tap tap0 {topology.host_ip}/{topology.prefix}"] if tap else []
    lines += [f"control {control}"] if control is not None else []
    lines += ["idle_sleep"] if idle_sleep else []
    lines += [f"cycles {cycles}"] if cycles else []
    lines += [f"progress {progress}"] if progress else []
    lines.append(topology.host_link.plan("host", topology.clock_mhz))
    for board, folder, uart in zip(topology.boards, folders, uarts, strict=True):
        lines.append(board.link.plan(board.name, topology.clock_mhz))
        lines.append(f"board {folder} {uart} {board.ip} {board.mac}")
    return "\n".join(lines) + "\n"


class Fleet(SimulatorProcess):
    """The boards of a topology, running; a context manager.

    This machine's kernel is at the switch, too: the host's address of the topology on device
    ``tap0``, in a namespace that only this object knows. Everything ends with this object.

    Parameters
    ----------
    topology : Topology
        Boards, links, addresses.
    binary : path
        From :func:`trebuchet.sim.fleet.build.build_fleet`.
    folders : sequence of paths
        Of the boards' memory images, :func:`trebuchet.sim.fleet.firmware.board_folder`.
    seed, time_mode, idle_sleep
        As for one board.
    """

    def __init__(
        self,
        topology: Topology,
        binary: Path,
        folders: Sequence[Path],
        *,
        seed: int = 1,
        time_mode: str = "wall",
        idle_sleep: bool = False,
    ) -> None:
        self.topology = topology

        def command(control: int) -> list[str]:
            plan = self.folder / "plan"
            uarts = [f"file:{self.uart_path(board.name)}" for board in topology.boards]
            plan.write_text(
                plan_text(
                    topology,
                    folders,
                    uarts,
                    seed=seed,
                    time_mode=time_mode,
                    control=control,
                    idle_sleep=idle_sleep,
                    progress=self.progress_path,
                )
            )
            return [str(Path(binary).resolve()), str(plan)]

        super().__init__("fleet", command)

    def uart_path(self, name: str) -> Path:
        """Where the console output of a board goes."""
        return self.folder / f"{name}.uart"

    def wait_ready(self, timeout: float = 120) -> None:
        """Wait until the firmware of every board says that it is up, and has joined its peers.

        ``timeout`` is in simulated seconds.
        """
        end = self.deadline(timeout)
        for board in self.topology.boards:
            while (missing := self._missing(board)) is not None:
                self.check()
                if not end.left():
                    raise TrebuchetError(f"board {board.name!r} {missing} within {end}")
                time.sleep(0.05)

    def _missing(self, board: BoardSpec) -> str | None:
        """What a board has not said on its console yet."""
        path = self.uart_path(board.name)
        words = path.read_text(errors="replace").split() if path.exists() else []
        if "ready" not in words:
            return "is not up"
        if words.count("joined") < len(self.topology.peers(board.name)):
            return "has not joined its peers"
        return None
