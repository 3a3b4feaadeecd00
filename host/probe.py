"""`trebuchet probe`: look at signals inside a running board, around a trigger (docs/probe.md)."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..client import Board
from ..client.probe import ProbeState
from ..models.capture import Capture, Layout
from ..models.errors import TrebuchetError
from ..models.progress import Deadline, current_simulation
from ..models.waves import check_format, gtkwave_list, surfer_commands, write_waves
from .manage import TIMEOUT
from .options import AsJson, Seconds, a_number, open_board
from .output import aligned

__all__ = ["probe"]

_PAUSE = 0.1
_PICO = 1_000_000_000_000
#: Scope of all signals in a file of waves.
_TOP = "trebuchet"
_DAY = 86_400.0


def _check_file(path: Path) -> None:
    check_format(path)
    folder = path.resolve().parent
    if not folder.is_dir() or path.is_dir():
        raise TrebuchetError(f"-o {path}: it must be a file in a folder that there is")


def _list(layout: Layout, as_json: bool) -> None:
    if as_json:
        said = {
            "depth": layout.depth,
            "stamp_width": layout.stamp_width,
            "probes": [{"name": p.name, "width": p.width} for p in layout.probes],
        }
        typer.echo(json.dumps(said, indent=2))
        return
    rows = [(p.name, f"{p.width} bits" if p.width > 1 else "1 bit") for p in layout.probes]
    typer.echo("\n".join(aligned(rows)))
    typer.echo(f"{layout.width} bits, {layout.depth} records")


def _wait(board: Board, seconds: float, anyway: bool) -> None:
    """Wait for the end of the capture; after ``seconds`` give up, or stop it."""
    end = Deadline(seconds, current_simulation())
    state: ProbeState = board.probe_state()
    while not state.done:
        if end.left() == 0:
            if not anyway and not state.triggered:
                raise TrebuchetError(
                    f"the trigger was not met within {seconds:g} s; wait longer with --wait, or "
                    "take what there is with --anyway"
                )
            board.stop_probes()
            return
        time.sleep(_PAUSE)
        state = board.probe_state()


def _path(name: str) -> tuple[str, ...]:
    return (_TOP, *name.split("."))


def _write(capture: Capture, path: Path) -> dict[str, str]:
    """Write waves and the viewers' files beside them; their names by viewer."""
    layout, first = capture.layout, capture.records[0][0]

    def picoseconds(cycle: int) -> int:
        return (cycle - first) * _PICO // capture.hz

    cycle_name, trigger_name = _path("cycle"), _path("trigger")
    widths = {cycle_name: layout.time_width, trigger_name: 1}
    widths |= {_path(probe.name): probe.width for probe in layout.probes}

    def changes() -> Iterator[tuple[int, dict[tuple[str, ...], int]]]:
        rows = {cycle: dict(values) for cycle, values in capture.changes()}
        after = None if capture.trigger is None else capture.trigger + 1
        if after is not None and after <= capture.end:
            rows.setdefault(after, {})
        for cycle in sorted(rows):
            values = {_path(name): value for name, value in rows[cycle].items()}
            values |= {cycle_name: cycle, trigger_name: int(cycle == capture.trigger)}
            yield picoseconds(cycle), values

    write_waves(path, widths, changes(), picoseconds(capture.end + 1))
    marker = None if capture.trigger is None else picoseconds(capture.trigger)
    beside = {
        "gtkwave": (path.with_suffix(".gtkw"), gtkwave_list(path, widths, marker)),
        "surfer": (path.with_suffix(".sucl"), surfer_commands(widths, marker)),
    }
    for file, text in beside.values():
        file.write_text(text, encoding="utf-8")
    return {viewer: str(file) for viewer, (file, _) in beside.items()}


def _as_json(capture: Capture, stream: str | None) -> dict[str, Any]:
    said: dict[str, Any] = {} if stream is None else {"stream": stream}
    if stream is not None:
        found = capture.transfers(stream)
        said["transfers"] = [{"cycle": cycle, "values": values} for cycle, values in found]
    return said | {
        "hz": capture.hz,
        "trigger": capture.trigger,
        "end": capture.end,
        "probes": [{"name": p.name, "width": p.width} for p in capture.layout.probes],
        "changes": [{"cycle": cycle, "values": values} for cycle, values in capture.changes()],
    }


def _origin(capture: Capture) -> int:
    """Cycle that rows of a table count from: the trigger's, or the first one."""
    return capture.records[0][0] if capture.trigger is None else capture.trigger


def _table(capture: Capture, rows: int) -> list[str]:
    """Lines around the trigger: cycles from it on, and what changed."""
    changes = list(capture.changes())
    origin = _origin(capture)
    middle = next((k for k, (cycle, _) in enumerate(changes) if cycle >= origin), 0)
    first = max(0, min(middle - rows // 2, len(changes) - rows))
    shown = changes[first : first + rows]
    return aligned(
        [
            (
                f"{cycle - origin:+d}",
                "trigger" if cycle == capture.trigger else "",
                " ".join(f"{name}={value:#x}" for name, value in values.items()),
            )
            for cycle, values in shown
        ]
    )


def _transfers(capture: Capture, stream: str, rows: int) -> list[str]:
    """Lines around the trigger: cycles and milliseconds from it on, payload of a transfer."""
    found = list(capture.transfers(stream))
    origin = _origin(capture)
    if not found:
        return [f"no transfer of {capture.layout.stream(stream)} in the capture"]
    middle = next((k for k, (cycle, _) in enumerate(found) if cycle >= origin), len(found))
    first = max(0, min(middle - rows // 2, len(found) - rows))
    return aligned(
        [("cycle", "ms", *found[0][1])]
        + [
            (
                f"{cycle - origin:+d}",
                f"{1000 * capture.seconds(cycle):+.4f}",
                *map(str, values.values()),
            )
            for cycle, values in found[first : first + rows]
        ]
    )


def _show(capture: Capture, rows: int, stream: str | None) -> None:
    lasted = capture.end + 1 - capture.records[0][0]
    typer.echo(
        f"{len(capture.records)} records, {lasted} cycles ({1000 * lasted / capture.hz:.3f} ms); "
        + ("stopped before the trigger" if capture.trigger is None else "from the trigger on:")
    )
    lines = _table(capture, rows) if stream is None else _transfers(capture, stream, rows)
    typer.echo("\n".join(lines))


def probe(
    board: Annotated[str, typer.Argument(help="Address of the board, HOST or HOST:PORT.")],
    trigger: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            help="NAME=VALUE, NAME=VALUE/MASK, or NAME:rise, :fall, :change; the end of a name "
            "does. Again for further ones: all equalities and one of the edges. Left out: at once.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write waves: FILE.fst or FILE.vcd."),
    ] = None,
    before: Annotated[
        int | None,
        typer.Option(min=0, help="Records to keep from before the trigger; a quarter if left out."),
    ] = None,
    wait: Annotated[
        float,
        typer.Option(
            min=0.1, max=_DAY, callback=a_number, help="Seconds to wait for the end of the capture."
        ),
    ] = 30.0,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Then take what there is, if there was no trigger.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="Only say which signals the board samples.")
    ] = False,
    arm: Annotated[
        bool, typer.Option("--arm", help="Only begin a capture, for --read later.")
    ] = False,
    read: Annotated[
        bool, typer.Option("--read", help="Wait for the end of a capture that --arm began.")
    ] = False,
    transfers: Annotated[
        str | None,
        typer.Option(
            metavar="STREAM",
            help="Show the transfers of a stream, such as tcp.tx_segment, instead of changes.",
        ),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Lines to show around the trigger.")] = 24,
    map_file: Annotated[
        Path | None,
        typer.Option("--map", metavar="FILE", help="As of `trebuchet registers`."),
    ] = None,
    as_json: AsJson = False,
    timeout: Seconds = TIMEOUT,
) -> None:
    """Capture signals inside a running board around a trigger.

    The board's plan names the signals (`--probe` of `trebuchet build` and `trebuchet sim`). Beside
    the waves lie a save file for GTKWave and commands for Surfer, which show all signals.
    """
    if arm and read or listed and (arm or read):
        raise TrebuchetError("--list, --arm and --read exclude each other; choose one of them")
    if read and (trigger or before is not None):
        raise TrebuchetError("--trigger and --before are said when a capture begins, with --arm")
    if (listed or arm) and output is not None:
        raise TrebuchetError("--output is for records that are read; leave out --list and --arm")
    if listed and (trigger or before is not None):
        raise TrebuchetError("--list captures nothing; leave out --trigger and --before")
    if output is not None:
        _check_file(output)
    with open_board(board, timeout) as opened:
        if map_file is not None:
            opened.register_map(map_file)
        layout = opened.probe_layout()
        if listed:
            _list(layout, as_json)
            return
        stream = None if transfers is None else layout.stream(transfers)
        if not read:
            opened.arm_probes(trigger or (), before)
        if arm:
            typer.echo(json.dumps({"armed": True}) if as_json else "armed; go on with --read")
            return
        _wait(opened, wait, anyway)
        capture = opened.read_probes()
    files = {} if output is None else {"waves": str(output), **_write(capture, output)}
    if as_json:
        typer.echo(json.dumps(_as_json(capture, stream) | {"files": files}, indent=2))
        return
    _show(capture, rows, stream)
    if output is not None:
        typer.echo(f"{output}; show it with: gtkwave {files['gtkwave']}, or")
        typer.echo(f"surfer --command-file {files['surfer']} {output}")
