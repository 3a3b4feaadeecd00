"""The firmware's request parser and text functions, compiled for this machine."""

import ctypes
import json
import re
import subprocess

import pytest

OK, BAD, NOT_FOUND, METHOD, TOO_LARGE, UNKNOWN, INCOMPLETE = 200, 400, 404, 405, 431, 501, 0

#: Methods of RFC 9110, 9.3 and RFC 5789 that no resource of the board has.
REFUSED = (b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH")

GOOD = b"GET /status HTTP/1.1\r\nHost: 10.0.0.2\r\n\r\n"


class Text(ctypes.Structure):
    _fields_ = [
        ("start", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
        ("overflow", ctypes.c_bool),
    ]


class Entry(ctypes.Structure):
    _fields_ = [
        ("block", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_uint32),
        ("words", ctypes.c_uint32),
    ]


class Info(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_char_p),
        ("board", ctypes.c_char_p),
        ("uptime_ms", ctypes.c_uint32),
        ("start", ctypes.c_char_p),
        ("restarts", ctypes.c_uint32),
        ("memory_test", ctypes.c_char_p),
        ("registers", ctypes.c_char_p),
        ("more", ctypes.c_void_p),
    ]


READ = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)


@pytest.fixture(scope="module")
def lib(root, tmp_path_factory):
    """The portable part of the firmware as a shared library with the sanitizers' checks."""
    path = tmp_path_factory.mktemp("firmware") / "firmware.so"
    sources = [root / "firmware" / name for name in ("http.c", "text.c", "status.c")]
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared"]
    flags += ["-fsanitize=undefined", "-fno-sanitize-recover=undefined"]
    flags += ["-static-libubsan"]
    subprocess.run(["gcc", *flags, "-o", path, *sources], check=True)
    library = ctypes.CDLL(str(path))
    pages = ctypes.POINTER(ctypes.c_int)
    library.http_judge.argtypes = [ctypes.c_char_p, ctypes.c_size_t, pages]
    return library


#: ``enum http_page``.
STATUS_PAGE, FRONT_PAGE = 0, 1


def _judge(lib, request):
    return lib.http_judge(request, len(request), ctypes.byref(ctypes.c_int()))


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (GOOD, OK),
        (b"GET /status?x=1 HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET http://10.0.0.2/status HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET /status HTTP/1.0\r\n\r\n", OK),
        (b"\r\nGET /status HTTP/1.1\r\nhost: b\r\n\r\n", OK),
        (b"GET /status HTTP/1.1\nHost: b\n\n", BAD),
        (b"GET /status HTTP/1.0\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\nX: y\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\n\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\rX: y\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\r\n\r\n", BAD),
        (b"\nGET /status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"\r\n\r\n", INCOMPLETE),
        (b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET // HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /index.html HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET %2F HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /statusx HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /STATUS HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"POST /status HTTP/1.1\r\nHost: b\r\n\r\n", METHOD),
        *((b"%s /status HTTP/1.1\r\nHost: b\r\n\r\n" % name, METHOD) for name in REFUSED),
        (b"OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n", METHOD),
        (b"CONNECT b:80 HTTP/1.1\r\nHost: b\r\n\r\n", METHOD),
        (b"POST /x HTTP/1.1\r\nHost: b\r\n\r\n", METHOD),
        # RFC 9110, 9.1: methods are case-sensitive, and one that is not recognized is 501.
        (b"get /status HTTP/1.1\r\nHost: b\r\n\r\n", UNKNOWN),
        (b"BREW /status HTTP/1.1\r\nHost: b\r\n\r\n", UNKNOWN),
        (b"GETS /x HTTP/1.1\r\nHost: b\r\n\r\n", UNKNOWN),
        (b"GE /status HTTP/1.1\r\nHost: b\r\n\r\n", UNKNOWN),
        (b"HEAD /status HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"HEAD /x HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"HEAD /status HTTP/1.1\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status HTTP/2.0\r\nHost: b\r\n\r\n", BAD),
        (b"GET  /status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status\r\nHost: b\r\n\r\n", BAD),
        (b"G\x00T /status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /sta\x01tus HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\n folded\r\n\r\n", BAD),
        (b"hello\r\n", BAD),
        # RFC 9110, 2.5: a higher minor version is answered as the highest that is implemented.
        (b"GET /status HTTP/1.2\r\nHost: b\r\n\r\n", OK),
        (b"GET /status HTTP/1.9\r\nHost: b\r\n\r\n", OK),
        (b"GET /status HTTP/1.2\r\n\r\n", BAD),
        (b"GET /status HTTP/1.10\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.a\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status HTTP/0.9\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status http/1.1\r\nHost: b\r\n\r\n", BAD),
        # RFC 9110, 4.2.3: schemes are case-insensitive, an empty path is "/".
        (b"GET HTTP://b/status HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET hTTp://b:80/status?x HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET http://b HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET http://b?x HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET http://b?/status HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET http://[::1]:80/status HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        # 4.2.1, 4.2.4: without a host, and with user information, a target is invalid.
        (b"GET http:///status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET http://?x HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET http:// HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET http://a@b/status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET http:/status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET https://b/status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET ftp://b/status HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET * HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        # RFC 3986, 6.2.2.2: what is percent-encoded without need is equivalent; once only.
        (b"GET /%73tatus HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET /%73%74%61%74%75%73?%zz HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET /statu%73 HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET http://b/%73tatus HTTP/1.1\r\nHost: b\r\n\r\n", OK),
        (b"GET /%53tatus HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /%2573tatus HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET %2Fstatus HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /%2fstatus HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /status%3Fx HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /status%00 HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /status% HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /%7 HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /%7gtatus HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /nothing/%zz HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        # RFC 9112, 3.2: no form of a target has a fragment.
        (b"GET /status#x HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        (b"GET /status?x#y HTTP/1.1\r\nHost: b\r\n\r\n", BAD),
        # RFC 9110, 5.5: control characters in a value; 0x80 and above are allowed.
        (b"GET /status HTTP/1.1\r\nHost: b\r\nX: a\0b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\0\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\nX: a\x7f\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\nX: a\x1b[1m\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\nX:\ta\t\xe4\xff\t\r\n\r\n", OK),
        (b"POST /status HTTP/1.1\r\nHost: b\r\nX: a\0b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost : b\r\n\r\n", BAD),
        # RFC 9112, 3.2: one valid Host.
        (b"GET /status HTTP/1.1\r\nHost:\r\n\r\n", OK),
        (b"GET /status HTTP/1.1\r\nHost:\tb \r\n\r\n", OK),
        (b"GET /status HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", OK),
        (b"GET /status HTTP/1.1\r\nHost: a b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b/x\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: http://b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: a@b\r\n\r\n", BAD),
        (b"GET /status HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", BAD),
        # RFC 9112, 6.3: a body is ignored, but not one of unknown length.
        (b"GET /status HTTP/1.1\r\nHost: b\r\nContent-Length: 4\r\n\r\nbody", OK),
        (b"GET /status HTTP/1.1\r\nHost: b\r\nContent-Length:\t4 \r\n\r\nbody", OK),
        (b"GET /status HTTP/1.1\r\nHost: b\r\ncontent-length: -4\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\nContent-Length: 4x\r\n\r\n", BAD),
        (b"GET /status HTTP/1.1\r\nHost: b\r\nContent-Length:\r\n\r\n", BAD),
        (b"", INCOMPLETE),
        (b"GET /status", INCOMPLETE),
        (b"GET /status HTTP/1.1\r\n" + b"X-Long: " + b"a" * 1100 + b"\r\n\r\n", TOO_LARGE),
        (b"a" * 1024, TOO_LARGE),
    ],
)
def test_judges_requests(lib, request_bytes, status):
    assert _judge(lib, request_bytes) == status


def test_every_prefix_of_a_good_request_is_incomplete(lib):
    assert [_judge(lib, GOOD[:n]) for n in range(len(GOOD))] == [INCOMPLETE] * len(GOOD)


@pytest.mark.parametrize(
    ("request_bytes", "is_head"),
    [
        (b"HEAD /status HTTP/1.1\r\nHost: b\r\n\r\n", True),
        (b"\r\n\r\nHEAD /x HTTP/1.1\r\nHost: b\r\n\r\n", True),
        (b"HEAD /status HTTP/3.0\r\n\r\n", True),
        (b"HEAD " + b"x" * 1019, True),
        (b"GET /status HTTP/1.1\r\nHost: b\r\n\r\n", False),
        (b"HEADS /status HTTP/1.1\r\nHost: b\r\n\r\n", False),
        (b"head /status HTTP/1.1\r\nHost: b\r\n\r\n", False),
        (b"GET /status HTTP/1.1\r\nHEAD : b\r\n\r\n", False),
        (b"HEAD", False),
        (b"\r\n", False),
        (b"", False),
    ],
)
def test_responses_to_head_have_no_body(lib, request_bytes, is_head):
    """RFC 9110, 9.3.2; also those to a request that is refused for something else."""
    lib.http_is_head.restype = ctypes.c_bool
    lib.http_is_head.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    assert lib.http_is_head(request_bytes, len(request_bytes)) is is_head


def _text(lib, room):
    lib.text_in.restype = Text
    buffer = ctypes.create_string_buffer(room)
    text = lib.text_in(buffer, ctypes.c_size_t(room))
    return buffer, text


@pytest.mark.parametrize(
    ("status", "extra"),
    [
        (200, ""),
        (404, ""),
        (405, "Allow: GET, HEAD\r\n"),
        (431, ""),
        (500, ""),
        (501, ""),
    ],
)
def test_response_heads(lib, status, extra):
    buffer, text = _text(lib, 192)
    lib.http_head(ctypes.byref(text), status, STATUS_PAGE, ctypes.c_size_t(1234))
    head = buffer.raw[: text.length].decode()
    assert not text.overflow
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert extra in head
    assert re.search(r"\r\nConnection: close\r\nContent-Length: +1234\r\n\r\n$", head)
    assert len(head) % 4 == 0


@pytest.mark.parametrize(
    ("target", "page"),
    [
        (b"/", FRONT_PAGE),
        (b"/?/status", FRONT_PAGE),
        (b"/%73tatus", STATUS_PAGE),
        (b"/status?/", STATUS_PAGE),
        (b"http://b", FRONT_PAGE),
        (b"http://b/", FRONT_PAGE),
        (b"http://b?/status", FRONT_PAGE),
        (b"http://b/status", STATUS_PAGE),
    ],
)
def test_pages(lib, target, page):
    request, found = b"GET " + target + b" HTTP/1.1\r\nHost: b\r\n\r\n", ctypes.c_int(-1)
    assert lib.http_judge(request, len(request), ctypes.byref(found)) == OK
    assert found.value == page


@pytest.mark.parametrize("status", [OK, NOT_FOUND])
@pytest.mark.parametrize("page", [STATUS_PAGE, FRONT_PAGE])
def test_errors_are_json_whatever_the_page(lib, status, page):
    buffer, text = _text(lib, 192)
    lib.http_head(ctypes.byref(text), status, page, ctypes.c_size_t(9))
    html = (status, page) == (OK, FRONT_PAGE)
    kind = b"text/html" if html else b"application/json"
    assert b"\r\nContent-Type: " + kind + b"\r\n" in buffer.raw[: text.length]


def _status(lib, entries, room=4096):
    words = {0x100: 7, 0x104: 1 << 31, 0x108: 5, 0x10C: 2, 0x110: 2**32 - 1}
    table = (Entry * max(1, len(entries)))(*(Entry(*entry) for entry in entries))
    info = Info(b"0.1.0", b'si"m\n', 123456, b"power", 0, b"good", b"0123456789abcdef")
    buffer, text = _text(lib, room)
    lib.status_write(
        ctypes.byref(text), ctypes.byref(info), table, len(entries), READ(lambda a: words[a])
    )
    return buffer.raw[: text.length], text.overflow


def test_status_page_lists_every_entry(lib):
    entries = [
        (b"tcp", b"sessions_used", 0x100, 1),
        (b"tcp", b"octets", 0x108, 2),
        (b"ecg", b"jobs", 0x104, 1),
        (b"ecg", b"beats", 0x110, 1),
    ]
    page, overflow = _status(lib, entries)
    assert not overflow
    assert json.loads(page) == {
        "version": "0.1.0",
        "board": 'si"m\n',
        "uptime_ms": 123456,
        "start": "power",
        "restarts": 0,
        "memory_test": "good",
        "registers": "0123456789abcdef",
        "sessions": 7,
        "engines": {
            "tcp": {"sessions_used": 7, "octets": 5 + (2 << 32)},
            "ecg": {"jobs": 1 << 31, "beats": 2**32 - 1},
        },
    }


def test_status_page_without_engines(lib):
    page, _ = _status(lib, [])
    assert json.loads(page)["engines"] == {}
    assert json.loads(page)["sessions"] is None


def test_status_page_that_does_not_fit_says_so(lib):
    page, overflow = _status(lib, [(b"tcp", b"sessions_used", 0x100, 1)], room=40)
    assert overflow
    assert len(page) <= 40


def test_addresses_as_text(lib):
    buffer, text = _text(lib, 64)
    lib.text_mac(ctypes.byref(text), ctypes.c_uint64(0x0200000A0B0C))
    lib.text_char(ctypes.byref(text), ctypes.c_char(b" "))
    lib.text_ip(ctypes.byref(text), ctypes.c_uint32(0x0A0000FE))
    assert buffer.raw[: text.length] == b"02:00:00:0a:0b:0c 10.0.0.254"


_EDGES = {0, 2**32 - 1, 2**32, 2**63, 2**64 - 1}


@pytest.mark.parametrize(
    "value", sorted(_EDGES | {10**n + d for n in range(1, 20) for d in (-1, 0, 1)})
)
def test_numbers_as_text(lib, value):
    buffer, text = _text(lib, 20)
    lib.text_unsigned(ctypes.byref(text), ctypes.c_uint64(value))
    assert buffer.raw[: text.length] == b"%d" % value
    assert not text.overflow
