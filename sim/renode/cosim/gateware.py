"""The simulated board without processor, its bus driven from Python: :class:`GatewareBus`."""

import dataclasses
import os
import socket
import time
from pathlib import Path

from ....models.errors import TrebuchetError
from ....models.sockets import SimulatedTimeSocket
from ...build import Source, build
from ...run import Board
from ...tops import board_source

__all__ = ["GatewareBus", "cosim_source"]

#: Only what is compiled with the Verilog: a change there compiles it anew.
HARNESS = Path(__file__).resolve().parent / "harness"


def cosim_source(role: str | None = None) -> Source:
    """The board's Verilog with ``cpu.sv`` where VexRiscv was."""
    board = board_source(role)
    files = [f for f in board.files if not Path(f).name.startswith("VexRiscv")]
    if len(files) + 1 != len(board.files):
        raise TrebuchetError(f"the board must have one VexRiscv among {board.files}")
    files.append(HARNESS / "cpu.sv")
    return dataclasses.replace(board, kind="cosim", files=tuple(files), main=HARNESS / "serve.cpp")


class GatewareBus:
    """A board in Verilator whose processor is this object; a context manager.

    ``board`` is the running :class:`~trebuchet.sim.run.Board`, with its network; ``path`` is the
    socket through which others may use the bus, too.
    """

    def __init__(self, source: Source | None = None) -> None:
        source = source or cosim_source()
        binary = build(source)
        # Unix sockets have short names, and the board's own folder is known too late.
        self.path = f"/tmp/trebuchet-cosim-{os.getpid()}-{id(self)}"
        os.environ["TREBUCHET_COSIM"] = self.path
        try:
            self.board = Board(binary, cwd=source.folder)
        finally:
            del os.environ["TREBUCHET_COSIM"]
        try:
            self._socket = self._connect()
        except BaseException:
            self.board.close()
            raise
        self._lines = self._socket.makefile("r")

    def _connect(self) -> socket.socket:
        end = self.board.deadline(20)
        while True:
            self.board.check()
            s = SimulatedTimeSocket(self.board.simulation, socket.socket(socket.AF_UNIX))
            try:
                s.connect(self.path)
            except OSError:
                s.close()
                if not end.left():
                    raise
                time.sleep(0.05)
            else:
                s.settimeout(20)
                return s

    def _ask(self, line: str) -> str:
        self._socket.sendall(line.encode() + b"\n")
        answer = self._lines.readline().strip()
        if answer in ("", "error"):
            self.board.check()
            raise TrebuchetError(f"the gateware's bus refused the access {line!r}")
        return answer

    def read(self, address: int) -> int:
        """The word at ``address``."""
        return int(self._ask(f"r {address:x}"), 16)

    def write(self, address: int, value: int) -> None:
        """Write the word at ``address``."""
        self._ask(f"w {address:x} {value:x}")

    def connect(self, port: int) -> socket.socket:
        """A TCP connection to the board."""
        connection: socket.socket = self.board.connect(port)
        return connection

    def close(self) -> None:
        self._lines.close()
        self._socket.close()
        self.board.close()
        Path(self.path).unlink(missing_ok=True)

    def __enter__(self) -> "GatewareBus":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
