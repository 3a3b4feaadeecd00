"""The one exception that means "the user can mend this"; the CLI prints it as one line."""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["AWAY", "LOST", "TrebuchetError", "did_you_mean"]

#: Next steps when there is no connection to a board.
AWAY = (
    "`trebuchet discover` lists the boards of this network, and a simulated one is reached in "
    "`trebuchet sim shell` only"
)

#: Next step when a board, or something else there, did not answer a request.
LOST = "is it a Trebuchet board, and up? `trebuchet health ADDRESS` says how it is"


class TrebuchetError(Exception):
    """A failure that its message explains completely: what went wrong, and what to do about it.

    Raise it for wrong input, a missing tool, a board that does not answer. The CLI prints the
    message on one line and exits with 1. Anything else that escapes counts as a bug.
    """


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """What to add to the message on an unknown ``name``: one of ``names`` that is near it, or
    nothing."""
    found = get_close_matches(name, names, n=1)
    return f", did you mean {found[0]!r}?" if found else ""
