"""`trebuchet status` against an HTTP server that behaves, and against some that do not."""

import json
import socket
import threading

import pytest
from serving import serving
from trebuchet.client.errors import ConnectionLost
from trebuchet.client.status import MAX_BYTES, roles_of
from trebuchet.host import status as status_module
from trebuchet.host import watch as watch_module
from trebuchet.host.cli import main
from trebuchet.host.status import fetch_status, flatten, status
from trebuchet.host.watch import History, rates
from trebuchet.models.errors import TrebuchetError

STATE = {"version": "0.1.0", "board": "sim", "uptime_ms": 12, "tcp": {"segments": 3, "rst": 0}}


def test_returns_what_the_board_says():
    with serving(json.dumps(STATE).encode()) as board:
        assert fetch_status(board) == STATE


def test_prints_json_or_a_table(capsys):
    with serving(json.dumps(STATE).encode()) as board:
        status(board, as_json=True)
        assert json.loads(capsys.readouterr().out) == STATE
        status(board, as_json=False)
        lines = capsys.readouterr().out.splitlines()
    assert any(line.split() == ["tcp.segments", "3"] for line in lines)
    assert any(line.split() == ["board", "sim"] for line in lines)


def test_flatten_keeps_order_and_nesting():
    assert flatten(STATE) == [
        ("version", "0.1.0"),
        ("board", "sim"),
        ("uptime_ms", "12"),
        ("tcp.segments", "3"),
        ("tcp.rst", "0"),
    ]


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b"{", 200, "sent a status that is not JSON"),
        (b"\xff\xfe", 200, "sent a status that is not JSON"),
        (b"[1]", 200, "must be a JSON object, not list"),
        (b"{}", 200, "without board, engines, version; is it a Trebuchet board"),
        (b'{"status": "up"}', 200, "`trebuchet discover` lists the boards"),
        (b"{}", 503, "answered HTTP 503"),
        (b'{"a":' + b"[" * 100_000, 200, "must be at most 16 objects deep"),
        (b'{"a":' * 16 + b"{}" + b"}" * 16, 200, "must be at most 16 objects deep"),
        (b'{"a":' + b"9" * 5000 + b"}", 200, "sent a status that is not JSON"),
        (b"{}", 302, "answered HTTP 302 Found; is it a Trebuchet board"),
        (b" " * (MAX_BYTES + 1), 200, f"sent more than {MAX_BYTES} bytes"),
    ],
)
def test_bad_answers_are_named(body, code, message):
    with serving(body, code) as board, pytest.raises(TrebuchetError, match=message):
        fetch_status(board)


def test_nobody_listens():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        board = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match=f"cannot connect to {board}: .*refused"):
            fetch_status(board)


def test_a_silent_board_times_out():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        board = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match=f"{board} sent nothing for 0.2 s"):
            fetch_status(board, timeout=0.2)


@pytest.mark.parametrize("begin", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_drop_of_data_now_and_then_does_not_keep_a_client(begin):
    """Neither in the headers nor in the body."""
    done = threading.Event()

    def drip(server):
        peer, _ = server.accept()
        with peer:
            peer.sendall(begin)
            for _ in range(600):
                if done.wait(0.05):
                    return
                peer.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        board = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match=f"^{board} sent no whole message within 2 s$"):
            fetch_status(board, timeout=2)
        done.set()
        thread.join()


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ("127.0.0.1:99999", "^the board must be HOST or HOST:PORT, not '127.0.0.1:99999'$"),
        ("127.0.0.1:x", "^the board must be HOST or HOST:PORT, not '127.0.0.1:x'$"),
        ("a..b", "^cannot connect to a..b:80: "),
    ],
)
def test_bad_addresses(board, message):
    with pytest.raises(TrebuchetError, match=message):
        fetch_status(board, timeout=600)


def test_what_a_board_says_is_no_markup(capsys):
    state = {"board": "[/b]", "x [/i]": "1", "name": "[red]hi", "\x1b[2J": "\ud800\\"}
    with serving(json.dumps(state).encode()) as board:
        status(board)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["board", "[/b]"], ["x", "[/i]", "1"], ["name", "[red]hi"], ["�[2J", "�\\"]]


def test_a_peer_that_speaks_no_http():
    def talk(server):
        peer, _ = server.accept()
        with peer:
            peer.recv(4096)
            peer.sendall(b"220 ready\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=talk, args=(server,), daemon=True)
        thread.start()
        board = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(TrebuchetError, match="cannot read http://"):
            fetch_status(board, timeout=600)
        thread.join()


class Board:
    """A status that changes with each request, or is refused."""

    def __init__(self, *states):
        self.states = list(states)

    def __call__(self, board, timeout):
        state = self.states.pop(0)
        if isinstance(state, BaseException):
            raise state
        return state


def looks(*counters):
    """Statuses a second apart, each with other counters of a block."""
    return [
        {"version": "0.2.0", "uptime_ms": 1000 * number, "engines": {"tcp": dict(found), "n": {}}}
        for number, found in enumerate(counters)
    ]


def watched(monkeypatch, capsys, states, *words):
    """Exit code, stdout and stderr of `trebuchet status --watch`."""
    monkeypatch.setattr(status_module, "fetch_status", Board(*states))
    monkeypatch.setattr(watch_module, "sleep", lambda seconds: None)
    with pytest.raises(SystemExit) as left:
        main(["status", "x", "--watch", "2", "--count", str(len(states)), *words])
    out, err = capsys.readouterr()
    return left.value.code or 0, out, err


def test_watching_shows_the_growth_a_second(monkeypatch, capsys):
    states = looks({"a": 5, "b": 0}, {"a": 10, "b": 0}, {"a": 10, "b": 1500})
    code, out, err = watched(monkeypatch, capsys, states)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines() if ".tcp." in line]
    assert [row[1:] for row in rows] == [
        ["5"],
        ["0"],
        ["10", "5.0", "█"],
        ["0"],
        ["10", "█"],
        ["1500", "1,500.0", "█"],
    ]


def test_history_has_the_last_rates_as_bars():
    past = History()
    assert past.bars("a") == ""
    for rate in (0, 1, 50, 100, -3):
        past.add({"a": rate})
    past.add({})  # the board was started
    assert past.bars("a") == " ▁▄█  "
    assert past.bars("b") == ""
    for _ in range(16):
        past.add({"a": 1})
    assert past.bars("a") == 16 * "█"


def test_watching_as_json_without_zeros(monkeypatch, capsys):
    states = looks({"a": 5, "b": 0}, {"a": 5, "b": 3})
    code, out, err = watched(monkeypatch, capsys, states, "--json", "--nonzero")
    first, second = map(json.loads, out.splitlines())
    assert (first["engines"], first["rates"]) == ({"tcp": {"a": 5}}, {})
    assert second["engines"] == {"tcp": {"a": 5, "b": 3}}
    assert second["rates"] == {"engines.tcp.a": 0, "engines.tcp.b": 3}


def test_a_board_that_is_away_is_asked_again(monkeypatch, capsys):
    first, second = looks({"a": 5}, {"a": 6})
    gone = ConnectionLost("x is away")
    code, out, err = watched(monkeypatch, capsys, [first, gone, second], "--json")
    assert (code, err) == (0, "trebuchet: x is away\n")
    assert json.loads(out.splitlines()[-1])["rates"] == {"engines.tcp.a": 1}


def test_interrupted_watching_is_done(monkeypatch, capsys):
    states = [*looks({"a": 5}), KeyboardInterrupt()]
    assert watched(monkeypatch, capsys, states, "--json")[0] == 0


@pytest.mark.parametrize(
    ("before", "now", "rate"),
    [
        (5, 3, -2.0),  # a gauge
        (65_535, 1, 2.0),
        ((1 << 32) - 1, 1, 2.0),
        ((1 << 32) + 1, (1 << 32) + 3, 2.0),
        ((1 << 64) - 1, 1, 2.0),
    ],
)
def test_counters_wrap(before, now, rate):
    assert rates(*looks({"a": before}, {"a": now}))["engines.tcp.a"] == rate


def test_a_start_in_between_has_no_rates():
    before, now = looks({"a": 5}, {"a": 7})
    assert rates(now, before) == {}
    assert rates({}, now) == rates(before, {"uptime_ms": "x"}) == {}
    assert rates(before, {"uptime_ms": 5, "engines": 3}) == {}


def test_nonzero_leaves_counters_out(capsys):
    state = STATE | {"engines": {"tcp": {"a": 0, "b": 2}, "smp": {"c": 0}, "odd": 3}}
    with serving(json.dumps(state).encode()) as board:
        status(board, nonzero=True, as_json=True)
        assert json.loads(capsys.readouterr().out)["engines"] == {"tcp": {"b": 2}}
        with pytest.raises(TrebuchetError, match="^--count is for --watch; give that too$"):
            status(board, count=3)


def test_peers_are_no_roles():
    slot = {"jobs": 1, "errors": 0, "cycles": 2, "hangs": 0}
    peer = slot | {"timeouts": 0, "strays": 0}
    engines = {"tcp": {"segments": 1}, "ecg_0": slot, "ecg_1": slot, "blur": slot, "peer1": peer}
    assert roles_of({"engines": engines}) == ["ecg", "blur"]


def test_no_board_is_named():
    with pytest.raises(TrebuchetError, match="^the board must be HOST or HOST:PORT, not ''$"):
        fetch_status("")
