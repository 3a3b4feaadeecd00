"""Decide which signal of a record is an ECG lead, by its name and unit.

Names follow no standard: ``MLII``, ``ECG II``, ``lead II``, ``ml ii`` and ``V5 `` all occur. They
are compared without case, spaces and punctuation, and without words such as ``ECG`` and ``lead``.
The networks were trained on MLII, so that is preferred, then lead II, then other leads in the order
of the header.
"""

import re
from collections.abc import Callable, Sequence

__all__ = ["candidates", "lead_key", "millivolts_of", "named"]

#: Millivolts in each unit of voltage, its name in lower case and with the Greek mu.
UNITS = {"v": 1e3, "mv": 1.0, "μv": 1e-3, "uv": 1e-3, "nv": 1e-6}
UNITS |= {"volt": 1e3, "millivolt": 1.0, "microvolt": 1e-3, "nanovolt": 1e-6}

#: Words in a name that do not say which lead it is.
FILLERS = {"channel", "chan", "ch", "col", "column", "signal", "sig", "no", "nr", "unknown"}
FILLERS |= {"mv", "uv", "raw", "filtered", "filt", "modified", "mod", "derivation", "ableitung"}
ECG = re.compile(r"ecg|ekg|lead|electrocardiogram")
LEAD = re.compile(
    r"(?:ml|d)?i{1,3}|(?:ml|d)[1-6]|m?v(?:[1-9]r?)?|m?av[rlf]|mcl[1-6]?|c[bcmrs][1-6]|v?[xyz]|"
    r"as|es|ai"
)
#: Beginnings of words that name other signals, some of which are stored in millivolts.
OTHER = re.compile(
    r"abp|art\d*$|arterial|n?i?bp|pap|cvp|icp|rap|lap|uap|uvp|p[1-4]$|pleth|ppg|spo2|sao2|resp|imp|"
    r"eeg|emg|eog|eda|gsr|co2|etco2|temp|hr|pulse|acc|gyro|flow|volume|press|blood|mark|event|"
    r"pcg|scg|icg"
)


def millivolts_of(unit: str) -> float | None:
    """Return the millivolts in a unit of voltage; None for any other unit."""
    text = unit.strip().replace("\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}").lower()
    return UNITS.get(text) or UNITS.get(text.removesuffix("s"))


def words_of(name: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", name.lower())


def lead_key(name: str) -> str:
    """Return what is compared of a name: ``mlii`` of ``ECG lead ML-II``, "" of ``ECG``."""
    words = []
    for word in words_of(name):
        while (start := ECG.match(word)) and word:
            word = word[start.end() :]
        if word and word not in FILLERS:
            words.append(word)
    return "".join(words)


def preference(name: str) -> int | None:
    """Return the rank of a signal with this name, 0 the best; None if it is no ECG lead."""
    words = words_of(name)
    if any(OTHER.match(word) for word in words):
        return None
    key = lead_key(name)
    if key in ("mlii", "ml2"):
        return 0
    if key in ("ii", "dii", "d2"):
        return 1
    if LEAD.fullmatch(key):
        return 2
    if any(ECG.match(word) for word in words):
        return 3
    return 4 if not key or key.isdigit() else None


def candidates(signals: Sequence[tuple[str, str]]) -> list[int]:
    """Return the indices of ECG leads among ``(name, unit)``, the preferred one first."""
    ranks = [preference(name) if millivolts_of(unit) else None for name, unit in signals]
    found = [(rank, index) for index, rank in enumerate(ranks) if rank is not None]
    return [index for _, index in sorted(found)]


def listed(signals: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({unit})" for name, unit in signals) or "no signals"


def named(signals: Sequence[tuple[str, str]], wanted: str) -> int:
    """Return the index of the lead called ``wanted``, or of ``signal N``, counted from 0.

    Raise ValueError if there is none, or if it cannot be an ECG.
    """
    key = lead_key(wanted)
    numbered = re.fullmatch(r"signal (\d{1,4})", wanted.strip(), re.ASCII)
    tests: tuple[Callable[[str], bool], ...] = (
        lambda name: name.strip() == wanted.strip(),
        lambda name: name.strip().lower() == wanted.strip().lower(),
        lambda name: bool(key) and lead_key(name) == key,
    )
    places = range(len(signals))
    found = next((n for test in tests for n in places if test(signals[n][0])), None)
    if found is None and numbered and int(numbered[1]) < len(signals):
        found = int(numbered[1])
    if found is None:
        raise ValueError(f"there is no lead {wanted!r}; the signals are {listed(signals)}")
    name, unit = signals[found]
    if millivolts_of(unit) is None:
        raise ValueError(f"signal {name} is in {unit}, which is no voltage, so it is no ECG")
    if any(OTHER.match(word) for word in words_of(name)):
        raise ValueError(f"signal {name} is no ECG, by its name; the signals are {listed(signals)}")
    return found
