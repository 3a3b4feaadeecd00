"""Figures of the web service that take long to measure; clients and service as in :mod:`.web`.

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
"""

import dataclasses
from typing import Any

from ..cores.tcp.config import FULL
from ..sim.build import Source
from ..sim.web_load import web_load_source
from .job import Sampled, Values
from .tcp import CLIENTS, IDLE, left_over
from .web import CSR, KILO, SMALL, cycles_of, run_checked, service_source, store

__all__ = ["beside_incomplete", "beside_many", "beside_misses", "sizes"]

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
MANY = dataclasses.replace(FULL, places=1024)


def beside_many() -> Sampled:
    """Return the measurement of a connection for each request, beside 100,000 others."""
    source = service_source(MANY)

    def measure(seed: int) -> Values:
        each: dict[str, Any] = {"each": True, "transactions": 1000, "warmup": 200}
        alone = cycles_of(source, store(KILO), **each)
        run = run_checked(source, store(KILO), idle=IDLE, idle_port=80, drain=30, **each)
        cycles = round(run["load"]["cycles_per_request"], 1)
        return {
            "web.http_1k_100k_cycles": cycles,
            "web.idle_100k_share": round(alone / cycles, 3),
            "web.churn_100k_leaks": left_over(MANY, run["counters"]),
        }

    return Sampled((source,), measure, seeds=(1,))


def beside_misses() -> Sampled:
    """Return the measurement of hits while misses wait."""
    source = web_load_source(SMALL, csr=CSR, misses=MISSES)

    def measure(seed: int) -> Values:
        hits: dict[str, Any] = {"clients": CLIENTS - MISSING, "transactions": 10_000, "warmup": 400}
        alone = cycles_of(source, store(KILO), **hits)
        run = run_checked(source, store(KILO), **hits, missing=MISSING)["load"]
        if not run["misses"]:
            raise RuntimeError(f"no miss was answered: {run}")
        return {"web.hits_beside_misses": round(alone / run["cycles_per_request"], 3)}

    return Sampled((source,), measure, seeds=(1,))


def beside_incomplete() -> Sampled:
    """Return the measurement of new requests beside 100,000 that never end."""
    source = service_source(MANY)

    def measure(seed: int) -> Values:
        each = {"each": True, "transactions": 8_000, "warmup": 200}
        slow = {"slow": IDLE, "slow_gap": DRIP, "slow_connect": CONNECT, "slow_before": BEFORE}
        alone = cycles_of(source, store(KILO), **each)
        limit = {"cycles": 4 * IDLE * CONNECT, "drain": 30}
        run = run_checked(source, store(KILO), may_lose=True, **limit, **each, **slow)
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
    run = run_checked(
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
    source = service_source(SMALL)

    def measure(seed: int) -> Values:
        found = {name: _transaction(source, name) for name in SIZES}
        cycles = {f"web.size_{name}_cycles": round(value, 1) for name, (value, _) in found.items()}
        shares = {f"web.size_{name}_share": round(value, 3) for name, (_, value) in found.items()}
        return cycles | shares

    return Sampled((source,), measure, seeds=(1,))
