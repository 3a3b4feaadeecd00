"""Latency, throughput and area of the LTL engine.

Two engines with a data path of 64 bits, wired back to back: a beat that leaves one is at the
other's ``rx`` a cycle later. The line is the data path itself: a MAC of the same width at the same
clock, which is idle for 3 beats after each frame (preamble, FCS and gap, 24 bytes).

``ltl.rtt_cycles``: median, over messages of 64 bytes one after the other, of the cycles from the
first beat of a frame's header at ``tx`` to the end of its ACK at the sender. ``ltl.share_…``: bytes
of messages that a role at the other end got, of 1,400 bytes each, one connection, over the bytes of
messages that back-to-back frames of such messages carry on the line: 1,400 of 1,488.
"""

import statistics
from pathlib import Path

from ..cores.ltl.config import LtlConfig
from ..cores.ltl.engine import Ltl
from ..sim.build import build
from ..sim.ltl import Flow, ltl_source, run_ltl
from .area import area_job
from .job import Job, Values

__all__ = ["area", "cycles"]

LENGTH, COUNT, GAP = 1400, 3000, 3
#: Beats that a frame takes on the line: headers, message, trailer, gap.
_FRAME = (56 + LENGTH + 8) // 8 + GAP


def cycles() -> Job:
    """Return the measurement of round trip and shares, cycle-accurate in Verilator."""
    source = ltl_source()

    def measure() -> Values:
        binary = build(source)
        flow = Flow(0, 1, 50, low=64, high=64)
        trips = run_ltl(binary, flows=[flow], direct=True, serial=True).rtts
        return {
            "ltl.rtt_cycles": statistics.median(trips),
            "ltl.share_lossless": _share(binary, 0),
            "ltl.share_loss1": _share(binary, 0.01),
        }

    return Job((source,), measure)


def _share(binary: Path, loss: float) -> float:
    flow = Flow(0, 1, COUNT, low=LENGTH, high=LENGTH)
    run = run_ltl(binary, flows=[flow], direct=True, loss=loss, gap=GAP, registers={"rto": 20})
    return round(COUNT * _FRAME / run.finished[0], 4)


def area() -> Job:
    """Return the measurement of area: 64 connections, 2 virtual channels and 32 slots."""
    figures = {"ltl.lut6": "LUT6", "ltl.bram36": "BRAM36"}
    return area_job(lambda: Ltl(LtlConfig(connections=64)), figures)
