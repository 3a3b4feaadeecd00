"""Cores that a configuration message names (distributed-fpga-framework, 3.2.2): slots of roles.

A core is named by the address of its registers, which a build leaves and a board's firmware lists.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from .errors import TrebuchetError
from .role_folders import role_of_instance

__all__ = ["cores_of_build", "cores_of_listing", "slots_named"]

#: Registers that only the slot of a role has.
_OF_SLOT = {"operand_addr", "result_room", "result_status", "hangs"}
_LISTED = re.compile(r"^([a-z][a-z0-9_]*) at 0x([0-9a-f]{8}): ", re.MULTILINE)


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
        own = [base for slot, base in slots.items() if role_of_instance(slot) == name]
        own = own or [base for slot, base in slots.items() if slot == name]
        if not own:
            there = ", ".join(slots) or "none"
            raise TrebuchetError(f"there is no role {name!r}; there are: {there}")
        found += own
    return found
