"""docs/tcp-tests.md: the tests that it names exist, and it leaves no MUST and no fault out."""

import ast
import re

import pytest


@pytest.fixture(scope="module")
def sections(root):
    """Rows of each table as lists of cells, by the heading above it."""
    found, heading = {}, ""
    for line in (root / "docs" / "tcp-tests.md").read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line.startswith("| ") and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            found.setdefault(heading, []).append(cells)
    return {heading: rows[1:] for heading, rows in found.items()}


def _named(cell):
    return re.findall(r"`((?:tcp|net)_\w+(?:::test_\w+)?)`", cell)


def _functions(path):
    return {node.name for node in ast.parse(path.read_text()).body if hasattr(node, "name")}


def test_every_named_test_exists(root, sections):
    names = {n for rows in sections.values() for row in rows for n in _named(row[-1])}
    assert len(names) > 60
    for name in sorted(names):
        file, _, function = name.partition("::")
        path = root / "tests" / f"test_{file}.py"
        assert path.exists(), name
        assert not function or function in _functions(path), name


def test_every_must_has_a_row_and_every_row_an_answer(sections):
    rows = sections["RFC 9293, appendix B"]
    assert [row[0] for row in rows] == [f"MUST-{n}" for n in range(1, 70)]
    for must, _, answer in rows:
        assert _named(answer) or answer.startswith(("–", "deviates")), must
    for section, _, answer in sections["RFC 5961"]:
        assert _named(answer), section


def test_every_fault_has_a_test(sections):
    rows = sections["Faults of others"]
    assert {row[0].split()[0] for row in rows if re.match(r"A\d+ ", row[0])} == {
        f"A{n}" for n in range(1, 17)
    }
    for fault, _, tests in rows:
        assert _named(tests), fault


def test_tests_of_this_list_are_in_it(root, sections):
    """A regression or conformance test that no row names would be lost from sight."""
    named = {n for rows in sections.values() for row in rows for n in _named(row[-1])}
    for file in ("tcp_regressions", "tcp_regressions_life", "tcp_conformance"):
        for function in _functions(root / "tests" / f"test_{file}.py"):
            if function.startswith("test_"):
                assert f"{file}::{function}" in named


def test_mutants_are_marked(root, sections):
    """ "(mutant)" stands behind each test that test_tcp_mutants.py runs, and nowhere else."""
    planted = re.findall(
        r"^        \w+\.(test_\w+),$", (root / "tests" / "test_tcp_mutants.py").read_text(), re.M
    )
    marked = [
        re.search(r"::(test_\w+)` \(mutant\)", row[-1])[1]
        for row in sections["Faults of others"]
        if "(mutant)" in row[-1]
    ]
    assert sorted(planted) == sorted(marked)
    assert len(planted) >= 5
