"""Trellis Board: LFE5UM5G-85F, 1 GB of DDR3 of which half is used, gigabit Ethernet, FT2232."""

from . import ecp5
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import trellisboard

    return ecp5.area_options(trellisboard.Platform())


def _attach(soc):
    from litedram.modules import MT41J256M16
    from litex_boards.targets.trellisboard import _CRGSDRAM

    soc.crg = _CRGSDRAM(soc.platform, soc.sys_clk_freq)
    ecp5.ddr3(soc, MT41J256M16)
    ecp5.rgmii(soc)


BOARD = Board(
    name="trellisboard",
    title="Trellis Board",
    flow="trellis",
    device="LFE5UM5G-85F-8BG756C",
    sys_clk_hz=50_000_000,
    dram_bytes=512 << 20,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    router="patient",  # the quick one has not been tried
    loader=("--board", "trellisboard"),
)
