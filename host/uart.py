"""A board's console on a serial line of this machine: an image for its boot ROM."""

import os
import re
import select
import termios
import tty
from pathlib import Path

from ..models.errors import TrebuchetError

__all__ = ["send_image"]

BAUD = termios.B115200
#: Seconds without a byte from the board, once all was sent, after which it does not answer.
SILENCE = 10
_ANSWER = re.compile(rb"boot: received: (\w+)\r?\n")


def send_image(device: Path, data: bytes, silence: float = SILENCE) -> str:
    """Send an image over the serial line ``device``; return the status that the board answers.

    Raises :class:`TrebuchetError` if the line cannot be used, or no answer comes for ``silence``
    seconds: the board runs firmware, or is not there.
    """
    try:
        line = os.open(device, os.O_RDWR | os.O_NOCTTY)
    except OSError as error:
        raise TrebuchetError(f"cannot open {device}: {error.strerror}") from error
    try:
        _set_up(line)
        return _exchange(line, data, silence)
    except (OSError, termios.error) as error:
        raise TrebuchetError(f"{device} is no serial line that works: {error.args[-1]}") from error
    finally:
        os.close(line)


def _set_up(line: int) -> None:
    tty.setraw(line)
    settings = termios.tcgetattr(line)
    settings[4] = settings[5] = BAUD
    termios.tcsetattr(line, termios.TCSANOW, settings)
    termios.tcflush(line, termios.TCIFLUSH)


def _exchange(line: int, data: bytes, silence: float) -> str:
    said, left = b"", memoryview(data)
    while True:
        readable, writable, _ = select.select([line], [line] if left else [], [], silence)
        if writable:
            left = left[os.write(line, left[:256]) :]
        if readable:
            said = (said + os.read(line, 4096))[-4096:]
            if found := _ANSWER.search(said):
                return found[1].decode()
        if not readable and not writable:
            raise TrebuchetError(
                "the board did not answer: its boot ROM takes an image only while it prints that "
                "it has none that is good"
            )
