"""The cores as LiteX modules: stream endpoints, CSRs, a bus master, interrupts.

Import them from :mod:`trebuchet.litex`.
"""

from types import SimpleNamespace

from amaranth.lib import stream as am_stream
from amaranth.lib import wiring
from litex.soc.interconnect import axi, stream
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel

from ..cores.axi import AxiSignature
from ..soc.bridge import AmaranthModule, struct_fields, unflipped
from ..soc.ethernet import EthernetMac
from ..soc.memory import DramPort
from .catalog import KINDS
from .packaged import Packaged

__all__ = ["TrebuchetBridge", "TrebuchetCore", "TrebuchetEcg", "TrebuchetLtl", "TrebuchetMac"]
__all__ += ["TrebuchetMatmul", "TrebuchetRouter", "TrebuchetTcp"]

TrebuchetMac = EthernetMac


class TrebuchetCore(AmaranthModule):
    """A core of :mod:`~.catalog` in a LiteX design; see its subclasses.

    Each member of the component (:mod:`~.components`) becomes an attribute of its name:

    =================  ===========================================================================
    packet stream      LiteX endpoint as of LiteEth's MAC (``data``, ``last_be``, ``error``)
    other stream       LiteX endpoint with the fields of its payload
    interface          object with the streams as attributes
    array              list
    other port         Migen signal
    register block     submodule with LiteX CSRs, called as the block without ``csr_``
    =================  ===========================================================================

    ``bus``: LiteX AXI interface, the core's master: ``soc.bus.add_master(master=core.bus)``. With
    ``memory="native"`` there is none; :meth:`connect_dram` connects the core to LiteDRAM. ``ev``:
    event manager, if the core has an interrupt: ``soc.irq.add("name", use_loc_if_exists=True)``.

    Parameters
    ----------
    platform : LiteX platform
        Gets the core's Verilog as a source.
    sys_clk_freq : float
        Frequency of the clock ``sys`` in Hz: the core's millisecond is made of it.
    memory : str
        ``"axi"`` or ``"native"``.
    name : str
        Name of the Verilog module and its file; two cores of one design need two names.
    directory : path
        Where the Verilog is put.
    parameters
        Those of ``trebuchet core generate NAME --print-config``, ``preset`` among them. A wrong
        one raises :class:`~trebuchet.models.errors.TrebuchetError`.
    """

    kind = ""

    def __init__(
        self,
        platform,
        sys_clk_freq,
        memory="axi",
        name=None,
        directory="build/trebuchet",
        **parameters,
    ):
        self._platform, self._directory = platform, directory
        self._name = name or f"trebuchet_{self.kind}"
        core = KINDS[self.kind].component(parameters)
        component = Packaged(core, memory, "ports", sys_clk_freq)
        super().__init__(platform, component, self._name, directory)
        self._signature = component.signature
        for bank_name, bank in self.banks.items():
            self.add_module(bank_name.removeprefix("csr_"), bank)
        for member_name, member in component.signature.members.items():
            if member_name in self.banks or member_name == "mem":  # see connect_dram
                continue
            if member_name == "m_axi":
                self.bus = self._axi(member.signature)
            else:
                made = self._made((member_name,), member, member.dimensions)
                setattr(self, member_name, made)
        if ("irq",) in self.ports:
            self.ev = EventManager()
            self.ev.core = EventSourceLevel(description="The core wants attention.")
            self.ev.finalize()
            self.comb += self.ev.core.trigger.eq(self.irq)

    def connect_dram(self, native, size):
        """Connect the core to a native port of LiteDRAM, ``soc.sdram.crossbar.get_port()``.

        For ``memory="native"``. ``size``: bytes of the memory, where addresses wrap.
        """
        signature = unflipped(self._signature.members["mem"].signature)
        name = f"{self._name}_dram"
        self.dram_port = DramPort(
            self._platform, native, size, self, "mem", signature, self._directory, name
        )

    def _made(self, path, member, dimensions):
        """What stands for the member at ``path``, or for an array of such."""
        if dimensions:
            inner = range(dimensions[0])
            return [self._made((*path, k), member, dimensions[1:]) for k in inner]
        if member.is_port:
            return self.ports.get(path)
        name, plain = "__".join(map(str, path)), unflipped(member.signature)
        if name in self.packets:
            return self.packets[name]
        if isinstance(plain, am_stream.Signature):
            return self._endpoint(path, plain, member.flow)
        flip = member.flow == wiring.In
        return SimpleNamespace(
            **{
                key: self._made((*path, key), part.flip() if flip else part, part.dimensions)
                for key, part in plain.members.items()
            }
        )

    def _endpoint(self, path, signature, flow):
        """An endpoint with the fields of a struct, or with ``data``, for the stream at ``path``."""
        shape = signature.members["payload"].shape
        payload = self.ports.get((*path, "payload"))  # a payload of no bits has no port
        if payload is None:
            fields = {}
        elif hasattr(shape, "members"):
            fields = struct_fields(payload, shape)
        else:
            fields = {"data": payload}
        own = ("first", "last")  # every endpoint has them
        layout = [(name, len(signal)) for name, signal in fields.items() if name not in own]
        endpoint = stream.Endpoint(layout)
        valid, ready = self.ports[(*path, "valid")], self.ports[(*path, "ready")]
        if flow == wiring.Out:
            self.comb += [endpoint.valid.eq(valid), ready.eq(endpoint.ready)]
            self.comb += [getattr(endpoint, name).eq(fields[name]) for name in fields]
        else:
            self.comb += [valid.eq(endpoint.valid), endpoint.ready.eq(ready)]
            self.comb += [fields[name].eq(getattr(endpoint, name)) for name in fields]
        return endpoint

    def _axi(self, signature):
        """The master as LiteX's interface."""
        signature = unflipped(signature)
        assert isinstance(signature, AxiSignature)
        bus = axi.AXIInterface(data_width=signature.width, address_width=32)
        for name, member in signature.members.items():
            channel, path = getattr(bus, name), ("m_axi", name)
            layout = member.signature.members["payload"].shape
            fields = struct_fields(self.ports[(*path, "payload")], layout)
            valid, ready = self.ports[(*path, "valid")], self.ports[(*path, "ready")]
            if member.flow == wiring.Out:
                self.comb += [channel.valid.eq(valid), ready.eq(channel.ready)]
                self.comb += [getattr(channel, key).eq(fields[key]) for key in fields]
            else:
                self.comb += [valid.eq(channel.valid), channel.ready.eq(ready)]
                self.comb += [fields[key].eq(getattr(channel, key)) for key in fields]
        for channel in (bus.aw, bus.ar):
            size = (signature.width // 8).bit_length() - 1
            self.comb += [channel.size.eq(size), channel.burst.eq(axi.BURST_INCR)]
            self.comb += channel.cache.eq(0b0011)
        return bus


class TrebuchetTcp(TrebuchetCore):
    """TCP offload engine (:class:`~.components.TcpCore`).

    ``rx`` (sink) and ``tx`` (source): frames from and to a MAC, such as ``TrebuchetMac(phy)``.
    ``services[k]``: what answers at TCP port ``ports[k]``, with the endpoints ``event`` (source),
    ``tx`` and ``free`` (sinks); ``cores/tcp/service.py`` says what they mean. CSRs: ``network``
    (addresses, ``enable``), ``tcp``, ``tcp_rx``, ``tcp_tx``, ``classifier``.
    """

    kind = "tcp"


class TrebuchetRouter(TrebuchetCore):
    """Network of elastic routers (:class:`~.components.RouterCore`).

    ``send[n][v]`` (sinks), ``receive[n][v]`` (sources): packets of endpoint n on virtual channel v;
    ``dest[n][v]``: endpoint that the packet on offer is for.
    """

    kind = "router"


class TrebuchetLtl(TrebuchetCore):
    """LTL engine (:class:`~.components.LtlCore`).

    ``rx``, ``tx``: frames; ``send[v]``, ``deliver[v]``: messages, whose connection is ``param`` of
    the endpoint. CSRs: ``network``, ``ltl``.
    """

    kind = "ltl"


class TrebuchetBridge(TrebuchetCore):
    """Bridge between two MACs (:class:`~.components.BridgeCore`).

    ``network_rx``, ``network_tx``, ``host_rx``, ``host_tx``: frames of the two ports; ``rx``,
    ``tx``: those of a stack of one's own. CSRs: ``network``, ``bridge``, ``station``.
    """

    kind = "bridge"


class TrebuchetEcg(TrebuchetCore):
    """ECG classifier (:class:`~.components.RoleCore`); CSRs: ``role``."""

    kind = "ecg"


class TrebuchetMatmul(TrebuchetCore):
    """Matrix multiplier (:class:`~.components.RoleCore`); CSRs: ``role``."""

    kind = "matmul"
