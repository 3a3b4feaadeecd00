"""Boards of the vendor's flow: each is generated, and its constraints are what the board needs.

The shell is a placeholder, and no firmware is compiled: some seconds for a board.
"""

import re
from types import SimpleNamespace

import pytest
from litex.build.generic_platform import IOStandard, Pins, Subsignal
from soc_placeholder import PlaceholderShell
from trebuchet.boards import VENDOR, load_board
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import build as build_module
from trebuchet.soc.pins import check_xdc
from trebuchet.soc.place import Placement

#: Clocks by the end of their net's or port's name, with their periods in nanoseconds.
BASE_X = {"txoutclk": 8.0, "rxoutclk": 8.0}
CLOCKS = {
    "kcu105": {"clk125_p": 8.0, **BASE_X},
    "aesku40": {"clk250_p": 4.0, "eth_rx_clk": 8.0},
    "vcu118": {"clk125_p": 8.0, "qsfp_clk_p": 6.4, **BASE_X},
    "alveo_u200": {"clk3000_p": 3.333, "qsfp_clk_p": 6.4, **BASE_X},
}
#: Clocks between which no path is timed.
APART = {
    ("sys_clk", "clkin"),
    ("sys_clk", "txoutclk"),
    ("sys_clk", "rxoutclk"),
    ("txoutclk", "rxoutclk"),
}
GROUPS = {name: APART for name in VENDOR}
GROUPS["aesku40"] = {("sys_clk", "clkin"), ("sys_clk", "eth_rx_clk")}
QSFP = {"qsfp_control_resetl": 1, "qsfp_control_lpmode": 0}
#: Outputs that never change.
LEVELS = {
    "kcu105": {"sfp_tx_disable_n0": 1},
    "aesku40": {},
    "vcu118": {**QSFP, "qsfp_control_modsell": 0},
    # A reset of the clock generator would stop the card's clk300 as well.
    "alveo_u200": {**QSFP, "qsfp_control_modskll": 0, "qsfp_control_refclk_reset": 0},
}
#: Pins of the cages' oscillator of 156.25 MHz, Si570 (AMD UG1224; XDC of the Alveo U200).
REFERENCE = {"vcu118": ("W9", "W8"), "alveo_u200": ("M11", "M10")}
#: Bits of a whole bitstream of the largest FPGA here, the VU9P (AMD UG570, table 1-4).
LARGEST = 641_272_864
_BLOCK = re.compile(r"^# (\w+):(\d+)(?:\.(\w+))?\n((?:set_property .*\n)+)", re.MULTILINE)


class Project:
    """What LiteX wrote for a board."""

    def __init__(self, name, directory):
        self.name, self.board = name, load_board(name)
        with build_module.environment(directory):
            soc = build_module._build_soc(self.board, PlaceholderShell(), directory, software=False)
        self.placement = Placement(directory / "gateware", soc.platform.name, 125_000_000)
        self.verilog, self.xdc, self.tcl = (
            self.placement.path(suffix).read_text() for suffix in (".v", ".xdc", ".tcl")
        )

    def pins(self):
        """Of each resource the settings of its pins, in order: ``{"LOC": …, "IOSTANDARD": …}``."""
        found = {}
        for name, number, part, lines in _BLOCK.findall(self.xdc):
            settings = re.findall(r"^set_property (\w+) (\S+) ", lines, re.MULTILINE)
            found.setdefault((name, int(number), part or None), []).append(dict(settings))
        return found


#: By day the one that has its Ethernet from a chip.
BY_DAY = ("aesku40",)
TIERS = [pytest.param(name, marks=() if name in BY_DAY else pytest.mark.nightly) for name in VENDOR]


@pytest.fixture(scope="module", params=TIERS)
def project(request, tmp_path_factory):
    return Project(request.param, tmp_path_factory.mktemp(request.param))


def of_platform(platform):
    """Of each resource of a platform the pins, and the I/O standard or None."""
    for name, number, *items in platform.constraint_manager.available:
        parts = [item for item in items if isinstance(item, Subsignal)]
        shared = [item for item in items if not isinstance(item, Subsignal)]
        for part in parts or [SimpleNamespace(name=None, constraints=[])]:
            settings = [*shared, *part.constraints]
            pins = [p for item in settings if isinstance(item, Pins) for p in item.identifiers]
            standards = [item.name for item in settings if isinstance(item, IOStandard)]
            yield (name, number, part.name), pins, standards[0] if standards else None


def test_every_port_has_its_pin_and_standard(project):
    check_xdc(project.placement, project.board.device)
    bare = {key[0] for key, pins in project.pins().items() if "IOSTANDARD" not in pins[0]}
    transceiver = {"kcu105": {"sfp"}, "aesku40": set()}
    assert bare == transceiver.get(project.name, {"qsfp_clk", "qsfp_lane"})


def test_the_pins_are_those_of_the_platform(project):
    platform = {
        key: (pins, standard) for key, pins, standard in of_platform(project.board.platform())
    }
    found = project.pins()
    assert {key[0] for key in found} >= {"ddram", "serial"}
    for key, settings in found.items():
        pins, standard = platform[key]
        assert [each["LOC"] for each in settings] == pins, key
        assert {each.get("IOSTANDARD") for each in settings} == {standard}, key


def test_clocks_have_their_periods(project):
    found = re.findall(
        r"^create_clock -name (\S+) -period (\S+) \[get_(port|net)s (\S+)\]", project.xdc, re.M
    )
    assert len(found) == project.xdc.count("create_clock")
    wanted = CLOCKS[project.name]
    assert {
        end: float(t) for name, t, *_ in found for end in wanted if name.endswith(end)
    } == wanted
    assert len(found) == len(wanted)
    for name, _, kind, target in found:
        assert name == target
        declared = r"^wire\s+" if kind == "net" else r"^    input  wire\s+"
        assert re.search(rf"{declared}{name}\b", project.verilog, re.M), name


def test_paths_between_clocks_are_not_timed(project):
    groups = re.findall(
        r"^set_clock_groups -group \[get_clocks -include_generated_clocks -of \[get_nets (\S+)\]\] "
        r"-group \[get_clocks -include_generated_clocks -of \[get_nets (\S+)\]\] -asynchronous$",
        project.xdc,
        re.M,
    )
    assert len(groups) == project.xdc.count("set_clock_groups")
    wanted = GROUPS[project.name]
    assert len(groups) == len(wanted)
    for pair in wanted:
        assert [g for g in groups if all(map(str.endswith, g, pair))], pair
    for name in {name for pair in groups for name in pair}:
        assert re.search(rf"^wire\s+{name}\b", project.verilog, re.M), name
    # Synchronisers of LiteX and Migen.
    assert "set_false_path -quiet -through [get_nets -hierarchical -filter {mr_ff" in project.xdc
    assert "-filter {ars_ff1 == TRUE || ars_ff2 == TRUE}" in project.xdc


def test_control_pins_have_their_levels(project):
    found = re.findall(r"^assign ((?:q?sfp)\w+) = 1'd([01]);", project.verilog, re.M)
    assert {name: int(level) for name, level in found} == LEVELS[project.name]


def test_bitstreams_fall_back(project):
    """Those that lie in a flash: on errors, and when a load does not begin or end in time."""
    before, written, _ = project.tcl.partition("write_bitstream ")
    assert written
    set_ = dict(re.findall(r"^set_property BITSTREAM\.(\S+) (\S+) ", before, re.M))
    if project.board.flash is None:
        assert "CONFIG.TIMER_CFG" not in set_
        return
    assert set_["CONFIG.CONFIGFALLBACK"] == "ENABLE"
    assert re.fullmatch(r"0x[0-9a-f]{8}", set_["CONFIG.TIMER_CFG"])
    assert 1.2 * LARGEST < int(set_["CONFIG.TIMER_CFG"], 16) < 1 << 30


def test_the_key_is_not_cleared(project):
    """KEYCLEARB of STARTUPE3 is active low."""
    levels = re.findall(r"\.KEYCLEARB\s*\(1'd([01])\)", project.verilog)
    assert levels == ([] if project.board.flash is None else ["1"])


def test_the_cages_reference(project):
    """It has 156.25 MHz from power-up, and it is the only one."""
    pins = project.pins()
    found = tuple(
        pins[("qsfp_clk", 0, end)][0]["LOC"] for end in "pn" if ("qsfp_clk", 0, end) in pins
    )
    assert found == REFERENCE.get(project.name, ())


def test_the_alveos_cage_is_that_of_its_platform():
    """LiteX's platform has the cage under another name, with all of its lanes."""
    pins = {key: pins for key, pins, _ in of_platform(load_board("alveo_u200").platform())}
    for part in ("rxp", "rxn", "txp", "txn"):
        assert pins["qsfp_lane", 0, part] == pins["qsfp28", 0, part][:1]
    for part in ("modskll", "resetl", "lpmode", "refclk_reset"):
        assert pins["qsfp_control", 0, part] == pins["qsfp28", 0, part]


@pytest.mark.parametrize("name", VENDOR)
def test_a_board_is_as_its_platform(name):
    board = load_board(name)
    platform = board.platform()
    assert platform.device == board.device
    family = {"xcku040": "xcu", "xcvu9p": "xcup", "xcu200": "xcup"}
    assert board.capacity.family == family[board.device.partition("-")[0]]
    (ddram,) = (
        entry for entry in platform.constraint_manager.available if entry[:2] == ("ddram", 0)
    )
    assert board.dram_masks == any(getattr(part, "name", "") == "dm" for part in ddram[2:])


# --- what is refused ------------------------------------------------------------------------------


VERILOG = """\
module top (
    input  wire          a,
    (* dont_touch = "true" *)
    output reg     [1:0] b,
    input  wire          lane_rxn,
    input  wire          clk_p,
    input  wire          clk_n
);
IBUFDS_GTE4 IBUFDS_GTE4(
	// Inputs.
	.CEB (1'd0),
	.I   (clk_p),
	.IB  (clk_n),
	.O   (clk)
);
GTYE4_CHANNEL GTYE4_CHANNEL(
	.GTYRXN               (lane_rxn),
);
endmodule
"""
PLACES = {"a": "G10", "b[0]": "F10", "b[1]": "F9", "lane_rxn": "K1", "clk_p": "K5", "clk_n": "K6"}


def constraints(places, without=("lane_rxn", "clk_p", "clk_n")):
    """Constraints with these pins by port, and an I/O standard but for those ``without``."""
    return "".join(
        f"set_property {name} {value} [get_ports {{{port}}}]\n"
        for port, pin in places.items()
        for name, value in (("LOC", pin), ("IOSTANDARD", "LVCMOS18"))
        if name == "LOC" or port not in without
    )


def checked(folder, xdc, device="xcku040-ffva1156-2-e"):
    """What :func:`check_xdc` says about constraints of the module above; "" if nothing."""
    (folder / "top.v").write_text(VERILOG)
    (folder / "top.xdc").write_text(xdc)
    try:
        check_xdc(Placement(folder, "top", 125_000_000), device)
    except TrebuchetError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("a", "b", "device", "message"),
    [
        ("G10", "F10", "xcku040-ffva1156-2-e", ""),
        ("A1", "AP34", "xcku040-ffva1156-2-e", ""),
        ("BF46", "A2", "xcvu9p-flga2104-2-e", ""),
        ("G10", "G10", "xcku040-ffva1156-2-e", "pin G10 is used twice, by 'a' and by 'b[0]'"),
        ("G10", "A77", "xcku040-ffva1156-2-e", "'b[0]' is on pin 'A77', which the package of xc"),
        ("G10", "AR1", "xcku040-ffva1156-2-e", "'b[0]' is on pin 'AR1', which the package of "),
        ("I1", "A2", "xcvu9p-flga2104-2-e", "'a' is on pin 'I1', which "),
        ("77", "A2", "xcvu9p-flga2104-2-e", "'a' is on pin '77', which "),
        ("A1", "A2", "xcvu9p", "device must be like xcku040-ffva1156-2-e, not 'xcvu9p'"),
    ],
)
def test_pins_of_the_constraints(tmp_path, a, b, device, message):
    found = checked(tmp_path, constraints({**PLACES, "a": a, "b[0]": b}), device)
    assert found.startswith(message)
    assert bool(found) == bool(message)
    assert "\n" not in found


@pytest.mark.parametrize("port", PLACES)
def test_a_port_without_a_pin(tmp_path, port):
    places = {name: pin for name, pin in PLACES.items() if name != port}
    assert checked(tmp_path, constraints(places)) == (
        f"{port!r} has no pin; the board's platform must name one"
    )


@pytest.mark.parametrize("port", ["a", "b[1]"])
def test_a_pin_without_a_standard(tmp_path, port):
    xdc = constraints(PLACES, without=("lane_rxn", "clk_p", "clk_n", port))
    assert checked(tmp_path, xdc) == (
        f"{port!r} has no I/O standard; the board's platform must name that of its pin"
    )
