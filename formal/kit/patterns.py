"""Patterns of Python text that are found in, and replaced in, the syntax tree of a module.

A pattern is an expression, or one or more consecutive statements, elements of a list or a tuple,
arguments of a call, or entries of a dictionary. It matches a part of a module that has the same
syntax tree, so line breaks, parentheses and comments do not matter.

Attributes, keywords, constants and global names must be the same. Names of local variables need
not be: a name in the pattern matches one local variable, the same in all places, and different
names match different variables. ``self``, ``cls`` and ``m``, names that the module defines or
imports, and builtins match only themselves.

===================== ==========================================================================
``...``               any expression; among statements, elements or arguments any number of them
``with m.If(a):``     a header without a body: any body, and any ``else``
``b & c``             also in ``a & b & c``; the same holds for ``|``, ``^``, ``+``, ``and``, ``or``
===================== ==========================================================================

In the text that replaces a match, the same names mean the variables that were matched, and each
``...`` what the pattern's ``...`` of the same position has matched.
"""

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field

from .scopes import Source

__all__ = [
    "Found",
    "Hole",
    "Match",
    "Matcher",
    "Pattern",
    "chain",
    "header",
    "is_hole",
    "matches",
    "parsed",
    "parts_of",
]

CHAINS = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Add)
#: Fields of nodes that are not compared.
IGNORED = ("ctx", "type_comment", "kind", "type_params")


class Entry(ast.AST):
    """An entry of a dictionary display; ``key`` is ``None`` in ``**value``."""

    _fields = ("key", "value")
    _attributes = ast.expr._attributes


def _entries_of(display: ast.Dict) -> list[ast.AST]:
    pairs = zip(display.keys, display.values, strict=True)
    return [ast.copy_location(Entry(key=key, value=value), value) for key, value in pairs]


@dataclass(frozen=True)
class Pattern:
    """``parts`` are of one ``kind``: one "expression", or "statements", "elements" or "entries"."""

    kind: str
    parts: tuple[ast.AST, ...]


@dataclass
class Found:
    """What has matched so far: local variables by the pattern's names, and parts by the ``id`` of
    the pattern's ``...``.
    """

    names: dict[str, str] = field(default_factory=dict)
    holes: dict[int, "Hole"] = field(default_factory=dict)

    def with_name(self, name: str, variable: str) -> "Found | None":
        if name in self.names:
            return self if self.names[name] == variable else None
        if variable in self.names.values():
            return None
        return Found({**self.names, name: variable}, self.holes)

    def with_hole(self, hole: ast.AST, nodes: list[ast.AST], owner=None) -> "Found":
        rest = (getattr(owner, name, []) for name in ("orelse", "decorator_list"))
        return Found(self.names, {**self.holes, id(hole): Hole(nodes, *rest)})


@dataclass(frozen=True)
class Hole:
    """What a ``...`` has matched; of a header also its ``else`` and decorators."""

    nodes: list[ast.AST]
    orelse: list[ast.AST]
    decorator_list: list[ast.AST]


def parsed(text: str) -> list[Pattern]:
    """Return all patterns that ``text`` can be; raise :class:`SyntaxError` if there is none."""
    found = [
        Pattern(kind, tuple(parts))
        for kind, parse in (
            ("expression", _expression),
            ("elements", _elements),
            ("entries", _entries),
            ("statements", _statements),
        )
        if (parts := _tried(parse, text)) is not None
    ]
    if not found:
        raise SyntaxError("neither an expression, nor statements, elements, entries or a header")
    return found


def _tried(parse, text):
    try:
        return parse(text)
    except SyntaxError:
        return None


def _expression(text: str) -> list[ast.AST]:
    if not text.strip():
        return []
    ast.parse(f"[{text}\n]")  # so that `a) & (b` is none
    return [ast.parse(f"({text}\n)", mode="eval").body]


def _elements(text: str) -> list[ast.AST]:
    call = ast.parse(f"f({text}\n)", mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise SyntaxError("no elements")
    return [*call.args, *call.keywords]


def _entries(text: str) -> list[ast.AST]:
    display = ast.parse(f"{{{text}\n}}", mode="eval").body
    if not isinstance(display, ast.Dict):
        raise SyntaxError("no entries")
    return _entries_of(display)


def _statements(text: str) -> list[ast.AST]:
    first, line_end, rest = text.strip("\n").partition("\n")
    if first[:1] != " " and rest.startswith(" "):  # the first line without its indentation
        lines = [line for line in rest.split("\n") if line.strip()]
        indent = min((len(line) - len(line.lstrip()) for line in lines), default=0)
        first = " " * (indent - 4 * first.rstrip().endswith(":")) + first
    text = textwrap.dedent(first + line_end + rest).rstrip()
    try:
        body = ast.parse(text).body
    except SyntaxError:  # a header
        body = ast.parse(f"{text} ...").body
    return body


def is_hole(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        node = node.value
    return isinstance(node, ast.Constant) and node.value is ...


def chain(node: ast.AST) -> tuple[type, list[ast.AST]] | None:
    """Operator and operands of ``a & b & c``."""
    match node:
        case ast.BinOp(op=op) if isinstance(op, CHAINS):
            operands = []
            left: ast.AST = node
            while isinstance(left, ast.BinOp) and type(left.op) is type(op):
                operands.append(left.right)
                left = left.left
            return type(op), [left, *reversed(operands)]
        case ast.BoolOp(op=op, values=values):
            return type(op), list(values)
    return None


def header(node: ast.AST) -> ast.AST | None:
    """Return ``node`` if it is a statement with a body of ``...`` only."""
    body = getattr(node, "body", None)
    return node if isinstance(body, list) and len(body) == 1 and is_hole(body[0]) else None


class Matcher:
    """Compares patterns with parts of a module."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def one(self, pattern, node, found: Found) -> Iterator[Found]:
        """Yield each way in which ``pattern`` matches ``node``."""
        if isinstance(pattern, ast.AST):
            if is_hole(pattern) and isinstance(node, ast.expr):
                yield found.with_hole(pattern, [node])
            elif type(pattern) is type(node):
                yield from self._fields(pattern, node, found)
        elif isinstance(pattern, list):
            if isinstance(node, list):
                yield from self.sequence(pattern, node, found)
        elif pattern == node and type(pattern) is type(node):
            yield found

    def _fields(self, pattern: ast.AST, node: ast.AST, found: Found) -> Iterator[Found]:
        names = [name for name in pattern._fields if name not in IGNORED]
        own = {ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name"}.get(type(pattern))
        if own is not None:
            named = self._name(getattr(pattern, own), node, getattr(node, own), found)
            if named is None:
                return
            found = named
            names.remove(own)
        if isinstance(pattern, ast.Call):
            assert isinstance(node, ast.Call)
            arguments = [*pattern.args, *pattern.keywords]
            for got in self.one(pattern.func, node.func, found):
                yield from self.sequence(arguments, [*node.args, *node.keywords], got)
            return
        if header(pattern):
            if not getattr(pattern, "decorator_list", True):
                names.remove("decorator_list")
            if not getattr(pattern, "orelse", True):
                names.remove("orelse")
            names.remove("body")
            found = found.with_hole(pattern.body[0], node.body, node)
        yield from self._each(pattern, node, names, found)

    def _each(self, pattern, node, names: list[str], found: Found) -> Iterator[Found]:
        if not names:
            yield found
            return
        values = getattr(pattern, names[0], None), getattr(node, names[0], None)
        for got in self.one(*values, found):
            yield from self._each(pattern, node, names[1:], got)

    def _name(self, name: str, node: ast.AST, variable: str, found: Found) -> Found | None:
        if id(node) not in self.source.local:
            return found if name == variable and name not in found.names else None
        if name != variable and name in self.source.known:
            return None
        return found.with_name(name, variable)

    def sequence(self, patterns: list, nodes: list, found: Found) -> Iterator[Found]:
        """Yield each way in which ``patterns`` match all of ``nodes``."""
        if not patterns:
            if not nodes:
                yield found
            return
        first, rest = patterns[0], patterns[1:]
        if isinstance(first, ast.AST) and is_hole(first):
            for count in range(len(nodes) + 1):
                yield from self.sequence(rest, nodes[count:], found.with_hole(first, nodes[:count]))
        elif nodes:
            for got in self.one(first, nodes[0], found):
                yield from self.sequence(rest, nodes[1:], got)


@dataclass(frozen=True)
class Match:
    """``count`` parts from ``index`` on of a list, or of the operands of a chain, in ``node``.

    ``field`` is the name of the list, or ``"chain"``, ``"arguments"`` or ``"entries"``; it is empty
    if ``node`` itself matches.
    """

    node: ast.AST
    field: str
    index: int
    count: int
    found: Found

    @property
    def first(self) -> ast.AST:
        return parts_of(self.node, self.field)[self.index] if self.field else self.node

    @property
    def line(self) -> int:
        return self.first.lineno


def parts_of(node: ast.AST, name: str) -> list[ast.AST]:
    """The parts of ``node`` that :class:`Match` counts."""
    if name == "chain":
        found = chain(node)
        assert found is not None
        return found[1]
    if name == "arguments":
        assert isinstance(node, ast.Call)
        return [*node.args, *node.keywords]
    if name == "entries":
        assert isinstance(node, ast.Dict)
        return _entries_of(node)
    return getattr(node, name)


LISTS = ((ast.List, "elts"), (ast.Tuple, "elts"), (ast.Set, "elts"), (ast.Call, "arguments"))
BODIES = ("body", "orelse", "finalbody")


def matches(pattern: Pattern, source: Source, found: Found | None = None) -> Iterator[Match]:
    """Yield each match of ``pattern`` in ``source`` that agrees with ``found``."""
    matcher, found = Matcher(source), found or Found()
    if pattern.kind == "expression":
        yield from _expressions(pattern.parts[0], source, matcher, found)
        return
    if pattern.kind == "elements":
        lists = [(node, name) for kind, name in LISTS for node in source.nodes[kind]]
    elif pattern.kind == "entries":
        lists = [(node, "entries") for node in source.nodes[ast.Dict]]
    else:
        lists = [
            (node, name)
            for nodes in source.nodes.values()
            for node in nodes
            for name in BODIES
            if isinstance(getattr(node, name, None), list)
        ]
    for node, name in lists:
        yield from _slices(pattern.parts, node, name, matcher, found)


def _expressions(part, source: Source, matcher: Matcher, found: Found) -> Iterator[Match]:
    for node in source.nodes.get(type(part), ()):
        for got in matcher.one(part, node, found):
            yield Match(node, "", 0, 1, got)
    operands = chain(part)
    if operands is None:
        return
    for node in source.nodes.get(type(part), ()):
        theirs = chain(node)
        if theirs is None or theirs[0] is not operands[0]:
            continue
        count, have = len(operands[1]), len(theirs[1])
        # A binary operation is the end of its chain; what begins with it is a node of its own.
        ends = [have] if isinstance(node, ast.BinOp) else range(count, have + 1)
        for end in ends:
            start = end - count
            if start < 0 or count == have or (start == 0 and isinstance(node, ast.BinOp)):
                continue
            for got in matcher.sequence(operands[1], theirs[1][start:end], found):
                yield Match(node, "chain", start, count, got)


def _slices(parts, node: ast.AST, name: str, matcher: Matcher, found: Found) -> Iterator[Match]:
    have = parts_of(node, name)
    variable = any(is_hole(part) for part in parts)
    for start in range(len(have) - (0 if variable else len(parts) - 1)):
        ends = range(start + 1, len(have) + 1) if variable else [start + len(parts)]
        for end in ends:
            for got in matcher.sequence(list(parts), have[start:end], found):
                yield Match(node, name, start, end - start, got)
