"""Patches of a module's syntax tree: a pattern, where it stands, and what replaces it."""

import ast
import copy
from collections.abc import Iterator, Sequence

from ...models.errors import TrebuchetError
from .patterns import (
    Found,
    Hole,
    Match,
    Matcher,
    Pattern,
    chain,
    header,
    is_hole,
    matches,
    parsed,
    parts_of,
)
from .scopes import Source, stored_names

__all__ = ["patched"]


def patched(
    source: Source,
    old: str,
    new: str,
    within: Sequence[str] = (),
    context: Sequence[str] = (),
) -> ast.Module:
    """Return the tree of ``source`` with ``new`` in place of the only match of ``old``.

    ``within`` and ``context`` are those of :class:`~trebuchet.formal.kit.proof.Mutant`. Unless
    there is exactly one match, raise :class:`TrebuchetError`; its text is a clause ("must …") that
    has the patch as its subject.
    """
    made = [
        (match.line, _Replacement(source, before, after, match).tree())
        for before, after in _pairs(old, new)
        for match in _located(before, source, within, context)
    ]
    if len(made) > 1:  # matches that give the same program are one
        made = list({ast.dump(tree): (line, tree) for line, tree in made}.values())
    if len(made) != 1:
        raise TrebuchetError(_misfit([line for line, _ in made], within or context))
    return made[0][1]


def _misfit(lines: list[int], more) -> str:
    if not lines:
        return f"must match one place{' with its `within` and `context`' if more else ''}, not none"
    if len(set(lines)) == 1:
        return (
            f"must match line {lines[0]} in one way, not {len(lines)}: say more in `old`, or bind "
            "the local variables of `new` with `context`"
        )
    shown = ", ".join(str(line) for line in sorted(lines))
    return (
        f"must match one place, not {len(lines)} (lines {shown}): say more in `old`, "
        "or where it is with `within`"
    )


def _pairs(old: str, new: str) -> list[tuple[Pattern, Pattern]]:
    """The kinds that both texts can be."""
    olds = {pattern.kind: pattern for pattern in _parsed("old", old)}
    news = {pattern.kind: pattern for pattern in _parsed("new", new)}
    kinds = [kind for kind in olds if kind in news and olds[kind].parts]
    if "expression" in kinds:
        before, after = olds["expression"].parts, news["expression"].parts
        if not after or _bare_tuple(after[0], new) and not _bare_tuple(before[0], old):
            kinds.remove("expression")
        else:  # the others would find the same place once more
            kinds = [k for k in kinds if k == "expression" or not _single(olds[k])]
    if not kinds:
        raise TrebuchetError(
            "must have an `old` and a `new` of the same kind: both expressions, or both statements,"
            " elements or entries"
        )
    return [(olds[kind], news[kind]) for kind in kinds]


def _parsed(which: str, text: str) -> list[Pattern]:
    try:
        return parsed(text)
    except SyntaxError as error:
        raise TrebuchetError(f"has a `{which}` that is {error.msg}: {text!r}") from None


def _bare_tuple(node: ast.AST, text: str) -> bool:
    return isinstance(node, ast.Tuple) and not text.strip().startswith("(")


def _single(pattern: Pattern) -> bool:
    return (
        len(pattern.parts) == 1
        and not isinstance(pattern.parts[0], ast.keyword)
        and (pattern.kind == "elements" or isinstance(pattern.parts[0], ast.Expr))
    )


def _located(pattern: Pattern, source: Source, within, context) -> Iterator[Match]:
    for match in matches(pattern, source):
        holders = _holders(match, source)
        founds = [match.found]
        for text in within:
            founds = [got for found in founds for got in _inside(text, holders, source, found)]
        function = source.function(match.node)
        for text in context:
            founds = [got for found in founds for got in _beside(text, function, source, found)]
        for found in founds:
            yield Match(match.node, match.field, match.index, match.count, found)


def _holders(match: Match, source: Source) -> list[ast.AST]:
    """The nodes whose body the match is in, or is a part of; the innermost first."""
    holders = [match.node] if match.field in ("body", "finalbody") else []
    node = match.node
    while (place := source.place(node)) is not None:
        node = place.parent
        if place.field != "orelse":
            holders.append(node)
    return holders


def _inside(text: str, holders: list[ast.AST], source: Source, found: Found) -> Iterator[Found]:
    if all(word.isidentifier() for word in text.split(".")):
        kinds = ast.ClassDef, ast.FunctionDef
        names = [h.name for h in reversed(holders) if isinstance(h, kinds)]
        if f".{text}." in f".{'.'.join(names)}.":
            yield found
        return
    (pattern,) = [p for p in _parsed("within", text) if p.kind == "statements"]
    for holder in holders:
        yield from Matcher(source).one(pattern.parts[0], holder, found)


def _beside(text: str, function: ast.AST, source: Source, found: Found) -> Iterator[Found]:
    for pattern in _parsed("context", text):
        for match in matches(pattern, source, found):
            if source.function(match.node) is function:
                yield match.found


class _Replacement:
    """``new`` in place of a match."""

    def __init__(self, source: Source, old: Pattern, new: Pattern, match: Match) -> None:
        self.source, self.new, self.match = source, new, match
        self.names = match.found.names
        holes = [id(node) for part in old.parts for node in _holes(part)]
        self.holes = [match.found.holes[hole] for hole in holes]
        self.used = 0
        self.locals = source.locals_at(match.node)
        self.known = source.known.union(*(stored_names(part) for part in new.parts))

    def tree(self) -> ast.Module:
        parts = [made for part in self.new.parts for made in self._made(part)]
        match, node = self.match, self.match.node
        if not match.field:
            (changed,) = parts
            _set_context(changed, getattr(node, "ctx", ast.Load()))
            return self._up(node, changed)
        before = parts_of(node, match.field)
        after = [*before[: match.index], *parts, *before[match.index + match.count :]]
        changed = copy.copy(node)
        if match.field == "arguments":
            changed.args = [n for n in after if not isinstance(n, ast.keyword)]
            changed.keywords = [n for n in after if isinstance(n, ast.keyword)]
        elif match.field == "entries":
            changed.keys, changed.values = [n.key for n in after], [n.value for n in after]
        elif match.field == "chain":
            changed = self._chain(node, before, parts)
        else:
            setattr(changed, match.field, after)
        return self._up(node, changed)

    def _chain(self, node, before: list[ast.AST], parts: list[ast.AST]) -> ast.AST:
        (part,) = parts
        own = chain(part)
        operands = own[1] if own and own[0] is chain(node)[0] else [part]
        start, end = self.match.index, self.match.index + self.match.count
        operands = [*before[:start], *operands, *before[end:]]
        if isinstance(node, ast.BoolOp):
            return ast.copy_location(ast.BoolOp(node.op, operands), node)
        made = operands[0]
        for operand in operands[1:]:
            made = ast.copy_location(ast.BinOp(made, node.op, operand), node)
        return made

    def _up(self, node: ast.AST, changed: ast.AST) -> ast.Module:
        while (place := self.source.place(node)) is not None:
            parent = copy.copy(place.parent)
            if place.index is None:
                setattr(parent, place.field, changed)
            else:
                values = list(getattr(parent, place.field))
                values[place.index] = changed
                setattr(parent, place.field, values)
            node, changed = place.parent, parent
        assert isinstance(changed, ast.Module)
        return changed

    def _made(self, node: ast.AST) -> list[ast.AST]:
        """Return what stands for ``node`` of ``new``, with the match's names and parts in it."""
        if is_hole(node):
            return self._hole().nodes
        made = copy.copy(node)
        for name in ("id", "arg", "name"):
            if isinstance(node, ast.Name | ast.arg | ast.FunctionDef) and hasattr(node, name):
                setattr(made, name, self._name(getattr(node, name)))
        if hasattr(node, "lineno"):
            ast.copy_location(made, self.match.first)
        for name, value in ast.iter_fields(node):
            if isinstance(value, list):
                values = [self._made(v) if isinstance(v, ast.AST) else [v] for v in value]
                setattr(made, name, [v for several in values for v in several])
            elif isinstance(value, ast.AST):
                (one,) = self._made(value)
                setattr(made, name, one)
        if header(node):  # its body is the last `...` so far
            for name in ("orelse", "decorator_list"):
                if not getattr(node, name, True):
                    setattr(made, name, getattr(self.holes[self.used - 1], name))
        return [made]

    def _hole(self) -> Hole:
        if self.used == len(self.holes):
            raise TrebuchetError("must not have more `...` in `new` than in `old`")
        self.used += 1
        return self.holes[self.used - 1]

    def _name(self, name: str) -> str:
        if name in self.names:
            return self.names[name]
        if name in self.locals:
            raise TrebuchetError(
                f"must bind the local variable {name!r} of `new`, in `old` or with `context`"
            )
        if name not in self.known:
            raise TrebuchetError(f"must not use the unknown name {name!r} in `new`")
        return name


def _holes(node: ast.AST) -> Iterator[ast.AST]:
    if is_hole(node):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from _holes(child)


def _set_context(node: ast.AST, ctx: ast.expr_context) -> None:
    if hasattr(node, "ctx"):
        node.ctx = ctx
    if isinstance(node, ast.Tuple | ast.List):
        for child in node.elts:
            _set_context(child, ctx)
    elif isinstance(node, ast.Starred):
        _set_context(node.value, ctx)
