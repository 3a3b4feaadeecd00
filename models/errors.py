"""The one exception that means "the user can mend this"; the CLI prints it as one line."""

__all__ = ["TrebuchetError"]


class TrebuchetError(Exception):
    """A failure that its message explains completely: what went wrong, and what to do about it.

    Raise it for wrong input, a missing tool, a board that does not answer. The CLI prints the
    message on one line and exits with 1. Anything else that escapes counts as a bug.
    """
