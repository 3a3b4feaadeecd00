"""Run the tools that load boards, and tell from their output why they failed."""

import re
import subprocess
import sys
from pathlib import Path

from ..models.errors import TrebuchetError

__all__ = ["explain_failure", "run_loader"]

#: IDCODEs that are read when nothing drives TDO.
SILENT = {0, 0xFFFFFFFF}
WRONG = re.compile(
    r"mismatch between target's idcode and \w+ idcode"
    r"(?:\s+bitstream has (0x[0-9a-f]+) hardware requires (0x[0-9a-f]+))?",
    re.IGNORECASE,
)
VIVADO = re.compile(r"no (\S+) on the JTAG cable, which has: ?([^\"\r\n]*)")
#: Other messages of openFPGALoader and Vivado -> what they mean, the first that is found.
MEANINGS = (
    (r"\bID ERR\b", "the FPGA refused the bitstream, which is for another FPGA (ID ERR)"),
    (
        r"unknown device with idcode:? ?(0x[0-9a-f]+)",
        "the cable works, but openFPGALoader does not support the device on it, IDCODE {}",
    ),
    (
        r"no devices? (?:found|detected)|found 0 devices",
        "the cable works, but no FPGA answers on JTAG; is the board powered and wired?",
    ),
    (
        r"LIBUSB_ERROR_ACCESS|permission denied|insufficient permissions|usb_open\(\) failed",
        "this user may not open its USB device; see the udev rules of openFPGALoader",
    ),
    (
        r"device not found|no (?:cable|usb devices?) found|fails? to open device|"
        r"couldn't open device|unable to open|no matching targets|no hardware targets",
        "no JTAG cable was found; is it plugged in, and not in use by another program?",
    ),
    (r"verif\w+ (?:failed|error)|error\w* .*verif", "what was read back differs"),
)


def run_loader(command: list, cwd: Path | None = None) -> tuple[bool, str]:
    """Run a tool whose output the user sees as it comes; return if it succeeded, and the output."""
    try:
        child = subprocess.Popen(
            [str(word) for word in command],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
        )
    except OSError as error:
        raise TrebuchetError(f"cannot run {command[0]}: {error.strerror}") from error
    said = bytearray()
    with child:
        assert child.stdout is not None
        while part := child.stdout.read(4096):
            said += part
            sys.stderr.write(part.decode("utf-8", "replace"))
            sys.stderr.flush()
    text = re.sub(r"\x1b\[[0-9;]*m", "", said.decode("utf-8", "replace"))
    # Some versions report a wrong IDCODE and end with exit code 0.
    return child.returncode == 0 and not WRONG.search(text), text


def explain_failure(text: str, otherwise: str) -> str:
    """Return why a loader failed, by its output; ``otherwise`` if that is empty."""
    if found := WRONG.search(text):
        bitstream, hardware = found.groups()
        if hardware and int(hardware, 16) in SILENT:
            return f"the FPGA does not answer on JTAG (IDCODE {hardware}); is the board powered?"
        codes = f": its IDCODE is {hardware}, and the bitstream is for {bitstream}"
        return (
            f"the board has another FPGA than the bitstream{codes if hardware else ''}; "
            "build for the board file of this FPGA"
        )
    if found := VIVADO.search(text):
        part, devices = found[1], found[2].strip()
        if devices:
            return f"the board has another FPGA: the JTAG cable has {devices}, not {part}"
        return "the cable works, but no FPGA answers on JTAG; is the board powered and wired?"
    for pattern, meaning in MEANINGS:
        if found := re.search(pattern, text, re.IGNORECASE):
            return meaning.format(*found.groups())
    lines = [line.strip() for line in re.split(r"[\r\n]+", text) if line.strip()]
    errors = [line for line in lines if re.search(r"error|fail", line, re.IGNORECASE)]
    return f"it reported: {errors[-1]}" if errors else otherwise
