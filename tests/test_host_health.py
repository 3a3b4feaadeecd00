"""`trebuchet health`: which counters exceed which limits, several boards, boards that are away."""

import json

import pytest
from fake_board import FakeBoard, closed_port
from trebuchet.host import health as health_module
from trebuchet.host.cli import main
from trebuchet.host.health import LEAST, Limits, judge
from trebuchet.models.discovery import Found

SLOT = {"jobs": 5, "errors": 0, "cycles": 9, "hangs": 0}
BURNIN = {"wrong_words": 0, "logic_faults": 0, "multiplier_faults": 0, "ram_faults": 0}


def state(uptime_ms=100_000, restarts=0, memory_test="good", **counters):
    engines = {
        "classifier": {"toe_frames": 60_000, "other_frames": 40_000, "errors": 0, "drops": 0},
        "tcp_rx": {"ip_checksum": 0, "tcp_checksum": 0, "overflow": 0},
        "tcp": {"sessions": 64, "sessions_used": 3, "pool_dry": 0},
        "nic": {"dropped": 0},
        "ecg_0": dict(SLOT),
        "ecg_1": dict(SLOT),
        "burnin": SLOT | BURNIN,
    }
    for name, value in counters.items():
        block, _, counter = name.partition("__")
        engines[block][counter] = value
    return {
        **{"version": "0.2.0", "board": "sim", "uptime_ms": uptime_ms, "start": "power"},
        **{"restarts": restarts, "memory_test": memory_test, "engines": engines},
    }


@pytest.mark.parametrize(
    ("changes", "limits", "said"),
    [
        ({}, {}, []),
        ({"uptime_ms": 5000}, {"uptime": 6}, ["up for 5 s only, started by power"]),
        ({"restarts": 1}, {}, ["restarted 1 times, last by power"]),
        ({"restarts": 1}, {"restarts": 1}, []),
        (
            {"classifier__errors": 11},
            {"damaged": 100},
            ["11 of 100000 frames damaged: 110 a million"],
        ),
        ({"classifier__errors": 11}, {"damaged": 110}, []),
        ({"classifier__errors": LEAST}, {"damaged": 0}, []),
        (
            {"tcp_rx__ip_checksum": 6, "tcp_rx__tcp_checksum": 6},
            {},
            ["12 of 100000 frames with a wrong checksum: 120 a million"],
        ),
        (
            {"classifier__drops": 50, "nic__dropped": 52},
            {},
            ["102 of 100000 frames lost: 1020 a million"],
        ),
        ({"ecg_1__hangs": 2}, {}, ["roles reset 2 times by their watchdog"]),
        ({"tcp__sessions_used": 60}, {}, ["94% of the TCP sessions in use"]),
        ({"memory_test": "none"}, {}, []),
        ({"memory_test": "12 errors"}, {}, ["memory test at start: 12 errors"]),
        (
            {"burnin__wrong_words": 2, "burnin__ram_faults": 1},
            {"faults": 2},
            ["3 faults found by its burn-in role"],
        ),
        ({"burnin__logic_faults": 3}, {"faults": 3}, []),
    ],
)
def test_limits(changes, limits, said):
    found = judge("b", state(**changes), Limits(**limits))
    assert found.exceeded == said
    assert found.good is not bool(said)


def test_events_of_a_time_are_counted_with_wraps():
    before = state(nic__dropped=65_530, ecg_0__hangs=65_535, classifier__errors=(1 << 32) - 1)
    after = state(200_000, nic__dropped=4, ecg_0__hangs=1, classifier__errors=19)
    found = judge("b", after, Limits(), before)
    assert (found.lost, found.role_resets, found.damaged, found.received) == (10, 2, 20, 0)
    assert found.exceeded == [
        "20 of 0 frames damaged: 1000000 a million",
        "roles reset 2 times by their watchdog",
    ]


def test_a_start_in_between_counts_and_clears_the_counters():
    before = state(100_000, restarts=1, classifier__errors=500)
    found = judge("b", state(2_000, restarts=2, classifier__errors=3), Limits(), before)
    assert (found.restarts, found.damaged, found.received) == (1, 3, 100_000)
    assert found.exceeded == ["restarted 1 times, last by power"]


@pytest.mark.parametrize("said", [{}, {"engines": 3}, {"engines": {"tcp": 3, "x": {"y": "z"}}}])
def test_a_status_without_counters(said):
    assert judge("b", said, Limits()).good


class StatusBoard(FakeBoard):
    """A board whose status is one of a list, the last one for ever."""

    def __init__(self, *states):
        super().__init__()
        self.states = list(states)

    def state(self):
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    @property
    def managed(self):
        return f"127.0.0.1:{self.management}"


def run(capsys, *words):
    """Exit code, stdout and stderr of `trebuchet health`."""
    with pytest.raises(SystemExit) as left:
        main(["health", *words])
    out, err = capsys.readouterr()
    return left.value.code or 0, out, err


def test_good_boards(capsys):
    with StatusBoard(state()) as one, StatusBoard(state()) as other:
        code, out, err = run(capsys, one.managed, other.managed, one.managed)
        assert (code, err) == (0, "")
        assert [line.split()[-1] for line in out.splitlines()[1:]] == ["good", "good"]
        rows = [line.split()[1:-1] for line in out.splitlines()[1:]]
        assert rows == [["100", "s", "0", "0", "0", "0", "0", "5%", "good"]] * 2


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({}, "good"),
        ({"memory_test": "none"}, "untested"),
        ({"memory_test": ""}, "-"),
        ({"burnin__multiplier_faults": 1}, "faults"),
    ],
)
def test_the_memory_test_is_shown(capsys, changes, shown):
    with StatusBoard(state(**changes)) as board:
        out = run(capsys, board.managed, "--faults", "1")[1]
        said = json.loads(run(capsys, board.managed, "--json")[1])[0]
    assert out.splitlines()[1].split()[-2:] == [shown, "good"]
    assert said["faults"] == changes.get("burnin__multiplier_faults", 0)
    assert said["temperature_c"] is None  # not measured


def test_bad_boards_and_those_that_are_away_are_named(capsys):
    away = f"127.0.0.1:{closed_port()}"
    with StatusBoard(state()) as good, StatusBoard(state(restarts=2)) as bad:
        code, out, err = run(capsys, good.managed, away, bad.managed)
        assert code == 1
        assert [line.split()[-1] for line in out.splitlines()[1:4]] == ["good", "bad", "bad"]
        assert out.splitlines()[4].startswith(f"cannot connect to {away}: ")
        assert out.splitlines()[5] == f"{bad.managed}: restarted 2 times, last by power"
        assert "`trebuchet sim shell`" in out.splitlines()[6]
        code, out, err = run(capsys, good.managed, bad.managed, away, "--restarts", "2", "--json")
    assert (code, err) == (1, "")
    found = json.loads(out)
    assert [one["good"] for one in found] == [True, True, False]
    assert found[2]["unreachable"].startswith(f"cannot connect to {away}: ")
    assert found[0]["sessions"] == pytest.approx(100 * 3 / 64)


def test_two_looks(capsys):
    with StatusBoard(state(ecg_0__hangs=7), state(100_500, ecg_0__hangs=7)) as board:
        code, out, err = run(capsys, board.managed, "--over", "0.2")
    assert (code, err) == (0, "")


def test_without_names_boards_are_looked_for(capsys, monkeypatch):
    with StatusBoard(state()) as board:
        there = Found(board.managed, "", "sim", "0.2.0", "02:00:00:00:00:02", ("ecg",))
        monkeypatch.setattr(health_module, "discover", lambda: [there])
        assert run(capsys)[0] == 0
    monkeypatch.setattr(health_module, "discover", list)
    assert run(capsys) == (*(1, "", "trebuchet: no board answers a broadcast; name the boards\n"),)


@pytest.mark.parametrize(
    "words", [("--damaged", "nan"), ("--lost", "-1"), ("--sessions", "101"), ("--restarts", "x")]
)
def test_limits_have_bounds(capsys, words):
    assert run(capsys, "x", *words)[0] == 2
