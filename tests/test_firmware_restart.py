"""Why the board started, failures in a row, and the application that is given up for them."""

import ctypes

import pytest
from firmware_lib import FIRMWARE_SLOT, RAM, FlashPort, build_boot, map_memory
from nor_model import SECTOR
from trebuchet.host.image import HEADER_BYTES, Image, Kind, slot_bytes

NONE, POWER, BUTTON, WATCHDOG, CRASH, COMMAND = range(6)
OFFSET, SIZE = FIRMWARE_SLOT
TRIALS, CONFIRMED, BAD = (OFFSET + SIZE - SECTOR + HEADER_BYTES + n for n in range(3))
CONTENTS = bytes(range(256)) * 3
IMAGE = Image(Kind.firmware, "sim", "1", CONTENTS, RAM).pack()
MINUTE = 60_000


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    library = build_boot(root, tmp_path_factory.mktemp("restart"))
    library.host_record_bits.restype = ctypes.c_size_t
    library.restart_cause_name.restype = ctypes.c_char_p
    return library


class Board:
    """A board from its power-up on."""

    def __init__(self, lib, fill=0xA5):
        self.lib = lib
        ctypes.memset(lib.host_log, 0, 4096)
        self.set("fired", 0)
        lib.host_power_up(fill)

    def _at(self, name):
        return ctypes.c_uint32.in_dll(self.lib, f"host_{name}")

    def set(self, name, value):
        self._at(name).value = value

    def get(self, name):
        return self._at(name).value

    def begin(self, fired=False):
        """Start; returns the cause."""
        self.set("fired", fired)
        self.lib.host_begin()
        return self.lib.restart_cause()

    def fail(self, how, uptime=0):
        """Fail after so many milliseconds, and start again."""
        self.serve(uptime)
        if how == CRASH:
            self.lib.host_restart(CRASH)
        assert self.begin(fired=how == WATCHDOG) == how

    def serve(self, uptime):
        self.set("uptime_ms", uptime)
        return self.lib.host_serve()

    def log(self):
        return ctypes.string_at(self.lib.host_log).decode()

    @property
    def failures(self):
        return self.lib.restart_failures()

    @property
    def count(self):
        return self.lib.restart_count()


@pytest.fixture
def board(lib):
    return Board(lib)


@pytest.mark.parametrize("fill", [0, 0xA5, 0xFF])
def test_power_up_whatever_memory_holds(lib, fill):
    board = Board(lib, fill)
    assert board.begin() == POWER
    assert (board.count, board.failures) == (0, 0)
    assert lib.restart_cause_name() == b"power"


def test_one_flipped_bit_is_a_power_up(lib, board):
    for bit in range(lib.host_record_bits()):
        board.begin()
        lib.host_flip(bit)
        assert board.begin() == POWER, bit
        assert (board.count, board.failures) == (0, 0)


def test_causes_and_their_count(lib, board):
    board.begin()
    assert board.begin() == BUTTON
    forgotten = board.get("forgotten")
    assert board.begin(fired=True) == WATCHDOG
    assert board.get("forgotten") == forgotten + 1
    # A crash of ours, during which the watchdog bit as well, is a crash.
    lib.host_restart(CRASH)
    assert board.begin(fired=True) == CRASH
    lib.host_restart(COMMAND)
    assert board.begin() == COMMAND
    assert board.begin() == BUTTON, "what was planned is forgotten"
    assert board.count == 5


def test_a_restart_prints_what_waits_and_turns_interrupts_off(lib, board):
    board.begin()
    board.set("interrupts", 1)
    before = board.get("reset"), board.get("flushed")
    lib.host_restart(COMMAND)
    assert (board.get("reset"), board.get("flushed")) == (before[0] + 1, before[1] + 1)
    assert board.get("interrupts") == 0


def test_a_restart_on_request_waits_for_answers(lib, board):
    board.begin()
    board.set("uptime_ms", 2**32 - 50)  # the clock wraps meanwhile
    lib.restart_request()
    assert board.serve(2**32 - 1) == board.serve(49) == 0
    assert board.serve(50) == 1
    assert board.begin() == COMMAND


@pytest.mark.parametrize("how", [CRASH, WATCHDOG])
def test_failures_in_a_row_are_counted(board, how):
    board.begin()
    for n in range(1, 6):
        board.fail(how, MINUTE - 1)
        assert board.failures == n
    board.begin()
    assert board.failures == 0, "somebody pressed the button"


def test_a_watchdog_at_power_up_is_a_failure(board):
    assert board.begin(fired=True) == WATCHDOG
    assert (board.count, board.failures) == (0, 1)


def test_a_minute_of_work_forgets_failures(board):
    board.begin()
    board.fail(CRASH)
    board.fail(WATCHDOG)
    assert board.serve(MINUTE - 1) == 0
    assert board.failures == 2
    board.serve(MINUTE)
    assert board.failures == 0
    board.fail(CRASH, MINUTE + 1)
    assert board.failures == 1
    assert board.count == 3


@pytest.mark.parametrize("cause", [POWER, BUTTON, WATCHDOG, CRASH, COMMAND])
def test_the_application_has_the_cause_of_golden_firmware(lib, board, cause):
    if cause != POWER:
        board.begin()
    if cause in (CRASH, COMMAND):
        lib.host_restart(cause)
    assert board.begin(fired=cause == WATCHDOG) == cause
    found = board.count, board.failures
    lib.restart_hand_over()
    assert board.begin() == cause, "the application"
    assert (board.count, board.failures) == found, "it is the same start"
    assert board.begin() == BUTTON, "and is handed over once"
    assert board.count == found[0] + 1


@pytest.mark.parametrize("cause", [POWER, CRASH])
def test_a_watchdog_between_golden_firmware_and_application(lib, board, cause):
    board.begin()
    if cause == CRASH:
        board.fail(CRASH)
    lib.restart_hand_over()
    assert board.begin(fired=True) == WATCHDOG
    assert board.failures == 1 + (cause == CRASH)


# --- the application that fails -------------------------------------------------------------------


@pytest.fixture
def flash(lib):
    map_memory()
    port = FlashPort(lib)
    port.flash.data[OFFSET : OFFSET + SIZE] = slot_bytes(IMAGE, SIZE)
    return port.flash


def _start(board, how=BUTTON):
    """A start by golden firmware; whether the application runs then, which has the same cause."""
    if how == CRASH:
        board.lib.host_restart(CRASH)
    assert board.begin(fired=how == WATCHDOG) == how
    if board.lib.host_boot() == 0:
        return False
    assert ctypes.string_at(RAM, len(CONTENTS)) == CONTENTS
    assert board.begin() == how
    return True


@pytest.mark.parametrize("how", [CRASH, WATCHDOG])
def test_three_failures_in_a_row_give_up_an_application_that_came_up_once(board, flash, how):
    flash.data[CONFIRMED] = 0
    board.begin()
    assert _start(board)
    assert _start(board, how)
    assert _start(board, how)
    assert flash.data[BAD] == 0xFF
    assert not _start(board, how), "the third failure"
    assert flash.data[BAD] == 0
    assert "it was given up" in board.log()
    assert not _start(board), "for ever"
    assert flash.data[TRIALS] == 0xFF


def test_failures_with_a_minute_of_work_between_them_give_nothing_up(board, flash):
    flash.data[CONFIRMED] = 0
    board.begin()
    for _ in range(6):
        assert _start(board, CRASH)
        assert _start(board, CRASH)
        board.serve(MINUTE)
    assert flash.data[BAD] == 0xFF


def test_one_that_never_confirms_is_started_three_times(board, flash):
    board.begin()
    assert [_start(board, WATCHDOG) for _ in range(4)] == [True, True, True, False]
    assert (flash.data[TRIALS], flash.data[BAD]) == (0xF8, 0xFF)
    assert "it was started 3 times and never confirmed" in board.log()
