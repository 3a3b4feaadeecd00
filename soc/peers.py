"""A board's peers as a C header for its firmware (``firmware/ltl.c``), without LiteX.

A *peer* is another board that LTL joins this one with. Boards number their peers from 1, each in
its own way; what the numbers mean for the engine's tables is told in docs/network.md.
"""

import math
from dataclasses import dataclass

__all__ = ["Peer", "peers_header"]


@dataclass(frozen=True)
class Peer:
    """One peer of a board.

    Attributes
    ----------
    mac : int
        Its MAC address, the first byte on the wire most significant.
    ip : int
        Its IPv4 address.
    theirs : int
        The number that it has for this board, from 1.
    timeout_us : int
        Time-out of the connections to it, 1 to 32767: the engine's time wraps at 65536 ticks, and
        a deadline must lie in the half of them that is to come.
    called : bool
        Whether jobs that come to this board may go to its role.
    """

    mac: int
    ip: int
    theirs: int
    timeout_us: int
    called: bool

    def __post_init__(self):
        for name, low, high in (
            ("mac", 0, (1 << 48) - 1),
            ("ip", 0, (1 << 32) - 1),
            ("theirs", 1, 0x7FFE),
            ("timeout_us", 1, 0x7FFF),
        ):
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                raise ValueError(f"Peer {name} must be {low} to {high}, not {value!r}")


def peers_header(peers, clock_mhz, dscp=0):
    """C header with the table ``peers``, the clock, and the DSCP of all LTL frames of the board."""
    rows = [
        f"\t{{ 0x{p.mac >> 32:04x}u, 0x{p.mac & 0xFFFF_FFFF:08x}u, 0x{p.ip:08x}u, "
        f"{p.theirs}, {p.timeout_us}, {'true' if p.called else 'false'} }},"
        for p in peers
    ]
    return "\n".join(
        [
            "/* Generated from the boards of the network; do not edit. */",
            "#pragma once",
            "",
            '#include "ltl.h"',
            "",
            f"#define TREBUCHET_CYCLES_PER_US {max(1, math.ceil(clock_mhz))}u /* at least 1 us */",
            f"#define TREBUCHET_LTL_DSCP {dscp}u",
            f"#define TREBUCHET_PEERS {len(rows)}u",
            "/* One entry more, since C has no empty arrays. */",
            "static const struct peer peers[TREBUCHET_PEERS + 1] = {",
            *rows,
            "\t{ 0, 0, 0, 0, 0, false },",
            "};",
            "",
        ]
    )
