"""The whole simulated board: boot, the host services beside the shell, and the status page."""

import json
import re
import sys

import pytest
from trebuchet import __version__
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = pytest.mark.slow

#: Run inside the board's network: pings and datagrams of awkward lengths, with random contents.
PEER = """
import json, os, socket, struct
BOARD = "192.0.2.2"
def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff
def ping(length):
    data = os.urandom(length)
    head = struct.pack("!BBHHH", 8, 0, 0, 77, length)
    raw.sendto(struct.pack("!BBHHH", 8, 0, checksum(head + data), 77, length) + data, (BOARD, 0))
    while True:
        reply = raw.recv(4096)[20:]
        if reply[:1] == b"\\0":
            return reply[8:] == data and checksum(reply) == 0
def echo(length):
    data = os.urandom(length)
    udp.sendto(data, (BOARD, 7))
    return udp.recv(4096) == data
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
result = {"ping": [n for n in PINGS if not ping(n)], "udp": [n for n in DATAGRAMS if not echo(n)]}
for n in (1, 17, 1472):
    udp.sendto(bytes(n), (BOARD, 9))
print(json.dumps(result))
"""
PINGS = (0, 1, 17, 18, 19, 57, 1471, 1472)
#: 17 bytes end in the same beat as the padding of their frame.
DATAGRAMS = (1, 2, 3, 4, 16, 17, 18, 19, 100, 1471, 1472)


@pytest.fixture(scope="module")
def board():
    top = source("board")
    with Board(build(top), cwd=top.folder, ready="ready", timeout=120) as running:
        yield running


def _http(board, request):
    with board.connect(80) as peer:
        peer.settimeout(30)
        peer.sendall(request)
        answer = b""
        while chunk := peer.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    # Any number of spaces may stand before the value (RFC 9110, 5.5).
    (length,) = re.findall(rb"\r\nContent-Length: +([0-9]+)(?=\r\n|$)", head)
    assert int(length) == len(body)
    return int(head.split()[1]), json.loads(body)


def _status(board):
    code, state = _http(board, b"GET /status HTTP/1.1\r\nHost: board\r\n\r\n")
    assert code == 200
    return state


def test_the_console_tells_what_it_is(board):
    text = board.uart_text()
    assert f"Trebuchet {__version__} on sim" in text
    assert "mac 02:00:00:00:00:02, ip 192.0.2.2" in text
    assert "tcp: 64 sessions" in text


def test_ping_and_udp_beside_the_tcp_engine(board):
    before = _status(board)["engines"]
    script = PEER.replace("PINGS", str(PINGS)).replace("DATAGRAMS", str(DATAGRAMS))
    done = board.run([sys.executable, "-c", script])
    assert json.loads(done.stdout) == {"ping": [], "udp": []}, done.stderr
    after = _status(board)["engines"]
    gained = {
        (block, name): after[block][name] - before[block][name]
        for block in ("udp_echo", "udp_discard", "guard")
        for name in after[block]
    }
    assert gained["udp_echo", "datagrams"] == len(DATAGRAMS)
    assert gained["udp_echo", "errors"] == 0
    assert (gained["udp_discard", "datagrams"], gained["udp_discard", "octets"]) == (3, 1490)
    assert gained["guard", "damaged"] == gained["guard", "short"] == gained["guard", "long"] == 0


def test_the_status_page(board):
    state = _status(board)
    assert state["board"] == "sim"
    assert state["version"] == __version__
    assert state["uptime_ms"] > 0
    assert state["sessions"] >= 1
    assert {"classifier", "tcp_rx", "tcp", "tcp_tx", "smp", "mailbox", "ecg"} <= set(
        state["engines"]
    )
    later = _status(board)
    assert later["uptime_ms"] > state["uptime_ms"]
    assert later["engines"]["tcp"]["established"] == state["engines"]["tcp"]["established"] + 1


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"GET /other HTTP/1.1\r\nHost: board\r\n\r\n", 404),
        (b"POST /status HTTP/1.1\r\nHost: board\r\nContent-Length: 0\r\n\r\n", 405),
        (b"nonsense\r\n\r\n", 400),
        (b"GET /status HTTP/1.1\r\nX: " + b"y" * 1200 + b"\r\n\r\n", 431),
    ],
)
def test_wrong_requests_get_their_status_and_a_reason(board, request_bytes, code):
    found, body = _http(board, request_bytes)
    assert found == code
    assert body["error"]
