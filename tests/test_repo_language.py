"""Form of documents and commit subjects; what words to choose is in style guides, not here."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 140
#: Subjects are imperative after this commit.
SINCE = "bd7d8fc2a61cd1511227c9b953980b080b200431"
#: ``part: verb …``, or several parts; further clauses follow a semicolon.
SUBJECT = re.compile(r"[a-z0-9_]+(?:, [a-z0-9_]+)*: .+")
#: First words of clauses that end like other forms of a verb, and are its imperative.
IMPERATIVES = {
    *("access", "address", "bypass", "compress", "cross", "discuss", "express", "focus", "pass"),
    *("press", "process", "embed", "exceed", "feed", "need", "proceed", "seed", "speed", "bring"),
}
NOUN_PHRASES = {"a", "an", "the", "no", "some", "more", "less", "fewer", "new", "all", "each"}


def clauses(subject):
    """Those of a subject behind its part, without further parts."""
    for clause in re.split(r"; ", subject.partition(": ")[2]):
        yield re.sub(r"^[a-z0-9_]+(?:, [a-z0-9_]+)*: ", "", clause)


def is_imperative(clause):
    """A guess from the first word's ending."""
    word = clause.split()[0].strip("`").lower()
    if word in NOUN_PHRASES:
        return False
    return word in IMPERATIVES or not re.search(r"(?:ing|ed|s)$", word)


def long_lines(text):
    """Numbers and lines of prose that are too long: not those of tables, code and links."""
    fence = False
    for number, line in enumerate(text.splitlines(), start=1):
        fence ^= line.lstrip().startswith("```")
        prose = not fence and not line.lstrip().startswith(("|", "[!", "```"))
        shown = re.sub(r"<!--.*?-->", "", line)
        if prose and not line.startswith("    ") and len(shown) > WIDTH:
            yield number, line


@pytest.mark.parametrize(
    ("subject", "good"),
    [
        ("tcp: clear the SYN-cookie key when a segment completes", True),
        ("tcp, docs: pass the window; bench: record what that costs", True),
        ("tcp: cleared the key", False),
        ("tcp: the key is cleared", False),
        ("tcp: clear the key; tests: checking that", False),
        ("tcp: no key is kept", False),
    ],
)
def test_the_guess(subject, good):
    assert all(map(is_imperative, clauses(subject))) == good


def test_the_lines_that_are_found():
    text = f"{'x' * WIDTH}\n{'y' * 141}\n| {'t' * 150} |\n```\n{'c' * 150}\n```\n{'z' * 141}\n"
    text += f"{'v' * WIDTH}<!-- router.lut6 -->\n"
    assert [number for number, _ in long_lines(text)] == [2, 7]


def test_subjects_of_commits_are_imperative():
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)

    if git("cat-file", "-e", f"{SINCE}^{{commit}}").returncode:
        pytest.skip("the history does not reach back so far: an archive or a shallow clone")
    subjects = git("log", "--no-merges", "--format=%s", f"{SINCE}..HEAD").stdout.splitlines()
    form = [s for s in subjects if not SUBJECT.fullmatch(s)]
    assert not form, "a subject must be `part: verb …`"
    assert not [s for s in subjects if not all(map(is_imperative, clauses(s)))]


@pytest.mark.parametrize(
    "path", sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"))), ids=lambda path: path.name
)
def test_prose_fits_the_screen(path):
    found = list(long_lines(path.read_text()))
    assert not found, f"{path.name}: wrap prose at {WIDTH} columns"
