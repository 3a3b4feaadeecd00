"""Register maps: the blocks, registers and fields of a build by name, and the hash that names one.

A build leaves its map as ``registers.json`` (``soc/csr_export.py``) and again by its hash in
:data:`MAPS`. A board reports the hash on its status page, so the map of what it runs is found.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .errors import TrebuchetError, did_you_mean
from .files import read_file, write_whole
from .paths import BUILD, cache_home

__all__ = [
    "FILE_NAME",
    "MAPS",
    "Field",
    "Register",
    "RegisterMap",
    "find_map",
    "hash_of_blocks",
    "keep_map",
    "leave_map",
    "read_map",
]

#: Name of a map beside what a build leaves.
FILE_NAME = "registers.json"
#: Where builds leave their maps once more, each named by its hash.
MAPS = BUILD / "register_maps"
#: Bytes of the largest file of a map; a board with 16 roles has a tenth of it.
MAX_BYTES = 1 << 24
#: What software may do with a register: read, both, write a pulse, write ones to clear.
ACCESS = ("ro", "rw", "stb", "w1c")
_WORD_BYTES, _WORD_BITS = 4, 32
_HASH = re.compile(r"[0-9a-f]{16}")
_LISTED = 5


def hash_of_blocks(blocks: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that name a map: of its names, addresses, widths and access.

    ``blocks`` is the object ``blocks`` of a ``registers.json``. Descriptions and reset values do
    not count.
    """
    said = [
        (
            block,
            name,
            register["address"],
            register["width"],
            register["access"],
            sorted((f, v["offset"], v["width"]) for f, v in register["fields"].items()),
        )
        for block, content in blocks.items()
        for name, register in content["registers"].items()
    ]
    return hashlib.sha256(json.dumps(sorted(said)).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Field:
    """Some bits of a register.

    Attributes
    ----------
    offset, width : int
        Lowest bit, and how many.
    """

    name: str
    offset: int
    width: int
    description: str = ""

    def of(self, value: int) -> int:
        """Return the field of the register's ``value``."""
        return value >> self.offset & ((1 << self.width) - 1)

    def put(self, value: int, field: int) -> int:
        """Return the register's ``value`` with ``field`` in the place of this field."""
        mask = ((1 << self.width) - 1) << self.offset
        return value & ~mask | field << self.offset


@dataclass(frozen=True)
class Register:
    """A register of a board.

    Attributes
    ----------
    name : str
        ``BLOCK.REGISTER``.
    address : int
        Of its lowest word, for the processor; the next word has the bits from 32 on.
    width : int
        Bits, 1 to 64.
    access : str
        One of :data:`ACCESS`.
    fields : dict
        :class:`Field` by name; may be empty.
    """

    name: str
    address: int
    width: int
    access: str
    description: str
    fields: Mapping[str, Field]

    @property
    def words(self) -> int:
        """How many words of 32 bits it takes."""
        return -(-self.width // _WORD_BITS)

    @property
    def readable(self) -> bool:
        return self.access != "stb"

    @property
    def writable(self) -> bool:
        return self.access != "ro"


class RegisterMap:
    """The registers of one build.

    Parameters
    ----------
    registers : iterable of Register
        In the order in which they are listed.
    hash : str
        The name of the map (:func:`hash_of_blocks`).
    """

    def __init__(self, registers: Iterable[Register], hash: str) -> None:
        self.registers = {register.name: register for register in registers}
        self.hash = hash

    def blocks(self) -> list[str]:
        """Names of the blocks."""
        return list(dict.fromkeys(name.partition(".")[0] for name in self.registers))

    def of_block(self, block: str) -> list[str]:
        """Names of a block's registers, without the block."""
        named = (name.partition(".") for name in self.registers)
        return [register for owner, _, register in named if owner == block]

    def find(self, name: str) -> tuple[Register, Field | None]:
        """Return the register called ``BLOCK.REGISTER``, or the field ``BLOCK.REGISTER.FIELD``.

        Raises :class:`TrebuchetError` that suggests a name if there is none.
        """
        whole, _, last = name.rpartition(".")
        if name in self.registers:
            return self.registers[name], None
        if (register := self.registers.get(whole)) is not None:
            if (field := register.fields.get(last)) is not None:
                return register, field
            near = did_you_mean(last, register.fields) or _these("fields", register.fields)
            raise TrebuchetError(f"register {whole} has no field {last!r}{near}")
        raise TrebuchetError(f"there is no register {name!r}{self._near(name)}")

    def select(self, pattern: str) -> list[tuple[Register, Field | None]]:
        """Return what ``pattern`` names: one register or field, or all registers of a glob.

        In a glob ``*`` is any text, ``?`` any character, ``[…]`` any of these. The name of a
        block alone is that of all its registers.
        """
        if pattern in self.blocks():
            pattern += ".*"
        if not any(character in pattern for character in "*?["):
            return [self.find(pattern)]
        found = [r for name, r in self.registers.items() if fnmatchcase(name, pattern)]
        if not found:
            raise TrebuchetError(
                f"no register fits {pattern!r}{_these('blocks', self.blocks(), 99)}"
            )
        return [(register, None) for register in found]

    def _near(self, name: str) -> str:
        block, _, register = name.partition(".")
        if block not in self.blocks():
            own = [other for other in self.registers if other.partition(".")[2] == block]
            if own:  # the block was left out
                return f", did you mean {own[0]!r}?"
            return did_you_mean(name, self.registers) or _these("blocks", self.blocks(), 99)
        own = self.of_block(block)
        near = did_you_mean(register, own).replace("mean '", f"mean '{block}.")
        return near or _these("registers", own)


def _these(what: str, names: Iterable[str], most: int = _LISTED) -> str:
    listed = list(names)
    more = ", …" if len(listed) > most else ""
    return f"; its {what} are: {', '.join(listed[:most]) or 'none'}{more}"


def read_map(path: Path) -> RegisterMap:
    """Return the map in ``path``, a ``registers.json`` or the folder of a build with one.

    Raises :class:`TrebuchetError` if there is none, or it is not what a build leaves.
    """
    return _load(path)[0]


def _load(path: Path) -> tuple[RegisterMap, bytes]:
    """Return the map in a file or folder, and the file's bytes."""
    file = path / FILE_NAME if path.is_dir() else path
    data = read_file(file, MAX_BYTES)
    try:
        blocks = json.loads(data)["blocks"]
        found = RegisterMap(_registers(blocks), hash_of_blocks(blocks))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise TrebuchetError(
            f"{file} is no register map; a build leaves one as {FILE_NAME}: give that"
        ) from error
    return found, data


def _registers(blocks: Mapping[str, Any]) -> Iterator[Register]:
    for block, content in blocks.items():
        for name, register in content["registers"].items():
            fields = {
                field: Field(field, int(v["offset"]), int(v["width"]), str(v["description"]))
                for field, v in register["fields"].items()
            }
            address, width, access = register["address"], register["width"], register["access"]
            good = type(address) is int and type(width) is int and 0 < width <= 2 * _WORD_BITS
            if not good or address % _WORD_BYTES or access not in ACCESS:
                raise ValueError(f"register {block}.{name}")
            yield Register(
                f"{block}.{name}", address, width, access, str(register["description"]), fields
            )


def _kept() -> Path:
    """Folder of the maps that the user named."""
    return cache_home() / "trebuchet" / "registers"


def keep_map(path: Path) -> RegisterMap:
    """Return the map in ``path``, and keep it for later in the user's cache, if that can be."""
    found, data = _load(path)
    try:
        _kept().mkdir(parents=True, exist_ok=True)
        write_whole(_kept() / f"{found.hash}.json", data)
    except OSError:
        pass  # a cache that takes no files saves nothing
    return found


def leave_map(text: str) -> None:
    """Leave the map of a build by its hash, where :func:`find_map` finds it after later builds."""
    file = MAPS / f"{json.loads(text)['map']}.json"
    if not file.exists():
        MAPS.mkdir(parents=True, exist_ok=True)
        write_whole(file, text.encode())


def find_map(hash: str) -> RegisterMap | None:
    """Return the map of that name: of a build, or one that :func:`keep_map` kept; None: no such.

    Files that are no maps, or have another name, are passed over.
    """
    if not _HASH.fullmatch(hash):
        return None
    own = [MAPS / f"{hash}.json", _kept() / f"{hash}.json"]
    for file in (*own, *sorted(BUILD.glob(f"*/{FILE_NAME}"))):
        try:
            found = read_map(file)
        except TrebuchetError:
            continue
        if found.hash == hash:
            return found
    return None
