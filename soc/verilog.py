"""Verilog of an Amaranth component, and a check of Verilog that others wrote."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.back import verilog

from ..cores.roles.verilog_source import LANGUAGE
from ..models.collector import no_collector
from ..models.errors import TrebuchetError
from ..models.files import make_folder
from .processes import children_end_with_us
from .toolchain import LINKS, provide_tools, require_tool

__all__ = ["check_verilog", "join_constants", "to_verilog"]


def check_verilog(files, tools):
    """Raise :class:`TrebuchetError` for Verilog that Yosys does not read: it would simulate only.

    Parameters
    ----------
    files : sequence of path
        What :class:`~trebuchet.cores.roles.verilog.VerilogComponent` names as its files.
    tools : path
        As for :func:`~.toolchain.provide_tools`.
    """
    if not files:
        return
    provide_tools(tools)
    with tempfile.TemporaryDirectory(dir=make_folder(tools.parent)) as name:
        # Copies, because the WebAssembly build of Yosys does not see every folder.
        for number, path in enumerate(files):
            (Path(name) / f"{number}.v").write_text(Path(path).read_text())
        script = "; ".join(f"read_verilog -sv {number}.v" for number in range(len(files)))
        done = subprocess.run(
            [require_tool("yosys"), "-q", "-p", script],
            cwd=name,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        said = lines[0] if lines else f"Yosys ended with exit code {done.returncode}"
        for number, path in enumerate(files):
            said = said.replace(f"{number}.v:", f"{path}:")
        raise TrebuchetError(f"{said} (Verilog of roles must be {LANGUAGE})")


def to_verilog(component, name, ports=None):
    """The Verilog of ``component``, top module ``name``, without source locations.

    ``ports`` are those of its signature unless given. Amaranth writes Verilog with Yosys: that of
    the variable ``YOSYS``, that on PATH, or else the Python package's.
    """
    with no_collector(), children_end_with_us(), _yosys_found():
        return verilog.convert(
            component, name=name, ports=ports, emit_src=False, strip_internal_attrs=True
        )


@contextlib.contextmanager
def _yosys_found():
    """Within it ``YOSYS`` names the Python package's Yosys, unless another one can be found."""
    packaged = shutil.which(LINKS["yosys"]) or shutil.which(
        LINKS["yosys"], path=Path(sys.executable).parent
    )
    if "YOSYS" in os.environ or shutil.which("yosys"):
        yield
        return
    os.environ["YOSYS"] = packaged or require_tool("yosys")
    try:
        yield
    finally:
        del os.environ["YOSYS"]


#: A process without inputs: it assigns a constant to some bits of a signal.
_CONSTANT = re.compile(
    r"^  always @\*\n"
    r"(    (?P<name>\\\S+ |[A-Za-z_]\w*)\[[\d:]+\] = \d+'h(?P<value>[0-9a-f]+);\n)",
    re.MULTILINE,
)


def join_constants(text):
    """Return Yosys's Verilog ``text`` with no process that assigns but a constant other than 0.

    Where some bits of a signal are constant and others come from a process, Yosys writes
    ``always @*`` with the constant alone. It waits for no event, so a simulator never runs it, and
    those bits stay 0 there, but not in the FPGA: Yosys takes them for what they are. So the
    assignment is moved into a process that assigns other bits of the same signal, which both read
    alike. Bits that are 0 are so in any case. Raises ``ValueError`` if there is no such process.
    """
    modules = re.split(r"(?m)^(?=module )", text)
    return "".join(map(_join_in_module, modules))


def _join_in_module(text):
    found = [match for match in _CONSTANT.finditer(text) if int(match["value"], 16)]
    for match in found:
        text = text.replace(match[0], "", 1)
    for match in found:
        text = _join(text, match["name"], match[1])
    return text


def _join(text, name, statement):
    """``text`` with ``statement``, an assignment to ``name``, in another process of that signal."""
    signal = re.escape(name)
    line = re.search(rf"^  always @\*\n(    {signal}\[[^=\n]* = .*;\n)", text, re.MULTILINE)
    if line is not None:
        both = f"  always @* begin\n{statement}{line[1]}  end\n"
        return text.replace(line[0], both, 1)
    block = re.search(
        rf"^  always @\* begin\n(    if \(.*\) begin end\n)?(?=    (\{{ )?([^=\n]*, )?{signal}\[)",
        text,
        re.MULTILINE,
    )
    if block is None:
        raise ValueError(f"No process of {name.strip()} takes the assignment {statement.strip()}")
    return text[: block.end()] + statement + text[block.end() :]
