"""What is measured is made anew when a file that it is built of changes."""

import re
from pathlib import Path

import pytest
from amaranth.back import rtlil
from trebuchet.bench.blocks import BLOCKS
from trebuchet.bench.registry import GROUPS
from trebuchet.bench.tcp_tiny import TINY
from trebuchet.cores.tcp.engine import TcpEngine
from trebuchet.models.ledger import ROOT, files

TCP = {"tcp": lambda: TcpEngine(TINY)}
GROUPS_OF = {name: [g for g in (f"{name}_ecp5", f"{name}_clock") if g in GROUPS] for name in BLOCKS}
GROUPS_OF |= {"tcp": ["tcp_tiny", "tcp_tiny_clock", "tcp_full_area", "gowin"]}
GROUPS_OF["router"] += ["router_area", "router_area_ecp5", "router_traffic"]
GROUPS_OF["ltl"] += ["ltl", "ltl_area"]
GROUPS_OF["bridge"] += ["bridge", "bridge_area"]
GROUPS_OF["ecg"] += ["ecg", "ecg_area", "ecg_transaction"]


@pytest.mark.parametrize("name", GROUPS_OF)
def test_inputs_have_every_source_of_the_gateware(name):
    """Each cell and wire says in which file it was made."""
    text = rtlil.convert((BLOCKS | TCP)[name](), name="top", emit_src=True)
    sources = {Path(found) for found in re.findall(r"[\"|]([^\"|:]+\.py):\d", text)}
    sources = {path for path in sources if path.is_relative_to(ROOT / "cores")}
    assert len(sources) > 2
    for group in GROUPS_OF[name]:
        missing = sources - set(files(GROUPS[group].inputs))
        assert not missing, f"`{group}` in bench/registry.py must name them as inputs"
