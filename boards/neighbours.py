"""Python files of a user's own that a board file imports, like its platform.

They lie beside the board file, or anywhere on PYTHONPATH.
"""

import ast
import contextlib
import functools
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

__all__ = ["importable", "neighbours"]

#: The package that this file is of.
_OURS = __name__.partition(".")[0]


@contextlib.contextmanager
def importable(path):
    """What lies beside the file ``path`` can be imported, anew each time; None: nothing is.

    Python's and installed modules of the same name go before it: they are needed as they are.
    """
    if path is None:
        yield
        return
    folder, before = Path(path).resolve().parent, set(sys.modules)
    added = [] if str(folder) in sys.path else [str(folder)]
    sys.path.extend(added)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for text in added:
            with contextlib.suppress(ValueError):
                sys.path.remove(text)
        names = set(sys.modules) - before
        beside = {name for name in names if _beside(sys.modules.get(name), folder)}
        beside -= _installed() if beside else set()
        for name in names:
            if name.partition(".")[0] in beside:
                sys.modules.pop(name, None)


def _beside(module, folder):
    """A module, or package, is a file, or folder, of ``folder``, and not this package."""
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or "." in module.__name__ or module.__name__ == _OURS:
        return False
    return folder in (Path(file).resolve().parent, Path(file).resolve().parent.parent)


def neighbours(path):
    """Files of the user's own that the Python file ``path`` imports, and that those import.

    By their text: a function may import when it is called. Sorted; without ``path`` itself, and
    without Python's, installed and this package's modules, which a build knows otherwise.
    """
    path = Path(path).resolve()
    found, waiting = {path}, [path]
    with importable(path):
        while waiting:
            for name in _imported(waiting.pop()):
                new = _files(name, path.parent) - found
                found |= new
                waiting += new
    return sorted(found - {path})


def _imported(path):
    """Names of the packages, or modules outside of packages, that a file imports."""
    try:
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
    except (OSError, SyntaxError, ValueError):  # said when it is imported
        return set()
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    froms = (node for node in nodes if isinstance(node, ast.ImportFrom) and not node.level)
    return {name.partition(".")[0] for name in names | {node.module for node in froms}}


def _files(name, folder):
    """Files of a module, or package, if it is the user's own."""
    if name in sys.stdlib_module_names or name == _OURS:
        return set()
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # no module, or one that came from nowhere
        return set()
    if spec is None:
        return set()
    if spec.submodule_search_locations is not None:
        places = [Path(place).resolve() for place in spec.submodule_search_locations]
        found = {file for place in places for file in place.rglob("*.py") if file.is_file()}
    else:
        places = [Path(spec.origin or "").resolve()]
        found = {file for file in places if file.suffix == ".py" and file.is_file()}
    return found if any(_of_user(place, name, folder) for place in places) else set()


def _of_user(place, name, folder):
    if place.parent == folder:
        return True
    if {"site-packages", "dist-packages"} & set(place.parts):
        return False
    return name not in _installed()


@functools.cache
def _installed():
    """Names of installed packages, wherever they are; takes a quarter of a second."""
    return set(importlib.metadata.packages_distributions())
