"""The Markdown documents of the repository as pages of the site.

`docs/index.md` is the navigation: its sections are the site's, their links the pages in order.
A page lies where its file lies below `docs/`; files of the top folder lie at the top. Links are
changed accordingly. Other files that a page links to are copied.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from ...models.ledger import ROOT

__all__ = [
    "ORPHAN",
    "PAGES",
    "Section",
    "documents",
    "links",
    "page_of",
    "sections",
    "translated",
]

DOCS = ROOT / "docs"
INDEX = DOCS / "index.md"
#: Files outside `docs/` that are pages, and the name of the page.
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
}
#: First lines of a page that only its index page links to. Pages in the navigation are listed on
#: every page, which takes most of the time of a build if there are hundreds.
ORPHAN = "---\norphan: true\n---\n"

_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#]+\.md)\)", re.M)
_FENCE = re.compile(r"^(```.*?^```[^\n]*$)", re.M | re.S)


@dataclass
class Section:
    """A part of the navigation: its title, and its pages as (title, name without suffix)."""

    title: str
    pages: list[tuple[str, str]] = field(default_factory=list)


def documents() -> list[Path]:
    """Return all documents that become pages, `docs/index.md` first."""
    found = sorted(path for path in DOCS.rglob("*.md") if path != INDEX)
    return [INDEX, *found, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]


def page_of(path: Path) -> str | None:
    """Return the name of the page that a file becomes, or None if it is no page."""
    relative = path.relative_to(ROOT).as_posix()
    if relative in PAGES:
        return PAGES[relative]
    return path.relative_to(DOCS).as_posix() if path in documents() else None


def links(text: str) -> list[str]:
    """Return the targets of a document's links, without those in code."""
    parts = _FENCE.split(text)[::2]
    return [match[2] for part in parts for match in _LINK.finditer(part)]


def translated(path: Path, text: str) -> tuple[str, list[tuple[Path, str]]]:
    """Return a document with the links of its page, and the files to copy with their new places.

    A link to a file that does not exist stays as it is, for Sphinx to report.
    """
    page, files = page_of(path) or path.name, []

    def moved(match: re.Match[str]) -> str:
        target, hash_, anchor = match[2].partition("#")
        file = (path.parent / target).resolve()
        if not target or "://" in target or not file.is_relative_to(ROOT) or not file.exists():
            return match[0]
        name = page_of(file)
        if name is None:
            base = DOCS if file.is_relative_to(DOCS) else ROOT
            name = file.relative_to(base).as_posix()
            files.append((file, name))
        place = os.path.relpath(name, Path(page).parent)
        return f"{match[1]}{place}{hash_}{anchor}{match[3]}"

    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(moved, part) for part in parts[::2]]
    return "".join(parts), files


def sections() -> list[Section]:
    """Return the navigation of `docs/index.md`."""
    text = INDEX.read_text()
    found = []
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title = part.splitlines()[0].strip()
        pages = [
            (name, page_of((DOCS / target).resolve())) for name, target in _ENTRY.findall(part)
        ]
        found.append(Section(title, [(name, p.removesuffix(".md")) for name, p in pages if p]))
    return found
