"""Colorlight i5 v7.0: the twin of :mod:`.colorlight_i9` with an LFE5U-25F and no processor.

Ethernet is the first port (0).
"""

from . import colorlight_i9, ecp5
from .flash import Flash


def _platform():
    from litex_boards.platforms import colorlight_i5

    return ecp5.area_options(colorlight_i5.Platform(board="i5", revision="7.0"))


BOARD = colorlight_i9.BOARD.variant(
    name="colorlight_i5",
    title="Colorlight i5 7.0",
    device="LFE5U-25F-6BG381C",
    sys_clk_hz=60_000_000,
    platform=_platform,
    cpu_variant="none",
    sessions=16,  # their records fit LUT RAM
    seed=1,
    router="patient",  # with the quick one seed 1 reaches 52 MHz
    flash=Flash(size=2 << 20, golden=(0, 1 << 20)),  # GigaDevice GD25Q16
    loader=("--board", "colorlight-i5"),
)
