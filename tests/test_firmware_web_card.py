"""The firmware's files of a card: a slow drive, one with faults, media that come and go."""

import ctypes
import random

import pytest
from store_images import Volume
from streams import make_rng, seeds
from trebuchet.models.http.image import Image
from trebuchet.models.http.load import pack
from trebuchet.models.http.request import Verdict
from trebuchet.models.http.response import Object, prepared
from trebuchet.models.status import Status
from web_card_lib import BUSY, HALF, MEMORY, Board, build_card, some_files, volume


@pytest.fixture(scope="module")
def library(root, tmp_path_factory):
    return build_card(root, tmp_path_factory.mktemp("card"))


@pytest.fixture
def board(library):
    return Board(library)


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cards")
    made = [(some_files(k), f"card{k}") for k in range(2)]
    return [(files, volume(folder, name, files)) for files, name in made]


@seeds(3)
def test_files_are_loaded_when_they_are_asked_for(board, cards, seed):
    """In any order, several at a time, from a drive of any speed; gateware lags, too."""
    rng = make_rng(seed, "requests")
    files, image = cards[0]
    board.set("latency", rng.choice([0, 3, 40]))
    board.insert(image)
    board.until("serving")
    paths = sorted(files.keys() - {b"/large.txt"})
    for _ in range(30):
        some = rng.choices(paths, k=rng.randint(1, 8))
        board.registers["held"] = rng.choice([0, 0, 1])
        for path, out in zip(some, hold(board, rng, some), strict=True):
            assert out.endswith(b"\r\n\r\n" + files[path]), path
    assert board.content(b"/") == files[b"/index.html"]
    said = board.command()
    assert int(said["evictions"]) > 0
    assert int(said["errors"]) == 0
    assert board.get("outside") == 0
    assert board.ask(b"/none", b"/none/") == [prepared(Verdict.NOT_FOUND, False).sent()] * 2


def hold(board, rng, paths):
    """Ask while responses of the epoch before are not acknowledged, and then are."""
    board.answers = {}
    for session, path in enumerate(paths):
        board.waiting.append((session, b"GET %s HTTP/1.1\r\nHost: h\r\n\r\n" % path, 1))
    for _ in range(rng.randint(0, 300)):
        board.turn()
    board.registers["held"] = 0
    turns = 30_000
    while board.waiting:
        board.turn()
        turns -= 1
        assert turns, board.command()
    return [board.answers[k] for k in range(len(paths))]


def test_more_requests_than_can_wait(board, cards):
    files, image = cards[0]
    board.set("latency", 50)
    board.insert(image)
    board.until("serving")
    answers = board.ask(*[b"/data/%02d" % k for k in range(11)])
    good = [out.endswith(files[b"/data/%02d" % k]) for k, out in enumerate(answers)]
    assert good.count(True) == 8
    assert answers.count(BUSY) == 3
    head = b"HEAD /data/11 HTTP/1.1\r\nHost: h\r\n\r\n"
    board.answers = {}
    board.waiting = [(0, head, 1)]
    while board.waiting:
        board.turn()
    assert board.answers[0].endswith(b"\r\n\r\n")
    assert b"Content-Length: %d\r\n" % len(files[b"/data/11"]) in board.answers[0]


def test_a_request_is_not_kept_for_ever(board, cards):
    """A drive that hangs: 503 after thirty seconds, and the connection's place is free."""
    _, image = cards[0]
    board.insert(image)
    board.until("serving")
    board.set("latency", 0xFFFFFFFF)
    assert board.ask(b"/one", b"/page.html", turns=80_000) == [BUSY, BUSY]
    assert board.get("ms") >= 30_000


def test_a_sector_that_cannot_be_read(board, cards):
    """503 for its file, all others are served; when it can be read again, so is the file."""
    files, image = cards[0]
    board.insert(image)
    board.until("serving")
    bad = image.index(files[b"/data/04"][:512]) // 512
    board.set("bad", bad)
    assert board.ask(b"/data/04", b"/data/05", b"/data/04")[0] == BUSY
    assert board.content(b"/data/05") == files[b"/data/05"]
    assert int(board.command()["errors"]) >= 1
    board.set("bad", 0xFFFFFFFF)
    assert board.content(b"/data/04") == files[b"/data/04"]


@pytest.fixture(scope="module")
def damaged_cards(tmp_path_factory):
    """Files, and what gives the volume with them, to be damaged.

    Clusters of the files in ``IN`` are those of the FAT's second block.
    """
    folder = tmp_path_factory.mktemp("damaged")
    rng = random.Random(9)
    files = {b"/A.BIN": rng.randbytes(90_000), b"/B.BIN": rng.randbytes(60_000)}
    files |= {b"/IN/%02d.BIN" % k: rng.randbytes(600) for k in range(40)}
    volume(folder, "card", files)
    return files, lambda: Volume(folder / "card.img")


CHAINS = {
    "loop": lambda first: (first + 30, first),
    "loop of one": lambda first: (first + 7, first + 7),
    "free": lambda first: (first + 2, 0),
    "bad": lambda first: (first + 2, 0xFFF7),
    "beyond the volume": lambda first: (first + 2, 0xFFF0),
    "ends early": lambda first: (first + 3, 0xFFFF),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_damaged_chain_is_503(board, damaged_cards, name):
    """With a log line; what was loaded before and other files are served."""
    files, load_volume = damaged_cards
    volume = load_volume()
    volume.link(*CHAINS[name](volume.first(b"A       BIN")))
    lines = board.log().count("a file's chain of clusters is damaged")
    board.insert(bytes(volume.data))
    board.until("serving")
    assert board.content(b"/B.BIN") == files[b"/B.BIN"]
    assert board.ask(b"/A.BIN") == [BUSY]
    assert board.log().count("a file's chain of clusters is damaged") == lines + 1
    said = board.command()
    assert (said["errors"], said["loaded"]) == ("1", "1")
    jobs = board.get("jobs")
    assert board.content(b"/B.BIN") == files[b"/B.BIN"]
    assert board.get("jobs") == jobs  # from memory
    assert board.content(b"/IN/39.BIN") == files[b"/IN/39.BIN"]
    assert board.get("outside") == 0


def test_a_folder_whose_chain_loops(board, damaged_cards):
    """What comes before the loop is served, none twice; with a log line."""
    files, load_volume = damaged_cards
    volume = load_volume()
    first = volume.first(b"IN         ")
    volume.link(first + 1, first)
    check_part_of_folder(board, files, bytes(volume.data))


def test_a_block_of_a_folder_that_cannot_be_read(board, damaged_cards):
    """404 for files behind it; others are served, with a log line."""
    files, load_volume = damaged_cards
    volume = load_volume()
    board.set("bad", volume.at_cluster(volume.first(b"IN         ") + 1) // 512)
    check_part_of_folder(board, files, bytes(volume.data))


def check_part_of_folder(board, files, image):
    lines = board.log().count("folders that cannot be read are left out")
    board.insert(image)
    said = board.until("serving")
    assert said["bad_folders"] == "1"
    assert 0 < int(said["files"]) < len(files)
    assert board.log().count("folders that cannot be read are left out") == lines + 1
    (last,) = board.ask(b"/IN/39.BIN")
    assert last == prepared(Verdict.NOT_FOUND, False).sent()
    for path in (b"/A.BIN", b"/B.BIN", b"/IN/00.BIN"):
        assert board.content(path) == files[path]


@pytest.mark.parametrize("both", [False, True])
def test_a_block_of_the_table_that_cannot_be_read(board, damaged_cards, both):
    """The second table is used; without it, 503 and a log line, and what is in memory is served."""
    files, load_volume = damaged_cards
    volume = load_volume()
    data = bytearray(volume.data)
    if both:  # there is but one
        data[16] = 1
        blocks = int.from_bytes(data[22:24], "little")
        # The root folder begins where the second table was.
        second = 512 * (int.from_bytes(data[14:16], "little") + blocks)
        del data[second : second + 512 * blocks]
        data += bytes(512 * blocks)
    board.insert(bytes(data))
    board.until("serving")
    assert board.content(b"/A.BIN") == files[b"/A.BIN"]
    lines, jobs = len(board.log()), board.get("jobs")
    board.set("bad", int.from_bytes(data[14:16], "little") + 1)
    (out,) = board.ask(b"/IN/39.BIN")
    assert out.endswith(files[b"/IN/39.BIN"]) if not both else out == BUSY
    assert (len(board.log()) > lines) == both
    assert board.get("jobs") > jobs
    assert board.content(b"/A.BIN") == files[b"/A.BIN"]
    assert board.command()["loaded"] == str(2 - both)


def check_files(board, files):
    """All are served, and nothing was written elsewhere."""
    for path in files:
        assert board.content(path) == files[path]
    assert board.get("outside") == 0


def test_media_come_and_go(board, cards):
    files, image = cards[0]
    board.set("latency", 5)
    assert board.until("empty")["files"] == "0"
    board.insert(image)
    board.until("serving")
    first = board.registers["base"]
    assert board.content(b"/one") == files[b"/one"]
    board.insert(None)
    board.until("empty")
    assert board.content(b"/one") == files[b"/one"]
    assert board.ask(b"/page.html") == [BUSY]
    board.insert(image)  # the same again: what is in memory stays
    board.until("serving")
    assert board.registers["base"] == first
    assert board.content(b"/page.html") == files[b"/page.html"]
    files, image = cards[1]
    board.insert(image)
    board.turn()
    board.until("serving")
    assert board.registers["base"] != first
    check_files(board, files)


@seeds(4)
def test_removed_at_any_time(board, cards, seed):
    """And inserted, the same or another, while it is read or files are loaded."""
    rng = make_rng(seed, "media")
    board.set("latency", rng.choice([0, 7]))
    for _ in range(12):
        which = rng.randrange(2)
        board.insert(cards[which][1])
        for _ in range(rng.choice([0, 10, 200, 1000])):
            board.turn()
        for _ in range(rng.randrange(3) if board.registers["enable"] else 0):
            path = b"/data/%02d" % rng.randrange(12)
            out = board.ask(path)[0]
            known = [files[path] for files, _ in cards]
            served = out == BUSY or out.startswith(b"HTTP/1.1 404 ") or not out
            assert served or out.partition(b"\r\n\r\n")[2] in known
        if rng.random() < 0.5:
            board.insert(None)
            for _ in range(rng.choice([0, 1, 50])):
                board.turn()
    files, image = cards[0]
    board.insert(image)
    board.turn()
    board.until("serving")
    check_files(board, files)


@seeds(4)
def test_damaged_volumes(board, cards, seed):
    """A status and a log line, whatever is on the medium; then a good one is served."""
    rng = make_rng(seed, "damage")
    files, image = cards[1]
    for _ in range(5):
        damaged = bytearray(image)
        for _ in range(rng.choice([1, 20, 400])):
            damaged[rng.randrange(min(len(image), 1 << 16))] = rng.randrange(256)
        board.insert(bytes(damaged))
        board.turn()
        turns = 100_000
        while board.command()["state"] not in ("serving", "fault"):
            board.turn()
            turns -= 1
            assert turns
        if board.command()["state"] == "serving":
            board.ask(*rng.sample(sorted(files), 5))
    board.insert(image)
    board.turn()
    board.until("serving")
    assert board.content(b"/data/03") == files[b"/data/03"]
    assert board.get("outside") == 0


def load(board, objects):
    base = board.registers["base"]
    data = pack(Image(objects, MEMORY + HALF if base == MEMORY else MEMORY, HALF))
    for at in range(0, len(data), 1012):
        part = data[at : at + 1012]
        kept = (ctypes.c_uint32 * (len(part) // 4 + 1))()
        ctypes.memmove(kept, part, len(part))
        if at == 0:
            assert board.library.web_begins(kept, ctypes.c_size_t(len(part)))
        board.library.web_take(ctypes.c_uint32(at), kept, ctypes.c_size_t(len(part)))
        board.turn()
    status = Status(board.library.web_finish(ctypes.c_size_t(len(data))))
    while status == Status.OK and not board.library.web_step():
        board.turn()
    return status


@pytest.mark.parametrize("turns", [0, 3, 60, 400, 3000])
def test_an_image_that_is_loaded(board, cards, turns):
    """It is served instead, whatever the card's state; until the card is asked for."""
    files, image = cards[0]
    objects = {b"/page": Object(b"of the image" * 300, b"text/plain", 1)}
    board.insert(image)
    for _ in range(turns):
        board.turn()
    status = load(board, objects)
    assert status == (Status.OK if board.registers["base"] else status)
    if status == Status.OK:
        served = board.command()["state"]
        assert served in ("displaced", "mounting", "waiting", "empty", "serving")
    board.command(b"on")
    board.until("serving")
    assert board.content(b"/data/01") == files[b"/data/01"]
    assert load(board, objects) == Status.OK
    board.until("displaced")
    assert board.content(b"/page") == b"of the image" * 300
    board.command(b"off")
    assert board.command()["state"] == "off"
