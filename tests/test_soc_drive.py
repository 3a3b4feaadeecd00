"""The simulated board's drive, by its console: sectors, faults, a medium that is taken out.

The drive is a file at the drive port, or a card, which is a file too, in the slot of an SD host.
"""

import contextlib
import os
import random
import re
import subprocess
import sys
import zlib

import pytest
from board_console import PROMPT, Console
from patience import Patience
from sim_tops import needs_network
from trebuchet.boards.overrides import Overrides
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

pytestmark = [pytest.mark.slow, needs_network]

SECTOR, SECTORS, BAD = 512, 300, 17
#: Of a card.
LARGE = 4096


@pytest.fixture(scope="module")
def contents():
    return random.Random(5).randbytes(SECTOR * SECTORS)


@pytest.fixture
def image(tmp_path, contents):
    path = tmp_path / "card.img"
    path.write_bytes(contents)
    return path


@contextlib.contextmanager
def console_of(*options, drive="stream"):
    top = source("board", overrides=Overrides.parse(settings=[f"drive={drive}"]))
    with Board(build(top), options, uart="pty", cwd=top.folder) as board:
        with contextlib.closing(Console(board.uart_device)) as console:
            console.until(r"ready\r\n")
            console.until(re.escape(PROMPT))
            yield console


def crc(contents, lba, count=1):
    return f"crc32 {zlib.crc32(contents[lba * SECTOR : (lba + count) * SECTOR]):08x}\n"


def check_sectors(console, contents, rng, times):
    """Some at random, the last one, and one beyond it."""
    sectors = len(contents) // SECTOR
    for _ in range(times):
        count = rng.randint(1, 16)
        lba = rng.randrange(sectors - count + 1)
        assert console.run(f"drive crc {lba} {count}") == crc(contents, lba, count)
    assert console.run(f"drive crc {sectors - 1}") == crc(contents, sectors - 1)
    beyond = console.run(f"drive crc {sectors - 1} 2")
    assert beyond == "error: BAD_ARGUMENT: the drive ended with status range\n"


def test_sectors_are_those_of_the_file(image, contents):
    rng = random.Random(6)
    print("seed 6")
    with console_of("--drive", str(image), "--drive-latency", "50", "--drive-rate", "4") as console:
        assert console.run("drive") == f"ready, {SECTORS} sectors, 0 jobs, 0 failed\n"
        check_sectors(console, contents, rng, 12)
        for wrong in (
            "drive crc",
            "drive crc x",
            "drive crc 1 0",
            "drive crc 1 17",
            "drive read 1",
        ):
            assert console.run(wrong).startswith("error: BAD_ARGUMENT"), wrong
        assert console.run("drive") == f"ready, {SECTORS} sectors, 14 jobs, 1 failed\n"
        assert console.run("counters drive") == "drive.jobs 14\ndrive.failures 1\n"


def test_bad_sectors_and_a_medium_that_goes(image, contents):
    away = image.with_name("away.img")
    with console_of("--drive", str(image), "--drive-bad", f"{BAD}+2") as console:
        assert console.run(f"drive crc {BAD - 1}") == crc(contents, BAD - 1)
        for lba, count in ((BAD, 1), (BAD - 2, 4), (BAD + 1, 1)):
            said = console.run(f"drive crc {lba} {count}")
            assert said == "error: BAD_DATA: the drive ended with status data\n"
        assert console.run(f"drive crc {BAD + 2}") == crc(contents, BAD + 2)
        os.rename(image, away)
        until(console, "no medium, 5 jobs, 3 failed\n")
        gone = console.run("drive crc 0")
        assert gone == "error: BAD_DATA: the drive ended with status absent\n"
        other = contents[::-1]
        image.write_bytes(other[: SECTOR + 1])  # no whole sectors: cannot be used
        until(console, "no medium, 6 jobs, 4 failed\n")
        away.write_bytes(other)
        os.rename(away, image)
        until(console, f"ready, {SECTORS} sectors, 6 jobs, 4 failed\n")
        assert console.run("drive crc 3 2") == crc(other, 3, 2)


CARD = "card: high capacity, high speed, 0 reads repeated\n"


def test_a_card_in_the_slot(tmp_path):
    """It is identified, read, taken out while it is read, and put in again."""
    rng = random.Random(7)
    print("seed 7")
    card, away = tmp_path / "card.img", tmp_path / "away.img"
    contents = rng.randbytes(SECTOR * LARGE)
    card.write_bytes(contents)
    with console_of("--sd", str(card), drive="sd") as console:
        until(console, f"ready, {LARGE} sectors, 0 jobs, 0 failed\n{CARD}")
        check_sectors(console, contents, rng, 8)
        jobs = while_it_is_read(console, contents, lambda: os.rename(card, away))
        until(console, f"no medium, {jobs[0]} jobs, {jobs[1]} failed\n")
        gone = console.run("drive crc 0")
        assert gone == "error: BAD_DATA: the drive ended with status absent\n"
        other = contents[::-1][: LARGE // 2 * SECTOR]
        away.write_bytes(other)
        os.rename(away, card)
        size = LARGE // 2
        until(console, f"ready, {size} sectors, {jobs[0] + 1} jobs, {jobs[1] + 1} failed\n{CARD}")
        assert console.run("drive crc 3 2") == crc(other, 3, 2)
        assert card.read_bytes() == other


def while_it_is_read(console, contents, remove):
    """Call ``remove`` while sectors are read; returns the jobs since the start, and the failed."""
    jobs, failed = 10, 1
    remove()
    patience = Patience(60)
    while True:
        said = console.run("drive crc 64 16")
        jobs += 1
        if said != crc(contents, 64, 16):
            assert said.startswith("error: BAD_DATA: the drive ended with status"), said
            return jobs, failed + 1
        assert not patience.over()


def test_a_board_restarts_with_its_card(tmp_path):
    """A slot without a card, then a restart while one is there."""
    card = tmp_path / "card.img"
    with console_of(drive="sd") as console:
        assert console.run("drive") == "no medium, 0 jobs, 0 failed\n"
    card.write_bytes(bytes(SECTOR * LARGE))
    with console_of("--sd", str(card), drive="sd") as console:
        until(console, f"ready, {LARGE} sectors, 0 jobs, 0 failed\n{CARD}")
        console.type("reset\r")
        console.until(r"ready\r\n")
        console.until(re.escape(PROMPT))
        until(console, f"ready, {LARGE} sectors, 0 jobs, 0 failed\n{CARD}")
        assert console.run("drive crc 9") == crc(bytes(SECTOR * 10), 9)


def until(console, state):
    patience = Patience(60)
    while (said := console.run("drive")) != state:
        assert not patience.over(), said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--drive", "no.img"], "--drive no.img: No such file or directory; is the path right?"),
        (["--drive", "."], "--drive .: this is no file; name one with sectors of 512 bytes"),
        (
            ["--drive", "odd.img"],
            "--drive odd.img: must have sectors of 512 bytes, not 700 bytes; fill it up with: "
            "truncate --size %512 odd.img",
        ),
        (["--drive-bad", "1"], "--drive-bad is for the drive; give its file with --drive FILE"),
        (
            ["--drive", "good.img", "--drive-bad", "x"],
            "--drive-bad must be LBA or LBA+COUNT, not 'x'",
        ),
        (["wire", "--drive", "good.img"], "--drive is for the tops board, bridge, not for wire"),
        (["--sd", "no.img"], "--sd no.img: No such file or directory; is the path right?"),
        (["--sd", "."], "--sd .: this is no file; name one with units of 512 KiB"),
        (
            ["--sd", "good.img"],
            "--sd good.img: must have units of 512 KiB, not 1024 bytes; fill it up with: "
            "truncate --size %512K good.img",
        ),
        (
            ["--sd", "card.img", "--drive", "good.img"],
            "--sd and --drive exclude each other: a board has one drive",
        ),
        (["wire", "--sd", "card.img"], "--sd is for the tops board, bridge, not for wire"),
    ],
)
def test_wrong_options_are_refused_at_once(tmp_path, words, said):
    (tmp_path / "odd.img").write_bytes(bytes(700))
    (tmp_path / "good.img").write_bytes(bytes(1024))
    (tmp_path / "card.img").write_bytes(bytes(512 << 10))
    command = [sys.executable, "-m", "trebuchet.host.cli", "sim", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (1, f"trebuchet: {said}\n")
