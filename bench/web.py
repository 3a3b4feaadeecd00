"""Figures of the web service, 64 bits wide, from simulation: memory of 40 cycles latency.

The TCP engine with its line side and :class:`~trebuchet.cores.web.service.Web` with four lanes
(:mod:`trebuchet.sim.web_load`). Clients in the harness are the other end of the link, which has no
pauses; they ask as curl does and compare every byte of every answer with the golden model's. They
acknowledge every second segment at once, others a millisecond later at most.

*Keep-alive*: 64 clients, each with one connection, ask for objects of 1,024 or 64 bytes, chosen at
random among 64; the next request goes with the acknowledgement of the last answer. *Pipelined*:
four requests in one segment, and the next four when all answers are there.

*Large*: one client gets an object of 4 MB over and over; bytes that come, headers included, over
those that the data path carries in that time.

*Hit latency*: a single client asks for objects of 64 bytes, with no field but Host; from the last
beat of the request's frame to the first of the answer's, the worst of 200.

*A connection each*: 64 clients at once connect, ask for 1,024 bytes with ``Connection: close``, get
them, and close, of an engine with preset ``FULL``, 131,072 sessions in external memory; beside
100,000 other connections to the web service, which are open and idle. At the end these close in
random order, each within a request, and what is then not free again has leaked.

*Hits beside misses*: 56 clients ask for objects of 1,024 bytes in memory, on connections that stay
open, while 8 others ask for a file of 16 KiB that never is: as many requests wait as the firmware
lets wait. There is no CPU: :class:`~trebuchet.sim.web_misses.Keeper` answers at the registers of
the desk, as ``firmware/web_slow.c`` does. Its times are :data:`MISSES`: it looks at a request every
2,000 cycles, and a load costs 261,000 cycles of firmware, as measured on the simulated board for
four clusters (docs/web.md), then a drive of 250 MB/s and 100 us at 62.5 MHz, whose data the board's
DMA writes to memory. What the CPU itself reads and writes in memory is not there. The rate of hits,
relative to that of the same simulator without the 8 clients; what the misses' answers take of the
link counts as lost.

*Sizes*: a connection, a request, the end (sopc-cloud-platform, 6.3.1 and 6.3.2), for one object of
64 bytes to 64 MB; cycles of one, and bytes that come, headers included, over those that the data
path carries. 64 clients at once; 8 with 256 KB, one with 4 or 64 MB.

*Incomplete requests*: as *a connection each*, beside 100,000 connections that send requests byte by
byte and never an end. All connect first, and 700 of them send a byte, so that few places are left;
then, all the time, one of them sends a byte every :data:`DRIP` cycles: at 62.5 MHz each of the
100,000 sends a byte in 10 s. The run lasts longer than these take to fill all places once. The rate
is relative to that of none beside. Frames of theirs may be lost while they connect and close, no
others'. Afterwards all close, and what is not free has leaked.

*Area*: with 1,024 places and four lanes; on an ECP5 with 64 and one; the service as Verilog.

A run with a wrong byte, a connection that ended otherwise, or a lost frame counts for nothing.
"""

import dataclasses
import functools
import random
from typing import Any

from ..cores.tcp.config import FULL, TcpConfig
from ..cores.web.service import Web
from ..models.http.response import Object
from ..sim.build import Source, build
from ..sim.web_load import Store, request, run_web, web_load_source
from .area import area_job
from .job import Job, Sampled, Values
from .tcp import CLIENTS, CYCLES_PER_MS, IDLE, LIMIT, RTO, TIME_WAIT, left_over
from .tcp_tiny import AsVerilog

__all__ = ["area", "area_ecp5", "beside_incomplete", "beside_many", "beside_misses", "latency"]
__all__ += ["rates", "sizes", "store"]

#: Sessions in block RAM, and at work for the service at a time.
SMALL = TcpConfig(sessions=1024, width=64, segments=256, rx_buffer=32768)
MANY = dataclasses.replace(FULL, places=1024)
KILO, SMALL_OBJECT, LARGE = 1024, 64, 4_000_000
PIPELINE = 4
#: Of firmware and drive, in cycles; clients that miss, as many as firmware lets wait.
MISSES = {"turn": 2000, "prepare": 261_000, "latency": 6250, "period": 2}
MISSING = 8
#: Cycles from byte to byte of incomplete requests, of whichever; the same while they connect and
#: close; bytes before the measurement.
DRIP, CONNECT, BEFORE = 6250, 600, 700
#: By name: bytes of an object, clients, transactions that are measured. All of a run are at most
#: as many as sessions, as those that have ended are in TIME-WAIT.
SIZES = {
    "64": (64, 64, 600),
    "1k": (1 << 10, 64, 600),
    "16k": (16 << 10, 64, 300),
    "256k": (256 << 10, 8, 24),
    "4m": (4_000_000, 1, 3),
    "64m": (64_000_000, 1, 1),
}
#: Of the service whose area is measured: sessions at work, segments of 32 KiB.
SESSIONS, SEGMENT_LOG2 = 1024, 15


@functools.cache
def _source(config: TcpConfig, misses: bool = False) -> Source:
    csr = {"csr_tcp": {"time_wait": TIME_WAIT}}
    return web_load_source(config, csr=csr, misses=MISSES if misses else None)


@functools.cache
def store(size: int, count: int = 64) -> Store:
    """Return objects of ``size`` bytes that no compression would make smaller."""
    rng = random.Random(size)
    kind = b"application/octet-stream"
    objects = {}
    for k in range(count):
        objects[b"/%d/%04d.bin" % (size, k)] = Object(
            rng.randbytes(size), kind, rng.getrandbits(64)
        )
    return Store(objects)


def _run(source: Source, objects: Store, may_lose: bool = False, **options: Any) -> dict[str, Any]:
    """Run clients against a simulated board; raise TrebuchetError or RuntimeError if it fails.

    ``may_lose``: it is no error that frames of clients that are not measured are lost.
    """
    exchanges = objects.exchanges(options.get("each", False))
    options = {"clients": CLIENTS, "cycles": LIMIT, "rto": RTO, **options}
    asked = options.pop("exchanges", exchanges)
    run = run_web(build(source), objects, asked, time=f"cycles:{CYCLES_PER_MS}", **options)
    counters = run["counters"]
    lost = counters["tcp_rx.overflow"] and not may_lose
    if lost or run["load"]["retransmissions"]:
        raise RuntimeError(f"frames were lost: {run['load']}")
    if counters["web.found"] + counters.get("web.by_firmware", 0) != counters["web.requests"]:
        raise RuntimeError(f"not all answers were objects: {counters}")
    return run


def _cycles(source: Source, objects: Store, **options: Any) -> float:
    return round(_run(source, objects, **options)["load"]["cycles_per_request"], 1)


def rates() -> Job:
    """Return the measurement of what a request costs on connections that stay open."""
    source = _source(SMALL)

    def measure() -> Values:
        kilo, small, large = store(KILO), store(SMALL_OBJECT), store(LARGE, 1)
        load = _run(source, large, clients=1, transactions=4, warmup=2, window=65535)["load"]
        many = {"transactions": 2000, "warmup": 400}
        return {
            "web.keepalive_1k_cycles": _cycles(source, kilo, **many),
            "web.keepalive_64_cycles": _cycles(source, small, **many),
            "web.keepalive_64_pipelined_cycles": _cycles(source, small, pipeline=PIPELINE, **many),
            "web.large_share": round(load["delivered"] * 8 / SMALL.width / load["cycles"], 3),
        }

    return Job((source,), measure)


def latency() -> Job:
    """Return the measurement of a hit's latency."""
    source = _source(SMALL)

    def measure() -> Values:
        objects = store(SMALL_OBJECT)
        asked = [objects.exchange(request(path, fields=b"")) for path in objects.objects]
        run = _run(source, objects, exchanges=asked, clients=1, transactions=200, warmup=10)
        return {"web.hit_latency_cycles": run["latency_max"]}

    return Job((source,), measure)


def beside_many() -> Sampled:
    """Return the measurement of a connection for each request, beside 100,000 others."""
    source = _source(MANY)

    def measure(seed: int) -> Values:
        each: dict[str, Any] = {"each": True, "transactions": 1000, "warmup": 200}
        alone = _cycles(source, store(KILO), **each)
        run = _run(source, store(KILO), idle=IDLE, idle_port=80, drain=30, **each)
        cycles = round(run["load"]["cycles_per_request"], 1)
        return {
            "web.http_1k_100k_cycles": cycles,
            "web.idle_100k_share": round(alone / cycles, 3),
            "web.churn_100k_leaks": left_over(MANY, run["counters"]),
        }

    return Sampled((source,), measure, seeds=(1,))


def beside_misses() -> Sampled:
    """Return the measurement of hits while misses wait."""
    source = _source(SMALL, misses=True)

    def measure(seed: int) -> Values:
        hits: dict[str, Any] = {"clients": CLIENTS - MISSING, "transactions": 10_000, "warmup": 400}
        alone = _cycles(source, store(KILO), **hits)
        run = _run(source, store(KILO), **hits, missing=MISSING)["load"]
        if not run["misses"]:
            raise RuntimeError(f"no miss was answered: {run}")
        return {"web.hits_beside_misses": round(alone / run["cycles_per_request"], 3)}

    return Sampled((source,), measure, seeds=(1,))


def beside_incomplete() -> Sampled:
    """Return the measurement of new requests beside 100,000 that never end."""
    source = _source(MANY)

    def measure(seed: int) -> Values:
        each = {"each": True, "transactions": 8_000, "warmup": 200}
        slow = {"slow": IDLE, "slow_gap": DRIP, "slow_connect": CONNECT, "slow_before": BEFORE}
        alone = _cycles(source, store(KILO), **each)
        limit = {"cycles": 4 * IDLE * CONNECT, "drain": 30}
        run = _run(source, store(KILO), may_lose=True, **limit, **each, **slow)
        if not run["counters"]["web.timeouts"]:
            raise RuntimeError(f"there were always places enough: {run}")
        return {
            "web.incomplete_100k_share": round(alone / run["load"]["cycles_per_request"], 3),
            "web.incomplete_100k_leaks": left_over(MANY, run["counters"]),
        }

    return Sampled((source,), measure, seeds=(1,))


def _transaction(source: Source, name: str) -> tuple[float, float]:
    """Return cycles of a transaction with an object, and the share of the data path."""
    size, clients, count = SIZES[name]
    run = _run(
        source,
        store(size, 1),
        each=True,
        clients=clients,
        transactions=count,
        warmup=max(1, count // 4),
        window=65535,
    )["load"]
    return run["cycles_per_request"], run["delivered"] * 8 / SMALL.width / run["cycles"]


def sizes() -> Sampled:
    """Return the measurement of transactions with objects of 64 bytes to 64 MB."""
    source = _source(SMALL)

    def measure(seed: int) -> Values:
        found = {name: _transaction(source, name) for name in SIZES}
        cycles = {f"web.size_{name}_cycles": round(value, 1) for name, (value, _) in found.items()}
        shares = {f"web.size_{name}_share": round(value, 3) for name, (_, value) in found.items()}
        return cycles | shares

    return Sampled((source,), measure, seeds=(1,))


def _service(sessions: int, lanes: int) -> AsVerilog:
    """Return the service as boards are built from it."""
    return AsVerilog(Web(64, sessions, SEGMENT_LOG2, lanes=lanes, rest=True))


def area() -> Job:
    """Return the measurement of the area of the service with four lanes."""
    figures = {"web.lut6": "LUT6", "web.bram36": "BRAM36"}
    return area_job(lambda: _service(SESSIONS, 4), figures)


def area_ecp5() -> Job:
    """Return the measurement of the area of the service with one lane, 64 sessions, on an ECP5."""
    figures = {"web.lut4": "LUT4", "web.bram18": "BRAM18"}
    return area_job(lambda: _service(64, 1), figures, "ecp5")
