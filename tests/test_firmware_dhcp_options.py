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


#: Those that the client reads.
CODES = (53, 54, 51, 1, 3, 58, 59)


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


@pytest.mark.parametrize("code", CODES)
def test_every_wrong_length_of_an_option_changes_nothing(lib, code):
    """Of more than one value, as of options that occur twice, the first counts."""
    right = OPTIONS[code][:4]
    for length in range(256):
        client, frame, _ = client_in("requesting", lib)
        before, data = client.snapshot(), (right * 256)[:length]
        raw = _encoded(**{f"_{code}": bytes([code, length]) + data}) + b"\xff"
        client.receive(reply(frame, "ack", raw=raw))
        if length and length % len(right) == 0:
            assert client.state == "bound", length
        else:
            assert client.snapshot() == before, length
    # Lengths that say more than there is, as the last option.
    client, frame, _ = client_in("requesting", lib)
    before, rest = client.snapshot(), _encoded(**{f"_{code}": b""})
    for length in range(len(right) + 1, 256):
        client.receive(reply(frame, "ack", raw=rest + bytes([code, length]) + right))
        assert client.snapshot() == before, length


def _lease(client):
    fields = ("netmask", "gateway", "server", "seconds", "t1", "t2")
    return client.state, [getattr(client.dhcp.lease, name) for name in fields]


def _bound(lib, raw, **fields):
    """The lease with these options, or None if the ACK changes nothing."""
    client, frame, _ = client_in("requesting", lib)
    before = client.snapshot()
    change = {(BOOTP, name): data for name, data in fields.items()}
    client.receive(reply(frame, "ack", raw=raw, change=change))
    return None if client.snapshot() == before else _lease(client)


@pytest.mark.parametrize("code", CODES)
def test_options_that_occur_twice_are_concatenated(lib, code):
    """RFC 2131, 4.1; RFC 3396, 7: so the first value counts, and cut anywhere it is whole again."""
    plain, right = _bound(lib, _encoded() + b"\xff"), OPTIONS[code]
    assert plain[0] == "bound"
    other = bytes(value ^ 1 for value in right)
    assert _bound(lib, _encoded() + bytes([code, len(other)]) + other + b"\xff") == plain
    rest = _encoded(**{f"_{code}": b""})
    for cut in range(len(right) + 1):
        first, second = right[:cut], right[cut:]
        parts = bytes([code, len(first)]) + first, bytes([code, len(second)]) + second
        assert _bound(lib, parts[0] + rest + parts[1] + b"\xff") == plain, cut
        assert _bound(lib, parts[0] + b"\0" + parts[1] + rest + b"\xff") == plain, cut
    single = b"".join(bytes([code, 1, value]) for value in right)
    assert _bound(lib, single + rest + b"\xff") == plain
    assert _bound(lib, _encoded() + bytes([code, 0]) + b"\xff") == plain
    assert _bound(lib, rest + bytes([code, 0, code, 0]) + b"\xff") is None


def test_an_offer_whose_options_occur_twice_is_taken(lib):
    client = Client(lib)
    raw = b"\x35\x01\x02" + _encoded(_53=b"\x35\x01\x02") + b"\x03\x04\x0a\0\0\x01\xff"
    client.receive(reply(client.tick(), "offer", raw=raw))
    assert client.state == "requesting"


def _split(overload):
    """The options, and those that stand in `file` and `sname`."""
    codes = [*OPTIONS]
    cuts = [codes[:3], codes[3:6], codes[6:]]
    encoded = [b"".join(bytes([c, len(OPTIONS[c])]) + OPTIONS[c] for c in cut) for cut in cuts]
    raw = bytes([52, 1, overload]) + encoded[0]
    file, sname = encoded[1:]
    if overload == 1:
        file, sname = file + sname, None
    elif overload == 2:
        file, sname = None, file + sname
    fields = {"file": file, "sname": sname}
    return raw + b"\xff", {name: data + b"\xff" for name, data in fields.items() if data}


@pytest.mark.parametrize("overload", [1, 2, 3])
def test_overloaded_fields_are_read(lib, overload):
    """RFC 2131, 4.1; RFC 2132, 9.3: the options go on in `file`, `sname`, or both."""
    plain = _bound(lib, _encoded() + b"\xff")
    raw, fields = _split(overload)
    assert _bound(lib, raw, **fields) == plain
    # A value that is cut between two fields; RFC 3396, 5: `file` comes before `sname`.
    rest = _encoded(_51=b"") + bytes([52, 1, overload, 51, 1, 0])
    value = OPTIONS[51]
    if overload == 3:
        fields = {"file": b"\x33\x02" + value[1:3] + b"\xff", "sname": b"\x33\x01" + value[3:]}
        fields["sname"] += b"\xff"
    else:
        fields = {["file", "sname"][overload - 1]: b"\0\x33\x03" + value[1:] + b"\xff"}
    assert _bound(lib, rest + b"\xff", **fields) == plain
    # The largest fields, END in the last byte; and without END.
    sizes = {"file": 128, "sname": 64}
    for name in fields:
        pad = fields[name][:-1].ljust(sizes[name] - 1, b"\0")
        assert _bound(lib, rest + b"\xff", **{**fields, name: pad + b"\xff"}) == plain
        assert _bound(lib, rest + b"\xff", **{**fields, name: pad + b"\0"}) is None
        assert _bound(lib, rest + b"\xff", **{**fields, name: pad + b"\x33"}) is None


@pytest.mark.parametrize("overload", [0, 1, 2, 3, 4, 255])
def test_malformed_options_in_overloaded_fields_change_nothing(lib, overload):
    plain = _bound(lib, _encoded() + b"\xff")
    hostile = b"\x35\x01\x06\x36\xff" + b"\xaa" * 50
    raw = _encoded() + bytes([52, 1, overload]) + b"\xff"
    assert _bound(lib, _encoded() + b"\xff", file=hostile, sname=hostile[:60]) == plain
    for name, bit in (("file", 1), ("sname", 2)):
        read = 1 <= overload <= 3 and overload & bit
        other = {"file": "sname", "sname": "file"}[name]
        found = _bound(lib, raw, **{name: hostile[:60], other: b"\xff"})
        assert found == (plain if 1 <= overload <= 3 and not read else None)
    # An overload in a field that is read does nothing.
    if overload in (1, 2):
        name, other = ("file", "sname")[:: 3 - 2 * overload]
        inner = bytes([52, 1, 3]) + b"\xff"
        assert _bound(lib, raw, **{name: inner, other: hostile[:60]}) == plain


@pytest.mark.parametrize("name", [b"", b"b", b"a" * 31])
def test_the_host_name_is_in_every_message(lib, name):
    """RFC 2132, 3.14; RFC 2131, 4.3.6: the same in DISCOVER and REQUEST. The longest still fits."""
    client = Client(lib)
    client.dhcp.name = name
    discover = client.tick()
    client.receive(reply(discover, "offer"))
    for kind, frame in (("discover", discover), ("request", client.tick())):
        assert check_message(frame, kind).get("hostname", b"") == name
