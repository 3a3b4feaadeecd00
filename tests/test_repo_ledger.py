"""Ledgers: rows, their files, what is refused; age in commits of the gateware."""

import json
import subprocess

import pytest
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.ledger import ROOT, Ledger, gateware_commits_since, origin


@pytest.fixture
def ledger(tmp_path):
    ledger = Ledger(tmp_path / "ledger")
    ledger.record("x", "x.b", "1", value=3)
    ledger.record("x", "x.a", "2", value=4, note="µs")
    ledger.record("y", "y.a", "3", value=5)
    return ledger


def test_a_file_for_each_group_a_line_for_each_row(ledger):
    assert sorted(path.name for path in ledger.folder.iterdir()) == ["x.json", "y.json"]
    lines = (ledger.folder / "x.json").read_text().splitlines()
    assert [line[:6] for line in lines] == ["{", '"x.a":', '"x.b":', "}"]
    assert "µs" in lines[1]
    again = Ledger(ledger.folder)
    assert again.rows == ledger.rows
    assert again.rows["x.b"] == {"value": 3, "inputs": "1"}
    assert again.groups == {"x.a": "x", "x.b": "x", "y.a": "y"}


def test_stale_rows(ledger):
    assert ledger.current("x.b", "1") == {"value": 3, "inputs": "1"}
    assert ledger.current("x.b", "2") is None
    assert ledger.current("x.c", "1") is None


def test_a_row_moves_to_its_group_and_empty_files_go(ledger):
    ledger.record("x", "y.a", "3", value=5)
    assert not (ledger.folder / "y.json").exists()
    assert Ledger(ledger.folder).groups["y.a"] == "x"
    ledger.keep(["x.a"])
    assert set(Ledger(ledger.folder).rows) == {"x.a"}


def test_only_changed_files_are_written(ledger):
    path = ledger.folder / "y.json"
    before = path.stat().st_mtime_ns
    ledger.record("x", "x.b", "1", value=3)
    ledger.record("x", "x.b", "1", value=4)
    assert path.stat().st_mtime_ns == before


def test_two_processes_keep_each_others_rows(tmp_path):
    """Both read the folder before either writes."""
    one, other = Ledger(tmp_path / "l"), Ledger(tmp_path / "l")
    one.record("a", "a", "x", value=1)
    other.record("a", "b", "y", value=2)
    rows = {"a": {"value": 1, "inputs": "x"}, "b": {"value": 2, "inputs": "y"}}
    assert Ledger(tmp_path / "l").rows == rows


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('"value": 3', '"value": 2', "row 'x.b' was changed by hand: its `sum` does not match"),
        ('"inputs": "1"', '"inputs": "7"', "row 'x.b' was changed by hand"),
        ('"x.b"', '"x.c"', "row 'x.c' was changed by hand"),
        ('"x.b"', '"x.a"', "'x.a' is there 2 times"),
        ('"inputs": "1"', '"input": "1"', "row 'x.b' must be an object with `inputs`"),
        ("\n}\n", "\n", "it is not JSON: "),
        (None, "", "it is not JSON: "),
        (None, "[1]", "it must hold one object"),
        (None, '{"x.b": 3}', "row 'x.b' must be an object"),
        (None, b"\xff", "it is not JSON: "),
    ],
)
def test_what_is_refused_is_one_line(ledger, old, new, fault):
    path = ledger.folder / "x.json"
    text = path.read_text()
    assert old is None or text.count(old) in (1, 2)
    content = new if old is None else text.replace(old, new)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(TrebuchetError) as refused:
        Ledger(ledger.folder, "trebuchet x")
    message = str(refused.value)
    assert fault in message
    assert "x.json: " in message
    assert message.endswith("restore it with git, or remove what is wrong and run: trebuchet x")
    assert "\n" not in message


def test_a_row_in_two_files_is_refused(ledger):
    (ledger.folder / "z.json").write_text((ledger.folder / "y.json").read_text())
    with pytest.raises(TrebuchetError, match=r"z\.json: row 'y\.a' is in y\.json as well; restore"):
        Ledger(ledger.folder)


def test_branches_that_change_other_rows_merge(ledger, tmp_path):
    """A row is a line, so git joins two branches without a conflict."""

    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=b@c")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    for name in "cdefgh":
        ledger.record("x", f"x.{name}", "0", value=0)
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "rows")
    git("checkout", "-qb", "one")
    ledger.record("x", "x.b", "9", value=9)
    git("commit", "-qam", "one row")
    git("checkout", "-q", "main")
    Ledger(ledger.folder).record("x", "x.g", "8", value=8)
    git("commit", "-qam", "another")
    git("merge", "-q", "one")
    rows = Ledger(ledger.folder).rows
    assert (rows["x.b"]["value"], rows["x.g"]["value"]) == (9, 8)


def test_age_counts_commits_of_the_gateware(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=a", "-c", "user.email=b@c")
        command = ["git", *identity, *words]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(name):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.read_text() + "x" if path.exists() else "x")
        git("add", ".")
        git("commit", "-qm", name)
        return git("rev-parse", "--short=10", "HEAD")

    git("init", "-q", "-b", "main")
    assert origin(tmp_path)["commit"] == ""
    first = commit("cores/a.py")
    assert origin(tmp_path)["commit"] == first
    assert gateware_commits_since(first, tmp_path) == 0
    commit("docs/a.md")
    assert gateware_commits_since(first, tmp_path) == 0
    commit("cores/a.py")
    commit("boards/a.py")
    assert gateware_commits_since(first, tmp_path) == 2
    assert gateware_commits_since(f"{first}+", tmp_path) == 2
    (tmp_path / "cores" / "a.py").write_text("other")
    assert origin(tmp_path)["commit"].endswith("+")
    assert gateware_commits_since("0123456789", tmp_path) is None
    assert json.dumps(origin(tmp_path))


def test_ledgers_of_the_tree_are_whole():
    assert Ledger(ROOT / "bench" / "ledger").rows
