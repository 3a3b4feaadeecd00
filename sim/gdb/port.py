"""The harness's debug socket: commands for VexRiscv's debug plugin (``harness/debug.cpp``)."""

import contextlib
import socket
import struct
from pathlib import Path

from ...models.errors import TrebuchetError
from ...models.progress import Simulation
from ...models.sockets import SimulatedTimeSocket

__all__ = ["FLAGS", "INSTRUCTION", "DebugPort", "PortClosed", "idle", "read", "rom", "write"]

#: The plugin's registers: flags; instruction to execute, read as the result of the last one.
FLAGS, INSTRUCTION = 0x00, 0x04

_COMMAND = struct.Struct("<BBHI")
_WRITE, _READ, _IDLE, _HALTED, _ROM = range(1, 6)
_ANSWERS = (_READ, _HALTED)
#: So many seconds without an answer: the simulator hangs.
_PATIENCE = 60


class PortClosed(TrebuchetError):
    """The simulator has ended."""


def write(address: int, data: int) -> bytes:
    """Write a register of the plugin."""
    return _COMMAND.pack(_WRITE, address, 0, data)


def read(address: int) -> bytes:
    """Answer with a register of the plugin."""
    return _COMMAND.pack(_READ, address, 0, 0)


def idle() -> bytes:
    """Wait until the instructions have done what they do."""
    return _COMMAND.pack(_IDLE, 0, 0, 0)


def rom(writable: bool) -> bytes:
    """Let stores change the ROM, or not."""
    return _COMMAND.pack(_ROM, 0, 0, writable)


class DebugPort:
    """The client's end; a context manager. Not for several threads at once.

    With ``simulation``, waits are limited by its progress, else by the wall clock.
    """

    def __init__(self, path: Path, simulation: Simulation | None = None) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        if simulation is not None:
            self._socket = SimulatedTimeSocket(simulation, self._socket)
        try:
            self._socket.settimeout(_PATIENCE)
            self._socket.connect(str(path))
        except BaseException:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """For ``select``: readable when :meth:`halted` would not wait."""
        return self._socket.fileno()

    def run(self, *commands: bytes) -> list[int]:
        """Do the commands in this order; the answers of those that answer."""
        self._send(b"".join(commands))
        return self._receive(sum(command[0] in _ANSWERS for command in commands))

    def wait_halted(self) -> None:
        """Begin to wait until the CPU is halted, or until other commands come."""
        self._send(_COMMAND.pack(_HALTED, 0, 0, 0))

    def halted(self) -> int:
        """End what :meth:`wait_halted` began; the plugin's flags."""
        return self._receive(1)[0]

    def give_up(self) -> None:
        """Instead of :meth:`halted`: do not wait any longer."""
        self._send(read(FLAGS))
        self._receive(2)

    def _send(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except OSError as error:
            raise PortClosed(f"the simulator does not take commands: {error}") from None

    def _receive(self, words: int) -> list[int]:
        data = b""
        while len(data) < 4 * words:
            try:
                chunk = self._socket.recv(65536)
            except OSError as error:
                raise PortClosed(f"the simulator does not answer: {error}") from None
            if not chunk:
                raise PortClosed("the simulator has ended")
            data += chunk
        return list(struct.unpack(f"<{words}I", data))

    def close(self) -> None:
        """Hang up; the CPU stays as it is."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def __enter__(self) -> "DebugPort":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
