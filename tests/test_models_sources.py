"""Hash of source folders: comments and layout do not count, everything else does."""

import json

import pytest
from trebuchet.models import file_cache
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


def test_the_form_is_the_same_in_every_version_of_python(tmp_path):
    """Rows of ledgers are keyed by it: fields that only newer versions have are left out."""
    path = tmp_path / "f.py"
    path.write_text("def f(a: int, *b) -> str:\n    return f'{a!r:>{3}}' + u'x'\n")
    assert significant_bytes(path).decode() == (
        "Module(body=[FunctionDef(name='f',args=arguments(args=[arg(arg='a',annotation=Name("
        "id='int',ctx=Load()))],vararg=arg(arg='b')),body=[Return(value=BinOp(left=JoinedStr("
        "values=[FormattedValue(value=Name(id='a',ctx=Load()),conversion=114,format_spec=JoinedStr("
        "values=[Constant(value='>'),FormattedValue(value=Constant(value=3),conversion=-1)]))]),"
        "op=Add(),right=Constant(value='x')))],returns=Name(id='str',ctx=Load()))])"
    )


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the lengths of files, and the names of those that were read."""
    monkeypatch.setattr(file_cache, "FOLDER", tmp_path / "cache")
    monkeypatch.setattr(file_cache, "RACY", 0)
    read = []

    def length(path):
        read.append(path.name)
        return len(path.read_text())

    return (lambda: file_cache.FileCache("lengths", length)), read


def test_unchanged_files_are_not_read_again(tmp_path, cache):
    make, read = cache
    path = tmp_path / "a.txt"
    path.write_text("1234")
    first = make()
    assert [first.value(path), first.value(path)] == [4, 4]
    first.write()
    assert make().value(path) == 4
    assert read == ["a.txt"]
    path.write_text("ab\0d")  # as long as it was
    assert make().value(path) == 4
    assert read == ["a.txt"] * 2


def test_a_file_that_has_just_changed_is_not_trusted_to_its_time_stamp(
    tmp_path, cache, monkeypatch
):
    monkeypatch.setattr(file_cache, "RACY", 10**12)
    make, read = cache
    path = tmp_path / "a.txt"
    path.write_text("1234")
    lengths = make()
    assert [lengths.value(path), lengths.value(path)] == [4, 4]
    assert len(read) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"a": 3}', '{"a": [1, 2, 3]}'])
def test_an_invalid_cache_is_ignored(tmp_path, cache, content):
    make, _ = cache
    path = tmp_path / "a.txt"
    path.write_text("1234")
    first = make()
    first.value(path)
    first.write()
    (kept,) = (tmp_path / "cache").iterdir()
    kept.write_text(content)
    again = make()
    assert again.value(path) == 4
    again.write()
    assert list(json.loads(kept.read_text())) == [str(path)]


def test_files_that_are_gone_are_dropped(tmp_path, cache):
    make, _ = cache
    lengths = make()
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        lengths.value(tmp_path / name)
    lengths.write()
    (tmp_path / "a").unlink()
    (tmp_path / "c").write_text("c")
    again = make()
    again.value(tmp_path / "c")
    again.write()
    (kept,) = (tmp_path / "cache").iterdir()
    assert [name[-1] for name in json.loads(kept.read_text())] == ["b", "c"]
