"""The TCP engine with preset tiny on an ECP5: size and clock, alone, data path of 32 bits.

Preset tiny is 64 sessions in block RAM, four services; here with fixed registers and counters of
16 bits, as small boards have it. The size is that of what boards are built from: the engine as
Verilog. (Yosys heeds ``no_rw_check`` of a memory only when it comes from there; from Amaranth's
RTLIL it adds registers and multiplexers for collisions that cannot be.)
"""

from amaranth import ClockSignal, Instance, Module, ResetSignal
from amaranth.hdl import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from ..cores.tcp.config import TcpConfig
from ..cores.tcp.engine import TcpEngine
from ..models.files import make_folder
from ..models.paths import build_folder
from ..soc.verilog import to_verilog
from .area import area_job
from .fmax import Ecp5, clock_job
from .job import Job, Sampled

__all__ = ["FPGA", "TINY", "AsVerilog", "area", "clock"]

TINY = TcpConfig(programmable=False, counter_width=16)
#: Where the clock is measured: the part of 24 K LUT4, whose die is also that of 12 K.
FPGA = Ecp5("LFE5U-25F", speed=6, target=90)


class AsVerilog(wiring.Component):
    """``component``, made into a module of a Verilog file, with the same ports."""

    def __init__(self, component):
        self.name = f"{type(component).__name__}_alone"
        path = make_folder(build_folder("verilog")) / f"{self.name}.v"
        path.write_text(to_verilog(component, self.name))
        self.verilog_files = (path,)
        super().__init__(wiring.Signature(component.signature.members))

    def elaborate(self, platform):
        m = Module()
        ports = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, port in self.signature.flatten(self):
            if len(Value.cast(port)):
                direction = "i" if member.flow is In else "o"
                ports[f"{direction}_{'__'.join(map(str, path))}"] = Value.cast(port)
        m.submodules.inside = Instance(self.name, **ports)
        return m


def area() -> Job:
    """Return the measurement of LUT4 as Yosys counts them, carry chains and LUT RAM included."""
    return area_job(lambda: AsVerilog(TcpEngine(TINY)), {"tcp.tiny_lut4": "LUT4"}, "ecp5")


def clock() -> Sampled:
    """Return the measurement of the clock at speed grade 6."""
    component = AsVerilog(TcpEngine(TINY))
    return clock_job(component, FPGA, lambda mhz, cells: {"tcp.tiny_fmax_mhz": round(mhz, 2)})
