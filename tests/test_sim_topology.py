"""Topology files of several boards: what they mean, and one clear line for each thing wrong."""

import pytest
from trebuchet.models.errors import TrebuchetError
from trebuchet.sim.fleet.cli import choose
from trebuchet.sim.fleet.run import plan_text
from trebuchet.sim.fleet.topology import Connection, load, parse, uniform

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
  - {from: b, to: a}
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
    assert topology.connections == (Connection("a", "b", 3, 400), Connection("b", "a", 0, 50))


def test_the_plan_is_in_cycles_and_bytes():
    """At 125 MHz a board's port moves 1 Gb/s, a byte a cycle."""
    link = {"rate": 500, "delay": 2, "loss": "3%", "pfc": {"classes": [0, 3], "xoff": 8}}
    topology = parse({"boards": [{"name": "x", "link": link}]})
    lines = plan_text(topology, ["/f"], ["none"], seed=7, control=3).splitlines()
    assert lines[:4] == ["seed 7", "time wall", "tap tap0 10.0.0.1/24", "control 3"]
    assert lines[-1] == "board /f none 10.0.0.2 02:00:00:00:00:02"
    name, *words = lines[-2].removeprefix("port ").split()
    values = {k: float(v) for k, v in (w.split("=") for w in words)}
    assert name == "x"
    assert (values["rate"], values["queue"], values["lossless"]) == (0.5, 128 << 10, 9)
    assert (values["up_delay"], values["down_delay"]) == (250, 250)
    assert (values["up_loss"], values["xoff"], values["xon"]) == (0.03, 8192, 4096)


def test_uniform():
    topology = uniform(4)
    assert [b.name for b in topology.boards] == ["board0", "board1", "board2", "board3"]
    assert [b.ip for b in topology.boards] == [f"10.0.0.{k}" for k in (2, 3, 4, 5)]
    assert len({b.mac for b in topology.boards}) == 4


def two(**second):
    return {"boards": [{"name": "a"}, {"name": "b", **second}]}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "t must be a mapping of names to values, not None"),
        ({}, "t: boards must be a list of 1 to 16 boards, not 0"),
        ({"boards": {}}, "t: boards must be a list, not {}"),
        ({"bords": [], "boards": [{}]}, "t has no 'bords'; it may have boards, clock_mhz, .*"),
        (two(ip="10.0.0"), r"t: boards\[1\]: ip must be an IPv4 address like 10.0.0.2, not '10"),
        (two(ip="10.0.1.9"), r"ip must be in the host's network 10.0.0.0/24, not '10.0.1.9'"),
        (two(ip="10.0.0.2"), "t: IP addresses must differ; 10.0.0.2 is there twice"),
        (two(ip="10.0.0.1"), "t: IP addresses must differ; 10.0.0.1 is there twice"),
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
        ({**two(), "clock_mhz": True}, "clock_mhz must be a number above 0, not True"),
    ],
)
def test_errors_are_one_clear_line(document, message):
    with pytest.raises(TrebuchetError, match=message) as caught:
        parse(document, "t")
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
