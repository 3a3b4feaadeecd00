"""What a proof is: a harness around a core, and mutants of the core that it must catch."""

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...models.errors import TrebuchetError
from .patch import patched
from .scopes import Source

__all__ = ["METHODS", "Mutant", "Proof", "mutated", "mutated_tree"]

METHODS = ("induction", "bmc", "cover")


@dataclass(frozen=True)
class Mutant:
    """A fault planted in a core: the only match of the pattern ``old`` becomes ``new``.

    ``old`` and ``new`` are expressions, statements, headers of statements, elements or entries;
    :mod:`~trebuchet.formal.kit.patterns` says what matches. Names of local variables do not matter.

    Parameters
    ----------
    name : str
        What the core does wrong.
    old, new : str
    depth : int
        Cycles after reset within which the proof must fail.
    where : str
        The module with the fault, if it is not the proof's own: a part of the same package, which
        is imported anew for it.
    within : str or tuple of str
        Where ``old`` stands, if it matches several places: in these classes or functions
        (``"Fifo.elaborate"``), or in the body of these statements (``'with m.State("IDLE"):'``).
    context : str or tuple of str
        Patterns that must match somewhere in the same function, with the same local variables: for
        variables of ``new`` that are not in ``old``.
    """

    name: str
    old: str
    new: str
    depth: int = 12
    where: str | None = None
    within: str | tuple[str, ...] = ()
    context: str | tuple[str, ...] = ()

    @property
    def key(self) -> tuple:
        """What the result depends on, beside the core and the depth."""
        where = (self.within, self.context) if self.within or self.context else ()
        return (self.old, self.new, self.where, *where)

    def patch(self, source: Source) -> ast.Module:
        """The tree of ``source`` with the fault in it; raise unless exactly one place matches."""
        within, context = (
            (texts,) if isinstance(texts, str) else texts for texts in (self.within, self.context)
        )
        return patched(source, self.old, self.new, within, context)


@dataclass(frozen=True)
class Proof:
    """A set of properties of one core, stated by the harness that ``build`` returns.

    ``build`` takes the module of the core, or a mutated copy of it. ``depth`` is that of the
    induction (or, if ``method`` is ``"bmc"``, how far it was checked, and ``bounded`` says why it
    is not proved without bound); ``cover_depth`` that in which every cover statement must be
    reached. ``quick`` proofs run in ``make test``, with their mutants.
    """

    name: str
    core: str
    says: str
    module: str
    build: Callable
    depth: int
    cover_depth: int
    mutants: tuple[Mutant, ...]
    method: str = "induction"
    assumes: str = "the stream rules on the inputs"
    not_proved: str = "behaviour under a reset while running"
    quick: bool = False
    bounded: str = ""

    def __post_init__(self):
        if self.method not in ("induction", "bmc"):
            raise ValueError(f"Method must be 'induction' or 'bmc', not {self.method!r}")
        if bool(self.bounded) != (self.method == "bmc"):
            raise ValueError(f"Proof {self.name!r} must say in `bounded` why, if its method is bmc")
        if not self.mutants:
            raise ValueError(f"Proof {self.name!r} must have a mutant that it catches")

    def harness(self, mutant=None):
        module = importlib.import_module(self.module)
        return self.build(mutated(module, mutant) if mutant is not None else module)


def mutated(module, mutant):
    """A copy of ``module`` with ``mutant`` in it, or in a part of its package."""
    if mutant.where in (None, module.__name__):
        return _copy(module, mutant)
    package = module.__name__.rpartition(".")[0]
    if not mutant.where.startswith(f"{package}."):
        raise TrebuchetError(f"mutant {mutant.name!r} must be in the package of {module.__name__}")
    finder = _Finder(importlib.import_module(mutant.where), mutant)
    kept = {n: m for n, m in sys.modules.items() if n.startswith(f"{package}.")}
    # All others stay: the proof's classes of theirs, enumerations for one, are then the mutant's.
    users = _users(kept, mutant.where)
    for name in sorted(users, reverse=True):  # a part before the package that it is in
        parent, _, leaf = name.rpartition(".")
        # `from . import part` imports nothing if there is an attribute of that name.
        vars(sys.modules[parent]).pop(leaf, None)
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(module.__name__)
    finally:
        sys.meta_path.remove(finder)
        for name in users:
            sys.modules.pop(name, None)
        sys.modules.update(kept)
        for name, m in kept.items():
            parent, _, leaf = name.rpartition(".")
            setattr(sys.modules[parent], leaf, m)


def _users(modules, name):
    """``name``, and those of ``modules`` that import it or one of its users."""
    imports = {n: _imports(m) for n, m in modules.items()}
    users, before = {name}, set()
    while users != before:
        before = users
        users = before | {n for n, names in imports.items() if names & before}
    return users & modules.keys()


def _imports(module):
    """Names of modules that a module may import (and of what it takes from them)."""
    names = set()
    for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
        if isinstance(node, ast.ImportFrom):
            package = "." * node.level + (node.module or "")
            package = importlib.util.resolve_name(package, module.__package__)
            names |= {package, *(f"{package}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


class _Finder(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Finds the part with the bug, whoever imports it first; everything else as always."""

    def __init__(self, part, mutant):
        super().__init__(part.__name__, part.__file__)
        self.tree = mutated_tree(mutant, part.__name__)

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return importlib.util.spec_from_file_location(name, self.path, loader=self)
        return None

    def get_code(self, fullname):
        return compile(self.tree, self.path, "exec")


def mutated_tree(mutant, name):
    """The syntax tree of module ``name``, or of the mutant's own, with the fault in it."""
    name = mutant.where or name
    source = _source(Path(importlib.import_module(name).__file__).read_text())
    try:
        return mutant.patch(source)
    except TrebuchetError as error:
        raise TrebuchetError(
            f"mutant {mutant.name!r} of {name} {error}; its `old` is: {mutant.old!r}"
        ) from None


@functools.cache
def _source(text):
    return Source(ast.parse(text))


def _copy(module, mutant):
    copy = types.ModuleType(module.__name__)
    copy.__package__, copy.__file__ = module.__package__, module.__file__
    copy.__spec__ = module.__spec__
    code = compile(mutated_tree(mutant, module.__name__), module.__file__, "exec")
    exec(code, copy.__dict__)
    return copy
