"""What the data-centre model is made of: each number with where it comes from.

``measured`` numbers are rows of ``bench/ledger``, cycle-accurate simulations of our gateware.
Everything else is ``assumed``: the shape of the network is the paper's (cloud-scale-acceleration,
section V.C: 24 hosts a TOR, 960 a pod, more than 250,000 in all, each tier oversubscribed more); of
its switches, cables and traffic the paper tells nothing, so they are typical figures of their kind,
not fitted to its results.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ..errors import TrebuchetError
from ..ledger import ROOT, Ledger

__all__ = ["LEDGER", "PAPER", "TIERS", "Parameters", "Shell", "calibrate"]

LEDGER = ROOT / "bench" / "ledger"
TIERS = ("L0", "L1", "L2")

#: Round trips of the paper in µs: average and 99.9th percentile (section V.C).
PAPER = {"L0": (2.88, 2.90), "L1": (7.72, 8.24), "L2": (18.71, 22.38)}

#: The budget of `ltl.rtt_cycles`, in its place as long as nobody has measured it.
_RTT_TARGET = 150

#: A round trip needs two of each that differ; a burst has a frame.
_LEAST = {"hosts_per_tor": 2, "tors_per_pod": 2, "pods": 2, "burst_frames": 1}
#: No number of a data centre is more, in whatever unit.
_MOST = 1e6


@dataclass(frozen=True)
class Shell:
    """Cycles of our gateware on the way, and whether each was measured."""

    rtt_cycles: float
    bridge_cycles: float
    #: ``measured`` or ``assumed``, by name.
    origin: Mapping[str, str]


def calibrate(path: Path | None = None) -> Shell:
    """The figures of the ledger; the target, called assumed, for what is not in it yet.

    ``ltl.rtt_cycles``: header generated to its ACK received, two shells back to back, no MAC.
    ``bridge.latency_cycles``: first word in to first word out, cut-through.
    """
    path = path or LEDGER
    rows = Ledger(path).rows
    values, origin = {}, {}
    for name, target in (("ltl.rtt_cycles", _RTT_TARGET), ("bridge.latency_cycles", None)):
        row = rows.get(name)
        if row is None and target is None:
            raise TrebuchetError(f"{path} has no {name}; measure it: trebuchet bench bridge")
        value = target if row is None else row.get("value")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise TrebuchetError(f"{name} in {path} must be a positive number, not {value!r}")
        values[name] = float(value)
        origin[name] = "assumed" if row is None else "measured"
    return Shell(values["ltl.rtt_cycles"], values["bridge.latency_cycles"], origin)


@dataclass(frozen=True)
class Parameters:
    """The network. Times in ns, lengths in m, rates in Gb/s (bits a ns); pairs are from, to."""

    hosts_per_tor: int = 24
    tors_per_pod: int = 40
    pods: int = 261
    #: Uplinks of a TOR, one to each pod switch; and of a pod switch, to as many spine switches.
    tor_uplinks: int = 6
    pod_uplinks: int = 8
    link_rate: float = 40.0
    clock_mhz: float = 156.25
    #: MAC, PCS and SerDes, sending and receiving together, on each end of a board's link.
    mac_phy: float = 250.0
    #: Through a switch without a queue. TOR: one ASIC, cut-through. Pod: one ASIC with more ports
    #: and shallow buffers, store-and-forward. Spine: a chassis of several ASICs with deep buffers.
    tor_latency: tuple[float, float] = (450.0, 500.0)
    pod_latency: tuple[float, float] = (800.0, 1000.0)
    spine_latency: tuple[float, float] = (2500.0, 4500.0)
    #: Cables: drawn once for each link.
    host_cable: tuple[float, float] = (1.0, 3.0)
    pod_cable: tuple[float, float] = (10.0, 60.0)
    spine_cable: tuple[float, float] = (50.0, 300.0)
    ns_per_m: float = 5.0
    #: Share of a link that other traffic takes: to a host, between TOR and pod, pod and spine.
    host_load: float = 0.05
    pod_load: float = 0.2
    spine_load: float = 0.4
    #: That traffic: bursts of so many full frames on average; the share of them in LTL's own,
    #: lossless class. The others have a lower priority, but a frame once begun is finished.
    burst_frames: float = 8.0
    own_class: float = 0.1
    background_bytes: int = 1500
    #: On the wire less preamble and gap: a short message with its headers, and its ACK.
    frame_bytes: int = 128
    ack_bytes: int = 64
    wire_overhead: int = 20

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name.endswith("_load") or field.name == "own_class":
                if not 0 <= value < 1:
                    raise ValueError(f"{field.name} must be at least 0 and below 1, not {value!r}")
            elif isinstance(value, tuple):
                if not 0 <= value[0] <= value[1]:
                    raise ValueError(f"{field.name} must be a range from 0 on, not {value!r}")
                if value[1] > _MOST:
                    raise ValueError(f"{field.name} must be a range up to {_MOST:g}, not {value!r}")
            elif field.name in _LEAST and not value >= _LEAST[field.name]:
                least = _LEAST[field.name]
                raise ValueError(f"{field.name} must be at least {least}, not {value!r}")
            elif not value > 0:
                raise ValueError(f"{field.name} must be greater than 0, not {value!r}")
            elif value > _MOST:
                raise ValueError(f"{field.name} must be at most {_MOST:g}, not {value!r}")

    def reach(self) -> dict[str, int]:
        """Machines that a round trip of each tier reaches."""
        tor = self.hosts_per_tor
        pod = tor * self.tors_per_pod
        return {"L0": tor, "L1": pod, "L2": pod * self.pods}

    def wire_ns(self, size: int) -> float:
        """How long a frame of ``size`` bytes takes on a link."""
        return (size + self.wire_overhead) * 8 / self.link_rate

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
