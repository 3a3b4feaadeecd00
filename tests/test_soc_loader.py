"""Why a board could not be loaded: a wrong FPGA is no missing cable."""

import json

import pytest
from trebuchet.boards import load_board
from trebuchet.host.cli import app
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc import loader
from typer.testing import CliRunner

OTHERWISE = "is it connected?"
MISMATCH = "mismatch between target's idcode and bitstream idcode"
ANOTHER = "the board has another FPGA than the bitstream"
NO_CABLE = "no JTAG cable was found; is it plugged in, and not in use by another program?"
NO_FPGA = "the cable works, but no FPGA answers on JTAG; is the board powered and wired?"
FORBIDDEN = "this user may not open its USB device; see the udev rules of openFPGALoader"

#: What openFPGALoader 0.10 to 1.1 and Vivado print, and what is made of it.
SAID = [
    (
        f"Open file: DONE\nParse file: DONE\n{MISMATCH}\n\tbitstream has 0x41112043 hardware "
        "requires 0x41113043\nError: Failed to program FPGA: std::exception\n",
        f"{ANOTHER}: its IDCODE is 0x41113043, and the bitstream is for 0x41112043; build for the "
        "board file of this FPGA",
    ),
    (f"\x1b[31m{MISMATCH}\x1b[0m\n", f"{ANOTHER}; build for the board file of this FPGA"),
    ("Error: mismatch between target's idcode and fs idcode", f"{ANOTHER}; build for the board "),
    (
        f"{MISMATCH}\n\tbitstream has 0x41113043 hardware requires 0xffffffff\n",
        "the FPGA does not answer on JTAG (IDCODE 0xffffffff); is the board powered?",
    ),
    (
        "JTAG init failed with: Unknown device with IDCODE: 0x1100481b\n",
        "the cable works, but openFPGALoader does not support the device on it, IDCODE 0x1100481b",
    ),
    (
        "Fail\n        ID ERR\n",
        "the FPGA refused the bitstream, which is for another FPGA (ID ERR)",
    ),
    ("JTAG init failed with: no device found\n", NO_FPGA),
    ("found 0 devices\nError: no JTAG chain\n", NO_FPGA),
    ("unable to open ftdi device: -3 (device not found)\nJTAG init failed with: x\n", NO_CABLE),
    ("No USB devices found\nJTAG init failed with: No cable found\n", NO_CABLE),
    ("JTAG init failed with: DirtyJtag: fails to open device\n", NO_CABLE),
    ("unable to open ftdi device: -4 (usb_open() failed)\n", FORBIDDEN),
    ("libusb: LIBUSB_ERROR_ACCESS\nunable to open ftdi device\n", FORBIDDEN),
    ("ERROR: [Labtools 27-2269] No devices detected on target localhost:3121", NO_FPGA),
    ("ERROR: [Labtoolstcl 44-199] No matching targets found on connected servers", NO_CABLE),
    (
        "no xcku040 on the JTAG cable, which has: xc7a35t_0\n    while executing",
        "the board has another FPGA: the JTAG cable has xc7a35t_0, not xcku040",
    ),
    ("no xcku040 on the JTAG cable, which has: \n", NO_FPGA),
    ("Loading: 10 %\rLoading: 20 %\rError: Timeout!\n", "it reported: Error: Timeout!"),
    ("", OTHERWISE),
    ("Loading: 10 %\n", OTHERWISE),
]


@pytest.mark.parametrize(("said", "reason"), SAID)
def test_output_is_explained(said, reason):
    found = loader.explain_failure(loader.re.sub("\x1b.[0-9]*m", "", said), OTHERWISE)
    assert found.startswith(reason)
    assert "\n" not in found


def invoke(tmp_path, monkeypatch, command, name, script):
    """Run a command with a stand-in for the loader."""
    tool = tmp_path / ("vivado" if load_board(name).flow == "vivado" else "openFPGALoader")
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    bitstream = tmp_path / "top.bit"
    bitstream.write_bytes(bytes(1000))
    bitstream.with_suffix(".mcs").touch()
    found = {"board": name, "device": load_board(name).device, "bitstream": str(bitstream)}
    (tmp_path / "report.json").write_text(json.dumps(found))
    result = CliRunner().invoke(app, [command, name, "--output", str(tmp_path)])
    assert isinstance(result.exception, TrebuchetError), result.output
    return str(result.exception), result.output


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize(("command", "name"), [("load", "versa_ecp5"), ("flash", "ulx3s")])
def test_a_wrong_idcode_is_no_missing_cable(tmp_path, monkeypatch, command, name, code):
    text = f"{MISMATCH}\\n\\tbitstream has 0x41111043 hardware requires 0x41113043\\n"
    script = f'printf "{text}"; exit {code}'
    message, output = invoke(tmp_path, monkeypatch, command, name, script)
    assert f"{ANOTHER}: its IDCODE is 0x41113043, and the bitstream is for 0x41111043" in message
    assert "cable" not in message
    assert "connected" not in message
    assert MISMATCH in output, "the tool's own output is still there"


@pytest.mark.parametrize("command", ["load", "flash"])
def test_vivado_s_wrong_part_is_named(tmp_path, monkeypatch, command):
    script = 'echo "no xcku040 on the JTAG cable, which has: xc7a35t_0" >&2; exit 1'
    message, _ = invoke(tmp_path, monkeypatch, command, "kcu105", script)
    assert message.endswith("the board has another FPGA: the JTAG cable has xc7a35t_0, not xcku040")
