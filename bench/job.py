"""A measurement as data: what its tools read, and what runs them.

A gating figure is a function of what a tool is given: a netlist, a script, a program with its
options. :class:`Job` holds exactly that, and its function takes nothing else of the gateware; the
key of a figure is the hash of the same objects (:meth:`Job.key`). So no list of input files is
written by hand, and a change of the gateware that no tool can see measures nothing anew.

What may be among ``inputs``:

===================  =====================================================================
object               what counts
===================  =====================================================================
``str``, ``bytes``   itself
:class:`Netlist`     the RTLIL of a component, and Verilog files that it instantiates
``sim.build.Source`` Verilog, harness, options and tools of the simulator (``sim.build.key``)
``Path``             the file's contents
``dict``, ``list``,  their elements
``tuple``
numbers, ``None``    their value
===================  =====================================================================
"""

import hashlib
import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from ..models.closure import closure
from ..models.collector import no_collector
from ..models.sources import content_hash
from ..sim.build import Source
from ..sim.build import key as simulator_key

__all__ = ["Job", "Netlist", "Sampled", "Values", "harness_hash", "version"]

Values = dict[str, float]
#: Folders of the code that turns a tool's output into a figure. Gateware is not among them: it
#: reaches a tool only as one of the inputs.
HARNESS = ("bench", "sim", "models")


class Netlist:
    """An Amaranth component and its RTLIL, without source locations.

    Parameters
    ----------
    make : callable
        Returns the component; called once for the text, and once for each :meth:`fresh`.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def fresh(self) -> Any:
        """Return the component anew, for a simulator that elaborates it."""
        return self._make()

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """RTLIL of the component as ``top``, then the Verilog files that it instantiates."""
        component = self._make()
        with no_collector():
            text = rtlil.convert(component, name="top", emit_src=False)
        return (text, *(Path(p).read_text() for p in getattr(component, "verilog_files", ())))


@dataclass(frozen=True)
class Job:
    """A measurement that is ready to be made.

    Attributes
    ----------
    inputs : tuple
        All that its tools read (see the module); their order counts.
    measure : callable
        Returns ``{figure: value}``. Of the gateware it may read ``inputs`` alone.
    tools : tuple of str
        Python packages whose version can change the result.
    """

    inputs: tuple[Any, ...]
    measure: Callable[..., Values]
    tools: tuple[str, ...] = ()

    def key(self, target: str) -> str:
        """Return the hash of the inputs, the tools' versions and the code of ``target``.

        ``target`` is the ``"module:function"`` that made this job; see :func:`harness_hash`.
        """
        state = hashlib.sha256(harness_hash(target.partition(":")[0]).encode())
        for tool in self.tools:
            state.update(f"{tool} {version(tool)}\0".encode())
        for part in _parts(self.inputs):
            state.update(f"{len(part)}\0".encode() + part)
        return state.hexdigest()[:16]


@dataclass(frozen=True)
class Sampled(Job):
    """A measurement that is noisy or dear: a dated figure, of several seeds.

    ``measure`` takes a seed. ``seeds`` are those that a row needs; one alone means that the result
    is the same each time, and dated because it takes long.
    """

    seeds: tuple[int, ...] = (1, 2, 3)


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
