"""Images of files for a board: the firmware's check of them, what the host sends, plans."""

import ctypes
import struct
import subprocess

import pytest
from trebuchet.client.management import Reply
from trebuchet.host.web import load_files, web_state
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.http.image import LAYOUT, Image
from trebuchet.models.http.load import HEADER_BYTES, pack
from trebuchet.models.http.response import Object
from trebuchet.models.plan import Plan, PlanError, ServiceEntry, load_plan
from trebuchet.models.status import Status
from trebuchet.soc.firmware import status_codes_header
from trebuchet.soc.plans import plan_of

BASE, ROOM = 0x40810000, 0x8000
OBJECTS = {b"/%d" % k: Object(b"%d" % k, b"text/plain", k) for k in range(20)}
_FIELDS = ("layout", "base", "length", "index", "buckets", "paths", "checksum")


class Room(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in ("layout", "base", "bytes")]


@pytest.fixture(scope="module")
def judge(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("web")
    (folder / "generated").mkdir()
    (folder / "generated" / "trebuchet_status_codes.h").write_text(status_codes_header())
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", f"-I{folder}"]
    flags += ["-fsanitize=undefined", "-fno-sanitize-recover=undefined", "-static-libubsan"]
    source = root / "firmware" / "web_image.c"
    subprocess.run(["gcc", *flags, "-o", folder / "web.so", source], check=True)
    library = ctypes.CDLL(str(folder / "web.so"))
    library.web_judge.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Room)]
    library.web_judge.restype = ctypes.c_uint8

    def judge(data):
        return Status(library.web_judge(data, len(data), Room(LAYOUT, BASE, ROOM)))

    return judge


def changed(data, **fields):
    """The image with other numbers in its header."""
    values = dict(zip(_FIELDS, struct.unpack_from("<7I", data, 4), strict=True)) | fields
    return data[:4] + struct.pack("<7I", *values.values()) + data[HEADER_BYTES:]


def test_header(judge):
    image = Image(OBJECTS, BASE, ROOM)
    data = pack(image)
    assert data[:4] == b"TBWI"
    assert image.paths == 20
    assert judge(data) == Status.OK
    assert judge(data[:-1]) == Status.TRUNCATED
    assert judge(data[:HEADER_BYTES]) == Status.TRUNCATED
    assert judge(data + b"\0") == Status.BAD_LENGTH
    assert judge(changed(data, layout=LAYOUT ^ 1)) == Status.WRONG_BOARD
    assert judge(changed(data, base=BASE - ROOM)) == Status.STALE
    large = data.ljust(HEADER_BYTES + ROOM, b"\0")
    assert judge(changed(large, length=ROOM)) == Status.OK
    assert judge(changed(large + b"\0", length=ROOM + 1)) == Status.TOO_LARGE


@pytest.mark.parametrize(
    "fields",
    [
        {"buckets": 0},
        {"buckets": 3},
        {"buckets": 1 << 31},
        {"buckets": 1 << 26},  # whose bytes are 2**32
        {"buckets": 512},
        {"index": BASE - 64},
        {"index": BASE + 1},
        {"index": BASE + ROOM},
        {"index": 0},
        {"index": 0xFFFFFFC0},
    ],
)
def test_index_outside_the_image(judge, fields):
    """The gateware must not read elsewhere."""
    assert judge(changed(pack(Image(OBJECTS, BASE, ROOM)), **fields)) == Status.BAD_DATA


class FakeBoard:
    """Answers the command ``web``, and keeps what it is configured with."""

    def __init__(self, text, status=Status.OK):
        self.reply, self.sent = Reply(status, text), None

    def ask(self, line):
        assert line == "web"
        return self.reply

    def configure(self, configuration, timeout):
        assert timeout > 60
        self.sent = configuration


def rows(**changes):
    state = {"port": 80, "enabled": 0, "held": 0, "next": BASE, "room": ROOM, "layout": LAYOUT}
    return "".join(f"{name} {value}\n" for name, value in (state | changes).items())


def test_load_files(tmp_path):
    (tmp_path / "index.html").write_text("x")
    board = FakeBoard(rows())
    image = load_files(board, "b", tmp_path)
    assert board.sent.bitstream == pack(image)
    assert image.base == BASE
    assert image.find(b"/")


@pytest.mark.parametrize(
    ("board", "message"),
    [
        (FakeBoard("", Status.UNKNOWN_COMMAND), "b has no web service; build it with one"),
        (FakeBoard("", Status.BUSY), "b answered BUSY"),
        (FakeBoard("port x\n"), "b described its web service with 'port x'"),
        (FakeBoard("port 80\n"), "b did not say 'enabled' of its web service"),
        (FakeBoard(rows(layout=1)), "use the trebuchet that it was built with"),
        (FakeBoard(rows(held=3)), "still sends 3 responses"),
        (FakeBoard(rows(room=4096)), "more than the 4096 bytes"),
    ],
)
def test_boards_that_cannot(tmp_path, board, message):
    (tmp_path / "x").write_bytes(bytes(5000))
    with pytest.raises(TrebuchetError, match=message):
        load_files(board, "b", tmp_path)
    assert board.sent is None
    assert web_state(FakeBoard(rows()), "b")["room"] == ROOM


# --- plans ---------------------------------------------------------------------------------------


def test_plans(tmp_path):
    entry = ServiceEntry.parse("8000=web:memory=131072,lanes=2")
    assert entry == ServiceEntry(port=8000, framing="web", options={"memory": 131072, "lanes": 2})
    assert hash(entry) != hash(ServiceEntry.parse("8000=web"))
    usual = ServiceEntry.parse("80=web")
    assert (usual.option("memory"), usual.option("lanes")) == (1 << 21, 1)
    path = tmp_path / "plan.toml"
    path.write_text('[[service]]\nport = 8000\nframing = "web"\nlanes = 2\nmemory = 131072\n')
    assert load_plan(path).services == (entry,)
    plan = plan_of(services=("+8000=web:memory=131072,lanes=2",), board="sim")
    assert plan.services == tuple(sorted((*plan_of_board(), entry), key=lambda s: s.port))
    assert plan.roles
    assert plan.describe()["services"][-2] == [8000, "web", None, {"lanes": 2, "memory": 131072}]
    plan = plan_of(roles=("none",), services=("+8000=web",), board="sim")
    assert plan.roles == ()
    assert [s.framing for s in plan.services] == ["echo", "discard", "http", "smp", "web", "page"]


def plan_of_board():
    from trebuchet.boards import load_board

    return load_board("sim").plan.services


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "80=web:memory=100000",
            "memory must be a power of two from 65536 to 268435456, not 10000",
        ),
        ("80=web:memory=true", "memory must be a power of two"),
        ("80=web:lanes=9", "port 80: lanes must be 1 to 8, not 9"),
        ("80=web:size=9", "port 80: it may have memory, lanes, not size"),
        ("80=web:lanes", "a service must be PORT= and web or web:KEY=VALUE"),
    ],
)
def test_wrong_options(text, message):
    with pytest.raises(PlanError, match=message):
        ServiceEntry.parse(text)


def test_only_web_has_options():
    with pytest.raises(PlanError, match="port 7: only framing web has options, not lanes"):
        ServiceEntry(port=7, framing="echo", options={"lanes": 1})
    with pytest.raises(TrebuchetError, match="all services with \\+"):
        plan_of(services=("+80=web", "7=echo"), board="sim")
    with pytest.raises(PlanError, match="only smp may be on several TCP ports, not web on 80, 81"):
        Plan((), (ServiceEntry.parse("80=web"), ServiceEntry.parse("81=web")))
