"""Which image the boot ROM starts, for every state of the flash, and after a loss of power.

The ROM's own code, without a CPU. What was started lies in memory, and must be one image or the
other, whole.
"""

import ctypes
import zlib
from itertools import count

import pytest
from firmware_lib import FIRMWARE_SLOT, RAM, FlashPort, build_rom, map_memory
from nor_model import PAGE, SECTOR
from trebuchet.host.image import HEADER_BYTES, Image, Kind, slot_bytes
from trebuchet.models.status import Status

GOLDEN_SLOT = (0x40000, 4 * SECTOR)
OFFSET, SIZE = FIRMWARE_SLOT
HEADER = OFFSET + SIZE - SECTOR
TRIALS, CONFIRMED, BAD = (HEADER + HEADER_BYTES + n for n in range(3))
NONE, STARTED, EMPTY = 0, 2, 0xFF
APPLICATION, GOLDEN = 0, 1
POWER, WATCHDOG = 1, 3


def contents(seed, size):
    return bytes((i * 7 + seed * (i >> 8) + seed) % 251 for i in range(size))


#: Not whole words, nor whole pages.
CONTENTS = {
    "golden": contents(1, 999),
    "old": contents(2, 1301),
    "new": contents(3, 2 * SECTOR - 1),
}


def image(what, board="sim", kind=Kind.firmware, load=RAM):
    return Image(kind, board, what[:16], CONTENTS.get(what, b"code"), load).pack()


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    library = build_rom(root, tmp_path_factory.mktemp("rom"), GOLDEN_SLOT)
    map_memory()
    return library


class Rom:
    def __init__(self, lib, flash=None):
        self.lib = lib
        self.flash = FlashPort(lib, flash).flash
        ctypes.memset(lib.host_log, 0, 4096)
        lib.host_power_up(0)

    def put(self, data, slot):
        offset, size = slot
        self.flash.data[offset : offset + size] = slot_bytes(data, size)

    def start(self, fired=False):
        """Start the board; returns the name of the image that runs, or None.

        It says in its log what the ROM has found, and has the cause that the ROM has.
        """
        ctypes.c_uint32.in_dll(self.lib, "host_fired").value = fired
        self.lib.host_begin()
        cause = self.lib.restart_cause()
        ctypes.memset(RAM, 0xA5, 3 * SECTOR)
        if self.lib.host_choose() == NONE:
            return None
        (found,) = (n for n, c in CONTENTS.items() if ctypes.string_at(RAM, len(c)) == c)
        assert (found == "golden") == (self.lib.host_from() == GOLDEN)
        self.lib.host_begin()
        assert self.lib.restart_cause() == cause, "it is the same start"
        assert self.lib.host_boot() == 0
        return found

    def found(self):
        return tuple((ctypes.c_uint8 * 2).in_dll(self.lib, "host_found"))

    def log(self):
        return ctypes.string_at(self.lib.host_log).decode()


@pytest.fixture
def rom(lib):
    made = Rom(lib)
    made.put(image("golden"), GOLDEN_SLOT)
    return made


def test_an_empty_flash_has_nothing_to_start(lib):
    rom = Rom(lib)
    assert rom.start() is None
    assert rom.found() == (EMPTY, EMPTY)


def test_golden_starts_if_there_is_no_application(rom):
    before = bytes(rom.flash.data)
    assert rom.start() == "golden"
    assert rom.log() == ""
    assert rom.flash.data == before


def test_an_application_is_counted_until_it_confirms(rom):
    rom.put(image("old"), FIRMWARE_SLOT)
    for bits in (0xFE, 0xFC, 0xF8):
        assert rom.start() == "old"
        assert f"image: application: {Status.OK:d}\n" in rom.log()
        assert rom.flash.data[TRIALS] == bits
    assert rom.start() == "golden"
    assert "it was started 3 times and never confirmed" in rom.log()
    rom.flash.data[TRIALS] = 0xFE
    rom.flash.data[CONFIRMED] = 0
    assert [rom.start() for _ in range(5)] == ["old"] * 5
    assert rom.flash.data[TRIALS] == 0xFE


def test_three_failures_in_a_row_give_it_up(rom):
    rom.put(image("old"), FIRMWARE_SLOT)
    rom.flash.data[CONFIRMED] = 0
    assert rom.start() == "old"
    assert [rom.start(fired=True) for _ in range(3)] == ["old", "old", "golden"]
    assert rom.flash.data[BAD] == 0
    assert "it was given up" in rom.log()
    assert rom.start() == "golden"


#: What is wrong with the application, and its status.
BAD_IMAGES = {
    "contents": Status.BAD_CHECKSUM,
    "last byte": Status.BAD_CHECKSUM,
    "header": Status.BAD_CHECKSUM,
    "foreign": Status.WRONG_BOARD,
    "bitstream": Status.BAD_DATA,
    "linked elsewhere": Status.BAD_DATA,
    "no image": Status.BAD_DATA,
    "endless": Status.BAD_LENGTH,
    "protected": Status.FLASH_ERROR,
}


def spoilt(rom, what, slot=FIRMWARE_SLOT):
    """Put an image into a slot with something wrong in it."""
    options = {
        "foreign": {"board": "versa_ecp5"},
        "bitstream": {"kind": Kind.bitstream, "load": 0},
        "linked elsewhere": {"load": RAM + 4},
    }
    data = bytearray(image("old", **options.get(what, {})))
    if what == "endless":  # as no tool of ours would make it
        data[8:12] = (0xFFFF_FFF0).to_bytes(4, "little")
        data[60:64] = zlib.crc32(data[:60]).to_bytes(4, "little")
    offset, size = slot
    rom.flash.data[offset : offset + size - SECTOR] = data[HEADER_BYTES:].ljust(
        size - SECTOR, b"\xff"
    )
    header = offset + size - SECTOR
    rom.flash.data[header : header + HEADER_BYTES] = data[:HEADER_BYTES]
    at = {"contents": offset + 9, "last byte": offset + 1300, "header": header + 13}
    at["no image"] = header
    if what in at:
        rom.flash.data[at[what]] ^= 0x10
    rom.flash.protected = what == "protected"


@pytest.mark.parametrize("what", BAD_IMAGES)
def test_a_bad_application_leaves_golden(rom, what):
    spoilt(rom, what)
    before = bytes(rom.flash.data)
    assert rom.start() == "golden"
    assert rom.log().count("image: application: ") == 1
    assert f"image: application: {BAD_IMAGES[what]:d}\n" in rom.log()
    assert rom.flash.data == before


@pytest.mark.parametrize("what", [name for name in BAD_IMAGES if name != "protected"])
def test_a_bad_golden_firmware_is_not_started(lib, what):
    rom = Rom(lib)
    spoilt(rom, what, GOLDEN_SLOT)
    assert rom.start() is None
    assert rom.found() == (EMPTY, BAD_IMAGES[what])
    rom.put(image("new"), FIRMWARE_SLOT)
    assert rom.start() == "new", "a good application needs no golden firmware"


def update(rom, data):
    """Write an image as the firmware does; returns the status."""
    buffer = (ctypes.c_uint8 * (len(data) + 4)).from_buffer_copy(data + bytes(4))
    status = rom.lib.update_start(buffer, len(data))
    done, left = ctypes.c_uint8(status), status == Status.OK
    while left:
        left = not rom.lib.update_step(ctypes.byref(done))
    return done.value


@pytest.mark.parametrize("confirmed", [True, False])
def test_power_fails_anywhere_in_an_update(lib, confirmed):
    """Old until its header is erased, then golden until the last byte of the new header."""
    total = len(image("new"))
    points = {0, 1, total - HEADER_BYTES, total - HEADER_BYTES + 1, total - 1, total, total + 1}
    points |= set(range(0, total, 7 * PAGE - 3))
    seen = []
    for power in sorted(points):
        rom = Rom(lib)
        rom.put(image("golden"), GOLDEN_SLOT)
        rom.put(image("old"), FIRMWARE_SLOT)
        rom.flash.data[CONFIRMED] = 0 if confirmed else 0xFF
        rom.flash.power = power
        status = update(rom, image("new"))
        assert (status == Status.OK) == (power >= total)
        rom.flash.power, rom.flash.busy = None, 0
        ran = rom.start()
        assert ran == ("old" if power == 0 else "new" if power >= total else "golden"), power
        seen.append(ran)
        # Whatever happened, the next update works.
        assert update(rom, image("new")) == Status.OK
        assert rom.start() == "new"
    assert set(seen) == {"old", "golden", "new"}


@pytest.mark.parametrize("cut", [0, 1, 64, 65, 1000])
def test_a_bad_update_leaves_the_old_image(rom, cut):
    rom.put(image("old"), FIRMWARE_SLOT)
    before = bytes(rom.flash.data)
    new = bytearray(image("new"))
    assert update(rom, new[:cut]) == Status.TRUNCATED
    assert update(rom, bytes(new) + b"!") == Status.BAD_LENGTH
    assert update(rom, image("new", board="other")) == Status.WRONG_BOARD
    new[HEADER_BYTES + cut] ^= 1
    assert update(rom, bytes(new)) == Status.BAD_CHECKSUM
    assert rom.flash.data == before
    assert rom.start() == "old"


def test_power_fails_while_a_start_is_counted(rom):
    """A start that cannot be counted is not made."""
    rom.put(image("old"), FIRMWARE_SLOT)
    rom.flash.power = 0
    assert rom.start() == "golden"
    assert f"image: application: {Status.FLASH_ERROR:d}\n" in rom.log()
    rom.flash.power, rom.flash.busy = None, 0
    assert rom.start() == "old"


def test_what_the_rom_left_survives_nothing_but_a_start(lib, rom):
    """One flipped bit, and the firmware takes itself for golden: it was put there by others."""
    rom.put(image("old"), FIRMWARE_SLOT)
    assert rom.start() == "old"
    for bit in count():
        if not lib.host_flip_handover(bit):
            break
        assert lib.host_from() == GOLDEN, bit
        lib.host_flip_handover(bit)
    assert bit == 96
    assert lib.host_from() == APPLICATION
