"""Standard output and error of the command, whatever their encoding, and on a full disk."""

import codecs
import contextlib
import errno
import locale
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["aligned", "disk_fault", "finish", "output_fault", "prepare_output", "use_utf8"]

#: Reasons of the operating system against writing, of which no program is the cause.
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table as wide as it must be: a terminal breaks lines where it likes."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


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
