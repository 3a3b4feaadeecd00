"""`trebuchet store make`: what other readers of FAT find on the card is what the folder has."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from store_images import END, OK, compile_lister, content, listed
from trebuchet.host.cli import main
from trebuchet.models.errors import TrebuchetError
from trebuchet.models.fat import MIB, geometry, survey

needs_mtools = pytest.mark.skipif(
    not (shutil.which("mcopy") and shutil.which("fsck.fat")),
    reason="dosfstools and mtools are not installed (tools/bootstrap.py)",
)
READ = {**os.environ, "LC_ALL": "C.UTF-8", "MTOOLS_SKIP_CHECK": "1"}

TREE = {
    "empty": b"",
    "one": b"1",
    "FULL.BIN": b"b" * 512,
    "513.bin": b"c" * 513,
    "big.bin": random.Random(3).randbytes(1_300_000),
    "with space.html": b"space",
    "ümläut Straße.txt": b"umlaut",
    "ü.txt": b"one umlaut",
    "’quoted’ ŵ.txt": b"no code page has it",
    "100%.txt": b"percent",
    "%41.txt": b"not A",
    "日本語.txt": b"three",
    "b[1].txt": b"brackets",
    "b1.txt": b"none",
    "-dash": b"dash",
    ".hidden": b"dot",
    "two.dots.tar.gz": b"dots",
    "LONGNA~1.TXT": b"a short name",
    "Long name.txt": b"whose short name is taken",
    "a" * 255: b"255 characters",
    "a" * 26: b"two whole slots",
    "a" * 13: b"one whole slot",
    "dir/deep/er/file": b"deep",
    "dir/B.TXT": b"b",
    "dir/empty folder/.keep": b"",
    "/".join("d" * k for k in range(1, 17)) + "/file": b"sixteen levels",
}


def make_tree(folder, files=None):
    for name, data in (TREE if files is None else files).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def make(capsys, *arguments):
    """Exit code, standard output and errors of `trebuchet store make`."""
    with pytest.raises(SystemExit) as ended:
        main(["store", "make", *map(str, arguments)])
    out = capsys.readouterr()
    return ended.value.code or 0, out.out, out.err


@pytest.fixture(scope="module")
def lister(tmp_path_factory):
    return compile_lister(tmp_path_factory.mktemp("lister"))


def contents(folder):
    return {
        "/" + path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def by_firmware(lister, image):
    """{path: content} as firmware/store reads it; each file lies in one piece."""
    volume, files, faults = listed(lister, image)
    assert volume[0] == OK
    assert faults == []
    assert all(entry[0] == END and len(entry[2]) <= 1 for entry in files.values())
    return {path: content(image, entry) for path, entry in files.items()}


def by_mtools(image, target):
    target.mkdir()
    command = ["mcopy", "-i", image, "-s", "-n", "::/*", target]
    subprocess.run(command, check=True, env=READ, stdin=subprocess.DEVNULL)
    return contents(target)


def check_clean(image):
    done = subprocess.run(["fsck.fat", "-n", image], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stdout


@needs_mtools
@pytest.mark.parametrize("options", [(), ("--fat", "32"), ("--size", "600"), ("--size", "40")])
def test_three_readers_find_every_byte(capsys, lister, tmp_path, options):
    image, tree = tmp_path / "card.img", make_tree(tmp_path / "tree")
    code, out, _ = make(capsys, tree, "-o", image, *options)
    wide = options in (("--fat", "32"), ("--size", "600"))
    assert code == 0
    assert f"FAT{32 if wide else 16}, {image.stat().st_size // MIB} MiB, {len(TREE)} files" in out
    if options[:1] == ("--size",):
        assert image.stat().st_size == int(options[1]) * MIB
    check_clean(image)
    assert by_firmware(lister, image) == contents(tree)
    assert by_mtools(image, tmp_path / "back") == contents(tree)


def test_a_pair_of_surrogates(capsys, lister, tmp_path):
    tree = make_tree(tmp_path / "tree", {"smile \U0001f600.txt": b"pair"})
    assert make(capsys, tree, "-o", tmp_path / "card.img")[0] == 0
    assert by_firmware(lister, tmp_path / "card.img") == contents(tree)


@needs_mtools
def test_many_files_whose_short_names_are_alike(capsys, lister, tmp_path):
    names = [f"name {k:05}.html" for k in range(1500)] + [f"NAME~{k}.HTM" for k in range(1, 30)]
    tree = make_tree(tmp_path / "tree", {name: name.encode() for name in names})
    make_tree(tree / "below", {name: b"" for name in names})
    assert make(capsys, tree, "-o", tmp_path / "card.img")[0] == 0
    check_clean(tmp_path / "card.img")
    assert by_firmware(lister, tmp_path / "card.img") == contents(tree)


def test_the_same_files_give_the_same_image(capsys, tmp_path):
    make_tree(tmp_path / "one")
    make_tree(tmp_path / "two", dict(reversed(TREE.items())))
    for path in (tmp_path / "two").rglob("*"):
        os.utime(path, (1, 1))
    for name in ("one", "two"):
        assert make(capsys, tmp_path / name, "-o", tmp_path / f"{name}.img")[0] == 0
    one = (tmp_path / "one.img").read_bytes()
    assert (tmp_path / "two.img").read_bytes() == one
    # A byte more or less anywhere gives the volume another serial number.
    (tmp_path / "two" / "one").write_bytes(b"2")
    make(capsys, tmp_path / "two", "-o", tmp_path / "two.img")
    two = (tmp_path / "two.img").read_bytes()
    assert two[39:43] != one[39:43]


@needs_mtools
@pytest.mark.parametrize("seed", range(4))
def test_random_trees(capsys, lister, tmp_path, seed):
    rng = random.Random(seed)
    letters = "aBc.ä% ~1ß’"
    files, folders = {}, [""]
    for _ in range(120):
        name = "".join(rng.choices(letters, k=rng.randint(1, 30))).strip(". ") or "x"
        name = rng.choice(folders) + f"{len(files)}{name}"
        if rng.random() < 0.15 and name.count("/") < 15:
            folders.append(f"{name}/")
        else:
            size = rng.choice((0, 1, 511, 512, 513, 2048, 70_000, rng.randrange(300_000)))
            files[name] = rng.randbytes(size)
    tree, image = make_tree(tmp_path / "tree", files), tmp_path / "card.img"
    assert make(capsys, tree, "-o", image, "--fat", rng.choice(["16", "32"]))[0] == 0
    check_clean(image)
    assert by_firmware(lister, image) == by_mtools(image, tmp_path / "back") == contents(tree)


#: Where Debian's package python3.11-doc has its pages.
PYTHON_DOC = Path("/usr/share/doc/python3.11/html")


@needs_mtools
@pytest.mark.slow
def test_seventy_megabytes(capsys, lister, tmp_path):
    tree = tmp_path / "tree"
    if PYTHON_DOC.is_dir():
        shutil.copytree(PYTHON_DOC, tree, ignore_dangling_symlinks=True)
    else:
        rng = random.Random(70)
        sizes = [int(rng.lognormvariate(10, 1.6)) + 1 for _ in range(1000)]
        scale = 70e6 / sum(sizes)
        names = [f"part {k % 40}/§{k % 7}/page {k}.html" for k in range(1000)]
        make_tree(
            tree, {n: rng.randbytes(int(s * scale)) for n, s in zip(names, sizes, strict=True)}
        )
    image = tmp_path / "card.img"
    assert make(capsys, tree, "-o", image)[0] == 0
    check_clean(image)
    wanted = contents(tree)
    assert by_firmware(lister, image) == wanted
    assert by_mtools(image, tmp_path / "back") == wanted
    used = sum(map(len, wanted.values()))
    assert used < image.stat().st_size < 1.2 * used + 3 * MIB


def line(capsys, *arguments):
    """The one line that says what was wrong."""
    code, out, errors = make(capsys, *arguments)
    assert (code, out, errors.count("\n")) == (1, "", 1)
    return errors


#: Names that a card cannot have, and what the line says of each.
NAMES = {
    "a:b": "FAT allows no ':' in a name; rename it",
    "what?": "FAT allows no '?'",
    "a\\b": "FAT allows no '\\\\'",
    "tab\t": "FAT allows no '\\t'",
    "dot.": "FAT allows no '.' at the end",
    "space ": "FAT allows no ' ' at the end",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_fat_cannot_hold(capsys, tmp_path, name):
    tree = make_tree(tmp_path / "tree", {f"in/{name}": b"", "good": b""})
    said = line(capsys, tree, "-o", tmp_path / "card.img")
    assert NAMES[name] in said
    assert "/in/" in said
    assert list(tmp_path.iterdir()) == [tree]


def test_other_names_that_fat_cannot_hold(capsys, tmp_path):
    image = tmp_path / "card.img"
    tree = make_tree(tmp_path / "one", {"Ärger.txt": b"", "ärger.txt": b""})
    assert "FAT ignores case, and Ärger.txt is there; rename one" in line(capsys, tree, "-o", image)
    tree = tmp_path / "two"
    os.mkdir(tree)
    (tree / os.fsdecode(b"latin \xe9")).write_bytes(b"")
    assert "must be UTF-8" in line(capsys, tree, "-o", image)
    tree = make_tree(tmp_path / "three", {"d/" * 17 + "file": b""})
    assert "at most 16 levels" in line(capsys, tree, "-o", image)


def test_what_is_no_file_or_no_folder(capsys, tmp_path):
    image, tree = tmp_path / "card.img", make_tree(tmp_path / "tree", {"a": b""})
    assert "there is no folder" not in (said := line(capsys, tree / "a", "-o", image))
    assert f"{tree / 'a'} is no folder; name one" in said
    assert "choose a place outside" in line(capsys, tree, "-o", tree / "card.img")
    os.mkfifo(tree / "pipe")
    assert "is neither a file nor a folder" in line(capsys, tree, "-o", image)
    os.unlink(tree / "pipe")
    os.symlink("nowhere", tree / "link")
    assert "cannot read" in line(capsys, tree, "-o", image)
    os.unlink(tree / "link")
    os.symlink("a", tree / "link")
    assert make(capsys, tree, "-o", image)[0] == 0
    assert "No such file" in line(capsys, tree, "-o", tmp_path / "no" / "card.img")


def test_no_room(capsys, tmp_path):
    tree = make_tree(tmp_path / "tree", {"big": bytes(6_000_000)})
    image = tmp_path / "card.img"
    said = line(capsys, tree, "-o", image, "--size", 5)
    assert "has 6000000 bytes and needs a card of 6 MiB, not 5" in said
    assert not image.exists()
    assert make(capsys, tree, "-o", image, "--size", 6)[0] == 0
    assert "needs a card of 33 MiB, not 8" in line(
        capsys, tree, "-o", image, "--size", 8, "--fat", 32
    )


def test_a_disk_that_is_full_leaves_nothing(capsys, tmp_path, monkeypatch):
    tree = make_tree(tmp_path / "tree", {"big": bytes(6_000_000)})

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trebuchet.host.store.make_volume", full)
    said = line(capsys, tree, "-o", tmp_path / "card.img")
    assert f"cannot write {tmp_path / 'card.img'}: No space left on device" in said
    assert list(tmp_path.iterdir()) == [tree]


def test_a_file_that_changes_meanwhile(capsys, tmp_path, monkeypatch):
    tree = make_tree(tmp_path / "tree", {"log": b"12345"})

    def late(folder):
        found = survey(folder)
        (tree / "log").write_bytes(b"123456")
        return found

    monkeypatch.setattr("trebuchet.host.store.survey", late)
    assert "log changed while it was copied" in line(capsys, tree, "-o", tmp_path / "card.img")


@pytest.mark.parametrize("size", [4, 5, 31, 32, 33, 128, 511, 512, 2047, 4096, 1 << 20])
def test_the_number_of_clusters_says_the_type(tmp_path, size):
    """And each has an entry in a table that is no larger than need be."""
    tree = survey(make_tree(tmp_path / "tree", {"a": b""}))
    form = geometry(tree, size * MIB)
    low, high = (4085, 65525) if form.bits == 16 else (65525, 1 << 28)
    assert low + 16 <= form.clusters < high - 16
    each = 512 * 8 // form.bits
    assert (form.table_blocks - 1) * each < form.clusters + 2 + 2 * each
    assert form.table_blocks * each >= form.clusters + 2
    assert form.heap + form.clusters * form.cluster <= form.blocks


def test_a_card_beyond_the_format(tmp_path):
    tree = survey(make_tree(tmp_path / "tree", {"a": b""}))
    with pytest.raises(TrebuchetError, match="needs a card of 4 MiB"):
        geometry(tree, 2 * MIB)
