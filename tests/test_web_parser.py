"""The head parser (``cores/web/parser.py``) against the golden model: verdicts, fields, cycles.

In Amaranth's simulator, with back-pressure; ``test_web_heads.py`` runs many heads in Verilator.
"""

import random

import http_fuzz
import pytest
from head_cases import BOUND, FIELDS, LINES, SMALL, composed, expected, heads_of
from part_sizes import at_sizes
from streams import Simulation, make_rng, plain, seeds, stream_checker, stream_get, stream_put
from trebuchet.cores.web.finder import End as Follows
from trebuchet.cores.web.parser import HeadParser
from trebuchet.models.http import Limits


class Bench:
    """Sends heads to a parser and compares what it reports."""

    def __init__(self, limits):
        self.limits = limits
        self.dut = HeadParser(limits.head, limits.target, limits.path)
        self.simulation = Simulation(self.dut)

    def compare(self, heads, seed=None):
        """``heads``: (bytes, what follows the last one)."""
        dut, rng = self.dut, None if seed is None else make_rng(seed, "put")
        stall = None if seed is None else make_rng(seed, "get")
        paths, taken = [b""], [0]
        cycle = [0]

        async def count(ctx):
            async for _, _, path, new, byte in ctx.tick().sample(
                dut.path, dut.new_path, dut.path_byte
            ):
                cycle[0] += 1
                if path:
                    paths[0] = (b"" if new else paths[0]) + bytes([byte])

        async def put(ctx):
            for data, end in heads:
                for k, byte in enumerate(data):
                    last = k == len(data) - 1
                    payload = {"data": byte, "end": end if last else Follows.MORE}
                    await stream_put(ctx, dut.i, payload, rng=rng, idle=0.1)
                    if k == 0:
                        taken.append(cycle[0])

        async def get(ctx):
            sent = 0
            for data, end in heads:
                sent += 1
                if end is Follows.CUT:
                    continue
                answer = plain(await stream_get(ctx, dut.o, rng=stall))
                answer["path"] = paths[0]
                for name, value in expected(data, end, self.limits).items():
                    assert answer[name] == value, (name, answer[name], value, data)
                if seed is None:
                    assert cycle[0] - taken[sent] <= len(data) + BOUND, data

        count.background = True
        total = sum(len(data) for data, _ in heads)
        limit = 10 * (total + 20 * len(heads)) + 1000
        self.simulation.run(count, put, get, stream_checker(dut.o), limit=limit, seed=seed)


@pytest.fixture(scope="module")
def bench():
    return Bench(SMALL)


@seeds(3)
def test_composed(bench, seed):
    rng = make_rng(seed, "composed")
    bench.compare([heads_of(composed(rng), SMALL) for _ in range(150)], seed)


@seeds(3)
def test_mutated_vectors(bench, seed):
    """Heads as those that the model's differential fuzzing makes of the vectors'."""
    rng = make_rng(seed, "mutated")
    corpus = [data for data in http_fuzz.seeds() if data]
    heads = [heads_of(http_fuzz.mutate(rng, corpus), SMALL) for _ in range(150)]
    bench.compare([(data, end) for data, end in heads if data], seed)


def test_a_byte_a_cycle(bench):
    """Without pauses, each head within its cycles."""
    lines = [line + b"\r\nHost: h\r\n\r\n" for line in LINES[::3]]
    fields = [b"GET / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n" % field for field in FIELDS[::3]]
    bench.compare([heads_of(data, SMALL) for data in lines + fields])


def test_cut_anywhere(bench):
    """The limit of heads cuts a head anywhere, with the right verdict; CUT is forgotten."""
    head = b"\r\nHEAD /a%20?b HTTP/1.1\r\nHost: h\r\n\r\n"
    heads = [(head[:n], Follows.LONG) for n in range(3, len(head))]
    heads += [(head[:n], Follows.CUT) for n in range(1, len(head), 3)]
    random.Random(0).shuffle(heads)
    bench.compare([*heads, heads_of(head, SMALL)], 0)


@at_sizes("web.parser.HeadParser")
def test_limits(size):
    """Targets and paths at and beyond their limits."""
    limits = Limits(**size)
    tail = b" HTTP/1.1\r\nHost: h\r\n\r\n"
    counts = (limits.path - 1, limits.path, limits.target - 1, limits.target)
    heads = [heads_of(b"GET /" + b"a" * n + tail, limits) for n in counts]
    Bench(limits).compare(heads)
