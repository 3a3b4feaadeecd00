"""What a shell's trace core samples (``cores/probe/trace.py``), as part of a plan."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .errors import TrebuchetError

__all__ = ["DEPTHS", "MAX_SIGNALS", "ProbeSet"]

#: Records that a trace core may have: powers of two.
DEPTHS = (16, 8192)
#: Entries of a plan, each a signal or a group of them.
MAX_SIGNALS = 64
#: Names joined by dots; an index of an array is a number.
_PATH = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")


@dataclass(frozen=True, kw_only=True)
class ProbeSet:
    """The probes of a plan: what is sampled, and how much of it is kept.

    Attributes
    ----------
    signals : tuple of str
        Paths of signals, or of groups of them, from a part of the shell or a role on, such as
        ``tx.valid``, ``tcp.tx_segment`` or ``ecg.job`` (``cores/probe/signals.py``).
    depth : int
        Records that are kept, a power of two, 16 to 8,192.
    """

    signals: tuple[str, ...]
    depth: int = 1024

    def __post_init__(self) -> None:
        signals = self.signals
        if not isinstance(signals, tuple) or not 1 <= len(signals) <= MAX_SIGNALS:
            raise TrebuchetError(f"probes must be 1 to {MAX_SIGNALS} signals, not {signals!r}")
        for path in signals:
            if not isinstance(path, str) or not _PATH.fullmatch(path) or "__" in path:
                raise TrebuchetError(
                    f"a probe must be names joined by dots, like tcp.tx_segment.valid, not {path!r}"
                )
            if signals.count(path) > 1:
                raise TrebuchetError(f"probe {path!r} is named twice; name it once")
        low, high = DEPTHS
        depth = self.depth
        if type(depth) is not int or not low <= depth <= high or depth & (depth - 1):
            raise TrebuchetError(
                f"the depth of probes must be a power of two from {low} to {high}, not {depth!r}"
            )

    @classmethod
    def of(cls, signals: Iterable[str], depth: int | None = None) -> "ProbeSet":
        """Return the probes of a command's options; ``depth`` None: as usual."""
        chosen = tuple(signals)
        return cls(signals=chosen) if depth is None else cls(signals=chosen, depth=depth)

    def describe(self) -> dict[str, object]:
        """In plain values, for reports and hashes."""
        return {"signals": list(self.signals), "depth": self.depth}
