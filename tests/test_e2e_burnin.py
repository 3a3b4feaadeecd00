"""`trebuchet burnin` on the whole simulated board: good, planted faults, a bad link."""

import json
import sys

import pytest
from e2e_board import board_in_simulation, quiet_counters, status_counters
from patience import PATIENCE
from sim_tops import needs_network
from trebuchet.host.health import LEAST
from trebuchet.models.plan import Plan

pytestmark = [pytest.mark.slow, needs_network]

PLAN = Plan.of_roles("burnin")
LANES = 4
TREBUCHET = [sys.executable, "-m", "trebuchet.host.cli"]
#: Registers of the role's slot, by the name under which `trebuchet burnin` reports them.
REGISTERS = {
    "data": "wrong_words",
    "logic": "logic_faults",
    "multiplier": "multiplier_faults",
    "ram": "ram_faults",
}


@pytest.fixture(scope="module")
def board():
    with board_in_simulation("--seed", "35", plan=PLAN) as board:
        yield board


def burnin(board, *options):
    """Return the exit code, the report and stderr of `trebuchet burnin`."""
    words = (*TREBUCHET, "burnin", board.ip, "--json", *map(str, options))
    done = board.run(words, 200 * PATIENCE)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def faults_of(counters):
    return {name: counters[f"burnin.{register}"] for name, register in REGISTERS.items()}


def test_a_good_board(board):
    """Each message is answered; all digests are those of the golden model."""
    before = quiet_counters(board)
    code, said, err = burnin(board, "--messages", 30, "--connections", 3, "--cycles", 3000)
    assert (code, err, said["good"]) == (0, "", True)
    assert (said["messages"], said["lanes"], said["steps"]) == (30, LANES, 30 * 3000)
    assert said["bytes"] == 30 * 2 * 8192
    assert not any(said["faults"].values())
    assert (said["health"]["damaged"], said["health"]["exceeded"]) == (0, [])
    assert (said["health"]["memory_test"], said["health"]["faults"]) == ("none", 0)
    after = status_counters(board)
    assert after["burnin.jobs"] - before["burnin.jobs"] == 30
    assert faults_of(after) == faults_of(before)


@pytest.mark.parametrize("fault", sorted(REGISTERS))
def test_a_planted_fault_is_reported(board, fault):
    """A fault in one message of eight is found in that one, and is in the role's registers."""
    before = faults_of(status_counters(board))
    code, said, err = burnin(board, "--messages", 8, "--cycles", 1500, "--inject", fault)
    assert (code, said["good"], said["messages"]) == (1, False, 8)
    count = said["faults"].pop(fault)
    assert count > 0
    assert not any(said["faults"].values())
    assert err == f"trebuchet: {board.ip} is not in order: {count} {fault}\n"
    after = faults_of(status_counters(board))
    assert after == before | {fault: before[fault] + count}
    done = board.run((*TREBUCHET, "health", board.ip), 100 * PATIENCE)
    assert done.returncode == 1
    assert f"{sum(after.values())} faults found by its burn-in role" in done.stdout


def test_a_bad_link_is_reported():
    """TCP repairs what the link damages, so patterns are right; damaged frames are counted.

    The simulated link carries no FCS, so checksums are what finds the damage.
    """
    with board_in_simulation("--seed", "36", "--corrupt", "15%", plan=PLAN) as board:
        code, said, err = burnin(board, "--messages", 16, "--cycles", 500)
    assert (code, said["good"], said["messages"]) == (1, False, 16)
    assert not any(said["faults"].values())
    wrong, received = said["health"]["checksums"], said["health"]["received"]
    assert wrong > LEAST
    share = round(1e6 * wrong / received)
    line = f"{wrong} of {received} frames with a wrong checksum: {share} a million"
    assert " ".join(err.split()) == f"trebuchet: {board.ip} is not in order: {line}"
