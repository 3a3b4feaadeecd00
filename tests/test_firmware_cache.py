"""The firmware's catalogue and cache: bytewise the Python image; epochs, damage, cards."""

import os
import random
import struct
import subprocess
from pathlib import Path

import pytest
from firmware_host import FIRMWARE, WARNINGS, generated
from store_images import Volume
from trebuchet.models.fat import geometry, make_volume, survey
from trebuchet.models.http.folder import INDEX, media_type, media_types
from trebuchet.models.http.image import ENTRY_BYTES, Image
from trebuchet.models.http.response import Object

BASE = 1 << 24
OK, NO_CARD, NO_VOLUME, READ_ERROR, DAMAGED, NO_ROOM, BUSY = range(7)
ABSENT, LOADING, READY, EVICTED, DRAINING = range(5)


class Store:
    """The C code in a process, and a card."""

    def __init__(self, program):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, stderr=pipe)

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return line.decode().rstrip("\n")

    def open(self, image, size=1 << 22, buckets=0, base=BASE):
        """Mount and build; the numbers that the catalogue says."""
        self.size, self.base = size, base
        self.ask("memory", base, size, buckets)
        assert self.ask("mount", image) == "0"
        return self.build()

    def build(self):
        names = [
            "status",
            "files",
            "entries",
            "buckets",
            "index",
            "objects",
            "left_out",
            "faults",
            "fault",
        ]
        return dict(zip(names, map(int, self.ask("build").split()), strict=True))

    def load(self, path):
        """(status, jobs) of a whole load."""
        said = self.ask("load", path)
        jobs, status, state = said.rsplit(" ", 2)
        assert (int(state) == READY) == (int(status) == OK)
        return int(status), [tuple(map(int, j.split(":"))) for j in jobs.split(",") if j]

    def files(self):
        """Fields of all files, by their entries' numbers."""
        rows = (row.split() for row in self.ask("files").split(",") if row)
        names = ["entry", "alias", "size", "tag", "state", "begin", "end"]
        return [
            {n: int(v, 16 if n == "tag" else 10) for n, v in zip(names, r, strict=True)}
            for r in rows
        ]

    def memory(self, folder):
        self.ask("dump", folder / "memory")
        return (folder / "memory").read_bytes()

    def served(self, folder, path):
        """(content that is sent, with and without close) as the gateware finds it, or None."""
        view = Image({}, self.base)
        view.bytes, view.buckets = self.memory(folder), self.info["buckets"]
        found = view.find(path.encode())
        if found is None:
            return None
        at, length = found["found"] - self.base + found["found_header"], found["length"]
        return view.bytes[at : at + length]

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0, self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    include = generated(folder)
    names = ("store/cache", "store/catalogue", "store/fat", "store/fat_folder", "crc32", "text")
    sources = [FIRMWARE.parent / "tests" / "cache_host.c"]
    sources += [FIRMWARE / f"{name}.c" for name in names]
    flags = [*WARNINGS, "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags += [f"-I{include}", f"-I{FIRMWARE}"]
    subprocess.run(["gcc", *flags, "-o", folder / "cache_host", *sources], check=True)
    return folder / "cache_host"


@pytest.fixture
def store(program):
    made = Store(program)
    yield made
    made.close()


def card(path, files, size=None, bits=None):
    """The image of a card with {path: content}."""
    tree = path.parent / f"{path.name}.tree"
    for name, data in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)
    found = survey(tree)
    with path.open("wb") as file:
        make_volume(file, found, geometry(found, size, bits))
    return path


def walked(tree, above=""):
    """Paths in the order in which they are on a card that was made of a tree."""
    for entry in sorted(os.scandir(tree), key=lambda e: e.name):
        if entry.is_dir():
            yield from walked(entry.path, f"{above}/{entry.name}")
        else:
            yield f"{above}/{entry.name}"


def python_image(tree, files, base=BASE, size=1 << 31, buckets=None):
    """The golden model's image, with the tags of the firmware."""
    objects, left = {}, iter(files)
    for path in walked(tree):
        if len(path.encode()) > 96:
            continue
        row, content = next(left), (Path(tree) / path[1:]).read_bytes()
        found = Object(content, media_type(path.rpartition("/")[2]).encode(), row["tag"])
        assert row["size"] == len(content)
        objects[path.encode()] = found
        if path.endswith(f"/{INDEX}"):
            objects[path.removesuffix(INDEX).encode()] = found
    return Image(objects, base, size, buckets=buckets)


RNG = random.Random(11)
FILES = {
    "index.html": b"<p>front</p>",
    "empty.txt": b"",
    "one": b"1",
    "a/index.html": RNG.randbytes(1300),
    "a/segment.css": RNG.randbytes(1460),
    "a/513.png": RNG.randbytes(513),
    "a/ümläut 100%.html": b"umlaut",
    "b/big.bin": RNG.randbytes(300_000),
    "b/archive.tar.gz": b"gz",
    "b/UPPER.HTML": RNG.randbytes(1024),
    "b/notindex.html": b"x",
    "l" * 100: b"its path is too long",
    "c/" + "p" * 93: b"96 bytes",
    "c/" + "q" * 94: b"97 bytes",
}


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("buckets", [0, 64])
def test_memory_is_the_image_of_the_golden_model(store, tmp_path, bits, buckets):
    image = card(tmp_path / "card.img", FILES, bits=bits)
    info = store.open(image, buckets=buckets)
    files = store.files()
    expected = python_image(tmp_path / "card.img.tree", files, buckets=buckets or None)
    assert info["status"] == OK
    assert (info["files"], info["entries"], info["left_out"]) == (12, 14, 2)
    assert (info["buckets"], info["index"] + BASE) == (expected.buckets, expected.index)
    # Without a file in memory, it is the image with entries that have nothing but their paths.
    bare = store.memory(tmp_path)[: info["objects"]]
    for k in range(info["entries"]):
        at = info["objects"] - (info["entries"] - k) * ENTRY_BYTES
        wanted = expected.bytes[at : at + ENTRY_BYTES]
        word = struct.unpack_from("<I", wanted)[0] & 0x7F00
        assert bare[at : at + ENTRY_BYTES] == struct.pack("<I28x", word) + wanted[32:]
    for path in walked(tmp_path / "card.img.tree"):
        if len(path.encode()) <= 96:
            status, jobs = store.load(path)
            assert status == OK
            assert all(address % 512 == 0 for _, _, address in jobs)
    memory = store.memory(tmp_path)
    assert memory[: len(expected.bytes)] == expected.bytes
    assert not any(memory[len(expected.bytes) :])


def test_many_files_and_the_number_of_buckets(store, tmp_path):
    names = [f"d{k % 7}/f{k}.html" for k in range(1500)]
    image = card(tmp_path / "card.img", {name: name.encode() for name in names})
    info = store.open(image)
    expected = python_image(tmp_path / "card.img.tree", store.files())
    assert (info["files"], info["buckets"]) == (1500, expected.buckets)
    for path in walked(tmp_path / "card.img.tree"):
        assert store.load(path)[0] == OK
    assert store.memory(tmp_path)[: len(expected.bytes)] == expected.bytes
    assert store.ask("load", "/d1/f2.html") == "none"
    assert store.open(image, buckets=64)["status"] == NO_ROOM
    assert store.open(image, size=1 << 16)["status"] == NO_ROOM


def test_media_types_are_those_of_the_model(store, tmp_path):
    kinds = ["application/octet-stream", *media_types().values()]
    names = [f"x.{name}" for name in media_types()]
    names += ["X.HTML", "x.Css", "x", ".html", "..css", "a.b.js", "x.gz", "x.tar.gz", "x.tgz"]
    names += ["x.html.br", "x.svgz", "x.", "html", "x.htm l", "x.html2", "x.Z"]
    for name in names:
        assert kinds[int(store.ask("type", name))] == media_type(name), name


def test_a_fragmented_file_is_several_jobs(store, tmp_path):
    files = {"a.bin": bytes(range(256)) * 20, "b.bin": b"b"}
    image = card(tmp_path / "card.img", files)
    volume = Volume(image)
    first = volume.first(b"A~1     BIN")
    free = first + 20
    # Its second half moves to free clusters, the last one before the others.
    order = [first, first + 1, free + 3, free + 4, free + 1]
    order += [free + 10 + k for k in range(20)]
    for here, after in zip(order, [*order[1:], 0xFFFF], strict=True):
        volume.link(here, after)
    for k, cluster in enumerate(order):
        part = files["a.bin"][k * 512 : k * 512 + 512]
        at = volume.at_cluster(cluster)
        volume.data[at : at + len(part)] = part
    image.write_bytes(volume.data)
    store.info = store.open(image)
    status, jobs = store.load("/a.bin")
    assert status == OK
    assert [count for _, count, _ in jobs] == [2, 2, 1, 5]
    assert [b - a for (_, _, a), (_, _, b) in zip(jobs, jobs[1:], strict=False)] == [
        1024,
        1024,
        512,
    ]
    assert store.served(tmp_path, "/a.bin") == files["a.bin"]


def damaged(volume, first):
    return {
        "loop": (first + 4, first),
        "free": (first + 2, 0),
        "beyond": (first + 2, 0xFFF0),
        "ends early": (first + 3, 0xFFFF),
        "loop behind the end": (first + 9, first + 2),
    }


@pytest.mark.parametrize("name", damaged(None, 0))
def test_a_damaged_chain_is_an_error_before_anything_is_read(store, tmp_path, name):
    image = card(tmp_path / "card.img", {"A.TXT": b"a" * 5000, "B.TXT": b"b" * 5000})
    volume = Volume(image)
    volume.link(*damaged(volume, volume.first(b"A       TXT"))[name])
    image.write_bytes(volume.data)
    store.info = store.open(image)
    assert store.load("/A.TXT") == (DAMAGED, [])
    assert store.load("/B.TXT")[0] == OK
    assert store.served(tmp_path, "/A.TXT") is None
    assert store.served(tmp_path, "/B.TXT") == b"b" * 5000


def test_bad_blocks(store, tmp_path):
    image = card(
        tmp_path / "card.img", {"A.TXT": b"a" * 5000, "B.TXT": b"b" * 5000, "D/C.TXT": b"c"}
    )
    volume = Volume(image)
    store.info = store.open(image)
    store.ask("bad", volume.at_cluster(volume.first(b"A       TXT") + 3) // 512)
    status, jobs = store.load("/A.TXT")
    assert (status, len(jobs)) == (READ_ERROR, 1)
    assert store.load("/B.TXT")[0] == OK
    store.ask("bad", -1)
    assert store.load("/A.TXT")[0] == OK  # a load that failed leaves nothing behind
    assert store.served(tmp_path, "/A.TXT") == b"a" * 5000
    store.ask("bad", volume.at_cluster(volume.first(b"D          ")) // 512)
    info = store.build()
    assert (info["status"], info["files"], info["faults"], info["fault"]) == (
        OK,
        2,
        1,
        READ_ERROR - 1,
    )
    store.ask("bad", volume.root // 512)
    assert store.build()["status"] == READ_ERROR


def room_for(store, image, payload):
    """Open with so much memory behind the entries."""
    objects = store.open(image)["objects"]
    store.info = store.open(image, size=objects + payload)
    return objects


def test_eviction_waits_until_nothing_is_in_flight(store, tmp_path):
    files = {f"f{k}.bin": bytes([k]) * 10_000 for k in range(6)}
    image = card(tmp_path / "card.img", files)
    room_for(store, image, 3 * 12_000)
    for k in range(3):
        assert store.load(f"/f{k}.bin")[0] == OK
    store.ask("flight", 1)
    before = store.memory(tmp_path)
    assert store.load("/f3.bin") == (BUSY, [])
    # The oldest is not found any more; its bytes are as they were, since they may still be sent.
    assert store.served(tmp_path, "/f0.bin") is None
    assert store.served(tmp_path, "/f1.bin") == files["f1.bin"]
    row = store.files()[0]
    assert row["state"] == EVICTED
    assert store.memory(tmp_path)[row["begin"] : row["end"]] == before[row["begin"] : row["end"]]
    assert store.load("/f0.bin") == (BUSY, [])
    epoch = int(store.ask("serve").split()[1])
    # All of the epoch before is answered: the next begins, and f0 is not found in it.
    store.ask("flight", 0)
    assert store.ask("serve") == f"1 {epoch + 1}"
    assert store.files()[0]["state"] == DRAINING
    store.ask("flight", 1)
    assert store.load("/f3.bin") == (BUSY, [])
    assert store.memory(tmp_path)[row["begin"] : row["end"]] == before[row["begin"] : row["end"]]
    store.ask("flight", 0)
    assert store.load("/f3.bin")[0] == OK
    assert store.files()[0]["state"] == ABSENT
    assert store.served(tmp_path, "/f3.bin") == files["f3.bin"]


@pytest.mark.parametrize("seed", range(6))
def test_random_loads_keep_every_byte(store, tmp_path, seed):
    """What is ready is whole, whatever was loaded, evicted and in flight before."""
    rng = random.Random(seed)
    sizes = [0, 1, 511, 512, 513, 1300, 5000, *(rng.randrange(20_000) for _ in range(13))]
    files = {f"{k}.bin": rng.randbytes(size) for k, size in enumerate(sizes)}
    image = card(tmp_path / "card.img", files)
    payload = rng.randrange(22_000, 60_000)
    objects = room_for(store, image, payload)
    names, last = list(files), None
    loaded = 0
    for _ in range(150):
        name = rng.choice(names)
        flying = rng.random() < 0.4
        store.ask("flight", int(flying))
        rows = {r["entry"]: r for r in store.files()}
        status, _ = store.load(f"/{name}")
        assert status == OK or (status == BUSY and flying), (seed, name, status)
        loaded += status == OK
        memory = store.memory(tmp_path)
        live = [r for r in store.files() if r["state"] in (READY, EVICTED, DRAINING)]
        spans = sorted((r["begin"], r["end"]) for r in live)
        assert all(a[1] <= b[0] for a, b in zip(spans, spans[1:], strict=False)), seed
        assert all(objects <= b and e <= store.size for b, e in spans)
        for r in live:
            content = files[sorted(names)[r["entry"]]]
            assert content in memory[r["begin"] : r["end"]], (seed, r)
        if last is not None and flying:
            # Nothing that was in the ring and evicted may change while it is in flight.
            for r in rows.values():
                if r["state"] in (EVICTED, DRAINING):
                    assert memory[r["begin"] : r["end"]] == last[r["begin"] : r["end"]]
        last = memory
    assert loaded > 50


def test_a_file_that_is_larger_than_the_memory(store, tmp_path):
    image = card(tmp_path / "card.img", {"big.bin": bytes(20_000), "small": b"s"})
    room_for(store, image, 10_000)
    assert store.load("/small")[0] == OK
    assert store.load("/big.bin") == (NO_ROOM, [])
    assert store.served(tmp_path, "/small") == b"s"  # nothing was evicted for it


def test_removal_and_the_same_card_again(store, tmp_path):
    files = {"a.bin": b"a" * 9000, "b.bin": b"b" * 9000}
    image = card(tmp_path / "card.img", files)
    store.info = store.open(image)
    assert store.load("/a.bin")[0] == OK
    assert store.ask("begin", "/b.bin") == "0"
    store.ask("remove")
    assert store.ask("jobs", 9) == "1"  # there are none any more
    assert store.ask("insert", image) == str(BUSY)
    assert store.ask("end", 0) == str(READ_ERROR)
    assert store.load("/b.bin") == (NO_CARD, [])
    assert store.served(tmp_path, "/a.bin") == files["a.bin"]
    assert store.load("/a.bin") == (OK, [])
    assert store.ask("insert", image) == str(OK)
    assert store.load("/b.bin")[0] == OK
    assert store.served(tmp_path, "/b.bin") == files["b.bin"]


def test_removal_while_the_dma_has_ended_well(store, tmp_path):
    """The last job may end after the card is gone: what it read may be another card's."""
    image = card(tmp_path / "card.img", {"a.bin": b"a" * 9000})
    store.info = store.open(image)
    assert store.ask("begin", "/a.bin") == "0"
    assert store.ask("jobs", 1).endswith(",1")
    store.ask("remove")
    assert store.ask("end", 1) == str(READ_ERROR)
    assert store.served(tmp_path, "/a.bin") is None


def test_another_card(store, tmp_path):
    one = card(tmp_path / "one.img", {"a.bin": b"a" * 9000, "same": b"same"})
    two = card(tmp_path / "two.img", {"a.bin": b"A" * 9000, "same": b"same"})
    store.info = store.open(one)
    assert store.load("/a.bin")[0] == OK
    old = store.files()[0]["tag"]
    store.ask("remove")
    store.ask("flight", 1)
    assert store.ask("insert", two) == str(NO_CARD)
    assert store.served(tmp_path, "/a.bin") is None
    assert store.ask("serve").split()[0] == "1"  # what was sent of the old one is not answered
    store.ask("flight", 0)
    while store.ask("serve").split()[0] == "1":
        pass
    store.info = store.build()
    assert store.load("/a.bin")[0] == OK
    assert store.served(tmp_path, "/a.bin") == b"A" * 9000
    assert store.files()[0]["tag"] != old
