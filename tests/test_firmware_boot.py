"""The simulated board and its flash: configuration, application, and the fall-back to golden."""

import json
import zlib

import pytest
from e2e_clients import read_message
from trebuchet.boards import load_board
from trebuchet.client.smp import Message, MessageType, parse_reply
from trebuchet.host.image import HEADER_BYTES, MAIN_RAM, SECTOR, Image, Kind, slot_bytes
from trebuchet.models import config_block
from trebuchet.models.config_block import STEP
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.status import Status
from trebuchet.sim.build import build
from trebuchet.sim.run import Board, run_batch
from trebuchet.sim.tops import source

pytestmark = pytest.mark.slow

FLASH = load_board("sim").flash
SLOT, SLOT_BYTES = FLASH.firmware
CONFIG = FLASH.config[0]
HEADER = SLOT + SLOT_BYTES - SECTOR
TRIALS, CONFIRMED, BAD = (HEADER + HEADER_BYTES + i for i in range(3))
#: RISC-V: jump to itself. Firmware that starts, and never says that it came up.
HANGS = (0x0000006F).to_bytes(4, "little") * 16
GOLDEN_READY = "\nready\n"


@pytest.fixture(scope="module")
def top():
    return source("board")


@pytest.fixture(scope="module")
def binary(top):
    return build(top)


@pytest.fixture
def start(top, binary, tmp_path):
    """A function that starts the board on the flash ``start.path`` and waits for a text."""

    def start(ready=GOLDEN_READY, arguments=(), timeout=240):
        return Board(
            binary, arguments, cwd=top.folder, ready=ready, timeout=timeout, flash=start.path
        )

    start.path = tmp_path / "flash.bin"
    start.path.write_bytes(b"\xff" * FLASH.size)
    return start


def _put(path, *parts):
    """Write ``(offset, bytes)`` into the flash."""
    data = bytearray(path.read_bytes())
    for offset, part in parts:
        data[offset : offset + len(part)] = part
    path.write_bytes(data)


def _image(contents=HANGS, board="sim"):
    return Image(Kind.firmware, board, "test", contents, MAIN_RAM).pack()


def _install(path, image):
    _put(path, (SLOT, slot_bytes(image, SLOT_BYTES)))


def _status(board, ip):
    """The status page, asked for at an address."""
    with board.socket() as peer:
        peer.settimeout(30)
        peer.connect((ip, 80))
        peer.sendall(b"GET /status HTTP/1.1\r\nHost: board\r\n\r\n")
        answer = b""
        while chunk := peer.recv(65536):
            answer += chunk
    return answer


def test_a_blank_flash_means_defaults_and_golden(start):
    with start() as board:
        text = board.uart_text()
        assert "firmware: golden\n" in text
        assert "config: none, defaults\n" in text
        assert "ip 192.0.2.2" in text
        assert "image:" not in text
    assert start.path.read_bytes() == b"\xff" * FLASH.size


def test_addresses_come_from_the_configuration_block(start):
    """The newest copy counts; one that was cut off while it was written does not."""
    torn = config_block.pack("ip=192.0.2.99\n", 9)
    _put(
        start.path,
        (CONFIG, config_block.pack("ip=192.0.2.7\nmac=02:00:00:00:00:07\n", 8)),
        (CONFIG + STEP, torn[:-3]),
    )
    with start() as board:
        text = board.uart_text()
        assert "config: copy B: BAD_CHECKSUM\n" in text
        assert "config: copy A\n" in text
        assert "mac 02:00:00:00:00:07, ip 192.0.2.7\n" in text
        assert b'"board":"sim"' in _status(board, "192.0.2.7")


def _peek(board, address):
    """A word that the firmware reads when its TCP port is asked to."""
    with board.socket() as peer:
        peer.settimeout(30)
        peer.connect((board.ip, 80))
        peer.sendall(Message(MessageType.COMMAND, b"peek 0x%08x" % address).pack())
        status, text = parse_reply(read_message(peer)[1])
    assert status == Status.OK, text
    return int(text.split(":")[1], 16)


def test_the_tcp_engines_times_come_from_the_configuration_block(start, top):
    """What is out of its range stays as it is, and is told."""
    block = config_block.pack("tcp_time_wait=777\ntcp_half_open_limit=3\ntcp_retries=15\n")
    text = block[16:].replace(b"=15", b"=16")
    _put(start.path, (CONFIG, block[:12] + zlib.crc32(block[:12] + text).to_bytes(4, "little")))
    _put(start.path, (CONFIG + 16, text))
    blocks = json.loads((top.folder.parent / "registers.json").read_text())["blocks"]
    registers = blocks["tcp"]["registers"]
    with start() as board:
        assert "config: not used: tcp_retries=16: BAD_ARGUMENT\n" in board.uart_text()
        names = ("time_wait", "half_open_limit", "retries", "rto_min")
        assert [_peek(board, registers[n]["address"]) for n in names] == [777, 3, 8, 200]


@pytest.mark.nightly
@pytest.mark.cpu_limit(1200)
def test_the_application_starts_and_confirms(start, top):
    application = top.folder.parent / "software" / "bios" / "application.bin"
    _install(start.path, _image(application.read_bytes()))
    with start("image: confirmed: OK", timeout=900) as board:  # its code is in slow memory
        text = board.uart_text()
        assert text.index("firmware: golden\n") < text.index("image: application: OK\n")
        assert text.index("image: application: OK\n") < text.index("firmware: application\n")
        assert text.count(GOLDEN_READY) == 1
        assert b'"board":"sim"' in _status(board, "192.0.2.2")
    found = start.path.read_bytes()
    assert (found[TRIALS], found[CONFIRMED], found[BAD]) == (0xFE, 0, 0xFF)


#: What is wrong with an image, and what the firmware says of it. tests/test_firmware_image.py has
#: all of them without a CPU; one of them is tried on it by `make test`.
UNTRUSTED = {
    "contents": "image: application: BAD_CHECKSUM\n",
    "header": "image: application: BAD_CHECKSUM\n",
    "board": "image: application: WRONG_BOARD\n",
    "given up": "image: it was given up\n",
    "tried": "image: it was started 3 times and never confirmed\n",
    "protected": "image: application: FLASH_ERROR\n",
}


@pytest.mark.parametrize(
    ("what", "line"),
    [
        pytest.param(*item, marks=[pytest.mark.nightly] if number else [])
        for number, item in enumerate(UNTRUSTED.items())
    ],
)
def test_an_image_that_is_not_to_be_trusted_leaves_golden(start, what, line):
    _install(start.path, _image(board="versa_ecp5" if what == "board" else "sim"))
    damage = {
        "contents": [(SLOT + 9, b"\x00")],
        "header": [(HEADER + 8, b"\x7f")],
        "given up": [(BAD, b"\x00")],
        "tried": [(TRIALS, b"\xf8")],
    }
    if what == "contents":
        damage["contents"] = [(SLOT + 9, bytes([HANGS[9] ^ 1]))]
    _put(start.path, *damage.get(what, []))
    with start(arguments=["--flash-protect"] if what == "protected" else []) as board:
        text = board.uart_text()
        assert line in text
        assert text.count("firmware: ") == 1
        assert b'"board":"sim"' in _status(board, "192.0.2.2")


@pytest.mark.nightly  # test_firmware_restart.py counts the starts without a CPU
def test_an_application_that_never_confirms_is_started_three_times(start):
    _install(start.path, _image())
    for bits in (0xFE, 0xFC, 0xF8):
        with start("image: application: OK\n") as board:
            assert GOLDEN_READY not in board.uart_text()
        assert start.path.read_bytes()[TRIALS] == bits
    with start() as board:
        assert "image: it was started 3 times and never confirmed\n" in board.uart_text()


def test_a_flash_file_of_another_size_is_refused(binary, top, tmp_path):
    path = tmp_path / "small.bin"
    path.write_bytes(b"x" * 100)
    with pytest.raises(TrebuchetError, match="must have 1048576 bytes, not 100"):
        run_batch(binary, ["--flash", path, "--cycles", 10], cwd=top.folder)
