"""Where a request head ends in a stream of bytes, each of which is inspected once.

The state is four bits and a length, however the bytes are fragmented. A head ends with

- the first CR LF CR LF: ``COMPLETE``; its last four bytes belong to it;
- the first CR that no LF follows, or LF that no CR precedes: ``BROKEN``, with that byte, as no
  continuation can make it valid (RFC 9112, 2.2: strict). A peer that ends its lines with LF alone
  is thereby answered at once and not by the time-out;
- the byte that makes it ``limit`` bytes long: ``LONG``.

One empty line before a request is skipped (RFC 9112, 2.2). A second one is a head of its own, of
two bytes, which the parser rejects.
"""

import enum
from typing import NamedTuple

from .limits import LIMITS

__all__ = ["START", "End", "Found", "Scan", "scan"]

_CR, _LF = 0x0D, 0x0A


class End(enum.Enum):
    """Why a head ends."""

    COMPLETE = "complete"
    BROKEN = "broken"
    LONG = "long"


class _State(enum.IntEnum):
    START = 0  # before the first byte
    EMPTY = 1  # CR of an empty line before the request
    LINE = 2  # at the beginning of a line
    TEXT = 3  # in a line
    LINE_CR = 4  # CR after text
    LAST_CR = 5  # CR at the beginning of a line


class Scan(NamedTuple):
    """State of the search in one session."""

    state: int = _State.START
    #: Bytes of the head so far; the empty line before it does not count.
    length: int = 0


#: Before the first byte of a request.
START = Scan()


class Found(NamedTuple):
    """What :func:`scan` made of some bytes."""

    scan: Scan
    #: Bytes that were inspected: all, or those to the head's end.
    used: int
    #: How the head ended; None: it goes on.
    end: End | None


#: What a CR means in the states in which it is not just the end of a line of text.
_CR_FOLLOWS = {_State.START: _State.EMPTY, _State.LINE: _State.LAST_CR}


def scan(state, data, limit=LIMITS.head):
    """Go on with the search in ``data``.

    Parameters
    ----------
    state : Scan
        :data:`START`, or what the bytes before left.
    data : bytes
        The next bytes of the stream, any number.
    limit : int
        Largest head in bytes, at least 4.

    Returns
    -------
    Found
        After an end, ``scan.length`` is the head's length; its bytes are the last ones that were
        inspected. A new search starts from :data:`START`.
    """
    at, length = _State(state.state), state.length
    for used, byte in enumerate(data, 1):
        length += 1
        if at in (_State.EMPTY, _State.LINE_CR, _State.LAST_CR):
            if byte != _LF:
                return Found(Scan(at, length), used, End.BROKEN)
            if at == _State.LAST_CR:
                return Found(Scan(at, length), used, End.COMPLETE)
            if at == _State.EMPTY:
                length = 0
            at = _State.LINE
        elif byte == _LF:
            return Found(Scan(at, length), used, End.BROKEN)
        elif byte == _CR:
            at = _CR_FOLLOWS.get(at, _State.LINE_CR)
        else:
            at = _State.TEXT
        if length == limit:
            return Found(Scan(at, length), used, End.LONG)
    return Found(Scan(at, length), len(data), None)
