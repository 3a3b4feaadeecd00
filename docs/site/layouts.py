"""Shells of boards as pictures: services and roles of the plan, memory map."""

from ...boards import load_board
from ...soc.build import shell_config
from ...soc.map import MAIN_RAM, MemoryMap
from .diagrams import memory_map, shell_plan

__all__ = ["SHOWN", "pages"]

HEAD = """# Shell plans and memory maps

Computed from the board files: what the [plan](../plan.md) of a board puts into its shell, and where
its data lie in external memory. Sizes are not to scale. Addresses are the processor's; regions are
defined in `cores/shell_memory.py`.
"""
#: Boards whose layout is shown.
SHOWN = ("sim", "versa_ecp5", "ecpix5_cluster", "colorlight_i5")


def regions(board) -> list[tuple[str, int, int]]:
    """Return the regions of a board's external memory, with the CPU's half and what is free."""
    config = shell_config(board)
    found = [("CPU", MAIN_RAM, board.dram_bytes // 2)]
    at = MemoryMap(board.dram_bytes).base
    for region in config.memory:
        if region.size == 0:
            continue
        if region.base > at:
            found.append(("", at, region.base - at))
        found.append((region.name, region.base, region.size))
        at = region.end
    end = MAIN_RAM + board.dram_bytes
    return [*found, ("", at, end - at)] if at < end else found


def pages() -> dict[str, str]:
    """Return the page of shells and its pictures, by name."""
    text, found = [HEAD], {}
    for name in SHOWN:
        board = load_board(name)
        config = shell_config(board)
        services = [(s.port, s.framing, s.role or "") for s in config.plan.services]
        roles = [(entry.name, entry.instances) for entry in config.plan.roles]
        engines = [f"{e.place} {e.kind}" for e in config.plan.engines]
        found[f"reference/shell_{name}.svg"] = shell_plan(services, roles, engines)
        found[f"reference/memory_{name}.svg"] = memory_map(regions(board))
        text += [f"## {name}\n", f"{board.title}, {board.sessions} TCP sessions.\n"]
        text.append(f"![Services and roles of {name}](shell_{name}.svg)\n")
        text.append(f"![Memory map of {name}](memory_{name}.svg)\n")
    return found | {"reference/shells.md": "\n".join(text)}
