"""Waveforms of named signals as files: FST and VCD for viewers, and GTKWave's list of signals."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .errors import TrebuchetError
from .files import write_whole

__all__ = ["FORMATS", "check_format", "gtkwave_list", "surfer_commands", "write_waves"]

#: Ends of the names of files that can be written.
FORMATS = (".fst", ".vcd")

Path_ = tuple[str, ...]
Changes = Iterable[tuple[int, Mapping[Path_, int]]]


def check_format(path: Path) -> None:
    """Raise an error if waves cannot be written to a file of this name: before they are made."""
    if path.suffix not in FORMATS:
        raise TrebuchetError(f"waves must be written to a file .fst or .vcd, not {str(path)!r}")
    if path.suffix == ".fst":
        import pylibfst  # noqa: F401 - it may be missing


def write_waves(path: Path, widths: Mapping[Path_, int], changes: Changes, end: int) -> None:
    """Write signals to an FST or, if the file's name ends in ``.vcd``, a VCD file.

    Parameters
    ----------
    path : Path
        Its end is one of :data:`FORMATS`.
    widths : mapping
        Bits of each signal, by names of its scopes and its own.
    changes : iterable
        Time in picoseconds, growing, and new values of signals.
    end : int
        Time of the end in picoseconds.
    """
    check_format(path)
    if path.suffix == ".vcd":
        write_whole(path, "".join(_vcd(widths, changes, end)).encode())
    else:
        _write_fst(path, widths, changes, end)


def _steps(here: Path_, there: Path_) -> tuple[int, Path_]:
    """How many scopes to leave, and which to enter."""
    common = 0
    while common < min(len(here), len(there)) and here[common] == there[common]:
        common += 1
    return len(here) - common, there[common:]


def _vcd(widths: Mapping[Path_, int], changes: Changes, end: int) -> Iterator[str]:
    yield "$version Trebuchet $end\n$timescale 1 ps $end\n"
    codes: dict[Path_, str] = {}
    here: Path_ = ()
    for name in sorted(widths):
        leave, enter = _steps(here, name[:-1])
        yield "$upscope $end\n" * leave
        yield from (f"$scope module {scope} $end\n" for scope in enter)
        here = name[:-1]
        codes[name] = f"s{len(codes)}"
        yield f"$var wire {widths[name]} {codes[name]} {name[-1]} $end\n"
    yield "$upscope $end\n" * len(here) + "$enddefinitions $end\n"
    for time, values in changes:
        yield f"#{time}\n"
        for name, value in values.items():
            single = widths[name] == 1
            yield f"{value}{codes[name]}\n" if single else f"b{value:b} {codes[name]}\n"
    yield f"#{end}\n"


def _write_fst(path: Path, widths: Mapping[Path_, int], changes: Changes, end: int) -> None:
    from pylibfst import ffi, lib

    with contextlib.suppress(OSError):
        path.touch()
    if not path.is_file():
        raise TrebuchetError(f"cannot write {str(path)!r}")
    writer: Any = lib.fstWriterCreate(str(path).encode(), 1)
    if writer == ffi.NULL:
        raise TrebuchetError(f"cannot write {str(path)!r}")
    lib.fstWriterSetTimescaleFromString(writer, b"1ps")
    handles: dict[Path_, Any] = {}
    here: Path_ = ()
    for name in sorted(widths):
        leave, enter = _steps(here, name[:-1])
        for _ in range(leave):
            lib.fstWriterSetUpscope(writer)
        for scope in enter:
            lib.fstWriterSetScope(writer, lib.FST_ST_VCD_MODULE, scope.encode(), b"")
        here = name[:-1]
        handles[name] = lib.fstWriterCreateVar(
            writer, lib.FST_VT_VCD_WIRE, lib.FST_VD_IMPLICIT, widths[name], name[-1].encode(), 0
        )
    for time, values in changes:
        lib.fstWriterEmitTimeChange(writer, time)
        for name, value in values.items():
            bits = format(value, "b").rjust(widths[name], "0").encode()
            lib.fstWriterEmitValueChange(writer, handles[name], bits)
    lib.fstWriterEmitTimeChange(writer, end)
    lib.fstWriterClose(writer)


def gtkwave_list(waves: Path, widths: Mapping[Path_, int], marker: int | None = None) -> str:
    """A save file for GTKWave (``gtkwave -a FILE``): all these signals of ``waves``.

    ``marker``: where its marker is, in units of the file's time.
    """
    lines = [f'[dumpfile] "{waves.resolve()}"']
    if marker is not None:
        lines.append(f"*0.0 {marker}")
    for name in widths:
        span = f"[{widths[name] - 1}:0]" if widths[name] > 1 else ""
        lines.append(("@22\n" if widths[name] > 1 else "@28\n") + ".".join(name) + span)
    return "\n".join(lines) + "\n"


def surfer_commands(widths: Mapping[Path_, int], marker: int | None = None) -> str:
    """Commands for Surfer (``surfer --command-file FILE WAVES``) that show all these signals."""
    lines = [f"variable_add {'.'.join(name)}" for name in widths]
    if marker is not None:
        lines.append(f"goto_time {marker}")
    return "\n".join([*lines, "zoom_fit"]) + "\n"
