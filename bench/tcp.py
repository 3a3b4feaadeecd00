"""Figures of the TCP engine, 64 bits wide, from simulation.

The engine, its line side and services that hardly cost anything (:mod:`trebuchet.sim.toe`), with
memory of 40 cycles latency; the load generator in the harness is the other end of the link, which
has no pauses.

*Transactions*: 64 clients at once, each connects, asks, gets 1 KB, closes; cycles for one, with
preset ``FULL``, whose sessions are in external memory as the reference's
(sopc-cloud-platform, 6.3: 120 K transactions a second at 156.25 MHz, which is 1,302 cycles); and
(*small*) with 1,024 sessions in block RAM, as all shares.

*Shares*: payload bytes in bulk, of what the data path carries, in segments of 1,460 bytes. One
client, or a thousand at once, get an object (*tx*) or send one (*rx*), connection after connection:
handshakes and slow starts count. A thousand senders at once overflow the receiver's queue now and
then: what is lost so is sent again, and costs its time. What counts is what has come in order, or
was acknowledged, between two moments, whichever connection it is of.

*A hundred thousand*: the same transactions, of the same engine, while 100,000 other connections are
open. They are opened before, and afterwards closed in random order, each with a few bytes first.
What is then not free again (sessions, pool segments, descriptors, places on the lists of who is
to send or to be told) has leaked. TIME-WAIT is 250 ms, so that the run is over soon; no number is
used twice while it is measured.

A run with an error, a wrong answer or, elsewhere, a frame lost in the receiver counts for nothing.
"""

import functools
from pathlib import Path

from ..cores.tcp.config import FULL, TcpConfig
from ..cores.tcp.engine import TcpEngine
from ..cores.tcp.service import TX_PER_SESSION
from ..sim.build import Source, build
from ..sim.run import run_batch
from ..sim.toe import DISCARD, OBJECTS, toe_source
from .area import area_job
from .job import Job, Sampled, Values

__all__ = ["IDLE", "TIME_WAIT", "area", "cycles", "full", "http_load", "left_over", "run_load"]
__all__ += ["share", "thousand"]

CONFIG = TcpConfig(sessions=1024, width=64, segment_log2=16, rx_buffer=32768)
CLIENTS, TRANSACTIONS, WARM_UP = 64, 1000, 200
#: Protocol milliseconds as on a board of 62.5 MHz.
CYCLES_PER_MS = 62_500
#: Of the clients, in protocol milliseconds.
RTO = 50
LIMIT = 100_000_000
SECONDS = 7200
IDLE = 100_000
#: Milliseconds, for preset ``FULL``; more than the smallest retransmission time-out.
TIME_WAIT = 250
#: Clients of a bulk load that begin in one millisecond: their SYNs fit the receiver's queue.
RAMP = 50
PAGE, FILE, IMAGE = OBJECTS
#: Port of the object that is sent either way, by the number of clients.
BULK = {1: IMAGE, 1000: FILE}


@functools.cache
def _source(config: TcpConfig) -> Source:
    return toe_source(config, {"csr_tcp": {"time_wait": TIME_WAIT}} if config.cache else {})


@functools.cache
def _binary(config: TcpConfig) -> Path:
    return build(_source(config))


def run_load(binary: Path, may_lose: bool = False, **options) -> tuple[dict, dict]:
    """Return the load generator's statistics of a run that went well, and the top's counters.

    ``may_lose``: it is no error that the receiver's queue overflows.
    """
    options |= {"time": f"cycles:{CYCLES_PER_MS}", "rto": RTO, "cycles": LIMIT}
    arguments = [
        word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    code, statistics = run_batch(binary, arguments, timeout=SECONDS)
    load, counters = statistics["load"], statistics["counters"]
    lost = counters["tcp_rx.overflow"]
    if code or not load["complete"] or load["errors"] or load["strays"] or (lost and not may_lose):
        raise RuntimeError(f"the load did not go through (code {code}, {lost} lost): {load}")
    return load, counters


def http_load(binary: Path, idle: int = 0) -> tuple[dict, dict]:
    """Make HTTP-like transactions of :data:`PAGE`'s object, with ``idle`` other connections."""
    options = {"clients": CLIENTS, "transactions": TRANSACTIONS, "warmup": WARM_UP}
    if idle:
        options["drain"] = 30  # closing the others takes longer than TIME-WAIT
    load, counters = run_load(binary, load="http", port=PAGE, idle=idle, **options)  # type: ignore[arg-type]
    if load["answer_bytes"] != OBJECTS[PAGE] or load["transactions"] != TRANSACTIONS:
        raise RuntimeError(f"{TRANSACTIONS} answers of {OBJECTS[PAGE]} bytes were due: {load}")
    return load, counters


def share(way: str, clients: int) -> float:
    """Share of the data path that payload takes, ``tx`` or ``rx``."""
    port = BULK[clients]
    load, _ = run_load(
        _binary(CONFIG),
        may_lose=clients > 1,
        load="http" if way == "tx" else "discard",
        port=port if way == "tx" else DISCARD,
        clients=clients,
        ramp=RAMP,
        transactions=max(3, clients // 2),
        warmup=max(1, clients // 2),
        min_bytes=OBJECTS[port],
        max_bytes=OBJECTS[port],
        window=65535,
        inflight=65535,
    )
    payload = load["carried_in" if way == "tx" else "carried_out"]
    return float(payload * 8 / CONFIG.width / load["cycles"])


def _shares(clients: int) -> Values:
    return {f"tcp.{way}_share_{clients}": round(share(way, clients), 3) for way in ("tx", "rx")}


def cycles() -> Job:
    """Return the measurement of cycles for a transaction, and of one session's throughput."""
    configs = {"http_1k": FULL, "http_1k_small": CONFIG}

    def measure() -> Values:
        cycles = {
            f"tcp.{name}_cycles": round(http_load(_binary(config))[0]["cycles_per_transaction"], 1)
            for name, config in configs.items()
        }
        return {**cycles, **_shares(1)}

    return Job(tuple(map(_source, configs.values())), measure)


def thousand() -> Sampled:
    """Return the measurement of the throughput of a thousand sessions."""
    return Sampled((_source(CONFIG),), lambda seed: _shares(1000), seeds=(1,))


def full() -> Sampled:
    """Return the measurement beside 100,000 open connections."""
    return Sampled((_source(FULL),), lambda seed: _beside_many(), seeds=(1,))


def _beside_many() -> Values:
    load, counters = http_load(_binary(FULL), IDLE)
    cycles = round(load["cycles_per_transaction"], 1)
    leaks = left_over(FULL, counters)
    return {"tcp.http_1k_100k_cycles": cycles, "tcp.churn_100k_leaks": leaks}


def left_over(config: TcpConfig, counters: dict[str, int]) -> int:
    """Return how much of an engine's stores is not free, by its counters when all has ended."""
    leaks = counters["tcp.sessions_used"] + counters["tcp.half_open"]
    leaks += config.pool_segments - counters["tcp.segments_free"]
    leaks += TX_PER_SESSION * config.sessions - counters["tcp.descriptors_free"]
    leaks += 1 - counters["tcp.idle"]  # somebody is on a list
    free = [value for name, value in counters.items() if name.startswith("tcp.places_free_")]
    return leaks + sum((config.places or 0) - value for value in free)


def area() -> Job:
    """Return the measurement of the area of preset ``FULL``."""
    figures = {"tcp.full_lut6": "LUT6", "tcp.full_bram36": "BRAM36"}
    return area_job(lambda: TcpEngine(FULL), figures)
