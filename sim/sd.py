"""An SD host in Verilator with a card at its pins: commands in, status, data and cycles out.

::

    binary = build(sd_source(SdHost(50_000_000)))
    run = run_card(binary, image, ["ready", "r 0 64", "w 8 4"], gap=2, seed=3)

The harness (``sim/sd_harness``) compares all data with the card's file, checks the drive port's
rules, and stops at whatever the host must not do on the bus (``sim/harness/sd_card.h`` lists it).
"""

import json
import subprocess
from pathlib import Path

from ..models.errors import TrebuchetError
from .build import Source
from .flat import BEAT, FlatTop

__all__ = ["SdFault", "run_card", "sd_source"]

TOP = "trebuchet_sd"
HARNESS = Path(__file__).resolve().parent / "sd_harness"


class SdFault(TrebuchetError):
    """The host broke a rule of the bus or of the drive port, or data were wrong."""


class SdTop(FlatTop):
    """``dut``, an ``SdHost``, with a port for each signal of the harness."""

    def __init__(self, dut):
        super().__init__(dut)
        drive = dut.drive
        self.stream("cmd", drive.cmd, ("write", "lba", "count", "tag"), False)
        self.stream("wdata", drive.wdata, BEAT, False)
        self.stream("rdata", drive.rdata, BEAT, True)
        self.stream("done", drive.done, ("tag", "status"), True)
        for name in ("sectors", "ready"):
            self.port(name, getattr(drive, name), True)
        self.port("clk_o", dut.sd_clk, True)
        for name in ("cmd_o", "cmd_oe", "dat_o", "dat_oe"):
            self.port(name, getattr(dut, name), True)
        for name in ("cmd_i", "dat_i", "detect"):
            self.port(name, getattr(dut, name), False)
        self.port("csr_clocks", dut.csr.clocks, False)
        self.port("csr_timeout", dut.csr.timeout, False)
        self.port("csr_state", dut.csr.state, True)


def sd_source(host) -> Source:
    """The :class:`~trebuchet.sim.build.Source` of an ``SdHost`` of at most 64 bits."""
    if host.width > 64:
        raise ValueError(f"Simulated SD hosts must have at most 64 bits, not {host.width}")
    header = f"constexpr unsigned WIDTH = {host.width}, LINES = {host.lines};\n"
    texts = {"top.v": SdTop(host).verilog(TOP), "sd_ports.h": header}
    return Source("sd", TOP, texts, main=HARNESS / "sd.cpp")


def run_card(binary, image, operations, **options) -> list[dict]:
    """Run ``operations`` (lines, as ``sd_harness/sd.cpp`` says) on the card ``image``.

    ``options``: of the card and the bench, by the names in ``sd.cpp``. Returns what each printed;
    the image has afterwards what was written. Raises :class:`SdFault` for whatever went wrong.
    """
    arguments = [f"{name}={int(value)}" for name, value in options.items()]
    run = subprocess.run(
        [str(binary), str(image), *arguments],
        input="\n".join(operations) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    if run.returncode:
        fault = lines[-1].get("fault", "") if lines else ""
        at = f" in cycle {lines[-1]['cycle']}" if fault else ""
        raise SdFault(f"SD simulation failed{at}: {fault or run.stderr.strip()[-300:]}")
    return lines
