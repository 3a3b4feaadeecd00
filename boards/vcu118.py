"""AMD VCU118: XCVU9P, 2 GB of DDR4 (1 GiB is used), gigabit Ethernet (1000BASE-X).

The line is lane 1 of QSFP cage 1, for an SFP module in an adapter (QSA).
"""

from . import ultrascale
from .schema import Board


def _platform():
    from litex.build.generic_platform import IOStandard, Pins, Subsignal
    from litex_boards.platforms import xilinx_vcu118

    platform = xilinx_vcu118.Platform()
    lane = [("rxp", "Y2"), ("rxn", "Y1"), ("txp", "V7"), ("txn", "V6")]
    control = [("resetl", "BA22"), ("modsell", "AM21"), ("lpmode", "AN21")]
    platform.add_extension(
        [
            ("qsfp_clk", 0, Subsignal("p", Pins("W9")), Subsignal("n", Pins("W8"))),
            ("qsfp_lane", 0, *(Subsignal(name, Pins(pin)) for name, pin in lane)),
            (
                "qsfp",
                0,
                *(Subsignal(name, Pins(pin)) for name, pin in control),
                IOStandard("LVCMOS18"),
            ),
        ]
    )
    return platform


def _attach(soc):
    from litedram.modules import EDY4016A

    from .ultrascale_clocks import Clocks

    request = soc.platform.request
    soc.crg = Clocks(soc, request("clk125"), 125e6, idelay_hz=500e6, reset=request("cpu_reset"))
    ultrascale.ddr4(soc, EDY4016A, idelay_hz=500e6)
    ultrascale.qsfp_base_x(soc)


BOARD = Board(
    name="vcu118",
    title="AMD Virtex UltraScale+ VCU118",
    flow="vivado",
    device="xcvu9p-flga2104-2l-e",
    sys_clk_hz=125_000_000,
    dram_bytes=1 << 30,
    platform=_platform,
    attach=_attach,
    data_width=64,
    active=True,
    inspect=True,
    capacity=ultrascale.VU9P,
)
