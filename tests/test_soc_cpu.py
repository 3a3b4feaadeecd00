"""The simulated board with a processor of ours is generated with it."""

import pytest
from trebuchet.soc.build import build_sim
from trebuchet.soc.cpu import CORES

pytestmark = pytest.mark.nightly

#: Without a role: there is less to compile.
FILE = """
import dataclasses
from trebuchet.boards.sim import BOARD as SIM

BOARD = dataclasses.replace(SIM, name="sim_cpu", cpu_variant={variant!r}, plan=Plan())
"""


VARIANTS = ["trebuchet", "trebuchet_cached"]


@pytest.fixture(scope="module", params=VARIANTS)
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
