"""The golden HTTP parser against h11 and llhttp, and the fuzzer against planted faults."""

import re

import http_fuzz
import pytest
from http_fuzz import fuzz, judge, llhttp
from trebuchet.models.http import Request, Verdict, grammar

HEADS = 20_000


def test_no_head_is_accepted_that_both_oracles_reject():
    accepted, fault = fuzz(HEADS, 1)
    assert fault is None
    assert accepted > HEADS // 10


@pytest.mark.nightly
@pytest.mark.cpu_limit(3600)
@pytest.mark.parametrize("seed", range(2, 12))
def test_ten_million_heads(seed):
    assert fuzz(1_000_000, seed)[1] is None


def test_the_same_seed_gives_the_same_heads():
    def heads(seed):
        seen = []

        def parse(data):
            seen.append(data)
            return False, None

        fuzz(1000, seed, parse)
        return seen

    assert heads(7) == heads(7) != heads(8)


def test_oracles_agree_on_a_usual_head():
    head = b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
    assert llhttp(head) == http_fuzz.h11_parse(head) == (b"GET", b"/a")
    assert judge(head) == (True, None)


FAULTS = {
    "FIELD": rb"([^:]+):(.*)",
    "CONTENT_LENGTH": rb"[0-9]+",
    "REQUEST_LINE": rb"(.+) (.+) HTTP/([0-9])\.([0-9])",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_lenient_grammar_is_found(name, monkeypatch):
    monkeypatch.setattr(grammar, name, re.compile(FAULTS[name], re.DOTALL))
    assert fuzz(HEADS, 1)[1] is not None


def test_a_wrong_path_is_found(monkeypatch):
    def parse(head):
        return Request(Verdict.OK, path_offset=4, path_length=1)

    monkeypatch.setattr(http_fuzz, "parse_head", parse)
    assert judge(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n") == (True, "the path is another one")
