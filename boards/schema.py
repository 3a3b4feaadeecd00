"""What a board file says: one :class:`Board`, checked when it is made.

A board file ``boards/NAME.py`` defines ``BOARD``. Its ``platform`` and ``attach`` are functions, so
that LiteX is needed only when the board is built. To port Trebuchet, copy the nearest board file,
change it until its values are the new board's, and add its name to ``boards.BUILT`` or
``boards.VENDOR``.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from ..models.engine_folders import engine_names
from ..models.errors import TrebuchetError
from ..models.plan import Plan
from ..models.role_folders import role_names
from .capacity import Capacity
from .ecp5_devices import DEVICES, ecp5_device
from .flash import Flash
from .presets import TCP_FIELDS, TCP_PRESETS

__all__ = ["FLOWS", "HOST_DOMAINS", "Board", "BoardError"]

#: Tool flows: Verilator; Yosys with nextpnr-ecp5; a Vivado project, checked with Yosys.
FLOWS = ("sim", "trellis", "vivado")
#: Where firmware runs: on-chip memory, or external memory, where a boot ROM puts it.
FIRMWARES = ("rom", "memory")
#: Variants with an instruction cache.
CACHED = ("lite", "standard", "full", "trebuchet_cached")
#: Bytes of the boot ROM.
BOOT_ROM_BYTES = 0x2000
#: No processor, LiteX's, and those of ours in ``soc/cpu``.
CPU_VARIANTS = ("none", "minimal", "lite", "standard", "full", "trebuchet", "trebuchet_cached")
#: Settings of the router, those of ``soc/toolchain.py``.
ROUTERS = ("quick", "patient")
DRIVES = ("none", "stream", "sd")
#: What fields can be.
_CHOICES = {
    "flow": FLOWS,
    "cpu_variant": CPU_VARIANTS,
    "firmware": FIRMWARES,
    "data_width": (32, 64),
    "router": ROUTERS,
    "drive": DRIVES,
}
_CHOICES |= dict.fromkeys(
    ("dram_masks", "programmable", "active", "inspect")
    + ("udp_services", "bridge", "dhcp", "external_tick"),
    (False, True),
)
#: Least and greatest value of integers.
_RANGES = {
    "sys_clk_hz": (1_000_000, 500_000_000),
    "uart_baud": (9600, 3_000_000),
    "watchdog_ms": (0, 65_535),
    "seed": (1, 1_000_000),
    "counter_width": (16, 32),
    "lut_ram": (0, 65_536),
    "dhcp_retry_ms": (4, 60_000),
    "peers": (0, 15),
    "isn_key": (0, (1 << 128) - 1),
}
#: Likewise, of powers of two.
_POWERS = {
    "sessions": (2, 1 << 17),
    "segment_bytes": (512, 1 << 17),
    "dram_bytes": (1 << 20, 1 << 30),
    "rom_bytes": (1 << 14, 1 << 18),
    "sram_bytes": (1 << 12, 1 << 18),
    "frame_store": (1 << 11, 1 << 15),
}
#: How a board's FPGA is told to load another bitstream, and the flow of boards that can have that.
MULTIBOOTS = {"none": FLOWS, "pin": ("trellis",), "icap": ("vivado",)}
#: Clock domains of the host's PHY, by LiteEth's names, which those of the network's PHY keep.
HOST_DOMAINS = {"eth_rx": "host_eth_rx", "eth_tx": "host_eth_tx"}
#: As much of a wrong value is shown, in characters.
SHOWN = 200


class BoardError(TrebuchetError, ValueError):
    """A board file with a value that cannot be."""


def _power_of_two(value):
    return value > 0 and value & (value - 1) == 0


def _is_hosts(text):
    """An IPv4 address that one host can have: not of a group, of everybody, or of itself alone."""
    try:
        found = ipaddress.IPv4Address(text) if isinstance(text, str) else None
    except ValueError:
        return False
    return not (
        found is None
        or found.packed[0] in (0, 127)  # this network; loopback
        or found.is_multicast
        or found.is_reserved  # 240.0.0.0/4, where the broadcast address is
    )


def _shown(value):
    """``repr(value)`` on a line that can be read, whatever a user's file has made of it."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a number of thousands of digits, a class of the user's own
        return f"this {type(value).__name__}, which cannot be printed"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


@dataclass(frozen=True, kw_only=True)
class Board:
    """A board and the sizes that follow from it.

    Attributes
    ----------
    name : str
        As on the command line; the name of its file. At most 24 characters, as many as the header
        of an image takes.
    title : str
        Vendor and model, for people.
    flow : str
        Which tools build it, one of :data:`FLOWS`.
    device : str
        The FPGA.
    sys_clk_hz : int
        Frequency of the one clock of CPU, shell and memory controller. In simulation it is nominal.
    dram_bytes : int
        Size of the external memory, or of the part of it that is used: at most 1 GiB.
    dram_masks : bool
        Its chips can leave bytes out of a write; otherwise ``attach`` leaves the bus to the SoC.
    platform : callable
        ``platform()`` returns the LiteX platform.
    attach : callable
        ``attach(soc)`` gives the SoC its ``crg`` and ``ethphy``, and adds the SDRAM; with ``flash``
        also ``flash_pads``, with ``clk``, ``cs_n``, ``mosi`` and ``miso``; with ``bridge`` also
        ``host_ethphy``, whose clock domains are :data:`HOST_DOMAINS`.
    data_width : int
        Data path of the shell, in bits.
    tcp : str
        Size of the TCP engine, one of :data:`~.presets.TCP_PRESETS`. The ten fields from here to
        ``inspect`` are the preset's where a file leaves them out, or says None; a board has them.
    sessions, segment_bytes : int
        TCP sessions, and the receive buffer of each; both powers of two.
    cache : int
        Sessions whose records are on chip at a time, a power of two from 2; all are in external
        memory then. 0: all are in block RAM, and there are 65,536 at most.
    segments : int
        Receive buffers for all sessions together, 1 to ``sessions``; 0: one each.
    places : int
        Sessions that a service can be at work for at a time, a power of two from 2; it has rows,
        and slots in memory, for so many. 0: for each session.
    counter_width : int
        Bits of the TCP engine's event counters, which wrap.
    lut_ram : int
        Bits up to which a list of the TCP engine lies in LUT RAM; more than that on an FPGA with
        more LUTs to spare than block RAMs.
    programmable : bool
        The TCP engine's times and limits can be changed by firmware.
    active : bool
        The board can open connections, to the server of its configuration.
    inspect : bool
        The console can list the TCP sessions.
    isn_key : int
        Secret key of the initial sequence numbers (RFC 6528), 128 bits; 0: the one in the source,
        which everybody knows. Firmware writes a random one at each start; without a processor it
        is this one.
    cpu_variant : str
        VexRiscv variant. If firmware runs from on-chip memory, the smallest, without caches, does.
        ``trebuchet`` and ``trebuchet_cached`` have instructions of ours (docs/cpu.md). ``none``:
        no processor, nothing that needs firmware, and SDRAM of single data rate (docs/porting.md).
    firmware : str
        Where firmware runs: ``"rom"``, on-chip memory that is part of the bitstream; ``"memory"``,
        external memory, where a boot ROM of :data:`BOOT_ROM_BYTES` puts it from the flash. That
        needs ``flash.firmware`` and ``flash.golden_firmware``, a CPU with an instruction cache, and
        no ``multiboot`` (docs/firmware-boot.md).
    rom_bytes, sram_bytes : int
        On-chip memories of the firmware; ``rom_bytes`` does not count with a boot ROM.
    uart_baud : int
        Baud rate of the console.
    watchdog_ms : int
        Milliseconds of the clock after which firmware that hangs is restarted; 0: never.
    plan : Plan
        Its roles, TCP services and stream engines (:mod:`trebuchet.models.plan`). What options they
        may have is checked when the board is built, or by ``trebuchet board check``.
    udp_services : bool
        UDP echo and discard, ports 7 and 9, for trying a network out: 300 LUTs of an ECP5.
    frame_store : int
        Bytes of received frames that wait for the processor, a power of two. With 4,096, enough for
        two of full size, firmware answers IPv4 options, fragments and closed ports.
    bridge : bool
        The board lies between a host and its switch: port 0, ``ethphy``, is the network's, port 1,
        ``host_ethphy``, the host's. What is not for the board passes (docs/network.md).
    peers : int
        Other boards with which this one can share its clients' jobs over LTL; 0: it has no LTL.
    mac, ip : str
        Addresses until somebody configures others.
    flash : Flash or None
        The SPI flash for configuration and images, and its layout; None if there is none.
    drive : str
        Block device: ``"none"``; ``"sd"``, a card in slot ``sdcard``; ``"stream"``, a file on the
        simulated board, to which ``attach`` gives ``drive_pads`` (docs/drives.md).
    multiboot : str
        How the FPGA can load another bitstream of the flash by itself: ``"none"``, it cannot;
        ``"pin"``, a pin of it pulls its PROGRAMN (``attach`` gives ``programn``), ECP5; ``"icap"``,
        through its configuration port, UltraScale. See docs/multiboot.md.
    dhcp : bool
        Ask a DHCP server for an address first, and take ``ip`` when none answers.
    dhcp_retry_ms : int
        Pause after the first try to get one; after 15 of these none has answered.
    external_tick : bool
        The board has an input for the millisecond tick (simulation).
    seed : int
        Seed of place and route with which the board is known to be built to the end.
    router : str
        How fast congestion grows on wires that two nets want, one of :data:`ROUTERS`: ``patient``
        where ``quick`` does not come to an end, which the build says.
    lut4_budget : int
        LUTs the FPGA has: those of ``device`` if left out, and nothing else; 0 but for ECP5.
    capacity : Capacity or None
        What the FPGA has, for flow ``vivado`` only.
    loader : tuple of str
        openFPGALoader's options that choose the board or its cable; empty if nothing can be loaded.
    """

    name: str
    title: str
    flow: str
    device: str
    sys_clk_hz: int
    dram_bytes: int
    platform: Callable[[], Any]
    attach: Callable[[Any], None]
    dram_masks: bool = True
    data_width: int = 32
    tcp: str = "tiny"
    sessions: int | None = None
    cache: int | None = None
    segments: int | None = None
    places: int | None = None
    segment_bytes: int | None = None
    counter_width: int | None = None
    lut_ram: int | None = None
    programmable: bool | None = None
    active: bool | None = None
    inspect: bool | None = None
    isn_key: int = 0
    cpu_variant: str = "minimal"
    firmware: str = "rom"
    rom_bytes: int = 0x10000
    sram_bytes: int = 0x2000
    uart_baud: int = 115200
    watchdog_ms: int = 5000
    plan: Plan = Plan()
    udp_services: bool = True
    frame_store: int = 4096
    bridge: bool = False
    peers: int = 0
    mac: str = "02:00:00:00:00:01"
    ip: str = "192.0.2.2"
    flash: Flash | None = None
    drive: str = "none"
    multiboot: str = "none"
    dhcp: bool = False
    dhcp_retry_ms: int = 1000
    external_tick: bool = False
    seed: int = 1
    router: str = "quick"
    lut4_budget: int | None = None
    capacity: Capacity | None = None
    loader: tuple[str, ...] = ()

    #: The file that :func:`~trebuchet.boards.load_board` read it from, if outside the tree.
    source = None

    def __post_init__(self):
        named = isinstance(self.name, str) and re.fullmatch(r"[a-z][a-z0-9_]{0,23}", self.name)
        self._require("name", named, "a lower-case name of at most 24 characters")
        self._take_left_out()
        for name in ("title", "device"):
            value = getattr(self, name)
            is_line = isinstance(value, str) and value.isprintable() and value.strip()
            self._require(name, is_line, "a line of text")
        for name, allowed in _CHOICES.items():
            self._choice(name, allowed)
        self._check_plan()
        for name, (low, high) in _RANGES.items():
            self._range(name, low, high)
        for name, (low, high) in _POWERS.items():
            self._range(name, low, high)
            self._require(name, _power_of_two(getattr(self, name)), "a power of two")
        self._check_store()
        for name in ("platform", "attach"):
            self._require(name, callable(getattr(self, name)), "a function")
        self._check_device()
        self._check_capacity()
        self._require(
            "uart_baud", self.uart_baud * 8 <= self.sys_clk_hz, "at most an eighth of sys_clk_hz"
        )
        self._check_loader()
        self._check_flash()
        self._check_multiboot()
        self._check_unmanaged()
        self._check_drive()
        self._check_firmware()
        self._check_bridge()
        self._check_addresses()

    def _take_left_out(self):
        """Values for the fields that follow from others, where they were left out."""
        self._choice("tcp", tuple(TCP_PRESETS))
        values = {name: getattr(TCP_PRESETS[self.tcp], name) for name in TCP_FIELDS}
        values["lut4_budget"] = self._luts()
        left_out = tuple(name for name in values if getattr(self, name) is None)
        for name in left_out:
            object.__setattr__(self, name, values[name])
        object.__setattr__(self, "_left_out", left_out)

    def _luts(self):
        is_ecp5 = self.flow == "trellis" and isinstance(self.device, str)
        fpga = ecp5_device(self.device) if is_ecp5 else None
        return 0 if fpga is None else fpga.lut4

    def variant(self, **changes):
        """This board with ``changes``, for the file of its twin with another FPGA.

        Unlike with ``dataclasses.replace``, what this board has from its ``tcp`` and ``device`` it
        has from those of the twin.
        """
        return replace(self, **dict.fromkeys(self._left_out) | changes)

    def _require(self, name, good, allowed):
        if not good:
            self._refuse(name, allowed, getattr(self, name))

    def _refuse(self, name, allowed, value):
        raise BoardError(
            f"Board {_shown(self.name)}: {name} must be {allowed}, not {_shown(value)}"
        )

    def _check_plan(self):
        self._require("plan", isinstance(self.plan, Plan), "a Plan of roles and services")
        for entry in self.plan.roles:
            if entry.kind not in role_names():
                self._refuse("plan.roles", f"of {', '.join(role_names())}", entry.kind)
        for engine in self.plan.engines:
            if engine.kind not in engine_names():
                self._refuse("plan.engines", f"of {', '.join(engine_names())}", engine.kind)
            if not self.bridge:
                self._refuse("plan.engines", "none without bridge", engine.name)

    def _check_store(self):
        """Where the sessions' records are, and how many segments they share."""
        self._range("cache", 0, self.sessions)
        if self.cache == 0:
            most = 1 << 16
            self._require("sessions", self.sessions <= most, f"at most {most} with cache 0")
        else:
            good = self.cache > 1 and _power_of_two(self.cache)
            self._require("cache", good, f"0 or a power of two from 2 to {self.sessions}")
            self._require("sessions", self.sessions >= 8, "at least 8 with a cache")
        self._range("segments", 0, self.sessions)
        self._range("places", 0, self.sessions)
        good = self.places == 0 or (self.places > 1 and _power_of_two(self.places))
        self._require("places", good, f"0 or a power of two from 2 to {self.sessions}")

    def _check_device(self):
        luts = self._luts()
        known = self.flow != "trellis" or luts
        sizes = ", ".join(DEVICES)
        self._require("device", known, f"an ECP5 like LFE5U-45F-6BG381C, of size {sizes}")
        same = type(self.lut4_budget) is int and self.lut4_budget == luts
        self._require("lut4_budget", same, f"{luts} with device {self.device!r}, or left out")

    def _check_loader(self):
        words = isinstance(self.loader, tuple) and all(
            isinstance(word, str) and word and word.isprintable() for word in self.loader
        )
        self._require("loader", words, "a tuple of openFPGALoader's options")

    def _check_capacity(self):
        is_vivado = self.flow == "vivado"
        self._require(
            "capacity",
            isinstance(self.capacity, Capacity) if is_vivado else self.capacity is None,
            "a Capacity" if is_vivado else f"None for flow {self.flow!r}",
        )
        if is_vivado:
            for name, allowed, value in self.capacity.faults():
                self._refuse(f"capacity.{name}", allowed, value)

    def _check_addresses(self):
        self._require(
            "mac",
            isinstance(self.mac, str)
            and re.fullmatch(r"([0-9a-f]{2}:){5}[0-9a-f]{2}", self.mac)
            and not int(self.mac[:2], 16) & 1
            and self.mac_int != 0,
            "a unicast address like 02:00:00:00:00:01",
        )
        self._require("ip", _is_hosts(self.ip), "an IPv4 address of a host like 192.0.2.2")

    def _check_flash(self):
        if self.flash is None:
            return
        self._require("flash", isinstance(self.flash, Flash), "a Flash or None")
        for name, allowed, value in self.flash.faults(self.flow == "vivado"):
            self._refuse(f"flash.{name}", allowed, value)
        for name, part in self.flash.parts.items() if "--dfu" in self.loader else ():
            if part[0] == 0:
                allowed = "behind the bootloader of loader '--dfu', which lies at 0"
                self._refuse(f"flash.{name}", allowed, part)

    def _check_multiboot(self):
        allowed = tuple(name for name, flows in MULTIBOOTS.items() if self.flow in flows)
        self._choice("multiboot", allowed)
        if self.multiboot == "none":
            return
        parts = {} if self.flash is None else self.flash.parts
        both = "golden" in parts and "bitstream" in parts
        self._require("multiboot", both, "'none' without flash.golden and flash.bitstream")
        if self.multiboot == "pin":
            first = self.flash.golden[0] == 0
            self._require("multiboot", first, "'none' unless flash.golden begins at 0")

    def _check_unmanaged(self):
        """Without a processor there is nothing that needs one."""
        if self.has_cpu:
            return
        for name in ("programmable", "active", "inspect", "dhcp", "peers"):
            off = not getattr(self, name)
            self._require(
                name, off, "off with cpu_variant 'none', which leaves no firmware to use it"
            )
        parts = {} if self.flash is None else self.flash.parts
        only = not parts.keys() - {"golden"}
        self._require("flash", only, "nothing but a golden bitstream with cpu_variant 'none'")

    def _check_drive(self):
        good = self.drive == "none" or self.has_cpu and (self.drive == "sd" or self.flow == "sim")
        self._require("drive", good, "'none' or, with a processor, 'sd' or (if simulated) 'stream'")

    def _check_firmware(self):
        """What a boot ROM needs."""
        if not self.boot_rom:
            return
        parts = {} if self.flash is None else self.flash.parts
        both = "firmware" in parts and "golden_firmware" in parts
        self._require("firmware", both, "'rom' without flash.firmware and flash.golden_firmware")
        cached = self.cpu_variant in CACHED
        self._require("cpu_variant", cached, f"one of {CACHED} with firmware 'memory'")
        alone = self.multiboot == "none"
        self._require("multiboot", alone, "'none' with firmware 'memory'")

    def _check_bridge(self):
        """A frame leaves the bridge for a gigabit MAC without a pause."""
        fast = self.flow == "sim" or self.sys_clk_hz * self.data_width >= 1_100_000_000
        allowed = "off where sys_clk_hz times data_width is less than 1.1 Gb/s"
        self._require("bridge", fast or not self.bridge, allowed)

    def _choice(self, name, allowed):
        value = getattr(self, name)
        good = any(type(value) is type(item) and value == item for item in allowed)
        self._require(name, good, f"one of {allowed}")

    def _range(self, name, low, high):
        value = getattr(self, name)
        good = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        self._require(name, good, f"an integer from {low} to {high}")

    @property
    def has_cpu(self):
        """There is a processor, and so firmware that manages the board."""
        return self.cpu_variant != "none"

    @property
    def boot_rom(self):
        """Firmware is in external memory, and a boot ROM puts it there."""
        return self.firmware == "memory"

    @property
    def mac_int(self):
        """The MAC address as a number, its first byte on the wire the most significant."""
        return int(self.mac.replace(":", ""), 16)

    @property
    def ip_int(self):
        """The IPv4 address as a number, its first byte on the wire the most significant."""
        return int(ipaddress.IPv4Address(self.ip))

    def describe(self):
        """Its plain values by name, for reports and for the hash of a build's inputs."""
        values = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if not callable(getattr(self, f.name))
        }
        return values | {"plan": self.plan.describe()}
