"""The firmware's reader of FAT volumes: names and extents, and what is damaged."""

import random
import struct
import subprocess

import pytest
from store_images import (
    DAMAGED,
    END,
    NO_VOLUME,
    OK,
    READ_ERROR,
    TOO_DEEP,
    Volume,
    compile_lister,
    content,
    listed,
    make_image,
    needs_tools,
)

pytestmark = needs_tools

FILES = {
    "A.TXT": b"a" * 700,
    "empty": b"",
    "with space.html": b"b" * 512,
    "ümläut Straße.txt": b"c",
    "100%.txt": b"percent",
    "a" * 200 + ".txt": b"long",
    "dir/deep/er/file.bin": random.Random(1).randbytes(100_000),
    "dir/B.TXT": b"in a folder",
}


@pytest.fixture(scope="module")
def lister(tmp_path_factory):
    return compile_lister(tmp_path_factory.mktemp("lister"))


@pytest.mark.parametrize(
    ("kib", "bits", "cluster"), [(4096, 16, 1), (65536, 16, 4), (40000, 32, 1), (300000, 32, 8)]
)
def test_names_and_contents(lister, tmp_path, kib, bits, cluster):
    image = make_image(tmp_path / "card.img", FILES, kib, bits, cluster)
    volume, files, faults = listed(lister, image)
    assert volume[:2] == (OK, bits)
    assert faults == []
    assert {path: content(image, entry) for path, entry in files.items()} == {
        f"/{name}": data for name, data in FILES.items()
    }


def test_a_real_fragmented_volume(lister, tmp_path):
    """Files removed between others: new ones lie in several extents."""
    files = {f"f{i}.bin": bytes([i]) * 3000 for i in range(60)}
    image = make_image(tmp_path / "card.img", files)
    removed = [f"::/f{i}.bin" for i in range(0, 60, 2)]
    subprocess.run(["mdel", "-i", image, *removed], check=True)
    big = tmp_path / "big.bin"
    big.write_bytes(random.Random(2).randbytes(60_000))
    subprocess.run(["mcopy", "-i", image, big, "::/big.bin"], check=True)
    _, found, _ = listed(lister, image)
    assert len(found["/big.bin"][2]) > 5
    assert content(image, found["/big.bin"]) == big.read_bytes()
    assert content(image, found["/f7.bin"]) == files["f7.bin"]


def partitioned(data, begin, count, kind=0x0E):
    block = bytearray(512)
    struct.pack_into("<B3sB3sII", block, 446 + 16, 0, b"", kind, b"", begin, count)
    block[510:] = b"\x55\xaa"
    return bytes(block) + bytes(512 * (begin - 1)) + bytes(data)


def test_a_partition(lister, tmp_path):
    image = make_image(tmp_path / "card.img", FILES)
    data = image.read_bytes()
    image.write_bytes(partitioned(data, 63, len(data) // 512))
    volume, files, _ = listed(lister, image)
    assert volume[0] == OK
    assert content(image, files["/A.TXT"]) == FILES["A.TXT"]


#: Begin and blocks of a partition, and its type.
NOT_OURS = {"too long": (63, 8193, 14), "outside": (1 << 31, 9000, 14), "NTFS": (63, 8192, 7)}


@pytest.mark.parametrize("name", NOT_OURS)
def test_a_partition_that_is_not_taken(lister, tmp_path, name):
    image = make_image(tmp_path / "card.img", {"A.TXT": b"x"})
    begin, count, kind = NOT_OURS[name]
    data = bytearray(partitioned(image.read_bytes(), 63, 8192, kind))
    struct.pack_into("<II", data, 446 + 16 + 8, begin, count)
    image.write_bytes(data)
    assert listed(lister, image)[0][0] == NO_VOLUME
    data[446 + 16 + 4] = 14
    struct.pack_into("<II", data, 446 + 16 + 8, 63, 8192)
    image.write_bytes(data)
    assert listed(lister, image)[0][0] == OK


#: Offset in the boot block, and what is written there.
BOOT = {
    "no signature": (510, b"\0"),
    "block size": (11, b"\0\4"),
    "clusters of 0 blocks": (13, b"\0"),
    "clusters of 3 blocks": (13, b"\3"),
    "no reserved block": (14, b"\0\0"),
    "no FAT": (16, b"\0"),
    "255 FATs": (16, b"\xff"),
    "root beyond the volume": (17, b"\xf0\xff"),
    "root of half a block": (17, b"\1\2"),
    "beyond the drive": (19, b"\xff\xff"),
    "nearly empty": (19, b"\x40\0"),
    "FAT too small": (22, b"\1\0"),
    "FAT too large": (22, b"\xff\xff"),
    "no root entries": (17, b"\0\0"),
}


@pytest.mark.parametrize("name", BOOT)
def test_a_damaged_boot_block(lister, tmp_path, name):
    volume = Volume(make_image(tmp_path / "card.img", {"A.TXT": b"x"}))
    at, octets = BOOT[name]
    volume.data[at : at + len(octets)] = octets
    (tmp_path / "bad.img").write_bytes(volume.data)
    assert listed(lister, tmp_path / "bad.img")[0][0] == NO_VOLUME


def test_a_drive_without_anything(lister, tmp_path):
    (tmp_path / "zeros").write_bytes(bytes(1 << 20))
    assert listed(lister, tmp_path / "zeros")[0][0] == NO_VOLUME
    assert listed(lister, tmp_path / "zeros", 0)[0][0] == READ_ERROR


SHORT = b"A       TXT"


def chains(volume, first):
    """{name: (cluster to change, new entry)}: chains of a file of ten clusters."""
    return {
        "loop to the first": (first + 4, first),
        "loop of one": (first + 3, first + 3),
        "free": (first + 2, 0),
        "reserved": (first + 2, 1),
        "bad": (first + 2, 0xFFF7),
        "beyond the volume": (first + 2, 0xFFF0),
        "ends early": (first + 8, 0xFFFF),
    }


@pytest.mark.parametrize("name", chains(None, 0))
def test_a_damaged_chain(lister, tmp_path, name):
    """The file is refused, its neighbours are not."""
    image = make_image(tmp_path / "card.img", {"A.TXT": b"a" * 5000, "B.TXT": b"b" * 5000})
    volume = Volume(image)
    volume.link(*chains(volume, volume.first(SHORT))[name])
    image.write_bytes(volume.data)
    _, files, faults = listed(lister, image)
    assert files["/A.TXT"][0] == DAMAGED
    assert files["/B.TXT"][0] == END
    assert content(image, files["/B.TXT"]) == b"b" * 5000
    assert faults == []


@pytest.mark.parametrize("cluster", [0, 1, 0xFFF0, 0xFFFF])
def test_a_file_that_begins_nowhere(lister, tmp_path, cluster):
    image = make_image(tmp_path / "card.img", {"A.TXT": b"a" * 5000})
    volume = Volume(image)
    struct.pack_into("<H", volume.data, volume.entry(SHORT) + 26, cluster)
    image.write_bytes(volume.data)
    assert listed(lister, image)[1]["/A.TXT"][0] == DAMAGED


def test_a_size_beyond_the_volume(lister, tmp_path):
    image = make_image(tmp_path / "card.img", {"A.TXT": b"a" * 5000})
    volume = Volume(image)
    struct.pack_into("<I", volume.data, volume.entry(SHORT) + 28, 0xFFFFFFFF)
    image.write_bytes(volume.data)
    assert listed(lister, image)[1]["/A.TXT"][0] == DAMAGED


def test_the_first_of_two_fats_is_right_and_the_second_replaces_bad_blocks(lister, tmp_path):
    image = make_image(tmp_path / "card.img", {"A.TXT": b"a" * 5000})
    volume = Volume(image)
    first = volume.first(SHORT)
    volume.link(first + 2, 0, tables=volume.tables[1:])
    image.write_bytes(volume.data)
    assert listed(lister, image)[1]["/A.TXT"][0] == END
    bad = volume.tables[0] // 512
    assert listed(lister, image, bad)[1]["/A.TXT"][0] == DAMAGED
    volume.link(first + 2, first + 3)
    image.write_bytes(volume.data)
    assert listed(lister, image, bad)[1]["/A.TXT"][0] == END
    both = [table // 512 for table in volume.tables]
    assert listed(lister, image, *both)[1]["/A.TXT"][0] == READ_ERROR


def test_folders_that_are_damaged_are_left(lister, tmp_path):
    files = {"a/x.txt": b"x", "b/y.txt": b"y", "z.txt": b"z"}
    image = make_image(tmp_path / "card.img", files)
    volume = Volume(image)
    good = bytes(volume.data)
    entry = volume.entry(b"A          ")
    cluster = volume.first(b"A          ")
    for where in (0, 1, 0xFFF0):
        struct.pack_into("<H", volume.data, entry + 26, where)
        image.write_bytes(volume.data)
        _, found, faults = listed(lister, image)
        assert faults == [(DAMAGED, "/a")]
        assert set(found) == {"/b/y.txt", "/z.txt"}
    image.write_bytes(good)
    _, found, faults = listed(lister, image, volume.at_cluster(cluster) // 512)
    assert faults == [(READ_ERROR, "/a")]
    assert set(found) == {"/b/y.txt", "/z.txt"}


def test_a_folder_inside_itself(lister, tmp_path):
    image = make_image(tmp_path / "card.img", {"a/b/x.txt": b"x"})
    volume = Volume(image)
    entry = volume.entry(b"B          ")
    struct.pack_into("<H", volume.data, entry + 26, volume.first(b"A          "))
    image.write_bytes(volume.data)
    assert listed(lister, image)[2] == [(DAMAGED, "/a/b")]


def test_folders_that_are_too_deep(lister, tmp_path):
    deep = "/".join("d" for _ in range(17))
    image = make_image(tmp_path / "card.img", {f"{deep}/x.txt": b"x", "e/y.txt": b"y"})
    _, files, faults = listed(lister, image)
    assert faults == [(TOO_DEEP, f"/{deep}")]
    assert set(files) == {"/e/y.txt"}


def test_a_chain_of_a_folder_that_loops(lister, tmp_path):
    image = make_image(tmp_path / "card.img", {f"a/{i}.txt": b"x" for i in range(40)})
    volume = Volume(image)
    first = volume.first(b"A          ")
    volume.link(first, first)
    image.write_bytes(volume.data)
    _, files, faults = listed(lister, image)
    assert faults == [(DAMAGED, "/a")]


LONG = {"Long name one.txt": b"1", "Long name two.txt": b"2"}


def slots(volume):
    """Positions of the entries of the root folder that are slots of long names."""
    return [at for at in range(volume.root, volume.heap, 32) if volume.data[at + 11] == 0x0F]


def damage_checksum(volume):
    for at in slots(volume)[:2]:
        volume.data[at + 13] ^= 1


def damage_order(volume):
    volume.data[slots(volume)[0]] = 0x43


def damage_number(volume):
    volume.data[slots(volume)[1]] = 0x21


def damage_many(volume):
    volume.data[slots(volume)[0]] = 0x7F


def delete_slot(volume):
    volume.data[slots(volume)[1]] = 0xE5


def half_a_pair(volume):
    at = slots(volume)[1]
    volume.data[at + 1 : at + 3] = b"\x00\xd8"


def a_slash(volume):
    at = slots(volume)[1]
    volume.data[at + 1 : at + 3] = b"/\0"


ORPHANS = [
    damage_checksum, damage_order, damage_number, damage_many, delete_slot, half_a_pair, a_slash
]  # fmt: skip


@pytest.mark.parametrize("damage", ORPHANS)
def test_a_damaged_long_name_gives_way_to_the_short_one(lister, tmp_path, damage):
    image = make_image(tmp_path / "card.img", LONG)
    volume = Volume(image)
    damage(volume)
    image.write_bytes(volume.data)
    _, files, faults = listed(lister, image)
    assert set(files) == {"/LONGNA~1.TXT", "/Long name two.txt"}
    assert faults == []


def test_deleted_files_are_not_listed_and_e5_is_a_letter(lister, tmp_path):
    image = make_image(tmp_path / "card.img", {"A.TXT": b"a", "B.TXT": b"b", "C.TXT": b"c"})
    volume = Volume(image)
    volume.data[volume.entry(SHORT)] = 0xE5
    volume.data[volume.entry(b"B       TXT")] = 0x05
    image.write_bytes(volume.data)
    assert set(listed(lister, image)[1]) == {"/_.TXT", "/C.TXT"}


def test_a_pair_of_surrogates_is_one_character(lister, tmp_path):
    image = make_image(tmp_path / "card.img", {"ab is replaced.txt": b"pair"})
    volume = Volume(image)
    at = slots(volume)[1]
    volume.data[at + 1 : at + 5] = "\U0001f600".encode("utf-16-le")
    image.write_bytes(volume.data)
    assert set(listed(lister, image)[1]) == {"/\U0001f600 is replaced.txt"}


def test_a_label_is_no_file(lister, tmp_path):
    image = make_image(tmp_path / "card.img", {"A.TXT": b"a"}, options=("-n", "LABEL"))
    assert set(listed(lister, image)[1]) == {"/A.TXT"}
