"""The documentation site builds without a warning, is whole, and needs nothing from elsewhere."""

import importlib
import pkgutil
import re
import subprocess
import sys
import types
from html import unescape

import pytest
from docstring_lib import broken_references
from trebuchet import client
from trebuchet.docs.site import commands, modules, registers, sheets
from trebuchet.docs.site.docstrings import absolute, converted, package_of
from trebuchet.docs.site.pages import translated
from trebuchet.models.ledger import ROOT
from trebuchet.models.status import DESCRIPTIONS, Status

#: Components are in pages of the site, so comments and docstrings matter.
pytestmark = pytest.mark.whole_tree

#: Words of the shortest docstring that can state ports, timing and reset of a component.
WORDS = 20


@pytest.fixture(scope="module")
def site():
    """The folder of a site built here; half a minute of processor time."""
    folder = ROOT / "build" / "site"
    words = [sys.executable, "-m", "trebuchet.docs.site.build", "--output", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def contents(site):
    return {p.relative_to(site).as_posix(): p.read_text() for p in site.rglob("*.html")}


@pytest.mark.slow
def test_every_public_component_has_a_data_sheet(contents):
    for module in modules.modules():
        page = contents[f"reference/cores/{modules.short(module)}.html"]
        for name in modules.components(module):
            assert f'id="{module.__name__}.{name}"' in page, f"{module.__name__}.{name}"


@pytest.mark.slow
def test_every_command_and_register_block_has_a_page(contents):
    for name in commands.COMMANDS:
        page = unescape(re.sub(r"<[^>]+>", "", contents[f"reference/cli/{name}.html"]))
        for full, _ in commands.commands(name):
            assert f"trebuchet {full}" in page
    for name, block in registers.blocks().items():
        page = contents[f"reference/registers/{name}.html"]
        assert all(register.name in page for register in block.registers)


@pytest.mark.slow
def test_links_and_anchors_of_all_pages_resolve(site, contents):
    anchors = {page: set(re.findall(r'\sid="([^"]+)"', text)) for page, text in contents.items()}
    for page, text in contents.items():
        article = re.search(r'<article role="main".*?</article>', text, re.S)
        for link in re.findall(r'(?:href|src)="([^"]+)"', article[0] if article else ""):
            target, _, anchor = unescape(link).partition("#")
            if "://" in target or target.startswith("mailto:"):
                continue
            file = ((site / page).parent / target).resolve() if target else site / page
            assert file.is_file(), f"{page} links to {link}"
            name = file.relative_to(site.resolve()).as_posix() if target else page
            assert not anchor or name not in anchors or anchor in anchors[name], f"{page}: {link}"


@pytest.mark.slow
def test_pages_load_nothing_from_other_hosts(contents):
    host = r'"(?:https?:)?//'
    loaded = re.compile(
        rf"<(?:script|img|iframe)[^>]+src={host}|<link[^>]+rel=.stylesheet[^>]+href={host}"
    )
    assert [page for page, text in contents.items() if loaded.search(text)] == []


def test_every_component_has_a_docstring_that_can_be_a_data_sheet():
    short = [
        f"{module.__name__}.{name}"
        for module in modules.modules()
        for name in modules.components(module)
        if len((text := getattr(module, name).__doc__ or "").split()) < WORDS
        and ":class:" not in text  # a variant of another component
    ]
    assert short == []


def test_references_of_docstrings_resolve():
    found = [f"trebuchet.client.{m.name}" for m in pkgutil.iter_modules(client.__path__)]
    listed = [*modules.modules(), *map(importlib.import_module, found)]
    assert [fault for module in listed for fault in broken_references(module)] == []


def test_broken_references_are_found(tmp_path):
    path = tmp_path / "probe.py"
    path.write_text('"""See :class:`~.record.Phase`, :data:`~.record.Phrase`, :func:`len`."""\n')
    module = types.ModuleType("trebuchet.cores.tcp.probe")
    module.__file__ = str(path)
    (fault,) = broken_references(module)
    assert fault == "trebuchet.cores.tcp.probe: trebuchet.cores.tcp.record.Phrase"


def test_figures_and_proofs_have_their_module():
    names = {modules.short(module) for module in modules.modules()}
    assert set(sheets.MEASURED) <= names
    rows = sheets.Ledger(ROOT / "formal" / "ledger").rows
    found = {name for module in modules.modules() for name in sheets.proofs_of(module, rows)}
    rest = {row["core"] for name, row in rows.items() if name not in found}
    assert {core for core in rest if core.startswith("cores.")} == set()


def test_status_codes_of_the_message_format_are_those_of_the_table():
    text = (ROOT / "docs" / "smp.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.*) \|$", text, re.M)
    assert rows == [(str(int(s)), s.name, DESCRIPTIONS[s]) for s in Status]


def test_numpydoc_sections_end_where_their_entries_end():
    lines = ["A thing.", "", "Parameters", "----------", "n : int", "    How many.", "a, b : str"]
    found = converted([*lines, "", "====  ====", "x     y", "====  ====", "", "Ports: none."])
    text = "\n".join(found)
    assert "``n`` : int\n    How many.\n``a``, ``b`` : str\n" in text
    assert text.endswith("\n====  ====\nx     y\n====  ====\n\nPorts: none.")


def test_references_that_begin_with_dots_are_those_of_imports():
    package = package_of("trebuchet.cores.tcp.classifier.SegmentClassifier")
    assert package == "trebuchet.cores.tcp"
    (line,) = absolute([":class:`~.record.Phase`, :mod:`..stream`"], package)
    assert line == ":class:`~trebuchet.cores.tcp.record.Phase`, :mod:`trebuchet.cores.stream`"


def test_links_of_documents_are_moved_with_their_pages():
    path = ROOT / "docs" / "tutorials" / "role.md"
    shown = "[a](../roles.md#life) [b](../../CONTRIBUTING.md) [c](../testplan.toml) [d](https://x)"
    text, files = translated(path, f"{shown}\n```\n[e](../roles.md)\n```\n")
    places = re.findall(r"\(([^)]+)\)", text)
    assert places[:2] == ["../roles.md#life", "../contributing.md"]
    assert places[2:] == ["../testplan.toml", "https://x", "../roles.md"]
    assert files == [(ROOT / "docs" / "testplan.toml", "testplan.toml")]
