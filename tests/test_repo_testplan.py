"""The test plan: every feature has tests, every file of tests belongs to a feature."""

import ast
import tomllib

import pytest
from conftest import LONGEST


@pytest.fixture(scope="module")
def plan(root):
    files = [root / "docs" / "testplan.toml", *sorted((root / "docs" / "testplan").glob("*.toml"))]
    return [feature for file in files for feature in tomllib.loads(file.read_text())["feature"]]


@pytest.fixture(scope="module")
def tests(root):
    """Names of the test functions of each test file."""
    return {
        path.stem.removeprefix("test_"): _functions(ast.parse(path.read_text()))
        for path in sorted((root / "tests").glob("test_*.py"))
    }


def _functions(tree):
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    }


#: From the one that runs most often to the one that runs all.
TIERS = ("check", "test", "nightly")
#: Marks that put a test into a later tier.
MARKS = {"slow": "test", "nightly": "nightly"}


def _marks(nodes):
    """Marks that decorators or a module's ``pytestmark`` name; not those of single parameters."""
    text = " ".join(ast.unparse(node) for node in nodes)
    return {mark for mark in MARKS if f"mark.{mark}" in text and "param(" not in text}


def _tiers(tree):
    """The tier of each test function of a file."""
    own = [n.value for n in tree.body if isinstance(n, ast.Assign) and _is_pytestmark(n)]
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            marks = _marks(own) | _marks(node.decorator_list)
            found[node.name] = max(
                (MARKS[mark] for mark in marks), key=TIERS.index, default="check"
            )
    return {name: tier for name, tier in found.items() if name.startswith("test")}


def _is_pytestmark(node):
    return isinstance(node.targets[0], ast.Name) and node.targets[0].id == "pytestmark"


def test_entries_are_complete(plan):
    names = [feature["name"] for feature in plan]
    assert len(set(names)) == len(names)
    for feature in plan:
        assert set(feature) == {"name", "part", "tier", "tests"}, feature
        assert feature["tests"], f"no test for {feature['name']!r}"


@pytest.fixture(scope="module")
def tiers(root):
    return {
        path.stem.removeprefix("test_"): _tiers(ast.parse(path.read_text()))
        for path in sorted((root / "tests").glob("test_*.py"))
    }


def first_tier(feature, tiers):
    """The first tier that runs a test of a feature."""
    found = []
    for entry in feature["tests"]:
        file, _, function = entry.partition("::")
        found += [tiers[file][function]] if function else tiers[file].values()
    return min(found, key=TIERS.index)


def test_tiers_are_those_of_the_marks(plan, tiers):
    """``tier`` is the first that runs one of a feature's tests."""
    for feature in plan:
        tier = first_tier(feature, tiers)
        assert feature["tier"] == tier, f"{feature['name']!r} is tested from tier {tier!r} on"


def test_features_of_the_nightly_tier_alone_are_listed(root, plan):
    text = tomllib.loads((root / "docs" / "testplan.toml").read_text())
    only = [feature["name"] for feature in plan if feature["tier"] == "nightly"]
    assert text["only_nightly"] == only


def test_named_tests_exist(plan, tests):
    """An entry is `file` (all its tests) or `file::function`, without the `test_` of the file."""
    for feature in plan:
        for entry in feature["tests"]:
            file, _, function = entry.partition("::")
            assert file in tests, f"{feature['name']!r} names no file of tests: {entry}"
            assert not function or function in tests[file], f"no such test: {entry}"


def test_every_test_file_belongs_to_a_feature(plan, tests):
    named = {entry.partition("::")[0] for feature in plan for entry in feature["tests"]}
    assert set(tests) - named == set()


def test_every_test_file_has_tests(tests):
    assert [file for file, functions in tests.items() if not functions] == []


def test_files_that_run_first_exist(tests):
    assert set(LONGEST) - set(tests) == set()
    assert len(set(LONGEST)) == len(LONGEST)
