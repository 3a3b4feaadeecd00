"""`trebuchet measure` against boards, model nodes and the job server; wrong input is one line."""

import csv
import json

import pytest
from fake_board import HOST, FakeBoard, closed_port
from jobd_bench import Nodes, serving
from trebuchet.host import cli


def measure(capsys, *words, code=0):
    """Run `trebuchet measure --json`; return the result, or what the one line of an error says."""
    assert cli.run(["measure", *map(str, words)]) == code
    printed = capsys.readouterr()
    if code:
        assert printed.out == ""
        return printed.err
    return json.loads(printed.out)


def short(*words):
    return (*words, "--json", "--seconds", 0.05)


def test_sizes_up_to_the_largest_that_a_board_takes(capsys, tmp_path):
    table = tmp_path / "new" / "table.csv"
    with FakeBoard(segment=4096) as board:
        found = measure(
            capsys,
            *short("transfer", board.address, "--sizes", "64:64M", "--csv", table),
            "--management",
            board.management,
        )
    sizes = [row["size"] for row in found["runs"]]
    assert sizes == [64, 256, 1024, 4096]  # 4,096 with header and ID is too much
    assert found["runs"][-1]["refused"] == {"TOO_LARGE": 1}
    for row in found["runs"][:-1]:
        assert row["sent_bytes"] == row["received_bytes"] == row["transfers"] * row["size"] > 0
        assert row["in_flight"] == 2
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["size"]) for row in rows] == sizes
    assert float(rows[0]["latency_us.p50"]) > 0


def test_a_role_by_its_name(capsys):
    def shout(ident, data):
        return 0, data.upper()

    with FakeBoard({"echo": lambda ident, data: (0, data), "shout": shout}) as board:
        words = ("--role", "shout", "--management", board.management)
        found = measure(capsys, *short("latency", board.address, *words, "--sizes", 16))
        assert {row["client"] for row in found["runs"]} == {"blocking", "polling"}
        line = measure(capsys, "latency", board.address, "--role", "fly", *words[2:], code=1)
    assert line == f"trebuchet: {board.address} has no role 'fly'; its roles are: echo, shout\n"


def test_times_in_the_role_of_a_model_node(capsys):
    """Jobs of 1 ms: 50,000 cycles at 50 MHz."""
    nodes = Nodes(1, "--cycles", 50_000)
    try:
        port = nodes.ports[0]
        words = ("--management", port, "--clock-hz", 50e6, "--client", "blocking")
        found = measure(capsys, *short("latency", f"{HOST}:{port}", *words, "--sizes", 64))
        made = measure(
            capsys,
            *short("transfer", f"{HOST}:{port}", "--traffic", "generate", "--sizes", "64,5000"),
        )
    finally:
        nodes.stop()
    row = found["runs"][0]
    assert row["role_cycles"] == 50_000
    assert row["role_us"] == 1000
    assert row["latency_us"]["min"] >= 1000
    mean = row["latency_us"]["mean"]
    assert row["queue_us"] == pytest.approx(mean - 1000 - row["wire_us"], abs=1)
    for row, size in zip(made["runs"], (64, 5000), strict=True):
        assert row["received_bytes"] == size * row["transfers"]
        assert row["sent_bytes"] == 16 * row["transfers"]


def test_a_job_server(capsys, tmp_path):
    plot = tmp_path / "plot.svg"
    with serving(boards=2) as server:
        server.wait_for_nodes(2)
        place = f"{HOST}:{server.user_port}"
        line = measure(capsys, *short("latency", place), code=1)
        assert "answered STOPPED: a job server takes a configuration first; add --cycles 0" in line
        metrics = ("--metrics", f"{HOST}:{server.metrics_port}", "--cycles", 5000)
        fair = measure(
            capsys, *short("fairness", place, "--connections", "1,8", *metrics, "--plot", plot)
        )
        words = ("--rates", "200", "--size", 64, *metrics, "--seed", 3, "--seconds", 0.3)
        found = measure(capsys, "load", place, "--json", *words)
    assert plot.read_text().startswith("<?xml")
    one, eight = fair["runs"]
    assert (len(one["shares"]), len(eight["shares"])) == (1, 8)
    assert one["jain"] == 1
    assert 0 < eight["jain"] <= 1
    assert eight["role_us"] >= 100  # at 50 MHz
    row = found["runs"][0]
    assert row["rate"] == 200
    assert row["transfers"] + row["unanswered"] == round(row["offered_per_s"] * 0.3)
    assert row["latency_us"]["min"] >= 100


def test_a_table_without_json(capsys):
    with FakeBoard() as board:
        words = ("--management", board.management, "--sizes", 64, "--seconds", 0.05)
        assert cli.run(["measure", "transfer", board.address, *map(str, words)]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["bytes", "conns", "client"]
    assert row.split()[:3] == ["64", "1", "blocking"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("transfer", "a:b:c"), "the board must be HOST or HOST:PORT, not 'a:b:c'"),
        (("transfer", HOST, "--sizes", "7x"), "a size must be 1 to 64M bytes"),
        (("transfer", HOST, "--sizes", "64M:64"), "sizes must rise, not '64M:64'"),
        (("load", HOST, "--size", "1,2"), "--size must be a single size, not '1,2'"),
        (("load", HOST, "--rates", "0"), "rates must be above 0 to 1e6 transfers a second"),
        (("fairness", HOST, "--connections", "0"), "connections must be 1 to 512"),
        (("transfer", HOST, "--traffic", "echo", "--role", "ecg"), "echo traffic has none"),
        (("transfer", HOST, "--traffic", "page", "--cycles", 1), "page traffic reaches no role"),
        (("transfer", HOST, "--plot", "a.bmp"), "the picture must be a .png, .svg or .pdf file"),
        (("transfer", HOST, "--csv", "."), "cannot write the table .: it is a folder"),
        (("transfer", HOST, "--metrics", "a:b"), "HOST or HOST:PORT, not 'a:b'"),
    ],
)
def test_wrong_input_is_one_line(words, line, capsys):
    said = measure(capsys, *words, code=1)
    assert line in said
    assert said.startswith("trebuchet: ")
    assert said.count("\n") == 1


def test_nobody_there_is_one_line(capsys):
    place = f"{HOST}:{closed_port()}"
    said = measure(capsys, "latency", place, code=1)
    line = f"trebuchet: cannot connect to {place} for role traffic: Connection refused; `trebuchet"
    assert said.startswith(line)
    assert said.count("\n") == 1
