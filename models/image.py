"""Images of firmware and bitstreams for a board's flash (``firmware/image.h``).

An image is a header of 64 bytes and its contents. The header says what it is, for which board, and
has checksums of itself and of the contents.
"""

import enum
import struct
import zlib
from dataclasses import dataclass

from .errors import TrebuchetError

__all__ = [
    "MAGIC",
    "APPLICATION_BYTES",
    "HEADER_BYTES",
    "MAIN_RAM",
    "SECTOR",
    "Image",
    "Kind",
    "check_firmware",
    "slot_bytes",
]

_HEADER = struct.Struct("<4sBBHIII24s16s")
MAGIC = b"TBIM"
_FORMAT = 1
HEADER_BYTES = _HEADER.size + 4
#: Where application firmware runs: the start of external memory.
MAIN_RAM = 0x4000_0000
#: Bytes that it has there (``firmware/bulk.h``).
APPLICATION_BYTES = 256 << 10
#: The last sector of a slot is for the header.
SECTOR = 4096


class Kind(enum.Enum):
    """What an image holds."""

    firmware = "firmware"
    bitstream = "bitstream"

    @property
    def code(self) -> int:
        """Its number in the header."""
        return 1 + list(Kind).index(self)


def _text(name: str, value: str, room: int) -> bytes:
    data = value.encode("ascii", errors="replace")
    if not value.isascii() or not value.isprintable() or not 0 < len(data) <= room:
        raise TrebuchetError(f"{name} must be 1 to {room} ASCII characters, not {value!r}")
    return data


@dataclass(frozen=True)
class Image:
    """An image.

    Attributes
    ----------
    kind : Kind
    board, version : str
        At most 24 and 16 characters.
    contents : bytes
    load : int
        Address at which firmware runs; 0 for a bitstream.
    """

    kind: Kind
    board: str
    version: str
    contents: bytes
    load: int = 0

    def pack(self) -> bytes:
        """Header and contents."""
        if not self.contents:
            raise TrebuchetError("an image must have contents; the file is empty")
        header = _HEADER.pack(
            MAGIC,
            _FORMAT,
            self.kind.code,
            0,
            len(self.contents),
            zlib.crc32(self.contents),
            self.load,
            _text("board", self.board, 24),
            _text("version", self.version, 16),
        )
        return header + struct.pack("<I", zlib.crc32(header)) + self.contents

    @classmethod
    def unpack(cls, data: bytes) -> "Image":
        """The image that ``data`` is; raises :class:`TrebuchetError` if it is none, or damaged."""
        if len(data) < HEADER_BYTES:
            raise TrebuchetError(
                f"an image has a header of {HEADER_BYTES} bytes; here are {len(data)}: TRUNCATED"
            )
        fields = _HEADER.unpack_from(data)
        magic, form, kind, _, length, checksum, load, board, version = fields
        if magic != MAGIC:
            raise TrebuchetError(
                "an image begins with TBIM, make one with trebuchet image pack: BAD_DATA"
            )
        if zlib.crc32(data[: _HEADER.size]) != int.from_bytes(data[60:64], "little"):
            raise TrebuchetError("the image's header does not fit its checksum: BAD_CHECKSUM")
        if form != _FORMAT or kind not in {k.code for k in Kind}:
            raise TrebuchetError(f"an image of format {form} and kind {kind} is unknown: BAD_DATA")
        contents = data[HEADER_BYTES:]
        if length == 0:
            raise TrebuchetError("the image has no contents: BAD_LENGTH")
        if len(contents) != length:
            status = "TRUNCATED" if len(contents) < length else "BAD_LENGTH"
            raise TrebuchetError(
                f"the image must have {length} bytes of contents, not {len(contents)}: {status}"
            )
        if zlib.crc32(contents) != checksum:
            raise TrebuchetError("the image's contents do not fit their checksum: BAD_CHECKSUM")
        text = [field.rstrip(b"\0").decode("ascii", "replace") for field in (board, version)]
        for name, value in zip(("board", "version"), text, strict=True):
            # What is printed must not talk to the terminal.
            if not value.isascii() or not value.isprintable():
                raise TrebuchetError(f"the image's {name} is no text: {value!a}: BAD_DATA")
        return cls(list(Kind)[kind - 1], text[0], text[1], contents, load)


def check_firmware(image: Image) -> None:
    """Raise :class:`TrebuchetError` if an image is firmware that no board can run."""
    if image.kind is not Kind.firmware:
        return
    if image.load != MAIN_RAM:
        raise TrebuchetError(
            f"firmware must be linked for {MAIN_RAM:#x}, not {image.load:#x}: BAD_DATA"
        )
    if len(image.contents) > APPLICATION_BYTES:
        raise TrebuchetError(
            f"firmware must have at most {APPLICATION_BYTES} bytes, not {len(image.contents)}: "
            "TOO_LARGE"
        )


def slot_bytes(image: bytes, size: int) -> bytes:
    """What a slot of ``size`` bytes holds when the image has been written to it."""
    contents, header = image[HEADER_BYTES:], image[:HEADER_BYTES]
    if len(contents) > size - SECTOR:
        raise TrebuchetError(
            f"the slot takes {size - SECTOR} bytes of contents, not {len(contents)}: TOO_LARGE"
        )
    return contents.ljust(size - SECTOR, b"\xff") + header.ljust(SECTOR, b"\xff")
