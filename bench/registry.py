"""What is measured: groups of figures, how each is measured, and which files it depends on.

A group's function returns a value for each figure that the group names. It may print as it likes:
the runner keeps stdout clean. Groups that depend on different files are groups of their own, so
that a change makes only those figures stale that it can change; `COLLECTIONS` puts them together.
"""

import importlib
import json
from dataclasses import dataclass
from pathlib import Path

from ..models.ledger import digest

__all__ = ["BUDGETS", "COLLECTIONS", "GROUPS", "LEDGER", "Budget", "Group", "load_budgets"]

BUDGETS = Path(__file__).parent / "budgets.json"
LEDGER = Path(__file__).parent / "ledger.json"


@dataclass(frozen=True)
class Group:
    """Figures that one function measures together."""

    name: str
    #: ``"module:function"``; the function takes nothing and returns ``{figure: value}``.
    target: str
    #: Globs, from the top folder, of the files that the figures depend on.
    inputs: tuple[str, ...]
    #: What is measured and how long it takes, for `trebuchet bench`.
    description: str
    figures: tuple[str, ...]

    def digest(self) -> str:
        return digest(self.inputs)

    def measure(self) -> dict[str, float]:
        """Measure, and check that what came is what was asked for."""
        module_name, _, function = self.target.partition(":")
        values = getattr(importlib.import_module(module_name), function)()
        if sorted(values) != sorted(self.figures):
            raise RuntimeError(
                f"{self.target} must measure {sorted(self.figures)}, not {sorted(values)}"
            )
        return values


@dataclass(frozen=True)
class Budget:
    """The bound that a figure has to keep."""

    budget: float
    unit: str
    better: str
    #: Why there is no figure yet; its tests are skipped with this reason.
    pending: str = ""

    def __post_init__(self) -> None:
        if self.better not in ("lower", "higher"):
            raise ValueError(f"better must be 'lower' or 'higher', not {self.better!r}")

    def kept_by(self, value: float) -> bool:
        return value <= self.budget if self.better == "lower" else value >= self.budget


def load_budgets(path: Path | None = None) -> dict[str, Budget]:
    """The budgets by name of figure."""
    entries = json.loads((path or BUDGETS).read_text())
    return {name: Budget(**entry) for name, entry in entries.items()}


GATEWARE = ("cores/*.py", "cores/net/*.py", "cores/tcp/*.py", "cores/roles/**/*.py")
#: Constants of the gateware are the model's; the trained weights are initial contents of its RAM.
ECG_MODEL = (
    "models/ecg/model.py",
    "models/ecg/record.py",
    "models/ecg/second.py",
    "models/ecg/weights.json",
    "models/ecg/words.py",
)
#: The ECG role alone, both presets, and what it is built of.
ECG_GATEWARE = (
    "cores/arbiter.py",
    "cores/buffers.py",
    "cores/csr.py",
    "cores/memory.py",
    "cores/memory_arbiter.py",
    "cores/stream.py",
    "cores/tcp/service.py",
    "cores/roles/contract.py",
    "cores/roles/dispatch.py",
    "cores/roles/fetch.py",
    "cores/roles/ecg/*.py",
    *ECG_MODEL,
    "models/ecg/weights_second.json",
)
#: Models, training and scoring; not what serves the host alone.
ECG_ACCURACY = (
    "models/ecg/adam.py",
    "models/ecg/data.py",
    "models/ecg/model.py",
    "models/ecg/presets.py",
    "models/ecg/record.py",
    "models/ecg/scoring.py",
    "models/ecg/second.py",
    "models/ecg/train.py",
    "bench/ecg_accuracy.py",
)
#: The matrix multiplier, and what it is built of.
MATMUL = (
    "cores/stream.py",
    "cores/memory.py",
    "cores/buffers.py",
    "cores/csr.py",
    "cores/tcp/service.py",
    "cores/roles/contract.py",
    "cores/roles/fetch.py",
    "cores/roles/matmul/*.py",
    "bench/matmul.py",
    "models/matmul.py",
)
#: The bridge, and what it is built of.
BRIDGE = (
    "cores/stream.py",
    "cores/buffers.py",
    "cores/csr.py",
    "cores/bridge/*.py",
    "bench/bridge.py",
)
#: The elastic router and its networks.
ROUTER = ("cores/router/*.py", "cores/stream.py")
#: The LTL engine, and what it is built of.
LTL = (
    "cores/arbiter.py",
    "cores/buffers.py",
    "cores/csr.py",
    "cores/stream.py",
    "cores/net/checksum.py",
    "cores/ltl/*.py",
    "bench/ltl.py",
)
#: Of every component in Verilator.
MODEL = ("sim/build.py", "sim/flat.py")
ROLE_HARNESS = (
    *MODEL,
    "sim/roles.py",
    "sim/role_harness/*",
    "sim/harness/common.h",
    "sim/harness/lanes.h",
)
FABRIC = (
    *MODEL,
    "sim/fabric.py",
    "sim/process.py",
    "sim/run.py",
    "sim/tops.py",
    "sim/harness/*",
)

GROUPS = {
    group.name: group
    for group in (
        Group(
            "ecg",
            "trebuchet.bench.ecg:measure",
            (*ECG_GATEWARE, "models/ecg/synthetic.py", "bench/ecg.py"),
            "cycles of the ECG pipelines and the network; about a minute",
            ("ecg.pipeline_cycles", "ecg.pipeline_cycles_second", "ecg.network_cycles"),
        ),
        Group(
            "ecg_area",
            "trebuchet.bench.ecg_area:measure",
            (*ECG_GATEWARE, "bench/area.py", "bench/ecg_area.py"),
            "area of the ECG role with one pipeline, both presets; about a minute",
            (
                "ecg.lut6",
                "ecg.dsp",
                "ecg.bram36",
                "ecg.lut6_second",
                "ecg.dsp_second",
                "ecg.bram36_second",
            ),
        ),
        Group(
            "ecg_transaction",
            "trebuchet.bench.ecg_transaction:measure",
            (
                *GATEWARE,
                *ECG_MODEL,
                *FABRIC,
                "models/ecg/synthetic.py",
                "models/smp_framing.py",
                "bench/ecg_transaction.py",
            ),
            "cycles per ECG message over TCP, 64 clients, 4 pipelines, 64 bits; some minutes",
            ("ecg.transaction_cycles",),
        ),
        Group(
            "ecg_accuracy",
            "trebuchet.bench.ecg_accuracy:measure",
            (*ECG_ACCURACY, "models/ecg/weights.json", "models/ecg/weights_second.json"),
            "accuracy of both ECG presets and of the R peaks; a minute; needs the records",
            (
                "ecg.accuracy_faithful",
                "ecg.accuracy_second",
                "ecg.accuracy_second_class_min",
                "ecg.rpeak_se",
                "ecg.rpeak_ppv",
            ),
        ),
        Group(
            "ecg_training",
            "trebuchet.bench.ecg_accuracy:measure_training",
            ECG_ACCURACY,
            "inter-patient split and loss by rounding: trains; some minutes; needs the records",
            (
                "ecg.inter_patient_faithful",
                "ecg.inter_patient_second",
                "ecg.fixed_point_loss_faithful",
                "ecg.fixed_point_loss_second",
            ),
        ),
        Group(
            "matmul",
            "trebuchet.bench.matmul:measure",
            (*MATMUL, *ROLE_HARNESS),
            "share of its cycles in which the matrix multiplier works; half a minute",
            ("matmul.utilisation",),
        ),
        Group(
            "matmul_clock",
            "trebuchet.bench.matmul:measure_clock",
            (*MATMUL, *ROLE_HARNESS, "bench/fmax.py"),
            "clock and rate of the matrix multiplier alone on an ECP5-85F; some minutes",
            ("matmul.fmax_85f", "matmul.ops_per_s_85f"),
        ),
        Group(
            "bridge",
            "trebuchet.bench.bridge:measure",
            BRIDGE,
            "share of the line that the bridge carries, both ways, and its latency; a minute",
            (
                "bridge.share_64",
                "bridge.share_1518",
                "bridge.share_mixed",
                "bridge.latency_cycles",
            ),
        ),
        Group(
            "bridge_area",
            "trebuchet.bench.bridge:measure_area",
            (*BRIDGE, "bench/area.py"),
            "area of the bridge, both directions, 64 bits, cut-through; half a minute",
            ("bridge.lut6", "bridge.bram36"),
        ),
        Group(
            "tcp",
            "trebuchet.bench.tcp:measure",
            (*GATEWARE, *ECG_MODEL, *FABRIC, "bench/tcp.py"),
            "cycles per HTTP transaction at the simulated fabric; some minutes",
            ("tcp.http_1k_cycles",),
        ),
        Group(
            "router_traffic",
            "trebuchet.bench.router:measure",
            (*ROUTER, *MODEL, "sim/router.py", "sim/router_harness/*", "bench/router.py"),
            "saturation and latency of the elastic router; under a minute",
            ("router.saturation", "router.saturation_8", "router.latency_cycles"),
        ),
        Group(
            "router_area",
            "trebuchet.bench.router:measure_lut6",
            (*ROUTER, "bench/area.py", "bench/router.py"),
            "area of the elastic router, 4 ports, 2 VCs, 64-bit flits; a minute",
            ("router.lut6",),
        ),
        Group(
            "router_area_ecp5",
            "trebuchet.bench.router:measure_lut4",
            (*ROUTER, "bench/area.py", "bench/router.py"),
            "the same on an ECP5; a minute",
            ("router.lut4",),
        ),
        Group(
            "ltl",
            "trebuchet.bench.ltl:measure",
            (*LTL, *MODEL, "sim/ltl.py", "sim/ltl_harness/*"),
            "round trip and throughput of two LTL engines back to back; a minute or two",
            ("ltl.rtt_cycles", "ltl.share_lossless", "ltl.share_loss1"),
        ),
        Group(
            "ltl_area",
            "trebuchet.bench.ltl:measure_area",
            (*LTL, "bench/area.py"),
            "area of the LTL engine, 64 connections, 64 bits; about a minute",
            ("ltl.lut6", "ltl.bram36"),
        ),
        Group(
            "firmware",
            "trebuchet.bench.firmware:measure",
            (*GATEWARE, "soc/*.py", "boards/*.py", "firmware/*", "bench/firmware.py"),
            "size of the simulated board's firmware; half a minute",
            ("firmware.code_bytes", "firmware.rom_bytes"),
        ),
        Group(
            "board",
            "trebuchet.bench.board:measure",
            (*GATEWARE, *ECG_MODEL, "soc/*.py", "boards/*.py", "firmware/*", "bench/board.py"),
            "clock and size of every real board; some minutes a board",
            ("board.versa_ecp5.sys_mhz", "board.versa_ecp5.lut4"),
        ),
    )
}

#: Names under which `trebuchet bench` measures several groups: all whose figures begin so.
COLLECTIONS = {"roles": ("ecg", "matmul"), "toe": ("tcp",)}
