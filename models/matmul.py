"""Golden model of the matrix-multiply role (``cores/roles/matmul``).

Products of square matrices of 32-bit integers that wrap around as in C: only the low 32 bits of
sums and products count, so signed and unsigned give the same bits. Source:
distributed-fpga-framework, 4.3.2.1.
"""

import random

import numpy as np

__all__ = ["ORDER", "multiply", "pair_bytes", "random_operand", "result", "result_bytes"]

#: Rows and columns of a matrix.
ORDER = 64


def pair_bytes(n: int = ORDER) -> int:
    """Bytes of one input: A, then B, row by row in little-endian words."""
    return 8 * n * n


def result_bytes(n: int = ORDER) -> int:
    """Bytes of one product."""
    return 4 * n * n


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A * B modulo 2**32, as ``int32``; any integer type goes in."""
    low = [np.asarray(x).astype(np.int64).astype(np.uint32) for x in (a, b)]
    return np.matmul(*low).astype(np.uint32).view(np.int32)


def result(operand: bytes, n: int = ORDER) -> bytes:
    """The role's result for an operand; ``ValueError`` if its length is not that of whole pairs."""
    if not operand or len(operand) % pair_bytes(n):
        raise ValueError(
            f"Operand must be a positive multiple of {pair_bytes(n)} bytes, not {len(operand)}"
        )
    pairs = np.frombuffer(operand, "<u4").reshape(-1, 2, n, n)
    return b"".join(multiply(a, b).astype("<i4").tobytes() for a, b in pairs)


def random_operand(rng: random.Random, pairs: int, n: int = ORDER) -> bytes:
    """``pairs`` random inputs, in which extreme words and whole matrices of them are frequent."""
    extremes = np.array([-(2**31), 2**31 - 1, -1, 0, 1, 0xFFFF, 0x10000, -0x10000], np.int64)
    parts = []
    for number in range(2 * pairs):
        words = np.frombuffer(rng.randbytes(4 * n * n), "<i4").astype(np.int64)
        choice = np.frombuffer(rng.randbytes(n * n), np.uint8) % len(extremes)
        kind = rng.randrange(4)
        if kind == 0:  # here and there
            words = np.where(
                np.frombuffer(rng.randbytes(n * n), np.uint8) < 64, extremes[choice], words
            )
        elif kind == 1:  # nothing else
            words = extremes[choice]
        elif kind == 2 and number % 3 == 0:  # all equal
            words = np.full(n * n, extremes[rng.randrange(len(extremes))])
        parts.append(words.astype("<i4").tobytes())
    return b"".join(parts)
