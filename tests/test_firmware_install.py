"""An image over the network into flash: the management service with a flash behind it.

The mailbox is a model with one connection. What the flash holds afterwards is judged by the
firmware that starts images.
"""

import ctypes
import struct

import pytest
from firmware_lib import BITSTREAM_SLOT, FIRMWARE_SLOT, RAM, FlashPort, build_boot
from manage_lib import MAILBOX_BASE, ROLE, ROLE_BASE, build_manage, bus_functions
from trebuchet.client.smp import Configuration, Core, Decoder, Message, MessageType
from trebuchet.cores.multiboot.start import KEY
from trebuchet.cores.services.mailbox import MAILBOX_BLOCK
from trebuchet.host.image import HEADER_BYTES, SECTOR, Image, Kind
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import register_offsets

NAMES = {MAILBOX_BASE + at: name for name, at in register_offsets(MAILBOX_BLOCK).items()}
ENABLE = ROLE_BASE + register_offsets(ROLE)["enable"]
PENDING, PARTIAL, TAG = 1, 2, 4  # the last is the field's first bit
SLOTS = {Kind.firmware: FIRMWARE_SLOT, Kind.bitstream: BITSTREAM_SLOT}
#: More than a page of the flash, and not whole words.
CONTENTS = bytes(i * 7 % 251 for i in range(2 * SECTOR - 1))
#: What host_boot() returns: golden stays, firmware was started, another bitstream was.
STAYS, FIRMWARE, BITSTREAM = 0, 2, 3
STARTS = {Kind.firmware: FIRMWARE, Kind.bitstream: BITSTREAM}


def image(kind, board="sim", version="1", contents=None):
    contents = CONTENTS[: SLOTS[kind][1] - SECTOR] if contents is None else contents
    return Image(kind, board, version, contents, RAM if kind is Kind.firmware else 0).pack()


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    return build_manage(root, tmp_path_factory.mktemp("install"), flash=True)


@pytest.fixture(scope="module")
def boot(root, tmp_path_factory):
    return build_boot(root, tmp_path_factory.mktemp("boot"), multiboot=True)


class Board:
    """A connection to the firmware's event loop, by the mailbox's registers."""

    def __init__(self, lib, boot):
        self.lib, self.boot = lib, boot
        self.flash = FlashPort(lib).flash
        self.regs = dict.fromkeys(NAMES.values(), 0)
        self.enabled = False  # the role
        bus_functions(lib, self.read, self.write)
        lib.mailbox_start()
        self.connect()

    def connect(self):
        """Another client: nothing is asked of it yet."""
        self.stream, self.sent, self.response = b"", b"", b""
        self.expect, self.ended = 0, False

    def request(self):
        """``(bytes, partial)`` that the CPU is shown, or None."""
        wanted = (self.expect & 0x7FF) or 8
        if len(self.stream) >= wanted:
            return self.stream[:wanted], False
        awaited = self.stream or self.expect
        return (self.stream, True) if self.ended and awaited else None

    def read(self, address):
        name = NAMES.get(address)
        if name is None:
            return 0
        request = self.request()
        if name == "status":
            tag = self.expect >> 11
            return (PENDING | PARTIAL * request[1] | tag << TAG) if request else 0
        if name == "request_length":
            return len(request[0])
        if name == "rx_data":
            at = 4 * self.regs["rx_index"]
            return int.from_bytes(request[0][at : at + 4], "little")
        return self.regs[name]

    def write(self, address, value):
        name = NAMES.get(address)
        if address == ENABLE:
            self.enabled = bool(value)
        elif name == "tx_write":
            self.response += self.regs["tx_data"].to_bytes(4, "little")
        elif name == "send":
            assert value >> 31, "go"
            self.sent += self.response[: value & 0x1FFF]
            self.response, self.stream = b"", self.stream[len(self.request()[0]) :]
            self.expect = self.regs["expect"]
            self.ended |= bool(value >> 16 & 1)
        elif name is not None:
            self.regs[name] = value

    def answers(self, stream, end=False):
        """What the firmware says to a stream, which it takes in rounds of its event loop."""
        self.stream, self.ended = stream, end
        silent = 0
        while silent < 3:
            before = (self.sent, self.stream, self.flash.erased, self.flash.programmed)
            self.lib.mailbox_serve()
            now = (self.sent, self.stream, self.flash.erased, self.flash.programmed)
            silent = silent + 1 if now == before else 0
        said, self.sent = self.sent, b""
        return Decoder().feed(said)

    def install(self, data, **options):
        """The status with which an image is answered; the mailbox listens afterwards."""
        core = (Core(ROLE_BASE, 0, 0),)
        (answer,) = self.answers(Configuration(0, 0, core, data).message().pack(), **options)
        assert answer.kind == MessageType.RESPONSE
        assert self.regs["irq_enable"] == 1, "the mailbox listens again"
        status, id = struct.unpack("<B3xI", answer.payload)
        assert id == 0
        return status

    def slot(self, kind):
        offset, size = SLOTS[kind]
        return bytes(self.flash.data[offset : offset + size])

    def elsewhere(self, kind):
        """The whole flash but the slot of a kind."""
        offset, size = SLOTS[kind]
        return bytes(self.flash.data[:offset] + self.flash.data[offset + size :])

    def starts(self):
        """What golden makes of a copy of the flash, at power-up."""
        port = FlashPort(self.boot)
        port.flash.data[:] = self.flash.data
        for name in ("application", "fired", "start"):
            ctypes.c_uint32.in_dll(self.boot, f"host_{name}").value = 0
        self.boot.host_power_up(0)
        self.boot.host_begin()
        found = self.boot.host_boot()
        if found == BITSTREAM:
            assert ctypes.c_uint32.in_dll(self.boot, "host_start").value == KEY
            address = ctypes.c_uint32.in_dll(self.boot, "host_address").value
            assert address == BITSTREAM_SLOT[0]
        return found


@pytest.fixture
def board(lib, boot):
    board = Board(lib, boot)
    # What golden and the other parts hold is not blank, nor is what an old image left.
    for at in range(0, len(board.flash.data), SECTOR):
        board.flash.data[at] = 0x5A
    for kind in Kind:
        offset, size = SLOTS[kind]
        board.flash.data[offset + size - SECTOR] = 0xFF
    yield board
    assert not board.flash.selected


@pytest.fixture(params=Kind, ids=lambda kind: kind.name)
def kind(request):
    return request.param


def other(kind):
    return Kind.bitstream if kind is Kind.firmware else Kind.firmware


def test_a_good_image_lies_in_its_slot_and_starts(board, kind):
    before = board.elsewhere(kind)
    data = image(kind)
    assert board.starts() == STAYS
    assert board.install(data) == Status.OK
    contents = data[HEADER_BYTES:]
    slot = board.slot(kind)
    assert slot[: len(contents)] == contents
    assert slot[-SECTOR:] == data[:HEADER_BYTES].ljust(SECTOR, b"\xff")
    assert board.elsewhere(kind) == before
    assert board.starts() == STARTS[kind]
    assert board.enabled, "the rest of the configuration counts, too"
    log = ctypes.string_at(board.lib.host_log).decode()
    assert "smp: writing an image to flash\n" in log
    assert log.endswith(f"configured: ecg, operands 0, results 0, image {len(data)}\n")


def test_an_image_takes_the_place_of_the_one_before(board, kind):
    for version, length in (("1", 3000), ("2", 100), ("3", 4096)):
        data = image(kind, version=version, contents=CONTENTS[:length])
        assert board.install(data) == Status.OK
        assert board.slot(kind)[:length] == data[HEADER_BYTES:]
        assert board.slot(kind)[-SECTOR:][:HEADER_BYTES] == data[:HEADER_BYTES]
        assert board.starts() == STARTS[kind]


def test_a_sector_is_written_between_two_rounds_of_the_event_loop(board):
    seen, serve = [], board.lib.mailbox_serve

    def spy():
        before = board.flash.programmed
        serve()
        seen.append(board.flash.programmed - before)
        if seen[-1] and not board.sent:
            assert board.regs["irq_enable"] == 0, "requests wait meanwhile"

    board.lib.mailbox_serve = spy
    try:
        assert board.install(image(Kind.firmware)) == Status.OK
    finally:
        board.lib.mailbox_serve = serve
    assert [n for n in seen if n] == [SECTOR, SECTOR - 1, HEADER_BYTES]


def broken(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("spoil", "status"),
    [
        (lambda kind: broken(image(kind), HEADER_BYTES + 700), Status.BAD_CHECKSUM),
        (lambda kind: broken(image(kind), 9), Status.BAD_CHECKSUM),
        (lambda kind: broken(image(kind), 0), Status.BAD_DATA),
        (lambda kind: image(kind)[:-1], Status.TRUNCATED),
        (lambda kind: image(kind)[: HEADER_BYTES - 1], Status.TRUNCATED),
        (lambda kind: image(kind) + b"x", Status.BAD_LENGTH),
        (lambda kind: image(kind, "versa_ecp5"), Status.WRONG_BOARD),
        (
            lambda kind: image(kind, contents=bytes(SLOTS[kind][1] - SECTOR + 1)),
            Status.TOO_LARGE,
        ),
        (lambda kind: image(kind, contents=bytes(0x40001)), Status.TOO_LARGE),
        (lambda _: Image(Kind.firmware, "sim", "1", b"x" * 99, RAM + 4).pack(), Status.BAD_DATA),
    ],
)
def test_a_bad_image_changes_nothing(board, kind, spoil, status):
    """Neither does it keep the next one from being installed."""
    assert board.install(image(other(kind))) == Status.OK
    assert board.install(image(kind, version="old", contents=b"old")) == Status.OK
    before, was = bytes(board.flash.data), board.starts()
    done = board.flash.erased, board.flash.programmed
    board.enabled = False
    assert board.install(spoil(kind)) == status
    assert board.flash.data == before
    assert (board.flash.erased, board.flash.programmed) == done
    assert not board.enabled, "a configuration that is refused changes nothing"
    assert board.starts() == was
    assert board.install(image(kind)) == Status.OK
    assert board.slot(kind)[:500] == CONTENTS[:500]


@pytest.mark.parametrize("cut", [8 + 24 + 10, 8 + 24 + HEADER_BYTES, 2000])
def test_a_client_that_ends_in_the_middle_changes_nothing(board, kind, cut):
    assert board.install(image(kind, contents=b"old")) == Status.OK
    before = bytes(board.flash.data)
    message = Configuration(0, 0, (Core(ROLE_BASE, 0, 0),), image(kind)).message().pack()
    (answer,) = board.answers(message[:cut], end=True)
    assert answer.payload[0] == Status.TRUNCATED
    assert board.flash.data == before
    assert board.starts() == STARTS[kind]
    board.connect()
    assert board.install(image(kind)) == Status.OK


def test_a_write_protected_flash_is_told(board, kind):
    """In an empty slot when it is written to, in another when that is taken away."""
    for there in (False, True):
        if there:
            board.flash.protected = False
            assert board.install(image(kind, contents=b"old")) == Status.OK
        before, was = bytes(board.flash.data), board.starts()
        board.flash.protected, board.enabled = True, False
        assert board.install(image(kind)) == Status.FLASH_ERROR
        assert board.flash.data == before
        assert board.starts() == was
        assert not board.enabled
    board.flash.protected = False
    assert board.install(image(kind)) == Status.OK
    assert board.starts() == STARTS[kind]


@pytest.mark.parametrize("power", [0, 1, 255, 3000, 4100])
def test_a_flash_that_fails_while_it_is_written_leaves_no_image(board, kind, power):
    assert board.install(image(kind, contents=b"old")) == Status.OK
    before = board.elsewhere(kind)
    # Behind the sector that takes the old image away.
    length = SLOTS[kind][1] - SECTOR if kind is Kind.bitstream else len(CONTENTS)
    assert power < length + HEADER_BYTES
    erase, board.flash.power = board.flash.erased, None

    def fails():
        if board.flash.erased == erase + 1:
            board.flash.power = power

    serve = board.lib.mailbox_serve
    board.lib.mailbox_serve = lambda: (serve(), fails())
    try:
        assert board.install(image(kind)) == Status.FLASH_ERROR
    finally:
        board.lib.mailbox_serve = serve
    board.flash.power = None
    assert board.elsewhere(kind) == before
    assert board.starts() == STAYS
    assert board.install(image(kind)) == Status.OK
    assert board.starts() == STARTS[kind]


def test_both_kinds_one_after_the_other_and_a_command(board):
    for kind in (Kind.bitstream, Kind.firmware, Kind.bitstream):
        assert board.install(image(kind)) == Status.OK
    assert board.slot(Kind.firmware)[: len(CONTENTS)] == CONTENTS
    assert board.slot(Kind.bitstream)[:SECTOR] == CONTENTS[:SECTOR]
    (answer,) = board.answers(Message(MessageType.COMMAND, b"on").pack())
    assert (answer.kind, answer.payload) == (MessageType.REPLY, bytes(4) + b"on")
