"""Active mode, on this machine: ARP, the engine's request registers, pauses between tries."""

import ctypes
import shutil

import pytest
from ip_bench import REGIONS, Board, compile_ip
from scapy.layers.l2 import ARP, Ether
from trebuchet.cores.net.frame_port import NIC_BLOCK
from trebuchet.cores.shell import SHELL_BLOCK
from trebuchet.cores.tcp.config import TINY
from trebuchet.cores.tcp.connect import ConnectState
from trebuchet.cores.tcp.registers import tcp_block

SERVER, GATEWAY = "10.0.0.1", "10.0.0.254"
SERVER_MAC = "02:00:00:00:00:99"
PORT = 4321
TURN = 5  # milliseconds from one turn of the loop to the next


class Configured(ctypes.Structure):
    """``struct config_server``."""

    _fields_ = [("ip", ctypes.c_uint32), ("port", ctypes.c_uint32), ("own", ctypes.c_uint32)]


def number(ip):
    return int.from_bytes(bytes(map(int, ip.split("."))))


class Active(Board):
    """A board that is told of a server."""

    def __init__(self, library, regions=REGIONS, server=SERVER):
        super().__init__(library, regions)
        self.value["tcp", "connect_state"] = ConnectState.IDLE.value
        configured = Configured.in_dll(library, "configured")
        configured.ip, configured.port = number(server), PORT

    def start(self, **address):
        self.begin(dhcp=False, netmask=0xFFFFFF00, gateway=number(GATEWAY), **address)
        self.library.server_start()
        self.log.clear()

    def next_question(self, limit=20_000):
        """The next ARP request: ``(milliseconds until it, whom it asks for)``."""
        start = self.time.value
        frame = Ether(self.next_message(limit))
        arp = frame[ARP]
        assert (frame.dst, arp.op, arp.psrc) == ("ff:ff:ff:ff:ff:ff", 1, "10.0.0.2")
        return self.time.value - start, arp.pdst

    def reply(self, ip=SERVER, mac=SERVER_MAC, operation="is-at"):
        frame = Ether(dst="02:00:00:00:00:02", src=mac)
        frame /= ARP(op=operation, hwsrc=mac, psrc=ip, hwdst="02:00:00:00:00:02", pdst="10.0.0.2")
        self.waiting.append(bytes(frame).ljust(60, b"\0"))
        self.serve()

    def become(self, state, milliseconds=0):
        self.value["tcp", "connect_state"] = state.value
        self.serve(milliseconds)

    def request(self):
        """What the engine was asked for since the last call."""
        asked = dict(self.log)
        assert self.log[-1] == ("connect", 1)
        self.log.clear()
        mac = (asked["connect_mac_high"] << 32 | asked["connect_mac"]).to_bytes(6, "little")
        return {
            "mac": mac.hex(":"),
            "ip": asked["connect_ip"],
            "port": asked["connect_port"],
            "service": asked["connect_service"],
            "local": asked["connect_local"],
        }


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_ip(tmp_path_factory.mktemp("server"))


@pytest.fixture
def load(library, tmp_path):
    """Loads the firmware's part anew, as after a start of the board."""
    return lambda path=library: ctypes.CDLL(str(shutil.copy(path, tmp_path / "server.so")))


@pytest.fixture
def board(load):
    board = Active(load())
    board.start()
    return board


def test_the_servers_address_is_asked_for_and_the_engine_connects(board):
    assert board.next_question() == (TURN, SERVER)
    board.reply()
    first = board.request()
    local = first.pop("local")
    assert 49152 <= local <= 65535
    assert first == {"mac": SERVER_MAC, "ip": number(SERVER), "port": PORT, "service": 3}
    board.become(ConnectState.OPENING, 500)
    assert board.told() == []
    board.become(ConnectState.OPEN, 500)
    assert board.told() == [f"2 server: {SERVER}:{PORT}: OK"]
    board.serve(1_000_000)
    assert (board.told(), board.sent, board.log) == ([], [], [])
    # The server has gone: from another port, after the first pause.
    board.become(ConnectState.CLOSED)
    assert board.told() == [f"1 server: {SERVER}:{PORT}: ABORTED"]
    assert board.next_question() == (1000, SERVER)
    board.reply(mac="02:00:00:00:00:98")
    second = board.request()
    assert second["mac"] == "02:00:00:00:00:98"
    assert second["local"] in (local + 1, 49152)


def test_a_server_of_the_boards_management_port_reaches_the_mailbox(board):
    Configured.in_dll(board.library, "configured").own = 80
    board.library.server_start()
    board.next_question()
    board.reply()
    assert board.request()["service"] == 2


def test_a_server_elsewhere_is_reached_by_the_gateway(load):
    board = Active(load(), server="192.168.7.7")
    board.start()
    assert board.next_question() == (TURN, GATEWAY)
    board.reply(ip="192.168.7.7")
    assert board.log == []
    board.reply(ip=GATEWAY)
    assert board.request()["ip"] == number("192.168.7.7")


@pytest.mark.parametrize(
    "spoil",
    [
        {"ip": "10.0.0.3"},
        {"operation": "who-has"},
        {"mac": "03:00:00:00:00:99"},
    ],
)
def test_what_is_no_answer_is_ignored(board, spoil):
    board.next_question()
    board.reply(**spoil)
    assert board.log == []
    board.reply()
    assert board.request()["mac"] == SERVER_MAC


def test_a_short_answer_and_one_nobody_asked_for_are_ignored(board):
    board.reply()  # the pause ends with this turn: the question is asked after the frame was read
    assert board.log == []
    board.next_question()
    board.waiting.append(b"\xff" * 6 + b"\0" * 6 + b"\x08\x06" + b"\0" * 20)
    board.serve()
    assert board.log == []
    board.reply()
    board.request()
    board.reply(mac="02:00:00:00:00:66")  # a second one
    assert board.log == []


def test_nobody_answers_and_the_pauses_double(board):
    pause = TURN
    for expected in [1000, 2000, 4000, 8000, 16000, 32000, 64000, 64000]:
        waits = [board.next_question(100_000) for _ in range(3)]
        assert waits == [(pause, SERVER), (1000, SERVER), (1000, SERVER)]
        board.serve(1000)
        assert board.told() == [f"1 server: {SERVER}:{PORT}: NO_ANSWER"]
        pause = expected
    # One that answers at last, and connects: the pauses begin anew.
    board.next_question(100_000)
    board.reply()
    board.request()
    board.become(ConnectState.OPEN)
    board.become(ConnectState.CLOSED)
    assert board.next_question() == (1000, SERVER)


@pytest.mark.parametrize(
    ("state", "status"),
    [(ConnectState.REFUSED, "NO_ROOM"), (ConnectState.CLOSED, "NO_ANSWER")],
)
def test_the_engine_refuses_or_the_server_does(board, state, status):
    board.next_question()
    board.reply()
    board.request()
    board.become(ConnectState.OPENING)
    board.become(state)
    assert board.told() == [f"1 server: {SERVER}:{PORT}: {status}"]
    assert board.next_question() == (1000, SERVER)


def test_an_engine_that_never_says_anything_is_not_waited_for_for_ever(board):
    board.next_question()
    board.reply()
    board.request()
    board.become(ConnectState.ASKED, 119_000)
    assert board.told() == []
    board.serve(1000)
    assert board.told() == [f"1 server: {SERVER}:{PORT}: NO_ANSWER"]


def test_nothing_is_asked_without_an_address_or_while_a_frame_is_sent(load):
    board = Active(load())
    board.begin()
    board.library.server_start()
    for _ in range(3):
        assert not Ether(board.next_message()).haslayer(ARP)
    board.bind()
    frames = [Ether(board.next_message()) for _ in range(2)]
    assert {frame[ARP].pdst for frame in frames} == {"10.0.0.77", SERVER}


def test_a_busy_port_is_waited_for(board):
    board.value["nic", "status"] = 2
    for _ in range(10):
        board.serve(1000)
    assert board.sent == board.words == []
    board.value["nic", "status"] = 0
    assert board.next_question() == (TURN, SERVER)


def test_without_a_server_nothing_is_done(load):
    board = Active(load())
    Configured.in_dll(board.library, "configured").port = 0
    board.start()
    for _ in range(100):
        board.serve(1000)
    assert (board.sent, board.log, board.told()) == ([], [], [])


def test_an_engine_that_opens_nothing_says_so(load, tmp_path):
    regions = [(SHELL_BLOCK, 0xF000_1000), (tcp_block(TINY), 0xF000_2000), (NIC_BLOCK, 0xF000_3000)]
    board = Active(load(compile_ip(tmp_path, regions)), regions)
    board.start()
    assert board.told() == ["1 config: server: NOT_BUILT_IN"]
    board.serve(100_000)
    assert board.sent == []
