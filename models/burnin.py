"""Golden model of the burn-in role: what its operand and its result look like, bit for bit.

An operand is a header of four little-endian 32-bit words, and a pattern::

    seed, cycles, answer, inject | pattern(seed)

``cycles``: steps of the lanes, fewer than 2**24; ``answer``: bytes of pattern in the result, a
multiple of 16 below 2**20; ``inject``: bits 0 to 2, a fault in the logic, the multiplier, the block
RAM of lane 0 at the first step. The result is a report of eight words, and a pattern::

    "BN" and lanes, words checked, words wrong, cycles, logic, multiplier, RAM, digest
    | pattern(~seed)

Mismatches are counted in cycles in which any lane has one.
"""

import struct
from dataclasses import dataclass
from functools import lru_cache

from .status import Status

__all__ = ["DEPTH", "HEADER_BYTES", "MOST_ANSWER", "MOST_CYCLES", "REPORT_BYTES"]
__all__ += ["Report", "lane_seed", "operand", "pattern", "result", "run_lanes"]

_MASK = 0xFFFFFFFF
#: Where the four generators of a pattern begin, XORed with the seed.
PATTERN_SEEDS = (0x9E3779B9, 0x7F4A7C15, 0xF39CC060, 0x5CEDC834)
#: Multiplied by the lane's number plus one, where lanes begin.
LANE_STEP = 0x9E3779B9
#: Words of a lane's block RAM.
DEPTH = 512
HEADER_BYTES, REPORT_BYTES = 16, 32
MOST_CYCLES = (1 << 24) - 1
MOST_ANSWER = (1 << 20) - 16
MAGIC = 0x424E


@dataclass(frozen=True)
class Report:
    """What a message's report says; fields in the order of its words."""

    lanes: int
    checked: int
    wrong: int
    cycles: int
    logic: int
    multiplier: int
    ram: int
    digest: int

    @property
    def faults(self) -> int:
        """Words and cycles with a mismatch."""
        return self.wrong + self.logic + self.multiplier + self.ram

    def pack(self) -> bytes:
        """Return the report as the role sends it."""
        words = (self.checked, self.wrong, self.cycles, self.logic, self.multiplier, self.ram)
        return struct.pack("<8I", MAGIC << 16 | self.lanes, *words, self.digest)

    @classmethod
    def of(cls, data: bytes) -> "Report":
        """Return what the first bytes of a result say; ValueError if they are no report."""
        if len(data) < REPORT_BYTES:
            raise ValueError(f"a report must have {REPORT_BYTES} bytes, not {len(data)}")
        kind, *words = struct.unpack_from("<8I", data)
        if kind >> 16 != MAGIC:
            raise ValueError(f"a report must begin with {MAGIC:#06x}, not {kind >> 16:#06x}")
        return cls(kind & 0xFFFF, *words)


def _step(x: int) -> int:
    x ^= x << 13 & _MASK
    x ^= x >> 17
    return x ^ (x << 5 & _MASK)


@lru_cache(maxsize=8)
def pattern(seed: int, size: int) -> bytes:
    """Return ``size`` bytes, a multiple of 16: four xorshift32 generators in turn."""
    states = [(each ^ seed) | 1 for each in PATTERN_SEEDS]
    words = []
    for _ in range(size // 16):
        words += states
        states = [_step(state) for state in states]
    return struct.pack(f"<{len(words)}I", *words)


def operand(seed: int, cycles: int, size: int = 0, answer: int = 0, inject: int = 0) -> bytes:
    """Return a message's operand with ``size`` bytes of pattern."""
    return struct.pack("<4I", seed, cycles, answer, inject) + pattern(seed, size)


def lane_seed(seed: int, lane: int) -> int:
    """Return the first word of a lane."""
    return (seed ^ LANE_STEP * (lane + 1) & _MASK) | 1


def _lane(word: int, cycles: int, inject: int, depth: int) -> tuple[list[int], int, int, int]:
    """Mismatches of the logic by cycle, of the multiplier and RAM in all; digest."""
    copy, accumulator, logic = word, 0, []
    multiplied, stored, read = 0, [0] * depth, 0
    behind = word
    for cycle in range(cycles):
        fault = inject if cycle == 0 else 0
        product = (word & 0x3FFFF) * (word >> 14) ^ (fault >> 1 & 1)
        multiplied += product % 15 != (word & 0x3FFFF) * (word >> 14) % 15
        turned = (accumulator << 1 | accumulator >> 31) & _MASK
        accumulator = turned ^ product & _MASK ^ product >> 32
        stored[cycle % depth] = word ^ fault >> 2
        if cycle + 1 >= depth:
            read += stored[(cycle + 1) % depth] != behind
            behind = _step(behind)
        word, copy = _step(word), _step(copy) ^ fault & 1
        logic.append(word != copy)
    return [k for k, bad in enumerate(logic) if bad], multiplied, read, word ^ accumulator


@lru_cache(maxsize=64)
def run_lanes(
    seed: int, cycles: int, lanes: int, inject: int = 0, depth: int = DEPTH
) -> tuple[int, int, int, int]:
    """Return mismatches of logic, multiplier and RAM, and the digest of all lanes."""
    logic: set[int] = set()
    multiplier = ram = digest = 0
    for lane in range(lanes):
        fault = inject if lane == 0 else 0
        bad, multiplied, read, word = _lane(lane_seed(seed, lane), cycles, fault, depth)
        logic |= set(bad)
        multiplier += multiplied  # only lane 0 can have some
        ram += read
        digest ^= word
    return len(logic), multiplier, ram, digest


def result(data: bytes, room: int, lanes: int, depth: int = DEPTH) -> tuple[Status, bytes]:
    """Return status and result of ``cores/roles/burnin`` with so many lanes."""
    if len(data) < HEADER_BYTES or len(data) % 16:
        return Status.BAD_LENGTH, b""
    seed, cycles, answer, inject = struct.unpack_from("<4I", data)
    good = cycles <= MOST_CYCLES and answer <= MOST_ANSWER and answer % 16 == 0 and inject < 8
    if (REPORT_BYTES + answer if good else 1) > room:
        return Status.NO_ROOM, b""
    if not good:
        return Status.BAD_DATA, b""
    body, expected = data[HEADER_BYTES:], pattern(seed, len(data) - HEADER_BYTES)
    wrong = sum(body[k : k + 4] != expected[k : k + 4] for k in range(0, len(body), 4))
    found = run_lanes(seed, cycles, lanes, inject, depth)
    report = Report(lanes, len(body) // 4, wrong, cycles, *found)
    return Status.OK, report.pack() + pattern(seed ^ _MASK, answer)
