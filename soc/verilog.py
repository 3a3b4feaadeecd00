"""Verilog of an Amaranth component."""

from amaranth.back import verilog

from ..models.collector import no_collector
from .processes import children_end_with_us

__all__ = ["to_verilog"]


def to_verilog(component, name, ports=None):
    """The Verilog of ``component``, top module ``name``, without source locations.

    ``ports`` are those of its signature unless given. Amaranth needs Yosys on PATH
    (:func:`~.toolchain.provide_tools`).
    """
    with no_collector(), children_end_with_us():
        return verilog.convert(
            component, name=name, ports=ports, emit_src=False, strip_internal_attrs=True
        )
