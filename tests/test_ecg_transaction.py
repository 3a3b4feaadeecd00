"""ECG messages of 64 clients at once through the 64-bit shell with two pipelines, no CPU."""

import pytest
from trebuchet.bench import ecg_transaction as bench
from trebuchet.sim.build import build

# Compiling the shell takes minutes, and longer with the four pipelines of the figure.
pytestmark = pytest.mark.nightly

#: Ticks are short, so that clients that wait for one do not cost a second each.
OPTIONS = {"time": "cycles:20000", "warmup": 64, "rto": 40, "drain": 50, "cycles": 6_000_000}


@pytest.fixture(scope="module")
def binary():
    return build(bench.source(pipelines=2))


@pytest.fixture(scope="module")
def messages():
    """Blocks of 12 and of 14 beats."""
    return bench.message_file([*bench.blocks(4), *bench.blocks(4, beats=14)])


def assert_drained(stats):
    """Sessions, segments, descriptors and jobs are all back where they were."""
    counters, initial = stats["counters"], stats["counters_initial"]
    assert counters["tcp.sessions_used"] == 0
    for name in ("segments_free", "descriptors_free"):
        assert counters[f"tcp.{name}"] == initial[f"tcp.{name}"], name
    # A session is released only when its result slots are free and its job is answered.
    assert counters["tcp.service_errors"] == 0


@pytest.mark.parametrize("abort", [0.1, 0])
def test_messages(binary, messages, abort):
    code, stats = bench.run(binary, messages, 200, abort=abort, **OPTIONS)
    load, counters = stats["load"], stats["counters"]
    assert (code, load["complete"], load["errors"], load["active"]) == (0, 1, 0, 0), stats
    assert stats["link_errors"] == 0
    assert (load["aborted"] > 0) == (abort > 0)
    assert counters["ecg.jobs"] == counters["smp.messages"] >= load["ended"]
    assert counters["ecg.errors"] == 0
    assert_drained(stats)
