"""Sockets whose time-outs follow the progress of a simulation, for clients of simulated boards.

:func:`connect` and :func:`listen` return ordinary sockets, or, in a process that a simulator has
started (:mod:`.progress`), a :class:`SimulatedTimeSocket`, which is used in the same way.
"""

import errno
import os
import select
import socket
from collections.abc import Callable
from typing import Any

from .progress import Deadline, Simulation, current_simulation

__all__ = ["SimulatedTimeSocket", "connect", "listen"]


class SimulatedTimeSocket(socket.socket):
    """A socket with its time-outs in simulated seconds (:class:`~.progress.Deadline`).

    Parameters
    ----------
    simulation : Simulation
        Which one.
    made : socket
        What it is made of; that object is closed then.

    Its time-out counts anew for each call, for :meth:`sendall` too, as in :mod:`socket`. With the
    time-outs None and 0 it is blocking and non-blocking like any other.
    """

    def __init__(self, simulation: Simulation, made: socket.socket) -> None:
        self.simulation, self._limit = simulation, made.gettimeout()
        super().__init__(made.family, made.type, made.proto, fileno=made.detach())
        self.settimeout(self._limit)

    def settimeout(self, value: float | None) -> None:
        self._limit = value
        super().settimeout(None if value is None else 0)

    def setblocking(self, flag: bool) -> None:
        self.settimeout(None if flag else 0)

    def gettimeout(self) -> float | None:
        return self._limit

    def _wait(self, event: int, end: Deadline) -> None:
        poller = select.poll()
        poller.register(self, event)
        while not poller.poll(1000 * end.pause()):
            pass

    def _repeat(self, event: int, operation: Callable[..., Any], *arguments: Any) -> Any:
        """``operation``, which does not block, until it succeeds."""
        if not self._limit:
            return operation(*arguments)
        end = Deadline(self._limit, self.simulation)
        while True:
            try:
                return operation(*arguments)
            except BlockingIOError:
                self._wait(event, end)

    def connect(self, address: Any) -> None:
        if not self._limit:
            return super().connect(address)
        code = super().connect_ex(address)
        if code == errno.EINPROGRESS:
            self._wait(select.POLLOUT, Deadline(self._limit, self.simulation))
            code = self.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        return None

    def accept(self) -> tuple["SimulatedTimeSocket", Any]:
        accepted, address = self._repeat(select.POLLIN, super().accept)
        accepted.settimeout(None)
        return SimulatedTimeSocket(self.simulation, accepted), address

    def recv(self, *arguments: Any) -> bytes:
        return self._repeat(select.POLLIN, super().recv, *arguments)

    def recv_into(self, *arguments: Any) -> int:
        return self._repeat(select.POLLIN, super().recv_into, *arguments)

    def recvfrom(self, *arguments: Any) -> tuple[bytes, Any]:
        return self._repeat(select.POLLIN, super().recvfrom, *arguments)

    def send(self, *arguments: Any) -> int:
        return self._repeat(select.POLLOUT, super().send, *arguments)

    def sendto(self, *arguments: Any) -> int:
        return self._repeat(select.POLLOUT, super().sendto, *arguments)

    def sendall(self, data: Any, *flags: int) -> None:
        if not self._limit:
            return super().sendall(data, *flags)
        end, rest = Deadline(self._limit, self.simulation), memoryview(data).cast("B")
        while rest:
            try:
                rest = rest[super().send(rest, *flags) :]
            except BlockingIOError:
                self._wait(select.POLLOUT, end)
        return None


def _timed(made: socket.socket, timeout: float | None) -> socket.socket:
    simulation = current_simulation()
    timed = made if simulation is None else SimulatedTimeSocket(simulation, made)
    timed.settimeout(timeout)
    return timed


def connect(address: str, port: int, timeout: float) -> socket.socket:
    """As :func:`socket.create_connection`: connect to the first address that takes it."""
    if current_simulation() is None:
        return socket.create_connection((address, port), timeout)
    failure: OSError = OSError("the name has no address")
    for family, *_, there in socket.getaddrinfo(address, port, type=socket.SOCK_STREAM):
        connecting = _timed(socket.socket(family, socket.SOCK_STREAM), timeout)
        try:
            connecting.connect(there)
        except OSError as error:
            connecting.close()
            failure = error
        else:
            return connecting
    raise failure


def listen(port: int, timeout: float) -> socket.socket:
    """As :func:`socket.create_server`, at every IPv4 address of this machine."""
    return _timed(socket.create_server(("", port)), timeout)
