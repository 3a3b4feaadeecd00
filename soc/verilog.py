"""Verilog of an Amaranth component, and a check of Verilog that others wrote."""

import subprocess
import tempfile
from pathlib import Path

from amaranth.back import verilog

from ..cores.roles.verilog_source import LANGUAGE
from ..models.collector import no_collector
from ..models.errors import TrebuchetError
from ..models.files import make_folder
from .processes import children_end_with_us
from .toolchain import provide_tools, require_tool

__all__ = ["check_verilog", "to_verilog"]


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

    ``ports`` are those of its signature unless given. Amaranth needs Yosys on PATH
    (:func:`~.toolchain.provide_tools`).
    """
    with no_collector(), children_end_with_us():
        return verilog.convert(
            component, name=name, ports=ports, emit_src=False, strip_internal_attrs=True
        )
