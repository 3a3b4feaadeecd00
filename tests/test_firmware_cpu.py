"""The firmware's portable parts on the board's CPU: the same answers as on this machine."""

import ctypes
import random
import struct
import subprocess

import pytest
from firmware_on_cpu import CpuProgram
from gdb_client import GdbClient
from sim_tops import needs_network
from trebuchet.sim.build import build
from trebuchet.sim.gdb.run import debug_files, debugged

MODULES = ("http.c", "status.c", "text.c")
JUDGE, HEAD, UNSIGNED, HEX, JSON, MAC, IP, STATUS = range(1, 9)
SEED = 6

GOOD = b"GET /status?x=1 HTTP/1.1\r\nHost: 192.0.2.2\r\nAccept: */*\r\n\r\n"
PIECES = (
    b"GET ",
    b"POST ",
    b"HEAD ",
    b"/status",
    b"/%73tatus",
    b"/",
    b" HTTP/1.1",
    b" HTTP/1.0",
    b"HTTP/2.0",
    b"\r\n",
    b"\n",
)
PIECES += (
    b"Host: b",
    b"Host:",
    b"host: b",
    b"\r\n\r\n",
    b"http://",
    b"?",
    b" ",
    b"\0",
    b"\xff",
    b"\t",
)


def case(what, data, number=0, room=None):
    if room is not None:
        data = struct.pack("<H", room) + data
    return struct.pack("<BBH", what, number, len(data)) + data


def requests(rng):
    yield b"PUT" + GOOD[3:]
    yield from (GOOD[:k] for k in range(len(GOOD) + 1))
    for _ in range(150):
        damaged = bytearray(GOOD)
        damaged[rng.randrange(len(GOOD))] = rng.choice(
            (0, 10, 13, 32, 58, 127, 255, rng.randrange(256))
        )
        yield bytes(damaged)
    for _ in range(150):
        yield b"".join(rng.choice(PIECES) for _ in range(rng.randrange(12)))
    yield b"GET /status HTTP/1.1\r\nHost: b\r\nX: " + b"y" * 1100 + b"\r\n\r\n"
    yield b"a" * 1023
    yield b"a" * 1024


def texts(rng):
    edges = [0, 1, 9, 10, 99, 255, 0xFFFF_FFFF, 1 << 32, 10**19, (1 << 64) - 1]
    for value in edges + [rng.getrandbits(rng.randrange(1, 65)) for _ in range(40)]:
        data = struct.pack("<Q", value)
        yield case(UNSIGNED, data, room=rng.choice((0, 3, 21, 64)))
        yield case(HEX, data[:4], rng.randrange(9), room=rng.choice((4, 8, 16)))
        yield case(MAC, data, room=rng.choice((16, 17, 32)))
        yield case(IP, data[:4], room=rng.choice((6, 15, 32)))
    for status in (200, 400, 404, 405, 431, 500, 501, 0, 999):
        yield case(
            HEAD, struct.pack("<HI", status, rng.getrandbits(rng.randrange(1, 32))), room=192
        )
    for _ in range(40):
        string = bytes(rng.randrange(1, 256) for _ in range(rng.randrange(40)))
        yield case(JSON, string, room=rng.choice((0, 2, 40, 300)))
    for number in range(5):
        data = struct.pack("<I", rng.getrandbits(32)) + b'0.1 "x"'
        yield case(STATUS, data, number, room=rng.choice((20, 100, 1000)))


def all_cases():
    rng = random.Random(SEED)
    return [*(case(JUDGE, request) for request in requests(rng)), *texts(rng)]


def split(output):
    """The answers in an output."""
    answers = []
    while output:
        (length,) = struct.unpack_from("<H", output)
        answers.append(output[2 : 2 + length])
        output = output[2 + length :]
    return answers


@pytest.fixture(scope="module")
def sources(root):
    return [root / "tests" / "firmware_cases.c", *(root / "firmware" / name for name in MODULES)]


@pytest.fixture(scope="module")
def expected(root, sources, tmp_path_factory):
    """What this machine says, with the sanitizers' checks."""
    path = tmp_path_factory.mktemp("cases") / "cases.so"
    flags = (
        "-std=gnu11 -Wall -Wextra -Werror -O1 -fPIC -shared -fsanitize=undefined -static-libubsan"
    )
    command = ["gcc", *flags.split(), "-fno-sanitize-recover=undefined", f"-I{root / 'firmware'}"]
    subprocess.run([*command, "-o", path, *sources], check=True)
    library = ctypes.CDLL(str(path))
    library.run_cases.restype = ctypes.c_size_t
    data = b"".join(all_cases())
    output = ctypes.create_string_buffer(1 << 17)
    length = library.run_cases(data, ctypes.c_size_t(len(data)), output)
    return split(output.raw[:length])


def test_the_cases_reach_every_answer(expected):
    assert len(expected) == len(all_cases()) > 500
    judged = {
        struct.unpack("<H", a)[0] & 0x7FFF  # the highest bit is the page
        for a, c in zip(expected, all_cases(), strict=True)
        if c[0] == JUDGE
    }
    assert judged == {0, 200, 400, 404, 405, 431}
    assert {a[0] for a, c in zip(expected, all_cases(), strict=True) if c[0] != JUDGE} == {0, 1}


@pytest.mark.nightly  # the board with a debugger takes minutes to compile
@needs_network
def test_the_cpu_says_the_same(root, sources, expected, tmp_path):
    files = debug_files()
    software = files.elf.parent.parent
    with (
        debugged(build(files.source), files, ready="ready", timeout=240) as (board, server),
        GdbClient(server.port, seconds=100) as gdb,
    ):
        with CpuProgram(gdb, software, sources, root / "firmware", tmp_path) as program:
            data = b"".join(all_cases())
            there, back = program.allocate(len(data)), program.allocate(1 << 17)
            program.write(there, data)
            length = program.call("run_cases", there, len(data), back)
            assert program.read(there, len(data)) == data
            found = split(program.read(back, length))
        gdb.ok("D")
        with board.connect(80) as peer:  # the firmware goes on where it was
            peer.sendall(GOOD)
            assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")
    wrong = [k for k, (a, b) in enumerate(zip(found, expected, strict=True)) if a != b]
    assert wrong == [], f"seed {SEED}: {all_cases()[wrong[0]]!r}: {found[wrong[0]]!r}"
