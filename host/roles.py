"""Which roles a board has, by the status that it reports."""

import re
from typing import Any

from ..models.errors import TrebuchetError
from ..models.status import Status
from .exchange import Refused
from .status import fetch_status

__all__ = ["explain", "role_number", "roles_of"]

#: Counters that the slot of every role has, and nothing else.
COUNTERS = frozenset(("jobs", "errors", "cycles", "hangs"))
_INSTANCE = re.compile(r"(\w+)_\d+")


def roles_of(state: dict[str, Any]) -> list[str]:
    """Names of the roles in a board's status, by their numbers; instances count once."""
    engines = state.get("engines")
    slots = [
        name
        for name, block in (engines if isinstance(engines, dict) else {}).items()
        if isinstance(block, dict) and block.keys() >= COUNTERS
    ]
    names = (match[1] if (match := _INSTANCE.fullmatch(name)) else name for name in slots)
    return list(dict.fromkeys(names))


def role_number(board: str, name: str | None, timeout: float) -> int | None:
    """The number by which messages name a board's role; None for None: the TCP port's.

    ``board`` serves its status on port 80. Raises TrebuchetError, which names the roles that there
    are, if there is none of this name.
    """
    if name is None:
        return None
    names = roles_of(fetch_status(board, timeout))
    if name not in names:
        raise TrebuchetError(
            f"{board} has no role {name!r}; its roles are: {', '.join(names) or 'none'}"
        )
    return names.index(name)


def explain(board: str, refusal: Refused, timeout: float) -> Refused:
    """``refusal``, which names the board's roles if it has not the one that was asked for."""
    if refusal.status != Status.NO_ROLE:
        return refusal
    try:
        names = roles_of(fetch_status(board, timeout))
    except TrebuchetError:  # a board without a processor has no status
        return refusal
    return Refused(f"{refusal}; its roles are: {', '.join(names) or 'none'}", refusal.status)
