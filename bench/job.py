"""A measurement as data: what its tools read, and what runs them.

A gating figure is a function of what a tool is given: a netlist, a script, a program with its
options. :class:`Job` holds exactly that, and its function takes nothing else of the gateware; the
key of a figure is the hash of the same objects (:mod:`.keys`). So no list of input files is written
by hand, and a change of the gateware that no tool can see measures nothing anew.

What may be among ``inputs``:

===================  =====================================================================
object               what counts
===================  =====================================================================
``str``, ``bytes``   itself
:class:`Netlist`     the RTLIL of a component, and Verilog files that it instantiates
``sim.build.Source`` Verilog, harness, options and tools of the simulator
``Path``             the file's contents
``dict``, ``list``,  their elements
``tuple``
numbers, ``None``    their value
===================  =====================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from amaranth.back import rtlil

from ..models.collector import no_collector

__all__ = ["Job", "Netlist", "Sampled", "Values"]

Values = dict[str, float]


class Netlist:
    """An Amaranth component and its RTLIL, without source locations.

    Parameters
    ----------
    make : callable
        Returns the component; it is called once, for the text.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

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


@dataclass(frozen=True)
class Sampled(Job):
    """A measurement that is noisy or dear: a dated figure, of several seeds.

    ``measure`` takes a seed. ``seeds`` are those that a row needs; one alone means that the result
    is the same each time, and dated because it takes long.
    """

    seeds: tuple[int, ...] = (1, 2, 3)
