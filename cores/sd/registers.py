"""Registers of the SD host."""

from ..csr import Field, Register, RegisterBlock

__all__ = ["UNIT", "sd_block"]

#: A unit of the time-out, in cycles.
UNIT = 4096


def sd_block(clock_hz, delay=0):
    """Registers of a host in a clock domain of ``clock_hz``, with suitable reset values.

    ``delay``: the sample point, 0 to 3 cycles after the rising edge.
    """

    def half(bus_hz):
        return min(255, max(0, -(-clock_hz // (2 * bus_hz)) - 1))

    clocks = (
        Field("default", 0, 8, "cycles of half a bus clock less 1, default speed"),
        Field("high", 8, 8, "as default, after the card switched to high speed"),
        Field("sample", 16, 2, "cycles from the rising edge to the sample"),
    )
    timeout = min(0xFFFF, max(1, clock_hz // UNIT))
    state = (
        Field("ready", 0, 1, "a card can be used"),
        Field("high_capacity", 1, 1, "addressed by sectors: SDHC, SDXC"),
        Field("high_speed", 2, 1, "switched to high speed"),
        Field("repeats", 8, 8, "reads that were repeated; wraps"),
    )
    return RegisterBlock(
        "sd",
        (
            Register(
                "clocks", "rw", 18, "Bus clock and sample point.",
                half(25_000_000) | half(50_000_000) << 8 | delay << 16, clocks,
            ),
            Register(
                "timeout", "rw", 16, f"Time-out, in units of {UNIT} cycles.", timeout
            ),
            Register("state", "ro", 16, "The card.", fields=state),
        ),
        "SD host",
    )  # fmt: skip
