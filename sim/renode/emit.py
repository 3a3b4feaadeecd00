"""A :class:`~trebuchet.sim.renode.platform.Platform` as Renode's files, and a check of them."""

import re
from pathlib import Path

from ...models.errors import TrebuchetError
from .platform import CSR_WINDOW, Device, Platform, Text

__all__ = ["MODELS", "check", "repl", "resc", "write"]

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


def resc(
    platform: Platform,
    name: str,
    *,
    boards: int = 1,
    tap: str | None = None,
    gdb: int | None = None,
    gui: bool = False,
    library: Path | None = None,
) -> str:
    """The script that makes the machine, or several of them on one switch, ready to start."""
    build = platform.build
    models = " ".join("@" + _quote(path) for path in sorted(MODELS.glob("*.cs")))
    lines = [f":name: Trebuchet, board {build.board}", "", f"include {models}", ""]
    lines += [f"$bin?=@{_quote(build.firmware)}", f"$elf?=@{_quote(build.elf)}", ""]
    lines += ['emulation CreateSwitch "lan"']
    if tap is not None:
        lines += [f'emulation CreateTap "{tap}" "tap"', "connector Connect host.tap lan"]
    for number in range(boards):
        machine = name if boards == 1 else f"{name}{number}"
        lines += ["", f'mach create "{machine}"']
        lines += [f"machine LoadPlatformDescription {_quote(Path(name + '.repl'))}"]
        if any(d.name == "mac" for d in platform.devices):
            lines += ["connector Connect sysbus.mac lan"]
        if library is not None:
            lines += [f"sysbus.gateware SimulationFilePathLinux @{_quote(library)}"]
        # The ROM is as it was when the machine starts anew, and so is everything in RAM.
        lines += ["macro reset", '"""', "    sysbus LoadBinary $bin 0x0"]
        lines += ["    sysbus LoadSymbolsFrom $elf", "    cpu PC 0x0", '"""', "runMacro $reset"]
        if gui:
            lines += ["showAnalyzer sysbus.uart"]
        if gdb is not None:
            lines += [f"machine StartGdbServer {gdb + number}"]
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


def write(platform: Platform, folder: Path, name: str, **options: object) -> Path:
    """Write ``NAME.repl`` and ``NAME.resc`` after checking them; return the script's path."""
    text = repl(platform)
    check(platform, text)
    folder.mkdir(parents=True, exist_ok=True)
    script = resc(platform, name, **options)  # type: ignore[arg-type]
    (folder / f"{name}.repl").write_text(text)
    path = folder / f"{name}.resc"
    path.write_text(script)
    return path
