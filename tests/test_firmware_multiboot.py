"""The application's bitstream: when golden starts it, when it is confirmed, and the way back."""

import ctypes

import pytest
from firmware_lib import BITSTREAM_SLOT, FIRMWARE_SLOT, RAM, FlashPort, build_boot, map_memory
from nor_model import SECTOR, NorModel
from trebuchet.cores.multiboot.start import KEY
from trebuchet.host.image import HEADER_BYTES, Image, Kind, slot_bytes
from trebuchet.models.status import Status

POWER, BUTTON, WATCHDOG, CRASH, COMMAND = range(1, 6)
OFFSET, SIZE = BITSTREAM_SLOT
HEADER = OFFSET + SIZE - SECTOR
TRIALS, CONFIRMED, BAD = (HEADER + HEADER_BYTES + n for n in range(3))
CONTENTS = bytes(range(256)) * 3
#: What host_boot(), host_restart() and host_main() return.
STAYS, RESTARTS, FIRMWARE, BITSTREAM, RUNS, HANGS = range(6)
#: What memory does while main() starts it.
FAILS, WORKS, NEVER_DONE = range(3)


def image(board="sim", kind=Kind.bitstream, contents=CONTENTS):
    return Image(kind, board, "1", contents).pack()


IMAGE = image()


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return build_boot(root, tmp_path_factory.mktemp("multiboot"), multiboot=True)


class Fpga:
    """A board with two bitstreams: ``start`` configures it, as power-up or a jump does."""

    def __init__(self, lib, flash=None):
        lib.update_start.restype = ctypes.c_uint8
        lib.update_step.restype = ctypes.c_bool
        self.lib, self.port = lib, FlashPort(lib, flash)
        self.flash = self.port.flash
        map_memory()

    def _at(self, name):
        return ctypes.c_uint32.in_dll(self.lib, f"host_{name}")

    def log(self):
        return ctypes.string_at(self.lib.host_log).decode()

    def install(self, data, power=None):
        """As firmware does that got an image over the network; returns the status."""
        words = -(-len(data) // 4)
        buffer = (ctypes.c_uint32 * words).from_buffer_copy(data.ljust(4 * words))
        status = ctypes.c_uint8(self.lib.update_start(buffer, ctypes.c_size_t(len(data))))
        self.flash.power = power
        if status.value == Status.OK:
            while not self.lib.update_step(ctypes.byref(status)):
                pass
        self.flash.power = None
        return status.value

    def configure(self, application):
        """The FPGA has loaded a bitstream: memory is as that says, nothing outlives it."""
        self._at("application").value = application
        self.lib.host_power_up(0)
        return self.restarted()

    def restarted(self, fired=False):
        """The CPU begins; returns what it starts."""
        ctypes.memset(self.lib.host_log, 0, 4096)
        for name in ("start", "address"):
            self._at(name).value = 0
        self._at("fired").value = fired
        self.lib.host_begin()
        return self.lib.host_boot()

    def power_up(self, memory):
        """All that happens from there on, golden first, with the application's memory like this.

        Golden's works, and the watchdog restarts what hangs. Returns what ran, with how it ended.
        """
        self.lib.host_power_up(0)
        ends, application, fired = [], 0, 0
        while len(ends) < 20 and (not ends or ends[-1][1] != RUNS):
            for name in ("start", "address"):
                self._at(name).value = 0
            self._at("application").value, self._at("fired").value = application, fired
            self._at("memory").value = memory if application else WORKS
            self._at("network").value = 0
            end = self.lib.host_main()
            ends.append((application, end))
            fired = end == HANGS
            if end == BITSTREAM:
                application = int(self.jumped_to() == OFFSET)
                self.lib.host_power_up(0)
        return ends, self._at("network").value

    def jumped_to(self):
        assert self._at("start").value == KEY
        return self._at("address").value

    def state(self):
        return tuple(self.flash.data[at] for at in (TRIALS, CONFIRMED, BAD))


@pytest.fixture
def fpga(lib):
    return Fpga(lib)


def test_an_empty_slot_leaves_golden(fpga):
    assert fpga.configure(application=0) == STAYS
    assert fpga.log() == ""
    assert fpga.flash.programmed == fpga.flash.erased == 0


def test_a_good_image_is_started_and_confirms(fpga):
    assert fpga.install(IMAGE) == Status.OK
    assert fpga.configure(application=0) == BITSTREAM
    assert fpga.jumped_to() == OFFSET
    assert fpga.log() == f"image: application bitstream: {Status.OK}\n"
    assert fpga.state() == (0xFE, 0xFF, 0xFF)
    assert fpga.configure(application=1) == STAYS
    fpga.lib.host_confirm()
    assert fpga.log() == f"image: bitstream confirmed: {Status.OK}\n"
    assert fpga.state() == (0xFE, 0, 0xFF)
    programmed = fpga.flash.programmed
    for _ in range(5):  # trusted: no more tries are counted
        assert fpga.configure(application=0) == BITSTREAM
        assert fpga.configure(application=1) == STAYS
        fpga.lib.host_confirm()
    assert fpga.flash.programmed == programmed


def test_golden_confirms_nothing(fpga):
    fpga.install(IMAGE)
    fpga.configure(application=0)
    fpga.lib.host_confirm()
    assert fpga.state()[1:] == (0xFF, 0xFF)


def test_one_that_never_comes_up_is_tried_three_times(fpga):
    """The FPGA finds a fault and falls back, or the bitstream hangs and power is turned off."""
    fpga.install(IMAGE)
    for _ in range(3):
        assert fpga.configure(application=0) == BITSTREAM
    assert fpga.configure(application=0) == STAYS
    assert "it was started 3 times and never confirmed" in fpga.log()
    assert fpga.log().endswith(f"image: application bitstream: {Status.ABORTED}\n")


@pytest.mark.parametrize("confirmed", [False, True])
def test_one_that_fails_three_times_in_a_row_goes_back_for_good(fpga, confirmed):
    fpga.install(IMAGE)
    fpga.configure(application=0)
    assert fpga.configure(application=1) == STAYS
    if confirmed:
        fpga.lib.host_confirm()
    for _ in range(2):
        assert fpga.restarted(fired=True) == STAYS
        fpga.lib.host_confirm()
    assert fpga.restarted(fired=True) == BITSTREAM
    assert fpga.jumped_to() == 0
    assert "this bitstream was given up: back to golden" in fpga.log()
    assert fpga.state()[2] == 0
    assert fpga.configure(application=0) == STAYS
    assert "it was given up" in fpga.log()
    # Loaded by a button all the same, it does not stay.
    assert fpga.configure(application=1) == BITSTREAM
    assert fpga.jumped_to() == 0


def _broken(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (IMAGE[:-1], Status.TRUNCATED),
        (IMAGE[:40], Status.TRUNCATED),
        (IMAGE + b"x", Status.BAD_LENGTH),
        (_broken(IMAGE, 9), Status.BAD_CHECKSUM),
        (_broken(IMAGE, 500), Status.BAD_CHECKSUM),
        (_broken(IMAGE, 0), Status.BAD_DATA),
        (image("versa_ecp5"), Status.WRONG_BOARD),
        (image(contents=bytes(SIZE - SECTOR + 1)), Status.TOO_LARGE),
    ],
)
def test_a_bad_image_changes_nothing(fpga, data, status):
    assert fpga.install(IMAGE) == Status.OK
    before = bytes(fpga.flash.data)
    assert fpga.install(data) == status
    assert fpga.flash.data == before
    assert fpga.configure(application=0) == BITSTREAM, "the one from before is still good"


@pytest.mark.parametrize(
    ("at", "status"),
    [(OFFSET + 100, Status.BAD_CHECKSUM), (HEADER + 25, Status.BAD_CHECKSUM)],
)
def test_what_was_damaged_in_flash_is_not_started(fpga, at, status):
    fpga.install(IMAGE)
    fpga.flash.data[at] ^= 4
    assert fpga.configure(application=0) == STAYS
    assert fpga.log() == f"image: application bitstream: {int(status)}\n"
    assert fpga.state() == (0xFF, 0xFF, 0xFF)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (image("versa_ecp5"), Status.WRONG_BOARD),
        (image(kind=Kind.firmware), Status.BAD_DATA),
    ],
)
def test_what_was_written_from_outside_is_looked_at(fpga, data, status):
    fpga.flash.data[OFFSET : OFFSET + SIZE] = slot_bytes(data, SIZE)
    assert fpga.configure(application=0) == STAYS
    assert fpga.log() == f"image: application bitstream: {int(status)}\n"


@pytest.mark.parametrize("power", [0, 1, 256, 767, 768, 769, 831])
def test_power_that_fails_while_it_is_written_leaves_golden(fpga, power):
    assert fpga.install(IMAGE, power=power) == Status.FLASH_ERROR
    assert fpga.configure(application=0) == STAYS
    assert fpga.flash.data[: FIRMWARE_SLOT[0]] == b"\xff" * FIRMWARE_SLOT[0], "golden's part"


def test_a_start_that_cannot_be_counted_is_none(fpga):
    fpga.install(IMAGE)
    fpga.flash.protected = True
    assert fpga.configure(application=0) == STAYS
    assert fpga.log() == f"image: application bitstream: {Status.FLASH_ERROR}\n"


def test_another_image_that_came_meanwhile_is_not_confirmed_by_the_old_one(fpga):
    fpga.install(IMAGE)
    fpga.configure(application=0)
    assert fpga.configure(application=1) == STAYS
    fpga.lib.host_confirm()
    assert fpga.install(image(contents=b"another")) == Status.OK
    assert fpga.restarted() == STAYS  # by a button, say
    fpga.lib.host_confirm()
    assert fpga.state() == (0xFF, 0xFF, 0xFF)
    # The command restarts into the new one, by way of golden.
    assert fpga.lib.host_restart(COMMAND) == BITSTREAM
    assert fpga.jumped_to() == 0
    assert fpga.configure(application=0) == BITSTREAM
    assert fpga.state() == (0xFE, 0xFF, 0xFF)


def test_another_image_that_came_meanwhile_is_not_given_up_for_the_old_one(fpga):
    fpga.install(IMAGE)
    fpga.configure(application=0)
    assert fpga.configure(application=1) == STAYS
    fpga.lib.host_confirm()
    for _ in range(2):
        assert fpga.restarted(fired=True) == STAYS
    assert fpga.install(image(contents=b"the cure")) == Status.OK
    assert fpga.restarted(fired=True) == BITSTREAM
    assert fpga.jumped_to() == 0
    assert fpga.state() == (0xFF, 0xFF, 0xFF)
    assert fpga.configure(application=0) == BITSTREAM, "golden starts the new one"
    assert fpga.jumped_to() == OFFSET


@pytest.mark.parametrize("confirmed", [False, True])
def test_one_that_a_button_started_is_given_up_all_the_same(fpga, confirmed):
    """Golden has counted no start of it; one that is confirmed it would start for ever."""
    fpga.install(IMAGE)
    assert fpga.configure(application=1) == STAYS
    if confirmed:
        fpga.lib.host_confirm()
    ends = [fpga.restarted(fired=True) for _ in range(3)]
    assert ends == [STAYS, STAYS, BITSTREAM]
    if not confirmed:
        assert fpga.configure(application=0) == BITSTREAM, "it has its tries"
        assert fpga.state() == (0xFE, 0xFF, 0xFF)
        return
    assert fpga.state() == (0xFF, 0, 0)
    assert fpga.configure(application=0) == STAYS


def test_failures_of_golden_are_not_the_other_bitstreams(fpga):
    """It hangs before it starts that one, say."""
    fpga.install(IMAGE)
    fpga.configure(application=0)
    fpga.configure(application=1)
    fpga.lib.host_confirm()
    assert fpga.configure(application=0) == BITSTREAM
    for _ in range(4):
        assert fpga.restarted(fired=True) == BITSTREAM
    assert fpga.state() == (0xFE, 0, 0xFF)


def test_one_that_the_fpga_does_not_take_any_more_is_kept_out_by_the_reset_button(fpga):
    fpga.install(IMAGE)
    fpga.configure(application=0)
    fpga.configure(application=1)
    fpga.lib.host_confirm()
    for _ in range(5):  # the FPGA falls back, and golden knows nothing of it
        assert fpga.configure(application=0) == BITSTREAM
    assert fpga.restarted() == STAYS
    assert fpga.log() == "1 image: reset by hand: golden stays\n"
    assert fpga.state() == (0xFE, 0, 0xFF)
    assert fpga.install(image(contents=b"the cure")) == Status.OK
    assert fpga.lib.host_restart(COMMAND) == RESTARTS
    assert fpga.restarted() == BITSTREAM, "a command starts it"
    assert fpga.jumped_to() == OFFSET


@pytest.mark.parametrize(
    ("size", "golden", "offset", "shift"),
    [
        (1 << 24, 0x20_0000, 0x60_0000, 0),
        (1 << 25, 0x20_0000, 0xFE_0000, 8),
        (1 << 25, 0x100_2000, 0x1FC_0000, 8),
    ],
)
def test_addresses_as_the_fpga_takes_them(root, tmp_path, size, golden, offset, shift):
    slot = (offset, 2 * SECTOR)
    lib = build_boot(root, tmp_path, multiboot=True, size=size, golden=golden, bitstream=slot)
    fpga = Fpga(lib, NorModel(size))
    assert fpga.install(IMAGE) == Status.OK
    assert fpga.flash.data[offset : offset + len(CONTENTS)] == CONTENTS
    assert fpga.configure(application=0) == BITSTREAM
    assert fpga.jumped_to() == offset >> shift
    assert fpga.configure(application=1) == STAYS
    assert fpga.lib.host_restart(COMMAND) == BITSTREAM
    assert fpga.jumped_to() == golden >> shift


def test_golden_restarts_as_ever(fpga):
    fpga.configure(application=0)
    assert fpga.lib.host_restart(COMMAND) == RESTARTS
    assert fpga.lib.host_restart(CRASH) == RESTARTS


def test_an_applications_bitstream_runs_the_firmware_that_it_brings_along(fpga):
    firmware = Image(Kind.firmware, "sim", "1", CONTENTS, RAM).pack()
    assert fpga.install(firmware) == Status.OK
    assert fpga.configure(application=1) == STAYS
    assert fpga.configure(application=0) == FIRMWARE


@pytest.mark.parametrize("confirmed", [False, True])
@pytest.mark.parametrize(("memory", "end"), [(FAILS, RESTARTS), (NEVER_DONE, HANGS)])
def test_one_whose_memory_does_not_come_up_goes_back_for_good(fpga, memory, end, confirmed):
    """Golden is on the network then, where the cure comes from."""
    fpga.install(IMAGE)
    if confirmed:
        assert fpga.power_up(WORKS) == ([(0, BITSTREAM), (1, RUNS)], 1)
        assert fpga.state() == (0xFE, 0, 0xFF)
    tries = [(0, BITSTREAM), *[(1, end)] * 3, (1, BITSTREAM), (0, RUNS)]
    assert fpga.power_up(memory) == (tries, 1)
    assert fpga.state() == (0xFE, 0 if confirmed else 0xFF, 0)
    assert fpga.power_up(WORKS) == ([(0, RUNS)], 1), "it stays there"
