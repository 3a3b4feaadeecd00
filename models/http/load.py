"""What a board's firmware is sent to serve an image of files: ``firmware/web.h``."""

import struct
import zlib

from .image import LAYOUT

__all__ = ["HEADER_BYTES", "pack"]

_HEADER = struct.Struct("<4sIIIIII")
_MAGIC = b"TBWI"
HEADER_BYTES = _HEADER.size + 4


def pack(image):
    """Return header and bytes of an :class:`~.image.Image`, made for the address that it goes to.

    The header says the layout, the image's address and length, address of the index, its buckets,
    the number of paths, and the CRC-32 of all before it and of the image.
    """
    header = _HEADER.pack(
        _MAGIC,
        LAYOUT,
        image.base,
        len(image.bytes),
        image.index,
        image.buckets,
        image.paths,
    )
    return header + struct.pack("<I", zlib.crc32(image.bytes, zlib.crc32(header))) + image.bytes
