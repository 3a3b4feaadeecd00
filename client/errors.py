"""Errors of the client library; one class for each status of a board (:mod:`..models.status`).

===============================  =================================================================
class                            raised when
===============================  =================================================================
:class:`BoardError`              base of all below
:class:`Refused`                 a board answered with a status; its subclasses are named after the
                                 statuses: ``BadLength``, ``TooLarge``, ``Aborted`` …
:class:`ConnectionLost`          there is no connection, or it broke, ended or fell silent
:class:`ProtocolError`           the peer sent something that no board sends
:class:`WrongRole`               the board has no role of that name
:class:`MissingPackage`          a typed call needs a Python package that is not installed
===============================  =================================================================

All are :class:`~trebuchet.models.errors.TrebuchetError`: the message is one line, which says what
to do. ``BoardError.status`` is the status, or None if no board gave one.
"""

from ..models.errors import TrebuchetError
from ..models.status import DESCRIPTIONS, Status

__all__ = [
    "REFUSALS",
    "BoardError",
    "ConnectionLost",
    "MissingPackage",
    "ProtocolError",
    "Refused",
    "WrongRole",
    "class_name",
    "describe_status",
    "refusal",
]


class BoardError(TrebuchetError):
    """A board did not do what was asked of it."""

    #: The status with which a board answered; None if it gave none.
    status: int | None = None
    #: Whether the same board may do better at once: a connection that broke, a role's reset.
    transient = False


class Refused(BoardError):
    """A board answered with a status; of one that this version does not know, no subclass."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        if status is not None:
            self.status = status


class ConnectionLost(BoardError):
    """There is no connection, or it broke. The board may have carried out what was under way."""


class ProtocolError(BoardError):
    """The peer sent something that is not SMP, or stopped in the middle of a message."""


class WrongRole(BoardError):
    """The board has no role of the name that was asked for."""


class MissingPackage(BoardError):
    """A typed call needs a Python package that is not installed."""


def class_name(status: Status) -> str:
    """Name of the class of a status: ``BadLength`` for ``BAD_LENGTH``."""
    return "".join(word.capitalize() for word in status.name.split("_"))


#: The class of each status but ``OK``.
REFUSALS: dict[Status, type[Refused]] = {
    status: type(
        class_name(status),
        (Refused,),
        {"__doc__": f"{status.name}: {DESCRIPTIONS[status]}.", "status": int(status)}
        | {"__module__": __name__},
    )
    for status in Status
    if status != Status.OK
}
_BY_NAME = {found.__name__: found for found in REFUSALS.values()}


def __getattr__(name: str) -> type[Refused]:
    """The classes of :data:`REFUSALS` by their names."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def describe_status(status: int) -> str:
    """One line that names a status and says what to do."""
    try:
        known = Status(status)
    except ValueError:
        return f"status {status}, which this version does not know"
    return f"{known.name}: {DESCRIPTIONS[known]}"


def refusal(status: int, text: str) -> Refused:
    """The error for a status; ``text`` names the board and what it refused."""
    known = status in Status.__members__.values()
    made = REFUSALS.get(Status(status), Refused) if known else Refused
    return made(f"{text}: {describe_status(status)}", status)
