"""The options of DHCP messages: what the firmware's client reads, and what it says."""

import pytest
from dhcp_bench import Client, check_message, client_in, compile_client, ip_of, reply
from scapy.layers.dhcp import BOOTP


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return compile_client(root, tmp_path_factory.mktemp("dhcp"))


OPTIONS = {
    53: b"\x05",
    54: bytes([10, 0, 0, 1]),
    51: (500).to_bytes(4, "big"),
    1: bytes([255, 255, 255, 0]),
    3: bytes([10, 0, 0, 254, 10, 0, 0, 253]),
    58: (200).to_bytes(4, "big"),
    59: (400).to_bytes(4, "big"),
    15: b"example.org",
}


def _encoded(**replaced):
    """All options; ``replaced`` by number, as ``_53``, with bytes in the place of an option's."""
    parts = {code: bytes([code, len(data)]) + data for code, data in OPTIONS.items()}
    parts |= {int(name[1:]): data for name, data in replaced.items()}
    return b"".join(parts.values())


def test_every_option_is_read_wherever_it_stands(lib):
    for turn in range(len(OPTIONS)):
        client, frame, _ = client_in("requesting", lib)
        codes = [*OPTIONS][turn:] + [*OPTIONS][:turn]
        raw = b"\0\0" + b"\0".join(bytes([c, len(OPTIONS[c])]) + OPTIONS[c] for c in codes)
        client.receive(reply(frame, "ack", raw=raw + b"\xff" + b"\x35\x01\x06"))
        lease = client.dhcp.lease
        assert (client.state, lease.seconds, lease.t1, lease.t2) == ("bound", 500, 200, 400)
        assert ip_of(lease.gateway) == "10.0.0.254"


def test_options_cut_anywhere_change_nothing(lib):
    client, frame, _ = client_in("requesting", lib)
    before, whole = client.snapshot(), _encoded()
    for end in range(len(whole) + 1):
        client.receive(reply(frame, "ack", raw=whole[:end]))
        assert client.snapshot() == before, end
    client.receive(reply(frame, "ack", raw=whole + b"\xff"))
    assert client.state == "bound"


def test_frames_cut_anywhere_change_nothing(lib):
    client, frame, _ = client_in("requesting", lib)
    before, ack = client.snapshot(), reply(frame, "ack")
    for end in range(len(ack)):
        client.receive(ack[:end])
        assert client.snapshot() == before, end
    client.receive(ack + bytes(4))  # padding of the frame
    assert client.state == "bound"


@pytest.mark.parametrize("code", [53, 54, 51, 1, 3, 58, 59])
def test_every_wrong_length_of_an_option_changes_nothing(lib, code):
    client, frame, _ = client_in("requesting", lib)
    before, right = client.snapshot(), OPTIONS[code]
    for length in range(256):
        data = (right * 256)[:length]
        if length == len(right) or (code == 3 and length and length % 4 == 0):
            continue
        raw = _encoded(**{f"_{code}": bytes([code, length]) + data}) + b"\xff"
        client.receive(reply(frame, "ack", raw=raw))
        assert client.snapshot() == before, length
    # Lengths that say more than there is, as the last option.
    rest = _encoded(**{f"_{code}": b""})
    for length in range(len(right) + 1, 256):
        client.receive(reply(frame, "ack", raw=rest + bytes([code, length]) + right))
        assert client.snapshot() == before, length


@pytest.mark.parametrize("code", [53, 54, 51, 1, 3, 58, 59])
def test_an_option_that_comes_twice_changes_nothing(lib, code):
    client, frame, _ = client_in("requesting", lib)
    before = client.snapshot()
    twice = bytes([code, len(OPTIONS[code])]) + OPTIONS[code]
    client.receive(reply(frame, "ack", raw=_encoded() + twice + b"\xff"))
    assert client.snapshot() == before


@pytest.mark.parametrize("overload", [1, 2, 3])
def test_overloaded_fields_are_not_read(lib, overload):
    client, frame, _ = client_in("requesting", lib)
    hostile = b"\x35\x01\x06\x36\xff" + b"\xaa" * 50
    raw = _encoded() + bytes([52, 1, overload]) + b"\xff"
    fields = {(BOOTP, "file"): hostile, (BOOTP, "sname"): hostile[:60]}
    client.receive(reply(frame, "ack", raw=raw, change=fields))
    assert (client.state, client.dhcp.lease.seconds) == ("bound", 500)


@pytest.mark.parametrize("name", [b"", b"b", b"a" * 31])
def test_the_host_name_is_in_every_message(lib, name):
    """RFC 2132, 3.14; RFC 2131, 4.3.6: the same in DISCOVER and REQUEST. The longest still fits."""
    client = Client(lib)
    client.dhcp.name = name
    discover = client.tick()
    client.receive(reply(discover, "offer"))
    for kind, frame in (("discover", discover), ("request", client.tick())):
        assert check_message(frame, kind).get("hostname", b"") == name
