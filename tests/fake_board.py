"""A board made of the golden models, on this machine's loopback, and ways in which it is wrong."""

import asyncio
import contextlib
import json
import socket
import struct
import threading

from trebuchet.client import AsyncBoard, AsyncPool, Board, Pool
from trebuchet.models.smp_framing import (
    TYPE_CONFIGURATION,
    TYPE_DATA,
    TYPE_STREAM,
    error_message,
    frame,
)
from trebuchet.models.status import Status

__all__ = ["BOARDS", "HANG_UP", "HOST", "POOLS", "FakeBoard", "closed_port", "echo"]

HOST = "127.0.0.1"
#: What `tamper` returns to close the connection.
HANG_UP = object()
TYPES = (TYPE_DATA, TYPE_STREAM, TYPE_CONFIGURATION)


def echo(ident, data):
    return Status.OK, data


def closed_port():
    """A port of this machine at which nobody listens."""
    with socket.create_server((HOST, 0)) as server:
        return server.getsockname()[1]


class FakeBoard:
    """A context manager.

    Parameters
    ----------
    roles : dict
        ``role(ident, data)`` gives ``(status, result)``, by name, in the order of their numbers.
    segment : int
        Bytes of the largest message with its header.
    tamper : callable
        ``tamper(connection, message, answer)`` with the numbers of both, from 0 on: what is sent in
        the place of the answer; HANG_UP: the connection is closed.
    commands : dict
        ``(status, text)`` by command.
    types : tuple
        Message types that its roles take.

    Attributes
    ----------
    port, management : int
        Its TCP ports.
    connections : int
        How many there were at ``port``.
    jobs : list
        ``(ident, data)`` that the roles were given.
    """

    def __init__(
        self,
        roles=None,
        segment=1 << 17,
        tamper=lambda connection, message, answer: answer,
        commands=None,
        types=TYPES,
    ):
        self.roles = {"echo": echo} if roles is None else roles
        self.segment, self.tamper, self.types = segment, tamper, types
        self.commands = {} if commands is None else commands
        self.connections, self.jobs, self.requests = 0, [], 0
        self._open, self._lock, self._threads = [], threading.Lock(), []

    def __enter__(self):
        self.role_server = socket.create_server((HOST, 0))
        self.management_server = socket.create_server((HOST, 0))
        self.port = self.role_server.getsockname()[1]
        self.management = self.management_server.getsockname()[1]
        for server, serve in (
            (self.role_server, self._serve_role),
            (self.management_server, self._serve_management),
        ):
            self._start(self._accept, server, serve)
        return self

    def __exit__(self, *exc):
        self.vanish()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    @property
    def address(self):
        return f"{HOST}:{self.port}"

    def options(self, **more):
        """Options of a client for this board alone."""
        return {"management": self.management, "timeout": 20} | more

    def vanish(self):
        """Close all, as a board that loses its power would in the end."""
        for server in (self.role_server, self.management_server):
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
        self.cut()

    def cut(self):
        """Reset all connections."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                    )
                    connection.shutdown(socket.SHUT_RDWR)

    def _start(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self, server, serve):
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with self._lock:
                self._open.append(connection)
            self._start(self._one, serve, connection)

    def _one(self, serve, connection):
        with connection, contextlib.suppress(OSError):
            serve(connection)
        with self._lock:
            self._open.remove(connection)

    def _role(self, named):
        """The role that the first reserved byte of a header names."""
        names = list(self.roles)
        number = max(named - 1, 0)
        if number >= len(names):
            return lambda ident, data: (Status.NO_ROLE, b"")
        return self.roles[names[number]]

    def _serve_role(self, connection):
        with self._lock:
            number = self.connections
            self.connections += 1
        received, message = b"", 0
        while data := connection.recv(1 << 16):
            received += data
            while len(received) >= 8:
                end = 8 + int.from_bytes(received[4:8], "little")
                one, good = received[:end], received[0] in self.types and end <= self.segment
                if good and len(one) < end:
                    break
                received = received[end:]
                answer, jobs, lost = frame(one, self.segment, self._role(one[1]), self.types)
                self.jobs += jobs
                said = self.tamper(number, message, answer)
                message += 1
                if said is HANG_UP:
                    return
                connection.sendall(said)
                if lost:
                    return

    def _serve_management(self, connection):
        received = b""
        while data := connection.recv(1 << 16):
            received += data
            if received[:1] >= b"\t":
                if b"\r\n\r\n" in received:
                    self.requests += 1
                    body = json.dumps(self.state()).encode()
                    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
                    connection.sendall(head.encode() + body)
                    return
                continue
            while len(received) >= 8:
                end = 8 + int.from_bytes(received[4:8], "little")
                if len(received) < end:
                    break
                kind, payload, received = received[0], received[8:end], received[end:]
                connection.sendall(self._managed(kind, payload))

    def _managed(self, kind, payload):
        if kind == 5:
            unknown = (Status.UNKNOWN_COMMAND, "error: UNKNOWN_COMMAND\n")
            status, text = self.commands.get(payload.decode(), unknown)
            said = bytes((status, 0, 0, 0)) + text.encode()
            return struct.pack("<B3xI", 6, len(said)) + said
        if kind == TYPE_CONFIGURATION:
            return error_message(Status.OK if payload[12:] else Status.BAD_DATA)
        answer, jobs, _ = frame(struct.pack("<B3xI", kind, len(payload)) + payload, 1 << 16, echo)
        self.jobs += jobs
        return answer

    def state(self):
        slot = {"jobs": len(self.jobs), "errors": 0, "cycles": 7, "hangs": 0}
        engines = {"tcp": {"segments": 3}} | {name: dict(slot) for name in self.roles}
        return {"version": "0.1.0", "board": "fake", "uptime_ms": 5, "engines": engines}


class _Awaited:
    """Runs what an asyncio client does as if it blocked, so that one test has both."""

    def __init__(self, made):
        self._runner = asyncio.Runner()
        self.inner = self._wait(made)

    def _wait(self, function, *arguments):
        async def do():
            result = function(*arguments)
            return await result if hasattr(result, "__await__") else result

        return self._runner.run(do())

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
        self._runner.close()

    def close(self):
        self._wait(self.inner.close)

    def run(self, call):
        return self._wait(self.inner.run, call)

    def map(self, operation, *items, ordered=True):
        results = self.inner.map(operation, *items, ordered=ordered)
        try:
            while True:
                try:
                    yield self._wait(anext, results)
                except StopAsyncIteration:
                    return
        finally:
            self._wait(results.aclose)

    @property
    def roles(self):
        return self._wait(lambda: self.inner.roles)

    def role(self, name=None):
        made = self.inner.role(name)
        return type(made)(self, name)

    @property
    def owner(self):
        return self

    def __getattr__(self, name):
        found = getattr(self.inner, name)
        if hasattr(found, "plan"):
            return lambda *arguments, **options: self.run(found.plan(*arguments, **options))
        return type(found)(self, name) if hasattr(found, "stream") else found


class AwaitedBoard(_Awaited):
    def __init__(self, *arguments, **options):
        super().__init__(lambda: AsyncBoard(*arguments, **options))


class AwaitedPool(_Awaited):
    def __init__(self, *arguments, **options):
        super().__init__(lambda: AsyncPool(*arguments, **options))


#: Classes of clients, blocking and awaited, for parameters of tests.
BOARDS = {"blocking": Board, "asyncio": AwaitedBoard}
POOLS = {"blocking": Pool, "asyncio": AwaitedPool}
