"""Registers of a fake board: a map, and what its commands ``peek`` and ``poke`` answer."""

import json

from fake_board import FakeBoard
from trebuchet.cores.csr import Field, Register, RegisterBlock
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import json_map

__all__ = ["BASE", "REGIONS", "RegisterBoard", "RegisterFile"]

BASE = 0xF000_0000
TCP = RegisterBlock(
    "tcp",
    (
        Register("enable", "rw", 1, "1: new connections are accepted"),
        Register("rto_min", "rw", 16, "shortest time-out in ms", reset=200),
        Register("rto_initial", "rw", 16, "first time-out in ms"),
        Register("segments", "ro", 32, "segments received"),
        Register("go", "stb", 1, "write 1: start"),
        Register("octets", "ro", 64, "bytes received"),
    ),
    "TCP engine",
)
NIC = RegisterBlock(
    "nic",
    (
        Register("status", "ro", 5, "state", fields=(Field("pending", 0, 1, "a frame waits"),)),
        Register("mode", "rw", 8, "how", fields=(Field("low", 0, 4), Field("high", 4, 4))),
        Register("seen", "w1c", 3, "events", fields=(Field("late", 2, 1),)),
        Register("mac", "rw", 48, "address"),
    ),
    "frame port",
)
REGIONS = [(TCP, BASE), (NIC, BASE + 0x800)]


class RegisterFile(dict):
    """``commands`` of a :class:`FakeBoard`: others, and accesses to words, as firmware has them."""

    def __init__(self, map_hash, commands=()):
        super().__init__(commands)
        self.map_hash, self.words, self.lines = map_hash, {}, []
        self.on_read = lambda address: None

    def get(self, line, default=None):
        name, *numbers = line.split()
        if name not in ("peek", "poke"):
            return super().get(line, default)
        self.lines.append(line)
        address, value, named = int(numbers[0], 0), int(numbers[1], 0), numbers[2]
        if named != self.map_hash:
            return Status.BAD_ARGUMENT, "error: BAD_ARGUMENT: the register map is another\n"
        if name == "poke":
            self.words[address] = value
            return Status.OK, ""
        said = ""
        for number in range(value):
            at = address + 4 * number
            self.on_read(at)
            said += f"{at:08x}:" if number % 4 == 0 else ""
            said += f" {self.words.get(at, 0):08x}"
            said += "\n" if number % 4 == 3 or number == value - 1 else ""
        return Status.OK, said


class RegisterBoard(FakeBoard):
    """A :class:`FakeBoard` with registers; its map is the file ``registers.json`` of ``folder``."""

    def __init__(self, folder, roles=None, commands=(), regions=REGIONS):
        text = json_map(regions)
        self.map_file = folder / "registers.json"
        self.map_file.write_text(text)
        self.registers = RegisterFile(json.loads(text)["map"], commands)
        super().__init__(roles, commands=self.registers)

    def state(self):
        return super().state() | {"registers": self.registers.map_hash}
