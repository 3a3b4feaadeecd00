"""`trebuchet console`: a board's console, typed or command by command.

On a serial port, on one that a server gives by TCP, or over the network (:mod:`.manage`).
"""

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..models.errors import TrebuchetError
from ..models.progress import Deadline, current_simulation
from .manage import converse, run_command, typed_lines
from .options import Seconds, open_board

__all__ = ["BAUD", "SerialConsole", "console", "send_image", "serial_ports"]

#: Baud rate of boards, if their file says no other.
BAUD = 115200
PROMPT = "trebuchet> "
#: Ctrl-].
EXIT = "\x1d"
#: Seconds between looks whether time is over.
_LOOK = 0.1
#: Bytes given to the operating system at a time.
_PIECE = 256
#: What a boot ROM says of an image.
_RECEIVED = r"boot: received: (\w+)\r?\n"
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def serial_ports() -> list[tuple[str, str]]:
    """Name and description of each serial port that is on USB, where boards' are."""
    from serial.tools import list_ports

    return [(port.device, port.description) for port in list_ports.comports() if port.vid]


def _only_port() -> str:
    ports = serial_ports()
    if len(ports) == 1:
        return ports[0][0]
    if not ports:
        raise TrebuchetError(
            "no serial port is on USB; is the board plugged in, and may this user see it? Name "
            "another port, like /dev/ttyS0"
        )
    named = ", ".join(f"{name} ({description})" for name, description in ports)
    raise TrebuchetError(f"there are several serial ports; name the board's: {named}")


class SerialConsole:
    """The console of a board at the other end of a serial port; a context manager.

    Parameters
    ----------
    port : str
        Its device, like ``/dev/ttyUSB0`` or ``COM3``; or ``socket://HOST:PORT``, which a server
        of serial ports gives by TCP.
    baud : int
        Baud rate.
    timeout : float
        Seconds without a byte after which the board counts as silent; those of the simulation, if
        the port is a simulated board's.
    """

    def __init__(self, port: str, baud: int = BAUD, timeout: float = 15) -> None:
        import serial

        self.port, self.timeout, self._text = port, timeout, ""
        try:
            self.serial: Any = serial.serial_for_url(
                port, baud, timeout=_LOOK, write_timeout=timeout
            )
        except (serial.SerialException, OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TrebuchetError(
                f"cannot open serial port {port}: {reason}; is the board plugged in? "
                "Without a name `trebuchet console` takes the only port on USB"
            ) from error

    def __enter__(self) -> "SerialConsole":
        return self

    def __exit__(self, *_: object) -> None:
        self.serial.close()

    def until(self, pattern: str) -> str:
        """What the board says up to and with what fits ``pattern``.

        Raises TrebuchetError if nothing comes for the time-out.
        """
        import serial

        end = Deadline(self.timeout, current_simulation())
        while (found := re.search(pattern, self._text)) is None:
            try:
                more = self.serial.read(self.serial.in_waiting or 1)
            except (serial.SerialException, OSError) as error:
                raise TrebuchetError(f"serial port {self.port} has gone: {error}") from error
            if more:
                self._text += _COLOURS.sub("", more.decode("utf-8", "replace"))
                end = Deadline(self.timeout, current_simulation())
            elif not end.left():
                heard = self._text.strip().splitlines()
                last = f"; its last line: {heard[-1]!r}" if heard else ", nothing at all"
                raise TrebuchetError(
                    f"the board on {self.port} said no more for {end}{last}; is it this port, and "
                    "this baud rate?"
                )
        said, self._text = self._text[: found.end()], self._text[found.end() :]
        return said

    def run(self, command: str) -> str:
        """Have the board carry out a command; returns what it prints.

        A line that somebody has begun to type is given up before.
        """
        self.serial.write(b"\x03")
        self.until(re.escape(PROMPT))
        self.serial.write(command.encode() + b"\r")
        self.until(re.escape(command) + r"\r?\n")
        return self.until(re.escape(PROMPT)).removesuffix(PROMPT).replace("\r\n", "\n")


def send_image(port: str, data: bytes, timeout: float = 10) -> str:
    """Send an image to the boot ROM of the board at ``port``; return the status that it answers.

    Raises :class:`TrebuchetError` if the port cannot be used, or the board takes or says nothing
    for ``timeout`` seconds: it runs firmware, or is not there.
    """
    import serial

    with SerialConsole(port, timeout=timeout) as found:
        try:
            for begin in range(0, len(data), _PIECE):
                found.serial.write(data[begin : begin + _PIECE])
        except (serial.SerialException, OSError) as error:
            raise TrebuchetError(f"serial port {port} does not take the image: {error}") from error
        try:
            answer = found.until(_RECEIVED)
        except TrebuchetError as error:
            raise TrebuchetError(
                f"{error} A boot ROM takes an image only while it prints that it has none that "
                "is good"
            ) from error
    return re.search(_RECEIVED, answer)[1]  # type: ignore[index]


def _need_terminal() -> None:
    if not sys.stdin.isatty():
        raise TrebuchetError("the console needs a terminal; name commands with --exec instead")


def _at_the_keyboard(found: SerialConsole) -> None:
    _need_terminal()
    from serial.tools.miniterm import Miniterm

    terminal = Miniterm(found.serial, eol="cr")
    terminal.exit_character, terminal.raw = EXIT, True
    terminal.set_rx_encoding("utf-8", "replace")
    terminal.set_tx_encoding("utf-8", "replace")
    typer.echo(f"the console on {found.port}; Ctrl-] ends it", err=True)
    terminal.start()
    try:
        terminal.join(True)
    finally:
        terminal.stop()
        terminal.console.cleanup()


def _is_address(port: str) -> bool:
    """Whether that is HOST or HOST:PORT rather than a serial port."""
    if "/" in port or Path(port).exists():
        return False
    return "." in port or ":" in port


def _over_network(address: str, commands: list[str], timeout: float) -> None:
    with open_board(address, timeout) as board:
        if commands:
            for line in commands:
                run_command(board, line)
        else:
            _need_terminal()
            converse(board, typed_lines(f"{address}> "))


def console(
    port: Annotated[
        str | None,
        typer.Argument(
            metavar="PORT",
            help="Serial port, like /dev/ttyUSB0; the only one on USB if left out. Or a board's "
            "address, or socket://HOST:PORT for a serial port that a server gives by TCP.",
            show_default=False,
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "--exec",
            metavar="COMMAND",
            help="Have the board carry this out, print its answer, then end; again for more.",
        ),
    ] = None,
    baud: Annotated[int, typer.Option(min=300, max=4_000_000, help="Baud rate.")] = BAUD,
    timeout: Seconds = 15,
) -> None:
    """Open a board's console, on a serial port or over the network.

    On a serial port the board edits the line: backspace, Ctrl-U, Ctrl-C and the arrows up and down
    work; `help` lists its commands. Over the network a line is edited here, and `exit` ends the
    console. With --exec, exit code 1 if the board answers a command with an error.
    """
    if port is not None and _is_address(port):
        _over_network(port, command or [], timeout)
        return
    with SerialConsole(port or _only_port(), baud, timeout) as found:
        if command:
            for line in command:
                said = found.run(line)
                if said.startswith("error: "):
                    raise TrebuchetError(f"{line}: {said.strip().removeprefix('error: ')}")
                typer.echo(said, nl=False)
        else:
            _at_the_keyboard(found)
