"""LambdaConcept ECPIX-5 with the smaller FPGA, an LFE5UM5G-45F; see :mod:`.ecpix5`."""

import dataclasses

from . import ecp5, ecpix5


def _platform():
    from litex_boards.platforms import lambdaconcept_ecpix5

    return ecp5.area_options(lambdaconcept_ecpix5.Platform(device="45F"))


BOARD = dataclasses.replace(
    ecpix5.BOARD,
    name="ecpix5_45f",
    title="LambdaConcept ECPIX-5 45F",
    device="LFE5UM5G-45F-8BG554I",
    platform=_platform,
    counter_width=16,
    lut_ram=1024,  # block RAM is scarcer than LUTs
    programmable=False,
    active=False,
    inspect=False,
    udp_services=False,
    lut4_budget=ecp5.COMB["45F"],
)
