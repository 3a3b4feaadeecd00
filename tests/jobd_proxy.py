"""A TCP proxy that spoils the answers of one board: doubles them, delays them, holds them back."""

import contextlib
import heapq
import itertools
import socket
import threading
import time

from trebuchet.client import smp

__all__ = ["Proxy"]


class Proxy:
    """A context manager; connections to ``port`` go to ``board``, a port of this machine.

    ``spoil(message)`` gives what is sent for an answer: ``[(seconds, message), …]``, each so long
    after the answer came. Messages are in order as far as their times are. A delayed message is
    lost when its connection has ended.
    """

    def __init__(self, board, spoil):
        self.board, self.spoil = board, spoil
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open, self._lock = set(), threading.Lock()

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                self._hang_up(connection)

    def _hang_up(self, connection):
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self.board))
            except OSError:
                return
            with self._lock:
                self._open |= {near, far}
            line = _Line(near)
            for work in (self._requests, self._answers, line.run):
                threading.Thread(target=work, args=(near, far, line), daemon=True).start()

    def _requests(self, near, far, line):
        self._copy(near, far.sendall, near, far)

    def _answers(self, near, far, line):
        decoder = smp.Decoder()

        def pass_on(data):
            for message in decoder.feed(data):
                for seconds, said in self.spoil(message):
                    line.put(seconds, said.pack())

        self._copy(far, pass_on, near, far)
        line.end()

    def _copy(self, source, give, near, far):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                give(data)
        for connection in (near, far):
            self._hang_up(connection)


class _Line:
    """Messages on their way to a peer, by the time at which each is sent."""

    def __init__(self, peer):
        self.peer, self.queue, self.numbers = peer, [], itertools.count()
        self.changed, self.over = threading.Condition(), False

    def put(self, seconds, data):
        with self.changed:
            heapq.heappush(self.queue, (time.monotonic() + seconds, next(self.numbers), data))
            self.changed.notify()

    def end(self):
        with self.changed:
            self.over = True
            self.changed.notify()

    def _next(self):
        with self.changed:
            while not self.over:
                wait = self.queue[0][0] - time.monotonic() if self.queue else None
                if wait is not None and wait <= 0:
                    return heapq.heappop(self.queue)[2]
                self.changed.wait(wait)
        return None

    def run(self, *_):
        with contextlib.suppress(OSError):
            while (data := self._next()) is not None:
                self.peer.sendall(data)
