"""What UltraScale boards have in common: the parts that their ``attach`` is made of."""

from .schema import Capacity

__all__ = ["KU040", "VU9P", "base_x", "ddr4"]

#: What the FPGAs have (AMD DS890, tables 4 and 11). The Alveo U200's XCU200 is a VU9P (DS962).
KU040 = Capacity(family="xcu", lut6=242_400, ff=484_800, bram36=600, dsp=1_920)
VU9P = Capacity(family="xcup", lut6=1_182_240, ff=2_364_480, bram36=2_160, dsp=6_840)


def ddr4(soc, module, idelay_hz, **phy):
    """Give the SoC its DDR4 memory, a class of ``litedram.modules``, at four times its clock.

    ``phy`` are arguments of LiteDRAM's PHY. Of a larger memory the first ``dram_bytes`` are used.
    """
    from litedram.phy import usddrphy

    plus = soc.board.capacity.family == "xcup"
    soc.ddrphy = (usddrphy.USPDDRPHY if plus else usddrphy.USDDRPHY)(
        soc.platform.request("ddram"),
        memtype="DDR4",
        sys_clk_freq=soc.sys_clk_freq,
        iodelay_clk_freq=idelay_hz,
        **phy,
    )
    soc.add_sdram(
        "sdram",
        phy=soc.ddrphy,
        module=module(soc.sys_clk_freq, "1:4"),
        size=soc.board.dram_bytes,
        l2_cache_size=0,
        with_soc_interconnect=soc.board.dram_masks,
    )


def base_x(soc, phy, clock, lane, clock_hz=200e6):
    """Give the SoC gigabit Ethernet over a transceiver: 1000BASE-X, for an optical module.

    ``phy`` is LiteEth's class of it; ``clock`` its reference, pads or a signal, of ``clock_hz``;
    ``lane`` are the pads ``rxp``, ``rxn``, ``txp`` and ``txn``.
    """
    soc.ethphy = phy(clock, lane, soc.sys_clk_freq, refclk_freq=clock_hz)
    platform, made = soc.platform, soc.ethphy
    for clk, hertz in ((made.txoutclk, made.tx_clk_freq), (made.rxoutclk, made.rx_clk_freq)):
        platform.add_period_constraint(clk, 1e9 / hertz)
        platform.add_false_path_constraints(soc.crg.cd_sys.clk, clk)
    platform.add_false_path_constraints(made.txoutclk, made.rxoutclk)
