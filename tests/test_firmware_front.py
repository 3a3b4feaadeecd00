"""The page at `/`: what a browser shows of the counters, and that it asks nobody but the board."""

import http.server
import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager

import pytest
from serving import serving_by
from trebuchet.soc.firmware import FIRMWARE_DIR, front_page_header

PAGE = FIRMWARE_DIR / "front.html"
#: What firmware/mailbox.h and http.h leave for a page.
ROOM = 4096 - 192
STATUS = {
    "version": "1.2.3",
    "board": "simulated <b>",
    "uptime_ms": 61_000,
    "start": "power-up",
    "restarts": 3,
    "registers": "0123",
    "sessions": 1234,
    "engines": {
        "tcp": {"sessions_used": 1234, "bytes": 5_000_000_000, "resets": 0},
        "ecg": {"jobs": 1000, "cycles": 77},
    },
}


def test_the_page_fits_the_mailbox_and_comes_whole():
    page = PAGE.read_bytes()
    assert page.isascii()
    assert len(page) <= ROOM
    header = front_page_header()
    words = re.findall(r"^\t0x([0-9a-f]{8}),$", header, re.MULTILINE)
    content = b"".join(int(word, 16).to_bytes(4, "little") for word in words)
    size = int(re.search(r"FRONT_PAGE_BYTES (\d+)u", header)[1])
    assert content[:size] == page
    assert len(content) - size < 4


def test_nothing_comes_from_elsewhere():
    page = PAGE.read_text()
    assert "//" not in page
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["data:,", "/status"]
    assert re.findall(r'fetch\("([^"]*)"', page) == ["/status"]
    assert "innerHTML" not in page  # names and versions are shown as text


def test_what_the_page_reads_is_what_the_firmware_writes():
    read = set(re.findall(r"\bd\.(\w+)", PAGE.read_text()))
    source = (FIRMWARE_DIR / "status.c").read_text()
    written = set(re.findall(r'\\"(\w+)\\":', source))
    assert read - {"error"} == {
        "board",
        "version",
        "uptime_ms",
        "start",
        "restarts",
        "sessions",
    } | {"engines"}
    assert read - {"error"} <= written
    assert '{\\"error\\":' in (FIRMWARE_DIR / "http.c").read_text()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="Chromium is not installed (apt-get install chromium)"
)


class Board(http.server.BaseHTTPRequestHandler):
    """Answers as the firmware does; counters grow by 500 jobs with each look."""

    looks = 0
    gone_after = 1000
    asked: list[str] = []

    def do_GET(self):  # noqa: N802 - the library's name
        kind, body = "text/html", PAGE.read_bytes()
        type(self).asked.append(self.path)
        if self.path == "/status":
            type(self).looks += 1
            if self.looks > self.gone_after:
                self.close_connection = True
                return
            status = json.loads(json.dumps(STATUS))
            status["engines"]["ecg"]["jobs"] += 500 * self.looks
            status["uptime_ms"] += 2000 * self.looks
            kind, body = "application/json", json.dumps(status).encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def board(**values):
    handler = type("Handler", (Board,), {"asked": [], **values})
    with serving_by(handler) as address:
        yield f"http://{address}/", handler


def browse(folder, *options):
    """What Chromium prints. Its clock is virtual: time passes as soon as nothing is outstanding."""
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=9000",
    ]
    command += [f"--user-data-dir={folder / 'profile'}", "--disable-dev-shm-usage", *options]
    environment = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=environment, check=True
    )
    return done.stdout


def text_of(dom):
    body = dom.partition("</style>")[2].partition("<script")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", body))


@needs_chromium
@pytest.mark.slow
def test_a_browser_shows_what_the_board_counts(tmp_path):
    with board() as (address, handler):
        shown = text_of(browse(tmp_path, "--dump-dom", address))
    assert "simulated &lt;b&gt; live version 1.2.3, up " in shown
    assert "started by power-up, 3 restarts, 1,234 TCP sessions" in shown
    jobs = re.search(r"role jobs per second ecg ([\d,]+) ([\d,]+)", shown)
    assert int(jobs[1].replace(",", "")) == 1000 + 500 * handler.looks
    assert handler.looks >= 2
    assert int(jobs[2].replace(",", "")) > 0
    assert "tcp.bytes 5,000,000,000 0" in shown
    assert "tcp.resets" not in shown
    assert set(handler.asked) == {"/", "/status"}


@needs_chromium
@pytest.mark.slow
def test_a_browser_says_that_the_board_is_gone(tmp_path):
    with board(gone_after=1) as (address, _):
        dom = browse(tmp_path, "--dump-dom", address)
    assert "no answer: " in text_of(dom)
    assert '<body class="off">' in dom
    assert "1,500" in dom  # the last that it said stays


@needs_chromium
@pytest.mark.slow
def test_a_screenshot(tmp_path):
    picture = tmp_path / "front.png"
    with board() as (address, _):
        browse(tmp_path, f"--screenshot={picture}", "--window-size=800,700", address)
    assert picture.read_bytes().startswith(b"\x89PNG")
