"""Topology files of several boards: what they mean, and one clear line for each thing wrong."""

import pytest
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.fleet.cli import choose
from trebuchet.sim.fleet.firmware import _addresses, _key, peers_text
from trebuchet.sim.fleet.run import plan_text
from trebuchet.sim.fleet.topology import PEERS, Connection, load, parse, uniform
from trebuchet.soc.peers import Peer

FULL = """
clock_mhz: 125
link: {rate: 1000, delay: 2, queue: 64}
host: {address: 10.1.0.1/16, link: {delay: 5}}
boards:
  - {name: a, ip: 10.1.0.2}
  - name: b
    ip: 10.1.3.4
    mac: 02:00:00:00:00:77
    link:
      rate: 100
      loss: 1%
      reorder: 0.005
      ecn: {min: 4, max: 16, chance: 20%}
      pfc: {classes: [3, 5], xoff: 20}
ltl:
  - {from: a, to: b, class: 3, timeout: 400}
  - {from: b, to: a, class: 3}
"""


def test_a_full_file(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(FULL)
    topology = load(path)
    a, b = topology.boards
    assert (a.name, a.ip, a.mac) == ("a", "10.1.0.2", "02:00:00:00:00:02")
    assert (b.ip, b.mac) == ("10.1.3.4", "02:00:00:00:00:77")
    assert (a.link.delay, a.link.queue, a.link.loss, a.link.classes) == (2, 64, 0, ())
    assert (b.link.rate, b.link.loss, b.link.reorder) == (100, 0.01, 0.005)
    assert (b.link.ecn_min, b.link.ecn_max, b.link.ecn_chance) == (4, 16, 0.2)
    assert (b.link.classes, b.link.xoff, b.link.xon) == ((3, 5), 20, 10)
    assert (topology.host_ip, topology.prefix, topology.host_link.delay) == ("10.1.0.1", 16, 5)
    assert topology.connections == (Connection("a", "b", 3, 400), Connection("b", "a", 3, 1000))


def test_the_plan_is_in_cycles_and_bytes():
    """At 125 MHz a board's port moves 1 Gb/s, a byte a cycle."""
    link = {"rate": 500, "delay": 2, "loss": "3%", "pfc": {"classes": [0, 3], "xoff": 8}}
    topology = parse({"boards": [{"name": "x", "link": link}]})
    lines = plan_text(topology, ["/f"], ["none"], seed=7, control=3).splitlines()
    assert lines[:4] == ["seed 7", "time wall", "tap tap0 192.0.2.1/24", "control 3"]
    assert lines[-1] == "board /f none 192.0.2.2 02:00:00:00:00:02"
    name, *words = lines[-2].removeprefix("port ").split()
    values = {k: float(v) for k, v in (w.split("=") for w in words)}
    assert name == "x"
    assert (values["rate"], values["queue"], values["lossless"]) == (0.5, 128 << 10, 9)
    assert (values["up_delay"], values["down_delay"]) == (250, 250)
    assert (values["up_loss"], values["xoff"], values["xon"]) == (0.03, 8192, 4096)


def test_uniform():
    topology = uniform(4)
    assert [b.name for b in topology.boards] == ["board0", "board1", "board2", "board3"]
    assert [b.ip for b in topology.boards] == [f"192.0.2.{k}" for k in (2, 3, 4, 5)]
    assert len({b.mac for b in topology.boards}) == 4


def joined(*pairs, names="abcde", **fields):
    """Boards with names of one letter; a pair "ab" is a connection from a to b."""
    ltl = [{"from": pair[0], "to": pair[1], **fields} for pair in pairs]
    return parse({"boards": [{"name": name} for name in names], "ltl": ltl}, "t")


def test_a_mesh_of_four():
    """Each may call all others; a board's peers are the others in the file's order."""
    topology = uniform(4)
    assert len(topology.connections) == 12
    for k, board in enumerate(topology.boards):
        others = [b for b in topology.boards if b != board]
        assert topology.peers(board.name) == tuple(
            # We come before those that come after us, so for them we are one earlier.
            Peer(
                mac=0x02_00_00_00_00_00 | int(other.mac[-2:], 16),
                ip=0xC0000200 | int(other.ip.rpartition(".")[2]),
                theirs=k + 1 if k < topology.boards.index(other) else k,
                timeout_us=1000,
                called=True,
            )
            for other in others
        )


@pytest.mark.parametrize(("count", "connections"), [(1, 0), (2, 2), (3, 6), (4, 12), (5, 0)])
def test_uniform_joins_as_many_as_a_board_has_peers(count, connections):
    assert len(uniform(count).connections) == connections


def test_one_way():
    """The board that is called has the caller as a peer, too, for the replies; it calls nobody."""
    topology = joined("ca", timeout=2.5)
    (called,), (caller,) = topology.peers("c"), topology.peers("a")
    assert (called.theirs, called.called, called.timeout_us) == (1, True, 3)
    assert (caller.theirs, caller.called, caller.timeout_us) == (1, False, 3)
    assert caller.mac == 0x02_00_00_00_00_04
    assert caller.ip == 0xC000_0204
    assert topology.peers("b") == ()


def test_numbers_are_the_other_boards_own():
    """Whatever is joined: the peer at our number p, at number p.theirs, is us."""
    for pairs in (["ab", "cb", "bd"], ["ea", "eb", "dc"], ["ab", "bc", "cd", "de", "ea"]):
        topology = joined(*pairs)
        for board in topology.boards:
            for other, peer in zip(
                topology.neighbours(board.name), topology.peers(board.name), strict=True
            ):
                back = topology.peers(other)[peer.theirs - 1]
                assert (back.mac, back.ip) == (board.mac_int, board.ip_int)
                assert topology.neighbours(other)[peer.theirs - 1] == board.name
                assert peer.called == (board.name + other in pairs)


def test_the_longer_timeout_counts_for_both():
    ltl = [{"from": "a", "to": "b", "timeout": 70}, {"from": "b", "to": "a", "timeout": 300}]
    topology = parse({**two(), "ltl": ltl})
    assert [topology.peers(name)[0].timeout_us for name in "ab"] == [300, 300]


def test_the_class_of_the_connections_is_the_boards():
    topology = joined("ab", "bc", **{"class": 5})
    assert [topology.dscp(name) for name in "abcd"] == [40, 40, 40, 0]


def test_the_table_as_a_header():
    topology = joined("ab", "ca", **{"class": 3})
    text = peers_text(topology, topology.board("a"))
    assert "#define TREBUCHET_CYCLES_PER_US 125u" in text
    assert "#define TREBUCHET_LTL_DSCP 24u" in text
    assert "#define TREBUCHET_PEERS 2u" in text
    assert text.index("{ 0x0200u, 0x00000003u, 0xc0000203u, 1, 1000, true },") < text.index(
        "{ 0x0200u, 0x00000004u, 0xc0000204u, 1, 1000, false },"
    )
    assert peers_text(topology, topology.board("b")) != text


def test_firmware_is_compiled_again_for_other_peers():
    """The name of a board's folder depends on all that its firmware depends on."""
    topology = joined("ab")
    a, text = topology.board("a"), peers_text(topology, topology.board("a"))
    keys = [
        _key(b"image", _addresses(a), text),
        _key(b"other", _addresses(a), text),
        _key(b"image", _addresses(topology.board("b")), text),
        _key(b"image", _addresses(a), peers_text(joined("ab", "ac"), a)),
        _key(b"image", _addresses(a), peers_text(joined("ab", timeout=7), a)),
    ]
    assert len(set(keys)) == len(keys)
    assert _key(b"image", _addresses(a), text) == keys[0]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("mac", 1 << 48, "Peer mac must be 0 to 281474976710655, not 281474976710656"),
        ("ip", -1, "Peer ip must be 0 to 4294967295, not -1"),
        ("theirs", 0, "Peer theirs must be 1 to 32766, not 0"),
        ("timeout_us", 32768, "Peer timeout_us must be 1 to 32767, not 32768"),
        ("timeout_us", 1.5, "Peer timeout_us must be 1 to 32767, not 1.5"),
    ],
)
def test_a_peer_is_checked(field, value, message):
    good = {"mac": 1, "ip": 1, "theirs": 1, "timeout_us": 1, "called": True}
    with pytest.raises(ValueError, match=f"^{message}$"):
        Peer(**{**good, field: value})


def test_too_many_peers():
    message = "t: board a must have LTL connections with at most 3 others, not with 4: b, c, d, e"
    with pytest.raises(TrebuchetError, match=f"^{message}$"):
        joined("ab", "ca", "ad", "ea")
    assert len(joined("ab", "ca", "ad").peers("a")) == PEERS


def two(**second):
    return {"boards": [{"name": "a"}, {"name": "b", **second}]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "t must be a mapping of names to values, not None"),
        ({}, "t: boards must be a list of 1 to 16 boards, not 0"),
        ({"boards": {}}, "t: boards must be a list, not {}"),
        ({"bords": [], "boards": [{}]}, "t has no 'bords'; it may have boards, clock_mhz, .*"),
        (two(ip="10.0.0"), r"t: boards\[1\]: ip must be an IPv4 address like 192.0.2.2, not '10"),
        (two(ip="192.0.3.9"), r"ip must be in the host's network 192.0.2.0/24, not '192.0.3.9'"),
        (two(ip="192.0.2.2"), "t: IP addresses must differ; 192.0.2.2 is there twice"),
        (two(ip="192.0.2.1"), "t: IP addresses must differ; 192.0.2.1 is there twice"),
        (two(mac="02:00:00:00:00:02"), "t: MAC addresses must differ; 02:00:00:00:00:02 is"),
        (two(mac="01:00:00:00:00:02"), "mac must be a local unicast MAC address like .*, not '01"),
        (two(name="a"), "t: names of boards must differ; a is there twice"),
        (two(name="A b"), r"boards\[1\]: name must be lower-case letters.*, not 'A b'"),
        (two(lnk={}), r"t: boards\[1\] has no 'lnk'; it may have ip, link, mac, name"),
        (two(link={"loss": "x"}), r"boards\[1\].link: loss must be a chance .*, not 'x'"),
        (two(link={"loss": 2}), "loss must be a chance from 0 to 1 or in per cent, like 3%, not 2"),
        (two(link={"rate": 0}), "rate must be a number above 0, not 0"),
        (two(link={"rate": 2000}), "rate must be at most 1000, a byte a cycle of clock_mhz"),
        (two(link={"delay": -1}), "delay must be a number of at least 0, not -1"),
        (two(link={"ecn": {"min": 9, "max": 3}}), "link.ecn: min must be at most max, 3, not 9"),
        (two(link={"pfc": {"classes": [8]}}), r"pfc: classes must be a list of classes .*\[8\]"),
        (two(link={"pfc": {"classes": [1], "xoff": 2, "xon": 3}}), "xon must be at most xoff, 2"),
        ({**two(), "host": {"address": "x"}}, "t: host: address must be an address with a prefix"),
        ({**two(), "ltl": [{"from": "a", "to": "c"}]}, r"ltl\[0\]: to must be one of .* a, b, not"),
        ({**two(), "ltl": [{"from": "a", "to": "a"}]}, "to must be another board than from, not"),
        ({**two(), "ltl": [{"from": "a", "to": "b", "class": 9}]}, "class must be from 0 to 7"),
        ({**two(), "ltl": [{"from": "a", "to": "b"}] * 2}, "LTL connections must differ; a to b"),
        (
            {**two(), "ltl": [{"from": "a", "to": "b", "timeout": 32768}]},
            r"ltl\[0\]: timeout must be at most 32767 µs, not 32768",
        ),
        (
            {**two(), "ltl": [{"from": "a", "to": "b"}, {"from": "b", "to": "a", "class": 3}]},
            "t: LTL connections of board a must be of one class, since .*; not of 0, 3",
        ),
        (
            {**two(), "ltl": [{"from": ["a"], "to": "b"}]},
            r"from must be one of .* a, b, not \['a'\]",
        ),
        ({**two(), "ltl": [{"from": "a", "to": {}}]}, "to must be one of the boards a, b, not {}"),
        ({**two(), "clock_mhz": True}, "clock_mhz must be a number above 0, not True"),
        ({**two(), "clock_mhz": 100, "link": {"rate": 900}}, "t: link: rate must be at most 800, "),
        ({"boards": [{}] * 300}, "t: boards must be a list of 1 to 16 boards, not 300"),
        (
            {"boards": [{}] * 6, "host": {"address": "192.0.2.1/29"}},
            r"t: boards\[5\] must have an ip, .*: 192.0.2.0/29 has addresses for 5 boards$",
        ),
        (
            two(ip="192.0.2.0"),
            "ip must be neither the first nor the last of 192.0.2.0/24, not '192",
        ),
        (
            two(ip="192.0.2.255"),
            "ip must be neither the first nor the last of .*, not '192.0.2.255'",
        ),
        *(
            ({**two(), "host": {"address": address}}, "t: host: address must be an address with a")
            for address in ("192.0.2.0/24", "192.0.2.255/24")
        ),
    ],
)
def test_errors_are_one_clear_line(document, message):
    with pytest.raises(TrebuchetError, match=message) as caught:
        parse(document, "t")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [float("inf"), 10**400, 2e9])
@pytest.mark.parametrize(
    ("key", "document"),
    [
        ("clock_mhz", lambda value: {"clock_mhz": value}),
        ("delay", lambda value: two(link={"delay": value})),
        ("queue", lambda value: two(link={"queue": value})),
        ("max", lambda value: two(link={"ecn": {"max": value}})),
    ],
)
def test_no_number_is_beyond_all_bounds(key, document, value):
    with pytest.raises(TrebuchetError, match=f": {key} must be at most 1e.09, not ") as caught:
        parse({**two(), **document(value)}, "t")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("clock", "rate"), [(100, 800), (125, 1000), (250, 1000)])
def test_the_usual_rate_is_one_that_the_clock_allows(clock, rate):
    topology = parse({**two(), "clock_mhz": clock})
    assert {link.rate for link in (topology.host_link, topology.boards[1].link)} == {rate}


def test_a_small_network_has_room_for_so_many_boards():
    topology = parse({"boards": [{}] * 5, "host": {"address": "192.0.2.1/29"}})
    assert [board.ip for board in topology.boards] == [f"192.0.2.{k}" for k in range(2, 7)]
    last = parse({"boards": [{"ip": "192.0.2.6"}], "host": {"address": "192.0.2.1/29"}})
    assert last.boards[0].ip == "192.0.2.6"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("clock_mhz: 2024-13-45", "has a value that cannot be read: month must be in 1..12"),
        ("clock_mhz: !!int ''", "has a value that cannot be read: "),
        ("clock_mhz: !!timestamp x", "has a value that cannot be read: "),
        ("clock_mhz: " + "9" * 5000, "has a value that cannot be read: "),
        ("[" * 20000, "must not be nested so deep"),
    ],
)
def test_values_that_cannot_be_read(tmp_path, text, message):
    path = tmp_path / "t.yaml"
    path.write_text(text)
    with pytest.raises(TrebuchetError, match=f"t.yaml {message}") as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_bad_files(tmp_path):
    path = tmp_path / "t.yaml"
    with pytest.raises(TrebuchetError, match="cannot read the topology .*t.yaml"):
        load(path)
    path.write_text("boards: [\n  - x: }\n")
    with pytest.raises(TrebuchetError, match=r"t.yaml, line \d+: "):
        load(path)


def test_the_number_must_agree(tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(FULL)
    assert len(choose(2, path).boards) == 2
    with pytest.raises(TrebuchetError, match="t.yaml has 2 boards, not 4"):
        choose(4, path)
    assert len(choose(3, None).boards) == 3
