"""Read records in the WFDB format of the MIT-BIH Arrhythmia Database: NAME.hea, .dat and .atr.

Source: the WFDB Applications Guide, header(5), signal(5) format 212, annot(5) MIT format. Only what
that database uses is read: one segment, signals of format 212 in one file, no offsets.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

__all__ = ["Annotations", "Header", "read_annotations", "read_header", "read_signals"]

#: Annotation code -> symbol, of what the database has.
SYMBOLS = dict(enumerate(" NLRaVFJASEj/Q~", 0)) | {16: "|", 18: "s", 19: "T", 20: "*", 21: "D"}
SYMBOLS |= {22: '"', 23: "=", 24: "p", 25: "B", 26: "^", 27: "t", 28: "+", 29: "u", 30: "?"}
SYMBOLS |= {31: "!", 32: "[", 33: "]", 34: "e", 35: "n", 36: "@", 37: "x", 38: "f", 39: "("}
SYMBOLS |= {40: ")", 41: "r"}
#: Codes that are no annotations of their own.
SKIP, NUM, SUB, CHN, AUX = 59, 60, 61, 62, 63


@dataclass(frozen=True)
class Header:
    """What a header says: rate in samples a second, length, and of each signal what to know."""

    rate: float
    length: int
    names: tuple[str, ...]
    #: Counts a millivolt, and the count that is 0 mV.
    gains: tuple[float, ...]
    baselines: tuple[int, ...]
    checksums: tuple[int, ...]


@dataclass(frozen=True)
class Annotations:
    """Samples (int64) and symbols of all annotations, in their order."""

    places: np.ndarray
    symbols: tuple[str, ...]


def read_header(path: Path) -> Header:
    """Raise ValueError if it is none, or describes signals that are stored in another way."""
    lines = [line for line in path.read_text("ascii").splitlines() if line and line[0] != "#"]
    if not lines:
        raise ValueError("the header is empty")
    _, count, rate, length = lines[0].split()[:4]
    signals = [line.split(maxsplit=8) for line in lines[1 : 1 + int(count)]]
    if len(signals) != int(count) or any(len(words) != 9 for words in signals):
        raise ValueError(f"the header must describe {count} signals")
    if {words[1] for words in signals} != {"212"}:
        raise ValueError("signals must be of format 212")
    return Header(
        rate=float(rate.partition("/")[0]),
        length=int(length),
        names=tuple(words[8] for words in signals),
        gains=tuple(
            float(words[2].partition("/")[0].partition("(")[0]) or 200 for words in signals
        ),
        baselines=tuple(int(words[4]) for words in signals),
        checksums=tuple(int(words[6]) for words in signals),
    )


def read_signals(path: Path, header: Header) -> np.ndarray:
    """Counts, int16, one column a signal; raise ValueError if they are not the header's."""
    data = np.frombuffer(path.read_bytes(), np.uint8)
    count = header.length * len(header.names)
    if len(data) < (3 * count + 1) // 2:
        raise ValueError(f"{path.name} must have {(3 * count + 1) // 2} bytes, not {len(data)}")
    triples = np.resize(data, (len(data) + 2) // 3 * 3).reshape(-1, 3).astype(np.int16)
    low = triples[:, 0] | (triples[:, 1] & 0x0F) << 8
    high = triples[:, 2] | (triples[:, 1] & 0xF0) << 4
    counts = np.stack([low, high], 1).reshape(-1)[:count]
    counts = np.where(counts >= 2048, counts - 4096, counts).reshape(-1, len(header.names))
    for column, expected in enumerate(header.checksums):
        if (int(counts[:, column].sum(dtype=np.int64)) - expected) % 65536:
            raise ValueError(f"{path.name}: signal {column} does not have its header's checksum")
    return counts.astype(np.int16)


def read_annotations(path: Path) -> Annotations:
    """Raise ValueError if the file ends within an annotation, or is no annotation file."""
    data = path.read_bytes()
    words = np.frombuffer(data[: len(data) & ~1], "<u2").tolist()
    places, symbols = [], []
    time = index = 0
    while True:
        if index >= len(words):
            raise ValueError(f"{path.name} has no end")
        code, value = words[index] >> 10, words[index] & 0x3FF
        index += 1
        if code == 0 and value == 0:
            break
        if code == SKIP:
            if index + 2 > len(words):
                raise ValueError(f"{path.name} has no end")
            interval = words[index] << 16 | words[index + 1]
            time += interval - (1 << 32) * (interval >> 31)
            index += 2
        elif code == AUX:
            index += (value + 1) // 2
        elif code not in (NUM, SUB, CHN):
            time += value
            if code not in SYMBOLS:
                raise ValueError(f"{path.name} has an annotation of the unknown code {code}")
            places.append(time)
            symbols.append(SYMBOLS[code])
    return Annotations(np.array(places, np.int64), tuple(symbols))
