"""The firmware's answers to unusual requests are the golden model's, byte for byte."""

import ctypes
import string

import pytest
from firmware_host import Text, new_text, shared_library
from http_fuzz import mutate
from http_fuzz import seeds as corpus
from streams import make_rng, seeds
from trebuchet.models.http.body import Chunked, Progress, Sized
from trebuchet.models.http.head import START, End, scan
from trebuchet.models.http.image import Image
from trebuchet.models.http.limits import LIMITS
from trebuchet.models.http.request import Content, Verdict, parse_fields, parse_head
from trebuchet.models.http.response import Object, prepared
from trebuchet.models.http.slow import canonical, respond

BASE, HEADER = 0x41000000, 768
OBJECTS = {
    b"/": Object(b"<p>root</p>", b"text/html; charset=utf-8", 0x0123456789ABCDEF),
    b"/empty": Object(b"", b"application/octet-stream", 1),
    b"/a/": Object(b"folder", b"text/plain", 2),
    b"/a/b c": Object(b"0123456789", b"text/plain", 3),
    b"/x%2Fy": Object(b"slash", b"text/plain", 4),
    b"/\xc3\xa4": Object(b"umlaut", b"x" * 400, 5),
    b"/" + b"l" * 95: Object(bytes(range(256)) * 20, b"text/plain", (1 << 64) - 1),
}
SOURCES = ("web_request", "web_body", "web_answer", "crc32", "text")


class Slice(ctypes.Structure):
    _fields_ = [("at", ctypes.c_void_p), ("end", ctypes.c_void_p)]


class Request(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_bool) for name in ("valid", "get", "head", "close")),
        ("content", ctypes.c_int),
        ("content_length", ctypes.c_uint64),
        ("target", Slice),
        ("fields", Slice),
    ]


class Store(ctypes.Structure):
    _fields_ = [
        ("memory", ctypes.c_char_p),
        *((name, ctypes.c_uint32) for name in ("base", "bytes", "index", "mask")),
    ]


class Answer(ctypes.Structure):
    _fields_ = [
        ("written", ctypes.c_bool),
        ("close", ctypes.c_bool),
        *((name, ctypes.c_uint32) for name in ("address", "length", "rest_address", "rest")),
    ]


class Firmware:
    """Answers heads from an image of :data:`OBJECTS`."""

    def __init__(self, library):
        self.library = library
        library.web_respond.restype = library.web_prepared.restype = Answer
        library.web_path.restype = ctypes.c_size_t
        library.web_path.argtypes = [Slice, ctypes.c_char_p]
        self.image = Image(OBJECTS, BASE)
        content = self.image.bytes
        index, mask = self.image.index, self.image.buckets - 1
        self.store = Store(content, BASE, len(content), index, mask)
        self.body = ctypes.create_string_buffer(1024)

    def parse(self, head):
        """The request; and its bytes, which must live as long."""
        kept, request = ctypes.create_string_buffer(head, len(head)), Request()
        self.library.web_parse(ctypes.byref(request), kept, ctypes.c_size_t(len(head)))
        return request, kept

    def _sent(self, answer, header):
        at = answer.address - BASE
        first = header if answer.written else self.image.bytes[at : at + answer.length]
        assert len(first) == answer.length
        at = answer.rest_address - BASE
        return first + (self.image.bytes[at : at + answer.rest] if answer.rest else b"")

    def respond(self, head):
        """What is sent, and whether the connection closes."""
        request, _kept = self.parse(head)
        buffer, text = new_text(HEADER)
        path = ctypes.create_string_buffer(len(head) + 1)
        answer = self.library.web_respond(
            ctypes.byref(self.store), ctypes.byref(request), path, ctypes.byref(text)
        )
        assert not text.overflow
        return self._sent(answer, buffer.raw[: text.length]), answer.close

    def prepared(self, which, head=False):
        return self._sent(
            self.library.web_prepared(ctypes.byref(self.store), which, ctypes.c_bool(head)), b""
        )

    def discard(self, head, content):
        """What the reader of content says, and how many bytes it has taken by then."""
        request, _kept = self.parse(head)
        progress = self.library.web_body_start(self.body, ctypes.byref(request))
        for used, byte in enumerate(content):
            if progress:
                return progress, used
            progress = self.library.web_body_feed(self.body, ctypes.c_uint8(byte))
        return progress, len(content)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    return Firmware(shared_library(tmp_path_factory.mktemp("web"), SOURCES))


def check(firmware, head):
    if parse_fields(head.split(b"\r\n")[1:-2]) is None:
        return  # which no gateware lets through
    response = respond(head, OBJECTS.get)
    expected = response.prepared.sent(head.startswith(b"HEAD ")), response.close
    assert firmware.respond(head) == expected, head
    assert firmware.respond(b"\r\n" + head) == expected, head


def get(target, *fields, method=b"GET", version=b"HTTP/1.1"):
    lines = [b" ".join((method, target, version)), b"Host: h", *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n"


TARGETS = [
    b"/%61/b%20c",
    b"/a/./b%20c",
    b"//a//b%20c",
    b"/a/../a/b%20c",
    b"/a/%2e%2E/",
    b"/..",
    b"/../..",
    b"/.",
    b"/a/.",
    b"/a/b%20c/..",
    b"/a/b%20c/",
    b"/a",
    b"/x%2Fy",
    b"/x%2fy",
    b"/x%252Fy",
    b"/%00",
    b"/a%00/..",
    b"/%C3%A4",
    b"/%c3%a4?x=%00",
    b"http://h",
    b"HTTP://h/a/b%20c",
    b"http://h?x",
    b"http://h/?/../x",
    b"http://",
    b"http:///",
    b"http://:80/",
    b"http://h:80/",
    b"http://h:8x/",
    b"http://u@h/",
    b"http://[::1]/",
    b"http://[::1]:/",
    b"http://[]/",
    b"http://[::1/",
    b"http://[::1]x/",
    b"http://%41/",
    b"http://a,b/",
    b"https://h/",
    b"http:/h",
    b"x",
    b"/" + b"l" * 95,
    b"/" + b"%6c" * 95,
    b"/" + b"l" * 96,
    b"/" + b"m" * 300 + b"/../%6c" + b"l" * 94,
    b"/empty//",
    b"/%65mpty",
    b"/%2F",
    b"/%2F..",
    b"/..%2Fa",
]
ROOT, LONG = (b'"%016x"' % OBJECTS[path].tag for path in (b"/", b"/" + b"l" * 95))
LISTS = [
    b"*",
    b"",
    b"a",
    ROOT,
    b"W/" + ROOT,
    ROOT + b",",
    b", ,\t" + ROOT,
    b'"a" , ' + ROOT,
    ROOT + b" x",
    b'"a" "b"',
    b'"a',
    b"w/" + ROOT,
    b"W",
    b"W/",
    b'"',
    b'""',
    b'"a,b", ' + ROOT,
    ROOT + b', "\x80\xff"',
    ROOT + b', "\x7f"',
    ROOT.upper(),
    ROOT[:-1] + b'0"',
    b"*, " + ROOT,
    ROOT + b",*",
    b'"a b"',
]
RANGES = [
    b"bytes=0-",
    b"bytes=1-3",
    b"bytes=-4",
    b"bytes=-0",
    b"bytes=-",
    b"bytes=4-2",
    b"bytes=3-99",
    b"bytes=99-",
    b"bytes=10-",
    b"bytes=11-",
    b"BYTES=0-0",
    b"bytes= 1-2 ",
    b"bytes=1 -2",
    b"bytes=1-2,3-4",
    b"bytes 0-1",
    b"bytes=000-00001",
    b"bytes=1-%d" % 10**18,
    b"bytes=%d-%d" % (10**17, 10**16),
    b"bytes=%d-%d" % (10**20, 10**19),
    b"bytes=%d-" % (1 << 32),
    b"bytes=-%d" % (1 << 32),
    b"bytes=%d-5" % (1 << 64),
    b"bits=0-1",
    b"",
    b"bytes=a-b",
    b"bytes=0-4294967295",
    b"bytes=-4294967296",
    b"bytes=9-9",
]


@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
@pytest.mark.parametrize("version", [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.7"])
def test_targets(firmware, method, version):
    for target in TARGETS:
        check(firmware, get(target, method=method, version=version))
        check(firmware, get(target, b"connection: a ,\tCLOSE", method=method, version=version))


def test_paths_are_the_models(firmware):
    rng = make_rng(1, "paths")
    pieces = [
        b"/",
        b"//",
        b".",
        b"..",
        b"%2e",
        b"%2F",
        b"a",
        b"b%20c",
        b"%00",
        b"%C3",
        b"x" * 50,
        b"/../",
    ]
    for _ in range(20_000):
        path = b"/" + b"".join(rng.choice(pieces) for _ in range(rng.randint(0, 12)))
        request, kept = firmware.parse(get(path))
        room = ctypes.create_string_buffer(len(path) + 1)
        length = firmware.library.web_path(request.target, room)
        assert (room.raw[:length] or None) == canonical(path), path
        assert kept


@pytest.mark.parametrize("name", [b"If-Match", b"If-None-Match", b"IF-NONE-MATCH"])
def test_lists_of_tags(firmware, name):
    for path in (b"/", b"/%6c" + b"l" * 94):
        for one in LISTS:
            check(firmware, get(path, name + b": " + one))
            check(firmware, get(path, name + b":" + one, b"Range: bytes=1-2", method=b"HEAD"))
            for other in LISTS:
                check(
                    firmware, get(path, name + b":\t" + one, b"X: y", name + b": " + other + b" ")
                )


def test_ranges(firmware):
    for path in (b"/a/b%20c", b"/empty", b"/", b"/%C3%A4", b"/" + b"l" * 95):
        tag = OBJECTS[canonical(path)].etag
        for value in RANGES:
            field = b"Range: " + value
            check(firmware, get(path, field))
            check(firmware, get(path, field, b"Connection: close"))
            check(firmware, get(path, field, method=b"HEAD"))
            check(firmware, get(path, field, b"range: bytes=0-1"))
            for condition in (tag, b"W/" + tag, b"*", b'"x"'):
                check(firmware, get(path, b"If-Range: " + condition, field))
            check(firmware, get(path, b"If-Range: " + tag, field, b"If-Range: " + tag))


def test_prepared(firmware):
    verdicts = (
        (Verdict.BAD_REQUEST, True),
        (Verdict.NOT_FOUND, True),
        (Verdict.NOT_FOUND, False),
        (Verdict.METHOD_NOT_ALLOWED, True),
        (Verdict.CONTENT_TOO_LARGE, True),
        (Verdict.UNAVAILABLE, True),
    )
    for number, (verdict, close) in enumerate(verdicts):
        for head in (False, True):
            assert firmware.prepared(number, head) == prepared(verdict, close).sent(head)
    for method in (b"POST", b"DELETE", b"get"):
        check(firmware, get(b"/", b"Content-Length: 5", method=method))


@seeds(4)
def test_heads_of_the_vectors(firmware, seed):
    """Mutations, of which those count that the gateware hands to firmware."""
    rng, inputs, count = make_rng(seed, "heads"), corpus(), 0
    inputs += [get(target) for target in TARGETS]
    inputs += [get(b"/", b"If-Match: " + value, b"Range: bytes=1-2") for value in LISTS]
    for _ in range(20_000):
        head = mutate(rng, inputs)
        end = scan(START, head)
        if end.end is not End.COMPLETE:
            continue
        head = head[: end.used][-end.scan.length :]
        if parse_head(head).verdict is not Verdict.FIRMWARE:
            continue
        count += 1
        check(firmware, head)
        request, _kept = firmware.parse(head)
        fields = parse_fields(head.split(b"\r\n")[1:-2])
        kinds = {Content.LENGTH: 1, Content.CHUNKED: 2}
        assert request.content == kinds.get(fields.content, 0)
        if fields.content is Content.LENGTH:
            assert request.content_length == fields.length
    assert count > 500


# --- content -------------------------------------------------------------------------------------

CHUNKED = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
NUMBERS = {Progress.MORE: 0, Progress.DONE: 1, Progress.INVALID: 2, Progress.TOO_LARGE: 3}


def check_content(firmware, head, body, content):
    progress, used = body.first, 0
    while progress is Progress.MORE and used < len(content):
        progress = body.feed(content[used])
        used += 1
    assert firmware.discard(head, content) == (NUMBERS[progress], used), content


@pytest.mark.parametrize("length", [1, 5, 65536, 65537, 10**17])
def test_sized_content(firmware, length):
    head = b"GET / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % length
    for count in (0, 1, 4, 5, 6, 65536):
        check_content(firmware, head, Sized(length, LIMITS), bytes(count))


CONTENTS = [
    b"0\r\n\r\n",
    b"5\r\nabcde\r\n0\r\n\r\n",
    b"0000000a;x\r\n0123456789\r\n00\r\nA: b\r\nC:\r\n\r\nx",
    b'1 ; a = b ;c="d\\"\x80"\r\nx\r\n0\r\n\r\n',
    b'1;a="b\r\nx\r\n0\r\n\r\n',
    b"1 \r\n",
    b"1;\r\n",
    b"1;=\r\n",
    b"\r\n",
    b"x\r\n",
    b"000000001\r\n",
    b"1\n",
    b"1\rx",
    b"1\r\r\n",
    b"1\r\nxy",
    b"1\r\nx\n",
    b"1\r\nx\r\r",
    b"10000\r\n" + bytes(65536) + b"\r\n1\r\n",
    b"10001\r\n",
    b"ffffffff\r\n",
    b"0\r\nA\r\n",
    b"0\r\n: b\r\n",
    b"0\r\nA: \x00\r\n",
    b"0\r\nA : b\r\n",
    b"1;" + b"a" * 252 + b"\r\n",
    b"1;" + b"a" * 253 + b"\r\n",
    b"1;" + b"a" * 254 + b"\r\n",
    b"0\r\n" + (b"A: " + b"b" * 250 + b"\r\n") * 17 + b"\r\n",
]


def test_chunked_content(firmware):
    for content in CONTENTS:
        check_content(firmware, CHUNKED, Chunked(LIMITS), content)


@seeds(3)
def test_mutated_chunks(firmware, seed):
    rng = make_rng(seed, "chunks")
    small = [content for content in CONTENTS if len(content) < 2000]
    alphabet = b'\r\n\t ;="\\0123456789abcdefAF:x' + string.punctuation.encode()
    for _ in range(15_000):
        content = bytearray(rng.choice(small) + rng.choice(small) * (rng.random() < 0.3))
        for _ in range(rng.randint(0, 4)):
            at = rng.randrange(len(content) + 1)
            content[at : at + rng.randint(0, 1)] = bytes([rng.choice(alphabet)])
        check_content(firmware, CHUNKED, Chunked(LIMITS), bytes(content))


def test_text_is_what_it_was(firmware):
    assert ctypes.sizeof(Text) == 32
