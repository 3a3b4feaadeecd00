"""Compile the job server and the model node (`jobd/`), once for each content of their sources."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from ..models.ending import catch_termination, start_group
from ..models.errors import TrebuchetError
from ..models.files import check_no_space
from ..models.kept import kept
from ..models.paths import build_folder
from ..models.status import DESCRIPTIONS, Status

__all__ = [
    "ASIO",
    "FOLDER",
    "FUZZ",
    "JOBD",
    "LOAD",
    "NODE",
    "SCHEDULE",
    "VARIANTS",
    "build",
    "status_header",
]

#: Of the sources.
FOLDER = Path(__file__).resolve().parent.parent / "jobd"
JOBD, NODE = "trebuchet-jobd", "trebuchet-node"
FUZZ, LOAD = "trebuchet-jobd-fuzz", "trebuchet-jobd-load"
SCHEDULE = "trebuchet-jobd-schedule"
#: Programs by the makefile's variants: as users run them; with ASan and UBSan; with TSan.
VARIANTS = {
    "release": (JOBD, NODE, LOAD, SCHEDULE),
    "address": (JOBD, NODE, FUZZ),
    "thread": (JOBD,),
}
#: Of Debian's libasio-dev.
ASIO = Path("/usr/include/asio.hpp")


def status_header() -> str:
    """Return a C++ header with the status codes, their names and, as comments, their meanings."""
    lines = ["// Generated from models/status.py; do not edit.", "#pragma once", ""]
    lines += ["#include <cstdint>", "", "enum class Status : uint8_t {"]
    lines += [f"    {code.name} = {int(code)},  // {DESCRIPTIONS[code]}" for code in Status]
    lines += ["};", "", "inline const char* status_name(Status status) {"]
    lines += ["    switch (status) {"]
    lines += [f'        case Status::{code.name}: return "{code.name}";' for code in Status]
    lines += ["    }", '    return "a status that this version does not know";', "}"]
    return "\n".join(lines) + "\n"


def _need(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise TrebuchetError(
            f"compiling the job server needs {program}; install it with: "
            f"sudo apt-get install {program}"
        )
    return path


def _sources() -> list[Path]:
    return [FOLDER / "Makefile", *sorted((FOLDER / "src").iterdir())]


def _folder(variant: str) -> Path:
    version = subprocess.run(
        [_need("g++"), "--version"], capture_output=True, text=True, check=True
    ).stdout
    state = hashlib.sha256(f"{version}\0{status_header()}".encode())
    for path in _sources():
        state.update(f"\0{path.name}\0".encode() + path.read_bytes())
    top = build_folder("jobd")
    check_no_space(top)
    return top / f"{variant}-{state.hexdigest()[:20]}"


def _compile(folder: Path, variant: str) -> None:
    (folder / "status.h").write_text(status_header())
    jobs = len(os.sched_getaffinity(0))
    command = [_need("make"), "-s", "-C", str(FOLDER), "-j", str(jobs), f"OUT={folder}"]
    with (
        catch_termination(),
        start_group(
            [*command, f"VARIANT={variant}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as compiler,
    ):
        said, _ = compiler.communicate()
    if compiler.returncode:
        log = folder.with_suffix(".log")
        log.write_text(said)
        errors = [line for line in said.splitlines() if "error:" in line]
        first = errors[0] if errors else said.strip()[-200:]
        raise TrebuchetError(f"compiling the job server failed (see {log}): {first}")
    for made in folder.iterdir():
        if made.suffix in (".o", ".d", ".gch"):
            made.unlink()


def build(program: str, variant: str = "release") -> Path:
    """Return the path of a program of :data:`VARIANTS`; compile it if its sources are new.

    The build is kept below ``build/jobd`` (or ``$TREBUCHET_BUILD``).
    """
    if program not in VARIANTS.get(variant, ()):
        raise ValueError(f"there is no {program} in variant {variant}")
    if not ASIO.exists():
        raise TrebuchetError(
            "compiling the job server needs Asio; install it with: sudo apt-get install libasio-dev"
        )
    return kept(_folder(variant), lambda folder: _compile(folder, variant)) / program
