"""The head parser in Verilator against the golden model, on many heads; the fuzzer finds faults."""

import head_cases
import pytest
from head_cases import FIELDS, LINES, SMALL, compiled, differences, fuzz, heads_of, vectors
from streams import make_rng, seeds
from trebuchet.cores.web.finder import End as Follows
from trebuchet.models.http import LIMITS, Request, Verdict
from trebuchet.sim.heads import HeadFault, parse_heads

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small():
    return compiled(SMALL)


@pytest.fixture(scope="module")
def default():
    return compiled(LIMITS)


def compare(binary, heads, limits, seed=1, stall=0.0):
    """Fail at the first difference."""
    reports = parse_heads(binary, heads, seed=seed, stall=stall)
    assert next(differences(reports, heads, limits, stall == 0), None) is None
    return reports


def test_every_line_and_field(small):
    """Each line and field alone, in both versions, beside a Host and content, and twice."""
    heads = [line + b"\r\nHost: h\r\n\r\n" for line in LINES]
    heads += [line + b"\r\nHost: h\r\nContent-Length: 5\r\n\r\n" for line in LINES]
    heads += [b"GET / HTTP/1.%d\r\n%s\r\n\r\n" % (k, f) for f in FIELDS for k in (0, 1)]
    pairs = [(a, b) for a in FIELDS for b in FIELDS]
    heads += [b"GET / HTTP/1.1\r\nHost: h\r\n%s\r\n%s\r\n\r\n" % pair for pair in pairs]
    reports = compare(small, [heads_of(data, SMALL) for data in heads], SMALL)
    seen = {report.verdict for report in reports}
    assert seen == set(range(Verdict.OPTIONS + 1)) - {Verdict.FIELDS_TOO_LARGE}


def test_every_vector(default):
    """All heads of the vectors, at the default limits, with those of the longest ones."""
    tail = b" HTTP/1.1\r\nHost: h\r\n\r\n"
    fill = b"GET / HTTP/1.1\r\nHost: h\r\nA: "
    heads = [*vectors(), b"GET /" + b"a" * 13_000 + tail]
    heads += [b"GET /" + b"a" * n + tail for n in (94, 95, 96, 7_998, 7_999, 8_000)]
    heads += [fill + b"b" * (n - len(fill) - 4) + b"\r\n\r\n" for n in (12_287, 12_288, 12_289)]
    reports = compare(default, [heads_of(data) for data in heads], LIMITS)
    assert sum(report is not None for report in reports) > 200


@seeds(2)
def test_vectors_cut_at_every_byte(small, seed):
    """By the limit of heads, and by bytes that have not come; with pauses."""
    heads = [(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", Follows.HEAD)]
    for data in vectors():
        data, end = heads_of(data, SMALL)
        last = len(data) - (end is Follows.HEAD)
        cuts = [(data[:n], Follows.LONG) for n in range(3, last + 1)]
        heads += [*cuts, (data, end), (data[: len(data) // 2 + 1], Follows.CUT)]
    heads = [(data, end) for data, end in heads if not (end is Follows.LONG and broken(data))]
    make_rng(seed, "order").shuffle(heads)
    compare(small, heads, SMALL, seed=seed, stall=0.2)


def broken(data):
    """Whether a head that is cut ends before the cut: the finder would not let it go on."""
    return heads_of(data, SMALL)[1] is not Follows.CUT


@pytest.mark.parametrize("limits", [SMALL, LIMITS], ids=["small", "default"])
def test_mutated_and_composed(limits):
    accepted, fault = fuzz(20_000, 1, limits)
    assert fault is None
    assert accepted > 2_000


@pytest.mark.nightly
@pytest.mark.cpu_limit(3600)
@pytest.mark.parametrize("seed", range(2, 12))
def test_ten_million_heads(small, seed):
    assert fuzz(1_000_000, seed, binary=small)[1] is None


def test_a_difference_is_found(small, monkeypatch):
    """A model that knows fewer methods, or another path, differs."""

    def parse(head, limits):
        return Request(Verdict.OK, path_offset=4, path_length=1)

    monkeypatch.setattr(head_cases, "parse_head", parse)
    assert "the model's" in fuzz(200, 1, binary=small)[1]


def test_a_slow_verdict_is_found(small, monkeypatch):
    monkeypatch.setattr(head_cases, "BOUND", 2)
    assert "cycles for" in fuzz(200, 1, binary=small)[1]


def test_a_head_without_an_end_is_a_fault(small):
    heads = [(b"GET", Follows.MORE)]
    with pytest.raises(HeadFault, match="seed 1: head 0, cycle [0-9]+: no verdict"):
        parse_heads(small, heads)
