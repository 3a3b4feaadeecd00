"""Which modules of the project a module depends on, by its source: the closure of its imports.

Found are imports anywhere in a file, inside functions too; the packages above a module; string
constants that name a module (``"trebuchet.bench.tcp:measure"``) or, as the beginning of an
f-string, a package; of a module that imports what it computes the name of, all modules of its
package; and of a file in a folder that is no package, such as a test, its neighbours by their plain
names. So the closure is never too small for imports that follow these forms; it may be too large.
"""

import ast
import functools
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from .file_cache import FileCache
from .sources import ROOT, files_below

__all__ = ["PACKAGE", "closure", "module_path", "strings_of"]

PACKAGE = "trebuchet"
#: Its modules belong to the package itself, as its ``__init__.py`` says.
PUBLIC = "integration/public"
#: Calls that import what their first argument names.
_IMPORTERS = ("import_module", "__import__", "run_module", "spec_from_file_location", "run_path")


def module_path(name: str, root: Path = ROOT) -> Path | None:
    """Return the file of a module of the project by its full name; None if there is none."""
    if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
        return None
    parts = name.split(".")[1:]
    if not all(part.isidentifier() for part in parts):
        return None
    for top in (root, root / PUBLIC):
        path = top.joinpath(*parts)
        if (path / "__init__.py").is_file():
            return path / "__init__.py"
        file = path.with_name(f"{path.name}.py") if parts else path / "__init__.py"
        if file.is_file():
            return file
    return None


def closure(
    modules: Iterable[str | Path],
    folders: Collection[str] | None = None,
    root: Path = ROOT,
    computed: bool = True,
) -> set[Path]:
    """Return the files of ``modules``, given by full name or path, and of all that they import.

    ``folders``: only modules of these top folders are taken and followed; None: of all.
    ``computed``: imports of computed names count; False if ``modules`` has what they import.
    """
    found: set[Path] = set()
    paths = (name if isinstance(name, Path) else module_path(name, root) for name in modules)
    waiting = [path for path in paths if path is not None]
    while waiting:
        path = waiting.pop()
        top = path.relative_to(root).parts[0]
        if path in found or (folders is not None and top not in folders):
            continue
        found.add(path)
        waiting += _imported(path, root, computed)
    return found


@functools.cache
def _imported(path: Path, root: Path, computed: bool) -> tuple[Path, ...]:
    """The files that a file imports or names as modules, and its packages."""
    return tuple(dict.fromkeys(_find_imported(path, root, computed)))


def _find_imported(path: Path, root: Path, computed: bool) -> Iterator[Path]:
    facts = _FACTS.value(path)
    package = [PACKAGE, *path.relative_to(root).parts[:-1]]
    for name, level in facts["imports"]:
        if level > len(package):
            continue
        beside = path.with_name(f"{name.partition('.')[0]}.py")
        if not level and beside.is_file() and not path.with_name("__init__.py").exists():
            yield beside
        base = package[: len(package) - level + 1] if level else []
        yield from _with_packages(".".join([*base, *([name] if name else [])]), root)
    for text in facts["strings"]:
        if text.startswith(f"{PACKAGE}."):
            yield from _named(text, root)
    if computed and facts["computes"] and path.with_name("__init__.py").exists():
        yield from _package(path.parent)


def _package(folder: Path) -> Iterator[Path]:
    """All modules of a package and of those below it."""
    for path in files_below(folder):
        if path.suffix == ".py" and path.with_name("__init__.py").exists():
            yield path


def _with_packages(name: str, root: Path) -> Iterator[Path]:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        if (path := module_path(".".join(parts[:length]), root)) is not None:
            yield path


def _named(text: str, root: Path) -> Iterator[Path]:
    name = text.partition(":")[0]
    if name.endswith("."):  # the beginning of an f-string: any module of the package
        path = module_path(name.rstrip("."), root)
        if path is not None:
            yield from _package(path.parent)
    yield from _with_packages(name.rstrip("."), root)


def strings_of(path: Path) -> set[str]:
    """Return the string constants of a Python file, docstrings left out."""
    return set(_FACTS.value(path)["strings"])


def _facts(path: Path) -> dict[str, Any]:
    """What a Python file says of others: imports as (name, level), strings, computed imports."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return {"imports": [], "strings": [], "computes": True}
    imports: list[tuple[str, int]] = []
    strings: set[str] = set()
    computes = False
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(alias.name, 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            name = node.module or ""
            imports.append((name, node.level))
            imports += [(f"{name}.{a.name}".lstrip("."), node.level) for a in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings and len(node.value) <= 200:
                strings.add(node.value)
        elif isinstance(node, ast.Call):
            computes |= _computes(node)
    return {"imports": sorted(set(imports)), "strings": sorted(strings), "computes": computes}


def _computes(call: ast.Call) -> bool:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    constant = bool(call.args) and isinstance(call.args[0], ast.Constant)
    return name in _IMPORTERS and not constant


_FACTS: FileCache[dict[str, Any]] = FileCache("facts", _facts)
