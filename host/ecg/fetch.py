"""Getting ECG records from the network, which happens when the user asks for it only.

The project does not ship the MIT-BIH Arrhythmia Database. PhysioNet has it; where that cannot be
reached, five minutes of one record come from the package index, in an old version of SciPy.
"""

import hashlib
import subprocess
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ...models.ecg import data
from ...models.errors import TrebuchetError
from ...models.files import make_folder, write_whole, writing_to

__all__ = ["BASE", "RECORD", "WHEEL", "fetch_database", "fetch_demo"]

BASE = "https://physionet.org/files/mitdb/1.0.0"
#: Seconds in which a server must answer, and go on answering.
PATIENCE = 5
#: More than any file of the database has.
MOST = 1 << 22

#: SHA-256 of the files of the demo's record.
RECORD = {
    f"{data.DEMO}.hea": "8eb881c2ab7dbe24292c9d07c0ecd81ff3da08baba764c0f0409c33171db4c1c",
    f"{data.DEMO}.dat": "22873623623c44ee413a5b60cacb15d4af2723734836fb3ae45d9ff96bdb36e7",
    f"{data.DEMO}.atr": "33878519ee34d00cb233fdb15b11c2b8da0b0aea2e643d31b07105cc3392edf4",
}
#: The wheel for one platform, whatever this one is: nothing of it is run.
WHEEL = (
    "scipy==1.9.3 --hash=sha256:d01e1dd7b15bd2449c8bfc6b7cc67d630700ed655654f0dfcf121600bad205c9"
)
PLATFORM = [
    *("--platform", "manylinux_2_17_x86_64", "--python-version", "3.10"),
    *("--implementation", "cp", "--abi", "cp310", "--only-binary", ":all:"),
]
#: Its member with the record, and the SHA-256 of that.
MEMBER = "scipy/misc/ecg.dat"
EXCERPT = "f20ad3365fb9b7f845d0e5c48b6fe67081377ee466c3a220b7f69f35c8958baf"

#: Shows a line to the user.
Say = Callable[[str], None]


class Unreachable(Exception):
    """The server cannot be reached, or does not have the file; the message says which, and why."""


class Spoiled(TrebuchetError):
    """A file that is not the one that was asked for."""


def download(url: str) -> bytes:
    """The contents of a file; raise :class:`Unreachable`."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.read(MOST)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(f"{url}: {reason}") from error


def checked(content: bytes, sha256: str, name: str, where: str) -> bytes:
    """``content`` if its checksum is right; raise :class:`Spoiled`."""
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise Spoiled(
            f"{name} from {where} is corrupt: its SHA-256 must be {sha256}, not {found}; "
            "try again, and if it stays so copy the record from elsewhere"
        )
    return content


def is_there(folder: Path, files: dict[str, str]) -> bool:
    """Are all these files in the folder, with these checksums?"""
    paths = {folder / name: sha256 for name, sha256 in files.items()}
    return all(
        path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256
        for path, sha256 in paths.items()
    )


def keep(folder: Path, files: dict[str, bytes]) -> None:
    make_folder(folder)
    with writing_to(folder):
        for name, content in files.items():
            write_whole(folder / name, content)


def fetch_demo(folder: Path, base: str = BASE, say: Say = print) -> str:
    """Put the demo's record into ``folder`` unless it is there; return what it is.

    Raises :class:`TrebuchetError` if neither source can be reached.
    """
    excerpt = {data.EXCERPT_FILE: EXCERPT}
    if is_there(folder, RECORD):
        return data.DEMO
    if is_there(folder, excerpt):
        return data.EXCERPT
    make_folder(folder)
    try:
        contents = {
            name: checked(download(f"{base}/{name}"), sha256, name, base)
            for name, sha256 in RECORD.items()
        }
    except Unreachable:
        pass  # the second source is as good for a demonstration
    except Spoiled as error:
        say(str(error))
    else:
        keep(folder, contents)
        return data.DEMO
    with tempfile.TemporaryDirectory() as temporary:
        wheel = download_wheel(Path(temporary))
        content = read_member(wheel)
    keep(folder, {data.EXCERPT_FILE: content})
    return data.EXCERPT


def download_wheel(folder: Path) -> Path:
    """SciPy's wheel (34 MB) from the package index that pip uses, checked against its hash."""
    listed = folder / "wheel.lock"
    listed.write_text(WHEEL + "\n")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q"]
    command += ["--no-deps", "--require-hashes", *PLATFORM, "--retries", "1", "-d", str(folder)]
    try:
        done = subprocess.run(
            [*command, "-r", str(listed)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise TrebuchetError(f"cannot run {sys.executable}: {error.strerror}") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        raise TrebuchetError(
            "cannot fetch an ECG record: PhysioNet cannot be reached, and neither can SciPy 1.9.3 "
            f"on the package index ({pip_reason(done.stderr)}); with a network run "
            f"`trebuchet ecg fetch --demo`, or set {data.VARIABLE}"
        )
    return wheels[0]


def pip_reason(said: str) -> str:
    """The one line of pip's errors that says most."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines[-1:] or ["pip gave no reason"])[0]


def read_member(wheel: Path) -> bytes:
    """The record in the wheel; raise :class:`TrebuchetError`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            content = archive.read(MEMBER)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise TrebuchetError(f"{wheel.name} has no {MEMBER}: {error}") from error
    return checked(content, EXCERPT, MEMBER, wheel.name)


def fetch_database(
    folder: Path,
    base: str = BASE,
    names: Iterable[str] = (*data.DS1, *data.DS2, *data.OTHERS),
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Put the whole database (100 MB) into ``folder``, checked against PhysioNet's checksums.

    Files that are there and right are not fetched again.
    """
    make_folder(folder)
    wanted = [f"{name}.{end}" for name in sorted(names) for end in ("hea", "dat", "atr")]
    try:
        lines = download(f"{base}/SHA256SUMS.txt").decode(errors="replace").splitlines()
        sums = {words[1]: words[0] for line in lines if len(words := line.split()) == 2}
        for done, name in enumerate(wanted):
            progress(done, len(wanted))
            if name not in sums:
                raise Unreachable(f"{base}/SHA256SUMS.txt does not list {name}")
            if not is_there(folder, {name: sums[name]}):
                content = checked(download(f"{base}/{name}"), sums[name], name, base)
                keep(folder, {name: content})
    except Unreachable as error:
        raise TrebuchetError(
            f"cannot fetch the database ({error}); without a network copy the records to "
            f"{folder}, or to the folder that {data.VARIABLE} names"
        ) from error
    progress(len(wanted), len(wanted))
