"""References in docstrings, and whether they resolve."""

import ast
import builtins
import importlib
import re
from pathlib import Path

from trebuchet.docs.site.docstrings import absolute, package_of

_ROLES = "class|data|func|mod|meth|attr|obj|exc"
_REFERENCE = re.compile(rf":(?:{_ROLES}):`~?(?:[^`<]*<~?)?([\w.]+)>?`")


def exists(name):
    """Return whether a dotted name is a module, a member of one, or a builtin."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ImportError:
            continue
        for part in parts[cut:]:
            if not hasattr(found, part):
                return part in getattr(found, "__annotations__", ())
            found = getattr(found, part)
        return True
    return hasattr(builtins, name)


def docstrings(tree, name):
    """Yield the dotted name and the docstring of a module, its classes and their functions."""
    yield name, ast.get_docstring(tree) or ""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from docstrings(node, f"{name}.{node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name}.{node.name}", ast.get_docstring(node) or ""


def broken_references(module):
    """Yield the references in a module's docstrings that do not resolve, with their places."""
    source = Path(module.__file__).read_text()
    for name, text in docstrings(ast.parse(source), module.__name__):
        (text,) = absolute([text.replace("\n", " ")], package_of(name))
        parts = name.split(".")
        scopes = [".".join(parts[:cut]) for cut in range(len(parts), 1, -1)]
        for target in _REFERENCE.findall(text):
            names = (target, *(f"{scope}.{target}" for scope in scopes))
            if not any(map(exists, names)) and f"self.{target}" not in source:
                yield f"{name}: {target}"
