"""Files as they lie in memory for the web service: prepared responses, index, entries, objects.

An image is one span of memory. All numbers are little-endian; addresses are those of bytes in
external memory. The gateware only reads it (:mod:`trebuchet.cores.web.lookup`).

============  ====================================================================================
part          contents
============  ====================================================================================
responses     those of :mod:`.response`, at fixed offsets from the image's address (:data:`PLACES`)
index         buckets of 64 bytes; the low bits of a path's CRC-32 choose one. A bucket has 8 slots
              of ``crc`` (32 bits) and ``entry`` (32 bits, an address; 0: nothing)
entries       128 bytes each, see :data:`ENTRY`, with the path, at most 96 bytes, from byte 32 on
objects       ``[header][content]``, content at a multiple of 512 bytes; and once more with a
              header that says ``Connection: close`` if both fit one segment, else that alone
============  ====================================================================================
"""

import zlib
from typing import NamedTuple

from .limits import LIMITS
from .request import Verdict
from .response import HEADER_ROOM, PREPARED, prepared

__all__ = [
    "BUCKET_BYTES",
    "ENTRY",
    "ENTRY_BYTES",
    "INDEX_OFFSET",
    "LAYOUT",
    "PATH_OFFSET",
    "PLACES",
    "SAME_ROOM",
    "SEGMENT",
    "SLOTS",
    "Image",
    "Place",
]

BUCKET_BYTES, SLOTS = 64, 8
ENTRY_BYTES, PATH_OFFSET = 128, 32
#: Largest response that is stored a second time, with ``Connection: close``: it is one TCP segment.
SEGMENT = 1460
#: Fields of an entry, from its lowest bit on; ``close`` is an address, as ``found`` is. The
#: response 304 that closes lies 256 bytes behind the one that does not.
ENTRY = {
    "ready": 1,
    "whole_close": 1,  # content follows the header at `close`
    "_0": 6,
    "path_length": 7,
    "_1": 1,
    "found_header": 10,
    "close_header": 10,
    "same_header": 10,
    "same_close_header": 10,
    "_2": 8,
    "found": 32,
    "close": 32,
    "length": 32,
    "same": 32,
    "tag": 64,
}
#: Distance of the two responses 304 of an object.
SAME_ROOM = 256


class Place(NamedTuple):
    """Where a prepared response lies, from the image's address on."""

    offset: int
    header: int
    whole: int


def _places():
    places, at = {}, 0
    for verdict in PREPARED:
        for close in (True, False):
            if not close and verdict is not Verdict.NOT_FOUND:
                continue
            response = prepared(verdict, close)
            header, whole = len(response.header), len(response.header) + len(response.content)
            places[verdict, close] = Place(at, header, whole)
            at += -(-whole // 64) * 64
    return places, at


#: Places of the prepared responses by verdict and whether the connection closes; their bytes.
PLACES, _PREPARED_BYTES = _places()
#: Where the index begins, from the image's address on.
INDEX_OFFSET = -(-_PREPARED_BYTES // BUCKET_BYTES) * BUCKET_BYTES
#: A number that differs between layouts of images: gateware, firmware and host must agree on it.
LAYOUT = zlib.crc32(repr((ENTRY, [tuple(place) for place in PLACES.values()])).encode()) >> 1


def _up(at, unit):
    return -(-at // unit) * unit


def _entry_bytes(values, path):
    number, shift = 0, 0
    for name, width in ENTRY.items():
        value = values.get(name, 0)
        if not 0 <= value < 1 << width:
            raise ValueError(f"Field {name!r} of an entry must fit {width} bits, not {value!r}")
        number |= value << shift
        shift += width
    return number.to_bytes(PATH_OFFSET, "little") + path.ljust(ENTRY_BYTES - PATH_OFFSET, b"\0")


class Image:
    """The bytes of a store.

    Parameters
    ----------
    objects : mapping of bytes to Object
        By path. Those whose paths have more than 96 bytes are left out: the firmware finds them.
    base : int
        Address of the image, a multiple of 4,096.
    size : int
        Bytes that there are for it.
    cold : set of bytes
        Paths whose entries are not ready: their objects are not in memory yet (the firmware's).
    buckets : int or None
        Their number, a power of two; None: as few as are enough.

    Raises
    ------
    ValueError
        The objects do not fit, more paths fall into a bucket than it has slots, or ``base`` is no
        such multiple.

    Attributes
    ----------
    bytes : bytes
        To be written from ``base`` on.
    index : int
        Address of the first bucket.
    buckets : int
        Their number, a power of two.
    paths : int
        Paths that are found.
    left_out : set of bytes
        Paths that are too long.
    """

    def __init__(self, objects, base=0, size=1 << 31, buckets=None, cold=frozenset()):
        if base % 4096 or base < 0:
            raise ValueError(f"Address of an image must be a multiple of 4096, not {base!r}")
        self.base = base
        given = objects.keys()
        objects = {p: o for p, o in objects.items() if 0 < len(p) <= LIMITS.path}
        self.left_out = given - objects.keys()
        self.paths = len(objects)
        self.buckets = buckets or self._fitting_buckets(objects)
        self.index = base + INDEX_OFFSET
        at = _up(self.index + self.buckets * BUCKET_BYTES, ENTRY_BYTES)
        entries = {path: at + k * ENTRY_BYTES for k, path in enumerate(objects)}
        self._end = at + len(entries) * ENTRY_BYTES
        self._limit = base + size
        self._parts = []
        for (verdict, close), place in PLACES.items():
            self._parts.append((base + place.offset, prepared(verdict, close).sent()))
        stored = {}  # by identity: paths may share an object
        for path, address in entries.items():
            found = objects[path]
            if id(found) not in stored:
                stored[id(found)] = self._store(found)
            values = {"ready": int(path not in cold), "path_length": len(path), **stored[id(found)]}
            self._parts.append((address, _entry_bytes(values, path)))
        self._parts += self._index_parts(entries)
        content = bytearray(self._end - base)
        for address, part in self._parts:
            content[address - base : address - base + len(part)] = part
        self.bytes = bytes(content)

    def _fitting_buckets(self, objects):
        """The smallest number of buckets, half full at most, of which none overflows."""
        buckets = 1
        while True:
            counts: dict[int, int] = {}
            for path in objects:
                bucket = zlib.crc32(path) & (buckets - 1)
                counts[bucket] = counts.get(bucket, 0) + 1
            if len(objects) <= buckets * SLOTS // 2 and max(counts.values(), default=0) <= SLOTS:
                return buckets
            if buckets > 64 * len(objects) + 64:
                raise ValueError(f"More than {SLOTS} paths have the same CRC-32")
            buckets *= 2

    def _index_parts(self, entries):
        taken: dict[int, int] = {}
        for path, address in entries.items():
            crc = zlib.crc32(path)
            bucket = crc & (self.buckets - 1)
            slot = taken.get(bucket, 0)
            if slot == SLOTS:
                raise ValueError(
                    f"More than {SLOTS} of {len(entries)} paths fall into one of "
                    f"{self.buckets} buckets"
                )
            taken[bucket] = slot + 1
            at = self.index + bucket * BUCKET_BYTES + 8 * slot
            yield at, (crc | address << 32).to_bytes(8, "little")

    def _place(self, content, begin=0, unit=64):
        """Put ``content`` so that its byte ``begin`` is at a multiple of ``unit``."""
        address = _up(self._end + begin, unit) - begin
        self._end = address + len(content)
        if self._end > self._limit:
            raise ValueError(
                f"The files need more than the {self._limit - self.base} bytes that there are"
            )
        self._parts.append((address, content))
        return address

    def _store(self, found):
        open_, close = found.found(False), found.found(True)
        for response in (open_, close):
            if len(response.header) > HEADER_ROOM:
                raise ValueError(
                    f"A header must be at most {HEADER_ROOM} bytes, not {len(response.header)}: "
                    f"shorten the media type {found.media_type!r}"
                )
        whole = len(close.sent()) <= SEGMENT
        same, same_close = found.not_modified(False), found.not_modified(True)
        pair = same.sent().ljust(SAME_ROOM, b"\0") + same_close.sent()
        return {
            "whole_close": int(whole),
            "found_header": len(open_.header),
            "close_header": len(close.header),
            "same_header": len(same.header),
            "same_close_header": len(same_close.header),
            "found": self._place(open_.sent(), len(open_.header), 512),
            "close": self._place(close.sent() if whole else close.header),
            "length": len(found.content),
            "same": self._place(pair),
            "tag": found.tag,
        }

    def word(self, address, count=8):
        """The number of ``count`` bytes at an address; 0 outside the image."""
        at = address - self.base
        return int.from_bytes(self.bytes[at : at + count], "little") if at >= 0 else 0

    def find(self, path):
        """Look a path up as the gateware does: a dict of the fields of its entry, or None."""
        crc = zlib.crc32(path)
        bucket = self.index + (crc & (self.buckets - 1)) * BUCKET_BYTES
        for slot in range(SLOTS):
            pair = self.word(bucket + 8 * slot)
            if pair & 0xFFFFFFFF != crc or not pair >> 32:
                continue
            entry, values = pair >> 32, {}
            number, shift = self.word(entry, PATH_OFFSET), 0
            for name, width in ENTRY.items():
                values[name] = number >> shift & ((1 << width) - 1)
                shift += width
            at = entry - self.base + PATH_OFFSET
            same = self.bytes[at : at + len(path)] == path
            if values["ready"] and values["path_length"] == len(path) and same:
                return values
        return None
