"""Statements that are made in loops are named by the loops' variables when they fail."""

import enum
import re
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Assert, Elaboratable, Signal
from amaranth.lib import data, stream
from prove_lib import proof_of
from trebuchet.formal.kit import registry, runner, trace
from trebuchet.formal.kit.statements import Place, named_statements, parse, text_of
from trebuchet.formal.stream import free, new_harness, stream_rules

HERE = Path(__file__)


class Harness(Elaboratable):
    """``state`` makes statements."""

    def __init__(self, state):
        self.state = state

    def elaborate(self, platform):
        m = new_harness()
        self.state(m)
        return m


def netlist(state, named=True, source=True):
    harness = Harness(state)
    if not named:
        return rtlil.convert(harness, name="top", platform="formal", ports=[], emit_src=source)
    with named_statements():
        return rtlil.convert(harness, name="top", platform="formal", ports=[], emit_src=source)


def places(state):
    """Of each assertion its place and those of its callers, as in a solver's log."""
    cells = re.findall(
        r'attribute \\src "(\S*)"\n\s+cell \$check(.*?)\n\s+end\n', netlist(state), re.S
    )
    return [parse(source) for source, cell in cells if 'FLAVOR "assert"' in cell]


def names(state):
    return [[place.names for place in found] for found in places(state)]


class Kind(enum.Enum):
    OPEN = 1
    SHUT = 2


def test_loops_and_comprehensions():
    def state(m):
        a = Signal(4, name="a")
        for k in range(2):
            for name, _ in (("snd_una", 1), ("rcv nxt", 2)):
                m.d.comb += Assert(a != k + len(name))
        m.d.comb += [Assert(a != kind.value) for kind in Kind]
        m.d.comb += [Assert(a == 0), *(Assert(signal) for signal in (a[0] & a[1], a))]

    found = names(state)
    assert found[:4] == [[(f"k={k}", f"name={n}")] for k in (0, 1) for n in ("snd_una", "rcv nxt")]
    assert found[4:6] == [[("kind=OPEN",)], [("kind=SHUT",)]]
    assert found[6] == [()]
    # Of a condition without a name: where it is made.
    law, signal = found[7][0], found[8][0]
    assert re.fullmatch(rf"signal={HERE.name}:\d+", law[0])
    assert signal == ("signal=a",)


def test_turns_without_a_name_are_numbered():
    """And tuples of names are names, as are structs."""
    seen = []

    def state(m):
        for rule in (lambda: Signal(name="a"), lambda: Signal(name="b")):
            m.d.comb += Assert(rule())
        while len(seen) < 2:
            m.d.comb += Assert(seen.append(0) or Signal(name="a"))
        for path in (("rx", 0), ("tx", 1)):
            m.d.comb += Assert(Signal(len(path)))
        for beat in [Signal(data.StructLayout({"last": 1}), name="beat")]:
            m.d.comb += Assert(beat.last)

    turns = [("turn=1",), ("turn=2",)]
    paths = [("path=rx.0",), ("path=tx.1",), ("beat=beat",)]
    assert names(state) == [[found] for found in (*turns, (), ("turn=2",), *paths)]


def test_callers_are_named():
    """A function that states rules says for which of its callers' turns."""

    def rules(m, check):
        m.d.comb += check(Signal(name="b"))

    def state(m):
        rules(m, Assert)
        for _port in ("left", "right"):
            rules(m, Assert)

    assert names(state) == [[()], [(), ("_port=left",)], [(), ("_port=right",)]]
    (first, *_), (second, caller), _ = places(state)
    assert first == second
    assert text_of(first) == 'check(Signal(name="b"))'
    assert text_of(caller) == "rules(m, Assert)"
    assert caller.line > first.line


def test_callers_in_another_file_are_named():
    def state(m):
        stream_rules(m, stream.Signature(3).create(path=("s",)), Assert, "s")

    for place, caller, *_ in places(state):
        assert Path(place.file).name == "stream.py"
        assert text_of(caller).startswith("stream_rules(m, stream")


def test_a_netlist_without_sources_is_the_same():
    def state(m):
        for k in range(3):
            m.d.comb += Assert(Signal(4, name="a") != k)

    assert netlist(state, source=False) == netlist(state, named=False, source=False)
    assert netlist(state) != netlist(state, named=False)


def test_names_are_off_afterwards():
    def state(m):
        for _k in range(2):
            m.d.comb += Assert(Signal(name="a"))

    assert "_k" in netlist(state)
    assert "_k" not in netlist(state, named=False)


@pytest.mark.parametrize("file", ["/a b/ü.py", "/x/y[1];2.py", "C%41,.py"])
def test_places_survive_a_log(file):
    place = Place(file, 3, ("name=a b;c]", "k=1"), (4, 5, 6))
    from trebuchet.formal.kit import statements

    text = statements._format([place, Place(file, 4)])
    assert not re.search(r"\s", text)
    assert parse(text) == [place, Place(file, 4)]
    log = f"##   0:00:00  Assert failed in top: {text} ($12)\n"
    assert trace.broken(log + log) == [[place, Place(file, 4)]]


def test_the_text_of_a_statement_is_whole(tmp_path):
    """Several may be in a line, and one in several lines."""

    def state(m):
        a = Signal(4, name="ä")
        m.d.comb += [Assert(a != 1), Assert("ä" and a != 2)]
        m.d.comb += Assert(
            a
            != 3,
            "long",
        )  # fmt: skip

    found = [text_of(place) for (place,) in places(state)]
    assert found == ["Assert(a != 1)", 'Assert("ä" and a != 2)', 'Assert( a != 3, "long", )']
    (place, *_) = places(state)[0]
    assert text_of(Place(place.file, place.line)).startswith("m.d.comb += [Assert(a != 1), ")
    assert text_of(Place(str(tmp_path / "none.py"), 1)) == ""
    assert text_of(Place(place.file, 1_000_000)) == ""


@pytest.mark.parametrize("name", ["stream_demux", "tcp_events"])
def test_statements_of_a_proof_differ(name):
    """Of no two can a log say the same, though loops make many of them."""
    (proof,) = (proof for proof in registry.PROOFS if proof.name == name)
    text = runner._rtlil(proof, source=True)
    found = re.findall(r'attribute \\src "(\S*)"\n\s+cell \$check', text)
    assert len(found) > 10
    assert len(set(found)) == len(found)


def test_the_failing_field_is_named(tmp_path, monkeypatch):
    def state(m):
        record = {name: Signal(3, name=name) for name in ("kept", "lost", "sent")}
        free(m, *record.values())
        for name, field in record.items():
            limit = 7 if name == "lost" else 8
            m.d.comb += Assert(field < limit)

    monkeypatch.setattr(runner, "BUILD", tmp_path)
    (result,) = runner.run_tasks(runner.tasks_of(proof_of(Harness(state), method="bmc"))[:1])
    text = trace.explain(result.folder)
    assert re.search(rf"^{HERE.name}:\d+ \[name=lost, field=lost\]: Assert\(field < limit\)", text)
    assert "name=kept" not in text
    assert re.search(r"^lost +7$", text, re.MULTILINE)
