"""`trebuchet discover` and the library's search, against boards on the loopback network."""

import contextlib
import json
import socket
import threading
import time

import pytest
from trebuchet.client import discover as searching
from trebuchet.client.discover import discover, networks
from trebuchet.host.cli import main
from trebuchet.models.discovery import REQUEST, parse_answer
from trebuchet.models.errors import TrebuchetError

#: Where a request to all stations of the loopback network goes.
ALL, NETWORK = "127.255.255.255", "127.0.0.0/8"
ANSWER = {
    "trebuchet": 1,
    "version": "0.2.0",
    "board": "ecpix5",
    "name": "",
    "mac": "02:00:00:00:00:02",
    "roles": ["ecg_0", "blur"],
}


def said(**fields):
    return json.dumps(ANSWER | fields).encode()


@pytest.fixture
def port(monkeypatch):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    monkeypatch.setattr(searching, "PORT", number)
    return number


@contextlib.contextmanager
def answering(port, *boards, delay=0.0, own=None):
    """Boards, each an address and what it answers to each request; ``own``: another port."""
    asked = []

    def serve(listening, sending, answers):
        while True:
            data, whom = listening.recvfrom(2048)
            if data == b"end":
                return
            asked.append(data)
            time.sleep(delay)
            for answer in answers:
                sending.sendto(answer, whom)

    with contextlib.ExitStack() as stack:
        threads = []
        for address, *answers in boards:
            made = [
                stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                for _ in range(2)
            ]
            for each in made:
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made[0].bind((ALL, port))
            made[1].bind((address, own if own is not None else port))
            threads.append(threading.Thread(target=serve, args=(*made, answers), daemon=True))
            threads[-1].start()
        yield asked
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ending:
            ending.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            ending.sendto(b"end", (ALL, port))
        for thread in threads:
            thread.join(10)
            assert not thread.is_alive()


def run(capsys, *words):
    """Exit code, stdout and stderr of `trebuchet discover` on the loopback network."""
    with pytest.raises(SystemExit) as left:
        main(["discover", "--network", NETWORK, "--wait", "0.5", *words])
    out, err = capsys.readouterr()
    return left.value.code or 0, out, err


def test_boards_are_listed_by_address(capsys, port):
    boards = (
        ("127.0.0.10", said(mac="02:00:00:00:00:0a", name="box-1", roles=[])),
        ("127.0.0.2", said()),
    )
    with answering(port, *boards) as asked:
        code, out, err = run(capsys)
        assert (code, err) == (0, "")
        rows = [line.split() for line in out.splitlines()]
        assert rows[1] == [
            *("127.0.0.2", "-", "ecpix5", "0.2.0", "ecg,", "blur"),
            "02:00:00:00:00:02",
        ]
        assert rows[2][:2] == ["127.0.0.10", "box-1"]
        assert set(asked) == {REQUEST}
        found = json.loads(run(capsys, "--json")[1])
    assert [board["address"] for board in found] == ["127.0.0.2", "127.0.0.10"]
    assert found[0]["roles"] == ["ecg", "blur"]


def test_addresses_that_several_have_are_named(capsys, port):
    twice = said(), said(mac="02:00:00:00:00:03")
    boards = ("127.0.0.2", *twice), ("127.0.0.4", said())
    with answering(port, *boards):
        code, out, err = run(capsys)
    assert code == 0
    assert len(out.splitlines()) == 4
    first, second = err.splitlines()
    assert first.startswith(
        "trebuchet: several boards have the address 127.0.0.2: "
        "02:00:00:00:00:02, 02:00:00:00:00:03; "
    )
    assert second.startswith(
        "trebuchet: several boards have the MAC address 02:00:00:00:00:02: 127.0.0.2, 127.0.0.4; "
    )


def test_nobody_answers(capsys, port):
    code, out, err = run(capsys, "--json")
    assert (code, out) == (1, "[]\n")
    assert err.startswith("trebuchet: no board answered on 127.0.0.0/8 within 0.5 s; is it up, on")


def test_a_late_board_prolongs_the_search(port):
    with answering(port, ("127.0.0.2", said()), delay=0.4):
        assert len(discover(network=NETWORK, wait=0.8)) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 2000,
        b"{}",
        said(trebuchet=2),
        said(roles=3),
        said(roles=[3]),
        said(mac=5),
        said(name="\x1b[2J"),
        said(name="x" * 65),
        said()[:-1],
    ],
)
def test_what_no_board_answers_is_dropped(answer):
    assert parse_answer(answer, "127.0.0.2") is None


def test_answers_from_another_port_are_dropped(port):
    with answering(port, ("127.0.0.2", said()), own=0):
        assert discover(network=NETWORK, wait=0.4) == []


def test_a_single_board_is_asked(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as board:
        board.bind(("127.0.0.9", port))
        board.settimeout(10)

        def answer():
            board.sendto(said(), board.recvfrom(2048)[1])

        thread = threading.Thread(target=answer)
        thread.start()
        (found,) = discover(network="127.0.0.9/32", wait=0.5)
        thread.join()
    assert (found.address, found.board) == ("127.0.0.9", "ecpix5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"network": "here"}, "^the network must be like 192.168.1.0/24, not 'here'$"),
        ({"interface": "nil0"}, "^there is no interface 'nil0' with an IPv4 address and broadc"),
    ],
)
def test_places_that_are_none(options, message):
    with pytest.raises(TrebuchetError, match=message):
        discover(**options)


def test_interfaces_with_broadcasts_have_their_networks():
    found = networks()
    assert "lo" not in found
    assert all(interface.ip in interface.network for interface in found.values())


def test_a_machine_without_a_network(monkeypatch):
    monkeypatch.setattr(searching, "networks", dict)
    with pytest.raises(TrebuchetError, match="^no interface of this machine has an IPv4 address"):
        discover()
