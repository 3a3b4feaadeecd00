"""Mutants match in cores whose local variables are all renamed, and that are formatted anew."""

import ast
import importlib
from pathlib import Path

import pytest
from trebuchet.formal.kit import registry
from trebuchet.formal.kit.scopes import Source

pytestmark = pytest.mark.slow

FIELDS = {ast.Name: "id", ast.arg: "arg", ast.FunctionDef: "name"}


def by_module():
    """Each mutant once, by the module that it is in."""
    found = {}
    for proof in registry.PROOFS:
        for mutant in proof.mutants:
            found.setdefault(mutant.where or proof.module, {})[mutant.key] = mutant
    return {name: list(mutants.values()) for name, mutants in sorted(found.items())}


MUTANTS = by_module()


def variables(source):
    return (n for kind in FIELDS for n in source.nodes[kind] if id(n) in source.local)


def rename(tree, names):
    """Rename the local variables of ``tree`` that ``names`` has."""
    for node in list(variables(Source(tree))):
        field = FIELDS[type(node)]
        setattr(node, field, names.get(getattr(node, field), getattr(node, field)))


def changed(mutant, source):
    """The classes, functions and other statements of the module that the mutant changes."""
    before = {id(node) for node in source.tree.body}
    return ast.Module([node for node in mutant.patch(source).body if id(node) not in before], [])


@pytest.mark.parametrize("name", MUTANTS)
def test_renamed_and_reformatted(name):
    source = Source(ast.parse(Path(importlib.import_module(name).__file__).read_text()))
    found = {getattr(node, FIELDS[type(node)]) for node in variables(source)}
    names = {variable: f"v{number}" for number, variable in enumerate(sorted(found))}
    back = {new: old for old, new in names.items()}
    other = ast.parse(ast.unparse(source.tree))
    rename(other, names)
    other = Source(ast.parse(ast.unparse(other)))
    for mutant in MUTANTS[name]:
        before, after = changed(mutant, source), changed(mutant, other)
        rename(after, back)
        assert before.body, mutant
        assert ast.dump(before) == ast.dump(after), mutant
        rename(after, names)  # it shares nodes with `other`
