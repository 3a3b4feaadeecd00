"""A design of a few lines through the real Yosys and nextpnr, as LiteX's scripts would take it."""

import os
import shutil

from trebuchet.soc.place import Placement
from trebuchet.soc.toolchain import provide_tools

SCRIPT = """set -e
yosys  -l top.rpt top.ys
nextpnr-ecp5 --json top.json --lpf top.lpf --textcfg top.config --um-45k --package CABGA381 \
--speed 8 --seed 1
ecppack  --bootaddr 0  top.config --svf top.svf --bit top.bit
"""


def small_design(request, monkeypatch, name, verilog):
    """The :class:`Placement` of module ``top`` with a clock ``clk``, in a folder ``name``."""
    monkeypatch.setenv("PATH", os.environ["PATH"])
    # Not below /tmp, which the WebAssembly tools cannot see.
    folder = request.config.rootpath / "build" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    provide_tools(folder.parent / "bin")
    files = {
        "top.v": verilog,
        "top.ys": "read_verilog top.v\nsynth_ecp5 -top top\nwrite_json top.json\n",
        "top.lpf": 'FREQUENCY PORT "clk" 50.0 MHz;\nLOCATE COMP "clk" SITE "P3";\n',
        "build_top.sh": SCRIPT.replace("--seed 1", "--seed 1 --lpf-allow-unconstrained"),
    }
    for file, text in files.items():
        (folder / file).write_text(text)
    return Placement(folder, "top", 50_000_000)
