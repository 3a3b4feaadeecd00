"""What builds leave beside their results: a report by which the next one knows them again."""

import hashlib
import json
import os

from ..models.errors import TrebuchetError
from ..models.files import write_whole, writing_to

__all__ = ["IMAGE", "bitstream_entries", "bitstream_of", "is_whole", "read_report", "write_report"]

#: The golden firmware of a board with a boot ROM, in the build's folder: an image for its slot.
IMAGE = "firmware.img"

#: Entries of a report that are paths, or None.
_PATHS = ("bitstream", "application", "firmware", "floorplan", "project")


def read_report(path):
    """The report in a file; an empty one if there is none, or something else.

    A build may have been killed, or its folder used for other things: then it is not finished.
    """
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_report(path, values):
    """Write a report: whole, or not at all."""
    with writing_to(path.parent):
        write_whole(path, (json.dumps(values, indent=2) + "\n").encode())


def is_whole(report):
    """All that a report names is there."""
    named = [report[name] for name in _PATHS if report.get(name) is not None]
    return all(isinstance(path, str) and os.path.exists(path) for path in named)


def _has_bitstream(report):
    named = report.get("bitstream")
    return isinstance(named, str) and os.path.isfile(named)


def bitstream_of(name, board, folder):
    """Path of the bitstream in the report of ``folder``; ``name`` is as the user says the board."""
    report = read_report(folder / "report.json")
    if not _has_bitstream(report):
        raise TrebuchetError(
            f"there is no bitstream for {name!r} yet; build it with: trebuchet build {name}"
        )
    if (report.get("board"), report.get("device")) != (board.name, board.device):
        raise TrebuchetError(
            f"{folder} has a bitstream of board {report.get('board')!r} for "
            f"{report.get('device')!r}, not of {board.name!r} for {board.device!r}"
        )
    return report["bitstream"]


def bitstream_entries(path):
    """What a report says of the bitstream at ``path``; None: there is none."""
    if path is None:
        return {"bitstream": None}
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"bitstream": str(path), "bitstream_sha256": digest}
