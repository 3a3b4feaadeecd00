"""Documents are true: links and anchors resolve, commands exist; those of the first three run."""

import os
import re
import subprocess
import sys

import pytest
from document_lib import (
    EVERY,
    INCOMPLETE,
    anchors,
    broken_links,
    fault_of,
    named_commands,
    shown_commands,
    shown_figures,
    shown_lines,
    unmarked_figures,
)
from trebuchet.bench.registry import LEDGER
from trebuchet.docs.site import pages
from trebuchet.host.cli import COMMANDS
from trebuchet.models.ledger import ROOT, Ledger, value_of

DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/cores.md")

#: Measured figures by name.
FIGURES = {name: value_of(row) for name, row in Ledger(LEDGER).rows.items()}

#: Seconds of processor time for a command; one that simulates compiles the simulator first.
LIMIT = 1500

#: Commands that are not run as written, and what is run instead. Each has its reason.
INSTEAD = {
    "make demo": ("run by test_make_demo_runs_as_written", "make -n demo"),
    "make test": ("is what runs this test", "make -n test"),
    "make check": ("is what runs this test", "make -n check"),
    'make nightly ARGS="prove:tcp"': ("could take hours", "trebuchet nightly --list prove:skid"),
    "make format": ("would change the tree under test", "make -n format"),
    "trebuchet build versa_ecp5": ("minutes of place and route: `make boards`", None),
    "trebuchet load versa_ecp5": ("needs the board on this machine", "trebuchet load --help"),
    "trebuchet flash versa_ecp5": ("needs the board on this machine", "trebuchet flash --help"),
    "trebuchet run versa_ecp5 -- ecg run": ("needs the board", "trebuchet run --help"),
    "trebuchet console": ("needs the board on this machine", "trebuchet console --help"),
    "trebuchet discover": ("needs boards on this network", "trebuchet discover --help"),
    "trebuchet status 192.168.1.50 --nonzero --watch 2": (
        "needs the board on this network",
        "trebuchet status --help",
    ),
    "trebuchet health 192.168.1.50": (
        "needs the board on this network",
        "trebuchet health --help",
    ),
    "trebuchet burnin 192.168.1.50": (
        "needs the board on this network",
        "trebuchet burnin --help",
    ),
    "make release": ("needs boards that were built", "make -n release"),
    "trebuchet sessions 192.168.1.50": (
        "needs the board on this network",
        "trebuchet sessions --help",
    ),
    "trebuchet registers 192.168.1.50 tcp.rto_min 250": (
        "needs the board on this network",
        "trebuchet registers --help",
    ),
    "trebuchet probe 192.168.1.50 --list": (
        "needs the board on this network",
        "trebuchet probe --help",
    ),
    "trebuchet web load 192.168.1.50 build/site": (
        "needs the board on this network",
        "trebuchet web load --help",
    ),
    "trebuchet store make build/site -o card.img": (
        "needs a site that was built",
        "trebuchet store make --help",
    ),
    "trebuchet manage 192.168.1.50 version": (
        "needs the board on this network",
        "trebuchet manage --help",
    ),
    "trebuchet update 192.168.1.50 new.img": (
        "needs the board on this network",
        "trebuchet update --help",
    ),
    "python examples/cores/litex_tcp.py": (
        "run and simulated by test_integration_examples",
        "test -f examples/cores/litex_tcp.py",
    ),
    "python examples/cores/router_mesh.py": (
        "run and simulated by test_integration_examples",
        "test -f examples/cores/router_mesh.py",
    ),
    "trebuchet bench": ("could measure for minutes; the next one runs", "trebuchet bench --help"),
}


def commands(document):
    """Lines of the fenced `sh` blocks, without comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / document).read_text(), re.M | re.S)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def marked(command, document):
    marks = []
    if command.startswith("trebuchet sim "):
        marks = [pytest.mark.slow, pytest.mark.cpu_limit(LIMIT)]
    if "--boards" in command:  # four boards in one process; tests/test_sim_fleet.py has two
        marks.append(pytest.mark.nightly)
    if "--role" in command:  # a board of its own; tests/test_matmul_e2e.py has one without a CPU
        marks.append(pytest.mark.nightly)
    return pytest.param(command, document, marks=marks)


ALL = sorted({(command, document) for document in DOCUMENTS for command in commands(document)})


@pytest.mark.parametrize(("command", "document"), [marked(*entry) for entry in ALL])
def test_command_runs(command, document):
    _, replacement = INSTEAD.get(command, (None, command))
    if replacement is None:
        replacement = " ".join(command.split()[:2]) + " --help"
    result = subprocess.run(
        ["bash", "-ec", replacement],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "VIRTUAL_ENV": sys.prefix},
    )
    assert result.returncode == 0, f"{document}: {replacement}\n{result.stdout}{result.stderr}"


def test_every_exception_is_still_needed():
    assert set(INSTEAD) <= {command for command, _ in ALL}


def test_first_screen_of_the_readme_has_the_two_commands():
    screen = (ROOT / "README.md").read_text().splitlines()[:24]
    assert any(line.startswith("make demo") for line in screen)
    assert any(line.startswith("make test") for line in screen)


def test_every_command_is_mentioned_somewhere():
    text = "".join((ROOT / document).read_text() for document in DOCUMENTS)
    mentioned = set(re.findall(r"(?:trebuchet|make) ([a-z]+)", text))
    assert set(COMMANDS) <= mentioned


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document):
    text = (ROOT / document).read_text()
    top = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"build"}  # what is yet to come
    for path in re.findall(r"`([\w./-]+/[\w.-]*)`", text):
        if path.split("/")[0] in top:
            assert (ROOT / path).exists(), f"{document} names {path}"


@pytest.mark.parametrize("document", EVERY)
def test_links_and_anchors_resolve(document):
    assert list(broken_links(document)) == []


@pytest.mark.parametrize("document", sorted({*EVERY} - {"docs/resources.md"}))  # that is made
def test_figures_in_prose_are_those_of_the_ledger(document):
    text = (ROOT / document).read_text()
    for name, shown, decimals in shown_figures(text):
        assert name in FIGURES, f"{document}: there is no figure {name!r}"
        # Half to even, or half up: a document may do either.
        assert abs(shown - FIGURES[name]) <= 0.501 * 10**-decimals, (
            f"{document} says {shown:g} of {name}, which is {FIGURES[name]:g}"
        )
    assert unmarked_figures(text, FIGURES) == [], f"{document}: write NUMBER<!-- FIGURE -->"


def test_figures_are_found_in_prose():
    text = "it takes 2,441<!-- router.lut6 --> LUT6, **61.6 MHz**<!-- a.mhz -->, 72<!-- b.x --> %"
    assert list(shown_figures(text)) == [
        ("router.lut6", 2441, 0),
        ("a.mhz", 61.6, 1),
        ("b.x", 0.72, 2),
    ]
    assert list(shown_figures("**99.70 %**<!-- ecg.rpeak_se --> |")) == [("ecg.rpeak_se", 0.997, 4)]
    rows = "| `a.b` | 1 |\n| `a.b` | 1<!-- a.b --> |\n| `c.d` | 1 |\nof `a.b` 1\n"
    assert unmarked_figures(rows, {"a.b": 1}) == ["| `a.b` | 1 |"]


def test_anchors_are_those_of_github():
    text = "# A `b`: c, d\n```\n# no\n```\n## Places: *x* (y)\n## A `b`: c, d\n### [L](m.md) 2\n"
    assert anchors(text) == ["a-b-c-d", "places-x-y", "a-b-c-d-1", "l-2"]


@pytest.mark.parametrize("document", EVERY)
def test_commands_of_documents_exist(document):
    """All options and arguments are parsed, by the parser of the command itself; nothing runs."""
    faults = {" ".join(words): fault_of(words) for words in shown_commands(document)}
    for words in named_commands(document):
        fault = fault_of(words)
        faults[" ".join(words)] = None if fault and INCOMPLETE.search(fault) else fault
    assert {command: fault for command, fault in faults.items() if fault} == {}


@pytest.mark.parametrize("document", EVERY)
def test_make_targets_of_documents_exist(document):
    known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    lines = shown_lines((ROOT / document).read_text())
    named = {match[1] for line in lines if (match := re.match(r"make ([a-z]+)\b", line))}
    assert named <= known


def test_bad_commands_are_found():
    assert fault_of(("status",)) is not None
    assert fault_of(("sim", "--gdb", "x")) is not None
    assert fault_of(("board", "chek")) is not None
    assert fault_of(("simulate",)) is not None
    assert fault_of(("sim", "--nothing")) is not None
    assert fault_of(("sim", "--exec", "true")) is None


def test_every_document_is_in_the_navigation():
    listed = [page for section in pages.sections() for _, page in section.pages]
    names = [pages.page_of(path).removesuffix(".md") for path in pages.documents()[1:]]
    assert sorted(listed) == sorted(names), "docs/index.md must list each document once"


@pytest.mark.parametrize(
    "target", ["venv", "demo", "test", "check", "nightly", "prove", "boards", "bench", "docs"]
)
def test_make_knows_the_target(target):
    subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True)
    listed = subprocess.run(["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert f"make {target} " in listed.stdout
