"""docs/firmware.md lists the firmware's commands, as they are in its table."""

import re

import pytest

ROW = re.compile(r'^\t\{ "([a-z]+)", "([^"]*)", "([^"]*)", \w+ \},$', re.MULTILINE)


@pytest.fixture(scope="module")
def table(root):
    """``(name, arguments, help)`` of every row of the table."""
    text = (root / "firmware" / "commands.c").read_text()
    table = text[text.index("const struct command commands[]") : text.index("};\n\nconst unsigned")]
    rows = ROW.findall(table)
    assert len(rows) == table.count("\t{ "), "every row must be found"
    return rows


def test_the_documentation_has_every_command(table, root):
    text = (root / "docs" / "firmware.md").read_text().partition("| command | does |")[2]
    text = text.partition("\n\n")[0]
    listed = re.findall(r"^\| `([a-z]+)(?: ([^`]*))?` \| (.*) \|$", text, re.MULTILINE)
    assert [(n, a.replace("\\|", "|"), h) for n, a, h in listed] == table


def test_names_are_different_and_rows_fit_a_terminal(table):
    assert len({name for name, _, _ in table}) == len(table)
    for name, arguments, explanation in table:
        form = f"{name} {arguments}"
        assert max(28, len(form) + 1) + len(explanation) <= 79, form
