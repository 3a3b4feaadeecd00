"""Images: the firmware's parser against the host's packer, and the slots of the flash."""

import ctypes
import struct
import subprocess
import zlib

import pytest
from firmware_host import generated
from firmware_lib import FLAGS, RAM, FlashPort, build_boot
from trebuchet.host.image import HEADER_BYTES, SECTOR, Image, Kind, slot_bytes
from trebuchet.models import config_block
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.status import Status

CONTENTS = bytes(range(200)) * 3
IMAGE = Image(Kind.firmware, "sim", "1.2.3", CONTENTS, RAM).pack()
OFFSET, SIZE = 0x80000, 4 * SECTOR
LAST = OFFSET + SIZE - SECTOR


class Header(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_char * 4),
        ("format", ctypes.c_uint8),
        ("kind", ctypes.c_uint8),
        ("zero", ctypes.c_uint16),
        ("length", ctypes.c_uint32),
        ("checksum", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("board", ctypes.c_char * 24),
        ("version", ctypes.c_char * 16),
        ("header_checksum", ctypes.c_uint32),
    ]


class Slot(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint32), ("bytes", ctypes.c_uint32)]


class State(ctypes.Structure):
    _fields_ = [
        ("trials", ctypes.c_uint8),
        ("confirmed", ctypes.c_bool),
        ("bad", ctypes.c_bool),
    ]

    def __iter__(self):
        return iter((self.trials, self.confirmed, self.bad))


SLOT = Slot(OFFSET, SIZE)
NO_SLOT = Slot(0, 0)


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    library = build_boot(root, tmp_path_factory.mktemp("image"))
    for name in (
        "header",
        "verify",
        "erase",
        "count_trial",
        "confirm",
        "give_up",
        "renew",
    ):
        getattr(library, f"slot_{name}").restype = ctypes.c_uint8
    library.image_check.restype = library.update_start.restype = ctypes.c_uint8
    library.update_step.restype = ctypes.c_bool
    library.slot_empty.restype = ctypes.c_bool
    library.slot_state.restype = State
    return library


@pytest.fixture
def flash(lib):
    port = FlashPort(lib)
    yield port.flash
    assert not port.flash.selected


def _check(lib, data, board=b"sim"):
    buffer = (ctypes.c_uint8 * max(1, len(data))).from_buffer_copy(data or b"\0")
    return lib.image_check(buffer, ctypes.c_size_t(len(data)), board)


def _header(lib, board=b"sim"):
    found = Header()
    return lib.slot_header(SLOT, board, ctypes.byref(found)), found


def _write(lib, data):
    """As an image that came over the network is written."""
    words = -(-len(data) // 4)
    buffer = (ctypes.c_uint32 * words).from_buffer_copy(data.ljust(4 * words))
    status = ctypes.c_uint8(lib.update_start(buffer, ctypes.c_size_t(len(data))))
    if status.value == Status.OK:
        while not lib.update_step(ctypes.byref(status)):
            assert status.value == Status.OK
            assert lib.slot_empty(SLOT), "the header is the last"
    return status.value


def test_what_the_host_packs_is_good(lib):
    assert _check(lib, IMAGE) == Status.OK
    assert Image.unpack(IMAGE) == Image(Kind.firmware, "sim", "1.2.3", CONTENTS, RAM)


@pytest.mark.parametrize("board", [b"", b"si", b"sim2", b"versa_ecp5"])
def test_an_image_for_another_board_is_refused(lib, board):
    assert _check(lib, IMAGE, board) == Status.WRONG_BOARD


def test_names_as_long_as_their_place(lib):
    image = Image(Kind.bitstream, "b" * 24, "v" * 16, b"x")
    assert _check(lib, image.pack(), b"b" * 24) == Status.OK
    assert _check(lib, image.pack(), b"b" * 23) == Status.WRONG_BOARD
    assert Image.unpack(image.pack()) == image


def test_every_truncation_is_told(lib):
    for n in range(len(IMAGE)):
        assert _check(lib, IMAGE[:n]) == Status.TRUNCATED
        with pytest.raises(TrebuchetError, match="TRUNCATED$"):
            Image.unpack(IMAGE[:n])


def test_more_than_it_says_is_told(lib):
    assert _check(lib, IMAGE + b"x") == Status.BAD_LENGTH
    with pytest.raises(TrebuchetError, match="BAD_LENGTH$"):
        Image.unpack(IMAGE + b"x")


def _forged(kind, contents, length=None):
    """An image with right checksums that the packer does not make."""
    length = len(contents) if length is None else length
    fields = (b"TBIM", 1, kind, 0, length, zlib.crc32(contents), RAM, b"sim", b"1")
    header = struct.pack("<4sBBHIII24s16s", *fields)
    return header + struct.pack("<I", zlib.crc32(header)) + contents


@pytest.mark.parametrize(
    ("image", "status"),
    [
        (_forged(0, b"contents"), Status.BAD_DATA),
        (_forged(3, b"contents"), Status.BAD_DATA),
        (_forged(255, b"contents"), Status.BAD_DATA),
        (_forged(1, b""), Status.BAD_LENGTH),
        (_forged(1, b"x", 0), Status.BAD_LENGTH),
    ],
)
def test_an_unknown_kind_and_no_contents_are_refused(lib, flash, image, status):
    assert _check(lib, image) == status
    with pytest.raises(TrebuchetError, match=f"{status.name}$"):
        Image.unpack(image)
    at = SLOT.offset + SLOT.bytes - SECTOR
    flash.data[at : at + HEADER_BYTES] = image[:HEADER_BYTES]
    assert _header(lib)[0] == status


def test_every_flipped_bit_is_told_with_the_same_status_by_firmware_and_host(lib):
    seen = set()
    for bit in range(8 * len(IMAGE)):
        damaged = bytearray(IMAGE)
        damaged[bit // 8] ^= 1 << bit % 8
        status = Status(_check(lib, bytes(damaged)))
        with pytest.raises(TrebuchetError, match=rf"{status.name}$"):
            Image.unpack(bytes(damaged))
        seen.add(status)
    assert seen == {Status.BAD_DATA, Status.BAD_CHECKSUM}


def test_the_watchdog_is_fed_while_checksums_are_taken(lib, flash):
    """A slow CPU takes seconds for a megabyte; each kilobyte feeds it, and each write."""
    fed = ctypes.c_uint32.in_dll(lib, "test_fed")
    contents = bytes(1 << 20)
    fed.value = 0
    assert _check(lib, Image(Kind.bitstream, "sim", "1", contents).pack()) == Status.OK
    assert fed.value >= len(contents) // 1024
    contents = bytes(SIZE - SECTOR)
    fed.value = 0
    assert _write(lib, Image(Kind.firmware, "sim", "1", contents, RAM).pack()) == Status.OK
    # For the checksum, for each page, for each sector.
    assert fed.value >= len(contents) // 1024 + len(contents) // 256 + SIZE // SECTOR
    header = _header(lib)[1]
    fed.value = 0
    assert lib.slot_verify(SLOT, ctypes.byref(header)) == Status.OK
    assert fed.value >= len(contents) // 1024


def test_an_empty_slot(lib, flash):
    assert lib.slot_empty(SLOT)
    assert lib.slot_empty(NO_SLOT)
    assert _header(lib)[0] == Status.BAD_DATA
    assert lib.slot_header(NO_SLOT, b"sim", ctypes.byref(Header())) == Status.NOT_BUILT_IN
    assert _write(lib, Image(Kind.bitstream, "sim", "1", b"x").pack()) == Status.NOT_BUILT_IN


def test_writing_a_slot(lib, flash):
    flash.data[OFFSET : OFFSET + SIZE] = bytes(SIZE)  # what was there before
    assert _write(lib, IMAGE) == Status.OK
    status, header = _header(lib)
    assert status == Status.OK
    assert (header.board, header.version, header.length) == (b"sim", b"1.2.3", len(CONTENTS))
    assert lib.slot_verify(SLOT, ctypes.byref(header)) == Status.OK
    assert tuple(lib.slot_state(SLOT)) == (0, False, False)
    # The host makes the same of it, but for sectors that nobody needs.
    wanted = slot_bytes(IMAGE, SIZE)
    assert flash.data[OFFSET : OFFSET + SECTOR] == wanted[:SECTOR]
    assert flash.data[LAST : LAST + SECTOR] == wanted[-SECTOR:]
    assert flash.data[:OFFSET] == b"\xff" * OFFSET
    flash.data[OFFSET + 5] ^= 4
    assert lib.slot_verify(SLOT, ctypes.byref(header)) == Status.BAD_CHECKSUM


def test_an_image_that_does_not_fit_changes_nothing(lib, flash):
    image = Image(Kind.firmware, "sim", "1", bytes(SIZE - SECTOR + 1), RAM).pack()
    assert _write(lib, image) == Status.TOO_LARGE
    assert flash.erased == flash.programmed == 0
    with pytest.raises(TrebuchetError, match="TOO_LARGE$"):
        slot_bytes(image, SIZE)
    assert _write(lib, IMAGE) == Status.OK
    flash.data[LAST : LAST + HEADER_BYTES] = image[:HEADER_BYTES]
    assert _header(lib)[0] == Status.BAD_LENGTH


@pytest.mark.parametrize("power", [0, 1, 255, 256, 599, 600, 601, 663, 664])
def test_a_write_torn_anywhere_leaves_no_image_or_a_whole_one(lib, flash, power):
    other = Image(Kind.firmware, "sim", "1", bytes(700), RAM).pack()
    assert _write(lib, other) == Status.OK
    flash.power = power
    whole = power >= len(CONTENTS) + HEADER_BYTES
    assert _write(lib, IMAGE) == (Status.OK if whole else Status.FLASH_ERROR)
    flash.power = None
    status, header = _header(lib)
    if status == Status.OK:
        assert lib.slot_verify(SLOT, ctypes.byref(header)) == Status.OK
        assert header.version == (b"1.2.3" if whole else b"1") or power == 0


def test_states_are_bits_that_are_cleared(lib, flash):
    _write(lib, IMAGE)
    erased = flash.erased
    for trials in (1, 2, 3, 3):
        assert lib.slot_count_trial(SLOT) == Status.OK
        assert tuple(lib.slot_state(SLOT)) == (trials, False, False)
    assert lib.slot_confirm(SLOT) == Status.OK
    assert tuple(lib.slot_state(SLOT)) == (3, True, False)
    assert lib.slot_give_up(SLOT) == Status.OK
    assert tuple(lib.slot_state(SLOT)) == (3, True, True)
    assert flash.erased == erased
    assert _header(lib)[0] == Status.OK
    assert lib.slot_renew(SLOT) == Status.OK
    assert tuple(lib.slot_state(SLOT)) == (0, False, False)
    assert _header(lib)[0] == Status.OK


def test_a_protected_flash_is_told(lib, flash):
    _write(lib, IMAGE)
    flash.protected = True
    for function in ("count_trial", "confirm", "give_up", "renew", "erase"):
        assert getattr(lib, f"slot_{function}")(SLOT) == Status.FLASH_ERROR
    assert _write(lib, IMAGE) == Status.FLASH_ERROR
    assert _header(lib)[0] == Status.OK


CONFIG = config_block.pack(
    "ip=10.0.0.1\npeer1=02:00:00:00:00:03,10.0.0.3,1,200,1\nname=a-b\nserver=10.0.0.1:80\n"
)


@pytest.mark.parametrize(("kind", "data"), [("image", IMAGE), ("config", CONFIG)])
def test_parsers_stay_within_what_they_are_given(root, tmp_path, kind, data):
    """Every truncation, every flipped bit and many random changes, under both sanitizers."""
    names = ("image.c", "config.c", "config_keys.c", "values.c", "crc32.c")
    sources = [root / "tests" / "flash_parsers.c", *(root / "firmware" / name for name in names)]
    flags = [*FLAGS, "-O2", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags += [f"-I{generated(tmp_path)}", f"-I{root / 'firmware'}"]
    binary = tmp_path / "driver"
    subprocess.run(["gcc", *flags, "-o", binary, *sources], check=True)
    done = subprocess.run([binary, kind, "20000"], input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    # Some mutants change nothing; those are good.
    assert 0 < int(done.stdout) < 5000
