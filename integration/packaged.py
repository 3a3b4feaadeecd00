"""A core with the interfaces that other designs' tools know, and its flat ports."""

from dataclasses import dataclass

from amaranth.hdl import Const, Elaboratable, Module, Shape, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib import stream as am_stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from ..cores.axi import AxiMaster, AxiSignature
from ..cores.axi_lite import AxiLiteRegisters, AxiLiteSignature
from ..cores.csr import CsrSignature
from ..cores.memory import MemorySignature

__all__ = ["MEMORIES", "REGISTERS", "FlatPort", "FlatTop", "Millisecond", "Packaged"]

#: What the memory port, and what the register blocks of a core may become.
MEMORIES = ("axi", "native")
REGISTERS = ("axi-lite", "ports")


def _plain(signature):
    return signature.flip() if isinstance(signature, wiring.FlippedSignature) else signature


class Millisecond(wiring.Component):
    """Divides the clock: ``tick`` is 1 for one cycle in each ``cycles``, the first time at once."""

    def __init__(self, cycles):
        self.cycles = cycles
        super().__init__({"tick": Out(1)})

    def elaborate(self, platform):
        m = Module()
        left = Signal(range(self.cycles))
        m.d.comb += self.tick.eq(left == 0)
        m.d.sync += left.eq(left - 1)
        with m.If(self.tick):
            m.d.sync += left.eq(self.cycles - 1)
        return m


class Packaged(wiring.Component):
    """``core``, one of :mod:`~.components`, with AXI interfaces, and with a clock divider.

    ==========  ====================  ============================================================
    member      signature             meaning
    ==========  ====================  ============================================================
    ``m_axi``   Out(AxiSignature)     in the place of ``mem``, if ``memory`` is ``"axi"``
    ``fault``   Out(2)                with it: a bus error; ``errors`` of :class:`AxiMaster`
    ``s_axi``   In(AxiLiteSignature)  in the place of the register blocks, if ``registers`` is
                                      ``"axi-lite"``
    ==========  ====================  ============================================================

    All other members are the core's. ``tick`` is made of the clock. ``regions`` is the register
    map, a list of block and base address; empty without ``s_axi``.

    Parameters: ``memory``, one of :data:`MEMORIES`; ``registers``, one of :data:`REGISTERS`;
    ``clock_hz``.
    """

    def __init__(self, core, memory="axi", registers="axi-lite", clock_hz=100_000_000):
        self.core, self._cycles = core, max(2, round(clock_hz / 1000))
        self.verilog_files = getattr(core, "verilog_files", ())
        self._master = self._bus = None
        self.regions = []
        members, blocks = {}, {}
        for name, member in core.signature.members.items():
            plain = _plain(member.signature) if member.is_signature else None
            if isinstance(plain, CsrSignature) and registers == "axi-lite":
                blocks[name] = plain.block
            elif isinstance(plain, MemorySignature) and memory == "axi":
                self._master = AxiMaster(plain.width, plain.tag_width)
                members |= {"m_axi": Out(AxiSignature(plain.width)), "fault": Out(2)}
            elif name != "tick":
                members[name] = member
        if blocks:
            self._bus = AxiLiteRegisters(blocks.values())
            self.regions = self._bus.regions
            members["s_axi"] = In(AxiLiteSignature(self._bus.addr_width))
        self._blocks = blocks
        super().__init__(members)

    def map_at(self, base):
        """The register map if the registers lie at ``base`` of the processor's addresses."""
        return [(block, base + address) for block, address in self.regions]

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        connect, outside = wiring.connect, wiring.flipped
        if "tick" in core.signature.members:
            m.submodules.millisecond = millisecond = Millisecond(self._cycles)
            m.d.comb += core.tick.eq(millisecond.tick)
        if self._master is not None:
            m.submodules.master = master = self._master
            connect(m, core.mem, master.mem)
            connect(m, master.axi, outside(self.m_axi))
            m.d.comb += self.fault.eq(master.errors)
        if self._bus is not None:
            m.submodules.registers = bus = self._bus
            connect(m, outside(self.s_axi), bus.bus)
            for name, block in self._blocks.items():
                connect(m, getattr(bus, f"csr_{block.name}"), getattr(core, name))
        for path, member, inner in core.signature.flatten(core):
            if path[0] not in self.signature.members or isinstance(Value.cast(inner), Const):
                continue
            outer = self
            for step in path:
                outer = outer[step] if isinstance(step, int) else getattr(outer, step)
            m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
        return m


@dataclass(frozen=True)
class FlatPort:
    """A port of a Verilog module: ``driven`` by the core or not, and the member it belongs to."""

    name: str
    width: int
    driven: bool
    member: str
    value: object


#: The signals of AXI4 that are constants here (``cores/axi.py``), by channel: name, width, value.
#: ``cache``: normal, not cacheable, bufferable (A4.4); ``prot``: unprivileged, secure, data.
_CONSTANTS = (("burst", 2, 1), ("cache", 4, 3), ("prot", 3, 0))


def _flat(component):
    """Every port of a component, with flat names."""
    for name, member in component.signature.members.items():
        for path, value in _elements(name, getattr(component, name), member.dimensions):
            yield from _ports(name, path, member, value)


def _elements(path, value, dimensions):
    if not dimensions:
        yield path, value
        return
    for k in range(dimensions[0]):
        yield from _elements(f"{path}_{k}", value[k], dimensions[1:])


def _ports(group, path, member, value):
    if member.is_port:
        yield from _fields(group, path, value, member.flow is Out)
        return
    plain = _plain(member.signature)
    if isinstance(plain, am_stream.Signature):
        out = member.flow is Out
        # AXI's channels have no mark between their name and the signal's.
        joint = "" if group in ("m_axi", "s_axi") else "_"
        for name, driven in (("valid", out), ("ready", not out)):
            yield FlatPort(f"{path}{joint}{name}", 1, driven, group, getattr(value, name))
        yield from _fields(group, path, value.payload, out, joint)
        return
    flipped = member.flow is In
    for name, inner in plain.members.items():
        inner = inner.flip() if flipped else inner
        for at, part in _elements(f"{path}_{name}", getattr(value, name), inner.dimensions):
            yield from _ports(group, at, inner, part)


def _fields(group, path, value, driven, joint="_"):
    """A value as one port, or a struct as a port for each field."""
    shape = value.shape() if hasattr(value, "shape") else None
    if isinstance(shape, data.StructLayout):
        for name, _ in shape:
            yield from _fields(group, f"{path}{joint}{name}", value[name], driven)
    elif (width := Shape.cast(Value.cast(value).shape()).width) > 0:
        yield FlatPort(path, width, driven, group, Value.cast(value))


class FlatTop(Elaboratable):
    """``component`` with ports whose names Verilog designs are used to.

    A stream ``rx`` of beats becomes ``rx_valid``, ``rx_ready``, ``rx_data`` …, a port for each
    field; member k of an array ``services`` begins with ``services_k_``; AXI's signals are called
    as AXI calls them. ``ports`` lists them all; ``clk`` and ``rst`` (synchronous, active high) come
    in addition. An array without bits, or a field without, has no port.
    """

    def __init__(self, component):
        self.component = component
        self.ports = list(_flat(component))
        master = getattr(component, "m_axi", None)
        if master is not None:
            width = component.signature.members["m_axi"].signature.width
            constants = (("size", 3, exact_log2(width // 8)), *_CONSTANTS)
            self.ports += [
                FlatPort(f"m_axi_{channel}{name}", bits, True, "m_axi", Const(value, bits))
                for channel in ("aw", "ar")
                for name, bits, value in constants
            ]
        names = [port.name for port in self.ports]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"Ports must have different names, not {', '.join(twice)} twice")
        self.signals = [Signal(port.width, name=port.name) for port in self.ports]

    def elaborate(self, platform):
        m = Module()
        m.submodules.packaged = self.component
        for port, signal in zip(self.ports, self.signals, strict=True):
            if port.driven:
                m.d.comb += signal.eq(port.value)
            elif not isinstance(port.value, Const):
                m.d.comb += port.value.eq(signal)
        return m
