"""The simulated board with a processor of ours: it elaborates, its firmware boots and serves."""

import re

import pytest
from board_console import PROMPT, Console
from sim_tops import needs_network
from trebuchet.sim.build import Source, build
from trebuchet.sim.run import Board
from trebuchet.soc.build import build_sim
from trebuchet.soc.cpu import CORES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

#: Without a role: there is less to compile.
FILE = """
import dataclasses
from trebuchet.boards.sim import BOARD as SIM

BOARD = dataclasses.replace(SIM, name="sim_cpu", cpu_variant={variant!r}, role="none")
"""


@pytest.fixture(scope="module", params=sorted(CORES))
def files(request, root):
    """The core and the board's Verilog with it, from a board file."""
    folder = root / "build" / f"sim_{request.param}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "board.py"
    path.write_text(FILE.format(variant=request.param))
    return CORES[request.param], build_sim(folder, name=str(path))


def test_the_board_has_this_core_and_no_other(files):
    core, board = files
    cores = [path for path in board.sources if path.name.startswith("VexRiscv")]
    assert cores == [core.verilog]
    constants = (board.folder.parent / "software/include/generated/soc.h").read_text()
    assert f'#define CONFIG_CPU_HUMAN_NAME "{core.name}"' in constants
    assert f"#define CONFIG_CPU_VARIANT_{core.base.upper()}\n" in constants
    assert "#define TREBUCHET_CPU_CKSUM\n" in constants
    assert ("#define CONFIG_CPU_HAS_ICACHE\n" in constants) == core.cached


@needs_network
def test_its_firmware_boots_and_serves(files):
    core, found = files
    source = Source("board", found.top, {}, found.sources, found.folder, ready_port=7)
    with Board(build(source), uart="pty", cwd=found.folder) as board:
        console = Console(board.uart_device)
        console.until(r"ready\r\n")
        console.until(re.escape(PROMPT))
        assert console.run("version").startswith(f"Trebuchet 0.1.0 on sim_cpu, {core.name} at ")
        console.close()
        with board.connect(80) as peer:
            peer.sendall(b"GET /status HTTP/1.1\r\nHost: 10.0.0.2\r\n\r\n")
            assert peer.recv(65536).startswith(b"HTTP/1.1 200 ")
