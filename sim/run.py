"""Running the simulator: :class:`Board`, a board on a network of its own, and :func:`run_batch`.

>>> with Board(build(source), arguments=["--loss", "3%"]) as board:
...     with board.connect(7) as s:
...         s.sendall(b"hello")
...     board.stats()["counters"]
"""

import json
import shlex
import socket
import time
from pathlib import Path

from ..models.errors import TrebuchetError
from .netns import Namespace, OwnNetwork
from .process import SimulatorProcess, run_limited

__all__ = ["Board", "neighbour_ip", "run_batch"]

HOST_IP, BOARD_IP = "192.0.2.1", "192.0.2.2"
EXIT_USAGE = 2


def neighbour_ip(ip, number):
    """Host ``number`` of the 256 addresses around a board's; the next one if that is the board."""
    block, _, own = ip.rpartition(".")
    return f"{block}.{number + (int(own) == number)}"


def run_batch(binary, arguments=(), timeout=300, cwd=None):
    """Run the simulator without network to its end.

    Returns ``(exit code, statistics)``; the exit codes are explained in ``harness/simulation.h``.
    Wrong use raises :class:`TrebuchetError`; more than ``timeout`` seconds of processor time
    :class:`subprocess.TimeoutExpired`.
    """
    command = [str(binary), *map(str, arguments), "--stats", "-"]
    done = run_limited(command, timeout, cwd)
    if done.returncode == EXIT_USAGE or not done.stdout.strip():
        message = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise TrebuchetError(f"{message} (ran: {shlex.join(command)})")
    return done.returncode, json.loads(done.stdout.splitlines()[-1])


class Board(SimulatorProcess):
    """A simulated board, running; a context manager.

    The kernel of this machine is its peer: 192.0.2.1 on TAP device ``tap0`` in a namespace of its
    own. Both addresses are of TEST-NET-1 (RFC 5737), which no real machine has. Closing it ends the
    simulator and everything started with :meth:`run` or :meth:`popen`; if this process dies, they
    end as well.

    Parameters
    ----------
    binary : path
        From :func:`trebuchet.sim.build.build`.
    arguments : sequence of str
        More options of the harness (impairments, ``--pcap``, ``--seed`` …).
    uart : str
        ``"log"`` keeps the UART's output in a file (:meth:`uart_text`); else as for the harness.
    time : str
        ``--time`` of the harness.
    ready : str or None
        Text on the UART that says that the board is up; the constructor waits for it.
    timeout : float
        Simulated seconds to wait for that, as in the methods below.
    cwd : path or None
        Where the simulator runs: memory images are read from there.
    flash : path or None
        File with the contents of the board's flash, which stay for the next board; it is made when
        it is not there. None: the flash is blank. Its faults are options of the harness.
    busy : bool
        Compute all the time. Else the simulator sleeps between looks while neither frames nor bytes
        come or go; sleep counts as simulated time (``harness/ticker.h``).
    ip : str
        The board's address, if the build has another than the usual one; the kernel's is
        ``host_ip``, the first of the 256 around it.
    tap : HostTap or None
        A TAP device on this process's own network (:mod:`~.host_tap`) instead of ``tap0`` on a new
        one.
    """

    ip = BOARD_IP
    host_ip = HOST_IP

    def __init__(
        self,
        binary,
        arguments=(),
        *,
        uart="log",
        time="wall",
        ready=None,
        timeout=120,
        cwd=None,
        flash=None,
        busy=False,
        ip=BOARD_IP,
        tap=None,
    ):
        self.ip, self.host_ip = ip, neighbour_ip(ip, 1)

        def command(control):
            self._uart_path = self.folder / "uart.log"
            where = f"file:{self._uart_path}" if uart == "log" else uart
            options = ["--tap", tap.name if tap else "tap0", "--time", time]
            kept = tap is not None and tap.configured
            options += ["--address", "none" if kept else f"{self.host_ip}/24"]
            options += ["--uart", where, "--control", control, "--progress", self.progress_path]
            options += [] if busy else ["--idle-sleep"]
            options += [] if flash is None else ["--flash", str(Path(flash).resolve())]
            return [Path(binary).resolve(), *options, *arguments]

        self._wall = time == "wall"
        network = Namespace if tap is None else OwnNetwork
        super().__init__("board", command, cwd, network, apart=uart != "stdio")
        self.uart_device = self.greeting["uart"]
        if ready is not None:
            with self._closed_on_error():
                self.wait_uart(ready, timeout)

    def uart_text(self):
        """What the board has printed so far (``uart="log"`` only)."""
        try:
            return self._uart_path.read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def wait_uart(self, text, timeout=120):
        """Wait until ``text`` has been printed."""
        end = self.deadline(timeout)
        while text not in self.uart_text():
            self.check()
            if not end.left():
                tail = self.uart_text()[-300:]
                raise TrebuchetError(
                    f"the board did not print {text!r} within {end}; its last words: {tail!r}"
                )
            time.sleep(0.02)

    def hurry(self, milliseconds):
        """Give the design so many ticks at once, beside those of the wall clock.

        Its time-outs end, and what has to be done then is done, before much else has happened. The
        peer's time does not hurry: nothing should be on its way. Only where ticks follow the wall.
        """
        if not self._wall:
            raise TrebuchetError("ticks that do not follow the wall clock cannot hurry")
        end = self.simulation.ticks + milliseconds
        self.ask(f"ticks {milliseconds}")
        while self.simulation.ticks < end:
            self.check()
            time.sleep(0.005)

    def counters(self):
        """The board's event counters by ``block.register`` (fabric top)."""
        return self.stats()["counters"]

    def wait_port(self, port=7, timeout=120):
        """Wait until the board accepts TCP connections on ``port``."""
        end = self.deadline(timeout)
        while True:
            self.check()
            try:
                self.connect(port, timeout=2).close()
                return
            except OSError as error:
                if not end.left():
                    raise TrebuchetError(
                        f"no connection to the board's port {port} within {end}: {error}"
                    ) from None
            time.sleep(0.05)

    def connect(self, port, timeout=120, source_port=0):
        """A TCP connection to the board; ``timeout`` is that of the socket, too."""
        s = self.socket()
        try:
            s.settimeout(timeout)
            if source_port:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((self.host_ip, source_port))
            s.connect((self.ip, port))
        except BaseException:
            s.close()
            raise
        return s
