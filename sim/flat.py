"""A component as the top of a Verilator model: :class:`FlatTop`, flat ports and the Verilog.

::

    top = FlatTop(component)
    top.stream("rx", component.rx, BEAT, driven=False)  # rx_valid, rx_ready, rx_data …
    top.port("idle", component.idle, driven=True)
    Source("thing", "top", {"top.v": top.verilog("top")}, main=folder / "thing.cpp")
"""

import re

from amaranth import ClockDomain, Elaboratable, Module, Signal, Value
from amaranth.lib.wiring import In

from ..cores.csr import CsrSignature
from ..soc.verilog import to_verilog

__all__ = ["BEAT", "FlatTop", "csr_members"]

#: Fields of a packet stream's beat (``cores/stream.py``).
BEAT = ("data", "empty", "first", "last", "error")
#: A process that sets bits to a constant, where other bits of the same signal are variable. It
#: waits for no event, so a simulator need never run it (and Verilator does not).
_CONSTANT = re.compile(r"  always @\*\n(    \S+(?: ?\[[0-9:]+\])? = \d+'[hb][0-9a-f]+;\n)")
_ZEROS = re.compile(r"  initial begin\n(    \S+\[\d+\] = \d+'h0+;\n)+  end\n")


def csr_members(component):
    """``(member, block)`` of every register block in the component's signature."""
    for name, member in component.signature.members.items():
        if not member.is_signature:
            continue
        signature = member.signature.flip() if member.flow is In else member.signature
        if isinstance(signature, CsrSignature):
            yield name, signature.block


class FlatTop(Elaboratable):
    """``dut`` with a port for each signal that the harness uses, and with ``clk`` and ``rst``.

    The design is in reset from the start until a cycle after ``rst`` fell: offer it nothing in the
    first cycle in which ``rst`` is low.
    """

    def __init__(self, dut):
        self.dut = dut
        self.clk, self.rst = Signal(name="clk"), Signal(name="rst")
        self.ports = [self.clk, self.rst]
        self._pairs = []  # (port, signal of the design, the design drives it)

    def port(self, name, signal, driven):
        """Add a port for ``signal``, which the design drives or else the harness."""
        signal = Value.cast(signal)
        # What has no bits (tags of a memory port that keeps order) is a port all the same.
        port = Signal(max(1, len(signal)), name=name)
        self.ports.append(port)
        self._pairs.append((port, signal, driven))

    def stream(self, name, stream, fields, driven):
        """Add ports for a stream, a port for each of the payload's ``fields``."""
        self.port(f"{name}_valid", stream.valid, driven)
        self.port(f"{name}_ready", stream.ready, not driven)
        for part in fields:
            self.port(f"{name}_{part}", stream.payload[part], driven)

    # As an input the reset would be part of half the logic (Yosys folds it into expressions), and
    # Verilator computes what depends on inputs anew in each half of a cycle: it is a register.
    def elaborate(self, platform):
        m = Module()
        m.domains.harness = harness = ClockDomain(reset_less=True)
        m.domains.sync = sync = ClockDomain()
        m.submodules.dut = self.dut
        reset = Signal(init=1)
        m.d.harness += reset.eq(self.rst)
        m.d.comb += [harness.clk.eq(self.clk), sync.clk.eq(self.clk), sync.rst.eq(reset)]
        for port, signal, driven in self._pairs:
            m.d.comb += port.eq(signal) if driven else signal.eq(port)
        return m

    def verilog(self, name):
        """The Verilog of a top module called ``name``."""
        text = to_verilog(self, name, self.ports)
        # Memories begin with zeros in any case; saying so word by word takes minutes to compile.
        return _CONSTANT.sub(r"  initial\n\1", _ZEROS.sub("", text))
