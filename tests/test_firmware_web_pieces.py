"""Files of a card that are larger than the memory, sent in pieces (``firmware/web_pieces.c``).

The board of the test holds every byte that is in flight against what was posted, at each turn.
"""

import pytest
from streams import make_rng, seeds
from trebuchet.models.http.response import Object
from trebuchet.models.http.slow import respond
from web_card_lib import BUSY, HALF, MEMORY, Board, build_card, some_files, volume

LARGE, OTHER = b"/large.txt", b"/other/index.html"
FOREVER = 1 << 30


@pytest.fixture(scope="module")
def library(root, tmp_path_factory):
    return build_card(root, tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cards")
    made = []
    for k in range(2):
        files = some_files(k, 4)
        files[OTHER] = files[LARGE][: HALF + 512 * k][::-1]
        made.append((files, volume(folder, f"card{k}", files)))
    return made


@pytest.fixture
def board(library):
    return Board(library)


def begin(board, cards):
    """Serve the first card; its files and image."""
    board.insert(cards[0][1])
    board.until("serving")
    return cards[0]


def drained(board):
    """Nothing is left of streams that ended, once other requests come."""
    board.delays = {}
    for flight in board.flights:
        flight.due = 0
    board.finish()
    for pause in (5000, 0):
        board.set("ms", board.get("ms") + pause)
        board.send(20, LARGE, b"HEAD")
        (head,) = board.finish(20)
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        for _ in range(3):
            board.turn()
    said = board.command()
    assert (said["streams"], said["pieces"]) == ("0", "4"), said
    assert not board.flights
    assert board.registers["buffers"] == 0
    assert board.get("outside") == 0


def tag_of(board, path):
    board.send(21, path, b"HEAD")
    (head,) = board.finish(21)
    return head.partition(b'ETag: "')[2][:16]


REQUESTS = [
    (b"GET", b""),
    (b"HEAD", b""),
    (b"GET", b"Connection: close\r\n"),
    (b"GET", b"If-None-Match: %(tag)s\r\n"),
    (b"GET", b'If-None-Match: "a", W/%(tag)s\r\nConnection: close\r\n'),
    (b"GET", b'If-Match: "a"\r\n'),
    (b"GET", b"If-Match: %(tag)s\r\n"),
    (b"HEAD", b'If-Match: "a"\r\n'),
    (b"GET", b"Range: bytes=%(size)d-\r\n"),
    (b"GET", b"Range: bytes=0-0\r\n"),
    (b"GET", b"Range: bytes=1-\r\nIf-Range: %(tag)s\r\n"),
    (b"GET", b'Range: bytes=1-\r\nIf-Range: "b"\r\n'),
    (b"GET", b"Range: bytes=511-512\r\n"),
    (b"GET", b"Range: bytes=512-3583\r\nConnection: close\r\n"),
    (b"GET", b"Range: bytes=100001-250000\r\n"),
    (b"GET", b"Range: bytes=-1\r\n"),
    (b"GET", b"Range: bytes=-3072\r\n"),
    (b"HEAD", b"Range: bytes=5-9\r\n"),
]


@pytest.mark.parametrize("path", [LARGE, b"/other/"])
def test_as_the_model_answers(board, cards, path):
    """Each kind of request, byte for byte; the connection closes only if it was asked for."""
    files, _ = begin(board, cards)
    content = files[LARGE if path == LARGE else OTHER]
    tag = tag_of(board, path)
    kind = b"text/plain; charset=utf-8" if path == LARGE else b"text/html; charset=utf-8"
    known = Object(content, kind, int(tag, 16))
    for method, fields in REQUESTS:
        some = fields % {b"tag": b'"%s"' % tag, b"size": len(content)}
        board.send(1, path, method, some)
        (out,) = board.finish(1)
        head = b"%s %s HTTP/1.1\r\nHost: h\r\n%s\r\n" % (method, path, some)
        model = respond(head, {path: known}.get)
        header, body = model.prepared
        assert out == header + (b"" if method == b"HEAD" else body), some
        assert (1 in board.closed) == model.close
    assert int(board.command()["errors"]) == 0
    drained(board)


@seeds(4)
def test_many_clients_at_once(board, cards, seed):
    """Large and small files, fast and slow clients, more of them than there are pieces."""
    rng = make_rng(seed, "clients")
    files, _ = begin(board, cards)
    board.set("latency", rng.choice([0, 5]))
    board.delays = {k: rng.choice([0, 1, 40, 300]) for k in range(8)}
    paths = {k: rng.choice([LARGE, LARGE, OTHER, b"/one", b"/data/01"]) for k in range(8)}
    for session, path in paths.items():
        board.send(session, path)
        for _ in range(rng.randrange(60)):
            board.turn()
    board.finish(*paths)
    for session, path in paths.items():
        assert board.answers[session].partition(b"\r\n\r\n")[2] == files[path], path
    drained(board)


def test_a_client_that_reads_nothing(board, cards):
    """It holds its pieces; another large file and small ones are served beside it, for long."""
    files, _ = begin(board, cards)
    board.delays[1] = FOREVER
    board.send(1, LARGE)
    for _ in range(300):
        board.turn()
    assert len(board.answers[1]) < 10_000
    for _ in range(3):
        board.send(2, LARGE)
        board.send(3, b"/data/02")
        board.finish(2, 3)
        assert board.answers[2].endswith(files[LARGE])
        assert board.answers[3].endswith(files[b"/data/02"])
    board.set("ms", board.get("ms") + 100_000)
    board.turn()
    for flight in board.flights:
        flight.due = 0
    board.delays = {}
    board.finish(1)  # it goes on, however long that was
    assert board.answers[1].endswith(files[LARGE])
    drained(board)


def test_more_slow_clients_than_pieces(board, cards):
    """Those beyond wait, and get 503 after thirty seconds; each of the others goes on by itself."""
    files, _ = begin(board, cards)
    for session in range(6):
        board.delays[session] = FOREVER
        board.send(session, LARGE)
    for _ in range(3000):
        board.turn()
    begun = [k for k in range(6) if board.answers.get(k)]
    assert len(begun) == 4
    board.set("ms", board.get("ms") + 30_000)
    board.finish(*{0, 1, 2, 3, 4, 5}.difference(begun))
    assert [board.answers[k] for k in range(6) if k not in begun] == [BUSY] * 2
    board.send(7, b"/data/00")
    assert board.finish(7)[0].endswith(files[b"/data/00"])
    board.delays = {k: FOREVER for k in begun[1:]}
    for flight in board.flights:
        flight.due = 0 if flight.session == begun[0] else flight.due
    board.finish(begun[0])
    assert board.answers[begun[0]].endswith(files[LARGE])
    drained(board)


@seeds(4)
def test_clients_that_vanish(board, cards, seed):
    """At any time: what they held is free again, after what was in flight."""
    rng = make_rng(seed, "vanish")
    files, _ = begin(board, cards)
    for _ in range(10):
        session = rng.randrange(4)
        board.vanish(session)
        board.delays[session] = rng.choice([0, 5, 100])
        board.send(session, rng.choice([LARGE, OTHER]))
        for _ in range(rng.choice([1, 20, 100, 1000])):
            board.turn()
        if rng.random() < 0.5:
            board.vanish(session)
    for session in range(4):
        board.vanish(session)
    board.set("ms", board.get("ms") + 6000)
    board.send(8, LARGE)
    board.finish(8)
    assert board.answers[8].endswith(files[LARGE])
    drained(board)


def check_cut(board, session, content):
    """The response ended early, and the connection with it; what came is right."""
    assert session in board.closed
    head, _, out = board.answers[session].partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: %d\r\n" % len(content) in head
    assert len(out) < len(content)
    assert content.startswith(out)


@pytest.mark.parametrize("share", [0, 0.1, 0.4, 0.7, 0.9])
def test_the_medium_goes(board, cards, share):
    """The response ends there; what is in memory is served; the medium comes back."""
    files, image = begin(board, cards)
    assert board.content(b"/one") == files[b"/one"]
    board.send(1, LARGE)
    while len(board.answers.get(1, b"")) <= share * len(files[LARGE]):
        board.turn()
    board.insert(None)
    board.finish(1)
    check_cut(board, 1, files[LARGE])
    assert board.content(b"/one") == files[b"/one"]
    assert board.ask(LARGE) == [BUSY]
    board.insert(image)
    board.turn()
    board.until("serving")
    assert board.content(LARGE) == files[LARGE]
    drained(board)


@seeds(4)
def test_another_medium_comes(board, cards, seed):
    """While a client reads slowly: what is in flight does not change, and nothing of it follows."""
    rng = make_rng(seed, "media")
    begin(board, cards)
    for k in (1, 0, 1):
        files = cards[1 - k][0]
        board.delays[1] = rng.choice([1, 30, 900])
        board.send(1, LARGE)
        for _ in range(rng.randint(100, 500)):
            board.turn()
        board.insert(cards[k][1])
        board.turn()
        board.finish(1)
        if board.answers[1] != BUSY and not board.answers[1].endswith(files[LARGE]):
            check_cut(board, 1, files[LARGE])
        board.until("serving")
        assert board.content(LARGE) == cards[k][0][LARGE]
    drained(board)


def test_sectors_that_cannot_be_read(board, cards):
    """503 if it is the first piece's; else the response ends where it is."""
    files, image = begin(board, cards)
    assert board.content(LARGE) == files[LARGE]
    at = image.index(files[LARGE][:512]) // 512
    board.set("bad", at + 1)
    assert board.ask(LARGE) == [BUSY]
    board.set("bad", at + 300)
    board.send(1, LARGE)
    board.finish(1)
    check_cut(board, 1, files[LARGE])
    assert len(board.answers[1]) > 290 * 512
    board.send(1, LARGE, fields=b"Range: bytes=%d-\r\n" % (301 * 512))
    assert board.finish(1)[0].endswith(files[LARGE][301 * 512 :])
    board.set("bad", 0xFFFFFFFF)
    assert board.content(LARGE) == files[LARGE]
    drained(board)


def test_a_drive_that_hangs(board, cards):
    files, _ = begin(board, cards)
    board.send(1, LARGE)
    for _ in range(200):
        board.turn()
    board.set("latency", 0xFFFFFFFF)
    board.finish(1, turns=90_000)
    check_cut(board, 1, files[LARGE])


def test_a_session_that_comes_back(board, cards):
    """Its stream was given up, as it seemed to have ended: nothing else follows what was sent."""
    files, _ = begin(board, cards)
    board.send(1, LARGE)
    while not board.answers.get(1):
        board.turn()
    (shown,) = board.waiting
    board.waiting = []
    for _ in range(5):
        board.turn()
    sent = board.answers[1]
    drained(board)
    board.waiting = [shown]
    board.finish(1)
    assert board.answers[1] == sent
    assert 1 in board.closed


def test_a_damaged_chain(library, cards):
    """Known before anything is sent."""
    files, image = cards[0]
    board, damaged = Board(library), bytearray(image)
    first = image.index(files[LARGE][:512])
    table = 512 * int.from_bytes(image[14:16], "little")
    width = 2
    cluster = image[13] * 512
    root = table + 512 * image[16] * int.from_bytes(image[22:24], "little")
    number = (first - root - 32 * int.from_bytes(image[17:19], "little")) // cluster + 2
    middle = number + len(files[LARGE]) // cluster // 2
    for copy in range(image[16]):
        at = table + copy * 512 * int.from_bytes(image[22:24], "little") + width * middle
        damaged[at : at + width] = number.to_bytes(width, "little")
    board.insert(bytes(damaged))
    board.until("serving")
    assert board.ask(LARGE) == [BUSY]
    assert board.content(b"/one") == files[b"/one"]
    assert int(board.command()["errors"]) == 1


def test_a_request_that_comes_after_the_switch(board, cards):
    """It is not answered from the image before, which the firmware still has as the one served."""
    files, _ = begin(board, cards)
    assert board.content(b"/one") == files[b"/one"]
    board.insert(cards[1][1])
    board.turn()
    before = board.registers["base"]
    while board.registers["base"] == before:
        board.turn()
    board.switch_left = board.registers["switching"] = 0  # the gateware has switched
    head = b"GET /one HTTP/1.1\r\nHost: h\r\n\r\n"
    board._show(1, head, 1)
    board.library.web_serve()
    assert not board.replies
    board.library.web_card_serve()
    board.library.web_serve()
    assert board.replies
    assert MEMORY <= board.registers["base"] < MEMORY + 2 * HALF
