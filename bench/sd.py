"""The SD host: share of a 4-bit bus that a long read carries, and area on an ECP5.

The card is the model of ``sim/harness/sd_card.h`` at the pins. It answers a read after 100 clocks,
with a gap of 2 clocks between blocks, the least that cards may leave; one command reads 256 sectors
of high capacity at high speed. The share counts all cycles from the command to its completion, and
data bits alone, so CRCs, start and end bits, gaps, access time, and the command that ends the read
are its losses. A run in which a byte is wrong or a rule of the bus is broken counts for nothing.
"""

import random
import tempfile
from pathlib import Path

from ..cores.sd.host import SdHost
from ..models.paths import build_folder
from ..sim.build import build
from ..sim.sd import run_card, sd_source
from .area import area_job
from .job import Job, Values
from .tcp_tiny import AsVerilog

__all__ = ["area", "share"]

CLOCK_HZ = 50_000_000
SECTORS = 256
#: System cycles of a bus clock: the fastest that the host can make.
CYCLES = 2


def _host() -> SdHost:
    return SdHost(CLOCK_HZ)


def share() -> Job:
    """Return the measurement of the share of the bus."""
    source = sd_source(_host())

    def measure() -> Values:
        binary = build(source)
        with tempfile.TemporaryDirectory(dir=build_folder("verilator")) as folder:
            image = Path(folder) / "card.img"
            image.write_bytes(random.Random("sd").randbytes(2048 * 512))
            # Clocks: default and high speed alike, so that CMD6 changes nothing else.
            ran = run_card(
                binary,
                image,
                ["ready", f"r 3 {SECTORS}"],
                clocks=0,
                access=100,
                gap=2,
                slow_cycles=124,
            )
        read = ran[1]
        if read["status"] or read["bytes"] != SECTORS * 512:
            raise RuntimeError(f"the read must return {SECTORS * 512} bytes, not {read}")
        return {"sd.read_share": round(read["bytes"] * 2 * CYCLES / read["cycles"], 3)}

    return Job((source,), measure)


def area() -> Job:
    """Return the measurement of LUT4, as boards have the host: from Verilog."""
    return area_job(lambda: AsVerilog(_host()), {"sd.lut4": "LUT4"}, "ecp5")
