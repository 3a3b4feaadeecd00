"""What went wrong in a board file, told with its line."""

import functools
import inspect
import os
import traceback
from pathlib import Path

__all__ = ["file_of", "in_one_line", "in_words"]


def file_of(function):
    """The file that a function of a board was written in; None if it has none."""
    while isinstance(function, functools.partial):
        function = function.func
    for made in (function, type(function)):  # a callable object has a class
        try:
            path = Path(inspect.getfile(made))
        except (TypeError, OSError):
            continue
        return path if path.is_file() else None
    return None


def in_words(error):
    """``"TYPE: TEXT"`` of an exception, on one line."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception of the user's own, whose text is another error
        text = ""
    return type(error).__name__ + (f": {text}" if text else "")


def in_one_line(error, path):
    """``"PATH:LINE: TYPE: TEXT"`` of an exception that came from the file ``path``.

    The line is the last one of that file on the way to the error; left out if there is none, as is
    a ``path`` that is None.
    """
    if path is None:
        return in_words(error)
    if isinstance(error, SyntaxError) and _same(error.filename or "", path):
        number = error.lineno
    else:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if _same(frame.filename, path)]
        number = lines[-1] if lines else None
    place = f"{path}:{number}" if number else str(path)
    return f"{place}: {in_words(error)}"


def _same(one, other):
    """Two paths lead to one file, whatever links they go through."""
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # code that came from no file
        return False
