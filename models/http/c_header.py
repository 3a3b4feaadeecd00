"""The layout of :mod:`.image`, prepared responses and media types, as a header for the firmware."""

from .folder import media_type, media_types
from .image import (
    BUCKET_BYTES,
    ENTRY,
    ENTRY_BYTES,
    INDEX_OFFSET,
    PATH_OFFSET,
    PLACES,
    SAME_ROOM,
    SEGMENT,
)
from .response import HEADER_ROOM, prepared

__all__ = ["store_header"]


def _prepared_bytes():
    content = bytearray()
    for (verdict, close), place in PLACES.items():
        content[len(content) :] = bytes(place.offset - len(content))
        content += prepared(verdict, close).sent()
    return bytes(content)


def store_header():
    """Text of the C header ``trebuchet_store.h`` (firmware/store/catalogue.h)."""
    numbers = {
        "BUCKET_BYTES": BUCKET_BYTES,
        "ENTRY_BYTES": ENTRY_BYTES,
        "PATH_OFFSET": PATH_OFFSET,
        "INDEX_OFFSET": INDEX_OFFSET,
        "HEADER_ROOM": HEADER_ROOM,
        "SAME_ROOM": SAME_ROOM,
        "SEGMENT": SEGMENT,
    }
    shift = 0
    for name, width in ENTRY.items():
        if not name.startswith("_"):
            numbers[f"{name.upper()}_SHIFT"] = shift
        shift += width
    types = media_types()
    content = _prepared_bytes()
    rows = (", ".join(map(str, content[at : at + 16])) for at in range(0, len(content), 16))
    return "\n".join(
        [
            "/* Generated from models/http; do not edit. */",
            "#pragma once",
            "",
            "#include <stdint.h>",
            "",
            *(f"#define STORE_{name} {value}" for name, value in numbers.items()),
            f"#define STORE_TYPES {len(types) + 1}",
            "",
            "/* Media types by extension; the first is that of all others. */",
            "static const struct store_type {",
            "\tconst char *extension, *type;",
            "} store_types[STORE_TYPES] = {",
            f'\t{{ "", "{media_type("")}" }},',
            *(f'\t{{ "{name}", "{kind}" }},' for name, kind in types.items()),
            "};",
            "",
            f"static const uint8_t store_prepared[{len(content)}] = {{",
            *(f"\t{row}," for row in rows),
            "};",
            "",
        ]
    )
