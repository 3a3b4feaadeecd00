"""Many LTL engines in Verilator: long runs on hostile links, incast, dead boards."""

import pytest
from trebuchet.cores.cluster.contract import CALLS, REPLIES, ltl_config
from trebuchet.models.ltl_repeat import share
from trebuchet.sim.ltl import Flow, build_ltl, run_ltl

pytestmark = pytest.mark.slow

HOSTILE = {"loss": 0.01, "duplicate": 0.01, "reorder": 0.01, "corrupt": 0.01}


@pytest.fixture(scope="module")
def binary():
    return build_ltl()


@pytest.mark.parametrize("messages", [10_000, pytest.param(1_000_000, marks=pytest.mark.nightly)])
def test_messages_in_order_exactly_once(binary, messages):
    """Both ways over 40 connections and both channels; the harness checks every message.

    It also fails unless the unacknowledged-frame store of both boards is empty in the end.
    """
    each = messages // 40
    flows = [Flow(k % 2, 1 - k % 2, each, vc=k // 2 % 2, low=1, high=40) for k in range(40)]
    run = run_ltl(binary, flows=flows, seed=5, credit=8, registers={"rto": 40}, **HOSTILE)
    assert sum(run.delivered) == messages
    assert not run.failures
    for reason in ("lost", "duplicated", "reordered", "corrupted"):
        assert run.switch[reason] > messages // 100
    for board in run.counters:
        assert board["messages_delivered"] == messages // 2
        assert board["messages_acked"] == messages // 2
        assert board["stored"] == 0
        assert min(board[c] for c in ("corrupt", "duplicates", "out_of_order", "timeouts")) > 0


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_messages_of_all_lengths_with_stalling_roles(binary, seed):
    flows = [Flow(k % 2, 1 - k % 2, 400, vc=k // 2, low=1, high=1448) for k in range(4)]
    run = run_ltl(binary, flows=flows, seed=seed, stall=0.4, latency=200, **HOSTILE)
    assert run.delivered == [400] * 4
    assert not run.failures


@pytest.fixture(scope="module")
def cluster():
    """Boards of a cluster of four: 32 bits, and no more room than their windows need."""
    return build_ltl(ltl_config(32, 3))


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_a_cluster_on_hostile_links(cluster, seed):
    ways = [(0, 1), (0, 2), (0, 3), (1, 0)]
    flows = [Flow(a, b, 300, vc=v, high=1016) for a, b in ways for v in (CALLS, REPLIES)]
    run = run_ltl(
        cluster,
        boards=4,
        flows=flows,
        seed=seed,
        stall=0.3,
        latency=200,
        registers={"rto": 40},
        **HOSTILE,
    )
    assert run.delivered == [300] * len(flows)
    assert not run.failures
    assert [board["stored"] for board in run.counters] == [0] * 4
    assert sum(board["no_room"] for board in run.counters) == 0, "credit is more than the buffer"


def test_calls_to_a_silent_board_hold_up_no_replies(cluster):
    """Its window is full, and so is what waits behind; the other channel has its own slots."""
    replies = [Flow(0, b, 300, vc=REPLIES, low=900, high=1016) for b in (2, 3)]
    alone = run_ltl(cluster, boards=4, flows=replies)
    run = run_ltl(
        cluster,
        boards=4,
        flows=[Flow(0, 1, 1 << 20, vc=CALLS, low=900, high=1016), *replies],
        dead=(1, 20_000),
        registers={"rto": 50, "tick_cycles": 60, "retries": 200},
        stop=2 * alone.cycles,
    )
    assert run.delivered[1:] == [300, 300]
    # Its four messages go out again and again, but the line has time for more.
    assert max(run.finished[1:]) < 1.6 * alone.cycles


def test_incast_with_rate_control_is_fair_and_loses_nothing(binary):
    """Eight boards to one over a switch with marking and PFC, every one with an endless backlog."""
    flows = [Flow(k, 8, 1 << 30, low=1400, high=1400) for k in range(8)]
    registers = {
        "rate_control": 1,
        "pfc": 1,
        "rto": 2000,
        "cnp_interval": 20,
        "alpha_ticks": 22,
        "rate_ticks": 24,
        "rate_additive": 131,
        "rate_hyper": 650,
        "rate_gain": 6,
        "rate_beats": 1 << 23,
    }
    run = run_ltl(
        binary,
        boards=9,
        flows=flows,
        registers=registers,
        queue=120_000,
        mark=(8_000, 40_000, 0.2),
        pause=(10_000, 6_000),
        stop=400_000,
        warm=100_000,
    )
    rates = [octets / 300_000 / 8 for octets in run.octets]
    print("rates", [round(r, 4) for r in rates], "sum", round(sum(rates), 3), run.switch)
    fairness = sum(rates) ** 2 / (8 * sum(r * r for r in rates))
    assert run.switch["overflow"] == 0
    assert run.switch["marked"] > 0
    assert sum(board["cnps"] for board in run.counters) > 50
    assert sum(board["frames_resent"] for board in run.counters) == 0
    assert fairness >= 0.95
    assert sum(rates) >= 0.7


@pytest.mark.parametrize("obeyed", [True, False])
def test_pauses_alone_keep_the_queue_from_overflowing(binary, obeyed):
    """Without rate control: eight boards fill the queue; it overflows only if PFC is not obeyed."""
    flows = [Flow(k, 8, 1 << 30, low=1400, high=1400) for k in range(8)]
    run = run_ltl(
        binary,
        boards=9,
        flows=flows,
        registers={"pfc": int(obeyed), "rto": 2000},
        queue=80_000,
        pause=(4_000, 2_000),
        stop=50_000,
        credit=8,
    )
    assert run.switch["pfc"] > 0
    assert (run.switch["overflow"] == 0) == obeyed
    if obeyed:
        assert sum(board["frames_resent"] for board in run.counters) == 0


def test_a_dead_board_is_reported_in_time_and_others_go_on(binary):
    flows = [Flow(0, 1, 1 << 20), Flow(0, 2, 3000)]
    rto, tick, retries = 50, 156, 3
    died = 30_000
    run = run_ltl(
        binary,
        boards=3,
        flows=flows,
        dead=(1, died),
        registers={"rto": rto, "tick_cycles": tick, "retries": retries},
    )
    assert run.delivered[1] == 3000
    [(board, index, cycle)] = run.failures
    assert (board, index) == (0, 0)
    whole = (retries + 1) * rto * tick
    assert whole - 200 <= cycle - died <= whole + 40 * 64 + tick
    assert run.counters[0]["stored"] == 0


def test_go_back_is_enough_at_the_round_trips_that_we_have():
    """The reason for go-back-N (docs/network.md): six frames' round trip, 1 % and 0.1 % loss."""
    assert share(False, 0.01, 6, 12, 20_000) >= 0.90
    assert share(False, 0.001, 6, 12, 20_000) >= 0.98
