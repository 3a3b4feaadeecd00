"""Registers as pages: a table and a picture of the address map for each register block.

Blocks are those of a shell with peers, those that modules of `cores/` define, and role slots.
"""

from collections.abc import Iterator
from dataclasses import replace

from ...boards.sim import BOARD
from ...cores.csr import Register, RegisterBlock
from ...cores.roles.catalog import role_names, slot_block
from ...cores.shell import Shell
from ...models.plan import ServiceEntry
from ...soc.build import shell_config
from ...soc.csr_export import block_size, register_offsets, register_words
from .diagrams import register_map
from .modules import modules
from .pages import ORPHAN

__all__ = ["blocks", "pages", "register_pages"]

HEAD = """# Registers

Registers are declared once, in the cores. From that follow the gateware, the C headers of the
firmware, `registers.json` and `registers.svd` of each build, and these pages. Base addresses depend
on what is built in: see `csr.csv` of the build.

| access | meaning |
|---|---|
| ro | read only: the current value |
| rw | the value that was written last |
| stb | writing it is an event; reads as 0 |
| w1c | pending bits; writing 1 clears a bit |

| block | registers | what |
|---|---|---|"""


def blocks() -> dict[str, RegisterBlock]:
    """Return the register blocks by name: of the shell with peers, of roles, and beside it."""
    web = ServiceEntry(port=8000, framing="web")
    plan = replace(BOARD.plan, services=(*BOARD.plan.services, web))
    board = BOARD.variant(peers=1, bridge=False, plan=plan)
    shell = Shell(shell_config(board, check=False))
    found = {}
    for name, member in shell.signature.members.items():
        if name.startswith("csr_"):
            found[name.removeprefix("csr_")] = member.signature.block
    slots = {f"role_{name}": slot_block(name) for name in role_names()}
    named = {entry.name for entry in board.plan.roles}
    found = {name: block for name, block in found.items() if name not in named}
    for module in modules():
        for each in vars(module).values():
            if isinstance(each, RegisterBlock) and f".roles.{each.name}." not in module.__name__:
                found.setdefault(each.name, each)
    return dict(sorted(found.items())) | slots


def register_pages() -> dict[str, str]:
    """Return the page of each register block, from the top, by the block's name."""
    found = {name: f"/reference/registers/{name}" for name in blocks()}
    # A role's own registers are those of its slot, behind the standard ones.
    slots = {block.name: found[name] for name, block in blocks().items()}
    roles = {name.removeprefix("role_"): where for name, where in found.items()}
    return roles | slots | found


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<").replace("*", "\\*")


def _rows(block: RegisterBlock) -> Iterator[str]:
    offsets = register_offsets(block)
    for register in block.registers:
        reset = f"{register.reset:#x}" if register.access == "rw" else ""
        where = f"0x{offsets[register.name]:03x}"
        said = _cell(register.description)
        cells = (where, f"`{register.name}`", register.access, register.width, reset, said)
        yield f"| {' | '.join(map(str, cells))} |"
        for field in register.fields:
            last = field.offset + field.width - 1
            bits = str(field.offset) if field.width == 1 else f"{last}:{field.offset}"
            yield f"| | `.{field.name}` | | {bits} | | {_cell(field.description)} |"


def words(block: RegisterBlock) -> list[tuple[str, Register, int, int]]:
    """Return name, register, lowest bit and width of each word of 32 bits, in order."""
    return [(n, r, low, width) for r in block.registers for n, low, width in register_words(r)]


def _page(name: str, block: RegisterBlock) -> Iterator[str]:
    yield from (ORPHAN, f"# {name}", "", f"{block.description or block.name}.", "")
    yield f"{len(block.registers)} registers, {block_size(block)} bytes."
    yield "Offsets are in bytes from the block's base address; a register of more than 32 bits"
    yield "takes two words, the low one first."
    yield from ("", "| offset | register | access | bits | reset | meaning |")
    yield "|---|---|---|---|---|---|"
    yield from _rows(block)
    yield from ("", f"![Address map of {name}](registers_{name}.svg)", "")


def pages() -> dict[str, str]:
    """Return the pages of the register blocks and the pictures on them, by name."""
    found = blocks()
    index, result = [HEAD], {}
    for name, block in found.items():
        cells = (f"[{name}]({name}.md)", str(len(block.registers)), _cell(block.description))
        index.append(f"| {' | '.join(cells)} |")
        result[f"reference/registers/{name}.md"] = "\n".join(_page(name, block)) + "\n"
        result[f"reference/registers/registers_{name}.svg"] = register_map(words(block))
    return result | {"reference/registers/index.md": "\n".join([*index, ""])}
