"""AMD VCU118: XCVU9P, 2 GB of DDR4 (1 GiB is used), gigabit Ethernet (1000BASE-X).

The line is lane 1 of QSFP cage 1, for an SFP module in an adapter: what LiteEth has for these
transceivers. Its 10GBASE-R for them is the transceiver alone, without 64b/66b coding.
"""

from . import ultrascale
from .presets import ONE_ECG
from .schema import Board


def _platform():
    from litex_boards.platforms import xilinx_vcu118

    return ultrascale.add_qsfp(  # LiteX's platform leaves the cages out (AMD UG1224)
        xilinx_vcu118.Platform(),
        clk=("W9", "W8"),
        lane=("Y2", "Y1", "V7", "V6"),
        control={"modsell": "AM21", "resetl": "BA22", "lpmode": "AN21"},
        standard="LVCMOS18",
    )


def _attach(soc):
    from litedram.modules import EDY4016A

    from .ultrascale_clocks import Clocks

    request = soc.platform.request
    soc.crg = Clocks(soc, request("clk125"), 125e6, idelay_hz=500e6, reset=request("cpu_reset"))
    ultrascale.ddr4(soc, EDY4016A, idelay_hz=500e6)
    ultrascale.qsfp_base_x(soc, modsell=0, resetl=1, lpmode=0)
    ultrascale.flash(soc)


BOARD = Board(
    name="vcu118",
    title="AMD Virtex UltraScale+ VCU118",
    flow="vivado",
    device="xcvu9p-flga2104-2-e",
    sys_clk_hz=125_000_000,
    dram_bytes=1 << 30,
    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
    data_width=64,
    flash=ultrascale.mt25qu01g(),
    multiboot="icap",
    capacity=ultrascale.VU9P,
)
