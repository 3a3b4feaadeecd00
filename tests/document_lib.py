"""What the documents of the repository show: links, anchors, commands."""

import re
import shlex
from functools import cache

import typer
from trebuchet.docs.site import commands as interface
from trebuchet.docs.site.pages import documents, links
from trebuchet.host.cli import COMMANDS
from trebuchet.models.ledger import ROOT

#: All documents, and the page that a repository begins with.
EVERY = tuple(sorted(p.relative_to(ROOT).as_posix() for p in (*documents(), ROOT / "README.md")))

_FENCE = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```", re.M | re.S)


#: A number in prose, and the figure of `bench/ledger` that it is: ``2,441<!-- router.lut6 -->``.
_FIGURE = re.compile(
    r"(?P<number>\d[\d,]*(?:\.\d+)?)(?P<unit>[^\d\n|<]*)<!-- (?P<name>[a-z]\w*(?:\.\w+)+) -->"
    r"(?P<after> %)?"
)

_PLACEHOLDER = re.compile(r"^[A-Z][A-Z_]*$")
#: What the parser says of a command without all of its arguments.
INCOMPLETE = re.compile(r"Missing parameter|requires an argument")


def anchors(text):
    """Return the anchors of a document's headings, as GitHub makes them."""
    plain = _FENCE.sub("", text)
    found = []
    for title in re.findall(r"^#{1,6} +(.+?)\s*$", plain, re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
        name = re.sub(r"[^\w\- ]", "", title).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return found


def broken_links(document):
    """Yield the links of a document to a file or an anchor that does not exist."""
    path = ROOT / document
    for link in links(path.read_text()):
        target, _, anchor = link.partition("#")
        if "://" in link:
            continue
        file = (path.parent / target) if target else path
        if not file.exists() or (anchor and anchor not in anchors(file.read_text())):
            yield link


def shown_figures(text):
    """Yield ``(figure, number as shown, its decimals)`` for each number that names its figure.

    A percentage counts as the hundredth that it is.
    """
    for found in _FIGURE.finditer(text):
        number, decimals = found["number"].replace(",", ""), len(found["number"].partition(".")[2])
        percent = "%" in found["unit"] or bool(found["after"])
        yield found["name"], float(number) / (100 if percent else 1), decimals + 2 * percent


def unmarked_figures(text, figures):
    """Return the rows of tables that name a figure in backticks, but none of whose numbers is."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [
        line
        for line in rows
        if set(re.findall(r"`([a-z]\w*(?:\.\w+)+)`", line)) & set(figures) and "<!--" not in line
    ]


def shown_lines(text):
    """Yield the lines of fenced and indented blocks that are commands of ours."""
    for language, block in _FENCE.findall(text):
        if language in ("", "sh", "bash"):
            yield from block.splitlines()
    yield from re.findall(r"^ {4}(\S.*)$", _FENCE.sub("", text), re.M)


def shown_commands(document):
    """Return the words of each `trebuchet` command in a document's blocks, those in quotes too."""
    lines = shown_lines((ROOT / document).read_text())
    return [words for line in lines for words in _commands_in(line)]


def named_commands(document):
    """Return the words of each `trebuchet` command in a document's text; parts may be left out.

    A word in capitals stands for a value, and is made one.
    """
    text = _FENCE.sub("", (ROOT / document).read_text())
    found = [_commands_in(line) for line in re.findall(r"`(trebuchet [^`\n]+)`", text)]
    return [
        tuple(_PLACEHOLDER.sub("1", word) for word in words) for line in found for words in line
    ]


def _commands_in(line):
    if "trebuchet" not in line:
        return []
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    found = []
    for k, word in enumerate(words):
        if " " in word:
            found += _commands_in(word)
        before = words[:k]
        if word == "trebuchet" and all(
            "=" in w or w in ("$", "$TREBUCHET_ON_HOST") for w in before
        ):
            found.append(tuple(_arguments(words[k + 1 :])))
    return found


def _arguments(words):
    """Words up to the first that is for the shell."""
    for word in words:
        if word in ("&", "&&", "|", ";") or word.startswith((">", "<")):
            return
        yield word


@cache
def _command(name):
    return interface.command(name)


def fault_of(words):
    """Return why the command-line interface refuses the words of a command, or None."""
    if not words or words[0].startswith(("-", "…", "COMMAND", "<")):
        return None
    name, arguments = words[0], list(words[1:])
    if name not in COMMANDS:
        return f"there is no command {name!r}"
    found = _command(name)
    while arguments and not arguments[0].startswith("-") and hasattr(found, "commands"):
        inner = arguments.pop(0)
        if inner not in found.commands:
            return f"trebuchet {name} has no command {inner!r}"
        found = found.commands[inner]
    if not arguments and hasattr(found, "commands"):
        return None  # named, not called
    try:
        found.make_context(name, arguments)
    except typer.Exit:
        return None
    except Exception as error:
        return getattr(error, "message", "") or str(error)
    return None
