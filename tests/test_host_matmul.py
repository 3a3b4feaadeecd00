"""`trebuchet matmul run` against a stand-in for a board: a good one, and wrong ones."""

import json

import pytest
from test_ecg_host import board
from trebuchet.client import smp
from trebuchet.host import matmul as client
from trebuchet.host.cli import app
from trebuchet.models import matmul
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.status import Status
from typer.testing import CliRunner

HOST = "127.0.0.1"


def golden(message):
    ident, operand = smp.parse_data(message.payload)
    return [smp.data_message(ident, matmul.result(operand))]


def run(port, *options):
    return CliRunner().invoke(app, ["matmul", "run", HOST, "--port", str(port), *options])


def test_every_product_is_checked():
    told = []
    with board(golden) as (port, seen):
        found = client.run_pairs(HOST, port, 7, seed=3, pairs=3, progress=told.append)
    assert (found.products, found.exact, len(found.latencies)) == (7, 7, 3)
    assert told == [3, 6, 7]
    assert [len(m.payload) - 4 for m in seen] == [matmul.pair_bytes() * n for n in (3, 3, 1)]
    found.require_exact()
    assert 0 < min(found.latencies) <= found.seconds
    assert found.gops == pytest.approx(7 * 2 * 64**3 / found.seconds / 1e9)


def test_the_seed_says_which_matrices():
    def sent(seed):
        with board(golden) as (port, seen):
            client.run_pairs(HOST, port, 2, seed)
            return [message.payload for message in seen]

    assert sent(1) == sent(1) != sent(2)


def test_two_messages_are_under_way():
    held = []

    def answer(message):
        held.append(message)
        if len(held) % 2:
            return []
        return [golden(m)[0] for m in held[:-3:-1]]  # in the other order

    with board(answer) as (port, _):
        assert client.run_pairs(HOST, port, 4, seed=1).exact == 4


def test_table_and_json():
    with board(golden) as (port, _):
        table = run(port, "--count", "2")
        printed = run(port, "--count", "4", "--pairs", "2", "--json")
    assert table.exit_code == printed.exit_code == 0, table.output + printed.output
    assert "2 of 2" in table.output
    assert "GOPS" in table.output
    report = json.loads(printed.stdout)
    assert (report["products"], report["exact"], report["messages"]) == (4, 4, 2)
    assert report["latency"]["min"] <= report["latency"]["median"] <= report["latency"]["max"]
    assert report["gops"] > 0


@pytest.mark.parametrize("where", [0, 4096 * 4 + 5, -1])
def test_a_wrong_product_is_counted(where):
    def answer(message):
        ident, result = smp.parse_data(golden(message)[0].payload)
        data = bytearray(result)
        if ident == 2:
            data[where] ^= 1
        return [smp.data_message(ident, bytes(data))]

    with board(answer) as (port, _):
        result = run(port, "--count", "6", "--pairs", "2", "--json")
    assert json.loads(result.stdout)["exact"] == 5
    assert isinstance(result.exception, TrebuchetError)
    assert str(result.exception).startswith("1 of 6 products of the board differ")


def shorter(message):
    ident, result = smp.parse_data(golden(message)[0].payload)
    return [smp.data_message(ident, result[:-4])]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            lambda message: [smp.response_message(Status.BAD_LENGTH, 1)],
            "refused message 1: BAD_LENGTH: ",
        ),
        (lambda message: [smp.response_message(Status.TOO_LARGE, 0)], "TOO_LARGE: the payload is "),
        (lambda message: [smp.data_message(9, b"")], "answered message 9, which is not under way"),
        (shorter, "sent a result of 16380 bytes, not 16384"),
        (lambda message: None, "closed the connection with 1 message unanswered"),
    ],
)
def test_wrong_boards_are_one_line(answer, says):
    with board(answer) as (port, _):
        result = run(port, "--count", "1")
    assert isinstance(result.exception, TrebuchetError)
    assert says in str(result.exception)
    assert "\n" not in str(result.exception)


def test_a_result_has_the_length_that_its_message_asked_for():
    """Not that of another message, of which the last one of three pairs by two is shorter."""

    def as_long_as_two(message):
        ident, result = smp.parse_data(golden(message)[0].payload)
        return [smp.data_message(ident, result.ljust(2 * matmul.result_bytes(), b"x"))]

    with board(as_long_as_two) as (port, _):
        result = run(port, "--count", "3", "--pairs", "2")
    assert isinstance(result.exception, TrebuchetError)
    assert str(result.exception).endswith("sent a result of 32768 bytes, not 16384")


def test_nobody_is_there():
    with board(golden) as (port, _):
        pass
    result = run(port)
    assert str(result.exception).startswith(f"cannot connect to {HOST}:{port}: ")


@pytest.mark.parametrize(
    "options", [["--count", "0"], ["--pairs", "0"], ["--pairs", "32"], ["--seed", "x"]]
)
def test_wrong_options_are_wrong_usage(options):
    assert run(1, *options).exit_code == 2
