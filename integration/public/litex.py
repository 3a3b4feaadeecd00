"""Trebuchet's cores as LiteX modules.

>>> from trebuchet.litex import TrebuchetTcp
>>> self.tcp = TrebuchetTcp(platform, sys_clk_freq, ports=[7], ip="192.168.1.50")
>>> self.bus.add_master("tcp", master=self.tcp.bus)
"""

from trebuchet.integration.modules import (
    TrebuchetBridge,
    TrebuchetCore,
    TrebuchetEcg,
    TrebuchetLtl,
    TrebuchetMac,
    TrebuchetMatmul,
    TrebuchetRouter,
    TrebuchetTcp,
)

__all__ = [
    "TrebuchetBridge",
    "TrebuchetCore",
    "TrebuchetEcg",
    "TrebuchetLtl",
    "TrebuchetMac",
    "TrebuchetMatmul",
    "TrebuchetRouter",
    "TrebuchetTcp",
]
