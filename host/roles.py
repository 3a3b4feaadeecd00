"""What commands say when a board does not have the role that they need."""

import contextlib
from collections.abc import Iterator

from ..client import Board, BoardError, ProtocolError, Refused
from ..models.status import Status

__all__ = ["explained"]


@contextlib.contextmanager
def explained(board: Board, role: str | None, kind: str) -> Iterator[None]:
    """Have an error of ``board`` name its roles, if none of them may be a ``kind``.

    ``role`` None: the command goes to the role of the TCP port, which may be any.
    """
    try:
        yield
    except (Refused, ProtocolError) as error:
        try:
            names = board.roles
        except BoardError:  # a board without a processor has no status
            raise error from None
        if error.status == Status.NO_ROLE or (role is None and kind not in names):
            error.args = (f"{error}; {_said(board, names, kind)}",)
        raise


def _said(board: Board, names: list[str], kind: str) -> str:
    there = ", ".join(names) or "none"
    return f"its roles are: {there}" + ("" if kind in names else f"; this command needs {kind}")
