"""`make docs`: the documentation site in `build/site`, from `docs/` and docstrings.

The sources of all pages are written to `build/site-source`, those that have not changed are left
as they are, and Sphinx makes HTML of them. Any warning of Sphinx is an error: links, anchors,
docstrings. Nothing is fetched.
"""

import argparse
import shutil
import sys
from pathlib import Path

from ...models.ledger import ROOT
from . import commands, figures, interfaces, layouts, registers
from .pages import documents, page_of, sections, translated
from .sheets import sheets

__all__ = ["REFERENCE", "main", "prepare"]

SOURCE = ROOT / "build" / "site-source"
OUTPUT = ROOT / "build" / "site"


#: Computed pages of the navigation's section "Reference", by title.
REFERENCE = {
    "Data sheets of the cores": "reference/cores/index",
    "Registers": "reference/registers/index",
    "Commands": "reference/cli/index",
    "Python interface": "reference/client/index",
    "LiteX modules": "reference/litex",
    "Modules of file formats": "reference/formats",
    "Boards": "reference/boards",
    "Shell plans and memory maps": "reference/shells",
    "Measured figures": "reference/figures",
}


MAKERS = (
    sheets,
    registers.pages,
    commands.pages,
    interfaces.pages,
    layouts.pages,
    figures.pages,
)


def generated() -> dict[str, str]:
    """Return the pages that are computed, and their pictures, by name."""
    found: dict[str, str] = {}
    for make in MAKERS:
        found |= make()
    return found


def prepare(folder: Path) -> None:
    """Write the sources of all pages into ``folder``, and remove what else is there."""
    wanted: dict[str, bytes] = {"conf.py": (ROOT / "docs" / "site" / "conf.py").read_bytes()}
    for path in documents():
        text, files = translated(path, path.read_text())
        name = page_of(path) or path.name
        wanted[name] = (text + (navigation() if name == "index.md" else "")).encode()
        wanted |= {place: file.read_bytes() for file, place in files}
    wanted |= {name: text.encode() for name, text in generated().items()}
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        if path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
    for name, content in wanted.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def navigation() -> str:
    """Return the tables of contents behind the index page."""
    text = ""
    for section in sections():
        entries = [f"{title} </{page}>" for title, page in section.pages]
        if section.title == "Reference":
            entries += [f"{title} </{page}>" for title, page in REFERENCE.items()]
        head = ["\n```{toctree}", ":hidden:", f":caption: {section.title}", ""]
        text += "\n".join([*head, *entries, "```\n"])
    return text


def main() -> int:
    from sphinx.cmd.build import main as sphinx

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where the site is written")
    parser.add_argument("--fresh", action="store_true", help="use nothing of an earlier build")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(SOURCE, ignore_errors=True)
    prepare(SOURCE)
    cache = ROOT / "build" / "site-cache"
    words = ["-b", "html", "-q", "-W", "--keep-going", "-d", str(cache)]
    words += ["-E", "-a"] if options.fresh else []
    code = sphinx([*words, str(SOURCE), str(options.output)])
    drop_old(SOURCE, options.output)
    return code


def drop_old(source: Path, output: Path) -> None:
    """Remove pages of earlier builds that have no source any more."""
    names = {
        p.relative_to(source).with_suffix("") for s in ("*.md", "*.rst") for p in source.rglob(s)
    }
    names |= {Path(name) for name in ("genindex", "search", "py-modindex")}
    for path in output.rglob("*.html"):
        if path.relative_to(output).with_suffix("") not in names:
            path.unlink()


if __name__ == "__main__":
    sys.exit(main())
