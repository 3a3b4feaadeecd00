"""Hash of source folders: comments and layout do not count, everything else does."""

import json
import os
import time

import pytest
from trebuchet.models import sources
from trebuchet.models.sources import folders_hash, significant_bytes

PYTHON = '"""A module."""\n\n\ndef f(a):\n    """Add one."""\n    return a + 1  # one more\n'
C = 'int a = 1; // one\nchar *s = "/* no // comment */"; char q = \'"\'; /* two\nlines */ int b;\n'


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "cores" / "net").mkdir(parents=True)
    (tmp_path / "cores" / "net" / "f.py").write_text(PYTHON)
    (tmp_path / "cores" / "a.c").write_text(C)
    (tmp_path / "cores" / "weights.json").write_text("[1, 2]\n")
    (tmp_path / "models").mkdir()
    return tmp_path


def digest(tree, **arguments):
    return folders_hash(["cores", "models"], root=tree, **arguments)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("net/f.py", "# one more", "# another"),
        ("net/f.py", "Add one.", "Increment."),
        ("net/f.py", "return a + 1", "\n    return (a +\n        1)"),
        ("a.c", "// one", "// two"),
        ("a.c", "/* two\nlines */", "/* one line */"),
    ],
)
def test_a_comment_does_not_count(tree, name, old, new):
    before, path = digest(tree), tree / "cores" / name
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert digest(tree) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("net/f.py", "a + 1", "a + 2"),
        ("net/f.py", "a", "b"),
        ("a.c", "a = 1", "a = 2"),
        ("a.c", "no // comment", "no // remark"),
        ("a.c", "int b", "int c"),
        ("weights.json", "[1, 2]", "[1,2]"),
    ],
)
def test_code_counts(tree, name, old, new):
    before, path = digest(tree), tree / "cores" / name
    path.write_text(path.read_text().replace(old, new))
    assert digest(tree) != before


def test_names_count(tree):
    before = digest(tree)
    (tree / "models" / "empty.py").touch()
    added = digest(tree)
    (tree / "models" / "empty.py").rename(tree / "models" / "other.py")
    assert len({before, added, digest(tree)}) == 3
    assert len(added) == 16


def test_what_tools_make_does_not_count(tree):
    before = digest(tree)
    for name in ("cores/build/a.py", "cores/net/__pycache__/f.cpython.pyc", "models/f.pyc"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("made")
    assert digest(tree) == before


def test_without(tree):
    before = digest(tree)
    (tree / "models" / "ledger").mkdir()
    (tree / "models" / "ledger" / "a.json").write_text("{}")
    (tree / "models" / "ledger.json").write_text("{}")
    assert digest(tree) != before
    assert digest(tree, without=["models/ledger", "models/ledger.json"]) == before


def test_a_missing_folder_is_refused(tree):
    with pytest.raises(ValueError, match=f"^Folder must exist below {tree}, not 'nowhere'$"):
        folders_hash(["nowhere"], root=tree)


def test_a_file_without_valid_syntax_counts_as_it_is(tree):
    path = tree / "cores" / "bad.py"
    path.write_text("def (  # comment")
    assert significant_bytes(path) == b"def (  # comment"


def _age(tree):
    """Let all files be old enough for the cache."""
    past = time.time_ns() - 10 * sources._RACY
    for path in tree.rglob("*.*"):
        os.utime(path, ns=(past, past))


@pytest.fixture
def read(tree, monkeypatch):
    """Names of the files whose content is read."""
    names = []

    def reading(path):
        names.append(path.name)
        return significant_bytes(path)

    monkeypatch.setattr(sources, "significant_bytes", reading)
    return names


def test_unchanged_files_are_not_read_again(tree, read, monkeypatch):
    monkeypatch.setattr(sources, "_RACY", 0)
    _age(tree)
    before = digest(tree)
    assert sorted(read) == ["a.c", "f.py", "weights.json"]
    read.clear()
    assert digest(tree) == before
    assert read == []
    (tree / "cores" / "weights.json").write_text("[3, 4]\n")  # as long as it was
    assert digest(tree) != before
    assert read == ["weights.json"]


def test_a_file_that_has_just_changed_is_not_trusted_to_its_time_stamp(tree, read):
    digest(tree)
    digest(tree)
    assert len(read) == 6


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '{"version": "0"}', '{"version": VERSION, "files": 3}']
)
def test_an_invalid_cache_is_ignored(tree, content, monkeypatch):
    monkeypatch.setattr(sources, "_RACY", 0)
    before = digest(tree)
    cache = tree / "build" / "sources.json"
    assert set(json.loads(cache.read_text())["files"]) == {
        "cores/a.c", "cores/net/f.py", "cores/weights.json"
    }  # fmt: skip
    cache.write_text(content.replace("VERSION", json.dumps(sources._VERSION)))
    assert digest(tree) == before
    assert len(json.loads(cache.read_text())["files"]) == 3
