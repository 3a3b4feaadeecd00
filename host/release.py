"""`trebuchet release`: what boards need of the builds on this machine, in one folder.

The folder ``trebuchet-VERSION`` has a folder for each build (bitstreams, image of the firmware,
register maps, its report), ``CHANGES.md`` (this version's section of the change log),
``RELEASE.json`` and ``SHA256SUMS``, which ``sha256sum --check`` compares with the copies.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import __version__
from ..models.errors import TrebuchetError
from ..models.files import make_folder, writing_to
from ..models.paths import BUILD, TREE

__all__ = ["SUMS", "changes", "collect", "release"]

SUMS = "SHA256SUMS"
#: Entries of a build's report that are files of the release.
_FILES = ("bitstream", "application", "firmware", "floorplan")
#: Register maps in a build's folder.
_MAPS = ("registers.json", "registers.svd", "csr.json", "csr.csv", "csr.svd")


def _reports(build: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Folders of finished builds with a bitstream, and their reports."""
    for path in sorted(build.glob("*/report.json")):
        try:
            report = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # a build that was killed, or another file of that name
        if isinstance(report, dict) and report.get("bitstream") and report.get("board"):
            yield path.parent, report


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _copy(folder: Path, report: dict[str, Any], target: Path) -> dict[str, Any]:
    """Copy what a build left; the report with names in the place of paths."""
    name = report["board"]
    target.mkdir()
    shown = dict(report)
    for entry in _FILES:
        path = Path(report[entry]) if report.get(entry) else None
        if path is None:
            continue
        if not path.is_file():
            raise TrebuchetError(
                f"{folder}: {path} of its report is gone; build it again with: "
                f"trebuchet build {name}"
            )
        if entry == "bitstream" and _digest(path) != report.get("bitstream_sha256"):
            raise TrebuchetError(
                f"{path} is not what the build in {folder} reported; build it again with: "
                f"trebuchet build {name} --fresh"
            )
        shutil.copyfile(path, target / path.name)
        shown[entry] = path.name
    if report.get("project"):
        shown["project"] = None
    for file in _MAPS:
        if (folder / file).is_file():
            shutil.copyfile(folder / file, target / file)
    (target / "report.json").write_text(json.dumps(shown, indent=2) + "\n")
    return shown


def changes(version: str, log: Path = TREE / "CHANGELOG.md") -> str:
    """Return the section of ``version`` in the change log, with its heading."""
    sections = re.split(r"^(?=## )", log.read_text(), flags=re.MULTILINE)
    for section in sections:
        heading, _, body = section.partition("\n")
        if heading.strip() == f"## {version}" and body.strip():
            return section.rstrip() + "\n"
    raise TrebuchetError(
        f"{log} must have a section '## {version}', the version of pyproject.toml; write it first"
    )


def _commit() -> dict[str, Any]:
    """The commit of the source tree, and whether files differ from it; None without git."""

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(TREE), *words], capture_output=True, text=True, check=False
            )
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    changed = git("status", "--porcelain")
    return {
        "commit": git("rev-parse", "HEAD"),
        "changed": None if changed is None else changed > "",
    }


def _fill(target: Path, found: list[tuple[Path, dict[str, Any]]]) -> None:
    builds = {folder.name: _copy(folder, report, target / folder.name) for folder, report in found}
    (target / "CHANGES.md").write_text(changes(__version__))
    said = {"version": __version__, **_commit(), "builds": builds}
    (target / "RELEASE.json").write_text(json.dumps(said, indent=2) + "\n")
    files = sorted(path for path in target.rglob("*") if path.is_file())
    lines = (f"{_digest(path)}  {path.relative_to(target).as_posix()}\n" for path in files)
    (target / SUMS).write_text("".join(lines))


def collect(output: Path, boards: list[str], build: Path = BUILD) -> tuple[Path, list[str]]:
    """Make the release's folder below ``output``; return it and the names of its builds.

    ``boards`` chooses builds by board; empty: all. An earlier release of the same version is
    replaced. The folder appears whole or not at all.
    """
    found = [(f, r) for f, r in _reports(build) if not boards or r["board"] in boards]
    missing = sorted(set(boards) - {report["board"] for _, report in found})
    if missing:
        raise TrebuchetError(
            f"board {missing[0]!r} has no bitstream in {build}; "
            f"build it with: trebuchet build {missing[0]}"
        )
    if not found:
        raise TrebuchetError(
            f"no board in {build} has a bitstream; build one with: trebuchet build NAME"
        )
    target = make_folder(output) / f"trebuchet-{__version__}"
    if target.exists() and not (target / SUMS).is_file():
        raise TrebuchetError(f"{target} is there and is no release; choose another --output")
    with writing_to(output):
        new = Path(tempfile.mkdtemp(prefix=".release-", dir=output))
        try:
            _fill(new, found)
            new.chmod(0o755)
            if target.exists():
                shutil.rmtree(target)
            new.rename(target)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
    return target, [folder.name for folder, _ in found]


def release(
    boards: Annotated[
        list[str] | None,
        typer.Argument(metavar="BOARD", help="Boards to take; all that are built if left out."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where the folder is made; build/release if left out.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Collect bitstreams, register maps and checksums of built boards, with this version's changes.

    Nothing is built: `trebuchet build BOARD` does that, and is done at once if nothing changed.
    """
    target, names = collect(output or BUILD / "release", boards or [])
    if as_json:
        typer.echo(json.dumps({"folder": str(target), "builds": names}, indent=2))
        return
    typer.echo(f"{target}: {', '.join(names)}")
    typer.echo(f"check it with: cd {target} && sha256sum --check {SUMS}")
