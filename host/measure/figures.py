"""Figures of a run: percentiles, shares of connections, and a run's results as plain data."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["PERCENTILES", "Run", "jain", "percentile", "summary"]

#: Name of each percentile, and the share of transfers that take no longer.
PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999}


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile of ascending values, or None if there are too few for it.

    A share of 0.99 needs 100 values: with fewer it would be the largest, whatever its chance is.
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be above 0 and below 1, not {share}")
    if len(ordered) * (1 - share) < 1 - 1e-9 and share > 0.5:
        return None
    return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None


def summary(values: Sequence[float], scale: float = 1.0) -> dict[str, float | None]:
    """Mean, extremes and percentiles of ``values``, each times ``scale``; {} if there are none."""
    if not values:
        return {}
    ordered = sorted(values)
    found: dict[str, float | None] = {
        "mean": sum(ordered) / len(ordered),
        "min": ordered[0],
        "max": ordered[-1],
    }
    found |= {name: percentile(ordered, share) for name, share in PERCENTILES.items()}
    return {
        name: None if value is None else round(value * scale, 3) for name, value in found.items()
    }


def jain(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 if all are equal, 1/n if one has everything.

    Source: R. Jain, D. Chiu, W. Hawe, DEC-TR-301 (1984). Nothing for anyone is fair: 1.
    """
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 1.0


@dataclass
class Run:
    """What happened in one run of the generator.

    Attributes
    ----------
    seconds : float
        From the first start to the last completion.
    latencies : list of float
        Seconds of each transfer that was answered with a result.
    cycles : list of int
        Its simulated clock cycles; empty if the target is not simulated.
    sent, received : int
        Payload bytes of those transfers, to the target and back.
    shares : list of int
        Transfers completed by each connection before the end of the load.
    refused : Counter
        Transfers answered with a status, by its name.
    unanswered : int
        Transfers of an open loop that had no answer at the end of the wait.
    offered : float
        Transfers per second that an open loop started; 0: a closed loop.
    cpu : float
        Share of a processor that the generator used.
    starved : float
        Share of the time in which the generator waited for a processor that others used.
    lag : list of float
        Seconds from the intended start of each transfer of an open loop to its first byte's.
    total_cycles : int
        Simulated clock cycles of the run.
    wire : float or None
        Seconds of the least round trip of a segment that the kernel saw.
    """

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)
    sent: int = 0
    received: int = 0
    shares: list[int] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    offered: float = 0.0
    cpu: float = 0.0
    lag: list[float] = field(default_factory=list)
    total_cycles: int = 0
    starved: float = 0.0
    wire: float | None = None

    @property
    def transfers(self) -> int:
        return len(self.latencies)

    def rate(self) -> float:
        """Transfers a second."""
        return self.transfers / self.seconds if self.seconds else 0.0

    def megabits(self) -> float:
        """Mb/s of payload in the direction that carried more."""
        most = max(self.sent, self.received)
        return most * 8e-6 / self.seconds if self.seconds else 0.0

    def table(self) -> dict[str, Any]:
        """The figures, ready for JSON: times in microseconds, rates in Mb/s."""
        found: dict[str, Any] = {
            "transfers": self.transfers,
            "seconds": round(self.seconds, 6),
            "transfers_per_s": round(self.rate(), 3),
            "mbit_per_s": round(self.megabits(), 3),
            "sent_bytes": self.sent,
            "received_bytes": self.received,
            "latency_us": summary(self.latencies, 1e6),
            "shares": self.shares,
            "jain": round(jain(self.shares), 4),
            "generator_cpu": round(self.cpu, 3),
            "generator_starved": round(self.starved, 3),
        }
        if self.refused:
            found["refused"] = dict(self.refused)
        if self.offered:
            found["offered_per_s"] = round(self.offered, 3)
            found["unanswered"] = self.unanswered
            found["lag_us"] = summary(self.lag, 1e6)
        if self.cycles:
            found["cycles"] = self.total_cycles
            found["latency_cycles"] = summary(self.cycles)
        return found
