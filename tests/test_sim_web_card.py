"""A simulated board serves the files of a volume on its drive, which is larger than its memory."""

import os
import random
import sys
import threading
import urllib.parse

import pytest
from e2e_board import board_in_simulation, status
from e2e_web import PORT, connection, fetch, web_plan
from patience import PATIENCE, Patience, join
from sim_tops import needs_network
from trebuchet.boards.overrides import Overrides
from trebuchet.models.fat import Geometry, make_volume, survey

pytestmark = [pytest.mark.slow, needs_network]

HALF = 1 << 16
TREBUCHET = [sys.executable, "-m", "trebuchet.host.cli"]


def files_of(seed, count):
    """Files by path: more together than the memory has room for, one three times as large."""
    rng = random.Random(seed)
    print("seed", seed)
    files = {f"/data/{k:02}.bin": rng.randbytes(rng.randint(4_500, 12_000)) for k in range(count)}
    names = {"/index.html": 300, "/empty": 0, "/one": 1, "/a b ä%.txt": 700, "/close.css": 1461}
    names |= {"/large.bin": 2 * HALF + 5}
    return files | {path: rng.randbytes(size) for path, size in names.items()}


def write_files(folder, files):
    for name, content in files.items():
        (folder / name[1:]).parent.mkdir(parents=True, exist_ok=True)
        (folder / name[1:]).write_bytes(content)


def make_large_clusters(folder, files, path):
    """A card with clusters of 4 KiB, as cards have them: chains are short."""
    write_files(folder, files)
    blocks, table, roots = 17 << 11, 17, 512
    clusters = (blocks - 1 - 2 * table - roots // 16) // 8
    with path.open("wb") as out:
        make_volume(out, survey(folder), Geometry(16, blocks, 8, roots, table, clusters))


def make_card(folder, files, path):
    write_files(folder, files)
    run = [*TREBUCHET, "store", "make", str(folder), "-o", str(path)]
    assert os.spawnv(os.P_WAIT, run[0], run) == 0


@pytest.fixture(scope="module")
def cards(tmp_path_factory):
    """The files of two cards, and their images."""
    folder = tmp_path_factory.mktemp("cards")
    made = {}
    for name, count in (("first", 18), ("second", 6)):
        files = files_of(name, count)
        make = make_large_clusters if name == "first" else make_card
        make(folder / name, files, folder / f"{name}.img")
        made[name] = files, (folder / f"{name}.img").read_bytes()
    return made


@pytest.fixture(scope="module")
def slot(cards, tmp_path_factory):
    """Where the board looks for a card."""
    path = tmp_path_factory.mktemp("slot") / "card.img"
    path.write_bytes(cards["first"][1])
    return path


@pytest.fixture(scope="module")
def board(slot):
    drive = Overrides.parse(settings=["drive=stream"])
    options = ("--seed", "8", "--drive", str(slot), "--drive-latency", "500", "--drive-rate", "4")
    with board_in_simulation(*options, plan=web_plan(HALF), overrides=drive) as board:
        until(board, "serving")
        yield board


def manage(board, *words):
    done = board.run([*TREBUCHET, "manage", board.ip, *words], 200 * PATIENCE)
    assert done.returncode == 0, done.stderr
    return done.stdout


def card_state(board):
    return dict(line.split(None, 1) for line in manage(board, "card").splitlines())


def until(board, state):
    patience = Patience(120)
    while (said := card_state(board))["state"] != state:
        assert not patience.over(), said
        board.sleep(0.2)
    return said


def escaped(path):
    return urllib.parse.quote(path)


def check(board, files, paths):
    made = connection(board)
    for path in paths:
        response, content = fetch(made, escaped(path))
        assert response.status == 200, (path, manage(board, "card"), manage(board, "log"))
        assert content == files[path], path
    made.close()


def keep_in_memory(board, files, paths):
    """Ask for files until all are in memory: one that is loaded may take another's place."""
    for _ in range(5):
        loads = card_state(board)["loads"]
        check(board, files, paths)
        if card_state(board)["loads"] == loads:
            return
    raise AssertionError(f"{paths} are loaded again and again: {card_state(board)}")


def test_all_files_are_served(board, cards):
    """Each twice: what was evicted in between is loaded again."""
    files, _ = cards["first"]
    paths = sorted(files.keys())
    assert int(card_state(board)["files"]) == len(files)
    check(board, files, paths)
    random.Random(3).shuffle(paths)
    check(board, files, paths)
    made = connection(board)
    response, content = fetch(made, "/")
    assert content == files["/index.html"]
    tag = response.getheader("ETag")
    assert fetch(made, "/", **{"If-None-Match": tag})[0].status == 304
    response, content = fetch(made, "/data/03.bin", Range="bytes=100-199")
    assert (response.status, content) == (206, files["/data/03.bin"][100:200])
    response, content = fetch(made, "/data/07.bin", "HEAD")
    assert (response.status, content) == (200, b"")
    assert int(response.getheader("Content-Length")) == len(files["/data/07.bin"])
    assert fetch(made, "/none")[0].status == 404
    state = status(board)["card"]
    assert state["state"] == "serving"
    assert state["evictions"] > 0
    assert state["loads"] > len(paths)
    assert 0 < state["bytes"] <= state["room"]


def test_a_file_that_is_larger_than_the_memory(board, cards):
    """It comes in pieces: to several clients at once, one of which reads nothing at first."""
    files, _ = cards["first"]
    content = files["/large.bin"]
    made = connection(board)
    response, out = fetch(made, "/large.bin")
    assert (response.status, out == content) == (200, True)
    tag = response.getheader("ETag")
    assert fetch(made, "/large.bin", **{"If-None-Match": tag})[0].status == 304
    response, out = fetch(made, "/large.bin", "HEAD")
    assert (response.status, int(response.getheader("Content-Length"))) == (200, len(content))
    response, out = fetch(made, "/large.bin", Range="bytes=70001-110000")
    assert (response.status, out == content[70_001:110_001]) == (206, True)
    response, out = fetch(made, "/large.bin", Range="bytes=-3", **{"If-Range": tag})
    assert (response.status, out) == (206, content[-3:])
    slow = board.connect(PORT)
    slow.sendall(b"GET /large.bin HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    failures = []

    def client():
        try:
            check(board, files, ["/large.bin", "/one", "/data/03.bin"])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=client) for _ in range(2)]
    for thread in threads:
        thread.start()
    check(board, files, [f"/data/{k:02}.bin" for k in range(6)])
    for thread in threads:
        join(thread, 200)
    assert not failures, failures
    out = b""
    while block := slow.recv(1 << 16):
        out += block
    slow.close()
    assert out.partition(b"\r\n\r\n")[2] == content
    gone = board.connect(PORT)
    gone.sendall(b"GET /large.bin HTTP/1.1\r\nHost: h\r\n\r\n")
    gone.recv(1000)
    gone.close()
    patience = Patience(60)
    while (said := card_state(board))["streams"] != "0" or said["pieces"] != "4":
        assert not patience.over(), said
        assert (
            fetch(made, "/large.bin", "HEAD")[0].status == 200
        )  # the firmware looks at its streams
    made.close()
    assert "held 0\n" in manage(board, "web")


def test_many_wait_for_one_file(board, cards):
    """And others are answered meanwhile; pipelined requests in their order."""
    files, _ = cards["first"]
    check(board, files, [f"/data/{k:02}.bin" for k in range(5, 18)])  # no 0 to 3 any more
    failures = []

    def client(paths):
        try:
            check(board, files, paths)
        except BaseException as error:
            failures.append(error)

    wanted = [["/data/00.bin", "/one"]] * 4 + [["/data/01.bin", "/data/00.bin"]] * 2
    threads = [threading.Thread(target=client, args=(paths,)) for paths in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        join(thread, 100)
    assert not failures, failures
    requests = [b"GET /data/%02d.bin HTTP/1.1\r\nHost: h\r\n" % k for k in (9, 10, 9)]
    with board.connect(PORT) as s:
        s.sendall(b"\r\n".join(requests) + b"Connection: close\r\n\r\n")
        out = b""
        while block := s.recv(1 << 16):
            out += block
    for k in (9, 10, 9):
        head, _, out = out.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        content = files[f"/data/{k:02}.bin"]
        assert out.startswith(content)
        out = out[len(content) :]
    assert out == b""


def test_the_medium_goes_and_another_comes(board, cards, slot):
    files, image = cards["first"]
    keep_in_memory(board, files, ["/one", "/data/02.bin"])
    os.unlink(slot)
    until(board, "empty")
    check(board, files, ["/one", "/data/02.bin"])  # what is in memory stays
    evicted = next(p for p in files if p not in ("/one", "/data/02.bin") and asked(board, p) == 503)
    assert asked(board, "/none") == 404
    slot.with_name("new.img").write_bytes(image)  # the same comes back
    os.rename(slot.with_name("new.img"), slot)
    until(board, "serving")
    check(board, files, [evicted, "/one"])
    os.unlink(slot)
    until(board, "empty")
    files, image = cards["second"]
    slot.with_name("new.img").write_bytes(image)
    os.rename(slot.with_name("new.img"), slot)
    until(board, "serving")
    check(board, files, sorted(files.keys() - {"/large.bin"}))
    assert asked(board, "/data/17.bin") == 404
    assert status(board)["card"]["files"] == len(files)


def asked(board, path, method="GET"):
    made = connection(board)
    response, _ = fetch(made, escaped(path), method)
    made.close()
    return response.status


def test_a_damaged_volume(board, cards, slot):
    """It is reported, and the board goes on; a good card is served then."""
    _, image = cards["second"]
    slot.unlink(missing_ok=True)  # a test before this one may have failed
    until(board, "empty")
    damaged = bytearray(image)
    damaged[11:13] = b"\0\0"
    slot.with_name("new.img").write_bytes(damaged)
    os.rename(slot.with_name("new.img"), slot)
    assert until(board, "fault")["fault"] == "no FAT16 or FAT32 volume"
    os.unlink(slot)
    until(board, "empty")
    slot.with_name("new.img").write_bytes(image)
    os.rename(slot.with_name("new.img"), slot)
    until(board, "serving")
    check(board, cards["second"][0], ["/one", "/data/01.bin"])


def test_an_image_takes_its_place(board, cards, tmp_path):
    (tmp_path / "page").write_bytes(b"of the image")
    done = board.run([*TREBUCHET, "web", "load", board.ip, str(tmp_path)], 200 * PATIENCE)
    assert done.returncode == 0, done.stderr
    until(board, "displaced")
    check(board, {"/page": b"of the image"}, ["/page"])
    assert asked(board, "/one") == 404
    manage(board, "card", "on")
    until(board, "serving")
    check(board, cards["second"][0], ["/one", "/data/03.bin"])
