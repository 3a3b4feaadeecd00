"""From reset to `ready`, and from an interrupt to its handler, of the simulated board, in cycles.

``boot.…`` is the board with a boot ROM: it reads its golden firmware from the flash, which gives a
bit every two cycles, and runs it from external memory through an instruction cache. ``boot.rom_…``
is the board whose firmware is in ROM. Reset to ``ready`` counts until the console has printed that.
The interrupt is the timer's, the latest of those that come while a status page is printed; its
handler reads how many cycles ago the timer expired.

Of the board whose firmware is in ROM also the parts of a change of bitstreams (docs/multiboot.md):

* ``boot.rom_restart_cycles``: from the answer to the command ``reset`` to the reset. A board with
  two bitstreams pulls PROGRAMN there.
* ``boot.rom_image_cycles``: what the firmware takes to read and check 1 KiB of an image in flash,
  of which a bit comes every two cycles; the difference of two starts with damaged firmware.
* ``boot.rom_syn_cycles``: from reset to the first SYN-ACK. A SYN comes every 1,000 cycles.
"""

import json
import re
import struct
import subprocess
import tempfile
from pathlib import Path

from ..boards import load_board
from ..models.errors import TrebuchetError
from ..models.image import MAIN_RAM, Image, Kind, slot_bytes
from ..sim.build import Source, build
from ..sim.run import run_batch
from ..sim.tops import source
from .job import Job, Values

__all__ = ["cycles"]

#: A run that takes longer has hung.
MOST = 4_000_000
_TIME = ("--time", "cycles:1000", "--cycles", MOST)
#: Cycles a second of the time in captures.
_HZ = 1_000_000
#: A client more in every tick, none of which repeats its SYN.
_LOAD = ("--load", "echo", "--port", 7, "--clients", 2000, "--ramp", 1, "--rto", 60_000)
_RECORD = struct.Struct("<IIII")
_SYN_ACK = 0x12
#: KiB of the images whose checks are compared.
_SMALL, _LARGE = 2, 4
_LATE = re.compile(r"interrupts at most (\d+) cycles late")


def cycles() -> Job:
    """Return the measurement of both boards."""
    boards = {"boot.": source("bootrom"), "boot.rom_": source("board")}
    contents = [path for board in boards.values() for path in _contents(board)]

    def measure() -> Values:
        values: Values = {}
        for name, board in boards.items():
            binary = build(board)
            values[f"{name}ready_cycles"] = _ready(binary, board)
            values[f"{name}interrupt_cycles"] = _late(binary, board)
        name, top = "boot.rom_", board
        values[f"{name}restart_cycles"] = _restart(binary, top)
        values[f"{name}image_cycles"] = _image(binary, top)
        values[f"{name}syn_cycles"] = _syn(binary, top)
        return values

    return Job((*boards.values(), contents), measure)


def _contents(board: Source) -> list[Path]:
    """What is in the memories of a board, and in its flash."""
    assert board.folder is not None
    return sorted([*board.folder.glob("*.init"), *board.folder.glob("flash.bin")])


def _ready(binary: Path, board: Source) -> int:
    return _printed(binary, board, "ready\r\n")


def _printed(binary: Path, board: Source, text: str, *options: object) -> int:
    """The cycle in which the console has printed ``text``."""
    _, stats = run_batch(binary, [*_TIME, "--until", text, *options], cwd=board.folder)
    if stats["ended"] != "text printed":
        raise TrebuchetError(f"the board did not print {text!r} within {MOST} cycles")
    cycle: int = stats["cycles"]
    return cycle


def _restart(binary: Path, board: Source) -> int:
    """From the answer to ``reset`` to the reset: less what the first words after one take."""
    with tempfile.TemporaryDirectory() as folder:

        def after_reset(text: str) -> int:
            path = Path(folder) / "stats"
            options = [*_TIME, "--uart", "stdio", "--until", text, "--stats", path]
            subprocess.run(
                [str(word) for word in (binary, *options)],
                input=b"reset\n",
                stdout=subprocess.DEVNULL,
                cwd=board.folder,
                check=False,
            )
            stats = json.loads(path.read_text())
            if stats["ended"] != "text printed":
                raise TrebuchetError(f"the board did not print {text!r} after a reset")
            cycle: int = stats["cycles"]
            return cycle

        first = _printed(binary, board, "start: ")
        return after_reset("start: command") - after_reset("restarting\r\n") - first


def _image(binary: Path, board: Source) -> int:
    """Cycles a KiB that a check of an image in flash takes."""
    layout = load_board("sim").flash
    assert layout is not None
    offset, size = layout.firmware

    def checked(kib: int) -> int:
        image = Image(Kind.firmware, "sim", "1", bytes(kib << 10), MAIN_RAM).pack()
        flash = bytearray(b"\xff" * layout.size)
        flash[offset : offset + size] = slot_bytes(image, size)
        flash[offset] = 1  # damaged
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "flash.bin"
            path.write_bytes(flash)
            return _printed(binary, board, "ready\r\n", "--flash", path)

    return round((checked(_LARGE) - checked(_SMALL)) / (_LARGE - _SMALL))


def _syn(binary: Path, board: Source) -> int:
    """The cycle of the first SYN-ACK."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pcap"
        _printed(binary, board, "ready\r\n", *_LOAD, "--clock-hz", _HZ, "--pcap", path)
        capture, at = path.read_bytes(), 24
    while at < len(capture):
        seconds, nanoseconds, length, _ = _RECORD.unpack_from(capture, at)
        frame = capture[at + _RECORD.size :][:length]
        # IPv4 without options: protocol at 23, flags of TCP at 47.
        if frame[12:14] == b"\x08\0" and frame[23] == 6 and frame[47] & 0x3F == _SYN_ACK:
            return round((seconds + nanoseconds / 1e9) * _HZ)
        at += _RECORD.size + length
    raise TrebuchetError("the board answered no SYN before it was ready")


def _late(binary: Path, board: Source) -> int:
    command = [binary, "--uart", "stdio", *_TIME, "--until", " cycles late"]
    said = subprocess.run(
        [str(word) for word in command],
        input="status\nuptime\n",
        capture_output=True,
        text=True,
        cwd=board.folder,
        check=False,
    ).stdout
    found = _LATE.search(said)
    if found is None:
        raise TrebuchetError(f"the console did not tell how late interrupts are: {said[-200:]!r}")
    return int(found[1])
