"""A simulated board's trace core, over a link with loss: docs/tutorials/probe.md is true."""

import itertools
import json
import re
import sys

import pytest
from e2e_board import know_address
from patience import PATIENCE
from sim_tops import needs_network
from trebuchet.models.plan import load_plan
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source
from trebuchet.sim.wave_names import signals

pytestmark = [pytest.mark.slow, needs_network]

TREBUCHET = [sys.executable, "-m", "trebuchet.host.cli"]
LOSSY = ("--loss", "5%", "--seed", "3")
EXAMPLE = "examples/find_retransmission.py"


@pytest.fixture(scope="module")
def plan(root, tmp_path_factory):
    """The tutorial's."""
    text = (root / "docs" / "tutorials" / "probe.md").read_text()
    file = tmp_path_factory.mktemp("plan") / "retransmission.toml"
    file.write_text(text.partition("```toml\n")[2].partition("```")[0])
    return load_plan(file)


@pytest.fixture(scope="module")
def probes(plan):
    return list(plan.probes.signals), plan.probes.depth


@pytest.fixture(scope="module")
def board(plan):
    made = source("board", plan)
    with Board(build(made), LOSSY, cwd=made.folder, ready="ready") as board:
        know_address(board)
        yield board


def probe(board, *words, seconds=120):
    return board.run([*TREBUCHET, "probe", board.ip, *map(str, words)], seconds * PATIENCE)


def test_the_board_lists_its_probes(board, probes):
    names, depth = probes
    done = probe(board, "--list", "--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert [entry["name"] for entry in listed["probes"]] == names
    assert listed["depth"] == depth


def test_the_example_finds_a_retransmission(board, root):
    done = board.run([sys.executable, root / EXAMPLE, board.ip], 300 * PATIENCE)
    assert done.returncode == 0, done.stderr
    first, second = (
        (int(line.partition(":")[0].removeprefix("cycle ")), dict(re.findall(r"(\w+) (\d+)", line)))
        for line in done.stdout.splitlines()
    )
    # The register counts while the segment is offered; the first transmission was long before.
    assert first[0] < -100
    assert second[0] >= -2
    assert first[1]["local_port"] == second[1]["local_port"] == "7"
    assert first[1]["remote_port"] == second[1]["remote_port"]
    ahead = (int(second[1]["seq"]) - int(first[1]["seq"])) % (1 << 32)
    assert ahead < int(first[1]["length"])
    assert int(second[1]["length"]) > 0


def test_a_capture_becomes_waves(board, probes, tmp_path):
    """Triggered by the command's own connection; the same as JSON and as a file."""
    pytest.importorskip("pylibfst")
    waves = tmp_path / "w.fst"
    words = ("--trigger", "tx_segment.valid:rise", "--transfers", "tcp.tx_segment", "-o", waves)
    done = probe(board, *words, "--before", "8", "--wait", 60, "--anyway", "--json", seconds=300)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["trigger"] is not None
    assert said["transfers"][0]["cycle"] >= said["changes"][0]["cycle"]
    assert any(at["values"]["local_port"] == 80 for at in said["transfers"])
    named = {signal.path for signal in signals(waves)}
    assert named == {f"trebuchet.{name}" for name in (*probes[0], "cycle", "trigger")}
    for end in (".gtkw", ".sucl"):
        text = waves.with_suffix(end).read_text()
        assert all(f"trebuchet.{name}" in text for name in probes[0])


def test_wrong_input_is_refused(board, probes):
    depth = probes[1]
    for words, said in (
        (["--trigger", "tcp.csr.retransmit:change"], "there is no probe 'tcp.csr.retransmit', did"),
        (["--before", depth], f"keeps {depth} records, so those before the trigger must be 0 to"),
        (["--trigger", "seq=1", "--wait", 1], "the trigger was not met within 1 s; wait longer"),
    ):
        done = probe(board, *words)
        assert (done.returncode, done.stdout) == (1, ""), words
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def json_of(board, *words, code=0):
    done = board.run([*TREBUCHET, *map(str, words)], 120 * PATIENCE)
    assert done.returncode == code, done.stderr
    return done.stdout


def test_the_board_is_watched(board):
    """Growth of counters a second, by the command's own frames; none of what is 0."""
    words = ("status", board.ip, "--watch", "0.5", "--count", "3", "--nonzero", "--json")
    lines = [json.loads(line) for line in json_of(board, *words).splitlines()]
    assert len(lines) == 3
    assert lines[0]["rates"] == {}
    for before, now in itertools.pairwise(lines):
        seconds = (now["uptime_ms"] - before["uptime_ms"]) / 1000
        grown = now["engines"]["tcp_rx"]["segments"] - before["engines"]["tcp_rx"]["segments"]
        assert grown > 0
        assert now["rates"]["engines.tcp_rx.segments"] == pytest.approx(grown / seconds)
    counters = [value for block in lines[-1]["engines"].values() for value in block.values()]
    assert counters
    assert 0 not in counters


def test_the_boards_health(board):
    """A link that loses frames corrupts none: the board is well, until a limit is out of reach."""
    (found,) = json.loads(json_of(board, "health", board.ip, "--over", "1", "--json"))
    assert found["good"]
    assert found["received"] > 0
    assert found["uptime_s"] > 1
    (found,) = json.loads(json_of(board, "health", board.ip, "--uptime", 1e6, "--json", code=1))
    assert found["exceeded"] == [f"up for {found['uptime_s']:.0f} s only, started by power"]
