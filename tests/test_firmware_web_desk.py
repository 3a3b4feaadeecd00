"""The firmware's side of the web service: images that come in pieces, requests of the desk."""

import ctypes
import subprocess

import pytest
from firmware_lib import FLAGS, RAM, SANITIZE, map_memory
from manage_lib import bus_functions, write_headers
from streams import make_rng, seeds
from trebuchet.cores.web.desk import BUFFERS, DESK_REGISTERS
from trebuchet.cores.web.registers import web_block
from trebuchet.models.http.head import START, End, scan
from trebuchet.models.http.image import LAYOUT, Image
from trebuchet.models.http.limits import LIMITS
from trebuchet.models.http.load import HEADER_BYTES, pack
from trebuchet.models.http.request import Verdict, parse_head
from trebuchet.models.http.response import Object, prepared
from trebuchet.models.http.server import Connection as Server
from trebuchet.models.status import Status
from trebuchet.soc.csr_export import register_offsets

RAM_BYTES = 1 << 20
WEB_BASE = 0xF000_7000
MEMORY, HALF, RING = RAM + 0x80000, 0x20000, 1 << 14
SOURCES = ("web", "web_image", "web_slow", "web_request", "web_body", "web_answer", "crc32", "text")
BLOCK = web_block(None, DESK_REGISTERS)
_SOC = f"""
#define TREBUCHET_WEB_PORT 8000
#define TREBUCHET_WEB_MEMORY {MEMORY:#x}u
#define TREBUCHET_WEB_HALF {HALF:#x}u
#define TREBUCHET_WEB_LAYOUT {LAYOUT}
#define TREBUCHET_WEB_HEADERS {BUFFERS}
#define TREBUCHET_WEB_RING {RING}u
#define TREBUCHET_WEB_HEAD {LIMITS.head + 2}u
"""
_STUBS = """
#include <stdint.h>
#include <string.h>
#include "board.h"
#include "command.h"
#include "log.h"
uint32_t (*bus_read)(uint32_t);
void (*bus_write)(uint32_t, uint32_t);
char host_log[1 << 16];
unsigned wakes;
void board_wake(void) { wakes++; }
void log_write(enum log_level level, const char *part, const char *text)
{
	(void)level;
	(void)part;
	(void)text;
}
bool words_is(const struct words *words, unsigned index, const char *word)
{
	return index < words->count && strcmp(words->word[index], word) == 0;
}
"""
OBJECTS = {
    b"/": Object(b"<p>root</p>", b"text/html; charset=utf-8", 0x0123456789ABCDEF),
    b"/a/b c": Object(b"0123456789" * 30, b"text/plain", 3),
    b"/big": Object(bytes(range(256)) * 20, b"application/octet-stream", 5),
}


@pytest.fixture(scope="module")
def library(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    write_headers(folder, _SOC, [(BLOCK, WEB_BASE)])
    (folder / "stubs.c").write_text(_STUBS)
    path = folder / "web.so"
    sources = [root / "firmware" / f"{name}.c" for name in SOURCES]
    command = ["gcc", *FLAGS, "-Wno-pointer-to-int-cast", *SANITIZE, "-fPIC", "-shared"]
    command += ["-I", folder, "-I", root / "firmware", "-o", path, *sources, folder / "stubs.c"]
    subprocess.run(command, check=True)
    map_memory(RAM_BYTES)
    found = ctypes.CDLL(str(path))
    for name in ("web_begins", "web_step"):
        getattr(found, name).restype = ctypes.c_bool
    found.web_finish.restype = ctypes.c_uint8
    return found


class Gateware:
    """The registers, and the memory; firmware's answers are collected."""

    def __init__(self, library):
        self.library = library
        self.registers = dict.fromkeys((r.name for r in BLOCK.registers), 0)
        self.names = {WEB_BASE + at: name for name, at in register_offsets(BLOCK).items()}
        self.replies, self.switches = [], 0
        bus_functions(library, self.read, self.write)

    def read(self, address):
        return self.registers[self.names[address]]

    def write(self, address, value):
        name = self.names[address]
        self.registers[name] = value
        if name == "switch":
            self.switches += 1
            self.registers["switching"] = 1
        if name == "reply":
            assert value & 1
            self.registers["request"] = 0
            self.replies.append(value)

    @staticmethod
    def bytes(address, length):
        return ctypes.string_at(address, length)

    def load(self, data, piece=1012):
        """Send an image in pieces, as manage.c does; returns the status."""
        begins = self.library.web_begins(data[:piece], ctypes.c_size_t(min(piece, len(data))))
        assert begins
        for at in range(0, len(data), piece):
            part = data[at : at + piece]
            kept = (ctypes.c_uint32 * (len(part) // 4 + 1))()
            ctypes.memmove(kept, part, len(part))
            self.library.web_take(ctypes.c_uint32(at), kept, ctypes.c_size_t(len(part)))
        status = Status(self.library.web_finish(ctypes.c_size_t(len(data))))
        if status == Status.OK:
            assert not self.library.web_step()
            self.registers["switching"] = 0
            assert self.library.web_step()
        return status


@pytest.fixture
def gateware(library):
    return Gateware(library)


def place(gateware):
    """Where the next image goes: the half that is not served."""
    served = gateware.registers["base"]
    return MEMORY + HALF if served == MEMORY else MEMORY


def test_images_in_pieces(library, gateware):
    served = ctypes.cast(library.web_served(), ctypes.c_void_p)
    assert served is not None
    for piece in (64, 1012, 1024, 4096):
        base = place(gateware)
        image = Image(OBJECTS, base, HALF)
        gateware.registers["held"] = 1
        assert gateware.load(pack(image), piece) == Status.BUSY
        gateware.registers["held"] = 0
        data = pack(image)
        assert gateware.load(data[:-1], piece) == Status.TRUNCATED
        assert gateware.load(data + b"x", piece) == Status.BAD_LENGTH
        assert gateware.load(data[:-1] + bytes([data[-1] ^ 1]), piece) == Status.BAD_CHECKSUM
        assert gateware.load(data[:28] + bytes(4) + data[32:], piece) == Status.BAD_CHECKSUM
        assert gateware.load(pack(Image(OBJECTS, base ^ 0x40000, HALF)), piece) == Status.STALE
        switches = gateware.switches
        assert gateware.load(data, piece) == Status.OK
        assert gateware.switches == switches + 1
        assert gateware.bytes(base, len(image.bytes)) == image.bytes
        state = {"base": base, "index": image.index, "mask": image.buckets - 1, "enable": 1}
        assert {name: gateware.registers[name] for name in state} == state
        assert gateware.registers["slow"] == 1
    assert not library.web_begins(b"TBIM" + bytes(60), ctypes.c_size_t(64))
    assert not library.web_begins(b"TBWI", ctypes.c_size_t(HEADER_BYTES - 1))


class Session:
    """Feeds firmware the bytes of a connection, as the service does for a slow request."""

    def __init__(self, gateware, number, payload, rng):
        self.gateware, self.number, self.payload, self.rng = gateware, number, payload, rng
        self.base = RAM + number % 8 * RING
        self.at = rng.randrange(RING)  # of the first byte that is not consumed
        self.first, self.out, self.closed = True, b"", False

    def _show(self, length):
        ring = bytearray(self.rng.randbytes(RING))
        for k, byte in enumerate(self.payload[:length]):
            ring[(self.at + k) % RING] = byte
        ctypes.memmove(self.base, bytes(ring), RING)
        registers = self.gateware.registers
        registers["request"] = 1 | self.first << 1 | length << 8
        registers["request_session"] = self.number
        registers["request_address"] = self.base + self.at
        self.gateware.library.web_serve()
        return self.gateware.replies.pop()

    def step(self):
        """Go on by one request of the desk; False: there is nothing to show."""
        length = self._head() if self.first else min(len(self.payload), LIMITS.head + 2)
        if self.closed or length == 0:
            return False
        if not self.first:
            length = self.rng.randint(1, length)
        reply = self._show(length)
        used = reply >> 8
        assert used <= length
        assert not self.first or used == length
        self.payload = self.payload[used:]
        self.at = (self.at + used) % RING
        self.first = not reply & 4
        if self.first:
            self._collect(reply)
        return True

    def _head(self):
        """Bytes of the next head, which must be firmware's."""
        found = scan(START, self.payload)
        if found.end is not End.COMPLETE:
            return 0
        head = self.payload[: found.used][-found.scan.length :]
        assert parse_head(head).verdict is Verdict.FIRMWARE
        return found.used

    def _collect(self, reply):
        registers = self.gateware.registers
        address, buffer = registers["reply_address"], reply >> 4 & 15
        assert buffer <= BUFFERS
        assert not buffer or not registers["buffers"] >> (buffer - 1) & 1
        if buffer:  # on this machine an address has more bits, those of the library
            address |= (
                ctypes.cast(self.gateware.library.web_serve, ctypes.c_void_p).value & ~0xFFFFFFFF
            )
        self.out += self.gateware.bytes(address, registers["reply_length"])
        if registers["reply_rest"]:
            at, length = registers["reply_rest_address"], registers["reply_rest"]
            assert at >= MEMORY
            assert at + length <= MEMORY + 2 * HALF
            self.out += self.gateware.bytes(at, length)
        self.closed = bool(reply & 2)


REQUESTS = [
    b"GET /%61/b%20c HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\r\nGET http://h/big?x HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /big HTTP/1.1\r\nHost: h\r\nRange: bytes=5-900\r\n\r\n",
    b"HEAD /big HTTP/1.1\r\nHost: h\r\nRange: bytes=5-900\r\n\r\n",
    b'GET /big HTTP/1.1\r\nHost: h\r\nIf-None-Match: "a", ' + OBJECTS[b"/big"].etag + b"\r\n\r\n",
    b"GET /%6eone HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\n" + b"y" * 9000,
    b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5;x=y\r\nabcde\r\nbb8\r\n" + b"z" * 3000 + b"\r\n0\r\nA: b\r\n\r\n",
    b"GET /big HTTP/1.1\r\nHost: h\r\nX: " + b"x" * 9000 + b"\r\nRange: bytes=-1\r\n\r\n",
]
LAST = [
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n12345",
    b"HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 65537\r\n\r\n123",
    b"GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
    b"GET / HTTP/1.0\r\nContent-Length: 2500\r\n\r\n" + b"y" * 2500,
    b"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n",  # which does not come
]


@seeds(6)
def test_conversations(gateware, seed):
    """Four sessions at a time, whose content comes in pieces; numbers come again."""
    assert gateware.load(pack(Image(OBJECTS, place(gateware), HALF))) == Status.OK
    rng = make_rng(seed, "desk")
    live, count = {}, 0
    while count < 40 or live:
        number = rng.randrange(4)
        if number not in live and count < 40:
            payload = b"".join(rng.choices(REQUESTS, k=rng.randint(0, 4))) + rng.choice(LAST)
            live[number] = Session(gateware, number, payload, rng), payload
            count += 1
        if number in live and not live[number][0].step():
            session, payload = live.pop(number)
            server = Server(OBJECTS)
            assert session.out == server.receive(payload)
            assert session.closed == server.closed
    assert gateware.registers["request"] == 0


def test_more_readers_than_there_are(gateware):
    """A fifth request with content takes another's place, which is answered with 503."""
    assert gateware.load(pack(Image(OBJECTS, place(gateware), HALF))) == Status.OK
    rng = make_rng(1, "readers")
    head = b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n"
    sessions = [Session(gateware, number, head, rng) for number in range(5)]
    for session in sessions:
        session.step()
        assert not session.first
    for session in sessions:
        session.payload = b"123456789"
        while session.step():
            pass
    ok = Server(OBJECTS).receive(head + b"123456789")
    busy = prepared(Verdict.UNAVAILABLE).sent()
    assert sorted(session.out for session in sessions) == sorted([ok] * 4 + [busy])
    assert [session.closed for session in sessions].count(True) == 1


def test_no_buffer_is_free(gateware):
    assert gateware.load(pack(Image(OBJECTS, place(gateware), HALF))) == Status.OK
    gateware.registers["buffers"] = (1 << BUFFERS) - 1
    for request, head in ((REQUESTS[2], False), (REQUESTS[3], True)):
        session = Session(gateware, 3, request, make_rng(1, "buffers"))
        assert session.step()
        assert session.out == prepared(Verdict.UNAVAILABLE).sent(head)
        assert session.closed
    gateware.registers["buffers"] = 0x7F  # one is left
    session = Session(gateware, 3, REQUESTS[2], make_rng(1, "buffers"))
    assert session.step()
    assert session.out == Server(OBJECTS).receive(REQUESTS[2])
