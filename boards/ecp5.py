"""What ECP5 boards have in common: the parts that their ``platform`` and ``attach`` are made of."""

import copy

from .ecp5_devices import DEVICES
from .schema import HOST_DOMAINS

__all__ = ["COMB", "area_options", "ddr3", "host_rgmii", "rgmii", "rmii", "sdram"]

#: LUTs of each size, for files that state ``lut4_budget``.
COMB = {size: device.lut4 for size, device in DEVICES.items()}
#: Longest refresh of a DDR3 chip by its megabits, in ns (JESD79-3F, table 61).
_REFRESH_NS = {1024: 110, 2048: 160, 4096: 260, 8192: 350}


def area_options(platform):
    """``platform``, with comparisons mapped for area; call it on every platform of this flow.

    Comparisons with constants cost fewer LUTs outside the carry chains. LiteX has no option for
    this, and its tool description is where it keeps the options of Yosys.
    """
    platform.toolchain._synth_opts += "-cmp2softlogic "
    return platform


def ddr3_module(soc, chip):
    """LiteDRAM's description of a DDR3 chip of 16 bits, a class of ``litedram.modules``."""
    megabits = chip.nbanks * chip.nrows * chip.ncols * 16 >> 20
    timings = copy.copy(chip.speedgrade_timings.get("800", chip.speedgrade_timings["default"]))
    # LiteDRAM states tRFC in clocks of the chip's own speed, which is up to a fifth of the
    # bandwidth at our clock.
    timings.tRFC = (None, _REFRESH_NS[megabits])
    module = type(chip.__name__, (chip,), {"speedgrade_timings": {"default": timings}})
    return module(soc.sys_clk_freq, "1:2")


def ddr3_controller():
    """Settings of LiteDRAM's controller: its own but for the refresher."""
    from litedram.core.controller import ControllerSettings

    from .refresher import LateRefresher

    return ControllerSettings(refresh_cls=LateRefresher)


def stop_and_reset(soc):
    """Join the DDR3 PHY with the clock generator, which it stops while it is set up."""
    soc.comb += [
        soc.crg.stop.eq(soc.ddrphy.init.stop),
        soc.crg.reset.eq(soc.ddrphy.init.reset),
    ]


def ddr3(soc, chip, **phy):
    """Give the SoC its DDR3 memory: one chip of 16 bits, a class of ``litedram.modules``.

    The clock generator must have the signals ``stop`` and ``reset``, as those of litex_boards do.
    ``phy`` are arguments of LiteDRAM's PHY.
    """
    from litedram.phy import ECP5DDRPHY

    pads = soc.platform.request("ddram")
    soc.ddrphy = ECP5DDRPHY(pads, sys_clk_freq=soc.sys_clk_freq, **phy)
    stop_and_reset(soc)
    module = ddr3_module(soc, chip)
    soc.add_sdram(
        "sdram",
        phy=soc.ddrphy,
        module=module,
        l2_cache_size=0,
        controller_settings=ddr3_controller(),
    )
    return pads


def sdram(soc, chip, rate="1:1"):
    """Give the SoC its single-data-rate memory, a class of ``litedram.modules``.

    ``rate`` "1:2": at twice the system's clock, so that a chip of 16 bits has the 32 bits a cycle
    that the memory port needs at least.
    """
    from litedram.phy import GENSDRPHY, HalfRateGENSDRPHY

    phy = {"1:1": GENSDRPHY, "1:2": HalfRateGENSDRPHY}[rate]
    soc.sdrphy = phy(soc.platform.request("sdram"), soc.sys_clk_freq)
    soc.add_sdram(
        "sdram",
        phy=soc.sdrphy,
        module=chip(soc.sys_clk_freq, rate),
        l2_cache_size=0,
        with_soc_interconnect=soc.board.dram_masks,
    )


def rgmii(soc, number=0, **delays):
    """Give the SoC a gigabit PHY chip: port ``number`` of the board.

    ``delays`` are ``tx_delay`` and ``rx_delay`` in seconds, 2 ns each if left out; 0 where the PHY
    chip or the board delays clocks itself.
    """
    soc.ethphy = _rgmii(soc, number, delays)


def host_rgmii(soc, number=1, **delays):
    """Give the SoC of a bridge the host's gigabit PHY chip; arguments as for :func:`rgmii`.

    Call it after that: pins that the chips share, of reset and management, are the network's.
    """
    from litex.build.generic_platform import Subsignal
    from migen import ClockDomainsRenamer

    def kept(part):
        return not isinstance(part, Subsignal) or part.name not in ("rst_n", "mdc", "mdio")

    pins = soc.platform.constraint_manager
    pins.available = [
        tuple(filter(kept, resource)) if resource[:2] == ("eth", number) else resource
        for resource in pins.available
    ]
    soc.host_ethphy = ClockDomainsRenamer(HOST_DOMAINS)(_rgmii(soc, number, delays))


def _rgmii(soc, number, delays):
    from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII

    clock_pads = soc.platform.request("eth_clocks", number)
    pads = soc.platform.request("eth", number)
    phy = LiteEthPHYRGMII(clock_pads=clock_pads, pads=pads, **delays)
    # The PHY chip's receive clock is the transmit clock too.
    soc.platform.add_period_constraint(clock_pads.rx, 8.0)
    return phy


def rmii(soc):
    """Give the SoC a 100 Mb/s PHY chip that brings its own 50 MHz clock."""
    from liteeth.phy.rmii import LiteEthPHYRMII

    clock_pads = soc.platform.request("eth_clocks")
    soc.ethphy = LiteEthPHYRMII(clock_pads, soc.platform.request("eth"), refclk_cd=None)
    soc.platform.add_period_constraint(clock_pads.ref_clk, 20.0)
