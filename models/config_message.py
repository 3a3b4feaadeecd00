"""Configuration messages (distributed-fpga-framework, 3.2.2) from what a build leaves.

The form is that of ``docs/firmware-manage.md``: sizes; for each core the address of its registers,
and 0 twice, since the board chooses where operands and results lie; an image.
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from .errors import TrebuchetError
from .smp_framing import TYPE_CONFIGURATION

__all__ = [
    "benchmark_message",
    "configuration_message",
    "cores_of_build",
    "cores_of_listing",
    "slots_named",
]

#: Registers that only the slot of a role has.
_OF_SLOT = {"operand_addr", "result_room", "result_status", "hangs"}
_LISTED = re.compile(r"^([a-z][a-z0-9_]*) at 0x([0-9a-f]{8}): ", re.MULTILINE)


def configuration_message(
    cores: Iterable[int], image: bytes = b"", input_size: int = 0, output_size: int = 0
) -> bytes:
    """The whole message; sizes in bytes, 0: any."""
    controls = list(cores)
    payload = struct.pack("<III", input_size, output_size, len(controls))
    payload += b"".join(struct.pack("<III", control, 0, 0) for control in controls) + image
    return struct.pack("<B3xI", TYPE_CONFIGURATION, len(payload)) + payload


def benchmark_message(delay: int, input_size: int = 0, output_size: int = 0) -> bytes:
    """The benchmarking configuration (4.2.2); ``delay`` in microseconds."""
    return configuration_message((), struct.pack("<I", delay), input_size, output_size)


def cores_of_build(path: Path) -> dict[str, int]:
    """Name and address of each role slot, of a build's folder or its ``registers.json``.

    Raises :class:`TrebuchetError` if there is none.
    """
    file = path / "registers.json" if path.is_dir() else path
    try:
        blocks = json.loads(file.read_text())["blocks"]
        slots = {
            str(name): int(block["base"])
            for name, block in blocks.items()
            if block["registers"].keys() >= _OF_SLOT
        }
    except OSError as error:
        raise TrebuchetError(
            f"{path} is no build with registers: {error.strerror}; make one: trebuchet build BOARD"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TrebuchetError(f"{file} does not list registers, as a build does") from error
    return slots


def cores_of_listing(text: str) -> dict[str, int]:
    """The same, from what a board's command ``role`` says."""
    return {name: int(base, 16) for name, base in _LISTED.findall(text)}


def slots_named(slots: Mapping[str, int], wanted: Iterable[str]) -> list[int]:
    """Addresses of the slots of the roles ``wanted``, every instance of each."""
    found = []
    for name in wanted:
        own = [base for slot, base in slots.items() if re.sub(r"_\d+$", "", slot) == name]
        own = own or [base for slot, base in slots.items() if slot == name]
        if not own:
            there = ", ".join(slots) or "none"
            raise TrebuchetError(f"there is no role {name!r}; there are: {there}")
        found += own
    return found
