"""From a board's Verilog to its canonical netlist, and what decides how that is placed.

Two keys stand for a design. That of its *synthesis* is of what Yosys is given, and so is there at
once; that of its *placement* is of what nextpnr is given: the canonical netlist
(:mod:`~.canonical`), constraints, options and tool, but for the seed. A comment changes neither.
"""

import hashlib
import json
import re
import time
from pathlib import Path

from ..models.errors import TrebuchetError
from ..models.sources import content_hash
from .canonical import Names, canonical_constraints, canonicalise, constrained
from .global_reset import promote_resets
from .reports import read_report, write_report
from .rom import ROW, stand_in
from .synthesis import READ_AGAIN
from .toolchain import PLACE_AND_ROUTE, ROUTERS, own_tools, tool_names

__all__ = ["design_key", "kept_netlist", "make_canonical", "names_of", "placed_from", "synthesise"]
__all__ += ["placing", "synthesis_inputs", "synthesis_key", "top_module"]

#: What is done with Yosys' netlist; its text is part of the key of a synthesis.
_CODE = ("canonical.py", "global_reset.py", "netlist.py")
_FILES = (".json", "_stat.json", "_names.json")
_LIBRARY_CELL = {"blackbox", "whitebox"}


def top_module(netlist, top):
    """The module ``top`` of a netlist, checked to have no others inside."""
    modules = netlist["modules"]
    flat = {
        name for name, module in modules.items() if not module["attributes"].keys() & _LIBRARY_CELL
    }
    inside = sorted({cell["type"] for cell in modules[top]["cells"].values()} & flat)
    if inside:
        raise TrebuchetError(f"the netlist of {top} must be flat; {inside[0]} is a module inside")
    return modules[top]


def make_canonical(path, top, keep=(), settings=None, names=None):
    """Replace the netlist in the file ``path``, Yosys' JSON, by its canonical form.

    Parameters
    ----------
    path : Path
        Netlist whose module ``top`` is flat.
    keep : set of str
        Names that constraints refer to (:func:`~.canonical.constrained`).
    settings : dict, optional
        Settings of nextpnr that have no option, which it takes from the netlist. With them, large
        resets are put on the global network, as an ECP5 has it.
    names : Path, optional
        File for the design's names (:class:`~.canonical.Names`).
    """
    module, found = canonicalise(top_module(json.loads(path.read_text()), top), keep)
    if settings is not None:
        module["settings"] = settings
        promote_resets(module)
    path.write_text(json.dumps({"modules": {top: module}}, separators=(",", ":")))
    if names is not None:
        found.write(names)


def _read(placement):
    """What Yosys reads: its script, Verilog, and contents of memories as far as they are there."""
    script = placement.mapping()
    names = re.findall(r"^read_verilog (\S+)$", script, re.MULTILINE)
    code = [(placement.folder / name).read_text() for name in names]
    memories = re.findall(r'\$readmemh\("([^"]+)"', "\n".join(code))
    paths = [placement.folder / name for name in memories]
    return script, code, [path.read_text() for path in paths if path.exists()]


def synthesis_inputs(placement):
    """Text of all that decides what :func:`synthesise` makes, the same everywhere and at any time.

    Contents of memories are part of it as far as they are there.
    """
    script, code, contents = _read(placement)
    keep = sorted(constrained(placement.path(".lpf").read_text()))
    steps = [content_hash(Path(__file__).with_name(name)) for name in _CODE]
    settings = json.dumps(ROUTERS[placement.router])
    return "\n".join([script, *code, *contents, *keep, settings, *steps])


def synthesis_key(placement):
    """Key of the synthesis; None if Yosys reads what is not in :func:`synthesis_inputs`.

    That is other languages, Verilog that includes files, other ways to fill memories.
    """
    script, code, _ = _read(placement)
    ours = script.replace(READ_AGAIN, "")  # what that reads is of Yosys, or written before
    others = re.search(r"^read_(?!verilog \S+$)", ours, re.MULTILINE)
    if others or any(re.search(r"`include|\$readmem(?!h\(\")", text) for text in code):
        return None
    yosys = tool_names(["yosys"], own_tools(["yosys"]))
    return _digest(synthesis_inputs(placement), *yosys)


def _digest(*texts):
    state = hashlib.sha256()
    for text in texts:
        state.update(f"{len(text)} {text}".encode())
    return state.hexdigest()


def _digests(placement):
    paths = map(placement.path, _FILES)
    return [hashlib.sha256(p.read_bytes()).hexdigest() if p.exists() else None for p in paths]


def kept_netlist(placement):
    """What the last :func:`synthesise` in this folder returned, if it would make the same now."""
    found = read_report(placement.path("_synthesis.json"))
    if found.get("inputs") is None or found.get("results") != _digests(placement):
        return None
    return found if found["inputs"] == synthesis_key(placement) else None


def synthesise(placement):
    """Make the canonical netlist; beside it are its statistics and the design's names.

    Returns
    -------
    dict
        ``seconds`` it took and ``peak_bytes`` of Yosys' memory, among others; kept in a file.
    """
    top, stamp = placement.top, placement.path("_synthesis.json")
    stamp.unlink(missing_ok=True)
    began, inputs = time.monotonic(), synthesis_key(placement)
    script = placement.path("_mapping.ys")
    commands = placement.mapping()
    script.write_text(commands + f"\ntee -q -o {top}_stat.json stat -json -top {top}\n")
    own = {placement.path(".ys").name: script.name}
    words = [own.get(word, word) for word in placement.command("yosys")]
    placement.run(words, "yosys.log")
    constraints = placement.path(".lpf")
    constraints.write_text(canonical_constraints(constraints.read_text()))
    keep = constrained(constraints.read_text())
    names = placement.path("_names.json")
    make_canonical(placement.path(".json"), top, keep, ROUTERS[placement.router], names)
    kept = {
        "inputs": inputs,
        "results": _digests(placement),
        "seconds": round(time.monotonic() - began, 1),
        "peak_bytes": placement.peaks[-1],
    }
    write_report(stamp, kept)
    return kept


def design_key(placement):
    """Key of a design of which nothing is synthesised and whose firmware is not there.

    The firmware's size is not in it, but what stands for it is.
    """
    constraints = canonical_constraints(placement.path(".lpf").read_text())
    texts = [synthesis_inputs(placement), constraints, *placing(placement)]
    yosys = tool_names(["yosys"], own_tools(["yosys"]))
    return _digest(*texts, *yosys, f"{placement.sys_clk_hz} {stand_in(ROW)}")[:16]


def names_of(placement):
    """The design's names, which :func:`synthesise` left; of another's netlist there are none."""
    path = placement.path("_names.json")
    return Names.read(path) if path.exists() else Names((), ())


def placed_from(placement):
    """Key of all that decides how the netlist is placed and routed, but for the seed."""
    netlist = placement.path(".json").read_text()
    constraints = canonical_constraints(placement.path(".lpf").read_text())
    return _digest(netlist, constraints, *placing(placement))


def placing(placement):
    """Options of place and route, without its seed and the names of files; and the tool."""
    words = placement.command("nextpnr-ecp5")
    for option in ("--json", "--lpf", "--textcfg", "--seed"):
        if option in words:
            at = words.index(option)
            del words[at : at + 2]
    tool = tool_names(["nextpnr-ecp5"], own_tools(["nextpnr-ecp5"]))
    return [*words, *PLACE_AND_ROUTE, *tool]
