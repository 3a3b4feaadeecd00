"""LiteX platform, clock and Ethernet PHY of the simulated board (:mod:`trebuchet.boards.sim`)."""

import os
from pathlib import Path

from liteeth.common import eth_phy_description
from litex.build.generic_platform import GenericPlatform
from litex.build.sim import common
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import ClockDomain, ClockSignal, ResetSignal, Signal

__all__ = ["ByteStreamPhy", "SimClock", "VerilogPlatform"]


class VerilogPlatform(GenericPlatform):
    """A platform whose build ends with Verilog: no tool is run.

    ``verilog_path`` is the file of the top module after the build; ``sources`` lists the others.
    """

    def __init__(self, top, io):
        super().__init__("verilator", io, name=top)
        self.verilog_path = None

    def get_verilog(self, fragment, **kwargs):
        return super().get_verilog(
            fragment, special_overrides=dict(common.sim_special_overrides), **kwargs
        )

    def build(self, fragment, build_dir, build_name=None, run=True, **kwargs):
        """Write ``build_dir``/NAME.v and the initial memory contents; return the name space."""
        if not hasattr(fragment, "comb"):
            fragment = fragment.get_fragment()
        self.finalize(fragment)
        path = Path(build_dir)
        path.mkdir(parents=True, exist_ok=True)
        here = os.getcwd()
        os.chdir(path)  # LiteX writes the memories' contents into the working folder
        try:
            output = self.get_verilog(fragment, name=self.name)
            self.verilog_path = path / f"{self.name}.v"
            output.write(f"{self.name}.v")
        finally:
            os.chdir(here)
        return output.ns


class SimClock(LiteXModule):
    """``sys_clk`` as it comes from the harness, ``sys_rst`` a cycle later.

    As an input the reset would be part of half the logic, and Verilator computes what depends on
    inputs anew in each half of a cycle: a simulation took half as long again.

    ``rst`` restarts the board from inside; the harness is told by the pin ``restarting``, if there
    is one, since what was on its way to or from the board is cut off.
    """

    def __init__(self, platform):
        self.rst = Signal()
        self.cd_sys = ClockDomain()
        self.cd_harness = ClockDomain(reset_less=True)
        clock = platform.request("sys_clk")
        self.comb += [self.cd_sys.clk.eq(clock), self.cd_harness.clk.eq(clock)]
        self.sync.harness += self.cd_sys.rst.eq(platform.request("sys_rst") | self.rst)
        restarting = platform.request("restarting", loose=True)
        if restarting is not None:
            self.comb += restarting.eq(self.cd_sys.rst)


class ByteStreamPhy(LiteXModule):
    """An Ethernet PHY that is a byte stream each way, with preamble and FCS, a byte a clock.

    Both sides may pause at any time, so no frame is lost for want of time, whatever the ratio
    of simulated to real speed.
    """

    dw = 8
    # No inter-frame gap: the harness needs none to find the frames' ends.
    integrated_ifg_inserter = True

    def __init__(self, pads):
        self.sink = stream.Endpoint(eth_phy_description(8))
        self.source = stream.Endpoint(eth_phy_description(8))
        self.cd_eth_rx = ClockDomain()
        self.cd_eth_tx = ClockDomain()
        for domain in (self.cd_eth_rx, self.cd_eth_tx):
            self.comb += [domain.clk.eq(ClockSignal("sys")), domain.rst.eq(ResetSignal("sys"))]
        self.comb += [
            pads.tx_valid.eq(self.sink.valid),
            pads.tx_data.eq(self.sink.data),
            pads.tx_last.eq(self.sink.last),
            self.sink.ready.eq(pads.tx_ready),
            self.source.valid.eq(pads.rx_valid),
            self.source.data.eq(pads.rx_data),
            self.source.last.eq(pads.rx_last),
            pads.rx_ready.eq(self.source.ready),
        ]
