"""Any Amaranth component as a LiteX module; its ports come from the component's signature.

:class:`AmaranthModule` converts the component to Verilog in the build's gateware folder and
instantiates it with one Migen signal per port. What a member of the signature becomes:

===========================  ====================================================================
member                       attribute of :class:`AmaranthModule`
===========================  ====================================================================
packet stream                ``packets[name]``: ``stream.Endpoint`` with LiteEth's ``data``,
                             ``last_be``, ``error`` and LiteX's ``first``, ``last``; what its
                             beats have beyond those of a packet stream is in ``param``
``CsrSignature``             ``banks[name]``: :class:`CsrBank`, LiteX CSRs with the block's fields
                             and descriptions
any port                     ``ports[path]``: Migen ``Signal``; ``path`` is the tuple of member
                             names (and indices) that leads to it; a struct payload is one vector
===========================  ====================================================================

``name`` is that of the member; of member k of an array, or of an interface inside of another,
it is ``name__k``. An ``In`` packet stream becomes an endpoint to be written to (a LiteX sink), an
``Out`` one an endpoint to be read (a source). ``first`` of a sink is ignored: LiteEth does not
drive it, and the bridge derives it from ``last``. Packet streams and CSR ports are connected by the
bridge; whoever uses it connects the others (ports left alone read as 0 inside the component).

Clock and reset are the ``sys`` domain's.
"""

import itertools
import re
from pathlib import Path

from amaranth.hdl import Shape
from amaranth.lib import data, wiring
from amaranth.lib import stream as am_stream
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import (
    CSRAccess,
    CSRField,
    CSRFieldAggregate,
    CSRStatus,
    CSRStorage,
)
from migen import Cat, ClockSignal, If, Instance, ResetSignal, Signal

from ..cores.csr import CsrSignature
from ..cores.stream import DATA_WIDTHS, beat_layout
from .csr_export import register_words, word_fields
from .verilog import join_constants, to_verilog

__all__ = ["AmaranthModule", "CsrBank", "emit_verilog", "packet_description", "struct_fields"]


def emit_verilog(component, name, directory):
    """Convert ``component`` to ``directory/name.v``, top module ``name``; return the path.

    The file is left as it is, with its time, when it has this Verilog already.
    """
    path = Path(directory) / f"{name}.v"
    text = join_constants(to_verilog(component, name))
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return path


def _verilog_ports(path, name):
    """Names of the ports of module ``name`` in the Verilog file at ``path``."""
    match = re.search(rf"^module {re.escape(name)}\((.*?)\);", path.read_text(), re.M | re.S)
    if match is None:
        raise ValueError(f"Verilog file {path} must contain module {name!r}")
    return {port.strip().lstrip("\\") for port in match.group(1).split(",") if port.strip()}


def packet_description(width, more=()):
    """LiteX's description of a packet stream: the one that LiteEth's MAC uses.

    ``more``: name and width of what stays the same from a packet's first to its last beat.
    """
    n = width // 8
    payload = [("data", width), ("last_be", n), ("error", n)]
    return stream.EndpointDescription(payload, list(more))


def unflipped(signature):
    return signature.flip() if isinstance(signature, wiring.FlippedSignature) else signature


def _packet_layout(signature):
    """Data path in bits and layout of a packet stream's beats; None if it is something else."""
    if not isinstance(signature, am_stream.Signature):
        return None
    layout = signature.members["payload"].shape
    for width in DATA_WIDTHS:
        beat = list(beat_layout(width))
        if isinstance(layout, data.StructLayout) and list(layout)[: len(beat)] == beat:
            return width, layout
    return None


def _indexed(path, member):
    """The paths of a member: its own, or those of the elements of an array."""
    return [(*path, *index) for index in itertools.product(*map(range, member.dimensions))]


def struct_fields(vector, layout):
    """Slices of a Migen signal that stands for an Amaranth struct, by field name."""
    return {
        name: vector[field.offset : field.offset + field.width]
        for name, field in layout
        if field.width
    }


class CsrBank(LiteXModule):
    """LiteX CSRs for one register block, in declaration order.

    A register wider than the bus's 32 bits becomes two CSRs, ``NAME`` with the low word and after
    it ``NAME_high`` with the rest: LiteX's own multi-word CSRs put the high word first (or, with
    ``csr_ordering="little"``, have accessors in ``csr.h`` for the opposite order). Its ``stb`` and
    ``w1c`` take effect with the write of the high word, so software writes the low word first.
    Reading the two words is not atomic.

    Attributes
    ----------
    drive : dict
        Signals that the component drives, by member name of ``CsrSignature(block)``.
    read : dict
        Signals that the component reads, by member name.
    words : dict
        LiteX CSRs of each register, lowest first, by register name.
    """

    def __init__(self, block):
        self.block = block
        self.drive, self.read, self.words = {}, {}, {}
        for register in block.registers:
            make = self._make_storage if register.access == "rw" else self._make_status
            words = [
                make(register, name, low, width) for name, low, width in register_words(register)
            ]
            self.words[register.name] = words
            for csr, (_, low, width) in zip(words, register_words(register), strict=True):
                self._name_fields(csr, register, low, width)
                # LiteX collects CSRs by attribute; a register may be called `sync`.
                setattr(self, f"csr_{csr.name}", csr)
            self._join(register, words)

    def _make_storage(self, register, name, low, width):
        reset = register.reset >> low & ((1 << width) - 1)
        return CSRStorage(width, reset=reset, name=name, description=register.description)

    def _make_status(self, register, name, low, width):
        # Writable status registers read 0 (stb) or the pending bits (w1c), never the last write.
        return CSRStatus(
            width,
            name=name,
            description=register.description,
            read_only=register.access == "ro",
        )

    @staticmethod
    def _name_fields(csr, register, low, width):
        access = CSRAccess.ReadOnly if register.access == "ro" else CSRAccess.ReadWrite
        fields = [
            CSRField(name, size, offset, description=text)
            for name, offset, size, text in word_fields(register, low, width)
        ]
        if fields:
            # LiteX's own `fields=` argument would shrink the register to the last field.
            csr.fields = CSRFieldAggregate(fields, access)

    def _join(self, register, words):
        name = register.name
        if register.access == "rw":
            self.read[name] = Cat(*(csr.storage for csr in words))
        if register.access in ("ro", "w1c"):
            self.drive[name] = Cat(*(csr.status for csr in words))
        if register.reads:
            self.read[f"{name}_read"] = words[0].we  # LiteX's name for "is read"
        if register.access in ("stb", "w1c"):
            strobe = Signal(register.width, name=f"{name}_strobe")
            self.comb += If(words[-1].re, strobe.eq(Cat(*(csr.r for csr in words))))
            self.read[name if register.access == "stb" else f"{name}_clear"] = strobe


class AmaranthModule(LiteXModule):
    """An Amaranth component in a LiteX SoC (see the module's docstring).

    Parameters
    ----------
    platform : LiteX platform
        Gets the Verilog file as a source.
    component : wiring.Component
        The component; ``component.signature`` describes its ports, ``component.verilog_files``,
        if it has that, names Verilog that belongs to it.
    name : str
        Name of the Verilog file and of its top module.
    directory : path
        Where to write the Verilog file.
    """

    def __init__(self, platform, component, name, directory):
        self.packets = {}
        self.banks = {}
        self.ports = {}
        path = emit_verilog(component, name, directory)
        verilog_ports = _verilog_ports(path, name)
        platform.add_source(str(path), "verilog")
        for part in getattr(component, "verilog_files", ()):
            platform.add_source(str(part), "systemverilog")

        connections = {}
        for port_path, member, _ in component.signature.flatten(component):
            port = "__".join(map(str, port_path))
            width = Shape.cast(member.shape).width
            if width == 0 or port not in verilog_ports:
                continue
            signal = Signal(width, name=f"{name}_{port}")
            self.ports[port_path] = signal
            direction = "i" if member.flow == wiring.In else "o"
            connections[f"{direction}_{port}"] = signal
        # A component without registers has neither clock nor reset.
        if "clk" in verilog_ports:
            connections["i_clk"] = ClockSignal("sys")
        if "rst" in verilog_ports:
            connections["i_rst"] = ResetSignal("sys")
        self.specials += Instance(name, name=f"{name}_instance", **connections)

        for member_name, member in component.signature.members.items():
            for path in _indexed((member_name,), member) if member.is_signature else ():
                self._wrap(path, member.signature, member.flow)

    def _wrap(self, path, signature, flow):
        """Connect the interface at ``path``; ``flow`` is its direction seen from the component."""
        plain = unflipped(signature)
        name = "__".join(map(str, path))
        if isinstance(plain, CsrSignature):
            self._connect_bank(path, name, plain.block)
        elif (found := _packet_layout(plain)) is not None:
            connect = self._connect_sink if flow == wiring.In else self._connect_source
            self.packets[name] = connect(path, *found)
        elif not isinstance(plain, am_stream.Signature):
            for member_name, member in plain.members.items():
                inner = member.flow if flow == wiring.Out else member.flow.flip()
                for at in _indexed((*path, member_name), member) if member.is_signature else ():
                    self._wrap(at, member.signature, inner)

    def _connect_bank(self, path, name, block):
        bank = CsrBank(block)
        self.banks[name] = bank
        for member_name, value in bank.drive.items():
            if (*path, member_name) in self.ports:
                self.comb += value.eq(self.ports[(*path, member_name)])
        for member_name, value in bank.read.items():
            if (*path, member_name) in self.ports:
                self.comb += self.ports[(*path, member_name)].eq(value)

    def _further(self, path, width, layout):
        """Name and signal of what the beats at ``path`` have beyond those of a packet stream."""
        own = [name for name, _ in beat_layout(width)]
        fields = struct_fields(self.ports[(*path, "payload")], layout)
        return {name: signal for name, signal in fields.items() if name not in own}

    def _connect_sink(self, path, width, layout):
        n = width // 8
        further = self._further(path, width, layout)
        more = [(name, len(signal)) for name, signal in further.items()]
        endpoint = stream.Endpoint(packet_description(width, more))
        self.comb += [signal.eq(getattr(endpoint, name)) for name, signal in further.items()]
        first = Signal(reset=1)
        empty = Signal(max(1, (n - 1).bit_length()))
        # `last_be` marks the last byte; a converter may leave stale marks above it.
        for i in reversed(range(n)):
            self.comb += If(endpoint.last & endpoint.last_be[i], empty.eq(n - 1 - i))
        self.sync += If(endpoint.valid & endpoint.ready, first.eq(endpoint.last))
        fields = struct_fields(self.ports[(*path, "payload")], beat_layout(width))
        self.comb += [
            fields["data"].eq(endpoint.data),
            fields["empty"].eq(empty),
            fields["first"].eq(first),
            fields["last"].eq(endpoint.last),
            fields["error"].eq(endpoint.last & (endpoint.error != 0)),
            self.ports[(*path, "valid")].eq(endpoint.valid),
            endpoint.ready.eq(self.ports[(*path, "ready")]),
        ]
        return endpoint

    def _connect_source(self, path, width, layout):
        n = width // 8
        further = self._further(path, width, layout)
        more = [(name, len(signal)) for name, signal in further.items()]
        endpoint = stream.Endpoint(packet_description(width, more))
        self.comb += [getattr(endpoint, name).eq(signal) for name, signal in further.items()]
        fields = struct_fields(self.ports[(*path, "payload")], beat_layout(width))
        self.comb += [
            endpoint.valid.eq(self.ports[(*path, "valid")]),
            self.ports[(*path, "ready")].eq(endpoint.ready),
            endpoint.data.eq(fields["data"]),
            endpoint.first.eq(fields["first"]),
            endpoint.last.eq(fields["last"]),
            If(fields["last"] & fields["error"], endpoint.error.eq(2**n - 1)),
        ]
        for i in range(n):
            self.comb += endpoint.last_be[i].eq(fields["last"] & (fields["empty"] == n - 1 - i))
        return endpoint
