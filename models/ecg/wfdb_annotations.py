"""Read annotations of records in the WFDB format, NAME.atr.

Source: the WFDB Applications Guide, annot(5), MIT format.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..files import read_file

__all__ = ["Annotations", "read_annotations"]

#: Annotation code -> symbol, of what the database has.
SYMBOLS = dict(enumerate(" NLRaVFJASEj/Q~", 0)) | {16: "|", 18: "s", 19: "T", 20: "*", 21: "D"}
SYMBOLS |= {22: '"', 23: "=", 24: "p", 25: "B", 26: "^", 27: "t", 28: "+", 29: "u", 30: "?"}
SYMBOLS |= {31: "!", 32: "[", 33: "]", 34: "e", 35: "n", 36: "@", 37: "x", 38: "f", 39: "("}
SYMBOLS |= {40: ")", 41: "r"}
#: Codes that a database may define for itself; they stand for no beat here.
SYMBOLS |= dict.fromkeys(range(42, 50), "")
#: Codes that are no annotations of their own.
SKIP, NUM, SUB, CHN, AUX = 59, 60, 61, 62, 63
#: Text of a note at sample 0 that states the samples a second in which places count.
RESOLUTION = re.compile(rb"## time resolution: (\d{1,9}(?:\.\d{1,9})?)")


@dataclass(frozen=True)
class Annotations:
    """Samples (int64, rising) and symbols of all annotations.

    ``rate``: samples a second in which they count, None if it is the record's.
    """

    places: np.ndarray
    symbols: tuple[str, ...]
    rate: float | None = None


def read_annotations(path: Path) -> Annotations:
    """Raise ValueError if the file ends within an annotation, or is no annotation file."""
    data = read_file(path)
    words = np.frombuffer(data[: len(data) & ~1], "<u2").tolist()
    places, symbols = [], []
    time = index = 0
    rate = None
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
            text = RESOLUTION.match(data[2 * index : 2 * index + value])
            rate = float(text[1]) if text else rate
            index += (value + 1) // 2
        elif code not in (NUM, SUB, CHN):
            time += value
            if code not in SYMBOLS:
                raise ValueError(f"{path.name} has an annotation of the unknown code {code}")
            places.append(time)
            symbols.append(SYMBOLS[code])
    order = np.argsort(np.array(places, np.int64), kind="stable")
    sorted_places = np.array(places, np.int64)[order]
    return Annotations(sorted_places, tuple(symbols[n] for n in order.tolist()), rate or None)
