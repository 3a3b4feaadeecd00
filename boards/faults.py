"""What went wrong in a board file, told with its line."""

import traceback

__all__ = ["in_one_line"]


def in_one_line(error, path):
    """``"PATH:LINE: TYPE: TEXT"`` of an exception that came from the file ``path``.

    The line is the last one of that file on the way to the error; left out if there is none.
    """
    if isinstance(error, SyntaxError):
        number = error.lineno
    else:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(path.resolve())]
        number = lines[-1] if lines else None
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception of the user's own, whose text is another error
        text = ""
    place = f"{path}:{number}" if number else str(path)
    return f"{place}: {type(error).__name__}" + (f": {text}" if text else "")
