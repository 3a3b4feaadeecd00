"""Unpack the samples of WFDB signal files.

Source: the WFDB Applications Guide, signal(5). Each format but 8 has one count, the lowest, that
marks a sample as invalid; so the reference implementation treats them (``WFDB_INVALID_SAMPLE``).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["FORMATS", "Format"]


@dataclass(frozen=True)
class Format:
    """A storage format: ``samples`` in ``block`` bytes, and how blocks become counts."""

    samples: int
    block: int
    #: Whole blocks, uint8 -> counts, int64.
    unpack: Callable[[np.ndarray], np.ndarray]
    #: Count of an invalid sample; None if the format has none.
    invalid: int | None
    #: Bytes that hold the first 1, 2, … samples of a block.
    needed: tuple[int, ...]
    #: Counts are differences, to be summed up.
    differences: bool = False

    def bytes_of(self, count: int) -> int:
        """Return the number of bytes that hold ``count`` samples."""
        blocks, rest = divmod(count, self.samples)
        return blocks * self.block + (self.needed[rest - 1] if rest else 0)

    def samples_of(self, size: int) -> int:
        """Return the number of whole samples in ``size`` bytes."""
        blocks, rest = divmod(size, self.block)
        return blocks * self.samples + sum(need <= rest for need in self.needed)

    def decode(self, data: bytes, count: int) -> np.ndarray:
        """Return the first ``count`` counts, int64, of ``data``, which has enough bytes."""
        used = np.frombuffer(data, np.uint8)[: self.bytes_of(count)]
        padded = np.zeros(-(-len(used) // self.block) * self.block, np.uint8)
        padded[: len(used)] = used
        return self.unpack(padded)[:count]


def integers(kind: str, shift: int = 0) -> Callable[[np.ndarray], np.ndarray]:
    return lambda data: data.view(kind).astype(np.int64) - shift


def signed(values: np.ndarray, bits: int) -> np.ndarray:
    """Return the two's complement values of ``bits`` bits each."""
    half = 1 << (bits - 1)
    return ((values & (2 * half - 1)) ^ half) - half


def unpack_212(data: np.ndarray) -> np.ndarray:
    """Two counts of 12 bits in three bytes."""
    low, middle, high = data.reshape(-1, 3).astype(np.int64).T
    pairs = np.stack([low | (middle & 0x0F) << 8, high | (middle & 0xF0) << 4], 1)
    return signed(pairs.reshape(-1), 12)


def unpack_310(data: np.ndarray) -> np.ndarray:
    """Bits 1 to 10 of two words are two counts; the third is split over their bits 11 to 15."""
    first, second = data.view("<u2").reshape(-1, 2).astype(np.int64).T
    third = first >> 11 | second >> 11 << 5
    return signed(np.stack([first >> 1, second >> 1, third], 1).reshape(-1), 10)


def unpack_311(data: np.ndarray) -> np.ndarray:
    """Three counts of 10 bits in a word of 32 bits, the first one lowest."""
    words = data.view("<u4").astype(np.int64)
    return signed(np.stack([words, words >> 10, words >> 20], 1).reshape(-1), 10)


def unpack_24(data: np.ndarray) -> np.ndarray:
    low, middle, high = data.reshape(-1, 3).astype(np.int64).T
    return signed(low | middle << 8 | high << 16, 24)


def aligned(size: int, kind: str, shift: int = 0) -> Format:
    """A format of one integer of ``size`` bytes a sample."""
    return Format(1, size, integers(kind, shift), -(1 << (8 * size - 1)), (size,))


#: Formats by their names in headers.
FORMATS = {
    "8": Format(1, 1, integers("i1"), None, (1,), differences=True),
    "16": aligned(2, "<i2"),
    "24": Format(1, 3, unpack_24, -(1 << 23), (3,)),
    "32": aligned(4, "<i4"),
    "61": aligned(2, ">i2"),
    "80": aligned(1, "u1", 1 << 7),
    "160": aligned(2, "<u2", 1 << 15),
    "212": Format(2, 3, unpack_212, -(1 << 11), (2, 3)),
    "310": Format(3, 4, unpack_310, -(1 << 9), (2, 4, 4)),
    "311": Format(3, 4, unpack_311, -(1 << 9), (2, 3, 4)),
}
