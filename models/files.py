"""Folders and files that the user named; files that are whole or not there."""

import contextlib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from .errors import TrebuchetError

__all__ = ["check_files", "check_no_space", "make_folder", "read_file", "replacing", "write_file"]
__all__ += ["write_whole", "writing_to"]

#: No board's flash is larger, so no file that is asked for is; a device has no end.
MAX_FILE = 1 << 28


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """What the system says against writing into ``folder`` becomes one line that names it."""
    try:
        yield
    except OSError as error:
        # mkdir says of a file in the way that it exists, which is no reason to a reader.
        exists = isinstance(error, FileExistsError)
        reason = os.strerror(errno.ENOTDIR) if exists else error.strerror
        raise TrebuchetError(
            f"cannot write {folder}: {reason}; choose another folder, or make it writable"
        ) from error


def check_no_space(folder: Path) -> None:
    """Raise :class:`TrebuchetError` if the makefiles of LiteX and Verilator cannot work there."""
    if any(character.isspace() for character in str(folder)):
        raise TrebuchetError(
            f"make cannot build in {str(folder)!r}, which has a space in it; "
            "move the checkout to a folder without"
        )


def make_folder(folder: Path) -> Path:
    """``folder``, made if it is not there; raise :class:`TrebuchetError` if it takes no files."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        # The only sure way to know whether a folder takes files; nothing is left of it.
        with tempfile.TemporaryFile(dir=folder):
            pass
    return folder


def read_file(path: Path, most: int = MAX_FILE) -> bytes:
    """The contents of a file that the user named, ``most`` bytes."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise TrebuchetError(f"cannot read {path}: {error.strerror}; is the path right?") from error
    if len(data) > most:
        raise TrebuchetError(f"{path} must have at most {most} bytes; it has more")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Write a file: whole, or not at all. It keeps its permissions; raise :class:`OSError`."""
    with _written(path) as file:
        file.write(data)


@contextlib.contextmanager
def _written(path: Path) -> Iterator[BinaryIO]:
    # A name of its own, however long the file's is, and whatever lies beside it.
    temporary = path.with_name(f".trebuchet-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            yield file
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which is at ``path`` after the ``with`` block: whole, or not at all.

    A link stays, and what it points to is replaced. Raises :class:`TrebuchetError` if it cannot be
    written, and for a device.
    """
    if _is_special(path):
        raise TrebuchetError(f"{path} is no ordinary file; write one, then copy it there")
    try:
        with _written(Path(os.path.realpath(path))) as file:
            yield file
    except OSError as error:
        raise _unwritable(path, error) from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file that the user named: whole, or not at all.

    A link stays, and what it points to is written. A device or a pipe is written as it is.
    """
    try:
        if _is_special(path):
            path.write_bytes(data)
        else:
            write_whole(Path(os.path.realpath(path)), data)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> TrebuchetError:
    wrong = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)
    step = "; is the path right?" if isinstance(error, wrong) else ""
    return TrebuchetError(f"cannot write {path}: {error.strerror}{step}")


def check_files(files: dict[str, Path | None]) -> None:
    """Refuse a file to be written whose folder is not there, or may not be written to."""
    for name, path in files.items():
        if path is None:
            continue
        folder = path.resolve().parent
        if not folder.is_dir():
            raise TrebuchetError(f"--{name} {path}: there is no folder {folder}")
        if path.is_dir():
            raise TrebuchetError(f"--{name} {path}: this is a folder; name a file in it")
        if not os.access(path if path.exists() else folder, os.W_OK):
            raise TrebuchetError(f"--{name} {path}: it may not be written")


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
