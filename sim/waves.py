"""Check that a file of waves (FST) is whole: its writer in Verilator ignores errors."""

from pathlib import Path

from ..models.errors import TrebuchetError

__all__ = ["require_waves"]

#: Types of blocks (fstapi.h): geometry, and the forms of the hierarchy, which is written last.
GEOMETRY, HIERARCHY = 3, {4, 6, 7}


def block_types(path: Path) -> set[int] | None:
    """Return the types of the blocks of an FST file; None if the last one is not whole."""
    found = set()
    with path.open("rb") as file:
        size = file.seek(0, 2)
        place = 0
        while place < size:
            file.seek(place)
            head = file.read(9)
            place += 1 + int.from_bytes(head[1:], "big")
            if len(head) < 9 or not head[1:].strip(b"\0"):
                return None
            found.add(head[0])
    return found if place == size else None


def require_waves(path: Path) -> None:
    """Raise :class:`TrebuchetError` if the waves did not all get into the file."""
    try:
        types = block_types(path) if path.is_file() else None
    except OSError as error:
        raise TrebuchetError(f"cannot read waves {str(path)!r}: {error.strerror}") from error
    if types is None or GEOMETRY not in types or not types & HIERARCHY:
        raise TrebuchetError(
            f"cannot write waves {str(path)!r}: the file is not whole; is the disk full?"
        )
