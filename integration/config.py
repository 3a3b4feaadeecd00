"""The file that says what core to generate: TOML, as plans are (``models/plan.py``).

Python reads TOML without a further package, and its values have types, so that a wrong one is found
before anything is built; YAML, which LiteX's generators read, has neither.
"""

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from ..models.errors import TrebuchetError, did_you_mean
from .catalog import CoreKind, kind_of
from .packaged import MEMORIES, REGISTERS

__all__ = ["CoreFile", "default_file", "load_core"]


@dataclass(frozen=True)
class CoreFile:
    """What to generate.

    Attributes
    ----------
    kind : CoreKind
        Which core.
    name : str
        Name of the top module and of the files; a Verilog identifier.
    clock_mhz : float
        Clock of the design around it: for the constraints, and for the core's millisecond.
    memory : str
        ``"axi"``: an AXI4 manager; ``"native"``: the memory port (``cores/memory.py``).
    registers : str
        ``"axi-lite"``: an AXI4-Lite subordinate; ``"ports"``: a port for each register.
    base : int
        Address of the first register in the processor's address space, for the C header, the JSON
        and the SVD.
    parameters : dict
        Parameters of the core, by name.
    """

    kind: CoreKind
    name: str = ""
    clock_mhz: float = 100.0
    memory: str = "axi"
    registers: str = "axi-lite"
    base: int = 0
    parameters: dict = field(default_factory=dict)

    def __post_init__(self):
        name = self.name or f"trebuchet_{self.kind.name}"
        object.__setattr__(self, "name", name)
        _check(
            isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name),
            f"name must be a Verilog identifier, not {name!r}",
        )
        _check(
            type(self.clock_mhz) in (int, float) and 0.01 <= self.clock_mhz <= 2000,
            f"clock_mhz must be 0.01 to 2000, not {self.clock_mhz!r}",
        )
        for key, allowed in (("memory", MEMORIES), ("registers", REGISTERS)):
            value = getattr(self, key)
            _check(value in allowed, f"{key} must be {' or '.join(allowed)}, not {value!r}")
        _check(
            type(self.base) is int and 0 <= self.base < 1 << 32 and self.base % 4 == 0,
            f"base must be a 32-bit address, a multiple of 4, not {self.base!r}",
        )
        _check(isinstance(self.parameters, dict), "[parameters] must be a table")


#: Names at the top of the file, with what they mean there.
_KEYS = {
    "name": "name of the top module and of the files",
    "clock_mhz": "clock of the design around it",
    "memory": "axi: an AXI4 manager; native: the memory port of cores/memory.py",
    "registers": "axi-lite: an AXI4-Lite subordinate; ports: a port for each register",
    "base": "address of the first register, for header, JSON and SVD",
}


def _check(good, what):
    if not good:
        raise TrebuchetError(what)


def load_core(name, path=None):
    """The :class:`CoreFile` for core ``name``, from the TOML file at ``path``; None: defaults.

    Raises :class:`TrebuchetError`, one line that names the file.
    """
    kind = kind_of(name)
    if path is None:
        return CoreFile(kind)
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TrebuchetError(
            f"core file {str(path)!r} cannot be read: {error}; "
            f"`trebuchet core generate {name} --print-config` prints one"
        ) from error
    try:
        return _core_file(kind, content)
    except TrebuchetError as error:
        raise TrebuchetError(f"core file {str(path)!r}: {error}") from error


def _core_file(kind, content):
    stated = content.pop("core", kind.name)
    _check(stated == kind.name, f"it is for core {stated!r}, not {kind.name!r}")
    known = [*_KEYS, "parameters"]
    for key in content:
        if key not in known:
            inside = [parameter.name for parameter in kind.parameters()]
            where = "; parameters belong below the line [parameters]" if key in inside else ""
            near = where or did_you_mean(key, known) or f"; there are: core, {', '.join(known)}"
            raise TrebuchetError(f"there is no key {key!r}{near}")
    return CoreFile(kind, **content)


def default_file(kind):
    """A core file with every key and its default, as text, each explained."""
    example = CoreFile(kind)
    lines = [f"# {kind.title}", f"# {kind.page}", "", f'core = "{kind.name}"']
    for key, meaning in _KEYS.items():
        lines += [f"# {meaning}", f"{key} = {_value(getattr(example, key))}"]
    lines += ["", "[parameters]"]
    if kind.presets:
        names = list(kind.presets)
        lines += [
            f"# values that the others start from: {', '.join(names)}",
            f"preset = {_value(names[0])}",
        ]
    for parameter in kind.parameters():
        lines += _wrapped(parameter.meaning.replace("None:", "left out:"))
        if parameter.default is None:
            lines.append(f"# {parameter.name} = 1")
        else:
            lines.append(f"{parameter.name} = {_value(parameter.default)}")
    return "\n".join(lines) + "\n"


def _wrapped(text, width=96):
    """``text`` as lines of comment."""
    words, lines = text.split(), []
    while words:
        line = "#"
        while words and len(line) + len(words[0]) < width:
            line += f" {words.pop(0)}"
        lines.append(line)
    return lines


def _value(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return hex(value) if isinstance(value, int) and value > 1 << 24 else str(value)
