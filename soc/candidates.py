"""Platforms of litex-boards that Trebuchet could be ported to, and board files to begin with."""

import functools
import importlib
import inspect
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path

from ..models.errors import TrebuchetError, did_you_mean

__all__ = ["Candidate", "board_file", "candidate", "candidates"]

_DEVICE = re.compile(r"\bLFE5U[\w-]*")
_PLATFORM = re.compile(r"^\s*from litex_boards\.platforms import ([\w, ]+)", re.MULTILINE)
_CHIPS = re.compile(r"from litedram\.modules import ([\w, ]+)")
_BOARDS = Path(__file__).resolve().parent.parent / "boards"
#: Pins of the receive data and of a signal beside them -> the interface of an Ethernet PHY.
_INTERFACES = {(4, "rx_ctl"): "rgmii", (2, "crs_dv"): "rmii", (4, "rx_dv"): "mii"}
#: What ``boards/ecp5.py`` has a helper for.
_USABLE = ("rgmii", "rmii")


@dataclass(frozen=True)
class Candidate:
    """A platform of litex-boards with an ECP5.

    Attributes
    ----------
    platform : str
        Its module in ``litex_boards.platforms``.
    devices : tuple of str
        FPGAs, as the platform names them; some names are only the beginning of one.
    ethernet, memory : str
        ``rgmii``, ``rmii`` or ``mii``; ``ddram`` or ``sdram``; ``""`` if there is none.
    memory_bits : int
        Data pins of the memory.
    masks : bool
        The memory can leave bytes out of a write.
    console : bool
        It has two pins for a console.
    target : str
        The module in ``litex_boards.targets`` with its clocks; ``""``: none.
    chips : tuple of str
        Memory chips that the target names, classes of ``litedram.modules``.
    boards : tuple of str
        Our boards that use it.
    """

    platform: str
    devices: tuple[str, ...]
    ethernet: str
    memory: str
    memory_bits: int
    masks: bool
    console: bool
    target: str
    chips: tuple[str, ...]
    boards: tuple[str, ...]

    @property
    def memory_kind(self):
        """What the memory is called; ``""`` if there is none."""
        return {"ddram": "DDR3", "sdram": "SDRAM"}.get(self.memory, "")

    @property
    def lacks(self):
        """What a port needs and this has not, in words; empty: it can be ported."""
        without = {
            "memory": self.memory,
            "Ethernet (an RMII module on a header would do)": self.ethernet,
            "clocks (a target)": self.target,
            "a console": self.console,
        }
        missing = [name for name, there in without.items() if not there]
        if self.ethernet and self.ethernet not in _USABLE:
            missing.append(f"a PHY of {' or '.join(_USABLE)}: it has {self.ethernet}")
        return tuple(missing)


def _names(line):
    """Names of an import statement's list."""
    return [part.split()[0] for part in line.split(",") if part.strip()]


def _resources(module):
    """Names of the platform's resources, each with its first description."""
    found = {}
    for value in vars(module).values():
        if isinstance(value, list):
            for item in value:
                if isinstance(item, tuple) and len(item) > 2 and isinstance(item[0], str):
                    found.setdefault(item[0], item)
    return found


def _widths(resource):
    """Pins of each signal of a resource."""
    from litex.build.generic_platform import Subsignal

    return {
        part.name: len(part.constraints[0].identifiers)
        for part in resource
        if isinstance(part, Subsignal)
    }


def _ethernet(resources):
    if not {"eth", "eth_clocks"} <= resources.keys():
        return ""
    widths = _widths(resources["eth"])
    for (data, beside), name in _INTERFACES.items():
        if widths.get("rx_data") == data and beside in widths:
            return name
    return "another kind"


@functools.cache
def _users():
    """Our boards, and targets of litex-boards, by the platform that they import."""
    import litex_boards

    targets = Path(litex_boards.__file__).parent / "targets"
    boards, found = {}, {}
    for files, users in ((_BOARDS, boards), (targets, found)):
        for path in sorted(files.glob("*.py")):
            for line in _PLATFORM.findall(path.read_text()):
                for name in _names(line):
                    users.setdefault(name, []).append(path)
    return boards, found


def _candidate(name, source):
    module = importlib.import_module(f"litex_boards.platforms.{name}")
    resources, (boards, targets) = _resources(module), _users()
    ours = targets.get(name, [])
    ours = [path for path in ours if path.stem == name] or ours
    text = ours[0].read_text() if ours else ""
    chips = [chip for line in _CHIPS.findall(text) for chip in _names(line)]
    memory = next((kind for kind in ("ddram", "sdram") if kind in resources), "")
    widths = _widths(resources[memory]) if memory else {}
    return Candidate(
        name,
        tuple(sorted(set(_DEVICE.findall(source)))),
        _ethernet(resources),
        memory,
        widths.get("dq", 0),
        "dm" in widths,
        "serial" in resources,
        ours[0].stem if "class _CRG" in text else "",
        tuple(chips),
        tuple(path.stem for path in boards.get(name, [])),
    )


@functools.cache
def candidates():
    """A :class:`Candidate` for each platform with an ECP5, in the order of their names."""
    from litex_boards import platforms

    found = []
    for entry in pkgutil.iter_modules(platforms.__path__):
        source = (Path(platforms.__path__[0]) / f"{entry.name}.py").read_text()
        if _DEVICE.search(source):
            found.append(_candidate(entry.name, source))
    return tuple(found)


def candidate(platform):
    """The :class:`Candidate` of that name that can be ported; else TrebuchetError says why not."""
    found = {entry.platform: entry for entry in candidates()}
    if platform not in found:
        raise TrebuchetError(
            f"there is no platform {platform!r} with an ECP5{did_you_mean(platform, found)}; "
            "all are listed by: trebuchet board candidates --all"
        )
    chosen = found[platform]
    if chosen.lacks:
        raise TrebuchetError(
            f"platform {platform} lacks {', '.join(chosen.lacks)}; "
            "docs/porting.md says what a board needs"
        )
    return chosen


_FILE = '''"""{title}: {device}, {memory}, Ethernet over {interface}."""

from trebuchet.boards import ecp5
from trebuchet.boards.presets import ONE_ECG
from trebuchet.boards.schema import Board


def _platform():
    from litex_boards.platforms import {platform}

    return ecp5.area_options({platform}.Platform({arguments}))


def _attach(soc):
    from litedram.modules import {chip}
    from litex_boards.targets.{target} import _CRG

    soc.crg = _CRG(soc.platform, soc.sys_clk_freq{rate})
    ecp5.{helper}(soc, {chip}{call})
    # Other delays than the PHY's own are named here; the target says which the board needs.
    ecp5.{ethernet}(soc)


BOARD = Board(
    name="{name}",
    title="{title}",
    flow="trellis",
    device="{device}",
    sys_clk_hz=60_000_000,
    dram_bytes={megabytes} << 20,
{fields}    plan=ONE_ECG,
    platform=_platform,
    attach=_attach,
)
'''
#: Fields by the FPGA's size: what its block RAM and LUTs have room for.
_NO_PROCESSOR = {"cpu_variant": "none", "tcp": "lean", "sessions": 16, "udp_services": False}
_FIELDS = {
    "12F": _NO_PROCESSOR,
    "25F": _NO_PROCESSOR,
    "45F": {"tcp": "lean", "udp_services": False},
    "85F": {},
}


def _wants_rate(target):
    """The target's clocks cannot be made without saying the memory's rate."""
    clocks = importlib.import_module(f"litex_boards.targets.{target}")._CRG
    rate = inspect.signature(clocks).parameters.get("sdram_rate")
    return rate is not None and rate.default is rate.empty


def _make(module, arguments):
    """The platform; of a device that it does not have litex-boards says so in many ways."""
    try:
        return module.Platform(**arguments)
    except Exception as error:
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        name = module.__name__.rpartition(".")[2]
        raise TrebuchetError(
            f"there is no platform {name}({given}): {type(error).__name__}: {error}"
        ) from error


def board_file(name, platform, device=None):
    """Text of a board file ``name`` for a platform of litex-boards, as its target uses it.

    ``device`` is the platform's argument of this name, such as ``45F``; None: as it comes. FPGA,
    pins, clocks and the memory chip are the platform's and the target's; the clock is the one of
    most boards; the flash is left out, since nothing tells its size. Raises TrebuchetError if the
    platform lacks something.
    """
    chosen = candidate(platform)
    arguments = {} if device is None else {"device": device}
    made = _make(importlib.import_module(f"litex_boards.platforms.{platform}"), arguments)
    size = next((size for size in _FIELDS if f"-{size}-" in made.device), None)
    if size is None or not chosen.chips:
        what = made.device if size is None else "memory chip, which its target does not name"
        raise TrebuchetError(f"platform {platform}: we cannot write a file for its {what}")
    fields = dict(_FIELDS[size])
    if chosen.memory == "ddram" and fields.get("cpu_variant") == "none":
        raise TrebuchetError(
            f"platform {platform}: an {made.device} has no room for a processor, and without one "
            "the memory must be SDRAM of single data rate, not DDR3; if the board is sold with a "
            "larger FPGA, name it, such as --device 45F"
        )
    chip = getattr(importlib.import_module("litedram.modules"), chosen.chips[0])
    half = chosen.memory == "sdram" and chosen.memory_bits == 16
    if not chosen.masks:
        fields = {"dram_masks": False} | fields
    helper = "ddr3" if chosen.memory == "ddram" else "sdram"
    return _FILE.format(
        name=name,
        title=platform.replace("_", " "),
        device=made.device,
        memory=chosen.memory_kind,
        interface=chosen.ethernet.upper(),
        platform=platform,
        arguments="" if device is None else f'device="{device}"',
        chip=chip.__name__,
        target=chosen.target,
        rate=', sdram_rate="1:2"' if half or _wants_rate(chosen.target) else "",
        call=', "1:2"' if half else "",
        helper=helper,
        ethernet=chosen.ethernet,
        megabytes=min(1024, chip.nbanks * chip.nrows * chip.ncols * chosen.memory_bits >> 23),
        fields="".join(f"    {key}={value!r},\n" for key, value in fields.items()).replace(
            "'", '"'
        ),
    )
