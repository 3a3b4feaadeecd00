"""Captures: layout from the register map, triggers, times, files of waves, invalid input."""

import pytest
from trebuchet.cores.probe.trace import trace_block
from trebuchet.models.capture import Capture, Layout, Trigger, cycles_of
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.plan import PlanError, load_plan
from trebuchet.models.probe_plan import ProbeSet
from trebuchet.models.register_map import read_map
from trebuchet.models.waves import gtkwave_list, surfer_commands, write_waves
from trebuchet.soc.csr_export import json_map


@pytest.fixture
def layout(tmp_path):
    block = trace_block((("tx__valid", 1), ("tcp__seq", 40), ("rx__valid", 1)), 16)
    (tmp_path / "registers.json").write_text(json_map([(block, 0x1000)]))
    return Layout.of(read_map(tmp_path))


def test_the_map_has_the_layout(layout):
    assert [(p.name, p.offset, p.width) for p in layout.probes] == [
        ("tx.valid", 0, 1),
        ("tcp.seq", 1, 40),
        ("rx.valid", 41, 1),
    ]
    assert (layout.depth, layout.stamp_width, layout.time_width, layout.words) == (16, 24, 48, 2)


def test_triggers(layout):
    assert layout.trigger(()) == Trigger()
    assert layout.trigger(["tx.valid:rise", "seq=0x10/0xf0"]) == Trigger(0x21, 0x1E1, 1)
    assert layout.trigger(["seq:change"]) == Trigger(0, 0, ((1 << 40) - 1) << 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("valid=1", "several probes end in 'valid'"),
        ("nothing=1", "there is no probe 'nothing'"),
        ("seq:rise", "rise is of a single bit"),
        ("tx.valid=2", "must be a number from 0 to 1"),
        ("tx.valid", "a trigger must be NAME=VALUE"),
    ],
)
def test_wrong_triggers(layout, text, message):
    with pytest.raises(TrebuchetError, match=message):
        layout.trigger([text])


def test_cycles_follow_from_stamps():
    cycles = [7, 16, 32, 33, 47]
    assert cycles_of([c % 16 for c in cycles], 4, 47) == cycles
    assert cycles_of([7], 4, 12) == [7]


def test_changes_of_a_capture(layout):
    capture = Capture(layout, ((5, 0b0), (9, 0b11)), 12, 9, 1000)
    assert list(capture.changes()) == [
        (5, {"tx.valid": 0, "tcp.seq": 0, "rx.valid": 0}),
        (9, {"tx.valid": 1, "tcp.seq": 1}),
    ]
    assert capture.value(layout.find("tcp.seq"), 12) == 1
    assert capture.seconds(5) == -0.004


def test_waves(tmp_path):
    widths = {("top", "a"): 1, ("top", "part", "b"): 4}
    changes = [(0, {("top", "a"): 0, ("top", "part", "b"): 3}), (5, {("top", "a"): 1})]
    write_waves(tmp_path / "w.vcd", widths, changes, 9)
    text = (tmp_path / "w.vcd").read_text()
    assert "$scope module part $end" in text
    assert "#5\n1s0\n#9" in text
    pylibfst = pytest.importorskip("pylibfst")
    write_waves(tmp_path / "w.fst", widths, changes, 9)
    reader = pylibfst.lib.fstReaderOpen(str(tmp_path / "w.fst").encode())
    assert pylibfst.lib.fstReaderGetVarCount(reader) == 2
    assert pylibfst.lib.fstReaderGetEndTime(reader) == 9
    pylibfst.lib.fstReaderClose(reader)
    assert "top.part.b[3:0]" in gtkwave_list(tmp_path / "w.fst", widths, 5)
    assert "variable_add top.part.b" in surfer_commands(widths, 5)
    with pytest.raises(TrebuchetError, match=r"\.fst or \.vcd"):
        write_waves(tmp_path / "w.txt", widths, changes, 9)


def test_probes_of_a_plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('[probes]\nsignals = ["tx.valid"]\ndepth = 64\n')
    assert load_plan(path).probes == ProbeSet(signals=("tx.valid",), depth=64)
    path.write_text('[probes]\nsignals = ["tx.valid"]\ndepth = 63\n')
    with pytest.raises(PlanError, match="power of two from 16 to 8192, not 63"):
        load_plan(path)
