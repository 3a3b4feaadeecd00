"""A simulated board with roles for SMP messages of every kind: what several test files share."""

import contextlib
import functools
import json
from pathlib import Path

from trebuchet.boards import load_board
from trebuchet.cores.tcp.config import TINY
from trebuchet.models import config_block
from trebuchet.models.plan import Plan
from trebuchet.models.role_folders import add_roles
from trebuchet.models.smp_framing import MESSAGE_HEADER
from trebuchet.sim.build import build
from trebuchet.sim.run import Board
from trebuchet.sim.tops import source

__all__ = ["FULL", "HUNG", "LONGEST", "LOOPBACK", "made", "registers", "simulated"]

#: Bytes of operand of the largest message that is taken, 31,308 bytes of a segment of 32 KiB: the
#: window need not open for the rest (``TcpConfig.unread``).
FULL = TINY.unread - MESSAGE_HEADER
#: Bytes of the longest result: the option of loopback asks for 4 bytes more than half of it.
LONGEST = (64 << 10) - 16
#: The numbers by which messages name roles of the board.
LOOPBACK, HUNG = 2, 3


@functools.cache
def made():
    """The board's top: ECG, benchmark, loopback, a role that hangs; result slots of 64 KiB."""
    add_roles(Path(__file__).parent / "hung")
    plan = Plan.of_roles("ecg", "benchmark", "loopback:result_bytes=32756", "hung")
    return source("board", plan)


def registers(block):
    """Registers of a block of the board, as ``registers.json`` has them."""
    content = json.loads((made().folder.parent / "registers.json").read_text())
    return content["blocks"][block]["registers"]


@contextlib.contextmanager
def simulated(folder, settings):
    """The board with the text ``settings`` in its flash, a file in ``folder``."""
    top, layout = made(), load_board("sim").flash
    block = config_block.pack(settings)
    flash = bytearray(b"\xff" * layout.size)
    flash[layout.config[0] : layout.config[0] + len(block)] = block
    path = folder / "flash.bin"
    path.write_bytes(flash)
    with Board(build(top), cwd=top.folder, ready="\nready\n", timeout=240, flash=path) as board:
        yield board
