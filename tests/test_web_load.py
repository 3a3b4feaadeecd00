"""The web service under load, from the harness's clients (``sim/web_load.py``)."""

import dataclasses
import random

import pytest
from trebuchet.bench.tcp import left_over
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.http.response import Object
from trebuchet.sim.build import build
from trebuchet.sim.web_load import COLD, Store, request, run_web, web_load_source

# Compiling the top takes half a minute.
pytestmark = pytest.mark.slow

CONFIG = TcpConfig(
    sessions=512, width=64, segments=64, places=16, segment_log2=14, rx_buffer=32768, time_wait=1
)
SIZES = (0, 1, 64, 1024, 1461, 5000)
COMMON = {"time": "cycles:1000", "cycles": 20_000_000, "rto": 1000}
#: Cycles of a firmware and a drive that are quicker than any, so that there are many misses.
MISSES = {"turn": 100, "prepare": 1000, "latency": 100, "period": 2}
#: Ticks; as long as the timer wheel, which ends TIME-WAIT.
DRAIN = 160


@pytest.fixture(scope="module")
def binary():
    return build(web_load_source(CONFIG, pressure_log2=12, misses=MISSES))


@pytest.fixture(scope="module")
def store():
    rng = random.Random(3)
    return Store(
        {b"/%d" % size: Object(rng.randbytes(size), b"text/plain", size) for size in SIZES}
    )


@pytest.mark.parametrize(
    "options",
    [{}, {"pipeline": 4}, {"each": True}, {"idle": 6, "idle_port": 80}],
    ids=["keep-alive", "pipelined", "each", "idle"],
)
def test_every_byte_comes_and_nothing_leaks(binary, store, options):
    exchanges = store.exchanges(options.get("each", False))
    load = {"clients": 8, "transactions": 200, "warmup": 20, "drain": DRAIN}
    run = run_web(binary, store, exchanges, **COMMON, **load, **options)
    assert run["load"]["requests"] >= 200
    assert run["load"]["errors"] == 0
    assert run["counters"]["web.found"] == run["counters"]["web.requests"]
    assert left_over(CONFIG, run["counters"]) == 0
    if "idle" in options:
        assert run["load"]["crowd"]["over"] == 6


def test_a_wrong_byte_is_noticed(binary, store):
    asked, answer = store.exchange(request(b"/1024"))
    wrong = answer[:-1] + bytes([answer[-1] ^ 1])
    with pytest.raises(TrebuchetError, match="the web load failed"):
        run_web(binary, store, [(asked, wrong)], **COMMON, clients=2, transactions=10)


def test_latency_is_that_of_a_single_client(binary, store):
    exchanges = [store.exchange(request(b"/64"))]
    run = run_web(binary, store, exchanges, **COMMON, clients=1, transactions=20)
    # Memory and engine take more than 200 cycles, a request less than its share of the run.
    assert 200 < run["latency_min"] <= run["latency_max"] < run["load"]["cycles_per_request"] + 50


def test_requests_that_never_end_do_not_keep_others_out(binary, store):
    """There are four times as many as places."""
    load = {"clients": 4, "transactions": 100, "warmup": 10, "drain": DRAIN}
    run = run_web(binary, store, store.exchanges(), **COMMON, **load, slow=64, slow_gap=500)
    slow = run["load"]["slow"]
    assert slow["over"] == 64
    assert slow["late"] == run["counters"]["web.timeouts"] > 0
    assert left_over(CONFIG, run["counters"]) == 0


def test_incomplete_requests_leave_others_their_places(binary, store):
    """More than there are places come in a run, again and again, each with a byte or two."""
    load = {"clients": 2, "transactions": 300, "warmup": 20, "drain": DRAIN}
    slow = {"slow": 200, "slow_gap": 2100, "slow_connect": 600, "slow_before": 8}
    alone = run_web(binary, store, store.exchanges(), **COMMON, **load)
    run = run_web(binary, store, store.exchanges(), **COMMON, **load, **slow)
    assert run["load"]["slow"]["late"] == run["counters"]["web.timeouts"] > CONFIG.places
    assert run["load"]["retransmissions"] == 0
    assert left_over(CONFIG, run["counters"]) == 0
    share = alone["load"]["cycles_per_request"] / run["load"]["cycles_per_request"]
    assert share > 0.9


def test_hits_do_not_wait_for_misses(binary, store):
    """Each miss is answered, after a load; hits lose what the misses' answers take of the link."""
    load = {"clients": 8, "transactions": 1000, "warmup": 50, "drain": DRAIN}
    alone = run_web(binary, store, store.exchanges(), **COMMON, **load)
    run = run_web(binary, store, store.exchanges(), **COMMON, **load, missing=8)
    counters, misses = run["counters"], run["load"]["misses"]
    assert misses >= 10
    assert counters["web.by_firmware"] + counters["web.found"] == counters["web.requests"]
    assert left_over(CONFIG, counters) == 0
    share = alone["load"]["cycles_per_request"] / run["load"]["cycles_per_request"]
    path = misses * len(COLD.content) / (run["load"]["cycles"] * CONFIG.width // 8)
    assert 1 - path - 0.05 < share < 1


def test_a_pool_that_covers_the_image():
    with pytest.raises(ValueError, match="Pool and sessions' state"):
        web_load_source(
            dataclasses.replace(CONFIG, sessions=1024, segments=1024, segment_log2=17, cache=64)
        )
