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

A run with a wrong byte, a connection that ended otherwise, or a lost frame counts for nothing.

:mod:`.web_dated` has the figures whose measurement takes longer, :mod:`.web_area` the area.
"""

import functools
import random
from typing import Any

from ..cores.tcp.config import TcpConfig
from ..models.http.response import Object
from ..sim.build import Source, build
from ..sim.web_load import Store, request, run_web, web_load_source
from .job import Job, Values
from .tcp import CLIENTS, CYCLES_PER_MS, LIMIT, RTO, TIME_WAIT

__all__ = ["CSR", "KILO", "SMALL", "cycles_of", "latency", "rates", "run_checked", "service_source"]
__all__ += ["store"]

#: Sessions in block RAM, and at work for the service at a time.
SMALL = TcpConfig(sessions=1024, width=64, segments=256, rx_buffer=32768)
KILO, SMALL_OBJECT, LARGE = 1024, 64, 4_000_000
PIPELINE = 4
#: Registers, by block.
CSR = {"csr_tcp": {"time_wait": TIME_WAIT}}


@functools.cache
def service_source(config: TcpConfig) -> Source:
    """Return the service behind an engine."""
    return web_load_source(config, csr=CSR)


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


def run_checked(
    source: Source, objects: Store, may_lose: bool = False, **options: Any
) -> dict[str, Any]:
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


def cycles_of(source: Source, objects: Store, **options: Any) -> float:
    """Return cycles of a request, from a run of :func:`run_checked`."""
    return round(run_checked(source, objects, **options)["load"]["cycles_per_request"], 1)


def rates() -> Job:
    """Return the measurement of what a request costs on connections that stay open."""
    source = service_source(SMALL)

    def measure() -> Values:
        kilo, small, large = store(KILO), store(SMALL_OBJECT), store(LARGE, 1)
        load = run_checked(source, large, clients=1, transactions=4, warmup=2, window=65535)["load"]
        many = {"transactions": 2000, "warmup": 400}
        return {
            "web.keepalive_1k_cycles": cycles_of(source, kilo, **many),
            "web.keepalive_64_cycles": cycles_of(source, small, **many),
            "web.keepalive_64_pipelined_cycles": cycles_of(
                source, small, pipeline=PIPELINE, **many
            ),
            "web.large_share": round(load["delivered"] * 8 / SMALL.width / load["cycles"], 3),
        }

    return Job((source,), measure)


def latency() -> Job:
    """Return the measurement of a hit's latency."""
    source = service_source(SMALL)

    def measure() -> Values:
        objects = store(SMALL_OBJECT)
        asked = [objects.exchange(request(path, fields=b"")) for path in objects.objects]
        run = run_checked(source, objects, exchanges=asked, clients=1, transactions=200, warmup=10)
        return {"web.hit_latency_cycles": run["latency_max"]}

    return Job((source,), measure)
