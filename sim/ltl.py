"""Boards that talk LTL, in Verilator: engines, links, a switch, and messages that are checked.

::

    binary = build_ltl(LtlConfig())
    run = run_ltl(binary, boards=2, flows=[Flow(0, 1, messages=1000)], loss=0.01)
    assert run.delivered == [1000]

The harness (``sim/ltl_harness``) makes one model of the engine a board, opens a connection for each
flow, sends messages whose bytes and lengths follow from flow and number, and checks that each
comes out in order, exactly once and unchanged. The link between two boards is direct (``direct``),
or a switch with one queue a port that drops, doubles, reorders and damages frames by chance, marks
them as its queue grows and pauses its senders.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..cores.ltl.config import LtlConfig
from ..cores.ltl.engine import Ltl
from ..cores.ltl.registers import LTL_BLOCK
from ..models.errors import TrebuchetError
from .build import Source, build
from .flat import BEAT, FlatTop
from .process import run_limited

__all__ = ["Flow", "LtlRun", "build_ltl", "ltl_source", "run_ltl"]

TOP = "trebuchet_ltl"
HARNESS = Path(__file__).resolve().parent / "ltl_harness"


@dataclass(frozen=True)
class Flow:
    """Messages from one board to another over a connection of their own."""

    source: int
    sink: int
    messages: int = 1000
    vc: int = 0
    #: Bounds of a message's length in bytes.
    low: int = 1
    high: int = 64


@dataclass(frozen=True)
class LtlRun:
    """What came of it. Counters are those of each board's registers at the end."""

    cycles: int
    #: Messages and bytes of each flow that came out.
    delivered: list[int]
    octets: list[int]
    #: Cycle of each flow's last message.
    finished: list[int]
    #: Cycles from a header's first beat at board 0 to its ACK there; one message at a time only.
    rtts: list[int]
    #: Failed send connections: (board, index, cycle).
    failures: list[tuple[int, int, int]]
    #: The switch: frames lost because its queue was full, frames marked, PFC frames sent,
    #: frames that it damaged and so on by chance, bytes of the longest queue.
    switch: dict[str, int]
    counters: list[dict[str, int]] = field(default_factory=list)


class LtlTop(FlatTop):
    """Flat ports around an engine."""

    def __init__(self, config: LtlConfig):
        engine = Ltl(config)
        super().__init__(engine)
        for name in ("rx", "tx"):
            self.stream(name, getattr(engine, name), BEAT, name == "tx")
        for v in range(config.vcs):
            self.stream(f"send{v}", engine.send[v], (*BEAT, "connection"), False)
            self.stream(f"deliver{v}", engine.deliver[v], (*BEAT, "connection"), True)
        for name in ("mac", "ip"):
            self.port(name, getattr(engine, name), False)
        for name in ("started", "acked"):
            self.port(name, getattr(engine, name), True)
        for r in LTL_BLOCK.registers:
            self.port(f"csr_{r.name}", getattr(engine.csr, r.name), r.access == "ro")


def _header(config: LtlConfig) -> str:
    reads = " ".join(f"X({r.name})" for r in LTL_BLOCK.registers if r.access == "ro")
    writes = " ".join(f"X({r.name}, {r.reset})" for r in LTL_BLOCK.registers if r.access == "rw")
    channels = " ".join(f"X({v})" for v in range(config.vcs))
    return (
        f"#define LTL_WIDTH {config.width}\n#define LTL_VCS {config.vcs}\n"
        f"#define LTL_CONNECTIONS {config.connections}\n#define LTL_CHANNELS(X) {channels}\n"
        f"#define LTL_READ(X) {reads}\n#define LTL_WRITE(X) {writes}\n"
    )


def ltl_source(config: LtlConfig | None = None) -> Source:
    """The :class:`~trebuchet.sim.build.Source` of a simulator for engines of that configuration."""
    config = LtlConfig() if config is None else config
    texts = {"top.v": LtlTop(config).verilog(TOP), "ltl_ports.h": _header(config)}
    return Source("ltl", TOP, texts, main=HARNESS / "net.cpp")


def build_ltl(config: LtlConfig | None = None) -> Path:
    """The simulator for engines of that configuration, compiled unless that was done before."""
    return build(ltl_source(config))


def run_ltl(
    binary: Path,
    *,
    boards: int = 2,
    flows: Sequence[Flow],
    seed: int = 1,
    direct: bool = False,
    serial: bool = False,
    loss: float = 0.0,
    duplicate: float = 0.0,
    reorder: float = 0.0,
    corrupt: float = 0.0,
    stall: float = 0.0,
    latency: int = 0,
    gap: int = 3,
    queue: int = 1 << 20,
    mark: tuple[int, int, float] = (1 << 30, 1 << 30, 1.0),
    pause: tuple[int, int] = (1 << 30, 1 << 30),
    dead: tuple[int, int] | None = None,
    limit: int = 2_000_000,
    stop: int = 0,
    credit: int = 4,
    warm: int = 0,
    registers: dict[str, int] | None = None,
    timeout: float = 300,
) -> LtlRun:
    """Run until all messages are acknowledged, or for ``stop`` cycles.

    Parameters
    ----------
    loss, duplicate, reorder, corrupt : float
        Chances of a frame. A damaged one has some bits turned, and no error mark.
    stall : float
        Chance of a pause in a cycle: of every input and every output of messages.
    latency, gap : int
        Cycles a link takes; idle beats after each frame (3 at 64 bits: preamble, FCS and gap).
    queue, mark, pause : int, (int, int, float), (int, int)
        Of the switch, in bytes: room of a queue; Kmin, Kmax and Pmax of marking; bytes from one
        board at which it is paused, and may go on.
    dead : (int, int)
        A board, and the cycle from which it hears and says nothing.
    limit, stop : int
        Cycles without progress after which it is an error; cycles after which to end.
    warm : int
        Cycles before bytes are counted.
    timeout : float
        Seconds of processor time.
    """
    options: dict[str, Any] = {
        "boards": boards, "seed": seed, "direct": int(direct), "serial": int(serial),
        "loss": loss, "duplicate": duplicate, "reorder": reorder, "corrupt": corrupt,
        "stall": stall, "latency": latency, "gap": gap, "queue": queue,
        "kmin": mark[0], "kmax": mark[1], "pmax": mark[2],
        "xoff": pause[0], "xon": pause[1], "limit": limit, "stop": stop, "credit": credit,
        "warm": warm,
    }  # fmt: skip
    if dead is not None:
        options |= {"dead": dead[0], "dead-at": dead[1]}
    command = [str(binary)]
    for key, value in options.items():
        command += [f"--{key}", str(value)]
    for flow in flows:
        fields = (flow.source, flow.sink, flow.messages, flow.vc, flow.low, flow.high)
        command += ["--flow", ",".join(map(str, fields))]
    for name, number in (registers or {}).items():
        command += ["--set", f"{name}={number}"]
    run = run_limited(command, timeout)
    if run.returncode:
        raise TrebuchetError(f"LTL failed with seed {seed}: {run.stderr.strip()[-400:]}")
    raw = json.loads(run.stdout)
    raw["failures"] = [tuple(f) for f in raw["failures"]]
    return LtlRun(**raw)
