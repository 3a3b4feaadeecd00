"""LambdaConcept ECPIX-5 with the smaller FPGA, an LFE5UM5G-45F; see :mod:`.ecpix5`."""

from . import ecp5, ecpix5


def _platform():
    from litex_boards.platforms import lambdaconcept_ecpix5

    return ecp5.area_options(lambdaconcept_ecpix5.Platform(device="45F"))


BOARD = ecpix5.BOARD.variant(
    name="ecpix5_45f",
    title="LambdaConcept ECPIX-5 45F",
    device="LFE5UM5G-45F-8BG554I",
    platform=_platform,
    tcp="lean",
    udp_services=False,
)
