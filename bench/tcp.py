"""Cycles per complete HTTP transaction: 64 clients at once, each connects, asks, gets 1 KB, closes.

The whole shell without CPU is simulated (the fabric top) with memory of 40 cycles latency; the
load generator in the harness is the other end of the link. The link has data in every other cycle:
1 Gb/s where the clock is 62.5 MHz. The engine has 128 session slots, so half of them may be in
TIME-WAIT. A SYN for which there is no slot is dropped and comes again; the time it waits counts. A
run with an error, a wrong answer or a frame lost in the receiver counts for nothing.

The reference (sopc-cloud-platform, 6.3: 120 K transactions a second at 156.25 MHz) needs 1,302
cycles.
"""

from ..cores.tcp.config import TcpConfig
from ..sim.build import build
from ..sim.run import run_batch
from ..sim.tops import fabric_source

__all__ = ["http_load", "measure"]

CLIENTS = 64
SESSIONS = 128
TRANSACTIONS = 1000
WARM_UP = 200
PAGE_PORT = 8080
PAGE_BYTES = 1024
#: Protocol milliseconds and line rate as on a board of 62.5 MHz.
CYCLES_PER_MS = 62_500
STALL = 0.5
#: Of the clients, in protocol milliseconds: only their SYNs are ever dropped.
RTO = 5
LIMIT = 20_000_000
SECONDS = 1200


def http_load(
    clients: int = CLIENTS, transactions: int = TRANSACTIONS, warm_up: int = WARM_UP
) -> dict[str, float]:
    """The load generator's own statistics of a run that went well."""
    options = {
        "load": "http",
        "port": PAGE_PORT,
        "clients": clients,
        "transactions": transactions,
        "warmup": warm_up,
        "time": f"cycles:{CYCLES_PER_MS}",
        "stall": STALL,
        "rto": RTO,
        "cycles": LIMIT,
    }
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    binary = build(fabric_source(TcpConfig(sessions=SESSIONS)))
    code, statistics = run_batch(binary, arguments, timeout=SECONDS)
    load = statistics["load"]
    lost = statistics["counters"]["tcp_rx.overflow"]
    if code or not load["complete"] or load["errors"] or load["strays"] or lost:
        raise RuntimeError(f"the load did not go through (code {code}, {lost} lost): {load}")
    if load["answer_bytes"] < PAGE_BYTES or load["transactions"] != transactions:
        raise RuntimeError(f"{transactions} answers of {PAGE_BYTES} bytes were due: {load}")
    return load


def measure() -> dict[str, float]:
    return {"tcp.http_1k_cycles": round(http_load()["cycles_per_transaction"], 1)}
