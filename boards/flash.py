"""What a board's SPI flash holds, and where."""

import re
from dataclasses import dataclass

__all__ = ["SECTOR", "Flash", "flash_layout"]

#: Bytes that are erased together (command 20h).
SECTOR = 4096
#: With commands whose addresses have three bytes, and with those that have four.
LARGEST, LARGEST_WIDE = 1 << 24, 1 << 28
#: Where FPGAs can start a bitstream from.
BITSTREAM_ALIGNMENT = 1 << 16
#: Two copies of the configuration block, each in a sector of its own.
CONFIG_BYTES = 2 * SECTOR
#: Room for a bitstream of any ECP5: an 85F's has 1.9 MiB, uncompressed.
ECP5_BITSTREAM = 2 << 20
#: Room for a firmware, twice as large as any board's ROM.
FIRMWARE_BYTES = 512 << 10


@dataclass(frozen=True, kw_only=True)
class Flash:
    """A serial NOR flash and its parts, each ``(offset, bytes)``; ``(0, 0)`` for none.

    Attributes
    ----------
    size : int
        Its bytes, a power of two. Larger ones than :data:`LARGEST` are for flow ``vivado``: they
        are read, written and erased by the commands with addresses of four bytes.
    golden : tuple
        The bitstream that the FPGA starts with. Nothing on the board ever writes here.
    bitstream : tuple
        Slot of an application bitstream, from a multiple of 64 KiB on.
    firmware : tuple
        Slot of an application firmware. The last sector of a slot is for the image's header.
    config : tuple
        The two copies of the configuration block, :data:`CONFIG_BYTES`.
    golden_firmware : tuple
        Slot of the golden firmware of a board whose firmware is in external memory. Nothing on the
        board ever writes here.
    max_hz : int
        Fastest serial clock for the plain read command (03h).
    part : str
        What Vivado calls it (``get_cfgmem_parts``), for flow ``vivado`` only.
    """

    size: int
    golden: tuple[int, int] = (0, 0)
    bitstream: tuple[int, int] = (0, 0)
    firmware: tuple[int, int] = (0, 0)
    config: tuple[int, int] = (0, 0)
    golden_firmware: tuple[int, int] = (0, 0)
    max_hz: int = 25_000_000
    part: str = ""

    @property
    def parts(self):
        """The parts by name, without those that are empty."""
        names = ("golden", "bitstream", "firmware", "config", "golden_firmware")
        return {name: getattr(self, name) for name in names if getattr(self, name) != (0, 0)}

    def half_period(self, sys_clk_hz):
        """Cycles of each half of a serial clock that is no faster than the flash takes."""
        return max(1, -(-sys_clk_hz // (2 * self.max_hz)))

    def faults(self, vivado=False):
        """``(field, what it must be, its value)`` of everything that is wrong.

        ``vivado``: addresses may have four bytes, and the part must be named.
        """
        size, largest = self.size, LARGEST_WIDE if vivado else LARGEST
        named = isinstance(self.part, str) and re.fullmatch(r"[\w.-]+", self.part, re.ASCII)
        if not named if vivado else self.part != "":
            yield "part", "Vivado's name of the flash" if vivado else "empty", self.part
        if type(size) is not int or not 1 << 16 <= size <= largest or size & (size - 1):
            yield "size", f"a power of two from 65536 to {largest}", size
            return
        if type(self.max_hz) is not int or not 100_000 <= self.max_hz <= 200_000_000:
            yield "max_hz", "an integer from 100000 to 200000000", self.max_hz
        end = {}
        for name, part in self.parts.items():
            if not _is_part(part):
                yield name, "(offset, bytes)", part
                return
            offset, length = part
            if offset % SECTOR or length % SECTOR or length == 0 or offset + length > size:
                yield name, f"whole sectors of {SECTOR} bytes within the flash", part
            end[name] = (offset, offset + length)
        if self.config != (0, 0) and self.config[1] != CONFIG_BYTES:
            yield "config", f"{CONFIG_BYTES} bytes", self.config
        for name in ("bitstream", "firmware", "golden_firmware"):
            if name in end and self.parts[name][1] < 2 * SECTOR:
                yield name, "two sectors or more", self.parts[name]
        if "bitstream" in end and self.bitstream[0] % BITSTREAM_ALIGNMENT:
            yield "bitstream", f"at a multiple of {BITSTREAM_ALIGNMENT}", self.bitstream
        ordered = sorted(end, key=lambda name: end[name])
        for before, after in zip(ordered, ordered[1:], strict=False):
            if end[after][0] < end[before][1]:
                yield (
                    after,
                    f"behind {before}, which ends at {end[before][1]:#x}",
                    self.parts[after],
                )


def flash_layout(
    size, start=0, bitstream_bytes=ECP5_BITSTREAM, with_golden_firmware=False, **others
):
    """The usual :class:`Flash` of ``size`` bytes: from ``start`` on, one part behind the other.

    First the golden bitstream and the application's, with ``bitstream_bytes`` for each; then the
    firmware and the configuration, and ``with_golden_firmware`` that, at a multiple of 64 KiB.
    ``start`` is what lies below in bytes, like a bootloader; ``others`` are fields of
    :class:`Flash`, also in the place of these (``bitstream=(0, 0)`` where nothing could load the
    application's; its room stays free). What does not fit, the board that it is given to refuses.
    """
    application = start + bitstream_bytes
    firmware = application + bitstream_bytes
    parts = {
        "golden": (start, bitstream_bytes),
        "bitstream": (application, bitstream_bytes),
        "firmware": (firmware, FIRMWARE_BYTES),
        "config": (firmware + FIRMWARE_BYTES, CONFIG_BYTES),
    }
    if with_golden_firmware:
        at = firmware + FIRMWARE_BYTES + BITSTREAM_ALIGNMENT
        parts["golden_firmware"] = (at, FIRMWARE_BYTES)
    return Flash(size=size, **parts | others)


def _is_part(part):
    return (
        isinstance(part, tuple)
        and len(part) == 2
        and all(type(value) is int and value >= 0 for value in part)
    )
