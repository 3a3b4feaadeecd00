"""A flood of SYNs and a mass of random and mutated frames: nobody honest suffers, nothing leaks.

The fabric top is the impatient one of the end-to-end tests: what vanished is given up within
seconds. ``TREBUCHET_HOSTILE=n`` makes the second test n times as long; 50 is a million frames.
"""

import os
import random
import threading
import time

import pytest
from e2e_board import (
    PATIENCE,
    SESSIONS,
    assert_drained,
    fabric_in_simulation,
    impatient_fabric,
    raw_socket,
    stores,
    wait_until,
)
from e2e_clients import ECHO, echo
from e2e_raw import SYN, tcp_frame
from sim_tops import needs_network
from trebuchet.sim.run import run_batch

pytestmark = pytest.mark.slow

SEED = 31
SYNS = 100_000
TIMES = int(os.environ.get("TREBUCHET_HOSTILE", "1"))
#: Attack frames and transactions of one run; ticks to go on after the last of these.
FRAMES, TRANSACTIONS, DRAIN = 20_000, 400, 16_000


class Talk:
    """An echo session that was there before and goes on."""

    def __init__(self, board, number):
        self.connection, self.rng = board.connect(ECHO), random.Random(f"{SEED} {number}")
        self.rounds, self.failure, self.stop = 0, None, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        echo(self.connection, b"here")
        self.thread.start()

    def _run(self):
        try:
            while not self.stop.is_set():
                echo(self.connection, self.rng.randbytes(self.rng.randint(1, 2000)))
                self.rounds += 1
        except BaseException as error:
            self.failure = error

    def end(self):
        self.stop.set()
        self.thread.join(30 * PATIENCE)
        assert self.failure is None, self.failure
        assert not self.thread.is_alive(), "an established session hangs"
        self.connection.close()


def flood(board, count):
    """So many SYNs, each from an address and port of its own."""
    rng = random.Random(SEED)
    # A few hundred frames are enough to begin with: address and port are patched in, and the
    # checksums with them, since building each would take longer than simulating it.
    with raw_socket(board) as wire:
        sent = 0
        while sent < count:
            arrived = board.counters()["tcp_rx.segments"]
            for _ in range(min(500, count - sent)):
                source = f"198.{rng.randint(18, 19)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"
                port = rng.randint(1024, 65535)
                frame = tcp_frame(source, board.ip, port, ECHO, SYN, seq=rng.getrandbits(32))
                wire.send(frame)
                sent += 1
            # The queue of the TAP device holds 1,000 frames; what does not fit would be no flood.
            wait_until(
                lambda before=arrived: board.counters()["tcp_rx.segments"] >= before + 400,
                30,
                "the flood is stuck",
            )


@needs_network
def test_flood_of_a_hundred_thousand_syns():
    """Sessions that are there go on all the time; new ones are served as soon as it is over."""
    with fabric_in_simulation("--seed", str(SEED), impatient=True) as board:
        fresh = board.counters()
        talks = [Talk(board, number) for number in range(4)]
        before, rounds = board.counters(), [talk.rounds for talk in talks]
        flood(board, SYNS)
        after = board.counters()
        assert all(talk.rounds > least for talk, least in zip(talks, rounds, strict=True))
        assert after["tcp.syn_rx"] - before["tcp.syn_rx"] >= 0.9 * SYNS
        assert after["tcp.refused_half_open"] > before["tcp.refused_half_open"]
        assert after["tcp.half_open"] < SESSIONS
        began = time.monotonic()
        with board.connect(ECHO, timeout=20 * PATIENCE) as new:
            echo(new, b"a new one")
        print(f"new session {time.monotonic() - began:.1f} s after the flood")
        for talk in talks:
            talk.end()
        assert_drained(board.counters, fresh)


@pytest.mark.parametrize("part", range(TIMES))
def test_random_and_mutated_frames(part):
    """Two frames of attackers for each of an honest client; then all stores are as at the start."""
    options = ["--load", "hostile", "--port", ECHO, "--time", "cycles:120", "--clients", 8]
    options += ["--transactions", TRANSACTIONS, "--min-bytes", 1, "--max-bytes", 3000]
    options += ["--attack", 400, "--drain", DRAIN, "--rto", 400, "--loss", "1%"]
    options += ["--seed", SEED + part, "--cycles", 80_000_000]
    code, stats = run_batch(impatient_fabric(), options, timeout=900 * PATIENCE)
    load = stats["load"]
    assert code == 0, load
    assert load["complete"] == 1
    attacks = {kind: count for kind, count in load["attacks"].items() if kind != "vanished"}
    print(f"{sum(attacks.values())} frames in {stats['cycles']} cycles: {attacks}")
    assert sum(attacks.values()) >= FRAMES
    assert stores(stats["counters"]) == stores(stats["counters_initial"])
    assert stats["counters"]["tcp.idle"] == 1
