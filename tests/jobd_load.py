"""Users who load a job server while a fault is injected, and what must be true afterwards."""

import contextlib
import json
import os
import random
import threading
import time
import urllib.request
from collections import Counter

import pytest
from jobd_bench import PATIENCE, eventually
from trebuchet.client import smp
from trebuchet.models.status import Status

__all__ = ["REPETITIONS", "SIZES", "Load", "Resources", "sessions"]

#: Bytes of operands: small ones, such as are spliced, and such as need several pipes.
SIZES = (16, 3000, 40_000, 300_000, 1_200_000)


def _seeds():
    override = os.environ.get("TREBUCHET_SEED")
    if override is not None:
        return [int(override)]
    return [0, 1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 20))]


#: Each fault is injected so often, at another moment each time; all but two by night.
REPETITIONS = pytest.mark.parametrize("seed", _seeds())


class Load:
    """Users in threads of their own; each sends jobs, and checks that each is answered once.

    Results must be the operands: the role is loopback. ``ABORTED`` is the only other answer.

    Parameters
    ----------
    server : JobServer
        It needs no configuration.
    rng : random.Random
        For sizes and bytes of the jobs, and for the moments of faults.
    users, jobs, outstanding : int
        Users, jobs of each, and how many of them a user has in flight.
    sizes : sequence of int
        Bytes of operands.

    Attributes
    ----------
    counts : Counter
        Jobs by ``"data"`` or ``"ABORTED"``, once :meth:`finish` has returned.
    times : list of (float, float)
        When each job was sent and answered, by :func:`time.monotonic`.
    """

    def __init__(self, server, rng, *, users=4, jobs=40, outstanding=6, sizes=SIZES):
        self.server, self.rng = server, rng
        self.total, self.outstanding, self.sizes = users * jobs, outstanding, sizes
        self.counts, self.times = Counter(), []
        self._answered, self._failures = 0, []
        self._changed = threading.Condition()
        seeds = [rng.getrandbits(64) for _ in range(users)]
        self._threads = [
            threading.Thread(target=self._guarded, args=(seed, jobs), daemon=True) for seed in seeds
        ]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.finish()

    def _guarded(self, seed, jobs):
        try:
            self._work(random.Random(seed), jobs)
        except BaseException as error:
            self._failures.append(error)
        with self._changed:
            self._changed.notify_all()

    def _work(self, rng, jobs):
        left, waiting = list(range(1, jobs + 1)), {}
        with self.server.user() as user:
            while left or waiting:
                while left and len(waiting) < self.outstanding:
                    ident = left.pop()
                    data = rng.randbytes(rng.choice(self.sizes))
                    waiting[ident] = data, time.monotonic()
                    user.send(smp.data_message(ident, data))
                ((ident, answer),) = user.results(1).items()
                assert ident in waiting, f"job {ident} was answered twice, or never sent"
                self._record(answer, *waiting.pop(ident))

    def _record(self, answer, data, sent):
        if isinstance(answer, bytes):
            assert answer == data, "a result is not its operand"
        else:
            assert answer == Status.ABORTED, answer
        with self._changed:
            self.counts["data" if isinstance(answer, bytes) else answer.name] += 1
            self.times.append((sent, time.monotonic()))
            self._answered += 1
            self._changed.notify_all()

    def moment(self, share=1.0):
        """Wait for a random moment of the load's first part; return the number of answers then."""
        chosen = self.rng.randrange(max(1, int(share * self.total)))
        with self._changed:
            reached = self._changed.wait_for(
                lambda: self._answered >= chosen or self._failures, PATIENCE
            )
        self._raise()
        assert reached, f"{self._answered} of {self.total} jobs were answered in {PATIENCE} s"
        return chosen

    def finish(self):
        """Wait until all jobs are answered; return the counts."""
        for thread in self._threads:
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), f"{self._answered} of {self.total} jobs were answered"
        self._raise()
        assert sum(self.counts.values()) == self.total
        return self.counts

    def _raise(self):
        if self._failures:
            raise self._failures[0]


class Resources:
    """What a job server holds while nothing is to be done; :meth:`check` compares with that.

    Pipes are kept for the next messages, so descriptors are compared without theirs.
    """

    #: Pipes that a thread keeps (``jobd/src/pipes.cpp``).
    KEPT = 64

    def __init__(self, server, threads=1):
        self.server, self.threads = server, threads
        self.before = self._read()

    def _read(self):
        values = self.server.idle()
        return values["open_descriptors"] - 2 * values["pipes"], self.server.nodes_connected()

    def check(self, load=None):
        """All jobs are accounted for, and descriptors, pipes, nodes are what they were."""
        seen = []

        def restored():
            seen[:] = self._read()
            return tuple(seen) == self.before

        try:
            eventually(restored, "descriptors and nodes are what they were")
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.before} before, {seen} now") from None
        values = self.server.idle()
        assert values["pipes"] <= self.KEPT * self.threads
        if load is not None:
            assert values["jobs_received_total"] >= load.total
            assert values["jobs_aborted_total"] >= load.counts["ABORTED"]
            assert values["jobs_abandoned_total"] == values["jobs_refused_total"] == 0
        return values


def sessions(ports):
    """Connections that each model node has, that of this question not among them."""
    found = []
    for port in ports:
        with contextlib.closing(
            urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=PATIENCE)
        ) as answer:
            found.append(json.load(answer)["sessions"] - 1)
    return found
