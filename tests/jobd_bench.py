"""Job servers and model nodes as processes, and users that speak SMP with them."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections import Counter, deque

import pytest
from trebuchet.client import smp
from trebuchet.host.jobd_build import ASIO, build
from trebuchet.models.status import Status

__all__ = ["JobServer", "Nodes", "User", "benchmarking", "eventually", "serving"]

if not ASIO.exists():
    pytest.skip("the job server needs Debian's libasio-dev", allow_module_level=True)

#: Seconds; no test waits so long unless something is wrong.
PATIENCE = 60
#: Of the sanitizers: a fault ends the process with a code of its own.
SANITIZED = {
    "ASAN_OPTIONS": "exitcode=66:detect_leaks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "exitcode=66:halt_on_error=1",
}


def eventually(condition, what):
    """Wait until ``condition()`` is true; return what it returned."""
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"{what} within {PATIENCE} s"
        time.sleep(0.01)
    return value


def benchmarking(cycles=0, output=0, input_size=0):
    """A benchmarking configuration: no cores, and four bytes in the place of the image."""
    return smp.Configuration(input_size, output, (), cycles.to_bytes(4, "little"))


class Program:
    """A native program that prints one line when its ports are open; ``lines`` is its log.

    ``start`` starts it, as ``subprocess.Popen`` does: on another network, say.
    """

    def __init__(self, name, *arguments, variant="release", start=subprocess.Popen):
        command = [build(name, variant), *map(str, arguments)]
        self.process = start(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **SANITIZED},
        )
        self.lines = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        self.greeting = self.process.stdout.readline()
        if not self.greeting:
            self._reader.join()
            raise AssertionError(f"{name} did not start: {self.lines}")

    def _read_log(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        """End it as a power failure ends a board."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """End it in an orderly way; what a sanitizer found then is a failure."""
        if self.process.poll() is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        self._reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        assert code in (0, -signal.SIGKILL), "\n".join(self.lines)


class Nodes(Program):
    """Model boards in one process."""

    def __init__(self, boards=1, *options, port=0, variant="release", start=subprocess.Popen):
        words = ("--boards", boards, "--port", port, *options)
        super().__init__("trebuchet-node", *words, variant=variant, start=start)
        places = self.greeting.partition(":")[2]
        self.ports = [int(word) for word in places.split()]

    @property
    def places(self):
        """Options of the job server that name them."""
        return [word for port in self.ports for word in ("--node", f"127.0.0.1:{port}")]


class JobServer(Program):
    """A job server with any free ports, unless ``options`` say which.

    ``start``: as for :class:`Program`; ``connect``: makes a connection to an address there, as
    ``socket.create_connection`` does.
    """

    def __init__(
        self,
        *options,
        variant="release",
        start=subprocess.Popen,
        connect=socket.create_connection,
    ):
        ports = ("--user-port", 0, "--node-port", 0, "--metrics-port", 0)
        super().__init__("trebuchet-jobd", *ports, *options, variant=variant, start=start)
        self._connect = connect
        words = self.greeting.split()
        self.user_port, self.node_port = int(words[4]), int(words[6])
        self.metrics_port = int(words[8])

    def metrics(self):
        """Values by name; names are without their prefix, with their labels."""
        with self._connect(("127.0.0.1", self.metrics_port), PATIENCE) as connection:
            connection.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = b""
            while chunk := connection.recv(1 << 16):
                answer += chunk
        head, _, body = answer.decode().partition("\r\n\r\n")
        assert head.split()[1] == "200", head
        lines = body.splitlines()
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name.removeprefix("trebuchet_jobd_"): float(value) for name, _, value in pairs}

    def nodes_connected(self):
        values = self.metrics()
        return sum(v for name, v in values.items() if name.startswith("node_connected{"))

    def wait_for_nodes(self, count):
        eventually(lambda: self.nodes_connected() == count, f"{count} nodes connected")

    def idle(self):
        """Wait until no user and no job is left; then every job is accounted for."""
        eventually(lambda: not self.metrics()["users"], "all users left")
        values = self.settled()
        ends = ("answered", "aborted", "refused", "abandoned")
        ended = sum(values[f"jobs_{end}_total"] for end in ends)
        assert values["jobs_received_total"] == ended, values
        return values

    def settled(self):
        """Wait until no job is under way; returns the metrics of then."""
        return eventually(self._without_jobs, "no job is in flight")

    def _without_jobs(self):
        values = self.metrics()
        outstanding = sum(v for n, v in values.items() if n.startswith("node_outstanding{"))
        return values if not values["jobs_in_flight"] and not outstanding else None

    def user(self, timeout=PATIENCE):
        return User("127.0.0.1", self.user_port, timeout, self._connect)


class User:
    """A user's connection, with what users do; a context manager."""

    def __init__(self, address, port, timeout=PATIENCE, connect=socket.create_connection):
        self.socket = connect((address, port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._decoder, self._ready = smp.Decoder(), deque()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, message):
        """Send it, even if the server has already refused it by its header and closed."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(message.pack())

    def receive(self):
        """The next message; None if the server has closed."""
        while not self._ready:
            data = self.socket.recv(1 << 16)
            if not data:
                self._decoder.finish()
                return None
            self._ready += self._decoder.feed(data)
        return self._ready.popleft()

    def configure(self, configuration=None):
        """Send a configuration; return status and number of nodes."""
        self.send((configuration or benchmarking()).message())
        message = self.receive()
        assert message.kind == smp.MessageType.RESPONSE
        response = smp.parse_response(message.payload)
        return Status(response.status), response.id

    def results(self, count):
        """The next answers, as ``{id: data or status}``; an ID that comes twice is a failure."""
        found = {}
        for _ in range(count):
            message = self.receive()
            assert message is not None, f"the server closed after {len(found)} answers"
            if message.kind == smp.MessageType.RESPONSE:
                response = smp.parse_response(message.payload)
                ident, value = response.id, Status(response.status)
            else:
                ident, value = smp.parse_data(message.payload)
            assert ident not in found
            found[ident] = value
        return found

    def exchange(self, jobs, outstanding=16):
        """Send ``{id: data}``, some at a time; return the answers."""
        left, found, waiting = list(jobs.items()), {}, 0
        while left or waiting:
            while left and waiting < outstanding:
                self.send(smp.data_message(*left.pop(0)))
                waiting += 1
            found |= self.results(1)
            waiting -= 1
        return found

    def closed(self):
        """Whether the server has closed, with nothing more to say."""
        return self.receive() is None


def tally(answers):
    """How many answers are data, and how many of each status."""
    return Counter("data" if isinstance(a, bytes) else a.name for a in answers)


@contextlib.contextmanager
def serving(*options, boards=1, node_options=(), variant="release", configured=False):
    """A job server and its model nodes; in the end all jobs are accounted for, and both stop."""
    # TSan has nothing to find in a program of one thread.
    nodes = Nodes(boards, *node_options, variant="address" if variant == "address" else "release")
    try:
        extra = ["--configured"] if configured else []
        server = JobServer(*nodes.places, *options, *extra, variant=variant)
        try:
            server.nodes = nodes
            yield server
            server.idle()
        finally:
            server.stop()
    finally:
        nodes.stop()
