"""Cycles per complete HTTP transaction: 64 clients at once, each connects, asks, gets 1 KB, closes.

The engine has 128 session slots, so that a slot in TIME-WAIT is no reason to turn a client away.
The whole shell without CPU is simulated (the fabric top) with memory of 40 cycles latency; the
load generator in the harness is the other end of the link. The reference (sopc-cloud-platform,
6.3: 120 K transactions a second at 156.25 MHz) needs 1,302 cycles. A run with an error, a wrong
answer or a retransmission counts for nothing.
"""

from ..cores.tcp.config import TcpConfig
from ..sim.build import build
from ..sim.run import run_batch
from ..sim.tops import fabric_source

__all__ = ["http_load", "measure"]

CLIENTS = 64
SESSIONS = 128
TRANSACTIONS = 2000
WARM_UP = 200
PAGE_PORT = 8080
PAGE_BYTES = 1024
#: Protocol milliseconds as on a board of 62.5 MHz.
CYCLES_PER_MS = 62_500
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
        "cycles": LIMIT,
    }
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    binary = build(fabric_source(TcpConfig(sessions=SESSIONS)))
    code, statistics = run_batch(binary, arguments, timeout=SECONDS)
    load = statistics["load"]
    wrong = {name: load[name] for name in ("errors", "retransmissions", "strays") if load[name]}
    if code or not load["complete"] or wrong:
        raise RuntimeError(f"the load did not go through (exit code {code}, {wrong}): {load}")
    if load["answer_bytes"] < PAGE_BYTES or load["transactions"] != transactions:
        raise RuntimeError(f"{transactions} answers of {PAGE_BYTES} bytes were due: {load}")
    return load


def measure() -> dict[str, float]:
    return {"tcp.http_1k_cycles": round(http_load()["cycles_per_transaction"], 1)}
