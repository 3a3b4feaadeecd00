"""A board as Renode sees it: one :class:`Device` for every region of the build's own ``csr.json``.

LiteX's own generator (``litex_json2renode``) knows LiteX's peripherals only and skips the others.
Here nothing is skipped: a region whose block is in ``registers.json`` gets a model of ours with
exactly those registers, LiteX's blocks get Renode's model where that has all registers of the
build's register width, and what is left (the registers of LiteDRAM's PHY, and any that a later
LiteX adds) a model that keeps what is written.
"""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...models.errors import TrebuchetError

__all__ = [
    "CSR_WINDOW",
    "Build",
    "Device",
    "Platform",
    "Text",
    "constant_status",
    "describe",
    "describe_cosimulated",
    "need_firmware",
    "read_build",
    "role_of",
]

#: Bytes of each CSR region; LiteX's paging.
CSR_WINDOW = 0x800

#: Instructions that VexRiscv's variants know; Renode counts Zicsr and Zifencei on their own.
_ISA = {"minimal": "rv32i", "lite": "rv32im", "standard": "rv32im", "full": "rv32im"}


class Text(str):
    """An attribute that is a string in the platform file."""


@dataclass(frozen=True)
class Build:
    """What a build leaves for those that come after it."""

    folder: Path
    regions: dict[str, int]
    csrs: dict[str, dict[str, Any]]
    constants: dict[str, Any]
    memories: dict[str, dict[str, Any]]
    blocks: dict[str, dict[str, Any]]
    identifier: str
    firmware: Path

    @property
    def entry(self) -> int:
        """Where the firmware lies and begins. There is no boot ROM here that would put it there."""
        in_memory = "trebuchet_boot_rom" in self.constants
        return int(self.memories["main_ram"]["base"]) if in_memory else 0

    @property
    def elf(self) -> Path:
        return self.firmware.with_suffix(".elf")

    @property
    def clock_hz(self) -> int:
        return int(self.constants["config_clock_frequency"])

    @property
    def board(self) -> str:
        return str(self.constants["trebuchet_board"])


@dataclass(frozen=True)
class Device:
    """One entry of the platform file.

    ``type`` is Renode's name of the class, ``at`` the address, or None for the processor, which has
    none. ``also`` are further ``(address, size)``. ``wires`` are lines ``SOURCE -> TARGET@NUMBER``.
    """

    name: str
    type: str
    at: int | None
    size: int
    attributes: dict[str, object] = field(default_factory=dict)
    wires: tuple[str, ...] = ()
    #: The CSR regions that this device stands for.
    regions: tuple[str, ...] = ()
    also: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Platform:
    """Everything that is emulated of one board."""

    build: Build
    devices: tuple[Device, ...]


#: A build that was finished is not looked at again, so what has gone from it must all go.
_ANEW = "remove the folder {}, and it is built anew"


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise TrebuchetError(f"{path} is missing; {_ANEW.format(path.parent)}") from None
    except ValueError as error:
        raise TrebuchetError(f"{path} is damaged: {error}; {_ANEW.format(path.parent)}") from None


def _identifier(folder: Path, constants: dict[str, Any]) -> str:
    """LiteX writes the identifier in lower case into csr.json, and as it is into soc.h."""
    header = folder / "software" / "include" / "generated" / "soc.h"
    found = header.exists() and re.search(r'CONFIG_IDENTIFIER "(.*)"', header.read_text())
    return found.group(1) if found else str(constants["config_identifier"])


def read_build(folder: Path) -> Build:
    """What lies in a build's folder (``build/sim``)."""
    csr, registers = _load(folder / "csr.json"), _load(folder / "registers.json")
    try:
        program = "application" if "trebuchet_boot_rom" in csr["constants"] else "bios"
        build = Build(
            folder=folder,
            regions={name: int(base) for name, base in csr["csr_bases"].items()},
            csrs=csr["csr_registers"],
            constants=csr["constants"],
            memories=csr["memories"],
            blocks=registers["blocks"],
            identifier=_identifier(folder, csr["constants"]),
            firmware=folder / "software" / "bios" / f"{program}.bin",
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__} {error}"
        raise TrebuchetError(
            f"csr.json or registers.json in {folder} is damaged ({what}); {_ANEW.format(folder)}"
        ) from None
    return build


def need_firmware(build: Build) -> None:
    """Raise unless the firmware's two files are there."""
    for path in (build.firmware, build.elf):
        if not path.is_file():
            raise TrebuchetError(f"{path} is missing; {_ANEW.format(build.folder)}")


@dataclass(frozen=True)
class _Choice:
    """What may be chosen of the models."""

    role: str = "none"
    mailbox_port: int | None = None
    flash: Path | None = None


def check_role(role: str) -> None:
    """Refuse a role that the models lack."""
    if role not in ("none", "loopback"):
        raise TrebuchetError(f"the role in Renode must be none or loopback, not {role!r}")


def describe(
    build: Build,
    role: str = "none",
    mailbox_port: int | None = None,
    flash: Path | None = None,
) -> Platform:
    """The platform of a build.

    Parameters
    ----------
    role : str
        What the model of the role slot does: ``"none"`` or ``"loopback"``.
    mailbox_port : int or None
        Where the host reaches the board's status page, 0: anywhere, None: nowhere.
    flash : path or None
        File with the contents of the flash, read at the start and written; None: an empty flash.
    """
    check_role(role)
    if flash is not None and "flash" not in build.blocks:
        raise TrebuchetError(f"board {build.board!r} has no flash")
    choice = _Choice(role, mailbox_port, flash)
    devices = [_cpu(build), *_memories(build)]
    for region, base in sorted(build.regions.items(), key=lambda item: item[1]):
        devices.append(_device(build, region, base, choice))
    order = {"shell": 0, "mac": 1}
    devices.sort(key=lambda d: order.get(d.name, 2))  # named before they are referred to
    return Platform(build, tuple(devices))


#: What stays with Renode when the gateware is the real one: what only the processor uses.
_PROCESSORS_OWN = ("ctrl", "identifier_mem", "timer0", "uart")


def describe_cosimulated(build: Build, address: str | None = None) -> Platform:
    """The platform whose registers and main RAM are those of the gateware in Verilator.

    ``address``: where its agent connects to (socket mode); None: Renode loads a library.
    """
    devices = [_cpu(build), *(m for m in _memories(build) if m.name != "main_ram")]
    windows, regions = [], []
    for region, base in sorted(build.regions.items(), key=lambda item: item[1]):
        if region in _PROCESSORS_OWN:
            devices.append(_device(build, region, base, _Choice()))
        else:
            windows.append((base, CSR_WINDOW))
            regions.append(region)
    ram = build.memories["main_ram"]
    attributes: dict[str, object] = {
        "frequency": build.clock_hz,
        # Cycles between two looks at the interrupt lines: five milliseconds.
        "limitBuffer": max(1, build.clock_hz // 200),
        "timeout": 20000,
        "maxWidth": 32,
        "useAbsoluteAddress": "true",
        "cosimToRenodeSignalRange": "<0, +1>",
    }
    if address is not None:
        attributes["address"] = Text(address)
    devices.append(
        Device(
            "gateware",
            "CoSimulated.CoSimulatedPeripheral",
            windows[0][0],
            windows[0][1],
            attributes,
            (f"0 -> cpu@{build.constants['shell_irq_interrupt']}",),
            tuple(regions),
            (*windows[1:], (ram["base"], ram["size"])),
        )
    )
    return Platform(build, tuple(devices))


def _cpu(build: Build) -> Device:
    variant = next(
        (v for v in _ISA if f"config_cpu_variant_{v}" in build.constants),
        next((v for v in _ISA if f"config_cpu_variant_{v}+debug" in build.constants), None),
    )
    if "config_cpu_type_vexriscv" not in build.constants or variant is None:
        raise TrebuchetError(
            f"the processor of board {build.board!r} must be VexRiscv, one of {', '.join(_ISA)}"
        )
    isa = _ISA[variant] + "_zicsr_zifencei"
    mips = max(1, build.clock_hz // 2_000_000)
    return Device("cpu", "CPU.VexRiscv", None, 0, {"cpuType": Text(isa), "PerformanceInMips": mips})


def _memories(build: Build) -> list[Device]:
    return [
        Device(name, "Memory.MappedMemory", m["base"], m["size"], {"size": m["size"]})
        for name, m in build.memories.items()
        if m["type"] != "io"
    ]


def _interrupt(build: Build, region: str) -> tuple[str, ...]:
    number = build.constants.get(f"{region}_interrupt")
    return () if number is None else (f"IRQ -> cpu@{number}",)


def _is_role(block: dict[str, Any]) -> bool:
    return {"busy", "start", "interrupt_enable", "result_status"} <= set(block["registers"])


def role_of(build: Build) -> str:
    """Name of the role slot's block."""
    return next(name for name, block in build.blocks.items() if _is_role(block))


def _shell_irq(build: Build, region: str) -> tuple[str, ...]:
    """The shell's blocks that can interrupt share one line, in the order of their names."""
    sources = sorted(
        name
        for name, block in build.blocks.items()
        if _is_role(block) or "irq_enable" in block["registers"]
    )
    if region not in sources or "shell_irq" not in build.regions:
        return ()
    return (f"IRQ -> shell_irq@{sources.index(region)}",)


def constant_status(build: Build, block: str, name: str) -> int:
    """Read-only registers that say how the gateware was built, not what has happened."""
    if (block, name) == ("mailbox", "status"):
        return 2  # partial: no request has ended with an empty line yet
    if block != "tcp":
        return 0
    registers = build.blocks["tcp"]["registers"]
    sessions = int(build.constants["trebuchet_sessions"])
    # A board's engine has a segment for each session, and four descriptors (cores/tcp/config.py).
    values = {
        "services": sum(1 for r in registers if re.fullmatch(r"port_\d+", r)),
        "sessions": sessions,
        "segments_free": sessions,
        "descriptors_free": 4 * sessions,
        "idle": 1,
    }
    return values.get(name, 0)


def _registers(build: Build, region: str) -> Text:
    block = build.blocks[region]
    words = []
    for name, r in sorted(block["registers"].items(), key=lambda item: item[1]["offset"]):
        reset = r["reset"] if r["access"] != "ro" else constant_status(build, region, name)
        words.append(f"{name}:{r['access']}:{r['width']}" + (f":{reset}" if reset else ""))
    return Text(" ".join(words))


def _litex_registers(build: Build, region: str, reset: dict[str, int] | None = None) -> Text:
    """LiteX's blocks: widths are not in csr.json, so each word has 32 bits."""
    base, found = build.regions[region], []
    for name, csr in build.csrs.items():
        if not name.startswith(region + "_") or not 0 <= csr["addr"] - base < CSR_WINDOW:
            continue
        short = name.removeprefix(region + "_")
        for word in range(csr["size"]):
            label = short if csr["size"] == 1 else f"{short}_{word}"
            found.append((csr["addr"] + 4 * word, label, csr["type"]))
    found.sort()
    if [at for at, _, _ in found] != [base + 4 * i for i in range(len(found))]:
        raise TrebuchetError(f"registers of {region!r} in csr.json must lie one behind the other")
    values = reset or {}
    return Text(
        " ".join(
            f"{label}:{access}:32" + (f":{values[label]}" if label in values else "")
            for _, label, access in found
        )
    )


def _device(build: Build, region: str, base: int, choice: _Choice) -> Device:
    attributes: dict[str, object]
    if region in build.blocks:
        kind, attributes = _our_model(build, region, choice)
        wires = _shell_irq(build, region)
    else:
        kind, attributes = _litex_model(build, region)
        wires = _interrupt(build, region)
    return Device(region, kind, base, CSR_WINDOW, attributes, wires, (region,))


def _our_model(build: Build, region: str, choice: _Choice) -> tuple[str, dict[str, object]]:
    attributes: dict[str, object] = {"registers": _registers(build, region)}
    if region == "mailbox":
        if choice.mailbox_port is not None:
            attributes["port"] = choice.mailbox_port
        return "Trebuchet.Mailbox", attributes
    if region == "shell":
        return "Trebuchet.Shell", attributes
    if region == "nic":
        return "Trebuchet.Nic", {**attributes, "link": "mac"}
    if region == "flash":
        return "Trebuchet.Flash", {**attributes, **_flash(build, choice.flash)}
    if _is_role(build.blocks[region]):
        attributes |= {"frequency": build.clock_hz, "role": Text(choice.role)}
        if region == "none":
            attributes["empty"] = "true"
        return "Trebuchet.RoleSlot", attributes
    return "Trebuchet.RegisterBlock", attributes


def _flash(build: Build, file: Path | None) -> dict[str, object]:
    """Size, JEDEC ID (a W25Q of that size) and contents of the flash."""
    size = int(build.constants.get("trebuchet_flash_size", 16 << 20))
    attributes: dict[str, object] = {
        "bytes": size,
        "identity": 0xEF4000 | (size.bit_length() - 1),
    }
    return attributes if file is None else {**attributes, "file": Text(file.resolve())}


def _litex_model(build: Build, region: str) -> tuple[str, dict[str, object]]:
    hz = build.clock_hz
    if region == "timer0":
        return "Timers.LiteX_Timer_CSR32", {"frequency": hz}
    if region == "uart":
        return "Trebuchet.Uart", {}
    if region == "identifier_mem":
        return "Trebuchet.Identifier", {"text": Text(build.identifier)}
    resets = {"ctrl": {"scratch": 0x12345678}, "tick": {"period": hz // 1000}}
    registers = _litex_registers(build, region, resets.get(region))
    named: dict[str, tuple[str, dict[str, object]]] = {
        "ctrl": ("Trebuchet.Control", {}),
        "tick": ("Trebuchet.Tick", {"frequency": hz}),
        "shell_irq": ("Trebuchet.IrqLine", {}),
        "mac": ("Trebuchet.Link", {"shell": "shell"}),
        "sdram": ("Trebuchet.Dfi", {}),
        "watchdog": ("Trebuchet.Watchdog", {}),
    }
    kind, more = named.get(region, ("Trebuchet.RegisterBlock", {}))
    return kind, {"registers": registers, **more}
