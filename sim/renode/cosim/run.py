"""A board in two halves: its processor in Renode, its gateware in Verilator."""

import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from ....models.errors import TrebuchetError
from .. import emit
from ..client import Renode
from ..platform import describe_cosimulated, read_build
from .agent import build_agent
from .gateware import GatewareBus, cosim_source

__all__ = ["CosimulatedBoard"]


class CosimulatedBoard:
    """The simulated board with its firmware in Renode; a context manager.

    Parameters
    ----------
    library : bool
        Renode loads the agent as a library; else the agent is a program that connects to Renode.

    Attributes
    ----------
    board : Board
        The gateware, running, with its network: clients use it as they use any simulated board.
    renode : Renode
        Where the firmware runs.
    """

    def __init__(self, library: bool = True) -> None:
        self._cleanup = contextlib.ExitStack()
        try:
            self._start(library)
        except BaseException:
            self.close()
            raise

    def _start(self, library: bool) -> None:
        agent = build_agent(library)
        source = cosim_source()
        assert source.folder is not None
        build = read_build(Path(source.folder).parent)
        bus = self._cleanup.enter_context(GatewareBus(source))
        self.board: Any = bus.board
        environment = {
            **os.environ,
            "TREBUCHET_COSIM": bus.path,
            "TREBUCHET_IRQ": str(build.constants["shell_irq_interrupt"]),
        }
        self.renode = renode = self._cleanup.enter_context(Renode(environment=environment))
        platform = describe_cosimulated(build, None if library else "127.0.0.1")
        script = emit.write(
            [platform], renode.folder, build.board, library=agent if library else None
        )
        renode.do(f"include @{script}")
        if not library:
            ports = renode.do("sysbus.gateware ConnectionParameters").split()
            if len(ports) != 3:
                raise TrebuchetError(f"Renode names no ports for the agent but {ports}")
            child = subprocess.Popen([agent, *ports], env=environment)
            self._cleanup.callback(child.wait)
            self._cleanup.callback(child.kill)
            renode.do("sysbus.gateware Connect")
        self._uart = renode.folder / "uart.log"
        renode.do(f"sysbus.uart CreateFileBackend @{self._uart} true")

    def start(self, ready: str = "ready", timeout: float = 600) -> float:
        """Start the processor; wait until it has printed ``ready``; returns the seconds it took."""
        begin, end = time.monotonic(), self.board.deadline(timeout)
        self.renode.do("start")
        while ready not in self.uart_text():
            self.board.check()
            if not end.left():
                raise TrebuchetError(f"the firmware has printed only {self.uart_text()!r}")
            time.sleep(0.02)
        return time.monotonic() - begin

    def uart_text(self) -> str:
        """What the firmware has printed so far."""
        return self._uart.read_text(errors="replace") if self._uart.exists() else ""

    def close(self) -> None:
        self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
