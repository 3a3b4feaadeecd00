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
    "check_contents",
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


#: Words with which configuration begins: of the ECP5 (Lattice FPGA-TN-02039, preamble), and of
#: Xilinx (UG470 and UG570, synchronisation word). Comments and padding come before.
_PREAMBLES = {"an ECP5": b"\xff\xff\xbd\xb3", "a Xilinx FPGA": b"\xaa\x99\x55\x66"}
_PREAMBLE_ROOM = 4096
#: Low 12 bits of the RISC-V instruction ``j``, with which firmware begins (LiteX's crt0.S).
_JUMP = 0x06F


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


def check_contents(kind: Kind, contents: bytes) -> None:
    """Raise :class:`TrebuchetError` if a file cannot be contents of an image of this kind.

    Only its start is looked at: whether it is for the board that it is packed for cannot be seen.
    """
    fpga = next((n for n, w in _PREAMBLES.items() if w in contents[:_PREAMBLE_ROOM]), None)
    if kind is Kind.bitstream and fpga is None:
        raise TrebuchetError(
            f"this is no bitstream: its first {_PREAMBLE_ROOM} bytes have no preamble of "
            f"{' or of '.join(_PREAMBLES)}; name the file .bit of `trebuchet build`"
        )
    if kind is Kind.bitstream:
        return
    if contents.startswith(b"\x7fELF"):
        raise TrebuchetError("this is an ELF file; name application.bin, which is made of it")
    if fpga is not None:
        raise TrebuchetError(f"this is a bitstream of {fpga}; give --kind bitstream")
    if int.from_bytes(contents[:2], "little") & 0xFFF != _JUMP:
        raise TrebuchetError(
            "this is no firmware: it does not begin with the jump of LiteX's start code; name "
            "software/bios/application.bin of a build"
        )


def slot_bytes(image: bytes, size: int) -> bytes:
    """What a slot of ``size`` bytes holds when the image has been written to it."""
    contents, header = image[HEADER_BYTES:], image[:HEADER_BYTES]
    if len(contents) > size - SECTOR:
        raise TrebuchetError(
            f"the slot takes {size - SECTOR} bytes of contents, not {len(contents)}: TOO_LARGE"
        )
    return contents.ljust(size - SECTOR, b"\xff") + header.ljust(SECTOR, b"\xff")
