"""The firmware's DHCP client on this machine: every state, lost and hostile answers, leases."""

import pytest
from dhcp_bench import (
    SERVER,
    SERVER_MAC,
    Client,
    check_message,
    client_in,
    compile_client,
    ip_of,
    options_sent,
    reply,
)
from scapy.layers.dhcp import BOOTP
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

#: Starts of the first four tries, in units of the first pause, and when the fourth is given up.
TRIES, GIVEN_UP = (0, 1, 3, 7), 15
FOREVER = 2**32 - 1


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return compile_client(root, tmp_path_factory.mktemp("dhcp"))


def test_four_messages_make_a_lease(lib):
    client = Client(lib)
    discover = client.tick()
    options = check_message(discover, "discover")
    assert set(options) == {"message-type", "max_dhcp_size", "param_req_list"}
    assert client.state == "selecting"
    assert client.tick() is None
    fields = {"lease": 3600, "router": ["10.0.0.254", "10.0.0.253"], "t1": 1000, "t2": 2000}
    client.receive(reply(discover, "offer", **fields))
    assert client.state == "requesting"
    request = client.tick()
    options = check_message(request, "request")
    assert (options["requested_addr"], options["server_id"]) == ("10.0.0.77", SERVER)
    assert Ether(request)[BOOTP].xid == Ether(discover)[BOOTP].xid
    assert not client.has_lease
    client.receive(reply(request, "ack", **fields))
    assert client.state == "bound"
    lease = client.dhcp.lease
    found = [ip_of(n) for n in (lease.ip, lease.netmask, lease.gateway, lease.server)]
    assert found == ["10.0.0.77", "255.255.255.0", "10.0.0.254", SERVER]
    assert (lease.seconds, lease.t1, lease.t2, client.left) == (3600, 1000, 2000, 3600)
    assert bytes(client.dhcp.server_mac) == bytes.fromhex(SERVER_MAC.replace(":", ""))
    assert not client.dhcp.fallen_back


@pytest.mark.parametrize(
    ("ip", "given", "mask"),
    [
        ("10.0.0.77", None, "255.0.0.0"),
        ("172.16.1.2", None, "255.255.0.0"),
        ("192.168.1.2", None, "255.255.255.0"),
        ("10.0.0.77", "255.255.255.252", "255.255.255.252"),
        ("10.0.0.77", "255.0.255.0", "255.0.0.0"),
        ("10.0.0.77", "255.255.255.255", "255.0.0.0"),
    ],
)
def test_netmasks(lib, ip, given, mask):
    client = Client(lib)
    client.bind(ip=ip, netmask=given)
    assert ip_of(client.dhcp.lease.netmask) == mask


@pytest.mark.parametrize(
    ("fields", "times"),
    [
        ({"lease": 800}, (400, 700)),
        ({"lease": 1}, (1, 1)),
        ({"lease": 800, "t1": 0, "t2": 10}, (400, 700)),
        ({"lease": 800, "t1": 500, "t2": 400}, (400, 700)),
        ({"lease": 800, "t1": 100, "t2": 801}, (400, 700)),
        ({"lease": 800, "t1": 100, "t2": 800}, (100, 800)),
    ],
)
def test_times_of_a_lease(lib, fields, times):
    client = Client(lib)
    client.bind(**fields)
    assert (client.dhcp.lease.t1, client.dhcp.lease.t2) == times


# --- nobody answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 0xFFFFFFFF, 0x9E3779BB])
@pytest.mark.parametrize("unit", [4, 250, 1000])
def test_tries_then_falls_back_and_tries_seldom(lib, seed, unit):
    client = Client(lib, seed=seed, retry_ms=unit, now=2**32 - 5 * unit)
    begin, step = client.now, max(1, unit // 100)
    sent = [(client.now, client.tick())]
    while not client.dhcp.fallen_back:
        assert not client.has_lease
        sent += client.run(step, step)
        assert client.now - begin < 20 * unit, "no fall-back"
    *tries, late = [(at - begin) / unit for at, _ in sent]
    for found, wanted in zip([*tries, late], (*TRIES, GIVEN_UP), strict=True):
        assert abs(found - wanted) <= 0.3 * 4, "each pause may be a quarter of a unit off"
    pauses = [b - a for a, b in zip(tries, [*tries[1:], late], strict=True)]
    assert all(abs(p - w) <= 0.27 for p, w in zip(pauses, (1, 2, 4, 8), strict=True)), pauses
    later = client.run(200 * unit, step)
    gaps = [(b - a) / unit for (a, _), (b, _) in zip([sent[-1], *later], later, strict=False)]
    assert len(gaps) == 3
    assert all(abs(gap - 64) <= 0.3 for gap in gaps), gaps
    numbers = [Ether(frame)[BOOTP].xid for _, frame in sent + later]
    assert len(set(numbers)) == 1, "an answer to an earlier try counts, too"
    for _, frame in sent + later:
        check_message(frame, "discover")
    assert client.dhcp.fallen_back
    # And then somebody does.
    client.receive(reply(later[-1][1], "offer"))
    client.receive(reply(client.tick(), "ack"))
    assert client.state == "bound"
    assert not client.dhcp.fallen_back


def test_seconds_since_the_start_are_told(lib):
    client = Client(lib)
    frames = [client.tick()] + [frame for _, frame in client.run(10_000)]
    told = [Ether(frame)[BOOTP].secs for frame in frames]
    assert told[0] == 0
    assert [abs(t - w) <= 1 for t, w in zip(told, TRIES, strict=True)] == [True] * 4


def test_a_request_tells_the_seconds_of_its_discover(lib):
    """RFC 2131, 3.1, step 3; however late the answer, and however often it is asked for again."""
    client = Client(lib)
    client.tick()
    (*_, (_, discover)) = client.run(4000)
    secs = Ether(discover)[BOOTP].secs
    assert secs >= 2
    client.run(2000)
    client.receive(reply(discover, "offer"))
    frames = [client.tick()] + [frame for _, frame in client.run(4000)]
    assert len(frames) >= 2
    for frame in frames:
        check_message(frame, "request")
        assert Ether(frame)[BOOTP].secs == secs
    client.receive(reply(frames[-1], "ack", lease=100))
    _, renewal = client.run(60_000)[0]
    assert Ether(renewal)[BOOTP].secs == 0


def test_boards_that_start_together_part(lib):
    clients = [Client(lib, seed=7, mac=f"02:00:00:00:00:{k:02x}") for k in range(32)]
    numbers, pauses = set(), set()
    for client in clients:
        numbers.add(Ether(client.tick())[BOOTP].xid)
        pauses.add(client.dhcp.wait_ms)
    assert len(numbers) == 32
    assert len(pauses) > 20


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_lost_answers_are_asked_for_again(lib, lost):
    client = Client(lib)
    frame = client.tick()
    for _ in range(lost):
        ((_, frame),) = client.run(int(client.dhcp.wait_ms), 1)
        check_message(frame, "discover")
    client.receive(reply(frame, "offer"))
    frame = client.tick()
    for _ in range(lost):
        ((_, frame),) = client.run(int(client.dhcp.wait_ms), 1)
        assert check_message(frame, "request")["requested_addr"] == "10.0.0.77"
    client.receive(reply(frame, "ack"))
    assert client.state == "bound"


def test_a_server_that_offers_and_never_acknowledges(lib):
    client = Client(lib)
    client.receive(reply(client.tick(), "offer"))
    client.tick()
    sent = client.run(16_000)
    kinds = [options_sent(frame)["message-type"] for _, frame in sent]
    assert kinds == [3, 3, 3, 1], "three more requests, then from the start"
    assert client.dhcp.fallen_back
    assert client.run(50_000) == []


@pytest.mark.parametrize("answers", [1, 1000])
def test_refusals_of_a_request(lib, answers):
    """However fast a server offers and refuses, it does not make us hurry."""
    client, sent = Client(lib), []
    frame = client.tick()
    while client.now < 15_900:
        if frame is not None:
            sent.append(client.now)
            kind = options_sent(frame)["message-type"]
            if len(sent) <= 2 * answers:
                client.receive(reply(frame, "offer" if kind == 1 else "nak"))
        client.now += 50
        frame = client.tick()
    assert len(sent) == {1: 5 + 1, 1000: 2 * 4 + 2}[answers]
    assert client.dhcp.fallen_back


# --- leases ---------------------------------------------------------------------------------------


def test_renewal_is_sent_to_the_server(lib):
    client = Client(lib)
    client.bind(lease=1000)
    assert client.run(499_000, 1000) == []
    ((at, frame),) = client.run(3000, 1000)
    assert abs(at - 500_000) <= 1000
    options = check_message(frame, "request", (SERVER_MAC, SERVER), "10.0.0.77")
    assert set(options) == {"message-type", "max_dhcp_size", "param_req_list"}
    assert (client.state, client.has_lease) == ("renewing", True)
    client.now += 2000
    client.tick()
    client.receive(reply(frame, "ack", lease=2000))
    assert (client.state, client.dhcp.lease.seconds) == ("bound", 2000)
    assert 1994 <= client.left <= 2000, "the lease runs from the request on"
    assert client.run(990_000, 1000) == []
    assert len(client.run(20_000, 1000)) == 1


def test_nobody_renews(lib):
    client = Client(lib)
    client.bind(lease=4000)
    sent = client.run(3_999_000, 1000)
    assert client.has_lease
    renewing = [(at, f) for at, f in sent if Ether(f).dst == SERVER_MAC]
    rebinding = sent[len(renewing) :]
    # Half of what is left until T2 (3500 s), but at least 60 s.
    for found, wanted in (
        (renewing, (2000, 2750, 3125, 3313, 3407, 3467)),
        (rebinding, (3500, 3750, 3875, 3938, 3998)),
    ):
        assert [at / 1000 for at, _ in found] == pytest.approx(wanted, abs=3)
    for _, frame in rebinding:
        check_message(frame, "request", source="10.0.0.77")
    assert client.state == "rebinding"
    *_, (_, frame) = client.run(2000, 1000)
    assert (client.has_lease, client.left, client.dhcp.lease.ip) == (False, 0, 0)
    assert client.state == "selecting"
    check_message(frame, "discover")
    assert not client.dhcp.fallen_back
    client.run(16_000)
    assert client.dhcp.fallen_back


def test_another_server_may_rebind(lib):
    client = Client(lib)
    client.bind(lease=100)
    *_, (_, frame) = client.run(89_000, 1000)
    assert client.state == "rebinding"
    client.receive(reply(frame, "ack", server="10.0.0.3", lease=500))
    assert (client.state, ip_of(client.dhcp.lease.server)) == ("bound", "10.0.0.3")


@pytest.mark.parametrize(("seconds", "state"), [(52_000, "renewing"), (89_000, "rebinding")])
def test_refused_renewal_ends_the_lease_at_once(lib, seconds, state):
    client = Client(lib)
    client.bind(lease=100)
    *_, (_, frame) = client.run(seconds, 1000)
    assert client.state == state
    client.receive(reply(frame, "nak"))
    assert (client.state, client.has_lease, client.dhcp.lease.ip) == ("init", False, 0)
    check_message(client.tick(), "discover")


def test_a_lease_for_ever_and_one_longer_than_the_clock(lib):
    client = Client(lib, now=2**32 - 1000)
    client.bind(lease=FOREVER)
    assert client.run(10**9, 10**7) == []
    assert client.left == FOREVER
    client = Client(lib)
    client.bind(lease=10_000_000)  # 115 days; the clock wraps after 49
    assert client.run(4_999_000_000, 10**6) == []
    assert len(client.run(2_000_000, 10**6)) == 1
    assert (client.state, client.has_lease) == ("renewing", True)


# --- answers that are none ------------------------------------------------------------------------


STATES = ("selecting", "requesting", "renewing", "rebinding")
WRONG = {
    "transaction": {(BOOTP, "xid"): 1},
    "a request": {(BOOTP, "op"): 1},
    "another network": {(BOOTP, "htype"): 6},
    "long addresses": {(BOOTP, "hlen"): 16},
    "another client": {(BOOTP, "chaddr"): bytes(16)},
    "no cookie": {(BOOTP, "options"): b"c\x82Sd"},
    "source port": {(UDP, "sport"): 68},
    "destination port": {(UDP, "dport"): 67},
    "another board's frame": {(Ether, "dst"): "02:00:00:00:00:03"},
    "no IPv4": {(Ether, "type"): 0x86DD},
    "IP header with options": {(IP, "ihl"): 6},
    "version": {(IP, "version"): 6},
    "fragment": {(IP, "frag"): 1},
    "more fragments": {(IP, "flags"): 1},
    "protocol": {(IP, "proto"): 6},
    "IP checksum": {(IP, "chksum"): 0x1234},
    "UDP checksum": {(UDP, "chksum"): 0x1234},
    "IP length too long": {(IP, "len"): 1000},
    "IP length too short": {(IP, "len"): 40},
    "UDP length too long": {(UDP, "len"): 500},
    "UDP length too short": {(UDP, "len"): 7},
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_fields_change_nothing(lib, state, change):
    client, frame, kind = client_in(state, lib)
    before = client.snapshot()
    client.receive(reply(frame, kind, change=change))
    assert client.snapshot() == before
    client.receive(reply(frame, kind))
    assert client.snapshot() != before


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "change", [{(UDP, "chksum"): 0}, {(IP, "flags"): 2}, {(Ether, "dst"): "ff:ff:ff:ff:ff:ff"}]
)
def test_what_may_be_otherwise(lib, state, change):
    client, frame, kind = client_in(state, lib)
    client.receive(reply(frame, kind, change=change))
    assert client.state == ("requesting" if state == "selecting" else "bound")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    "fields",
    [
        {"ip": "0.0.0.0"},
        {"ip": "127.0.0.1"},
        {"ip": "224.0.0.1"},
        {"ip": "255.255.255.255"},
        {"server": None},
    ],
    ids=str,
)
def test_useless_answers_change_nothing(lib, state, fields):
    client, frame, kind = client_in(state, lib)
    before = client.snapshot()
    client.receive(reply(frame, kind, **fields))
    assert client.snapshot() == before


@pytest.mark.parametrize("state", STATES[1:])
def test_acknowledgements_of_something_else_change_nothing(lib, state):
    client, frame, _ = client_in(state, lib)
    before = client.snapshot()
    client.receive(reply(frame, "ack", ip="10.0.0.78"))
    client.receive(reply(frame, "ack", lease=0))
    client.receive(reply(frame, "ack", lease=None))
    if state != "rebinding":
        client.receive(reply(frame, "ack", server="10.0.0.3"))
        client.receive(reply(frame, "nak", server="10.0.0.3"))
    for kind in ("offer", 1, 3, 4, 7, 8, 0, 255):
        client.receive(reply(frame, kind))
    assert client.snapshot() == before


def test_only_offers_move_a_client_that_selects(lib):
    client, frame, _ = client_in("selecting", lib)
    before = client.snapshot()
    for kind in ("ack", "nak", 1, 3, 4, 7, 8, 0, 255):
        client.receive(reply(frame, kind))
    assert client.snapshot() == before


def test_nothing_is_heard_that_was_not_asked_for(lib):
    client = Client(lib)
    ack = client.bind(lease=1000)
    before = client.snapshot()
    client.receive(ack)
    client.receive(reply(ack, "nak"))
    assert client.snapshot() == before


def test_the_first_offer_counts(lib):
    client = Client(lib)
    discover = client.tick()
    client.receive(reply(discover, "offer"))
    client.receive(reply(discover, "offer", server="10.0.0.3", ip="10.0.0.99"))
    assert options_sent(client.tick())["requested_addr"] == "10.0.0.77"
