"""Pieces of reStructuredText."""

from collections.abc import Iterator, Sequence

__all__ = ["heading", "list_table", "literal"]


def heading(title: str, mark: str) -> Iterator[str]:
    """Yield the lines of a heading that is underlined with ``mark``."""
    yield from (title, mark * len(title), "")


def literal(text: str) -> str:
    """Return ``text`` as code; empty if it is."""
    return f"``{text}``" if text else ""


def list_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table; cells are reStructuredText of one line."""
    yield from (".. list-table::", "   :header-rows: 1", "")
    for row in (header, *rows):
        for number, cell in enumerate(row):
            yield f"   {'  ' if number else '* '}- {cell}".rstrip()
    yield ""
