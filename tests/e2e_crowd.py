"""Tens of thousands of connections that nothing happens on, without a socket each.

The kernel has neither the ports nor the memory for a hundred thousand. Here a connection is a few
numbers, and one packet socket sends and takes the frames of all (:mod:`e2e_raw`). The kernel's TCP
serves other addresses of the network meanwhile.
"""

import collections
import contextlib
import random
import struct
import threading
import time
from array import array

from e2e_board import raw_socket
from e2e_clients import DISCARD, ECHO
from e2e_raw import ACK, FIN, PSH, RST, SYN, tcp_frame
from patience import join

__all__ = ["Crowd"]

_IDLE, _OPENING, _OPEN, _TALKING, _LEAVING, _OVER = range(6)
_NAMES = ("idle", "opening", "open", "talking", "leaving", "over")
#: Source addresses, of TEST-NET-2, and ports.
_NETWORK = bytes([198, 51, 100])
_FIRST_HOST, _FIRST_PORT, _PORTS = 1, 16384, 32768
#: What those say who say something.
_SPOKEN = 24
_MASK = (1 << 32) - 1


class Crowd:
    """``count`` connections to ``ports`` in turn. A context manager; a thread is their peer.

    Those of echo and discard say some bytes before they close, and those of echo must get them
    back; the others say nothing. :meth:`open` and :meth:`close` raise if one is reset or if none
    makes progress for long.

    Parameters
    ----------
    board : Board
        Where they are open.
    count : int
        At most 8 million.
    ports : sequence of int
        TCP ports of the board.
    at_once : int
        Of those that open or close at the same time: more SYNs would not fit the board's buffer.
    retry : int
        Milliseconds of the board's time after which what has no answer is sent again.

    Attributes
    ----------
    opened, closed, repeated, probed : int
        Connections that were opened and closed; frames sent again; segments that the board sent to
        connections at rest, which were acknowledged.
    late : int
        Resets of connections that were over: answers to what was sent again for nothing.
    """

    def __init__(self, board, count, ports, *, at_once=32, retry=400, seed=1):
        self.board, self.count, self.ports = board, count, tuple(ports)
        self.at_once, self.retry, self.rng = at_once, retry, random.Random(seed)
        self.opened = self.closed = self.repeated = self.probed = self.late = 0
        self._state = bytearray(count)
        self._seq, self._next = array("I", bytes(4 * count)), array("I", bytes(4 * count))
        self._got = bytearray(count)  # bytes echoed
        self._finished = bytearray(count)  # the board has sent its FIN
        self._waiting = {}  # of those under way, when to repeat
        self._queue = collections.deque()
        self._fault = None
        self._stop = threading.Event()

    def __enter__(self):
        self._socket = raw_socket(self.board)
        self._socket.settimeout(0.02)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        join(self._thread, 60, "the crowd")
        self._socket.close()

    def open(self):
        """Open all, and return when each has its SYN-ACK."""
        self._queue.extend(range(self.count))
        self._wait(lambda: self.opened)

    def close(self):
        """Close all, in random order, and return when each FIN is acknowledged, both ways."""
        self._queue.extend(self.rng.sample(range(self.count), self.count))
        self._wait(lambda: self.closed)

    def names(self):
        """Address and port of each, as the board lists its peers."""
        return [f"{host}:{port}" for host, port in map(self._source, range(self.count))]

    @staticmethod
    def _source(number):
        host, port = divmod(number, _PORTS)
        return ".".join(map(str, (*_NETWORK, _FIRST_HOST + host))), _FIRST_PORT + port

    def _wait(self, done):
        """Until all are done; the limit counts progress."""
        before, end = -1, None
        while (now := done()) < self.count:
            assert self._fault is None, self._fault
            self.board.check()
            if now != before:
                before, end = now, self.board.deadline(120)
            assert end.left(), f"{now} of {self.count} within {end}: {self._described()}"
            time.sleep(0.05)
        assert self._fault is None, self._fault

    def _described(self):
        return ", ".join(
            f"connection {number} is {_NAMES[self._state[number]]}"
            for number in list(self._waiting)[:3]
        )

    def _run(self):
        try:
            while not self._stop.is_set():
                self._begin()
                with contextlib.suppress(TimeoutError):
                    self._receive(self._socket.recv(2048))
                self._repeat()
        except Exception as error:
            self._fault = f"the crowd's thread failed: {error!r}"

    def _begin(self):
        """Some more open, or close."""
        while self._queue and len(self._waiting) < self.at_once:
            number = self._queue.popleft()
            if self._state[number] == _IDLE:
                self._seq[number] = self.rng.getrandbits(32)
                self._enter(number, _OPENING)
            elif self._state[number] == _OPEN:
                speaks = self._port(number) in (ECHO, DISCARD)
                self._enter(number, _TALKING if speaks else _LEAVING)

    def _port(self, number):
        return self.ports[number % len(self.ports)]

    def _enter(self, number, state):
        self._state[number] = state
        self._say(number)

    def _say(self, number):
        """What the connection waits for an answer to."""
        self._waiting[number] = self.board.simulation.ticks + self.retry
        state = self._state[number]
        if state == _OPENING:
            self._send(number, SYN, ack=False)
        elif state == _TALKING:
            self._send(number, ACK | PSH, payload=self._text(number))
        else:
            self._send(number, ACK | FIN)

    @staticmethod
    def _text(number):
        return number.to_bytes(4, "big") * (_SPOKEN // 4)

    def _send(self, number, flags, *, ahead=0, ack=True, payload=b""):
        address, port = self._source(number)
        frame = tcp_frame(
            address,
            self.board.ip,
            port,
            self._port(number),
            flags,
            seq=(self._seq[number] + ahead) & _MASK,
            ack=self._next[number] if ack else 0,
            payload=payload,
        )
        self._socket.send(frame)

    def _repeat(self):
        now = self.board.simulation.ticks
        for number in [number for number, due in self._waiting.items() if due <= now]:
            self.repeated += 1
            self._say(number)

    def _receive(self, frame):
        if len(frame) < 54 or frame[23] != 6 or frame[30:33] != _NETWORK:
            return
        start = 14 + 4 * (frame[14] & 15)
        port, to, seq, ack, offset, flags = struct.unpack_from("!HHIIBB", frame, start)
        number = (frame[33] - _FIRST_HOST) * _PORTS + to - _FIRST_PORT
        if not 0 <= number < self.count or port != self._port(number):
            self._fault = f"a segment came from port {port} to {frame[30:34]!r}, port {to}"
            return
        end = 14 + struct.unpack_from("!H", frame, 16)[0]
        payload = frame[start + 4 * (offset >> 4) : end]
        if flags & RST and self._state[number] == _OVER:
            self.late += 1
        elif flags & RST:
            self._fault = f"connection {number}, {_NAMES[self._state[number]]}, was reset"
        elif self._state[number] == _OPENING:
            self._established(number, seq, ack, flags)
        elif self._state[number] != _IDLE:
            self._accept(number, seq, payload, flags)
            self._advance(number, ack)

    def _established(self, number, seq, ack, flags):
        if not flags & SYN or ack != (self._seq[number] + 1) & _MASK:
            return
        self._seq[number], self._next[number] = ack, (seq + 1) & _MASK
        self._state[number] = _OPEN
        del self._waiting[number]
        self._send(number, ACK)
        self.opened += 1

    def _accept(self, number, seq, payload, flags):
        """Take bytes and FIN in order; acknowledge them, and what was there before."""
        if not payload and not flags & (FIN | SYN) and seq == self._next[number]:
            return  # an ACK
        if self._state[number] == _OPEN:
            self.probed += 1
        if seq == self._next[number] and not self._finished[number]:
            got = self._got[number]
            if payload != self._text(number)[got : got + len(payload)]:
                self._fault = f"connection {number} got {payload!r} behind {got} bytes"
            self._got[number] = min(got + len(payload), _SPOKEN)
            self._finished[number] = bool(flags & FIN)
            self._next[number] = (seq + len(payload) + self._finished[number]) & _MASK
        sent = {_TALKING: _SPOKEN, _LEAVING: 1}  # not acknowledged before
        self._send(number, ACK, ahead=sent.get(self._state[number], 0))

    def _advance(self, number, ack):
        state = self._state[number]
        if state == _TALKING and ack == (self._seq[number] + _SPOKEN) & _MASK:
            if self._port(number) == ECHO and self._got[number] < _SPOKEN:
                return
            self._seq[number] = ack
            self._enter(number, _LEAVING)
        elif (
            state == _LEAVING and ack == (self._seq[number] + 1) & _MASK and self._finished[number]
        ):
            self._seq[number] = ack
            self._state[number] = _OVER
            del self._waiting[number]
            self.closed += 1
