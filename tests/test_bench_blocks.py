"""Keys of figures: what changes one, and what does not."""

import dataclasses

import pytest
from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from trebuchet.bench import keys as module
from trebuchet.bench.blocks import BLOCKS
from trebuchet.bench.job import Job, Netlist, Sampled
from trebuchet.bench.keys import harness_hash, job_key
from trebuchet.bench.keys import simulator_key as key
from trebuchet.bench.registry import GROUPS
from trebuchet.sim.build import Source, harness_files

TARGET = "trebuchet.bench.ltl:cycles"


class Adder(wiring.Component):
    a: In(4)
    o: Out(4)

    def __init__(self, step=1):
        self.step = step
        super().__init__()

    def elaborate(self, platform):
        m = Module()
        inner = Signal(4)
        m.d.comb += [inner.eq(self.a + self.step), self.o.eq(inner)]
        return m


def key_of(*inputs, **options):
    return job_key(Job(inputs, dict, **options), TARGET)


def test_a_netlist_counts_not_who_made_it():
    one = key_of(Netlist(lambda: Adder(1)))
    assert key_of(Netlist(lambda: Adder(step=2 - 1))) == one
    assert key_of(Netlist(lambda: Adder(2))) != one


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a",), ("b",)),
        (("ab",), ("a", "b")),
        ((["a"], ["b"]), (["a", "b"],)),
        ((1,), (1.5,)),
        ((None,), (0,)),
        (({"a": 1},), ({"a": 2},)),
        (({"a": 1},), ({"b": 1},)),
    ],
)
def test_different_inputs_have_different_keys(one, other):
    assert key_of(*one) == key_of(*one)
    assert key_of(*one) != key_of(*other)


def test_tools_and_targets_count(monkeypatch):
    one = key_of("a", tools=("amaranth",))
    assert one != key_of("a")
    monkeypatch.setattr(module, "version", lambda package: "another")
    assert key_of("a", tools=("amaranth",)) != one
    assert job_key(Job(("a",), dict), "trebuchet.bench.ecg:cycles") != key_of("a")


def test_files_count_by_contents(tmp_path):
    path, same = tmp_path / "a", tmp_path / "b"
    path.write_text("x")
    same.write_text("x")
    assert key_of(path) == key_of(same)
    same.write_text("y")
    assert key_of(path) != key_of(same)


def test_what_is_no_input_is_refused():
    with pytest.raises(TypeError, match="must be text, a netlist or a file, not <object"):
        key_of(object())


def test_the_harness_counts_without_comments(monkeypatch):
    one, hashes = harness_hash("trebuchet.bench.ltl"), {}

    def content_hash(path):
        return hashes.get(path.name, "same")

    monkeypatch.setattr(module, "content_hash", content_hash)
    before = harness_hash("trebuchet.bench.ltl")
    assert before != one
    for name in ("ltl.py", "build.py", "job.py"):
        monkeypatch.setitem(hashes, name, "changed")
        assert harness_hash("trebuchet.bench.ltl") != before
        monkeypatch.delitem(hashes, name)
    monkeypatch.setitem(hashes, "registers.py", "changed")  # gateware counts by its netlist
    assert harness_hash("trebuchet.bench.ltl") == before


def test_a_simulators_key(tmp_path, monkeypatch):
    source = Source("fabric", "top", {"top.v": "module top; endmodule\n"})
    one = key(source)
    assert key(dataclasses.replace(source)) == one
    assert key(dataclasses.replace(source, top="other")) != one
    assert key(dataclasses.replace(source, texts={"top.v": "module top;\nendmodule\n"})) != one
    file = tmp_path / "more.v"
    file.write_text("module more; endmodule\n")
    with_file = key(dataclasses.replace(source, files=(file,)))
    assert with_file != one
    file.write_text("module more; endmodule // a comment\n")
    assert key(dataclasses.replace(source, files=(file,))) == with_file
    assert harness_files()


def test_blocks_have_groups():
    for name in BLOCKS:
        assert GROUPS[f"{name}_clock"].dated
        assert not GROUPS["router_area_ecp5" if name == "router" else f"{name}_ecp5"].dated


def test_a_job_must_be_of_its_groups_kind(monkeypatch):
    group = dataclasses.replace(GROUPS["ltl"], dated=True)
    with pytest.raises(RuntimeError, match="ltl:cycles must return a Sampled, not Job"):
        group.job()
    assert issubclass(Sampled, Job)
