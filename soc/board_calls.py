"""The functions of a board file are called here; what is wrong with them is told in one line."""

import traceback
from pathlib import Path

from litex.build.generic_platform import ConstraintError, GenericPlatform
from litex.soc.integration.soc import SoCError

from ..boards.faults import file_of, in_one_line
from ..models.ending import Terminated
from ..models.errors import TrebuchetError

__all__ = ["attach", "make_platform", "of_pll"]

#: Signals that a part of ``attach`` must have; the others are asked for by LiteX itself.
_SIGNALS = {
    "ethphy": ("dw",),
    "host_ethphy": ("dw",),
    "flash_pads": ("clk", "cs_n", "mosi", "miso"),
}


def make_platform(board):
    """The board's platform."""
    platform = _call(board, board.platform)
    if not isinstance(platform, GenericPlatform):
        raise TrebuchetError(
            f"board {board.name!r}: platform() must return a platform of LiteX, not {platform!r}"
        )
    device = str(getattr(platform, "device", None))
    if board.flow != "sim" and device.lower() != board.device.lower():
        raise TrebuchetError(
            f"board {board.name!r}: device is {board.device!r}, but platform() is for {device!r}; "
            "both must be the FPGA on the board"
        )
    return platform


def attach(board, soc):
    """Give ``soc`` the board's parts, and see that they are there."""
    _call(board, board.attach, soc)
    needed = {"crg": "clocks", "ethphy": "Ethernet", "sdram": "the external memory"}
    if board.bridge:
        needed["host_ethphy"] = "Ethernet of the host's port"
    if board.flash is not None:
        needed["flash_pads"] = "the flash"
    if board.multiboot == "pin":
        needed["programn"] = "the pin that pulls PROGRAMN"
    for name, what in needed.items():
        if not hasattr(soc, name):
            raise TrebuchetError(f"board {board.name!r}: attach gives no {name}: {what}")
        missing = [s for s in _SIGNALS.get(name, ()) if not hasattr(getattr(soc, name), s)]
        if missing:
            raise TrebuchetError(
                f"board {board.name!r}: {name} of attach has no {', '.join(missing)}: {what}"
            )
    there = _memory_bytes(soc.sdram)
    if there is not None and there < board.dram_bytes:
        raise TrebuchetError(
            f"board {board.name!r}: dram_bytes must be at most {there}, which the memory of attach "
            f"has, not {board.dram_bytes}"
        )


def _memory_bytes(sdram):
    """Bytes of the external memory, by its chips' geometry; None if LiteDRAM does not say."""
    settings = getattr(getattr(sdram, "controller", None), "settings", None)
    if settings is None:
        return None
    geometry, phy = settings.geom, settings.phy
    words = 1 << (geometry.bankbits + geometry.rowbits + geometry.colbits)
    return words * phy.nranks * phy.databits // 8


def of_pll(error):
    """An error is LiteX's about a PLL, from ``litex/soc/cores/clock``."""
    if not isinstance(error, (AssertionError, ValueError)):
        return False
    return "clock" in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts


def _call(board, function, *arguments):
    try:
        return function(*arguments)
    except (ConstraintError, SoCError, TrebuchetError, KeyboardInterrupt, Terminated):
        raise
    except BaseException as error:  # whatever a user's file does, sys.exit included
        if of_pll(error):
            raise
        said = in_one_line(error, file_of(function))
        raise TrebuchetError(f"board {board.name!r}: {said}") from error
