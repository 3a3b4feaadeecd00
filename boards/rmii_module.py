"""The LAN8720 module that is sold for a few dollars, on a header of a board without Ethernet."""

__all__ = ["lan8720"]


def lan8720(ref_clk, rx_data, crs_dv, tx_data, tx_en):
    """LiteX's description of the module's signals, each a pin's name (two for ``…_data``).

    The module brings the 50 MHz clock (pin ``nINT/RETCLK``). Its ``MDIO`` and ``MDC`` stay open: it
    comes up with automatic negotiation.
    """
    from litex.build.generic_platform import IOStandard, Pins, Subsignal

    level = IOStandard("LVCMOS33")
    return [
        ("eth_clocks", 0, Subsignal("ref_clk", Pins(ref_clk)), level),
        (
            "eth",
            0,
            Subsignal("rx_data", Pins(rx_data)),
            Subsignal("crs_dv", Pins(crs_dv)),
            Subsignal("tx_en", Pins(tx_en)),
            Subsignal("tx_data", Pins(tx_data)),
            level,
        ),
    ]
