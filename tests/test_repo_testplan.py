"""docs/testplan.toml: every feature has tests, every test file belongs to a feature."""

import ast
import tomllib

import pytest
from conftest import LONGEST


@pytest.fixture(scope="module")
def plan(root):
    return tomllib.loads((root / "docs" / "testplan.toml").read_text())["feature"]


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


def test_entries_are_complete(plan):
    names = [feature["name"] for feature in plan]
    assert len(set(names)) == len(names)
    for feature in plan:
        assert set(feature) == {"name", "part", "tests"}, feature
        assert feature["tests"], f"no test for {feature['name']!r}"


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
