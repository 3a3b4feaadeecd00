"""Verilog stubs of the vendor's primitives that a design uses, so that a linter knows them.

Yosys brings the ports of every Xilinx primitive. Whether the parameters are right it checks itself;
here a primitive has those that the design gives it.
"""

import json
import re

__all__ = ["DUMP", "stubs"]

#: Yosys script that writes ``cells.json``.
DUMP = """\
read_verilog -lib +/xilinx/cells_sim.v +/xilinx/cells_xtra.v
blackbox =*
write_json cells.json
"""

_INSTANCE = re.compile(r"^\s*(\w+) (?:#\(\n(.*?)\n\s*\) *)?\w+ *\($", re.MULTILINE | re.DOTALL)


def stubs(cells, verilog):
    """Verilog of an empty module for each primitive of ``cells`` that ``verilog`` instantiates.

    Parameters
    ----------
    cells : str
        Text of ``cells.json``.
    verilog : str
        Text of the design, as LiteX formats it.
    """
    known = json.loads(cells)["modules"]
    used = {}
    for name, parameters in _INSTANCE.findall(verilog):
        if name in known:
            used.setdefault(name, set()).update(re.findall(r"^\s*\.(\w+)", parameters, re.M))
    return "\n".join(_stub(name, known[name], sorted(used[name])) for name in sorted(used))


def _stub(name, cell, parameters):
    ports = ", ".join(
        f"{port['direction']} wire [{len(port['bits']) - 1}:0] {p}"
        for p, port in cell["ports"].items()
    )
    values = ", ".join(f"parameter {p} = 0" for p in parameters)
    return f"module {name}{f' #({values})' if values else ''} ({ports});\nendmodule\n"
