"""`trebuchet burnin` against boards made of the golden model: a good one, and wrong ones."""

import json

import pytest
from fake_board import HOST, FakeBoard
from trebuchet.host import burnin as client
from trebuchet.host.cli import main
from trebuchet.models import burnin
from trebuchet.models.status import Status

LANES = 2


def golden(ident, data):
    return burnin.result(data, 1 << 16, LANES)


def board(role=golden):
    return FakeBoard({"burnin": role})


def run(capsys, port, *options):
    with pytest.raises(SystemExit) as end:
        main(["burnin", HOST, "--port", str(port), "--cycles", "40", "--bytes", "64", *options])
    return end.value.code, *capsys.readouterr()


@pytest.fixture(autouse=True)
def no_status(monkeypatch):
    """The stand-in has no status page at port 80."""
    monkeypatch.setattr(client, "_status", lambda address, timeout: None)


def test_a_good_board(capsys):
    with board() as peer:
        code, out, err = run(capsys, peer.port, "--messages", "11", "--json")
    assert (code, err) == (0, "")
    said = json.loads(out)
    assert (said["messages"], said["lanes"], said["steps"]) == (11, LANES, 440)
    assert said["bytes"] == 11 * 128
    assert said["good"]
    assert not any(said["faults"].values())
    assert len(peer.jobs) == 11
    assert peer.connections == 2


@pytest.mark.parametrize(
    ("name", "count"), [("data", 1), ("logic", 600), ("multiplier", 1), ("ram", 1)]
)
def test_a_planted_fault_is_found(capsys, name, count):
    with board() as peer:
        code, out, err = run(capsys, peer.port, "--cycles", "600", "--inject", name, "--json")
    faults = json.loads(out)["faults"]
    assert (code, faults.pop(name)) == (1, count)
    assert not any(faults.values())
    assert err == f"trebuchet: {HOST} is not in order: {count} {name}\n"


def test_a_table(capsys):
    with board() as peer:
        code, out, _ = run(capsys, peer.port)
    assert code == 0
    for line in ("messages", "64 in", "lanes", "logic       good", "no status page"):
        assert line in out


def _pattern(result):
    result[-1] ^= 1


def _digest(result):
    result[28] ^= 1


def _cycles(result):
    result[12] ^= 1


@pytest.mark.parametrize(
    ("change", "found"), [(_pattern, "results"), (_digest, "digests"), (_cycles, "results")]
)
def test_a_wrong_answer_is_counted(capsys, change, found):
    numbers = iter(range(1000))

    def role(ident, data):
        status, result = golden(ident, data)
        changed = bytearray(result)
        if next(numbers) == 5:
            change(changed)
        return status, bytes(changed)

    with board(role) as peer:
        code, out, err = run(capsys, peer.port, "--json", "--messages", "12")
    assert code == 1
    assert json.loads(out)["faults"][found] == 1
    assert err == f"trebuchet: {HOST} is not in order: 1 {found}\n"


def test_long_runs_are_compared_with_their_first_answer(capsys, monkeypatch):
    monkeypatch.setattr(client, "MODELLED", 10)
    seen = []

    def role(ident, data):
        status, result = golden(ident, data)
        changed = bytearray(result)
        seen.append(data[:4])
        if seen.count(data[:4]) == 2 and data[0] == 1:
            changed[28] ^= 1
        return status, bytes(changed)

    with board(role) as peer:
        _, out, _ = run(capsys, peer.port, "--messages", "12", "--connections", "1", "--json")
    assert json.loads(out)["faults"]["digests"] == 1


def test_time_ends_it(capsys):
    with board() as peer:
        code, out, _ = run(capsys, peer.port, "--minutes", "0.01", "--json")
    said = json.loads(out)
    assert code == 0
    assert said["messages"] > 0
    assert said["seconds"] >= 0.6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--bytes", "20"), "must be a multiple of 16, not 20"),
        (("--inject", "dsp"), "must be one of data, logic, multiplier, ram, not 'dsp'"),
        (("--inject", "data", "--bytes", "0"), "'data' needs --bytes above 0"),
        (("--cycles", "99999999"), "less than or equal to 16777215"),
        (("--minutes", "nan"), "--minutes"),
    ],
)
def test_wrong_options(capsys, options, said):
    code, out, err = run(capsys, 9, *options)
    assert (code, out) == (2, "")
    assert said in " ".join(err.split())


@pytest.mark.parametrize(
    ("role", "said"),
    [
        (lambda ident, data: (Status.OK, data), "bytes, not 96: is its role burnin?"),
        (lambda ident, data: (Status.OK, bytes(96)), "must begin with .*: is its role burnin?"),
        (lambda ident, data: (Status.NO_ROOM, b""), "NO_ROOM"),
    ],
)
def test_another_role(capsys, role, said):
    with board(role) as peer:
        code, out, err = run(capsys, peer.port)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert said.split(".*")[0] in err
