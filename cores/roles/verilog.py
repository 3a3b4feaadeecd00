"""Modules in plain Verilog as components: a role, or the body of a packet role."""

from pathlib import Path

from amaranth import ClockSignal, Instance, Module, ResetSignal, Signal
from amaranth.hdl import Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from ..engines.contract import EngineLimits, StreamEngineSignature
from .contract import RoleSignature
from .verilog_source import LANGUAGE, module_names, readable

__all__ = ["VerilogBody", "VerilogComponent", "VerilogRole"]


class VerilogComponent(wiring.Component):
    """A module in a Verilog file, with the ports that a signature asks for.

    Parameters
    ----------
    path : path
        The Verilog file, in UTF-8 or Latin-1: Verilog-2005, or the SystemVerilog that both
        Verilator and Yosys (``read_verilog -sv``) read. Files beside it may be included.
    module : str
        Name of the module in it; an escaped name with or without its ``\\``.
    signature : wiring.Signature or dict
        Its ports, as the module sees them.
    parameters : dict
        Verilog parameters by name.

    Each member is a port, its name the path to it joined by ``_``; a payload that is a struct is a
    port for each field, without ``payload`` in the name: ``job_valid``, ``job_ready``,
    ``job_length``, ``mem_cmd_addr``, ``csr_key``. A field without bits has no port; nor has a
    job's ``role``, which is of no concern to a role. Beside these
    the module has the inputs ``clk`` and ``rst``, a synchronous reset, active high.

    ``verilog_files`` names the file, or a copy that all tools can read, for whoever compiles the
    design: what is built around a component hands it on. Amaranth's own simulator cannot run
    Verilog: use ``sim/roles.py``.

    Reset: ``rst`` is 1 in reset and in the cycle after it, also when the component alone is reset
    (``ResetInserter``); its streams are quiet then. Latency, throughput, bad input: the module's.
    """

    def __init__(self, path, module, signature, parameters=None):
        self.path, self.module = Path(path), module.removeprefix("\\").rstrip()
        self.parameters = dict(parameters or {})
        if not self.path.is_file():
            raise ValueError(f"Verilog file must exist, which {str(path)!r} does not")
        copy, text = readable(self.path)
        names = module_names(text)
        if self.module not in names:
            raise ValueError(
                f"Verilog file {str(path)!r} must contain module {module!r}; "
                f"its modules are {', '.join(names) or 'none'}, read as {LANGUAGE}"
            )
        self.verilog_files = (copy,)
        super().__init__(signature)

    # A reset inserted around the component reaches registers, not instances. So a register tells
    # the instance: it is 0 after any reset and becomes 1 in the first cycle without one. In the
    # meantime nothing may move on any stream.
    def elaborate(self, platform):
        m = Module()
        alive = Signal()
        m.d.sync += alive.eq(1)
        ports = {"i_clk": ClockSignal(), "i_rst": ResetSignal() | ~alive}
        ports |= {f"p_{name}": value for name, value in self.parameters.items()}
        for path, member, value in self.signature.flatten(self):
            for name, part in self._parts(path, value):
                if member.flow == In:
                    ports[f"i_{name}"] = part
                elif path[-1] in ("valid", "ready"):
                    own = Signal(name=f"{name}_own")
                    ports[f"o_{name}"] = own
                    m.d.comb += part.eq(own & alive)
                else:
                    ports[f"o_{name}"] = part
        m.submodules.instance = Instance(self.module, **ports)
        return m

    @staticmethod
    def _parts(path, value):
        """``(port name, signal)`` of a member, or of each field of a payload."""
        names = [str(part) for part in path if part != "payload"]
        if isinstance(value, data.View):
            for field, _ in value.shape():
                part = Value.cast(value[field])
                if len(part) and (*names, field) != ("job", "role"):
                    yield "_".join([*names, field]), part
        else:
            yield "_".join(names), Value.cast(value)


class VerilogRole(VerilogComponent):
    """A role in Verilog: its ports are those of ``RoleSignature`` (``docs/roles.md`` lists them).

    Parameters: ``path``, ``module``, ``parameters`` of :class:`VerilogComponent`; ``width``,
    ``tag_width`` of the memory port; ``block``, the role's own registers or None.
    """

    def __init__(self, path, module, width=32, tag_width=2, block=None, parameters=None):
        super().__init__(path, module, RoleSignature(block, width, tag_width), parameters)


class VerilogBody(VerilogComponent):
    """The body of a stream engine (:mod:`~trebuchet.cores.engines.contract`) in Verilog.

    Ports: ``i_valid``, ``i_ready``, ``i_data``, ``i_empty``, ``i_first``, ``i_last``, ``i_error``,
    the same with ``o_``, and the registers. Parameters: as :class:`VerilogRole`; ``limits``, what
    it promises, nothing if left out.
    """

    def __init__(
        self, path, module, width=32, block=None, parameters=None, *, limits=EngineLimits()
    ):
        self.limits = limits
        super().__init__(path, module, StreamEngineSignature(width, block), parameters)
