"""The board's address, on this machine, with registers in Python."""

import ctypes
import shutil

import pytest
from dhcp_bench import MAC, SERVER, options_sent
from ip_bench import REGIONS, Board, compile_ip
from scapy.layers.dhcp import BOOTP
from scapy.layers.l2 import ARP, Ether

OWN = 0x0A000002


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The firmware's part, compiled once for each set of register blocks."""
    done = {}

    def path_of(regions):
        key = len(regions)
        if key not in done:
            done[key] = compile_ip(tmp_path_factory.mktemp("ip"), regions)
        return done[key]

    return path_of


@pytest.fixture
def build(compiled, tmp_path):
    """Loads the firmware's part anew, as after a start of the board."""

    def load(regions=REGIONS):
        return ctypes.CDLL(str(shutil.copy(compiled(regions), tmp_path / "ip.so")))

    return load


DRAIN = [("enable", 0), ("abort_all", 1)]
BY_DHCP = f"2 ip: 10.0.0.77, dhcp from {SERVER}"


def test_a_static_address_is_used_at_once(build):
    board = Board(build())
    assert board.begin(dhcp=False, netmask=0xFFFFFF00, gateway=0x0A0000FE)
    assert board.log == board.use(OWN)
    board.serve(100_000)
    assert board.sent == []
    assert board.command() == {
        "address": "10.0.0.2",
        "netmask": "255.255.255.0",
        "gateway": "10.0.0.254",
        "source": "static",
    }


def test_a_board_without_frame_port_uses_its_static_address(build):
    regions = REGIONS[:2]
    board = Board(build(regions), regions)
    assert board.begin(dhcp=True)
    assert board.log == board.use(OWN)


def test_no_address_until_a_server_gives_one(build):
    board = Board(build())
    assert not board.begin()
    assert ctypes.c_uint32.in_dll(board.library, "period_ms").value <= 50
    assert board.value["nic", "irq_enable"] == 1
    discover = board.next_message()
    assert board.log == []
    assert (Ether(discover).src, Ether(discover)[BOOTP].ciaddr) == (MAC, "0.0.0.0")
    assert board.command() == {
        "address": "-",
        "netmask": "-",
        "gateway": "-",
        "source": "none",
        "dhcp": "selecting",
    }
    fields = {"lease": 3600, "router": ["10.0.0.254"]}
    board.answer(discover, "offer", **fields)
    request = board.next_message()
    assert options_sent(request)["requested_addr"] == "10.0.0.77"
    assert options_sent(request)["hostname"] == b"box-1"
    assert board.log == []
    board.answer(request, "ack", **fields)
    assert board.log == board.use(0x0A00004D)
    assert board.told() == [BY_DHCP]
    told = board.command()
    assert int(told.pop("lease left").removesuffix(" s")) >= 3599
    assert told == {
        "address": "10.0.0.77",
        "netmask": "255.255.255.0",
        "gateway": "10.0.0.254",
        "source": "dhcp",
        "dhcp": "bound",
        "server": SERVER,
    }
    # Everybody is told (RFC 5227, 2.3).
    news = Ether(board.next_message())
    assert (news.dst, news.src) == ("ff:ff:ff:ff:ff:ff", MAC)
    arp = news[ARP]
    assert (arp.op, arp.hwsrc, arp.psrc, arp.pdst) == (1, MAC, "10.0.0.77", "10.0.0.77")
    assert (arp.hwdst, len(news)) == ("00:00:00:00:00:00", 42)


def test_nobody_answers_and_later_somebody_does(build):
    board = Board(build())
    board.begin()
    for _ in range(4):
        board.next_message()
        assert board.log == []
    frame = board.next_message(step=1)  # with the fifth try the board takes its own address
    assert board.log == board.use(OWN)
    assert Ether(frame).haslayer(BOOTP)
    assert Ether(board.next_message())[ARP].psrc == "10.0.0.2"
    assert board.command()["source"] == "fallback"
    assert board.told() == ["2 ip: 10.0.0.2, fallback"]
    board.log.clear()
    # There are sessions: the address changes when they have been reset, and 10 ms later.
    board.value["tcp", "idle"] = 0
    board.answer(frame, "offer")
    board.answer(board.next_message(), "ack")
    assert board.log == DRAIN
    for _ in range(20):
        board.serve(5)
    assert board.log == DRAIN
    assert board.command()["address"] == "10.0.0.2"
    board.value["tcp", "idle"] = 1
    board.serve(5)
    assert board.log == DRAIN
    board.serve(6)
    assert board.log == DRAIN + board.use(0x0A00004D)
    assert board.command()["source"] == "dhcp"
    assert board.told() == [BY_DHCP]


def test_a_session_that_cannot_be_reset_is_not_waited_for_for_ever(build):
    board = Board(build())
    board.begin()
    board.bind(lease=10)
    board.next_message()  # the announcement
    board.log.clear()
    board.value["tcp", "idle"] = 0
    board.serve(11_000)
    assert board.log == DRAIN
    board.serve(2990)
    assert board.log == DRAIN
    board.serve(20)
    assert board.log == DRAIN + board.use(0)
    assert board.command()["source"] == "none"
    assert board.told() == [BY_DHCP, "2 ip: 0.0.0.0, none"]


def test_the_same_address_again_needs_no_change(build):
    """The lease ends; while sessions are still being reset the same address comes again."""
    board = Board(build())
    board.begin()
    board.bind(lease=10)
    board.next_message()  # the announcement
    board.log.clear()
    board.serve(11_000)
    assert board.log == DRAIN
    board.answer(board.next_message(step=1), "offer")
    board.answer(board.next_message(step=1), "ack")
    assert board.log == DRAIN + board.use(0x0A00004D)
    board.serve(5000)
    assert board.log == DRAIN + board.use(0x0A00004D)
    assert board.told() == [BY_DHCP]


def test_another_address_from_the_same_source_is_told(build):
    """The lease is refused at T1; while sessions are still being reset another address comes."""
    board = Board(build())
    board.begin()
    board.bind(lease=10)
    board.next_message()  # the announcement
    assert board.told() == [BY_DHCP]
    board.log.clear()
    board.value["tcp", "idle"] = 0
    board.answer(board.next_message(), "nak")
    assert board.log == DRAIN
    board.answer(board.next_message(step=1), "offer", ip="10.0.0.78")
    board.answer(board.next_message(step=1), "ack", ip="10.0.0.78")
    assert (board.log, board.told()) == (DRAIN, [])
    board.value["tcp", "idle"] = 1
    board.serve(11)
    assert board.log == DRAIN + board.use(0x0A00004E)
    assert board.told() == [f"2 ip: 10.0.0.78, dhcp from {SERVER}"]
    board.serve(1000)
    assert board.told() == []


def test_nothing_is_written_while_a_frame_is_being_sent(build):
    board = Board(build())
    board.value["nic", "status"] = 2
    board.begin()
    for _ in range(10):
        board.serve(1000)
    assert board.sent == board.words == []
    board.value["nic", "status"] = 0
    board.serve()
    assert options_sent(board.sent.pop())["message-type"] == 1


def test_a_frame_of_full_size_is_read_whole_and_ignored(build):
    board = Board(build())
    board.begin()
    board.next_message()
    for length in (1514, 1520, 1521, 4096):
        board.waiting.append(b"\xff" * length)
        board.serve()
        assert board.waiting == []
    assert board.sent == []
