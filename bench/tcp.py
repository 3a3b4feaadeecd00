"""Figures of the TCP engine, 64 bits wide, from simulation.

The engine, its line side and services that hardly cost anything (:mod:`trebuchet.sim.toe`), with
memory of 40 cycles latency; the load generator in the harness is the other end of the link, which
has no pauses. 1,024 sessions in block RAM.

*Transactions*: 64 clients at once, each connects, asks, gets 1 KB, closes; cycles for one. The
reference (sopc-cloud-platform, 6.3: 120 K transactions a second at 156.25 MHz) needs 1,302.

*Shares*: payload bytes in bulk, of what the data path carries, in segments of 1,460 bytes. One
client, or a thousand at once, get an object (*tx*) or send one (*rx*), connection after connection:
handshakes and slow starts count.

A run with an error, a wrong answer or a frame lost in the receiver counts for nothing.
"""

from ..cores.tcp.config import TcpConfig
from ..sim.build import build
from ..sim.run import run_batch
from ..sim.toe import DISCARD, OBJECTS
from ..sim.tops import toe_source

__all__ = ["http_load", "measure", "run_load"]

CONFIG = TcpConfig(sessions=1024, width=64, segment_log2=16, rx_buffer=32768)
CLIENTS, TRANSACTIONS, WARM_UP = 64, 1000, 200
#: Protocol milliseconds as on a board of 62.5 MHz.
CYCLES_PER_MS = 62_500
#: Of the clients, in protocol milliseconds.
RTO = 50
LIMIT = 40_000_000
SECONDS = 1800
PAGE, FILE, IMAGE = OBJECTS
#: Port of the object that is sent either way, by the number of clients.
BULK = {1: IMAGE, 1000: FILE}


def run_load(**options) -> dict[str, float]:
    """The load generator's own statistics of a run that went well."""
    options |= {"time": f"cycles:{CYCLES_PER_MS}", "rto": RTO, "cycles": LIMIT}
    arguments = [
        word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)
    ]
    code, statistics = run_batch(build(toe_source(CONFIG)), arguments, timeout=SECONDS)
    load = statistics["load"]
    lost = statistics["counters"]["tcp_rx.overflow"]
    if code or not load["complete"] or load["errors"] or load["strays"] or lost:
        raise RuntimeError(f"the load did not go through (code {code}, {lost} lost): {load}")
    return load


def http_load(
    clients: int = CLIENTS, transactions: int = TRANSACTIONS, warm_up: int = WARM_UP
) -> dict[str, float]:
    """HTTP-like transactions."""
    load = run_load(
        load="http", port=PAGE, clients=clients, transactions=transactions, warmup=warm_up
    )
    if load["answer_bytes"] != OBJECTS[PAGE] or load["transactions"] != transactions:
        raise RuntimeError(f"{transactions} answers of {OBJECTS[PAGE]} bytes were due: {load}")
    return load


def share(way: str, clients: int) -> float:
    """Share of the data path that payload takes, ``tx`` or ``rx``."""
    port = BULK[clients]
    load = run_load(
        load="http" if way == "tx" else "discard",
        port=port if way == "tx" else DISCARD,
        clients=clients,
        transactions=max(3, clients // 2),
        warmup=max(1, clients // 4),
        min_bytes=OBJECTS[port],
        max_bytes=OBJECTS[port],
        window=65535,
        inflight=65535,
    )
    payload = load["bytes_received"] if way == "tx" else load["bytes_sent"]
    return float(payload * 8 / CONFIG.width / load["cycles"])


def measure() -> dict[str, float]:
    cycles = round(http_load()["cycles_per_transaction"], 1)
    shares = {
        f"tcp.{way}_share_{clients}": round(share(way, clients), 3)
        for way in ("tx", "rx")
        for clients in BULK
    }
    return {"tcp.http_1k_cycles": cycles, **shares}
