"""The table of requirements in ``docs/web.md`` is that of the vectors in ``tests/http``."""

import re
import tomllib
from collections import Counter, defaultdict

import pytest
from http_vectors import FOLDER
from trebuchet.models.ledger import ROOT

LEVELS = ("MUST", "SHOULD", "MAY")


def table():
    """The cells of each row, by RFC and section."""
    text = (ROOT / "docs" / "web.md").read_text().partition("\n## Requirements\n")[2]
    _, _, *lines = [line for line in text.partition("\n## ")[0].splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert all(len(row) == 6 for row in rows), "a row has another number of cells"
    assert len({row[0] for row in rows}) == len(rows), "a section is there twice"
    return {row[0]: row[1:] for row in rows}


def sections():
    """Number of vectors by level, and the files they are in, by RFC and section."""
    levels, files = defaultdict(Counter), defaultdict(set)
    for path in sorted(FOLDER.glob("*.toml")):
        for vector in tomllib.loads(path.read_text()).get("vector", []):
            levels[vector["section"]][vector["level"]] += 1
            files[vector["section"]].add(path.stem)
    return {
        section: (
            ", ".join(f"{counts[level]} {level}" for level in LEVELS if counts[level]),
            ", ".join(f"`{name}`" for name in sorted(files[section])),
        )
        for section, counts in levels.items()
    }


def order(section):
    rfc, number = section.split()
    return int(rfc), [int(part) for part in number.split(".")]


def test_each_section_has_its_row():
    assert list(table()) == sorted(sections(), key=order)


@pytest.mark.parametrize("section", sorted(sections(), key=order))
def test_a_row_says_what_its_vectors_are(section):
    requirement, gateware, model, levels, files = table()[section]
    assert requirement
    assert (levels, files) == sections()[section]
    for cell, folder in ((gateware, "cores/web"), (model, "models/http")):
        names = re.findall(r"`([^`]+)`", cell)
        assert all((ROOT / folder / name).is_file() for name in names), cell
        assert names or cell == "firmware", cell
