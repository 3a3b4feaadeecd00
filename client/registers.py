"""Registers of a board by name: reads, writes, and a board's registers as attributes.

>>> with Board("192.0.2.2") as board:
...     board.registers.tcp.rto_min
...     board.registers.tcp.rto_min = 200
...     board.read_registers("tcp.*")

The map of the build that the board runs is found by the hash that the board reports
(:mod:`..models.register_map`). Each access names the hash, so that a board which was given another
build in the meantime refuses it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..models.errors import TrebuchetError
from ..models.register_map import Field, Register, RegisterMap, find_map, keep_map
from .dispatch import Member, ask_status
from .errors import BoardError, ProtocolError, refusal
from .jobs import Call
from .management import ask_board
from .operation import operation

__all__ = ["RegisterAccess", "RegisterBlock", "RegisterBlocks", "RegisterValue"]
__all__ += ["find_register_map", "read_registers", "words_of", "write_register"]

_BYTES, _BITS = 4, 32
#: Words that a board says at a time.
_MOST = 256
#: How often a register of two words is read until its upper half stays as it was.
_AGAIN = 4
_LINE = re.compile(r"([0-9a-f]{8}):((?: [0-9a-f]{8})+)")


class RegisterValue(int):
    """What a register holds: a number whose attributes are the register's fields."""

    fields: Mapping[str, Field]

    def __new__(cls, value: int, fields: Mapping[str, Field]) -> "RegisterValue":
        made = super().__new__(cls, value)
        made.fields = fields
        return made

    def __getattr__(self, name: str) -> int:
        if name == "fields" or name not in self.fields:
            raise AttributeError(f"the register has no field {name!r}")
        return self.fields[name].of(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.fields]


class RegisterAccess:
    """Operations on a single board's registers, for ``Board`` and ``AsyncBoard``."""

    _member: Member

    @operation
    def register_map(self, path: Path | str | None = None) -> Call[RegisterMap]:
        """The map of the board's registers.

        ``path``: a ``registers.json``, or the folder of the build that the board runs; it is kept
        for later. None: the map of a build or a kept one that has the hash that the board reports.
        Raises :class:`~.errors.BoardError` if the board runs another build, or none is found.
        """
        return (yield from find_register_map(self._member, path))

    @operation
    def read_registers(self, *names: str) -> Call[dict[str, RegisterValue]]:
        """Values by name. ``names``: registers, fields, blocks, or globs such as ``tcp.rto*``.

        Registers that can only be written are left out of blocks and globs. Each value is of its
        own moment; one of more than 32 bits is read until its upper half is the same twice.
        """
        member = self._member
        found = yield from find_register_map(member)
        chosen = {
            f"{register.name}.{field.name}" if field else register.name: (register, field)
            for name in names
            for register, field in found.select(name)
            if register.readable or register.name == name or field
        }
        values = yield from read_registers(
            member, found, [register for register, _ in chosen.values()]
        )
        return {
            name: values[register.name]
            if field is None
            else RegisterValue(field.of(values[register.name]), {})
            for name, (register, field) in chosen.items()
        }

    @operation
    def write_register(self, name: str, value: int) -> Call[None]:
        """Write a register, or a field of one that can be read as well.

        A field is written as its register with the other bits as they were read just before. Raises
        :class:`~..models.errors.TrebuchetError` for a name that is none, a read-only register and
        a value that does not fit.
        """
        yield from write_register(self._member, name, value)


class RegisterBlocks:
    """The blocks of a board's registers as attributes, by the map of the build that it runs.

    Parameters
    ----------
    access : RegisterAccess
        The board, whose calls must block.
    """

    def __init__(self, access: Any) -> None:
        self._access = access

    def __getattr__(self, name: str) -> "RegisterBlock":
        if name.startswith("__"):
            raise AttributeError(name)
        found: RegisterMap = self._access.register_map()
        if name not in found.blocks():
            try:
                found.find(name)
            except TrebuchetError as error:
                raise AttributeError(str(error).replace("register", "block", 1)) from None
        return RegisterBlock(self._access, name)

    def __iter__(self) -> Iterator["RegisterBlock"]:
        return (RegisterBlock(self._access, n) for n in self._access.register_map().blocks())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._access.register_map().blocks()]


class RegisterBlock:
    """The registers of a block as attributes: reading one asks the board, assigning writes.

    Iteration yields their names.
    """

    _name: str
    _access: Any

    def __init__(self, access: Any, name: str) -> None:
        object.__setattr__(self, "_access", access)
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name: str) -> RegisterValue:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self._name}.{name}"
        self._check(whole)
        found: RegisterValue = self._access.read_registers(whole)[whole]
        return found

    def __setattr__(self, name: str, value: int) -> None:
        whole = f"{self._name}.{name}"
        self._check(whole)
        self._access.write_register(whole, value)

    def _check(self, whole: str) -> None:
        try:
            self._access.register_map().find(whole)
        except TrebuchetError as error:
            raise AttributeError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._access.register_map().of_block(self._name))

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def __repr__(self) -> str:
        return f"<registers {self._name} of {self._access.register_map().hash}>"


def write_register(member: Member, name: str, value: int) -> Call[None]:
    """Write a register or a field of one, as :meth:`RegisterAccess.write_register` does."""
    found = yield from find_register_map(member)
    register, field = found.find(name)
    if not register.writable:
        raise BoardError(f"register {register.name} is read-only")
    width = (field or register).width
    if not 0 <= value < 1 << width:
        raise BoardError(f"{name} must be 0 to {(1 << width) - 1} ({width} bits), not {value}")
    if field is not None:
        if register.access != "rw":
            raise BoardError(
                f"register {register.name} does not keep what is written: write it as a whole"
            )
        values = yield from read_registers(member, found, [register])
        value = field.put(values[register.name], value)
    for word in range(register.words):  # the write of the last word takes effect
        part = value >> _BITS * word & (1 << _BITS) - 1
        yield from _access(member, found, f"poke {register.address + _BYTES * word:#x} {part}")


def find_register_map(member: Member, path: Path | str | None = None) -> Call[RegisterMap]:
    if member.register_map is not None and path is None:
        return member.register_map
    given = None if path is None else keep_map(Path(path))
    state = yield from ask_status(member)
    hash = state.get("registers")
    if not isinstance(hash, str):
        raise BoardError(
            f"{member.name} does not say which registers it has: update its firmware, or read "
            "addresses with `trebuchet manage BOARD peek ADDRESS`"
        )
    build = f"{member.name} runs a build of {str(state.get('board'))[:40]!r} {_version(state)}"
    if given is not None and given.hash != hash:
        raise BoardError(f"{build} with the registers {hash[:40]}, not {given.hash} of {path}")
    found = given or find_map(hash)
    if found is None:
        raise BoardError(
            f"{build} with the registers {hash[:40]}, of which no map is here: copy "
            "registers.json from the folder of that build and name it with --map FILE"
        )
    member.register_map = found
    return found


def _version(state: Mapping[str, Any]) -> str:
    return f"of version {str(state.get('version'))[:40]}"


def read_registers(
    member: Member, found: RegisterMap, wanted: Iterable[Register]
) -> Call[dict[str, RegisterValue]]:
    chosen = {register.name: register for register in wanted}
    for register in chosen.values():
        if not register.readable:
            raise BoardError(f"register {register.name} can only be written")
    words: dict[int, int] = {}
    for begin, count in _runs(chosen.values()):
        words |= yield from _peek(member, found, begin, count)
    values = {}
    for register in chosen.values():
        low, high = register.address, register.address + _BYTES
        if register.words > 1:
            yield from _settle(member, found, low, words)
        value = words[low] | (words[high] << _BITS if register.words > 1 else 0)
        values[register.name] = RegisterValue(value, register.fields)
    return values


def _settle(member: Member, found: RegisterMap, low: int, words: dict[int, int]) -> Call[None]:
    """Read a register of two words again until its upper one is as before.

    Of a counter the lower word, read between two equal upper words, belongs to them.
    """
    for _ in range(_AGAIN):
        before = words[low + _BYTES]
        words |= yield from _peek(member, found, low, 2)
        if words[low + _BYTES] == before:
            return


def _runs(registers: Iterable[Register]) -> Iterator[tuple[int, int]]:
    """Address and number of words of each run of registers that lie together."""
    begin, end = 0, 0
    for register in sorted(registers, key=lambda each: each.address):
        size = _BYTES * register.words
        if register.address != end or end + size - begin > _BYTES * _MOST:
            if end > begin:
                yield begin, (end - begin) // _BYTES
            begin = end = register.address
        end += size
    if end > begin:
        yield begin, (end - begin) // _BYTES


def _peek(member: Member, found: RegisterMap, address: int, count: int) -> Call[dict[int, int]]:
    text = yield from _access(member, found, f"peek {address:#x} {count}")
    words = words_of(member, text, address, count)
    return {address + _BYTES * number: word for number, word in enumerate(words)}


def words_of(member: Member, text: str, address: int, count: int) -> list[int]:
    """Return the words of an answer to ``peek``; raise ProtocolError if it has others."""
    words = {}
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line)) is not None:
            for number, word in enumerate(match[2].split()):
                words[int(match[1], 16) + _BYTES * number] = int(word, 16)
    wanted = [address + _BYTES * number for number in range(count)]
    if words.keys() != set(wanted):
        raise ProtocolError(f"{member.name} did not answer with {count} words from {address:#x}")
    return [words[at] for at in wanted]


def _access(member: Member, found: RegisterMap, line: str) -> Call[str]:
    reply = yield from ask_board(f"{line} {found.hash}")
    if reply.good:
        return reply.text
    member.register_map = None  # it may have got another build: the next call looks
    state = yield from ask_status(member)
    if state.get("registers") != found.hash:
        raise BoardError(f"{member.name} was given another build just now; try again")
    said = refusal(reply.status, "")
    said.args = (f"{member.name} answered `{line}` with {reply.reason}",)
    raise said
