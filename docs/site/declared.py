"""Layouts and register blocks that a module of `cores/` declares, for its data sheet."""

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType

from amaranth.hdl import Shape
from amaranth.lib import data

from ...cores.csr import RegisterBlock
from .rst import heading, list_table, literal

__all__ = ["declared"]


def _assigned(module: ModuleType) -> list[str]:
    """Return the names that a module assigns at its top, but for those with a comment `#:`."""
    source = inspect.getsource(module)
    lines = source.splitlines()
    names = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and not lines[node.lineno - 2].startswith("#:"):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


def _fields(layout: data.Layout) -> Iterator[str]:
    rows = []
    for name, field in layout:
        width = Shape.cast(field.shape).width
        last = field.offset + width - 1
        bits = f"{last}:{field.offset}" if width > 1 else str(field.offset) if width else ""
        rows.append([literal(str(name)), bits, str(width)])
    yield from list_table(["field", "bits", "width"], rows)


def declared(module: ModuleType, registers: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a section; none if there is nothing.

    ``registers``: page of each register block, by the block's name.
    """
    found = [(name, getattr(module, name)) for name in _assigned(module)]
    kinds = (data.Layout, RegisterBlock)
    found = [(name, each) for name, each in found if isinstance(each, kinds)]
    if found:
        yield from heading("Layouts and registers", "-")
    for name, each in found:
        yield from (f".. py:data:: {module.__name__}.{name}", "")
        if isinstance(each, RegisterBlock):
            lines = [f"Register block: :doc:`{each.name} <{registers[each.name]}>`.", ""]
        else:
            lines = [f"{Shape.cast(each).width} bits.", "", *_fields(each)]
        yield from (f"   {line}".rstrip() for line in lines)
        yield ""
