"""A flood of SYNs and a mass of random and mutated frames: nobody honest suffers, nothing leaks.

The fabric top is the impatient one of the end-to-end tests: what vanished is given up within
seconds. In the nightly tier there are up to 100,000 SYNs, and a million frames.
"""

import random
import threading

import pytest
from e2e_board import (
    SESSIONS,
    assert_drained,
    fabric_in_simulation,
    impatient_fabric,
    raw_socket,
    stores,
)
from e2e_clients import ECHO, echo
from e2e_raw import SYN, tcp_frame
from patience import PATIENCE, Patience, join
from sim_tops import needs_network
from trebuchet.sim.run import run_batch

pytestmark = pytest.mark.slow

SEED = 31
#: SYNs of the shortest flood, and how many of them at once.
SYNS, BURST = 1_200, 400
#: Attack frames and transactions of one run, an eighth of them by day; ticks after the last of
#: these, for the last of the vanished peers to be given up (``retries`` time-outs, each doubled).
FRAMES, TRANSACTIONS, DRAIN = 8_000, 400, 40_000
#: Runs that send a million frames.
MILLION = 1_000_000 // FRAMES


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
        join(self.thread, 30, "an established session")
        assert self.failure is None, self.failure
        self.connection.close()


class Newcomers:
    """New connections, one after the other, each with an answer, until it is over."""

    def __init__(self, board):
        self.board, self.served, self.failure, self.over = board, 0, None, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            while not self.over.is_set():
                with self.board.connect(ECHO, timeout=60 * PATIENCE) as new:
                    echo(new, b"new %d" % self.served)
                self.served += 1
        except BaseException as error:
            self.failure = error

    def end(self):
        self.over.set()
        join(self.thread, 60, "a new session")
        assert self.failure is None, self.failure


def flood(board, count):
    """SYNs, each from an address and port of its own, until the engine has seen so many.

    As many at once as the TAP device's queue takes beside what others send: a flood of the engine,
    not of the kernel's queue.
    """
    rng = random.Random(SEED)
    seen = start = board.counters()["tcp.syn_rx"]
    patience = Patience(max(60, count // 300))
    with raw_socket(board) as wire:
        while seen - start < count:
            assert not patience.over(), f"the engine has seen {seen - start} SYNs only"
            for _ in range(BURST):
                source = f"198.{rng.randint(18, 19)}.{rng.randint(0, 255)}.{rng.randint(1, 254)}"
                port = rng.randint(1024, 65535)
                wire.send(tcp_frame(source, board.ip, port, ECHO, SYN, seq=rng.getrandbits(32)))
            before, end = seen, board.deadline(1)
            while seen - before < 0.8 * BURST and end.left():
                seen = board.counters()["tcp.syn_rx"]


@needs_network
@pytest.mark.parametrize(
    "count", [SYNS, *(pytest.param(n, marks=pytest.mark.nightly) for n in (20_000, 100_000))]
)
def test_flood_of_syns(count):
    """Sessions that are there go on, and new ones are served while it lasts (RFC 4987, 3.6)."""
    with fabric_in_simulation("--seed", str(SEED), impatient=True) as board:
        fresh = board.counters()
        talks = [Talk(board, number) for number in range(4)]
        before, rounds = board.counters(), [talk.rounds for talk in talks]
        newcomers = Newcomers(board)
        flood(board, count)
        after = board.counters()
        newcomers.end()
        assert all(talk.rounds > least for talk, least in zip(talks, rounds, strict=True))
        assert after["tcp.refused_half_open"] == before["tcp.refused_half_open"]
        assert after["tcp.half_open"] < SESSIONS
        assert newcomers.served >= 5
        assert after["tcp.cookies_taken"] > 0
        print(f"{newcomers.served} new sessions, {after['tcp.cookies_taken']} of cookies")
        for talk in talks:
            talk.end()
        assert_drained(board.counters, fresh)


@pytest.mark.parametrize(
    ("part", "share"),
    [
        (0, 8),
        *(pytest.param(n, 1, marks=pytest.mark.nightly) for n in range(MILLION)),
    ],
)
def test_random_and_mutated_frames(part, share):
    """Five frames of attackers for each of an honest client; all stores are as before, after."""
    options = ["--load", "hostile", "--port", ECHO, "--time", "cycles:120", "--clients", 8]
    options += ["--transactions", TRANSACTIONS // share, "--min-bytes", 1, "--max-bytes", 3000]
    options += ["--attack", 500, "--drain", DRAIN, "--rto", 400, "--loss", "1%"]
    options += ["--seed", SEED + part, "--cycles", 80_000_000]
    code, stats = run_batch(impatient_fabric(), options, timeout=900 * PATIENCE)
    load = stats["load"]
    assert code == 0, load
    assert load["complete"] == 1
    attacks = {kind: count for kind, count in load["attacks"].items() if kind != "vanished"}
    print(f"{sum(attacks.values())} frames in {stats['cycles']} cycles: {attacks}")
    assert sum(attacks.values()) >= FRAMES // share
    assert stores(stats["counters"]) == stores(stats["counters_initial"])
    assert stats["counters"]["tcp.idle"] == 1
