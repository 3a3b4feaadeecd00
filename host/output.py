"""Standard output and error of the command, whatever their encoding, and on a full disk."""

import codecs
import contextlib
import errno
import locale
import os
import shutil
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = [
    "aligned",
    "disk_fault",
    "finish",
    "fitted",
    "output_fault",
    "prepare_output",
    "terminal_width",
    "use_utf8",
]

#: Reasons of the operating system against writing, of which no program is the cause.
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table as wide as it must be: a terminal breaks lines where it likes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def fitted(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Return the lines of :func:`aligned`; where those are too wide, of several tables in turn.

    Each of them has the first column, and as many of the next ones as ``width`` characters hold,
    at least one. Empty lines are between them.
    """
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    tables: list[list[int]] = []
    used = 0
    for column, wide in enumerate(widths[1:], 1):
        if not tables or used + wide - 2 > width:
            tables.append([0])
            used = widths[0]
        tables[-1].append(column)
        used += wide
    lines: list[str] = []
    for columns in tables or [[0]]:
        lines += [""] * bool(lines) + aligned([[row[c] for c in columns] for row in rows])
    return lines


def terminal_width() -> int:
    """Characters of a line of the terminal; where output is no terminal, more than any table has.

    Programs that read a table expect a row a line.
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def use_utf8() -> None:
    """Restart this process in Python's UTF-8 mode if the locale has another encoding.

    Files of the project are UTF-8, whatever the locale is. The terminal keeps its encoding.
    """
    if sys.flags.utf8_mode or codecs.lookup(locale.getencoding()).name == "utf-8":
        return
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    environment = {"PYTHONIOENCODING": f"{encoding}:replace", **os.environ, "PYTHONUTF8": "1"}
    os.execve(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]], environment)


def prepare_output() -> None:
    """Replace characters that an encoding lacks, instead of raising UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def output_fault() -> OSError | None:
    """Return why standard output cannot be written; None if it can, or is closed."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        return error
    return None


def disk_fault(error: BaseException) -> str | None:
    """Return the message on an error of writing that a full or read-only disk explains."""
    if not isinstance(error, OSError) or error.errno not in DISK:
        return None
    return f"cannot write {error.filename or 'the output'}: {os.strerror(error.errno or 0)}"


def finish(code: int) -> NoReturn:
    """Leave with an exit code; what was not written yet must not raise once more at the end."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    raise SystemExit(code)
