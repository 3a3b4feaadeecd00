"""Clock and size of a real board, from a build that reaches a bitstream and meets its clock.

What the build itself took, time and memory, is told as well; the time is the machine's that day.
"""

import hashlib
import subprocess
import sys

from ..boards import load_board
from ..models.errors import TrebuchetError
from ..models.ledger import LOCK, tools
from ..soc.build import ROOT, build_board, generate_only
from ..soc.rom import ROW, stand_in
from .registry import BOARD_FIGURES

__all__ = ["design_digest", "measure"]


def measure(name: str) -> dict[str, float]:
    report = build_board(name, fresh=True)
    found = (
        report["sys_mhz"],
        round(report["lut4"] / report["lut4_available"], 4),
        report["ff"],
        report["bram"],
        report["dsp"],
        report["minutes"],
        round(report["peak_bytes"] / 2**30, 2),
    )
    return {f"board.{name}.{what}": value for what, value in zip(BOARD_FIGURES, found, strict=True)}


def design_digest(name: str) -> str:
    """Hash of the board's Verilog, constraints and scripts, its seed, and its tools' versions.

    The firmware is no part of it, and of the netlist only how many rows of block RAMs it takes
    (``soc/rom.py``); one more is seen in the board's size when it is built. In a process of its
    own: the order of statements that LiteX writes depends on the boards generated before.
    """
    code = f"from {__name__} import print_digest; print_digest({name!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise TrebuchetError(f"board {name!r} could not be generated: {lines[-1]}")
    return done.stdout.split()[-1]


def print_digest(name: str) -> None:
    """For :func:`design_digest`, on stdout."""
    board = load_board(name)
    placement = generate_only(board, ROOT / "build" / f"{name}.check")
    made_with = [line for line in tools((ROOT / LOCK).read_text()) if line.startswith("yowasp-")]
    rom = stand_in(ROW)
    design = f"{made_with} {board.seed} {board.sys_clk_hz} {rom} {placement.design()}"
    state = hashlib.sha256(design.encode())
    print(state.hexdigest())
