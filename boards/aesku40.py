"""Avnet AES-KU040-DB-G: XCKU040, 1 GB of DDR4, gigabit Ethernet (a PHY chip on RGMII)."""

from . import ultrascale
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import avnet_aesku40

    return avnet_aesku40.Platform()


def _attach(soc):
    from litedram.modules import EDY4016A
    from liteeth.phy.usrgmii import LiteEthPHYRGMII

    from .ultrascale_clocks import Clocks

    request = soc.platform.request
    soc.crg = Clocks(
        soc, request("clk250"), 250e6, idelay_hz=200e6, reset=request("cpu_reset"), speed_grade=-1
    )
    ultrascale.ddr4(soc, EDY4016A, idelay_hz=200e6)
    # Delay elements reach 1.25 ns.
    soc.ethphy = LiteEthPHYRGMII(
        request("eth_clocks"), request("eth"), tx_delay=1e-9, rx_delay=1e-9
    )
    # LiteEth takes a reference of 300 MHz for granted.
    for special in soc.ethphy.rx._fragment.specials:
        for item in special.items:
            if item.name == "REFCLK_FREQUENCY":
                item.value = 200.0
    soc.platform.add_period_constraint(soc.ethphy.crg.cd_eth_rx.clk, 8.0)
    soc.platform.add_false_path_constraints(soc.crg.cd_sys.clk, soc.ethphy.crg.cd_eth_rx.clk)


BOARD = Board(
    name="aesku40",
    title="Avnet AES-KU040-DB-G",
    flow="vivado",
    device="xcku040-fbva676-1-c",
    sys_clk_hz=125_000_000,
    dram_bytes=1 << 30,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    capacity=ultrascale.KU040,
)
