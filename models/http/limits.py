"""Sizes that the server states, in one place; lengths are in bytes."""

from typing import NamedTuple

__all__ = ["LIMITS", "Limits"]


class Limits(NamedTuple):
    """What a server takes; larger requests get the answer that is named.

    A gateware build may state smaller ones (a head must fit a session's receive ring).
    """

    #: A request head without the empty line before it; 431 beyond (RFC 6585, 5).
    head: int = 12_288
    #: A request target; 414 beyond. With it a request line of 8,000 bytes fits (RFC 9112, 3).
    target: int = 8_000
    #: A path that the index compares; longer ones go to the firmware.
    path: int = 96
    #: Content of a request that the firmware discards, as it is framed; 413 beyond.
    content: int = 65_536
    #: A line of a chunked body: size and extensions, or a trailer field; 400 beyond.
    chunk_line: int = 256
    #: All trailer fields of a chunked body; 400 beyond.
    trailers: int = 4_096


LIMITS = Limits()
