"""The data-centre model: sums by hand where nothing is random, and its rules where it is."""

import json
import subprocess
import sys

import pytest
import simpy
from trebuchet.host.scale import parse_parameters, scale
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.ledger import Ledger
from trebuchet.models.scale.network import Network, Port, round_trips
from trebuchet.models.scale.parameters import TIERS, Parameters, Shell, calibrate
from trebuchet.models.scale.summary import summary

MEASURED = Shell(150, 10, {"ltl.rtt_cycles": "assumed", "bridge.latency_cycles": "measured"})
#: A network without chance: no other traffic, cables and switches of one kind.
QUIET = Parameters(
    host_load=0,
    pod_load=0,
    spine_load=0,
    tor_latency=(500, 500),
    pod_latency=(900, 900),
    spine_latency=(3000, 3000),
    host_cable=(2, 2),
    pod_cable=(40, 40),
    spine_cable=(200, 200),
)


def test_reach():
    assert Parameters().reach() == {"L0": 24, "L1": 960, "L2": 250_560}


def test_without_other_traffic_it_is_a_sum():
    """Frames of 128 and 64 bytes at 40 Gb/s: 29.6 and 16.8 ns; a TOR waits for 64 bytes."""
    trips = round_trips(QUIET, MEASURED, probes=3, pairs=2)
    boards = (150 + 40) * 6.4 + 2 * 250
    host, pod, spine = 2 * 5, 40 * 5, 200 * 5
    forth, back = 29.6, 16.8  # whole frames; the ACK is all header
    want = {
        "L0": boards + 4 * host + 2 * 500 + 2 * 16.8 + forth + back,
        "L1": boards + 4 * (host + pod) + 2 * (2 * 500 + 900) + 4 * 16.8 + 2 * (forth + back),
        "L2": boards
        + 4 * (host + pod + spine)
        + 2 * (2 * 500 + 2 * 900 + 3000)
        + 4 * 16.8
        + 4 * (forth + back),
    }
    for tier in TIERS:
        for trip in (t for pair in trips[tier] for t in pair):
            assert trip * 1e3 == pytest.approx(want[tier]), tier


def test_a_seed_is_a_run_and_load_makes_it_slower():
    few = {"probes": 40, "pairs": 3}
    first, second = (round_trips(Parameters(), MEASURED, **few) for _ in range(2))
    assert first == second
    assert first != round_trips(Parameters(), MEASURED, seed=2, **few)
    quiet = summary(QUIET, MEASURED, round_trips(QUIET, MEASURED, **few))["tiers"]
    busy = parse_parameters(["spine_load=0.9", "pod_load=0.9", "host_load=0.9", "own_class=0.2"])
    loaded = summary(busy, MEASURED, round_trips(busy, MEASURED, **few))["tiers"]
    for tier in TIERS:
        assert quiet[tier]["min"] == quiet[tier]["max"]
        assert loaded[tier]["p99"] > loaded[tier]["median"]
    assert quiet["L0"]["average"] < quiet["L1"]["average"] < quiet["L2"]["average"]
    assert loaded["L1"]["average"] > quiet["L1"]["average"]


def test_the_high_class_waits_for_one_low_frame_at_most():
    env = simpy.Environment()
    port = Port(env, None, Parameters(), 0, 0)
    port.low = 10 * port.frame  # ten low frames from 0 on
    for at, wait in ((0.25, 0.75), (3.5, 0.5)):
        env.run(until=at * port.frame)
        assert port.send(1.0) == pytest.approx(wait * port.frame, abs=2)
    # Two high ones in a row: the second waits for the first only.
    env.run(until=20 * port.frame)
    assert port.send(100.0) == 0
    assert port.send(100.0) == pytest.approx(100)


def test_offered_load_is_carried():
    """Over a long time others keep the port busy for the share that was asked for."""
    import random

    env = simpy.Environment()
    p = Parameters(own_class=0)
    port = Port(env, random.Random(1), p, 0.4, 0)
    busy = total = 0
    for _ in range(40_000):
        env.run(until=env.now + 97)
        busy += port.low > env.now
        total += 1
    assert busy / total == pytest.approx(0.4, abs=0.06)


def test_paths_have_the_hops_of_their_tier():
    network = Network(simpy.Environment(), Parameters(), 1)
    for tier, target, switches in (
        ("L0", (0, 0, 1), ["tor"]),
        ("L1", (0, 3, 1), ["tor", "pod", "tor"]),
        ("L2", (7, 3, 1), ["tor", "pod", "spine", "pod", "tor"]),
    ):
        hops = network.path(tier, (0, 0, 0), target)
        assert [h.switch for h in hops] == [*switches, None]
        assert hops == network.path(tier, (0, 0, 0), target), "a flow keeps its way"


def ledger(folder, rows):
    if isinstance(rows, str):
        (folder / "ltl.json").write_text(rows)
        return folder
    for name, row in rows.items():
        Ledger(folder).record(name.partition(".")[0], name, "key", **row)
    return folder


def test_calibration(tmp_path):
    rows = {"bridge.latency_cycles": {"value": 11}}
    shell = calibrate(ledger(tmp_path, rows))
    assert (shell.rtt_cycles, shell.origin["ltl.rtt_cycles"]) == (150, "assumed")
    assert (shell.bridge_cycles, shell.origin["bridge.latency_cycles"]) == (11, "measured")
    rows["ltl.rtt_cycles"] = {"value": 93}
    shell = calibrate(ledger(tmp_path, rows))
    assert (shell.rtt_cycles, shell.origin["ltl.rtt_cycles"]) == (93, "measured")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("{", "ltl.json: it is not JSON: "),
        ({}, "has no bridge.latency_cycles; measure it: trebuchet bench bridge"),
        ({"ltl.rtt_cycles": {"value": "x"}}, "ltl.rtt_cycles in .* must be a positive number"),
    ],
)
def test_bad_ledgers(tmp_path, rows, message):
    with pytest.raises(TrebuchetError, match=message):
        calibrate(ledger(tmp_path, rows))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pods", "a parameter must be NAME=VALUE with NAME one of hosts_per_tor, .*, not 'pods'"),
        ("podz=3", "a parameter must be NAME=VALUE .*, not 'podz=3'"),
        ("pods=x", "parameter pods must be int, not 'x'"),
        ("tor_latency=x", "parameter tor_latency must be LOW:HIGH, not 'x'"),
        ("tor_latency=9:3", r"tor_latency must be a range from 0 on, not \(9.0, 3.0\)"),
        ("pod_load=1", "pod_load must be at least 0 and below 1, not 1.0"),
        ("link_rate=0", "link_rate must be greater than 0, not 0.0"),
        ("link_rate=inf", r"link_rate must be at most 1e\+06, not inf"),
        ("link_rate=nan", "link_rate must be greater than 0, not nan"),
        ("tor_latency=1:inf", r"tor_latency must be a range up to 1e\+06, not \(1.0, inf\)"),
        ("pods=1", "pods must be at least 2, not 1"),
        ("tors_per_pod=1", "tors_per_pod must be at least 2, not 1"),
        ("hosts_per_tor=1", "hosts_per_tor must be at least 2, not 1"),
        ("burst_frames=1e-9", "burst_frames must be at least 1, not 1e-09"),
        ("burst_frames=nan", "burst_frames must be at least 1, not nan"),
        (f"pods=1{400 * '0'}", r"pods must be at most 1e\+06, not 1000"),
    ],
)
def test_bad_parameters(text, message):
    with pytest.raises(TrebuchetError, match=message):
        parse_parameters([text])


@pytest.mark.parametrize("size", [2, 3])
def test_the_smallest_networks(size):
    p = Parameters(hosts_per_tor=size, tors_per_pod=size, pods=size)
    trips = round_trips(p, MEASURED, probes=2, pairs=2)
    assert [[len(pair) for pair in trips[tier]] for tier in TIERS] == [[2, 2]] * 3


def test_a_picture_that_cannot_be_is_known_before_the_run(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(TrebuchetError, match="^cannot write .*file: Not a directory;"):
        scale(plot=file / "x.png")


def test_a_picture_goes_into_a_new_folder(tmp_path):
    scale(probes=2, pairs=1, plot=tmp_path / "new" / "x.svg", as_json=True)
    assert (tmp_path / "new" / "x.svg").stat().st_size


def test_the_command(tmp_path):
    picture = tmp_path / "scale.png"
    command = [sys.executable, "-m", "trebuchet.host.cli", "scale", "--json"]
    command += ["--probes", "20", "--pairs", "2"]
    done = subprocess.run([*command, "--plot", picture], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    for tier, average in (("L0", 2.88), ("L1", 7.72), ("L2", 18.71)):
        figures = result["tiers"][tier]
        assert figures["paper"]["average"] == average
        assert figures["min"] <= figures["median"] <= figures["p99_9"] <= figures["max"]
        assert len(figures["pair_averages"]) == 2
    assert picture.read_bytes().startswith(b"\x89PNG")
    bad = subprocess.run([*command, "--plot", "x.txt"], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "the picture must be a .png, .svg or .pdf file, not 'x.txt'" in bad.stderr
