"""The firmware's request parser and text functions, compiled for this machine."""

import ctypes
import json
import re
import subprocess

import pytest

OK, BAD, NOT_FOUND, METHOD, TOO_LARGE, INCOMPLETE = 200, 400, 404, 405, 431, 0

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
    library.http_judge.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    return library


def _judge(lib, request):
    return lib.http_judge(request, len(request))


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
        (b"GET / HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /statusx HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"GET /STATUS HTTP/1.1\r\nHost: b\r\n\r\n", NOT_FOUND),
        (b"POST /status HTTP/1.1\r\nHost: b\r\n\r\n", METHOD),
        (b"get /status HTTP/1.1\r\nHost: b\r\n\r\n", METHOD),
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


def _text(lib, room):
    lib.text_in.restype = Text
    buffer = ctypes.create_string_buffer(room)
    text = lib.text_in(buffer, ctypes.c_size_t(room))
    return buffer, text


@pytest.mark.parametrize(
    ("status", "extra"), [(200, ""), (404, ""), (405, "Allow: GET\r\n"), (431, ""), (500, "")]
)
def test_response_heads(lib, status, extra):
    buffer, text = _text(lib, 192)
    lib.http_head(ctypes.byref(text), status, ctypes.c_size_t(1234))
    head = buffer.raw[: text.length].decode()
    assert not text.overflow
    assert head.startswith(f"HTTP/1.1 {status} ")
    assert extra in head
    assert re.search(r"\r\nConnection: close\r\nContent-Length: +1234\r\n\r\n$", head)
    assert len(head) % 4 == 0


def _status(lib, entries, room=4096):
    words = {0x100: 7, 0x104: 1 << 31, 0x108: 5, 0x10C: 2, 0x110: 2**32 - 1}
    table = (Entry * max(1, len(entries)))(*(Entry(*entry) for entry in entries))
    info = Info(b"0.1.0", b'si"m\n', 123456, b"power", 0)
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
