"""Well-behaved clients on the kernel's TCP, for the end-to-end tests; a cheated client raises.

Their randomness comes from the ``random.Random`` they are given: a test repeats with its seed.
"""

import random
import socket
import struct
import threading
import traceback

from patience import PATIENCE, Patience, join
from trebuchet.models.ecg import model
from trebuchet.models.ecg.synthetic import synthesise
from trebuchet.models.smp_framing import TYPE_DATA, data_message

__all__ = [
    "DISCARD",
    "ECHO",
    "PAGE_PORT",
    "SMP",
    "Witness",
    "ask",
    "ecg_blocks",
    "ecg_job",
    "echo",
    "read_all",
    "read_exactly",
    "read_message",
    "reset",
    "run_clients",
]

ECHO, DISCARD, PAGE_PORT, SMP = 7, 9, 8080, 4000
_samples, _, _ = synthesise(3.0, seed=5)


def read_exactly(connection, length):
    """``length`` bytes; fewer are an error."""
    data = bytearray()
    while len(data) < length:
        chunk = connection.recv(min(65536, length - len(data)))
        assert chunk, f"the board closed after {len(data)} of {length} bytes"
        data += chunk
    return bytes(data)


def read_all(connection):
    """Everything up to the board's FIN."""
    data = bytearray()
    while chunk := connection.recv(65536):
        data += chunk
    return bytes(data)


def reset(connection):
    """Close with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def echo(connection, data):
    """Send ``data`` while reading it back; the two must be equal."""
    failed = []

    def send():
        try:
            connection.sendall(data)
        except OSError as error:
            failed.append(error)

    # More than the window and the socket's buffers would block a client that only sends.
    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    back = read_exactly(connection, len(data))
    sender.join()
    assert not failed, failed
    assert back == data, f"byte {next(i for i, b in enumerate(data) if back[i] != b)} differs"


def ecg_blocks(rng, count):
    """``count`` blocks of random length and place of a synthetic ECG."""
    blocks = []
    for _ in range(count):
        length = rng.randint(model.MIN_SAMPLES, model.MAX_SAMPLES)
        start = rng.randrange(len(_samples) - length)
        blocks.append(_samples[start : start + length])
    return blocks


def read_message(connection):
    """``(type, payload)`` of the next SMP message."""
    kind, size = struct.unpack("<B3xI", read_exactly(connection, 8))
    return kind, read_exactly(connection, size)


def ecg_job(connection, ident, block):
    """Have one block classified; the answer must be the golden model's."""
    connection.sendall(data_message(ident, block.astype("<i2").tobytes()))
    kind, payload = read_message(connection)
    assert kind == TYPE_DATA, f"type {kind}: {payload.hex()}"
    assert payload[:4] == struct.pack("<I", ident)
    assert payload[4:] == model.classify_block(block)


def ask(board, port, request, timeout=90 * PATIENCE):
    """Send ``request``, return everything the board answers until it closes."""
    with board.connect(port, timeout) as connection:
        connection.sendall(request)
        return read_all(connection)


def run_clients(clients, seconds):
    """Run functions side by side, one thread each; all must return, and in time."""
    failures = []

    def guarded(number, client):
        try:
            client()
        except BaseException:
            failures.append(f"client {number}: {traceback.format_exc()}")

    threads = [
        threading.Thread(target=guarded, args=item, daemon=True) for item in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    patience = Patience(seconds)
    while hanging := [number for number, thread in enumerate(threads) if thread.is_alive()]:
        if patience.over():
            break
        threads[hanging[0]].join(0.2)
    assert not failures, "\n".join(failures)
    assert not hanging, f"clients {hanging} hang after {patience}"


class Witness:
    """An echo and an ECG session that go on, each on one connection, while others misbehave.

    A context manager. At its end both are closed; it raises if either was cheated or got no answer
    after :meth:`mark` was called for the last time.
    """

    def __init__(self, board, seed):
        self.board = board
        self.rng = {name: random.Random(f"{seed} {name}") for name in ("echo", "ecg")}
        self.rounds = {"echo": 0, "ecg": 0}
        self.marked = dict(self.rounds)
        self.failures = []
        self.stop = threading.Event()
        self.threads = []

    def _echo(self, connection, rng):
        echo(connection, rng.randbytes(rng.randint(1, 5000)))

    def _ecg(self, connection, rng):
        ecg_job(connection, rng.getrandbits(32), *ecg_blocks(rng, 1))

    def _run(self, name, port, step):
        try:
            with self.board.connect(port) as connection:
                while not self.stop.is_set() or self.rounds[name] == self.marked[name]:
                    step(connection, self.rng[name])
                    self.rounds[name] += 1
                    self.stop.wait(0.02)
        except BaseException:
            self.failures.append(f"{name}, round {self.rounds[name]}: {traceback.format_exc()}")

    def mark(self):
        """Both must still get an answer from here on."""
        self.marked = dict(self.rounds)

    def __enter__(self):
        for name, port, step in (("echo", ECHO, self._echo), ("ecg", SMP, self._ecg)):
            thread = threading.Thread(target=self._run, args=(name, port, step), daemon=True)
            thread.start()
            self.threads.append(thread)
        return self

    def __exit__(self, kind, *_):
        self.stop.set()
        for thread in self.threads:
            join(thread, 60, "a session")
        if kind is None:
            assert not self.failures, "\n".join(self.failures)
