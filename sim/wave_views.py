"""Save files beside waves: which signals GTKWave and Surfer show first, in named groups.

Groups: the clocks and resets at the top's ports, each link of the top by its prefix, then the
streams of the shell and of its parts: every pair of ``…valid`` and ``…ready`` with its payload, and
states. GTKWave opens ``waves.gtkw`` (its save file), Surfer ``waves.sucl`` (a file of commands).
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ..models.errors import TrebuchetError
from ..models.files import write_whole
from .options import VIEWS
from .wave_names import Signal, signals

__all__ = ["GTKWAVE", "SURFER", "groups", "gtkwave", "surfer", "write_views"]

GTKWAVE, SURFER = VIEWS
#: Signals of a group at most; more hide what one looks for.
MOST = 24
_CLOCKS = re.compile(r"(.+__)?(sys_)?(clk|clock|rst|reset)|restarting|tick(_external)?")
#: Name of a port, up to the part that says which signal of it this is.
_PORT = re.compile(r"(?P<port>.+?)_(valid|ready|data|last|clk|cs_n|miso|mosi)")
_STREAM = re.compile(r"(?P<stream>.+)__(valid|ready|payload.*)")
_STATE = re.compile(r"(.*_)?state")
_TOP = "TOP"
_SHELL = "trebuchet_shell_instance"
#: GTKWave's flags of a line: hexadecimal, binary, beginning and end of a group.
_HEX, _BIN, _OPEN, _CLOSE = "@22", "@28", "@800200", "@1000200"


def _ports(top: list[Signal]) -> Iterator[tuple[str, list[Signal]]]:
    clocks = [signal for signal in top if _CLOCKS.fullmatch(signal.name)]
    yield "clock and reset", clocks
    links: dict[str, list[Signal]] = {}
    for signal in top:
        match = _PORT.fullmatch(signal.name)
        if match and signal not in clocks:
            links.setdefault(match["port"], []).append(signal)
    for name, found in links.items():
        yield name.replace("_", " "), found


def _streams(inside: list[Signal]) -> list[Signal]:
    """Streams that have both sides of the handshake, one after another, then states."""
    streams: dict[str, list[Signal]] = {}
    for signal in inside:
        match = _STREAM.fullmatch(signal.name)
        if match:
            streams.setdefault(match["stream"], []).append(signal)
    found = []
    for name, members in streams.items():
        if {f"{name}__valid", f"{name}__ready"} <= {signal.name for signal in members}:
            handshake = [s for s in members if s.name.endswith(("valid", "ready"))]
            found += handshake + [s for s in members if s not in handshake]
    return found + [signal for signal in inside if _STATE.fullmatch(signal.name)]


def groups(found: list[Signal]) -> dict[str, list[Signal]]:
    """Groups of the signals worth a first look, by name; empty ones are left out."""
    by_scope: dict[tuple[str, ...], list[Signal]] = {}
    for signal in found:
        by_scope.setdefault(signal.scope, []).append(signal)
    chosen = dict(_ports(by_scope.get((_TOP,), [])))
    shell = next((scope for scope in by_scope if scope[-1] == _SHELL), None)
    root = shell or next((scope for scope in by_scope if scope != (_TOP,)), (_TOP,))
    for scope, inside in by_scope.items():
        part = scope[len(root) :]
        if scope[: len(root)] == root and len(part) <= 1 and "$" not in "".join(part):
            chosen["shell" if shell and not part else ".".join(part or root)] = _streams(inside)
    return {name: some[:MOST] for name, some in chosen.items() if some}


def gtkwave(waves: Path, chosen: dict[str, list[Signal]]) -> str:
    """GTKWave's save file for ``waves``."""
    lines = [f'[dumpfile] "{waves.resolve()}"']
    for name, found in chosen.items():
        lines += [_OPEN, f"-{name}"]
        lines += [text for s in found for text in (_HEX if s.bits else _BIN, s.path + s.bits)]
        lines += [_CLOSE, f"-{name}"]
    return "\n".join(lines) + "\n"


def surfer(chosen: dict[str, list[Signal]]) -> str:
    """Surfer's commands that show the groups below dividers."""
    lines = []
    for name, found in chosen.items():
        lines += [f"divider_add {name}", *(f"variable_add {signal.path}" for signal in found)]
    return "\n".join([*lines, "zoom_fit"]) + "\n"


def write_views(waves: Path) -> tuple[Path, Path]:
    """Write both files beside an FST file; return their paths, GTKWave's first."""
    chosen = groups(signals(waves))
    paths = waves.with_suffix(GTKWAVE), waves.with_suffix(SURFER)
    for path, text in zip(paths, (gtkwave(waves, chosen), surfer(chosen)), strict=True):
        try:
            write_whole(path, text.encode())
        except OSError as error:
            raise TrebuchetError(f"cannot write {str(path)!r}: {error.strerror}") from error
    return paths
