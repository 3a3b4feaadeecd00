"""The firmware's files of a card as a library of the host, with a drive, media and clients."""

import ctypes
import random
import subprocess
from dataclasses import dataclass, field

from firmware_host import generated
from firmware_lib import FLAGS, RAM, SANITIZE, map_memory
from manage_lib import bus_functions, write_headers
from trebuchet.cores.web.desk import BUFFERS, DESK_REGISTERS
from trebuchet.cores.web.registers import web_block
from trebuchet.models.fat import geometry, make_volume, survey
from trebuchet.models.http.image import LAYOUT
from trebuchet.models.http.limits import LIMITS
from trebuchet.models.http.request import Verdict
from trebuchet.models.http.response import prepared
from trebuchet.soc.csr_export import register_offsets

__all__ = ["BUSY", "HALF", "MEMORY", "Board", "build_card", "image_of", "some_files", "volume"]

BUSY = prepared(Verdict.UNAVAILABLE).sent()
WEB_BASE = 0xF000_7000
MEMORY, HALF, RING = RAM + 0x80000, 0x20000, 1 << 14
SOURCES = "web web_image web_slow web_request web_body web_answer crc32 text"
CARD = "web_card web_card_rows web_blocks web_follow web_pieces"
STORE = "cache catalogue fat fat_folder"
BLOCK = web_block(None, DESK_REGISTERS)
_SOC = f"""
#define TREBUCHET_WEB_PORT 8000
#define TREBUCHET_WEB_MEMORY {MEMORY:#x}u
#define TREBUCHET_WEB_LAYOUT {LAYOUT}
#define TREBUCHET_WEB_HEADERS {BUFFERS}
#define TREBUCHET_WEB_RING {RING}u
#define TREBUCHET_WEB_HEAD {LIMITS.head + 2}u
#define TREBUCHET_DRIVE_BASE 0xf0008000u
"""


def build_card(root, folder, *options, half=HALF):
    """The firmware's files of a card as a library, in a folder; ``options`` are the compiler's."""
    soc = f"{_SOC}#define TREBUCHET_WEB_HALF {half:#x}u\n"
    write_headers(folder, soc, [(BLOCK, WEB_BASE)])
    include = generated(folder / "store")
    path = folder / "card.so"
    firmware = root / "firmware"
    sources = [firmware / f"{name}.c" for name in (SOURCES + " " + CARD).split()]
    sources += [firmware / "store" / f"{name}.c" for name in STORE.split()]
    command = ["gcc", *FLAGS, *options, "-Wno-pointer-to-int-cast", *SANITIZE, "-fPIC", "-shared"]
    command += ["-I", folder, "-I", include, "-I", firmware, "-o", path, *sources]
    subprocess.run([*command, root / "tests" / "web_card_host.c"], check=True)
    map_memory(max(1 << 20, MEMORY - RAM + 2 * half))
    return path


class Words(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint),
        ("word", ctypes.c_char_p * 8),
        ("line", ctypes.c_char * 128),
    )


class Text(ctypes.Structure):
    _fields_ = (
        ("start", ctypes.c_char_p),
        ("length", ctypes.c_size_t),
        ("room", ctypes.c_size_t),
        ("overflow", ctypes.c_bool),
    )


@dataclass(eq=False)
class Flight:
    """Bytes that were posted, from a buffer if ``bit``; acknowledged from ``due`` on."""

    session: int
    bit: int
    address: int
    data: bytes = field(repr=False)
    due: int
    epoch: int


class Board:
    """The firmware, the service's registers, and a drive; requests as the desk shows them."""

    def __init__(self, path, half=HALF):
        self.top = MEMORY + 2 * half
        self.library = ctypes.CDLL(str(path))
        self.registers = dict.fromkeys((r.name for r in BLOCK.registers), 0)
        self.names = {WEB_BASE + at: name for name, at in register_offsets(BLOCK).items()}
        self.replies, self.waiting, self.kept = [], [], None
        self.answers, self.closed = {}, set()
        self.flights, self.delays = [], {}
        self.longest = 0
        self.switch_left = self.epoch = 0
        bus_functions(self.library, self.read, self.write)
        self.set("low", MEMORY)
        self.set("high", self.top)
        self.library.web_finish.restype = ctypes.c_uint8
        for name in ("web_begins", "web_step"):
            getattr(self.library, name).restype = ctypes.c_bool
        self.library.web_card_start()

    def set(self, name, value, kind=ctypes.c_uint32):
        kind.in_dll(self.library, f"host_{name}").value = value

    def get(self, name, kind=ctypes.c_uint32):
        return kind.in_dll(self.library, f"host_{name}").value

    def log(self):
        """All lines so far, of earlier boards of this library, too."""
        return (ctypes.c_char * (1 << 16)).in_dll(self.library, "host_log").value.decode()

    def insert(self, image):
        """Another medium, or None."""
        self.kept = None if image is None else ctypes.create_string_buffer(image, len(image))
        self.set("sectors", 0 if image is None else len(image) // 512)
        pointer = None if image is None else ctypes.cast(self.kept, ctypes.c_void_p).value
        self.set("image", pointer, ctypes.c_void_p)
        self.set("changed", True, ctypes.c_bool)

    def read(self, address):
        name = self.names[address]
        if name == "switching" and self.switch_left:
            self.switch_left -= 1
            self.registers["switching"] = int(self.switch_left > 0)
            self.epoch += self.switch_left == 0
        if name == "held":
            return self.registers[name] + sum(f.epoch != self.epoch for f in self.flights)
        return self.registers[name]

    def write(self, address, value):
        name = self.names[address]
        self.registers[name] = value
        if name == "switch":
            assert not self.registers["switching"]
            self.switch_left = self.registers["switching"] = 3
        if name == "reply":
            assert value & 1
            self.registers["request"] = 0
            self.replies.append(value)

    def turn(self):
        """A turn of the event loop, with the oldest request, if one waits."""
        self.set("ms", self.get("ms") + 1)
        self._acknowledge()
        shown = next((r for r in self.waiting if self._flying(r[0]) < 4), None)
        if shown is not None:
            self.waiting.remove(shown)
            self._show(*shown)
        self.library.web_serve()
        before = self.get("jobs")
        self.library.web_card_serve()
        assert self.get("jobs") <= before + 1
        if shown is not None:
            self._take(*shown)

    def _flying(self, session):
        return sum(flight.session == session for flight in self.flights)

    def _show(self, session, payload, first):
        ctypes.memmove(RAM + session * RING, payload, len(payload))
        self.registers["request"] = 1 | first << 1 | len(payload) << 8
        self.registers["request_session"] = session
        self.registers["request_address"] = RAM + session * RING

    def _take(self, session, payload, first):
        if not self.replies:  # it is shown until it is answered
            self.waiting.insert(0, (session, payload, first))
            self.registers["request"] = 0
            return
        reply = self.replies.pop()
        used = reply >> 8
        if not reply & 4 or reply & 8:
            self.answers[session] = self.answers.get(session, b"") + self._answer(session, reply)
        if reply & 4:
            assert used < len(payload)
            self.waiting.append((session, payload[used:], 0))
            return
        assert used == len(payload)
        if reply & 2:
            self.closed.add(session)

    def _answer(self, session, reply):
        registers = self.registers
        address, buffer = registers["reply_address"], reply >> 4 & 15
        if buffer:
            if not MEMORY <= address < self.top:
                address |= ctypes.cast(self.library.web_serve, ctypes.c_void_p).value & ~0xFFFFFFFF
            bit = 1 << buffer - 1
            assert not registers["buffers"] & bit
            registers["buffers"] |= bit
        out = self._post(session, bit if buffer else 0, address, registers["reply_length"])
        assert sum(f.session == session and f.bit != 0 for f in self.flights) <= 4
        if registers["reply_rest"]:
            at, length = registers["reply_rest_address"], registers["reply_rest"]
            assert at >= MEMORY
            assert at + length <= self.top
            out += self._post(session, 0, at, length)
        return out

    def _post(self, session, bit, address, length):
        """These bytes are in flight; an empty part is not."""
        assert length < 1 << 20 or not bit
        out = ctypes.string_at(address, length) if length else b""
        if length:
            due = self.get("ms") + self.delays.get(session, 1)
            self.flights.append(Flight(session, bit, address, out, due, self.epoch))
        return out

    def _acknowledge(self):
        """What is in flight must not have changed; some of it is acknowledged, in order."""
        held = set()
        for flight in list(self.flights):
            assert ctypes.string_at(flight.address, len(flight.data)) == flight.data
            if flight.due <= self.get("ms") and flight.session not in held:
                self.registers["buffers"] &= ~flight.bit
                self.flights.remove(flight)
            else:
                held.add(flight.session)

    def vanish(self, session):
        """The session ends: it is not shown any more, and nothing of it is in flight."""
        self.waiting = [request for request in self.waiting if request[0] != session]
        for flight in self.flights:
            flight.due = 0 if flight.session == session else flight.due

    def send(self, session, path, method=b"GET", fields=b""):
        """A request, which turn() shows."""
        self.answers.pop(session, None)
        self.closed.discard(session)
        head = b"%s %s HTTP/1.1\r\nHost: h\r\n%s\r\n" % (method, path, fields)
        self.waiting.append((session, head, 1))

    def finish(self, *sessions, turns=60_000):
        """Until none of them waits, or nothing does; what they got."""
        wanted = sessions or {session for session, _, _ in self.waiting}
        while any(session in wanted for session, _, _ in self.waiting):
            self.turn()
            turns -= 1
            assert turns, self.command()
        return [self.answers.get(session) for session in sorted(wanted)]

    def ask(self, *paths, turns=20_000):
        """The answers to requests for the paths, each of another session."""
        self.answers = {}
        for session, path in enumerate(paths):
            head = b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path
            self.waiting.append((session, head, 1))
        while self.waiting:
            self.turn()
            turns -= 1
            assert turns, self.command()
        return [self.answers[k] for k in range(len(paths))]

    def content(self, path):
        head, _, content = self.ask(path)[0].partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n"), head
        return content

    def command(self, *words):
        room = ctypes.create_string_buffer(1024)
        text = Text(ctypes.cast(room, ctypes.c_char_p), 0, 1024, False)
        said = Words(1 + len(words), (ctypes.c_char_p * 8)(b"card", *words))
        assert self.library.web_card_command(ctypes.byref(said), ctypes.byref(text)) == 0
        rows = room.raw[: text.length].decode().splitlines()
        return dict(row.split(" ", 1) for row in rows)

    def until(self, state, turns=20_000):
        while (said := self.command())["state"] != state:
            self.turn()
            turns -= 1
            assert turns, said
        return said


def volume(folder, name, files):
    """The image of a card."""
    tree = folder / name
    for path, data in files.items():
        (tree / path[1:].decode()).parent.mkdir(parents=True, exist_ok=True)
        (tree / path[1:].decode()).write_bytes(data)
    return image_of(folder, name)


def image_of(folder, name):
    """The image of a card with the files of ``folder / name``."""
    found, path = survey(folder / name), folder / f"{name}.img"
    with path.open("wb") as out:
        make_volume(out, found, geometry(found, None, None))
    return path.read_bytes()


def some_files(seed, count=12):
    rng = random.Random(seed)
    files = {b"/data/%02d" % k: rng.randbytes(rng.randint(8_000, 20_000)) for k in range(count)}
    sizes = {
        b"/empty": 0,
        b"/one": 1,
        b"/page.html": 1461,
        b"/large.txt": 3 * HALF + 77,
        b"/index.html": 90,
    }
    return files | {path: rng.randbytes(size) for path, size in sizes.items()}
