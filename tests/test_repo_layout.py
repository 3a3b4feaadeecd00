"""Tests and proofs are found by the path of their core; ``docs/paths.toml`` has the exceptions."""

import ast
import tomllib
from importlib import import_module

import pytest
from trebuchet.formal.kit import registry
from trebuchet.models.closure import closure

PREFIX = "trebuchet.cores."


@pytest.fixture(scope="module")
def cores(root):
    """``{module below cores: its syntax tree}`` of those with logic of their own."""
    top, found = root / "cores", {}
    for path in sorted(top.rglob("*.py")):
        tree = ast.parse(path.read_text())
        if has_logic(tree):
            found[".".join(path.relative_to(top).with_suffix("").parts)] = tree
    return found


def has_logic(tree):
    """Whether a class has ``elaborate``: layouts, registers, tables and functions have not."""
    return any(isinstance(n, ast.FunctionDef) and n.name == "elaborate" for n in ast.walk(tree))


@pytest.fixture(scope="module")
def elsewhere(root):
    return tomllib.loads((root / "docs" / "paths.toml").read_text())


def path_of_test(root, core):
    return root / "tests" / f"test_{core.replace('.', '_')}.py"


@pytest.fixture(scope="module")
def proved():
    """``{module of formal: the cores that it has proofs of, or mutants in}``."""
    found = {}
    for name in registry.MODULES:
        found[name] = set()
        for proof in import_module(f"trebuchet.formal.{name}").PROOFS:
            names = [proof.module, *(mutant.where or proof.module for mutant in proof.mutants)]
            found[name] |= {module.removeprefix(PREFIX) for module in names}
            # `cores.bridge.fair.FairMux(32, 24)`: the class, whatever module builds it.
            named = proof.core.partition("(")[0].removeprefix("cores.")
            found[name].add(named.rpartition(".")[0])
    return found


def test_a_core_has_a_test_at_its_path(root, cores, elsewhere):
    """``cores/A/B.py`` has ``tests/test_A_B.py``, or a test of another name is listed."""
    missing = {core for core in cores if not path_of_test(root, core).exists()}
    assert missing - set(elsewhere["tests"]) == set(), "neither a test nor an entry"
    assert set(elsewhere["tests"]) - missing == set(), "an entry that is not needed (any more)"


def test_these_tests_run_the_core(root, cores, elsewhere):
    """The core is among the modules that they import, directly or not."""
    without = []
    for core in cores:
        path = path_of_test(root, elsewhere["tests"].get(core, core))
        source = root / "cores" / f"{core.replace('.', '/')}.py"
        if not path.exists() or source not in closure([path]):
            without.append(f"{path.name}: {core}")
    assert without == []


def test_a_core_has_a_proof_at_its_path(cores, proved, elsewhere):
    """``cores/A/B.py`` has ``formal/A/B.py``, or a proof that covers it is listed, or a reason."""
    missing = {core for core in cores if core not in proved}
    listed = {**elsewhere["proofs"], **elsewhere["unproved"]}
    assert len(listed) == len(elsewhere["proofs"]) + len(elsewhere["unproved"])
    assert missing - set(listed) == set(), "neither a proof nor an entry"
    assert set(listed) - missing == set(), "an entry that is not needed (any more)"


def test_listed_proofs_cover_the_core(proved, elsewhere):
    """They build it, or have mutants in it; where there are such proofs, no reason is needed."""
    for core, name in elsewhere["proofs"].items():
        assert core in proved.get(name, ()), f"{core}: no proof of it in formal, {name}"
    for core in elsewhere["unproved"]:
        assert [name for name, cores in proved.items() if core in cores] == [], core


def test_what_has_logic_is_computed():
    assert not has_logic(ast.parse("class A(data.Struct):\n    x: 8\n"))
    assert has_logic(ast.parse("class A(Component):\n    def elaborate(self, p):\n        pass\n"))
