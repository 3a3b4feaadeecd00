"""A port of this machine whose connections go on to a simulated board's network."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from ..models.errors import TrebuchetError

__all__ = ["Forwarder"]

#: Bytes that are passed at a time.
_PIECE = 1 << 16


class Forwarder:
    """Listens on this machine's loopback address; a context manager.

    The network of a simulated board is its own, which a browser cannot reach. Both directions of a
    connection end by themselves: an end of what one side sends is passed on, as is a reset. A
    connection that the board refuses is closed.

    Parameters
    ----------
    connect : callable
        Returns a new connection to the board; raises OSError.
    port : int
        Where to listen; 0: any free port.

    Attributes
    ----------
    port : int
        Where it listens.

    Raises
    ------
    TrebuchetError
        The port is taken, or this user may not use it.
    """

    def __init__(self, connect: Callable[[], socket.socket], port: int = 0) -> None:
        self._connect = connect
        self._sockets: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        try:
            self._listener = socket.create_server(("127.0.0.1", port))
        except OSError as error:
            raise TrebuchetError(
                f"cannot listen on port {port}: {error.strerror}; choose another with --port"
            ) from error
        self.port: int = self._listener.getsockname()[1]
        self._spawn(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all connections, and listen no more."""
        with self._lock:
            self._closed = True
            ends = [self._listener, *self._sockets]
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    @staticmethod
    def _spawn(work: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        return thread

    def _accept(self) -> None:
        while True:
            try:
                user, _ = self._listener.accept()
            except OSError:
                return
            self._spawn(self._serve, user)

    def _serve(self, user: socket.socket) -> None:
        with user:
            try:
                board = self._connect()
            except (OSError, TrebuchetError):
                return
            with board:
                ends = {user, board}
                with self._lock:
                    if self._closed:
                        return
                    self._sockets |= ends
                back = self._spawn(_pass_on, board, user)
                _pass_on(user, board)
                back.join()
                with self._lock:
                    self._sockets -= ends


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    """Pass what one side sends to the other, and its end; a broken connection breaks both."""
    try:
        while data := source.recv(_PIECE):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
