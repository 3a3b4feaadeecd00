"""The simulated board with DHCP on: addresses come, go and change, and nobody is left hanging.

Most of it with a placeholder for the shell, which is compiled quickly; the TCP sessions that have
to end with their address need the whole board.
"""

import json
import re
import sys

import pytest
from dhcp_server import DhcpServer
from patience import wait_until
from scapy.layers.dhcp import BOOTP
from scapy.layers.l2 import ARP, Ether
from soc_placeholder import PlaceholderShell
from trebuchet.sim.build import Source, build
from trebuchet.sim.fleet.firmware import variant_folder
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source
from trebuchet.soc.build import build_sim

pytestmark = pytest.mark.slow

STATIC, LEASED, OTHER = "192.0.2.2", "192.0.2.77", "192.0.2.78"
MAC = "02:00:00:00:00:02"

PING = """
import socket, struct, sys
from trebuchet.models.progress import current_simulation
from trebuchet.models.sockets import SimulatedTimeSocket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s = SimulatedTimeSocket(current_simulation(), s)
s.settimeout(float(sys.argv[2]))
s.sendto(bytes.fromhex("0800f7ff00000000"), (sys.argv[1], 0))
try:
    while s.recv(4096)[20] != 0:
        pass
    print("answered")
except TimeoutError:
    print("silent")
"""


@pytest.fixture(scope="module")
def small(root):
    """CPU, MAC and host services with hardly a shell: simulator, and its memories with DHCP on."""
    files = build_sim(root / "build" / "sim_small", PlaceholderShell())
    # LiteX writes the time into its Verilog, which would be compiled anew every time.
    verilog = files.sources[0]
    verilog.write_text(re.sub(r"(?m)^// Date .*$", "", verilog.read_text()))
    binary = build(Source("board", files.top, {}, files.sources, files.folder))
    return binary, variant_folder(files, {"TREBUCHET_DHCP": 1})


@pytest.fixture(scope="module")
def whole():
    """The whole board likewise."""
    return build(source("board")), variant_folder(build_sim(), {"TREBUCHET_DHCP": 1})


def start(parts):
    binary, folder = parts
    return Board(binary, cwd=folder, ready="ready", timeout=120)


def ping(board, ip, timeout=20):
    done = board.run([sys.executable, "-c", PING, ip, str(timeout)])
    return done.stdout.strip() or done.stderr


def connect(board, ip, port, timeout=30):
    s = board.socket()
    s.settimeout(timeout)
    s.connect((ip, port))
    return s


def status(board, ip):
    with connect(board, ip, 80) as peer:
        peer.sendall(b"GET /status HTTP/1.1\r\nHost: board\r\n\r\n")
        answer = b""
        while chunk := peer.recv(65536):
            answer += chunk
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert int(re.findall(rb"\r\nContent-Length: +([0-9]+)", head + b"\r\n")[0]) == len(body)
    return json.loads(body)["engines"]


def hold(board, ip):
    """A session that both ends know, with nothing on its way."""
    peer = connect(board, ip, 7)
    peer.sendall(b"hello")
    assert peer.recv(100) == b"hello"
    return peer


def wait_for(condition, seconds=90):
    wait_until(condition, seconds, "it did not happen")


def check_reset(peer):
    """The session was ended by a RST from the address that it belongs to."""
    with peer, pytest.raises(ConnectionResetError):
        peer.recv(100)


def check_frames(server):
    """What the board sent: nothing but answers, DHCP, and the news of its addresses; padded."""
    news = []
    for data in server.frames:
        packet = Ether(data)
        assert packet.src == MAC
        assert len(data) >= 60
        if packet.haslayer(ARP) and packet.dst == "ff:ff:ff:ff:ff:ff":
            if packet[ARP].psrc == packet[ARP].pdst:
                news.append(packet[ARP].psrc)
                assert data[42:] == bytes(len(data) - 42), "no old bytes as padding"
        else:
            assert packet.haslayer(ARP) or packet["IP"].proto in (1, 6, 17)
            if packet.haslayer("ICMP"):
                assert packet["ICMP"].type == 0, "only answers to pings"
    assert news == [LEASED, OTHER]


@pytest.mark.nightly
def test_an_address_by_dhcp_its_renewal_and_its_loss(small):
    with start(small) as board, DhcpServer(board, LEASED, lease=8) as server:
        board.wait_uart(f"ip: {LEASED}, dhcp from 192.0.2.1", 90)
        assert "ip by DHCP, or 192.0.2.2" in board.uart_text()
        assert "shell: waits for an address" in board.uart_text()
        assert ping(board, LEASED) == "answered"
        assert ping(board, STATIC, 2) == "silent"
        wait_for(lambda: server.kinds().count("request") >= 4)
        *_, (kind, renewal) = server.messages
        assert (kind, renewal[BOOTP].ciaddr) == ("request", LEASED)
        assert ping(board, LEASED) == "answered"
        # The server does not want us there any more.
        server.ip = OTHER
        board.wait_uart(f"ip: {OTHER}, dhcp", 90)
        assert "ip: 0.0.0.0, none" in board.uart_text()
        assert ping(board, OTHER) == "answered"
        assert ping(board, LEASED, 2) == "silent"
        check_frames(server)
        unicast = [m for _, m in server.messages if m["IP"].dst == "192.0.2.1"]
        assert unicast, "renewals go to the server alone"
        assert {m.dst for m in unicast} == {server.mac}


@pytest.mark.nightly
def test_without_a_server_the_static_address_is_taken_until_one_comes(small):
    with start(small) as board, DhcpServer(board, LEASED, silent=True) as server:
        board.wait_uart(f"ip: {STATIC}, fallback", 90)
        assert server.kinds() == ["discover"] * len(server.messages)
        assert 4 <= len(server.messages) <= 5
        assert ping(board, STATIC) == "answered"
        server.silent = False
        board.wait_uart(f"ip: {LEASED}, dhcp", 90)
        assert ping(board, LEASED) == "answered"
        assert ping(board, STATIC, 2) == "silent"


def test_sessions_end_with_their_address(whole):
    with start(whole) as board, DhcpServer(board, LEASED, lease=20) as server:
        board.wait_uart(f"ip: {LEASED}, dhcp", 120)
        peer = hold(board, LEASED)
        engines = status(board, LEASED)
        assert engines["nic"]["received"] >= 2
        # A renewal that keeps the address keeps the session.
        wait_for(lambda: server.kinds().count("request") >= 3)
        peer.sendall(b"again")
        assert peer.recv(100) == b"again"
        server.ip = OTHER
        board.wait_uart(f"ip: {OTHER}, dhcp", 120)
        check_reset(peer)
        engines = status(board, OTHER)
        assert engines["tcp"]["aborts"] == 1
