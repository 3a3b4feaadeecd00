"""Local variables of a syntax tree, and the place of each node.

A local variable is a name that a function, a lambda or a comprehension binds: a parameter, a target
of an assignment or a loop, the name of an inner function. Names of modules and classes, attributes
and keywords are not local, nor are the names in :data:`FIXED`.
"""

import ast
import builtins
from collections import defaultdict
from dataclasses import dataclass

__all__ = ["FIXED", "Place", "Source", "stored_names"]

#: Names that have the same meaning in all cores.
FIXED = frozenset(("self", "cls", "m"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SCOPES = (*FUNCTIONS, *COMPREHENSIONS)


@dataclass(frozen=True)
class Place:
    """The place of a node: ``field`` of ``parent``, at ``index`` if that is a list."""

    parent: ast.AST
    field: str
    index: int | None


class Source:
    """The syntax tree of a module, with an index of its nodes.

    Attributes
    ----------
    tree : ast.Module
    nodes : dict
        The nodes of each type, in the order of the text.
    local : set
        ``id`` of each node (a name, a parameter, an inner function) that names a local variable.
    known : set
        Names that are defined in the module, imported by it or built in.
    """

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.nodes: dict[type, list[ast.AST]] = defaultdict(list)
        self.local: set[int] = set()
        self.known = {*dir(builtins), *FIXED, *_module_names(self.tree)}
        self._places: dict[int, Place] = {}
        self._walk(self.tree, ())

    def place(self, node: ast.AST) -> Place | None:
        return self._places.get(id(node))

    def holders(self, node: ast.AST) -> list[ast.AST]:
        """The nodes that ``node`` is in, the innermost first."""
        found = []
        while (place := self.place(node)) is not None:
            node = place.parent
            found.append(node)
        return found

    def function(self, node: ast.AST) -> ast.AST:
        """The outermost function that ``node`` is in, or is itself; else the module."""
        functions = [h for h in (node, *self.holders(node)) if isinstance(h, FUNCTIONS)]
        return functions[-1] if functions else self.tree

    def locals_at(self, node: ast.AST) -> set[str]:
        """Names of local variables that a text in the place of ``node`` can use."""
        scopes = [h for h in (node, *self.holders(node)) if isinstance(h, SCOPES)]
        return set().union(*(bound_names(scope) for scope in scopes)) - FIXED

    def _walk(self, node: ast.AST, scopes: tuple[set[str], ...]) -> None:
        self.nodes[type(node)].append(node)
        name = _own_name(node)
        if name is not None and any(name in scope for scope in scopes):
            self.local.add(id(node))
        if isinstance(node, SCOPES):
            scopes = (*scopes, bound_names(node) - FIXED)
        for field, value in ast.iter_fields(node):
            for index, child in enumerate(value if isinstance(value, list) else [value]):
                if isinstance(child, ast.AST):
                    at = index if isinstance(value, list) else None
                    if not isinstance(
                        child,
                        ast.expr_context | ast.operator | ast.unaryop | ast.cmpop | ast.boolop,
                    ):
                        self._places[id(child)] = Place(node, field, at)
                        self._walk(child, scopes)


def _own_name(node: ast.AST) -> str | None:
    match node:
        case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name):
            return name
    return None


def stored_names(node: ast.AST) -> set[str]:
    """Names that ``node`` assigns or has as parameters, in any scope of its own."""
    names = {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
    _bind(node, names, set(), everywhere=True)
    return names


def bound_names(scope: ast.AST) -> set[str]:
    """Names that a function, lambda, comprehension or list of statements binds itself."""
    names: set[str] = set()
    if isinstance(scope, FUNCTIONS):
        names = {node.arg for node in ast.walk(scope.args) if isinstance(node, ast.arg)}
    body = scope.generators if isinstance(scope, COMPREHENSIONS) else scope.body
    outer: set[str] = set()
    for part in body if isinstance(body, list) else [body]:
        _bind(part, names, outer)
    return names - outer


def _bind(node: ast.AST, names: set[str], outer: set[str], *, everywhere: bool = False) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            names.add(name)
        case ast.FunctionDef(name=name):
            names.add(name)
        case ast.Global(names=others) | ast.Nonlocal(names=others):
            outer.update(others)
    if everywhere or not isinstance(node, (*SCOPES, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            _bind(child, names, outer, everywhere=everywhere)


def _module_names(tree: ast.Module) -> set[str]:
    names = bound_names(tree) | {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    return names
