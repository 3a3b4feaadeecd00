"""Files of a card that are sent while they are loaded into memory (``firmware/web_follow.c``).

The board of the test holds every byte that is in flight against what was posted, at each turn.
Jobs of the drive have 4 KiB here, so that files of this memory take several.
"""

import random

import pytest
from streams import make_rng, seeds
from trebuchet.models.http.response import Object
from trebuchet.models.http.slow import respond
from web_card_lib import BUSY, Board, build_card, some_files, volume

JOB_BLOCKS = 8
JOB = 512 * JOB_BLOCKS
LONG, OTHER = b"/long.txt", b"/other.txt"
FOREVER = 1 << 30


@pytest.fixture(scope="module")
def library(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("follow")
    return build_card(root, folder, f"-DCACHE_JOB_BLOCKS={JOB_BLOCKS}u")


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """Files, none of which is larger than the memory, and their image."""
    files = some_files(5, 6)
    del files[b"/large.txt"]
    rng = random.Random(6)
    files |= {LONG: rng.randbytes(50_001), OTHER: rng.randbytes(45_056)}
    return files, volume(tmp_path_factory.mktemp("cards"), "card", files)


@pytest.fixture
def board(library, card):
    made = Board(library)
    made.insert(card[1])
    made.until("serving")
    return made


def load_some(board, size, session=1, path=LONG):
    """Ask for a file, and wait until at least ``size`` bytes of the response were sent."""
    board.send(session, path)
    while len(board.answers.get(session, b"")) < size:
        board.turn()


def check_cut(board, session, content):
    """The response ended early, and the connection with it; what came is right."""
    assert session in board.closed
    head, _, out = board.answers[session].partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: %d\r\n" % len(content) in head
    assert len(out) < len(content)
    assert content.startswith(out)


def finished(board):
    """Nothing was written outside of the files' memory; nothing is in flight for ever."""
    board.delays = {}
    for flight in board.flights:
        flight.due = 0
    for _ in range(10):
        board.turn()
    assert not board.flights
    assert board.registers["buffers"] == 0
    assert board.get("outside") == 0


@pytest.mark.parametrize("latency", [0, 3, 50])
def test_the_first_bytes_leave_before_the_last_block_is_read(board, card, latency):
    files, image = card
    board.set("latency", latency)
    first = image.index(files[LONG][:512]) // 512
    load_some(board, 1)
    assert board.get("end") <= first + 3 * JOB_BLOCKS
    (out,) = board.finish(1)
    assert out.partition(b"\r\n\r\n")[2] == files[LONG]
    loads = board.command()["loads"]
    assert board.content(LONG) == files[LONG]  # as gateware finds it then
    assert board.command()["loads"] == loads == "1"
    finished(board)


REQUESTS = [
    (b"GET", b""),
    (b"HEAD", b""),
    (b"GET", b"Connection: close\r\n"),
    (b"GET", b"If-None-Match: %(tag)s\r\n"),
    (b"GET", b'If-Match: "a"\r\n'),
    (b"GET", b"If-Match: %(tag)s\r\n"),
    (b"GET", b"Range: bytes=%(size)d-\r\n"),
    (b"GET", b"Range: bytes=0-0\r\n"),
    (b"GET", b"Range: bytes=40001-45000\r\nConnection: close\r\n"),
    (b"GET", b"Range: bytes=-1\r\n"),
    (b"HEAD", b"Range: bytes=5-9\r\n"),
]


@pytest.mark.parametrize("wait", [0, 40, 90])
def test_as_the_model_answers(library, card, wait):
    """Each kind of request while the file is loaded for another client, byte for byte."""
    files, image = card
    board = Board(library)
    board.insert(image)
    board.until("serving")
    board.send(1, LONG, b"HEAD")
    tag = board.finish(1)[0].partition(b'ETag: "')[2][:16]
    known = Object(files[LONG], b"text/plain; charset=utf-8", int(tag, 16))
    evicting = [OTHER, *(b"/data/%02d" % k for k in range(6))]
    for method, fields in REQUESTS:
        for path in evicting:
            assert board.content(path) == files[path]
        board.set("latency", 6)
        board.send(1, LONG)
        for _ in range(wait):
            board.turn()
        some = fields % {b"tag": b'"%s"' % tag, b"size": len(files[LONG])}
        board.send(2, LONG, method, some)
        first, second = board.finish(1, 2)
        board.set("latency", 0)
        assert first.endswith(files[LONG])
        head = b"%s %s HTTP/1.1\r\nHost: h\r\n%s\r\n" % (method, LONG, some)
        model = respond(head, {LONG: known}.get)
        header, body = model.prepared
        assert second == header + (b"" if method == b"HEAD" else body), some
        assert (2 in board.closed) == model.close
    assert int(board.command()["loads"]) > len(REQUESTS)
    finished(board)


@seeds(6)
def test_many_clients(board, card, seed):
    """For the same file and others, slow and fast; some of them vanish."""
    rng = make_rng(seed, "clients")
    files, _ = card
    paths = [LONG, LONG, OTHER, OTHER, b"/one", *(b"/data/%02d" % k for k in range(6))]
    board.set("latency", rng.choice([0, 5, 30]))
    for _ in range(6):
        board.delays = {k: rng.choice([0, 1, 40, 300]) for k in range(8)}
        asked, gone = {k: rng.choice(paths) for k in range(rng.randint(2, 8))}, set()
        for session, path in asked.items():
            board.send(session, path)
            for _ in range(rng.randrange(80)):
                board.turn()
            if rng.random() < 0.2:
                board.vanish(session)
                gone.add(session)
        board.finish(*asked)
        for session in asked.keys() - gone:
            out = board.answers[session].partition(b"\r\n\r\n")[2]
            assert out == files[asked[session]], (session, asked[session])
    board.finish()
    finished(board)


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9])
def test_the_medium_goes(board, card, share):
    """The response ends there; others are as before, and the file when the medium is back."""
    files, image = card
    assert board.content(b"/one") == files[b"/one"]
    board.set("latency", 8)
    load_some(board, share * len(files[LONG]))
    board.insert(None)
    board.finish(1)
    check_cut(board, 1, files[LONG])
    assert board.content(b"/one") == files[b"/one"]
    assert board.ask(LONG) == [BUSY]
    assert "the medium was removed" in board.log()
    board.insert(image)
    board.turn()
    board.until("serving")
    assert board.content(LONG) == files[LONG]
    finished(board)


@pytest.mark.parametrize("bad", [0, JOB_BLOCKS, 60, 97])
def test_a_block_that_cannot_be_read(board, card, bad):
    """503 if it is in the first job, else the response ends there; nothing wrong is sent."""
    files, image = card
    assert board.content(b"/one") == files[b"/one"]
    board.set("bad", image.index(files[LONG][:512]) // 512 + bad)
    board.set("latency", 5)
    for session in (1, 2):
        board.send(session, LONG)
    for session, out in zip((1, 2), board.finish(1, 2), strict=True):
        if bad < JOB_BLOCKS:
            assert out == BUSY
        else:
            check_cut(board, session, files[LONG])
    assert "a file could not be loaded" in board.log()
    assert board.content(b"/one") == files[b"/one"]
    assert board.content(OTHER) == files[OTHER]
    board.set("bad", 0xFFFFFFFF)
    assert board.content(LONG) == files[LONG]
    finished(board)


def test_memory_of_a_load_that_failed_is_kept_while_it_is_sent(board, card):
    """A client that does not acknowledge holds it; the board sees that it does not change."""
    files, image = card
    board.set("bad", image.index(files[LONG][:512]) // 512 + 60)
    board.delays[1] = FOREVER
    load_some(board, 3 * JOB)
    for _ in range(200):
        board.turn()
    assert board.flights
    board.set("bad", 0xFFFFFFFF)
    paths = [OTHER, *(b"/data/%02d" % k for k in range(6))]
    for session, path in enumerate(paths, 2):
        board.send(session, path)
    for _ in range(3000):
        board.turn()
    assert len(board.waiting) > 1  # else memory that is being sent was given to other files
    for flight in board.flights:
        flight.due = 0
    board.delays = {}
    board.finish()
    for session, path in enumerate(paths, 2):
        assert board.answers[session].endswith(files[path])
    check_cut(board, 1, files[LONG])
    finished(board)


def test_a_client_that_reads_nothing(board, card):
    """It is given what four descriptors hold; others have the file, and it the rest later."""
    files, _ = card
    board.delays[1] = FOREVER
    board.set("latency", 4)
    load_some(board, 1)
    for _ in range(400):
        board.turn()
    assert len(board.answers[1]) < len(files[LONG])
    for session, path in ((2, LONG), (3, b"/data/00")):
        board.send(session, path)
        assert board.finish(session)[0].endswith(files[path])
    board.delays = {}
    for flight in board.flights:
        flight.due = 0
    assert board.finish(1)[0].endswith(files[LONG])
    finished(board)


def test_a_drive_that_hangs(board, card):
    """The connection is closed after thirty seconds."""
    files, _ = card
    board.set("latency", 4)
    load_some(board, JOB)
    board.set("latency", 0xFFFFFFFF)
    board.finish(1, turns=90_000)
    check_cut(board, 1, files[LONG])
