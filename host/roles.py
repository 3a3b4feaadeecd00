"""What commands say when a board does not have the role that they need."""

import contextlib
from collections.abc import Iterator

from ..client import Board, BoardError, ProtocolError, Refused
from ..models.status import Status

__all__ = ["explained"]


@contextlib.contextmanager
def explained(board: Board, role: str | None, kind: str) -> Iterator[None]:
    """Have an error of ``board`` name its roles, if another than a ``kind`` may have answered.

    ``role`` None: the command goes to the role of the TCP port, which may be any.
    """
    try:
        yield
    except (Refused, ProtocolError) as error:
        try:
            names = board.roles
        except BoardError:  # a board without a processor has no status
            raise error from None
        if error.status == Status.NO_ROLE or (role is None and names[:1] != [kind]):
            error.args = (f"{error}; {_said(names, role, kind)}",)
        raise


def _said(names: list[str], role: str | None, kind: str) -> str:
    said = f"its roles are: {', '.join(names) or 'none'}"
    if kind not in names:
        return f"{said}; this command needs {kind}"
    return f"{said}; choose one with --role {kind}" if role is None else said
