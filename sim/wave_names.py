"""Names of the signals of an FST file: its hierarchy, which Verilator writes packed by LZ4.

Source: GTKWave's *fstapi.c* (``fstReaderIterateHier``); LZ4 block format, version 1.6.
"""

import zlib
from dataclasses import dataclass
from pathlib import Path

from ..models.errors import TrebuchetError

__all__ = ["Signal", "signals", "unpack_lz4"]

#: Types of blocks with the hierarchy: zlib's gzip; LZ4; LZ4 twice.
_GZIP, _LZ4, _LZ4_TWICE = 4, 6, 7
#: Tags in it.
_SCOPE, _UPSCOPE, _ATTRIBUTE, _END_ATTRIBUTE = 254, 255, 252, 253
#: Tags up to this one are types of variables.
_LAST_TYPE = 29


@dataclass(frozen=True)
class Signal:
    """A signal of the waves.

    Attributes
    ----------
    scope : tuple of str
        Names of the scopes around it, the outermost first.
    name : str
        Without a range.
    bits : str
        Range as written, such as ``[7:0]``; empty if there is none.
    """

    scope: tuple[str, ...]
    name: str
    bits: str

    @property
    def path(self) -> str:
        """As GTKWave and Surfer call it, without the range."""
        return ".".join((*self.scope, self.name))


def unpack_lz4(packed: bytes) -> bytes:
    """Unpack a block of LZ4; :class:`ValueError` or :class:`IndexError` if it is none."""
    out = bytearray()
    place = 0

    def more(length: int) -> int:
        nonlocal place
        while length >= 15:
            byte = packed[place]
            place += 1
            length += byte
            if byte < 255:
                break
        return length

    while place < len(packed):
        token = packed[place]
        place += 1
        literals = more(token >> 4)
        out += packed[place : place + literals]
        place += literals
        if place >= len(packed):
            break
        offset = int.from_bytes(packed[place : place + 2], "little")
        place += 2
        length = more(token & 15) + 4
        if not 0 < offset <= len(out):
            raise ValueError("offset of a match is out of range")
        for _ in range(length):
            out.append(out[-offset])
    return bytes(out)


def _unpacked(kind: int, packed: bytes) -> bytes:
    if kind == _GZIP:
        return zlib.decompress(packed, wbits=31)
    if kind == _LZ4:
        return unpack_lz4(packed)
    return unpack_lz4(unpack_lz4(packed[8:]))


def _hierarchy(path: Path) -> bytes:
    """The hierarchy of a file, unpacked."""
    data = path.read_bytes()
    place = 0
    while place < len(data):
        kind, length = data[place], int.from_bytes(data[place + 1 : place + 9], "big")
        body = data[place + 9 : place + 1 + length]
        if kind in (_GZIP, _LZ4, _LZ4_TWICE):
            found = _unpacked(kind, body[8:])
            if len(found) != int.from_bytes(body[:8], "big"):
                raise ValueError("it is cut short")
            return found
        place += 1 + length
    raise ValueError("there is no hierarchy")


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def byte(self) -> int:
        self.place += 1
        return self.data[self.place - 1]

    def text(self) -> str:
        end = self.data.index(0, self.place)
        found = self.data[self.place : end].decode(errors="replace")
        self.place = end + 1
        return found

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value


def _signals(data: bytes) -> list[Signal]:
    reader, scope, found = _Reader(data), [], []
    while reader.place < len(data):
        tag = reader.byte()
        if tag == _SCOPE:
            reader.byte()
            scope.append(reader.text())
            reader.text()
        elif tag == _UPSCOPE:
            scope.pop()
        elif tag == _ATTRIBUTE:
            reader.place += 2
            reader.text()
            reader.number()
        elif tag <= _LAST_TYPE:
            reader.byte()
            name, _, bits = reader.text().partition(" ")
            reader.number()
            reader.number()
            found.append(Signal(tuple(scope), name, bits))
        elif tag != _END_ATTRIBUTE:
            raise ValueError(f"tag {tag} is unknown")
    return found


def signals(path: Path) -> list[Signal]:
    """Signals of an FST file in its order; :class:`TrebuchetError` if it cannot be read."""
    try:
        return _signals(_hierarchy(path))
    except OSError as error:
        raise TrebuchetError(f"cannot read waves {str(path)!r}: {error.strerror}") from error
    except (ValueError, IndexError, zlib.error) as error:
        raise TrebuchetError(
            f"cannot read the names of waves {str(path)!r}: {error}; is it a whole FST file?"
        ) from error
