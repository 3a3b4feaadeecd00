"""Equal structure becomes equal bytes: netlists made by hand, shuffled and renamed."""

import json
import random

import pytest
from trebuchet.soc.canonical import Names, canonical_constraints, canonicalise, constrained


def cell(kind, init="0", attributes=None, inputs=(), outputs=(), **connections):
    """A cell whose ports in ``outputs`` are driven by it, and in ``inout`` both."""
    directions = {port: "output" if port in outputs else "input" for port in connections}
    return {
        "hide_name": 1,
        "type": kind,
        "parameters": {"INIT": init},
        "attributes": {"src": "top.v:5", **(attributes or {})},
        "port_directions": directions,
        "connections": {port: list(bits) for port, bits in connections.items()},
    }


def lut(init, a, z):
    return cell("LUT4", init, outputs="Z", A=[a], Z=[z])


def flip_flop(d, q, clock=2):
    return cell("TRELLIS_FF", outputs="Q", CLK=[clock], DI=[d], Q=[q])


def pin(a):
    """A cell that nothing depends on, like the pin of the flash's clock."""
    return cell("USRMCLK", A=[a])


def small():
    """A loop, two chains, two pins that are told apart by what they depend on, constants."""
    return {
        "attributes": {"top": "1", "src": "top.v:1", "hdlname": "top"},
        "ports": {
            "clk": {"direction": "input", "bits": [2]},
            "q": {"direction": "output", "bits": [10, 11, "0"]},
        },
        "cells": {
            "$lut$top.v:7$1": lut("01", 10, 20),
            "shell.state_FF": flip_flop(20, 10),
            "$lut$top.v:8$2": lut("10", 10, 21),
            "shell.other_FF": flip_flop(21, 11),
            "$pin$1": pin(30),
            "$pin$2": pin(31),
            "$lut$3": lut("11", 11, 30),
            "$lut$4": lut("11", 10, 31),
            "part": cell("$scopeinfo"),
            "idle": cell("DCCA", outputs="O", I=["0"], O=[40]),
        },
        "netnames": {
            "clk": {"hide_name": 0, "bits": [2], "attributes": {}},
            "q": {"hide_name": 0, "bits": [10, 11, "0"], "attributes": {}},
            "shell.rx.state": {"hide_name": 0, "bits": [20, 10], "attributes": {"src": "x"}},
            "next": {"hide_name": 0, "bits": [20], "attributes": {"keep": "1"}},
            "$auto$5": {"hide_name": 1, "bits": [30], "attributes": {}},
        },
    }


def shuffled(module, seed):
    """The same structure, with other names, numbers and order of everything but ports' bits."""
    source = random.Random(seed)
    numbers = {2, 10, 11, 20, 21, 30, 31, 40}
    new = source.sample(range(50, 99), len(numbers))
    renumbered = dict(zip(sorted(numbers), new, strict=True))

    def mixed(items):
        items = list(items)
        source.shuffle(items)
        return items

    def bits(old):
        return [renumbered.get(bit, bit) for bit in old]

    cells = {}
    for k, (_, old) in enumerate(mixed(module["cells"].items())):
        pins = {port: bits(found) for port, found in mixed(old["connections"].items())}
        attributes = {"src": f"elsewhere/top.v:{k}"}
        cells[f"name{k}"] = {**old, "hide_name": 0, "attributes": attributes, "connections": pins}
    ports = {n: {**p, "bits": bits(p["bits"])} for n, p in mixed(module["ports"].items())}
    nets = {
        name if name in ports else f"net{k}": {**net, "bits": bits(net["bits"])}
        for k, (name, net) in enumerate(mixed(module["netnames"].items()))
    }
    return {"attributes": {"top": "1"}, "ports": ports, "cells": cells, "netnames": nets}


@pytest.mark.parametrize("seed", range(20))
def test_names_and_order_do_not_count(seed):
    first, _ = canonicalise(small())
    again, _ = canonicalise(shuffled(small(), seed))
    assert json.dumps(again) == json.dumps(first)


def _changed(change):
    module = small()
    change(module)
    return json.dumps(canonicalise(module)[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["cells"]["$lut$top.v:7$1"]["parameters"].update(INIT="11"),
        lambda m: m["cells"]["$lut$4"]["connections"].update(A=["1"]),
        lambda m: m["cells"]["$lut$4"]["connections"].update(A=[11]),
        lambda m: m["cells"]["shell.other_FF"]["connections"].update(CLK=[10]),
        lambda m: m["cells"]["shell.other_FF"]["attributes"].update(keep="1"),
        lambda m: m["cells"].pop("$pin$2"),
        lambda m: m["ports"]["q"].update(bits=[11, 10, "0"]),
        lambda m: m["netnames"]["next"]["attributes"].clear(),
        lambda m: m["attributes"].pop("top"),
    ],
)
def test_a_change_counts(change):
    assert _changed(change) != _changed(lambda module: None)


def test_a_netlist_is_not_changed_and_its_form_is_final():
    module = small()
    first, _ = canonicalise(module)
    assert module == small()
    assert json.dumps(canonicalise(first)[0]) == json.dumps(first)


def test_the_form():
    """Sources before what depends on them; bits of ports have the ports' names."""
    module, names = canonicalise(small())
    assert list(module["cells"]) == [f"cell_{k:06}" for k in range(9)]
    assert names.cells[:4] == [
        "$lut$top.v:7$1",
        "shell.state_FF",
        "$lut$top.v:8$2",
        "shell.other_FF",
    ]
    assert set(names.cells[4:]) == {"$lut$3", "$lut$4", "$pin$1", "$pin$2", "idle"}
    assert module["ports"]["q"] == {"direction": "output", "bits": [3, 4, "0"]}
    assert module["netnames"]["q"]["bits"] == [3, 4, "0"]
    assert module["netnames"]["net_000003"] == {
        "hide_name": 0,
        "bits": [5],
        "attributes": {"keep": "1"},
    }
    assert module["cells"]["cell_000000"] == {
        "hide_name": 0,
        "type": "LUT4",
        "parameters": {"INIT": "01"},
        "attributes": {},
        "port_directions": {"A": "input", "Z": "output"},
        "connections": {"A": [3], "Z": [5]},
    }


def test_names_that_constraints_refer_to_stay():
    constraints = 'FREQUENCY NET "next" 250 MHz;\nLOCATE COMP "idle" SITE "X";\n# no "more"\n'
    module, _ = canonicalise(small(), constrained(constraints))
    assert module["netnames"]["next"]["bits"] == [5]
    assert "net_000003" not in module["netnames"]
    assert module["cells"]["idle"]["type"] == "DCCA"


def test_an_inout_port_leads_to_its_cells():
    """A pin's cell is reached although it drives nothing but the pin."""
    buffer = cell("TRELLIS_IO", B=[3], I=[4])
    buffer["port_directions"]["B"] = "inout"
    module = {
        "attributes": {},
        "ports": {
            "a": {"direction": "input", "bits": [4]},
            "b": {"direction": "inout", "bits": [3]},
        },
        "cells": {"z": buffer, "a": lut("1", 4, 5)},
        "netnames": {},
    }
    assert canonicalise(module)[1].cells == ["z", "a"]


def test_reports_have_the_designs_names(tmp_path):
    _, names = canonicalise(small())
    names.write(tmp_path / "names.json")
    names = Names.read(tmp_path / "names.json")
    text = "cell_000001$nextpnr posedge $glbnet$net_000003 cell_0000012 cell_999999 net_000000"
    assert names.translated(text) == (
        "shell.state_FF$nextpnr posedge $glbnet$next cell_0000012 cell_999999 clk"
    )
    odd = Names([r'\a"b'], [""])
    assert json.loads(odd.translated('{"cell_000000": "net_000000"}', in_json=True)) == {
        r'\a"b': "net_000000"
    }


def test_constraints_are_sorted_by_what_they_are_about():
    text = (
        'IOBUF PORT "b" IO_TYPE=LVCMOS33;\nBLOCK RESETPATHS;\n# today\nLOCATE COMP "a" SITE "P3";\n'
        'IOBUF PORT "b" IO_TYPE=LVCMOS25;\n\nLOCATE COMP "a" SITE "P3"; # again\n'
    )
    found = canonical_constraints(text)
    assert found == (
        'BLOCK RESETPATHS;\nLOCATE COMP "a" SITE "P3";\n'
        'IOBUF PORT "b" IO_TYPE=LVCMOS33;\nIOBUF PORT "b" IO_TYPE=LVCMOS25;\n'
    )
    assert canonical_constraints(found) == found
