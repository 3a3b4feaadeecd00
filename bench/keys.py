"""Keys of figures: the hash of all that a measurement's tools read, and of the harness' code."""

import hashlib
import importlib.metadata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..models.closure import closure
from ..models.sources import content_hash
from ..sim.build import HARNESS as SIMULATOR
from ..sim.build import VERILATOR_OPTIONS, Source
from .job import Job, Netlist

__all__ = ["harness_hash", "job_key", "simulator_key", "version"]

#: Folders of the code that turns a tool's output into a figure. Gateware is not among them: it
#: reaches a tool only as one of a job's inputs.
HARNESS = ("bench", "sim", "models")


def job_key(job: Job, target: str) -> str:
    """Return the hash of a job's inputs, its tools' versions and the code of ``target``.

    ``target`` is the ``"module:function"`` that made the job; see :func:`harness_hash`.
    """
    state = hashlib.sha256(harness_hash(target.partition(":")[0]).encode())
    for tool in job.tools:
        state.update(f"{tool} {version(tool)}\0".encode())
    for part in _parts(job.inputs):
        state.update(f"{len(part)}\0".encode() + part)
    return state.hexdigest()[:16]


def version(package: str) -> str:
    """Return the installed version of a Python package."""
    return importlib.metadata.version(package)


def harness_hash(module: str) -> str:
    """Return the hash of a module's code and of what it imports from :data:`HARNESS`.

    Comments and docstrings do not count.
    """
    state = hashlib.sha256()
    for path in sorted(closure([module], folders=HARNESS)):
        state.update(f"{path.name}\0{content_hash(path)}\0".encode())
    return state.hexdigest()


def simulator_key(source: Source) -> str:
    """Return the hash of what decides a simulation's results, the same on every machine.

    That is ``source``, the harness (comments left out), and Verilator's version and options; the
    C++ compiler is no part of it.
    """
    state = hashlib.sha256(f"{version('verilator')} {VERILATOR_OPTIONS}".encode())
    files = [path for path in sorted(SIMULATOR.rglob("*")) if path.is_file()]
    files += sorted(source.main.parent.iterdir()) if source.main else []
    for path in [*files, *source.files]:
        state.update(f"{Path(path).name} {content_hash(Path(path))}\0".encode())
    for name, text in [*sorted(source.texts.items()), ("kind", source.kind), ("top", source.top)]:
        state.update(f"{name} {len(text)}\0{text}".encode())
    return state.hexdigest()


def _parts(value: Any) -> Iterable[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, str):
        yield value.encode()
    elif isinstance(value, Netlist):
        yield from (text.encode() for text in value.texts)
    elif isinstance(value, Source):
        yield simulator_key(value).encode()
    elif isinstance(value, Path):
        yield value.read_bytes()
    elif isinstance(value, Mapping):
        for name, inner in sorted(value.items()):
            yield str(name).encode()
            yield from _parts(inner)
    elif isinstance(value, list | tuple):
        yield str(len(value)).encode()
        for inner in value:
            yield from _parts(inner)
    elif value is None or isinstance(value, int | float):
        yield repr(value).encode()
    else:
        raise TypeError(f"Input of a job must be text, a netlist or a file, not {value!r}")
