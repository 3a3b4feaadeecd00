"""Discovery in the firmware: who is answered, with what, how often; which port is listened to."""

import ctypes
import json
import re
import shutil

import pytest
from firmware_host import FIRMWARE
from ip_bench import Board, compile_ip
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from trebuchet.cores.cluster.caller import CALLER_BLOCK
from trebuchet.cores.roles.contract import role_block
from trebuchet.models import discovery
from trebuchet.models.net import checksum
from trebuchet.soc.firmware import build_header

MAC, PEER_MAC = "02:00:00:00:00:02", "02:00:00:00:00:99"
US, PEER, ALL = "10.0.0.2", "10.0.0.1", "ff:ff:ff:ff:ff:ff"
MASK = 0xFFFFFF00
PORT = discovery.PORT


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_ip(tmp_path_factory.mktemp("discover"))


@pytest.fixture
def make(compiled, tmp_path):
    def make(**options):
        board = Board(ctypes.CDLL(str(shutil.copy(compiled, tmp_path / "discover.so"))))
        board.time.value = 1000
        board.begin(**{"dhcp": False, "netmask": MASK} | options)
        board.serve()
        return board

    return make


def request(payload=discovery.REQUEST, mac=ALL, to="255.255.255.255", **fields):
    ports = {"sport": 40000, "dport": PORT} | {
        k: fields.pop(k) for k in ("sport", "dport") if k in fields
    }
    ip = IP(**{"src": PEER, "dst": to} | fields)
    return bytes(Ether(src=PEER_MAC, dst=mac) / ip / UDP(**ports) / Raw(payload))


def give(board, *frames):
    """Hand frames over, and return what is sent for them."""
    board.waiting += [frame.ljust(60, b"\0") for frame in frames]
    for _ in range(3 * len(frames) + 5):
        board.serve()
    sent, board.sent = board.sent, []
    return sent


def answered(frame, port=40000):
    """The answer in a frame, its headers checked."""
    assert len(frame) <= 512
    packet = Ether(frame)
    ip, udp = packet[IP], packet[UDP]
    assert (packet.dst, packet.src, ip.src, ip.dst) == (PEER_MAC, MAC, US, PEER)
    assert (udp.sport, udp.dport, udp.len) == (PORT, port, len(frame) - 34)
    assert checksum(frame[14:34]) == 0
    pseudo = frame[26:34] + bytes((0, 17)) + udp.len.to_bytes(2, "big")
    assert checksum((pseudo + frame[34:]).ljust((len(frame) - 21) // 2 * 2, b"\0")) == 0
    return json.loads(bytes(udp.payload))


def test_the_port_is_that_of_the_header():
    text = (FIRMWARE / "discover.h").read_text()
    assert f"#define DISCOVER_PORT {PORT}u" in text
    words = discovery.REQUEST.rstrip(b"\0").decode().replace("\n", "\\n")
    assert f'#define DISCOVER_REQUEST "{words}"' in text


@pytest.mark.parametrize(
    ("mac", "to"), [(ALL, "255.255.255.255"), (ALL, "10.0.0.255"), (MAC, US), (ALL, US)]
)
def test_a_host_of_the_network_is_answered(make, mac, to):
    board = make()
    (frame,) = give(board, request(mac=mac, to=to))
    state = answered(frame)
    assert state == {
        "trebuchet": 1,
        "version": "0.2.0",
        "board": "ecpix5",
        "name": "box-1",
        "mac": MAC,
        "roles": [],
    }
    assert discovery.parse_answer(bytes(Ether(frame)[UDP].payload), US).name == "box-1"


@pytest.mark.parametrize(
    "fields",
    [
        {"src": "10.0.1.1"},  # another network
        {"src": "10.0.0.255"},
        {"src": "224.0.0.1"},
        {"src": "0.0.0.0"},
        {"src": US},
        {"sport": 7},
        {"sport": 1023},
        {"sport": PORT},
        {"dport": 4000},
        {"mac": MAC, "to": "10.0.0.3"},
        {"mac": "01:00:5e:00:00:01", "to": "224.0.0.1"},
        {"payload": discovery.REQUEST[1:]},
        {"payload": b"trebuchet discover 2\n" + bytes(400)},
        {"payload": b"trebuchet discover 1"},
        {"payload": b""},
        {"proto": 6},
        {"chksum": 1},
        {"frag": 1},
        {"flags": 1},
    ],
)
def test_others_are_not(make, fields):
    assert give(make(), request(**fields)) == []


def test_no_answer_is_longer_than_its_request(make):
    board = make()
    (frame,) = give(board, request())
    length = len(Ether(frame)[UDP].payload)
    for spare, count in ((1, 1), (0, 1), (-1, 0)):
        board.time.value += 1000
        size = length + spare
        assert len(give(board, request(discovery.REQUEST[:21].ljust(size, b"\0")))) == count


def test_answers_are_limited(make):
    board = make()
    assert len(give(board, *[request()] * 20)) == 1
    board.time.value += 49
    assert give(board, request()) == []
    board.time.value += 1
    assert len(give(board, request(), request())) == 1


def test_without_a_netmask_every_host_is_near(make):
    assert len(give(make(netmask=0), request(src="192.168.7.7"))) == 1


def test_a_busy_port_sends_nothing(make):
    board = make()
    board.value["nic", "status"] = 2
    assert give(board, request()) == []
    board.value["nic", "status"] = 0
    assert len(give(board, request())) == 1


def test_the_header_names_roles_while_there_is_room():
    def names(*blocks):
        made = [role_block(name) if isinstance(name, str) else name for name in blocks]
        regions = [(block, 0x800 * k) for k, block in enumerate(made)]
        line = re.search("ROLE_NAMES (.*)", build_header(regions))[1]
        return json.loads(json.loads(line))

    assert names() == []
    assert names("ecg_0", "ecg_1", "blur") == ["ecg", "blur"]
    assert names("ecg", *(role_block(f"peer{k}", CALLER_BLOCK.registers) for k in (1, 2))) == [
        "ecg"
    ]  # peers have slots, too
    long = [f"{'x' * 22}{chr(97 + k)}" for k in range(16)]
    assert names(*long) == long[:9]


def test_broadcasts_are_listened_to_between_answers_of_dhcp(make):
    """The frame port has one UDP port of any address; a server's answers come first."""
    board = make(dhcp=True, netmask=0)
    heard = lambda: board.value["nic", "port"]  # noqa: E731
    assert heard() == 68
    board.bind(lease=3600)
    for _ in range(200):
        board.serve(50)
    assert heard() == PORT
    board.sent.clear()  # the announcement of its address
    renews = board.next_message(limit=1_900_000, step=500)
    assert Ether(renews)[UDP].dport == 67
    board.serve()
    assert heard() == 68
    board.serve(4000)
    assert heard() == PORT


def test_a_board_that_falls_back_is_found_between_its_tries(make):
    board = make(dhcp=True, netmask=0)
    found = {68: 0, PORT: 0}
    for _ in range(600):
        board.serve(50)
    for _ in range(1200):
        board.serve(50)
        found[board.value["nic", "port"]] += 1
    assert 0 < found[68] < found[PORT] / 2
