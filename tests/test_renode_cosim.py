"""Firmware in Renode, gateware in Verilator: the ECG transaction end to end."""

import json
import sys

import pytest
from sim_tops import needs_network
from trebuchet.models.renode import find_renode
from trebuchet.sim.renode.cosim.run import CosimulatedBoard

pytestmark = [
    pytest.mark.slow,
    needs_network,
    pytest.mark.skipif(
        find_renode() is None, reason="Renode is not here; trebuchet doctor says how to get it"
    ),
]


def trebuchet(board, *arguments):
    command = [sys.executable, "-m", "trebuchet.host.cli", *arguments]
    done = board.run(command, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("library", [True, False], ids=["library", "socket"])
def test_transaction(library):
    with CosimulatedBoard(library) as cosimulated:
        seconds = cosimulated.start()
        print(f"ready after {seconds:.2f} s of wall time")
        board = cosimulated.board
        run = trebuchet(
            board, "ecg", "run", board.ip, "--record", "synthetic", "--minutes", "0.5", "--json"
        )
        # What the golden model says, byte by byte.
        assert run["differing_messages"] == 0
        # The status page is the firmware's: interrupt, request and answer cross the bus.
        status = trebuchet(board, "status", board.ip, "--json", "--timeout", "60")
        assert status["engines"]["ecg"]["jobs"] > 0
        assert status["engines"]["mailbox"]["requests"] >= 1
