"""The simulated board with a boot ROM: images from its flash, and one sent over the UART."""

import json
import subprocess

import pytest
from e2e_board import know_address
from test_firmware_boot import (
    BAD,
    CONFIRMED,
    HEADER,
    HEADER_BYTES,
    MAIN_RAM,
    TRIALS,
    _install,
    _put,
    _status,
)
from trebuchet.boards import load_board
from trebuchet.host.image import SECTOR, Image, Kind
from trebuchet.models.image import APPLICATION_BYTES
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = pytest.mark.slow

FLASH = load_board("sim").flash
GOLDEN = FLASH.golden_firmware
READY = "\nready\n"
SEND = b"boot: send an image\r\n"


@pytest.fixture(scope="module")
def top():
    return source("bootrom")


@pytest.fixture(scope="module")
def binary(top):
    return build(top)


@pytest.fixture
def flash(top, tmp_path):
    """A flash as the build leaves it: golden firmware, and nothing else."""
    path = tmp_path / "flash.bin"
    path.write_bytes((top.folder / "flash.bin").read_bytes())
    return path


def start(top, binary, flash, ready=READY, arguments=()):
    return Board(binary, arguments, cwd=top.folder, ready=ready, timeout=240, flash=flash)


def test_golden_firmware_starts_in_the_place_of_a_bad_application(top, binary, flash):
    """It runs from memory, and serves."""
    image = Image(Kind.firmware, "sim", "bad", b"code" * 50, MAIN_RAM).pack()
    _install(flash, image)
    _put(flash, (HEADER + 8, b"\x7f"))
    before = flash.read_bytes()
    with start(top, binary, flash) as board:
        know_address(board)
        text = board.uart_text()
        assert "firmware: golden\n" in text
        assert "image: application: BAD_CHECKSUM\n" in text
        assert "boot: " not in text
        assert b'"board":"sim"' in _status(board, board.ip)
    assert flash.read_bytes() == before


@pytest.mark.nightly
def test_an_application_starts_and_confirms(top, binary, flash):
    application = top.folder.parent / "software" / "bios" / "application.bin"
    _install(flash, Image(Kind.firmware, "sim", "2", application.read_bytes(), MAIN_RAM).pack())
    with start(top, binary, flash, "image: confirmed: OK") as board:
        assert "firmware: application\n" in board.uart_text()
        assert "image: application: OK\n" in board.uart_text()
    found = flash.read_bytes()
    assert (found[TRIALS], found[CONFIRMED], found[BAD]) == (0xFE, 0, 0xFF)


@pytest.mark.nightly
def test_power_fails_while_a_start_is_counted(top, binary, flash):
    _install(flash, Image(Kind.firmware, "sim", "2", b"code" * 50, MAIN_RAM).pack())
    with start(top, binary, flash, arguments=["--flash-stop", "0"]) as board:
        assert "firmware: golden\n" in board.uart_text()
        assert "image: application: FLASH_ERROR\n" in board.uart_text()


def prints(address, text):
    """A program that writes a short text to the UART at ``address``, and ends there."""

    def load(register, value):
        upper = (value + 0x800) >> 12 & 0xFFFFF
        yield upper << 12 | register << 7 | 0x37  # lui
        yield (value & 0xFFF) << 20 | register << 15 | register << 7 | 0x13  # addi

    words = [*load(5, address)]
    for byte in text.encode():
        words += [byte << 20 | 6 << 7 | 0x13, 6 << 20 | 5 << 15 | 2 << 12 | 0x23]  # li, sw
    words.append(0x0000006F)  # jump to itself
    return b"".join(word.to_bytes(4, "little") for word in words)


@pytest.fixture
def console(top, binary, flash):
    """The board with a spoilt golden image; a function that sends bytes and returns the answer."""
    _put(flash, (GOLDEN[0] + GOLDEN[1] - SECTOR + 13, b"\x00"))
    # A millisecond of silence is 20 cycles: of a second, five looks of the harness at its input.
    options = ["--uart", "stdio", "--time", "cycles:20", "--cycles", "8000000", "--flash", flash]
    with subprocess.Popen(
        [binary, *options],
        cwd=top.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        said = []

        def until(end):
            """Lines up to ``end``; the simulation has an end, and so has this."""
            del said[:]
            while not (said and said[-1].endswith(end)):
                line = child.stdout.readline()
                assert line, f"{end!r} did not come after {said!r}"
                said.append(line)
            return said[:-1]

        def send(data, end=SEND):
            child.stdin.write(data)
            child.stdin.flush()
            return until(end)

        try:
            assert until(SEND) == [
                b"boot: application: none\r\n",
                b"boot: golden: BAD_CHECKSUM\r\n",
            ]
            yield send
        finally:
            child.kill()


def test_an_image_over_the_uart(top, console):
    """Whatever comes is answered once; then the next one is listened to."""
    csr = json.loads((top.folder.parent / "csr.json").read_text())["csr_registers"]
    code = prints(csr["uart_rxtx"]["addr"], "hello\n")
    good = Image(Kind.firmware, "sim", "sent", code, MAIN_RAM).pack()
    broken = good[:-1] + bytes([good[-1] ^ 1])
    foreign = Image(Kind.firmware, "versa_ecp5", "sent", code, MAIN_RAM).pack()
    bitstream = Image(Kind.bitstream, "sim", "sent", code).pack()
    large = Image(Kind.firmware, "sim", "sent", bytes(APPLICATION_BYTES + 1), MAIN_RAM).pack()
    for sent, status in (
        (b"\n", "TRUNCATED"),
        (good[: HEADER_BYTES - 1], "TRUNCATED"),
        (good[:-1], "TRUNCATED"),
        (b"what is this, and why so long? " * 9, "BAD_DATA"),
        (b"X" + good, "BAD_DATA"),
        (broken, "BAD_CHECKSUM"),
        (foreign, "WRONG_BOARD"),
        (bitstream, "BAD_DATA"),
        (large[:200], "TOO_LARGE"),
        (good + b"!" * 200, "BAD_LENGTH"),
    ):
        assert console(sent) == [b"boot: received: %s\r\n" % status.encode()], (sent[:80], status)
    assert console(good, b"hello\n") == [b"boot: received: OK\r\n"]
