"""ECP5 FPGAs: what each has, and how large it is, by the name of the device."""

import re
from dataclasses import dataclass

__all__ = ["DEVICES", "Ecp5Device", "ecp5_device"]


@dataclass(frozen=True)
class Ecp5Device:
    """One size of ECP5.

    Attributes
    ----------
    lut4, bram, dsp : int
        LUTs, each with a flip-flop; block RAMs of 18 Kb; multipliers of 18 by 18 bits.
    columns, rows : int
        Tiles of the grid on which nextpnr places, I/O around it included.
    """

    lut4: int
    bram: int
    dsp: int
    columns: int
    rows: int


#: By size (Lattice FPGA-DS-02012, table 1.1; grids are Project Trellis's). A 12F is a 25F's die,
#: all of which open tools use.
DEVICES = {
    "12F": Ecp5Device(24_288, 56, 28, 73, 51),
    "25F": Ecp5Device(24_288, 56, 28, 73, 51),
    "45F": Ecp5Device(43_848, 108, 72, 91, 72),
    "85F": Ecp5Device(83_640, 208, 156, 127, 96),
}


def ecp5_device(name):
    """The :class:`Ecp5Device` of a device like ``LFE5U-45F-6BG381C``; None if it is no ECP5."""
    found = re.match(r"LFE5U(?:M|M5G)?-(\d+F)(?:-|$)", name.upper())
    return DEVICES.get(found[1]) if found else None
