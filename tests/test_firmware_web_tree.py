"""A tree of 70 MB of real files on a card, each served byte for byte (``firmware/web_card.c``).

The files are those of Python and of the packages that are installed: every machine that runs
the tests has them. The memory is a sixteenth of the tree, so that files are evicted all the time.
"""

import os
import random
import shutil
import sysconfig
import urllib.parse
from pathlib import Path

import pytest
from web_card_lib import Board, build_card, image_of

pytestmark = pytest.mark.slow

HALF = 1 << 22
TREE_BYTES = 70_000_000
PATH_BYTES = 96
ODD = {
    "a b ä%.txt": 700,
    "%41 100%.html": 90,
    "Straße/ümläut ’quoted’ 日本.css": 1461,
    "n" * 95: 40,
    "empty": 0,
    "one": 1,
    "[b] ~x.js": 513,
    "large one.bin": 1_300_000,
    "larger than the memory.bin": HALF + 77,
}


def real_files():
    """(path, name on the card) of files of Python and its packages, in a fixed order."""
    for key in ("stdlib", "purelib"):
        top = Path(sysconfig.get_paths()[key])
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(set(folders) - {"site-packages", "dist-packages"})
            for name in sorted(names):
                path = Path(folder) / name
                shown = Path(key) / path.relative_to(top)
                # A path has a slash in front.
                if path.is_file() and len(str(shown).encode()) < PATH_BYTES:
                    yield path, shown


@pytest.fixture(scope="module")
def card(tmp_path_factory):
    """The folder, and the image of a card with its files."""
    folder = tmp_path_factory.mktemp("tree")
    rng, total, seen = random.Random(36), 0, set()
    (folder / "tree").mkdir()
    for name, size in ODD.items():
        target = folder / "tree" / name
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(rng.randbytes(size))
    for path, shown in real_files():
        target = folder / "tree" / shown
        if total >= TREE_BYTES or str(shown).upper() in seen:  # FAT ignores case
            continue
        seen.add(str(shown).upper())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        total += target.stat().st_size
    assert total >= TREE_BYTES
    return folder / "tree", image_of(folder, "tree")


def test_every_file_is_served(root, tmp_path, card):
    tree, image = card
    board = Board(build_card(root, tmp_path, half=HALF), HALF)
    board.insert(image)
    board.until("serving", turns=1_000_000)
    paths = sorted(path for path in tree.rglob("*") if path.is_file())
    random.Random(36).shuffle(paths)
    said = board.command()
    assert (int(said["files"]), said["left_out"]) == (len(paths), "0")
    for at in range(0, len(paths), 4):
        some = paths[at : at + 4]
        asked = [f"/{urllib.parse.quote(str(p.relative_to(tree)))}".encode() for p in some]
        for path, out in zip(some, board.ask(*asked, turns=1_000_000), strict=True):
            head, _, content = out.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n"), path
            assert content == path.read_bytes(), path
    said = board.command()
    assert int(said["evictions"]) > len(paths) // 2
    assert (said["errors"], said["bad_folders"]) == ("0", "0")
    assert board.get("outside") == 0
