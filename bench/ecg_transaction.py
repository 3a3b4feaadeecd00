"""Cycles per ECG transaction, end to end over TCP: 64 clients, four pipelines, a 64-bit data path.

A transaction is 4,096 samples sent as one SMP message (8,204 bytes, six segments) and its answer,
the records of 12 beats (204 bytes), compared byte by byte with the golden model's by the load
generator in the harness. Every client keeps its connection and sends the next message when it has
the answer to the last. The whole shell without CPU is simulated (the fabric top).

The link carries 8 bytes a cycle, preamble, FCS and gap between frames included: 10 Gb/s at
156.25 MHz. A message takes 1,084 cycles of it: on such a link nothing can be faster than that.
The memory port is as wide as the data path and moves a beat a cycle in each direction, 40 cycles
of latency or more: what LiteDRAM's native port of 128 bits at least gives behind
`cores/litedram_adapter.py`. A run with an error, a wrong answer or a frame lost in a measured
transaction counts for nothing.

The reference (sopc-cloud-platform, 6.4: 41,830 transactions a second at 156.25 MHz) needs 3,735
cycles.
"""

import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ..cores.tcp.config import TcpConfig
from ..models.ecg import model
from ..models.ecg.synthetic import synthesise
from ..models.plan import Plan
from ..models.smp_framing import data_message
from ..sim.build import Source, build
from ..sim.fabric import fabric_source
from ..sim.run import run_batch
from .job import Job, Values

__all__ = ["blocks", "cycles", "message_file", "run", "source"]

CLIENTS = 64
PIPELINES = 4
#: A pipeline loads a block while it works on the beats of the one before.
BUFFERS = 2
BEATS = 12
#: Different messages; clients send them in turn.
MESSAGES = 16
TRANSACTIONS = 300
#: Until every client has connected and the queues are as long as they get.
WARM_UP = 600
#: 10 Gb/s at 156.25 MHz.
LINE_RATE = 8
CYCLES_PER_MS = 156_250
#: Clients that connect in a millisecond: more SYNs at once than the receiver can queue are lost.
RAMP = 16
#: First retransmission time-out of the clients, in milliseconds; far above any answer's latency.
RTO = 3
LIMIT = 8_000_000
SECONDS = 600

TCP = TcpConfig(width=64, sessions=CLIENTS, segment_log2=14, rx_buffer=16384)
#: Where in a message, and in its answer, the ID is.
ID_AT = 8


def blocks(count: int = MESSAGES, beats: int = BEATS) -> list[np.ndarray]:
    """Full blocks of a synthetic record in which the golden model finds ``beats``."""
    samples, _, _ = synthesise(30)
    found: list[np.ndarray] = []
    for start in range(0, len(samples) - model.MAX_SAMPLES, 509):
        block = samples[start : start + model.MAX_SAMPLES]
        if len(model.reported(block)) == beats:
            found.append(block)
            if len(found) == count:
                return found
    raise RuntimeError(f"the synthetic record has only {len(found)} blocks of {beats} beats")


def message_file(pieces: list[np.ndarray]) -> bytes:
    """What the load generator reads (``sim/harness/loadgen.cpp``): messages and their answers."""
    parts = []
    for piece in pieces:
        request = data_message(0, piece.astype("<i2").tobytes())
        answer = data_message(0, model.classify_block(piece))
        parts += [struct.pack("<4I", len(request), len(answer), ID_AT, ID_AT), request, answer]
    return b"".join(parts)


def source(tcp: TcpConfig = TCP, pipelines: int = PIPELINES) -> Source:
    plan = Plan.of_roles(f"ecg:pipelines={pipelines},buffers={BUFFERS}")
    return fabric_source(tcp, shell={"plan": plan})


def run(
    binary: Path, messages: bytes, transactions: int = TRANSACTIONS, **options: Any
) -> tuple[int, dict[str, Any]]:
    """Exit code and statistics of the load generator's run; ``options`` are more of its options."""
    arguments = {
        "load": "messages",
        "clients": CLIENTS,
        "transactions": transactions,
        "warmup": WARM_UP,
        "ramp": RAMP,
        "time": f"cycles:{CYCLES_PER_MS}",
        "line-rate": LINE_RATE,
        "rto": RTO,
        "cycles": LIMIT,
        **options,
    }
    with tempfile.NamedTemporaryFile() as file:
        file.write(messages)
        file.flush()
        words = [word for k, v in arguments.items() for word in (f"--{k}", v)]
        return run_batch(binary, [*words, "--messages", file.name], timeout=SECONDS)


def cycles() -> Job:
    """Return the measurement of the cycles of a transaction."""
    top, messages = source(), message_file(blocks())
    return Job((top, messages), lambda: _measure(top, messages))


def _measure(top: Source, messages: bytes) -> Values:
    code, statistics = run(build(top), messages)
    load, counters = statistics["load"], statistics["counters"]
    # A lost frame costs a time-out. When all is measured 64 clients close at once, and more FINs
    # come than the receiver queues: those may be lost and come again.
    late = load["latency_max"] >= RTO * CYCLES_PER_MS or load["fast_retransmissions"]
    if code or not load["complete"] or load["errors"] or load["strays"] or late:
        lost = counters["tcp_rx.overflow"]
        raise RuntimeError(f"the load did not go through (code {code}, {lost} lost): {load}")
    return {"ecg.transaction_cycles": round(load["cycles_per_transaction"], 1)}
