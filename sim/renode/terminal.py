"""A board's console in this terminal: Renode in the background, its UART at a socket."""

import contextlib
import os
import select
import socket
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Iterator
from pathlib import Path

from ...models.errors import TrebuchetError
from ...models.renode import starting
from .client import last_line

__all__ = ["ESCAPE", "run_with_console"]

#: Control-] ends the session, as with telnet.
ESCAPE = 0x1D

#: Renode goes on after a command of the script that has failed.
_FAILED = "There was an error executing command"
_START_SECONDS = 300
_QUIT_SECONDS = 10


@contextlib.contextmanager
def _raw(descriptor: int) -> Iterator[None]:
    """Keys as they are typed; the board echoes them."""
    if not os.isatty(descriptor):
        yield
        return
    saved = termios.tcgetattr(descriptor)
    tty.setraw(descriptor)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, saved)


def _connect(process: subprocess.Popen[bytes], port: int, log: Path) -> socket.socket:
    """The UART, as soon as the script has run; an error says what Renode said last."""
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=_QUIT_SECONDS)
        except OSError:
            failed = _FAILED in log.read_text(errors="replace")
            if failed or process.poll() is not None or time.monotonic() > end:
                raise TrebuchetError(f"Renode did not start: {last_line(log)}; see {log}") from None
            time.sleep(0.1)


def _shuttle(uart: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """Bytes both ways until Renode ends, or somebody types Control-]."""
    keys, told_by = sys.stdin.fileno(), uart.fileno()
    sources = [told_by, keys]
    while process.poll() is None:
        for source in select.select(sources, [], [], 0.5)[0]:
            if source == told_by:
                told = uart.recv(4096)
                if not told:
                    return
                sys.stdout.buffer.write(told)
                sys.stdout.buffer.flush()
                continue
            typed = os.read(keys, 4096)
            if not typed:
                sources.remove(keys)  # a pipe's end; what the board says goes on
            elif ESCAPE in typed:
                return
            else:
                uart.sendall(typed)


def run_with_console(launcher: Path, script: Path, port: int, start: bool = True) -> int:
    """Run the script with its UART, which it puts at ``port``, in this terminal.

    Renode's own output goes to ``SCRIPT.log``. Its standard input stays open: a Renode that finds
    its end polls it. The board starts once the terminal is there, so that nothing is lost of what
    it says; with ``start`` false when GDB does. Returns Renode's exit code, 0 after Control-].
    """
    log = script.with_suffix(".log")
    words = [launcher, "--disable-gui", "--console", "--plain", "-e", f"include @{script}"]
    with (
        open(log, "wb") as output,
        starting(launcher),
        subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdin is not None
        try:
            with _connect(process, port, log) as uart, _raw(sys.stdin.fileno()):
                if start:
                    process.stdin.write(b"start\n")
                    process.stdin.flush()
                _shuttle(uart, process)
        finally:
            code = _quit(process)
    return code


def _quit(process: subprocess.Popen[bytes]) -> int:
    """End Renode, which may have ended; its exit code, 0 if this ended it."""
    code = process.poll()
    if code is not None:
        return code
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.write(b"quit\n")
        process.stdin.flush()
    try:
        process.wait(timeout=_QUIT_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return 0
