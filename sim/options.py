"""Values of the simulator's options, checked before anything is generated or compiled."""

import re
import socket
from pathlib import Path

from ..models.errors import TrebuchetError
from ..models.files import check_files

__all__ = ["FLASH_BYTES", "chance_of", "check_chances", "check_drive", "check_flash", "check_gdb"]
__all__ += ["check_sd", "check_time", "check_trace", "check_uart", "check_web"]

#: Of the simulated board's flash (``harness/flash.h``).
FLASH_BYTES = 1 << 20

_TIME = re.compile(r"wall|soc|cycles:[1-9][0-9]*")
#: Endings of the save files beside waves: GTKWave's, Surfer's.
VIEWS = (".gtkw", ".sucl")
_BAD = re.compile(r"[0-9]+(\+[1-9][0-9]*)?")
_UART = re.compile(r"none|stdout|stdio|pty|file:.+")


def chance_of(value: object) -> float | None:
    """A chance that is a number, or text like ``"0.03"`` or ``"3%"``; None if it is none."""
    number: object = value
    if isinstance(value, str):
        percent = value.endswith("%")
        try:
            number = float(value.removesuffix("%")) / (100 if percent else 1)
        except ValueError:
            return None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 1:
        return None
    return float(number)


def check_chances(chances: dict[str, str | None]) -> None:
    """Refuse a chance that is none; option names without dashes, None where nothing was said."""
    for name, text in chances.items():
        if text is not None and chance_of(text) is None:
            raise TrebuchetError(
                f"--{name} must be a chance from 0 to 1 or in per cent, like 3%, not {text!r}"
            )


def check_time(text: str) -> None:
    """Refuse what ``--time`` of the harness does not take."""
    if not _TIME.fullmatch(text):
        raise TrebuchetError(f"--time must be wall, soc or cycles:N, not {text!r}")


def check_uart(text: str | None) -> None:
    """Refuse what ``--uart`` of the harness does not take; None: it was left out."""
    if text is not None and not _UART.fullmatch(text):
        raise TrebuchetError(f"--uart must be none, stdout, stdio, pty or file:PATH, not {text!r}")
    if text is not None and text.startswith("file:"):
        check_files({"uart": Path(text.removeprefix("file:"))})


def check_drive(path: Path | None, bad: str | None) -> None:
    """Refuse a file that is no medium of sectors, and sectors of it that are none."""
    if path is None:
        if bad is not None:
            raise TrebuchetError("--drive-bad is for the drive; give its file with --drive FILE")
        return
    _check_medium("drive", path, 512, "sectors of 512 bytes", "%512")
    if bad is not None and not _BAD.fullmatch(bad):
        raise TrebuchetError(f"--drive-bad must be LBA or LBA+COUNT, not {bad!r}")


def check_sd(path: Path | None, drive: Path | None) -> None:
    """Refuse a file that is no card, and a card beside a drive, of which a board has one."""
    if path is None:
        return
    if drive is not None:
        raise TrebuchetError("--sd and --drive exclude each other: a board has one drive")
    _check_medium("sd", path, 512 << 10, "units of 512 KiB", "%512K")


def _check_medium(option, path, unit, units, size_option):
    try:
        size = path.stat().st_size
    except OSError as error:
        raise TrebuchetError(f"--{option} {path}: {error.strerror}; is the path right?") from None
    if not path.is_file():
        raise TrebuchetError(f"--{option} {path}: this is no file; name one with {units}")
    if size == 0 or size % unit:
        raise TrebuchetError(
            f"--{option} {path}: must have {units}, not {size} bytes; fill it up with: "
            f"truncate --size {size_option} {path}"
        )


def check_flash(path: Path | None, size: int) -> None:
    """Refuse a file that is there and has another size than the board's flash."""
    if path is not None and path.is_file() and path.stat().st_size != size:
        raise TrebuchetError(
            f"--flash {path}: must have {size} bytes, not {path.stat().st_size}; "
            "name a new file, which is made"
        )


def check_gdb(port: int | None) -> None:
    """Refuse a port of this machine that is in use; 0 is any free one."""
    if not port:
        return
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise TrebuchetError(
            f"--gdb {port}: {error.strerror}; choose another port, or 0 for a free one"
        ) from None


def check_trace(path: Path | None) -> None:
    """Refuse a name that says another format than that of the waves."""
    if path is not None and path.suffix != ".fst":
        raise TrebuchetError(f"--trace {path}: waves are in FST; end the name in .fst")


def check_web(folder: Path | None, option: str = "--web") -> None:
    """Refuse a folder without a file to serve."""
    if folder is None:
        return
    if not folder.is_dir():
        raise TrebuchetError(
            f"{option} {folder} is no folder; name one whose files are to be served"
        )
    if not any(path.is_file() for path in folder.rglob("*")):
        raise TrebuchetError(f"{option} {folder}: there is no file in it; name another folder")
