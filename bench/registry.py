"""What is measured: groups of figures, how each is measured, of which kind it is, its budgets.

A *gating* figure is the same on every machine, and affordable: cycles, cells after synthesis, the
firmware's size, accuracy from stored weights. `make test` measures it when what its tools read has
changed, and holds it against its budget.

A *dated* figure is noisy or dear: clocks, placed boards, time and memory of a build, long storms,
training. It is measured by `make nightly`, with several seeds where the result depends on one; its
row has a date, and `make test` holds row and age against budget and :data:`MAX_AGE`.

A group's function returns a :class:`~.job.Job`, for dated figures a :class:`~.job.Sampled`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..boards import BUILT
from ..models.errors import TrebuchetError
from ..models.ledger import unique_json
from .group import Group

__all__ = ["BOARD_FIGURES", "BUDGETS", "COLLECTIONS", "GROUPS", "LEDGER", "LOSSES", "MAX_AGE"]
__all__ += ["UNITS", "Budget", "Group", "load_budgets"]

BUDGETS = Path(__file__).parent / "budgets.json"
#: Groups with their budgets, a file each: those of roles, which `trebuchet role new` writes.
ROLES = Path(__file__).parent / "roles"
LEDGER = Path(__file__).parent / "ledger"

#: Commits of the gateware (``models.ledger.GATEWARE``) after which a dated row is too old.
MAX_AGE = 150

#: Of each board that open tools build: ``board.NAME.FIGURE``.
BOARD_FIGURES = ("sys_mhz", "lut_share", "ff", "bram18", "dsp", "build_minutes", "build_gib")

#: Units of two kinds of figures, each a collection for `trebuchet bench`.
UNITS = {
    "area": ("LUT4", "LUT6", "FF", "BRAM18", "BRAM36", "DSP", "of the LUTs"),
    "fmax": ("MHz",),
}
#: Share of a gating figure in these units that a change may cost; `trebuchet bench` fails on more.
LOSSES = {"area": 0.03}


@dataclass(frozen=True)
class Budget:
    """The bound that a figure has to keep."""

    budget: float
    unit: str
    better: str
    #: Why there is no figure yet; its tests are skipped with this reason.
    pending: str = ""
    #: What is wanted, if the budget is weaker: then that only keeps the figure from getting worse.
    required: float | None = None
    #: Why what is wanted is not reached; with ``required`` only.
    missed: str = ""

    def __post_init__(self) -> None:
        if self.better not in ("lower", "higher"):
            raise ValueError(f"better must be 'lower' or 'higher', not {self.better!r}")
        if (self.required is None) != (not self.missed):
            raise ValueError("required and missed must be there both, or neither")
        if self.required is not None and not self.kept_by(self.required):
            raise ValueError(f"required must be stricter than the budget, not {self.required}")

    def kept_by(self, value: float) -> bool:
        """Return whether ``value`` is within the budget."""
        return value <= self.budget if self.better == "lower" else value >= self.budget

    @property
    def wanted(self) -> float:
        """What is required: the budget itself, if it is not known to be missed."""
        return self.budget if self.required is None else self.required

    def reached_by(self, value: float) -> bool:
        """Return whether ``value`` is all that is required."""
        return value <= self.wanted if self.better == "lower" else value >= self.wanted

    def requirement(self, value: float) -> dict[str, Any]:
        """Return what results say of a requirement beside the budget; empty if there is none."""
        if self.required is None:
            return {}
        reached = self.reached_by(value)
        return {"required": self.required, "reached": reached, "missed": self.missed}

    @property
    def bound(self) -> str:
        return "at most" if self.better == "lower" else "at least"

    def worst(self, values: Iterable[float]) -> float:
        """Return the worst of some values."""
        return max(values) if self.better == "lower" else min(values)

    def loss(self, was: float, value: float) -> float:
        """Return the share by which ``value`` is worse than ``was``; negative if it is better."""
        change = value - was if self.better == "lower" else was - value
        return change / was if was else float(change > 0)

    @property
    def allowed(self) -> float | None:
        """Loss that is allowed; ``None``: any within the budget."""
        return next((LOSSES[kind] for kind in LOSSES if self.unit in UNITS[kind]), None)


def _role_files() -> Iterator[dict[str, Any]]:
    """Yield what the files of :data:`ROLES` say: target, description, and figures with budgets."""
    for path in sorted(ROLES.glob("*.json")):
        try:
            group = {"name": path.stem, **unique_json(path.read_text())}
        except ValueError as error:
            raise TrebuchetError(f"bench/roles/{path.name}: {error}; restore it") from error
        if group.keys() != {"name", "target", "description", "figures"}:
            raise TrebuchetError(
                f"bench/roles/{path.name} must say target, description and figures, not "
                f"{', '.join(sorted(group.keys() - {'name'}))}"
            )
        yield group


def load_budgets(path: Path | None = None) -> dict[str, Budget]:
    """Return the budgets by name of figure; raise :class:`TrebuchetError` if the file is bad."""
    path = path or BUDGETS
    try:
        entries: dict[str, Any] = unique_json(path.read_text())
        if path == BUDGETS:
            for group in _role_files():
                entries |= group["figures"]
        return {name: Budget(**entry) for name, entry in entries.items()}
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise TrebuchetError(f"bench/{path.name}: {reason}; restore it with git") from error


def _cells(name: str) -> tuple[str, ...]:
    return tuple(f"{name}.ecp5_{cell}" for cell in ("lut4", "ff", "bram18", "dsp"))


#: Blocks whose cells and clock on an ECP5 are measured (:data:`.blocks.BLOCKS`).
_BLOCKS = ("bridge", "cluster", "ecg", "ltl", "router")

_GATING = (
    Group(
        "ecg",
        "trebuchet.bench.ecg:cycles",
        "cycles of the ECG pipelines and the network; about a minute",
        ("ecg.pipeline_cycles", "ecg.pipeline_cycles_second", "ecg.network_cycles"),
    ),
    Group(
        "ecg_area",
        "trebuchet.bench.ecg_area:faithful",
        "area of the ECG role with one pipeline; half a minute",
        ("ecg.lut6", "ecg.dsp", "ecg.bram36"),
    ),
    Group(
        "ecg_area_second",
        "trebuchet.bench.ecg_area:second",
        "area of the ECG role with one pipeline, second preset; half a minute",
        ("ecg.lut6_second", "ecg.dsp_second", "ecg.bram36_second"),
    ),
    Group(
        "ecg_transaction",
        "trebuchet.bench.ecg_transaction:cycles",
        "cycles per ECG message over TCP, 64 clients, 4 pipelines, 64 bits; some minutes",
        ("ecg.transaction_cycles",),
    ),
    Group(
        "ecg_accuracy",
        "trebuchet.bench.ecg_accuracy:accuracy",
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
        "matmul",
        "trebuchet.bench.matmul:utilisation",
        "share of its cycles in which the matrix multiplier works; half a minute",
        ("matmul.utilisation",),
    ),
    Group(
        "memory",
        "trebuchet.bench.memory:share",
        "share of the memory that receive DMA keeps beside slow writers; about a minute",
        ("memory.rx_dma_share", "memory.rx_dma_share_dead"),
    ),
    Group(
        "memory_area",
        "trebuchet.bench.memory:area",
        "area of a shell's memory arbiter on an ECP5; half a minute",
        ("memory.arbiter_lut4",),
    ),
    Group(
        "bridge",
        "trebuchet.bench.bridge:cycles",
        "share of the line that the bridge carries, both ways, and its latency; a minute",
        ("bridge.share_64", "bridge.share_1518", "bridge.share_mixed", "bridge.latency_cycles"),
    ),
    Group(
        "bridge_area",
        "trebuchet.bench.bridge:area",
        "area of the bridge, both directions, 64 bits, cut-through; half a minute",
        ("bridge.lut6", "bridge.bram36"),
    ),
    Group(
        "tcp",
        "trebuchet.bench.tcp:cycles",
        "cycles per HTTP transaction of the TCP engine, throughput of a session; some minutes",
        ("tcp.http_1k_cycles", "tcp.http_1k_small_cycles", "tcp.tx_share_1", "tcp.rx_share_1"),
    ),
    Group(
        "shell",
        "trebuchet.bench.shell:beside_many",
        "cycles per HTTP transaction of the shell beside 100,000 connections; some minutes",
        ("shell.http_1k_100k_cycles", "shell.churn_100k_leaks"),
    ),
    Group(
        "tcp_full_area",
        "trebuchet.bench.tcp:area",
        "area of the TCP engine with 131,072 sessions, 64 bits; some minutes",
        ("tcp.full_lut6", "tcp.full_bram36"),
    ),
    Group(
        "tcp_tiny",
        "trebuchet.bench.tcp_tiny:area",
        "area of the TCP engine, preset tiny, on an ECP5; a minute",
        ("tcp.tiny_lut4",),
    ),
    Group(
        "router_traffic",
        "trebuchet.bench.router:traffic",
        "saturation and latency of the elastic router; under a minute",
        ("router.saturation", "router.saturation_8", "router.latency_cycles"),
    ),
    Group(
        "router_area",
        "trebuchet.bench.router:lut6",
        "area of the elastic router, 4 ports, 2 VCs, 64-bit flits; a minute",
        ("router.lut6",),
    ),
    Group(
        "router_area_ecp5",
        "trebuchet.bench.router:lut4",
        "the same on an ECP5; a minute",
        ("router.lut4",),
    ),
    *(
        Group(
            f"probe_{size}",
            "trebuchet.bench.probe:cells",
            f"cells of the trace core on an ECP5, size {size}; half a minute",
            tuple(f"probe.{size}_{cell}" for cell in ("lut4", "ff", "bram18")),
            size,
        )
        for size in ("tutorial", "deep", "wide")
    ),
    Group(
        "sd_read",
        "trebuchet.bench.sd:share",
        "share of a 4-bit bus that a long read from an SD card carries; under a minute",
        ("sd.read_share",),
    ),
    Group(
        "sd_area",
        "trebuchet.bench.sd:area",
        "area of the SD host on an ECP5; half a minute",
        ("sd.lut4",),
    ),
    Group(
        "ltl",
        "trebuchet.bench.ltl:cycles",
        "round trip and throughput of two LTL engines back to back; a minute or two",
        ("ltl.rtt_cycles", "ltl.share_lossless", "ltl.share_loss1"),
    ),
    Group(
        "ltl_area",
        "trebuchet.bench.ltl:area",
        "area of the LTL engine, 64 connections, 64 bits; about a minute",
        ("ltl.lut6", "ltl.bram36"),
    ),
    Group(
        "web_rates",
        "trebuchet.bench.web:rates",
        "cycles of a request to the web service on open connections, large files; some minutes",
        (
            "web.keepalive_1k_cycles",
            "web.keepalive_64_cycles",
            "web.keepalive_64_pipelined_cycles",
            "web.large_share",
        ),
    ),
    Group(
        "web_latency",
        "trebuchet.bench.web:latency",
        "cycles from a request's last byte to its answer's first; a minute",
        ("web.hit_latency_cycles",),
    ),
    Group(
        "web_area",
        "trebuchet.bench.web_area:area",
        "area of the web service with four lanes, 64 bits; two minutes",
        ("web.lut6", "web.bram36"),
    ),
    Group(
        "web_area_ecp5",
        "trebuchet.bench.web_area:area_ecp5",
        "area of the web service with one lane and 64 sessions on an ECP5; a minute",
        ("web.lut4", "web.bram18"),
    ),
    Group(
        "firmware",
        "trebuchet.bench.firmware:size",
        "size of the simulated board's firmware, and of the Versa's, with its boot ROM; a minute",
        (
            "firmware.code_bytes",
            "firmware.rom_bytes",
            "firmware.versa_ecp5_boot_rom_bytes",
            "firmware.versa_ecp5_image_bytes",
        ),
    ),
    Group(
        "boot",
        "trebuchet.bench.boot:cycles",
        "cycles to `ready`, to an interrupt's handler, of a restart; a minute or two",
        (
            "boot.ready_cycles",
            "boot.interrupt_cycles",
            "boot.rom_ready_cycles",
            "boot.rom_interrupt_cycles",
            "boot.rom_restart_cycles",
            "boot.rom_image_cycles",
            "boot.rom_syn_cycles",
        ),
    ),
    *(
        Group(
            f"{name}_ecp5",
            "trebuchet.bench.blocks:cells",
            f"cells of the block {name} on an ECP5; about a minute",
            _cells(name),
            name,
        )
        for name in _BLOCKS
        if name != "router"  # its group is `router_area_ecp5`
    ),
)


def _web(name: str, target: str, description: str, *figures: str) -> Group:
    """Return a dated group of the web service."""
    figures = tuple(f"web.{figure}" for figure in figures)
    return Group(f"web_{name}", f"trebuchet.bench.{target}", description, figures, dated=True)


#: Objects' sizes (:data:`.web_dated.SIZES`).
_SIZES = ("64", "1k", "16k", "256k", "4m", "64m")
_WEB = (
    _web(
        "full",
        "web_dated:beside_many",
        "cycles of a connection with one request beside 100,000 idle ones; a quarter of an hour",
        *("http_1k_100k_cycles", "idle_100k_share", "churn_100k_leaks"),
    ),
    _web(
        "misses",
        "web_dated:beside_misses",
        "rate of hits while misses wait for a drive; a minute",
        "hits_beside_misses",
    ),
    _web(
        "incomplete",
        "web_dated:beside_incomplete",
        "rate of new requests beside 100,000 that never end; a quarter of an hour",
        *("incomplete_100k_share", "incomplete_100k_leaks"),
    ),
    _web(
        "sizes",
        "web_dated:sizes",
        "transactions with objects of 64 bytes to 64 MB; some minutes",
        *(f"size_{name}_{what}" for what in ("cycles", "share") for name in _SIZES),
    ),
    _web(
        "servers",
        "web_servers:servers",
        "nginx and lighttpd on this machine, under wrk; half a minute a seed",
        *(f"{name}_1k{kind}_rate" for name in ("nginx", "lighttpd") for kind in ("", "_each")),
    ),
)

_DATED = (
    Group(
        "ecg_training",
        "trebuchet.bench.ecg_accuracy:training",
        "inter-patient split and loss by rounding: trains; some minutes; needs the records",
        (
            "ecg.inter_patient_faithful",
            "ecg.inter_patient_second",
            "ecg.fixed_point_loss_faithful",
            "ecg.fixed_point_loss_second",
        ),
        dated=True,
    ),
    Group(
        "tcp_thousand",
        "trebuchet.bench.tcp:thousand",
        "throughput of a thousand sessions; some minutes",
        ("tcp.tx_share_1000", "tcp.rx_share_1000"),
        dated=True,
    ),
    Group(
        "tcp_full",
        "trebuchet.bench.tcp:full",
        "cycles per HTTP transaction beside 100,000 open connections; some minutes",
        ("tcp.http_1k_100k_cycles", "tcp.churn_100k_leaks"),
        dated=True,
    ),
    *_WEB,
    Group(
        "jobs",
        "trebuchet.bench.jobs:jobs",
        "the job server on this machine, beside an echo server and HAProxy; four minutes a seed",
        (
            "jobs.cpu_ratio_echo",
            "jobs.cpu_ratio_copying",
            "jobs.throughput_ratio_haproxy",
            "jobs.small_ratio_echo",
            "jobs.latency_added_p50_us",
            "jobs.latency_added_p99_us",
            "jobs.latency_unlimited",
            "jobs.fairness_64",
            "jobs.stalled_effect",
            "jobs.linear_44",
        ),
        dated=True,
    ),
    Group(
        "matmul_clock",
        "trebuchet.bench.matmul:clock",
        "clock and rate of the matrix multiplier alone on an ECP5-85F; some minutes",
        ("matmul.fmax_85f", "matmul.ops_per_s_85f"),
        dated=True,
    ),
    Group(
        "tcp_tiny_clock",
        "trebuchet.bench.tcp_tiny:clock",
        "clock of the TCP engine, preset tiny, alone on an ECP5-25F; some 10 minutes",
        ("tcp.tiny_fmax_mhz",),
        dated=True,
    ),
    Group(
        "gowin",
        "trebuchet.bench.gowin:clock",
        "the TCP engine, preset tiny, on a Gowin GW2A-18, placed and routed; some 15 minutes",
        ("gowin.tcp_tiny_mhz", "gowin.tcp_tiny_lut4", "gowin.tcp_tiny_bram18"),
        dated=True,
    ),
    *(
        Group(
            f"{name}_clock",
            "trebuchet.bench.blocks:clock",
            f"clock of the block {name} alone on an ECP5-45F; some minutes",
            (f"{name}.ecp5_mhz",),
            name,
            dated=True,
        )
        for name in _BLOCKS
    ),
    *(
        Group(
            f"board_{name}",
            "trebuchet.bench.board:build",
            f"clock and size of {name}, placed and routed; 10 to 40 minutes a seed",
            tuple(f"board.{name}.{figure}" for figure in BOARD_FIGURES),
            name,
            dated=True,
        )
        for name in BUILT
    ),
)

_ROLES = tuple(
    Group(group["name"], group["target"], group["description"], tuple(group["figures"]))
    for group in _role_files()
)

GROUPS = {group.name: group for group in (*_GATING, *_ROLES, *_DATED)}

#: Names under which `trebuchet bench` measures several groups: all whose figures begin so.
COLLECTIONS = {"roles": ("ecg", "matmul"), "toe": ("tcp",)}
