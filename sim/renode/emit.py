"""A :class:`~trebuchet.sim.renode.platform.Platform` as Renode's files, and a check of them."""

import re
from collections.abc import Sequence
from pathlib import Path

from ...models.errors import TrebuchetError
from ...models.files import writing_to
from .platform import CSR_WINDOW, Device, Platform, Text

__all__ = ["MODELS", "check", "machines", "repl", "resc", "write"]

MODELS = Path(__file__).resolve().parent / "models"

_ENTRY = re.compile(r"^([a-z_]\w*): ([A-Z]\w*\.\w+) @ (sysbus|sysbus 0x[0-9A-F]+|\{ sysbus .* \})$")
_SPAN = re.compile(r"sysbus (?:<(0x[0-9A-F]+), \+(0x[0-9A-F]+)>|(0x[0-9A-F]+))")
_ATTRIBUTE = re.compile(r'^ {4}(\w+): ("(?:[^"\\]|\\.)*"|0x[0-9A-F]+|\d+|\w+|<\d+, \+\d+>)$')
_WIRE = re.compile(r"^ {4}(\w+) -> (\w+)@(\d+)$")


def _value(value: object) -> str:
    if isinstance(value, Text):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int) and value >= 4096:
        return f"0x{value:X}"
    return str(value)


def _spans(device: Device) -> list[tuple[int, int]]:
    return [] if device.at is None else [(device.at, device.size), *device.also]


def _entry(device: Device) -> list[str]:
    where = "sysbus" if device.at is None else f"sysbus 0x{device.at:08X}"
    if device.also:
        where = "; ".join(f"sysbus <0x{at:08X}, +0x{size:X}>" for at, size in _spans(device))
        where = f"{{ {where} }}"
    lines = [f"{device.name}: {device.type} @ {where}"]
    lines += [f"    {name}: {_value(value)}" for name, value in device.attributes.items()]
    return [*lines, *(f"    {wire}" for wire in device.wires), ""]


def repl(platform: Platform) -> str:
    """The platform file."""
    lines = [f"// Board {platform.build.board}; generated, do not edit.", ""]
    for device in platform.devices:
        lines += _entry(device)
    return "\n".join(lines)


#: Virtual time after which Renode looks at what comes from outside: with its own, of 0.1 ms, an
#: idle board takes half a core.
QUANTUM = "0.01"


def resc(
    platforms: Sequence[Platform],
    name: str,
    *,
    tap: str | None = None,
    gdb: int | None = None,
    gui: bool = False,
    terminal: int | None = None,
    library: Path | None = None,
) -> str:
    """The script that makes the machine, or several of them on one switch, ready to start.

    ``terminal``: the port at which the first board's UART is.
    """
    build = platforms[0].build
    models = " ".join("@" + _quote(path) for path in sorted(MODELS.glob("*.cs")))
    lines = [f":name: Trebuchet, board {build.board}", "", f"include {models}", ""]
    lines += [f"$bin?=@{_quote(build.firmware)}", f"$elf?=@{_quote(build.elf)}", ""]
    if all(d.name != "gateware" for d in platforms[0].devices):
        lines += [f'emulation SetGlobalQuantum "{QUANTUM}"']
    lines += ['emulation CreateSwitch "lan"']
    if tap is not None:
        lines += [f'emulation CreateTap "{tap}" "tap"', "connector Connect host.tap lan"]
    names = machines(name, len(platforms))
    for number, (machine, platform) in enumerate(zip(names, platforms, strict=True)):
        lines += ["", f'mach create "{machine}"']
        lines += [f"machine LoadPlatformDescription {_quote(Path(machine + '.repl'))}"]
        if any(d.name == "mac" for d in platform.devices):
            lines += ["connector Connect sysbus.mac lan"]
        if library is not None:
            lines += [f"sysbus.gateware SimulationFilePathLinux @{_quote(library)}"]
        # The ROM is as it was when the machine starts anew, and so is everything in RAM.
        lines += ["macro reset", '"""', f"    sysbus LoadBinary $bin 0x{build.entry:x}"]
        lines += [
            "    sysbus LoadSymbolsFrom $elf",
            f"    cpu PC 0x{build.entry:x}",
            '"""',
            "runMacro $reset",
        ]
        if gui:
            lines += ["showAnalyzer sysbus.uart"]
        if gdb is not None:
            lines += [f"machine StartGdbServer {gdb + number}"]
    if terminal is not None:  # at last: whoever finds it open knows that all else is there
        lines += ["", f'mach set "{names[0]}"']
        lines += [f'emulation CreateServerSocketTerminal {terminal} "console" false']
        lines += ["connector Connect sysbus.uart console"]
    return "\n".join(lines) + "\n"


def _quote(path: Path) -> str:
    """Renode's paths end at a blank unless it is quoted; relative ones begin at the script."""
    text = str(path) if path.is_absolute() else f"$ORIGIN/{path}"
    return text.replace(" ", "\\ ")


def check(platform: Platform, text: str) -> None:
    """Raise unless ``text`` parses, says what ``platform`` says, and covers every CSR region."""
    entries = _parse(text)
    build = platform.build
    missing = set(build.regions) - {r for d in platform.devices for r in d.regions}
    if missing:
        raise TrebuchetError(f"the platform lacks the CSR regions {', '.join(sorted(missing))}")
    for device in platform.devices:
        starts = [at for at, _ in _spans(device)]
        for region in device.regions:
            if build.regions[region] not in starts:
                raise TrebuchetError(f"{device.name!r} must lie where csr.json has {region!r}")
        if entries.get(device.name) != starts:
            raise TrebuchetError(f"{device.name!r} does not read back from the platform file")
    spans = sorted((at, at + size, d.name) for d in platform.devices for at, size in _spans(d))
    for (_, end, first), (start, _, second) in zip(spans, spans[1:], strict=False):
        if start < end:
            raise TrebuchetError(f"{first!r} and {second!r} overlap at 0x{start:08x}")
    _check_registers(platform)


def _check_registers(platform: Platform) -> None:
    """Every register of csr.json lies in some device's window."""
    windows = [at for d in platform.devices if d.regions for at, _ in _spans(d)]
    for name, csr in platform.build.csrs.items():
        end = csr["addr"] + 4 * csr["size"]
        if not any(at <= csr["addr"] and end <= at + CSR_WINDOW for at in windows):
            raise TrebuchetError(f"register {name!r} of csr.json lies in no device of the platform")


def _parse(text: str) -> dict[str, list[int]]:
    """Addresses by name; an error names the line that is none of the forms that we write."""
    found: dict[str, list[int]] = {}
    wires: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("//"):
            continue
        entry, wire = _ENTRY.match(line), _WIRE.match(line)
        if entry:
            if entry[1] in found:
                raise TrebuchetError(f"line {number}: {entry[1]!r} is there twice")
            found[entry[1]] = [int(m[1] or m[3], 16) for m in _SPAN.finditer(entry[3])]
        elif wire:
            wires.append((number, wire[2]))
        elif not _ATTRIBUTE.match(line) or not found:
            raise TrebuchetError(f"line {number} of the platform file does not parse: {line!r}")
    for number, target in wires:
        if target not in found:
            raise TrebuchetError(f"line {number}: there is no {target!r} to interrupt")
    return found


def machines(name: str, boards: int) -> list[str]:
    """Names of the machines, which are those of their platform files, too."""
    return [name] if boards == 1 else [f"{name}{number}" for number in range(boards)]


def write(platforms: Sequence[Platform], folder: Path, name: str, **options: object) -> Path:
    """Write a platform file for each board, and ``NAME.resc``; return the script's path.

    What is written was checked (:func:`check`).
    """
    texts = {}
    for machine, platform in zip(machines(name, len(platforms)), platforms, strict=True):
        texts[f"{machine}.repl"] = text = repl(platform)
        check(platform, text)
    script = f"{name}.resc"
    texts[script] = resc(platforms, name, **options)  # type: ignore[arg-type]
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folder / file).write_text(text)
    return folder / script
