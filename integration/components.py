"""The cores that other designs use, each as one component with a memory port and registers.

What these components have in common:

===========  ====  ===============================================================================
member       dir   meaning
===========  ====  ===============================================================================
``mem``      Out   memory port, if the core reads or writes memory
``tick``     In    1 for one cycle every millisecond, if the core measures time
``csr_…``    In    register blocks
===========  ====  ===============================================================================

They only join parts of ``cores/``, which have data sheets, tests and proofs of their own.
:class:`~.packaged.Packaged` puts AXI interfaces and a clock divider in the place of these ports.
"""

from dataclasses import dataclass

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..cores.arbiter import PacketArbiter
from ..cores.bridge.length import LONGEST, SHORTEST
from ..cores.bridge.station import BridgeStation
from ..cores.csr import CsrSignature, Register, RegisterBlock
from ..cores.engines.catalog import PlannedEngine
from ..cores.ltl.engine import Ltl
from ..cores.memory import MemorySignature
from ..cores.memory_arbiter import MemoryArbiter, connect_narrow
from ..cores.net.guard import FrameGuard
from ..cores.net.hosts.services import SHORTEST as SHORTEST_SERVED
from ..cores.net.hosts.services import HostServices
from ..cores.net.vlan import VlanStrip
from ..cores.roles.catalog import PlannedRole
from ..cores.roles.contract import AnswerLayout, JobLayout
from ..cores.roles.needs import RolePlace
from ..cores.roles.slot import RoleSlot
from ..cores.router.adapter import FlitsToPackets, PacketsToFlits, user_width
from ..cores.router.contract import LinkConfig
from ..cores.router.network import Network
from ..cores.router.routing import Topology, crossbar, mesh, ring
from ..cores.stream import PacketSignature, check_data_width
from ..cores.tcp.engine import TcpEngine
from ..cores.tcp.line_side import LineSide, line_side_blocks
from ..models.plan import EngineEntry, RoleEntry

__all__ = ["BridgeConfig", "BridgeCore", "LtlCore", "RoleCore", "RouterConfig", "RouterCore"]
__all__ += ["TcpCore", "address_block"]


def address_block(mac, ip=None, enable=None):
    """The register block ``"network"``: addresses of the core, with their values after reset.

    ``mac``: first byte in the highest bits, as it is written; ``ip``: a number; ``enable``: whether
    the core is switched on after reset. Those that are None are left out.
    """
    wire = int.from_bytes(mac.to_bytes(6, "big"), "little")
    registers = [Register("mac", "rw", 48, "MAC address, first byte in bits 7..0", reset=wire)]
    if ip is not None:
        registers.append(Register("ip", "rw", 32, "IPv4 address as a number", reset=ip))
    if enable is not None:
        text = "1: frames for this address go to the core"
        registers.append(Register("enable", "rw", 1, text, reset=int(enable)))
    return RegisterBlock("network", tuple(registers), "addresses of the core")


class TcpCore(wiring.Component):
    """TCP offload engine from the Ethernet MAC to the services.

    ==============  ====  ========================================================================
    member          dir   meaning
    ==============  ====  ========================================================================
    ``rx`` ``tx``   I/O   packet streams from and to the MAC: whole frames from the Ethernet
                          header on, without preamble and FCS
    ``other_rx``    Out   without ``hosts``: frames that are not for the engine
    ``other_tx``    In    without ``hosts``: frames of whoever handles those
    ``services``    Out   array of service ports, one for each of ``config.ports``
                          (``cores/tcp/service.py``)
    ==============  ====  ========================================================================

    Parameters: ``config``, a TcpConfig; ``hosts``, whether ARP, ping and UDP echo are answered
    inside; ``mac``, ``ip`` and ``enable`` as for :func:`address_block`. Memory of
    ``config.pool_size`` bytes from ``config.pool_base`` on, and with ``cache`` of
    ``config.state_size`` from ``config.state_base``, is the engine's; it must be ready before
    ``enable`` is 1. Latency, throughput and back-pressure: docs/tcp.md.
    """

    def __init__(self, config, hosts=True, mac=0x02_00_00_00_00_01, ip=0xC0_00_02_02, enable=False):
        self.config, self.hosts = config, bool(hosts)
        self._engine = TcpEngine(config)
        ports = 3 if config.cache else 2
        self._arbiter = MemoryArbiter(
            ports,
            config.width,
            max(config.tag_width, config.state_tag_width),
            priority=(0, 1, 0)[:ports],  # receive DMA and session store before the sender's reads
            prompt=range(ports),
        )
        packet = PacketSignature(config.width)
        others = {} if hosts else {"other_rx": Out(packet), "other_tx": In(packet)}
        blocks = {"network": address_block(mac, ip, enable), **line_side_blocks(config)}
        super().__init__(
            {
                "rx": In(packet),
                "tx": Out(packet),
                **others,
                "services": self._engine.signature.members["services"],
                "mem": Out(MemorySignature(config.width, self._arbiter.mem_tag_width)),
                "tick": In(1),
                **{f"csr_{name}": In(CsrSignature(block)) for name, block in blocks.items()},
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, engine, network = self.config, self._engine, self.csr_network
        side = LineSide(m, engine, network.mac, network.ip)
        m.submodules.memory = arbiter = self._arbiter
        m.submodules.merge = merge = PacketArbiter(config.width, 2)
        m.submodules.strip = strip = VlanStrip(config.width, priority=True)
        connect, outside = wiring.connect, wiring.flipped
        connect(m, outside(self.rx), strip.i)
        connect(m, strip.o, side.classifier.rx)
        connect(m, side.sender.frame, merge.i[0])
        connect(m, merge.o, outside(self.tx))
        if self.hosts:
            m.submodules.guard = guard = FrameGuard(config.width, SHORTEST_SERVED)
            m.submodules.hosts = hosts = HostServices(config.width, True)
            connect(m, side.classifier.other, guard.i)
            connect(m, guard.o, hosts.i)
            connect(m, hosts.o, merge.i[1])
            m.d.comb += [hosts.mac.eq(network.mac), hosts.ip.eq(network.ip)]
        else:
            connect(m, side.classifier.other, outside(self.other_rx))
            connect(m, outside(self.other_tx), merge.i[1])
        for k in range(len(config.ports)):
            connect(m, engine.services[k], outside(self.services[k]))
        memories = [engine.mem, side.sender.mem] + ([engine.state] if config.cache else [])
        for k, mem in enumerate(memories):
            connect_narrow(m, mem, arbiter.ports[k])
        connect(m, arbiter.mem, outside(self.mem))
        for name, part in side.parts.items():
            connect(m, outside(getattr(self, f"csr_{name}")), part.csr)
        m.d.comb += [side.classifier.enable.eq(network.enable), engine.tick.eq(self.tick)]
        if config.cache:  # whoever enables the core has started the memory
            started = Signal()
            m.d.sync += started.eq(started | network.enable)
            m.d.comb += engine.go.eq(started)
        return m


@dataclass(frozen=True)
class RouterConfig:
    """Parameters of the router core.

    Attributes
    ----------
    topology : str
        ``"crossbar"``: one router with all endpoints; ``"ring"``: one router an endpoint;
        ``"mesh"``: ``columns`` by ``endpoints / columns`` routers with an endpoint at each.
    endpoints : int
        Endpoints, 2 to 64; of a ring at least 3.
    columns : int
        Columns of a mesh, a divisor of ``endpoints``.
    width : int
        Data path in bits: 32, 64 or 128. A beat of a packet is a flit.
    phit_width : int or None
        Bits that a link between two routers moves in a cycle, a divisor of ``width``; None: all.
    vcs : int
        Virtual channels, 1 to 8; of a ring an even number.
    buffer_flits : int
        Flits that an input buffers, of all virtual channels together.
    reserved : int
        Flits of these that belong to each virtual channel; 4 keep all at full pace.
    pass_through : bool
        Whether a flit may leave a router in the cycle in which it came in.
    """

    topology: str = "crossbar"
    endpoints: int = 4
    columns: int = 2
    width: int = 64
    phit_width: int | None = None
    vcs: int = 2
    buffer_flits: int = 16
    reserved: int = 4
    pass_through: bool = True

    def __post_init__(self):
        check_data_width(self.width)
        for name, allowed in (
            ("topology", ("crossbar", "ring", "mesh")),
            ("endpoints", range(3 if self.topology == "ring" else 2, 65)),
            ("vcs", range(1, 9)),
        ):
            value = getattr(self, name)
            if value not in allowed:
                words = " or ".join(map(str, allowed))
                if isinstance(allowed, range):
                    words = f"{allowed[0]} to {allowed[-1]}"
                raise ValueError(f"{name} must be {words}, not {value!r}")
        if self.topology == "ring" and self.vcs % 2:
            raise ValueError(f"vcs of a ring must be even, not {self.vcs}")
        if self.topology == "mesh" and (self.columns < 1 or self.endpoints % self.columns):
            raise ValueError(
                f"columns must divide the {self.endpoints} endpoints, not be {self.columns}"
            )
        self.link()

    def link(self):
        """The LinkConfig of all links."""
        return LinkConfig(
            vcs=self.vcs,
            flit_width=self.width,
            phit_width=self.phit_width,
            dest_width=(self.endpoints - 1).bit_length(),
            user_width=user_width(self.width),
            buffer_flits=self.buffer_flits,
            reserved=self.reserved,
        )

    def network(self):
        """The topology, with its routing function."""
        n = self.endpoints
        if self.topology == "ring":
            return ring(n)
        if self.topology == "mesh":
            return mesh(self.columns, n // self.columns)
        route = crossbar(n)
        ends = [(0, k) for k in range(n)]
        names = [f"port {k}" for k in range(n)]
        return Topology([names], {}, ends, lambda router, port, vc, dest: route(port, vc, dest))


class RouterCore(wiring.Component):
    """A network of elastic routers with packet streams at its endpoints.

    ============  ===========  ===================================================================
    member        dir          meaning
    ============  ===========  ===================================================================
    ``send``      In, arrays   packet streams, by endpoint and virtual channel
    ``dest``      In, arrays   endpoint that the packet on offer is for; it stays the same from
                               its first to its last beat
    ``receive``   Out, arrays  packet streams, by endpoint and virtual channel
    ``faults``    Out          for a cycle: a packet for no endpoint was dropped
    ``idle``      Out          no packet is inside, nor on offer
    ============  ===========  ===================================================================

    Parameters: ``config``, a :class:`RouterConfig`. Packets of one virtual channel between two
    endpoints stay in order; those of different channels overtake. No packets are lost, nor can
    they deadlock while endpoints take what arrives. Latency: 2 cycles, and 1 a router (2 without
    ``pass_through``). Throughput: a beat a cycle at each endpoint. Reset: empty.
    """

    def __init__(self, config):
        self.config = config
        packet, n, vcs = PacketSignature(config.width), config.endpoints, config.vcs
        super().__init__(
            {
                "send": In(packet).array(n, vcs),
                "dest": In(config.link().dest_width).array(n, vcs),
                "receive": Out(packet).array(n, vcs),
                "faults": Out(1),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config, link = self.config, self.config.link()
        m.submodules.network = network = Network(config.network(), link, config.pass_through)
        idle, lost = [network.idle], [network.faults]
        for n in range(config.endpoints):
            m.submodules[f"to_{n}"] = sender = PacketsToFlits(link)
            m.submodules[f"from_{n}"] = receiver = FlitsToPackets(link)
            wiring.connect(m, sender.o, network.i[n])
            wiring.connect(m, network.o[n], receiver.i)
            for v in range(config.vcs):
                wiring.connect(m, wiring.flipped(self.send[n][v]), sender.i[v])
                wiring.connect(m, receiver.o[v], wiring.flipped(self.receive[n][v]))
                m.d.comb += sender.dest[v].eq(self.dest[n][v])
            idle.append(sender.idle)
            lost.append(receiver.overflow)
        m.d.comb += [
            self.idle.eq(_all(idle)),
            self.faults.eq(~_all([~fault for fault in lost])),
        ]
        return m


def _all(signals):
    value = signals[0]
    for signal in signals[1:]:
        value = value & signal
    return value


class LtlCore(wiring.Component):
    """Reliable, ordered messages between FPGAs over UDP/IPv4.

    ===========  ==========  =====================================================================
    member       dir         meaning
    ===========  ==========  =====================================================================
    ``rx``       In          whole Ethernet frames without FCS; ``ready`` is always 1
    ``tx``       Out         the same
    ``send``     In, array   messages, a stream for each virtual channel: packets whose beats carry
                             ``connection``, an entry of the send table
    ``deliver``  Out, array  messages, with the entry of the receive table that they came by
    ===========  ==========  =====================================================================

    Parameters: ``config``, an LtlConfig; ``mac`` and ``ip`` as for :func:`address_block`. Latency,
    throughput, back-pressure and what software does: docs/network.md.
    """

    def __init__(self, config, mac=0x02_00_00_00_00_01, ip=0xC0_00_02_02):
        self._ltl = ltl = Ltl(config)
        members = ltl.signature.members
        super().__init__(
            {
                **{name: members[name] for name in ("rx", "tx", "send", "deliver")},
                "csr_network": In(CsrSignature(address_block(mac, ip))),
                "csr_ltl": members["csr"],
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.ltl = ltl = self._ltl
        connect, outside = wiring.connect, wiring.flipped
        connect(m, outside(self.rx), ltl.rx)
        connect(m, ltl.tx, outside(self.tx))
        connect(m, outside(self.csr_ltl), ltl.csr)
        for v in range(ltl.config.vcs):
            connect(m, outside(self.send[v]), ltl.send[v])
            connect(m, ltl.deliver[v], outside(self.deliver[v]))
        m.d.comb += [ltl.mac.eq(self.csr_network.mac), ltl.ip.eq(self.csr_network.ip)]
        return m


@dataclass(frozen=True)
class BridgeConfig:
    """Parameters of the bridge core.

    Attributes
    ----------
    width : int
        Data path in bits: 32, 64 or 128.
    shortest, longest : int
        Bytes of the frames that pass, without FCS; all others are dropped and counted.
    inbound, outbound : str
        A stream engine (``cores/engines``) that works on frames from the network to the host, or
        from the host to the network; empty: none.
    """

    width: int = 64
    shortest: int = SHORTEST
    longest: int = LONGEST
    inbound: str = ""
    outbound: str = ""

    def __post_init__(self):
        check_data_width(self.width)
        if not 1 <= self.shortest <= self.longest <= 9216:
            raise ValueError(
                "shortest and longest must be frame lengths up to 9216, "
                f"not {self.shortest} and {self.longest}"
            )

    def engines(self):
        """Name and body of each engine, by its place."""
        places = {"inbound": self.inbound, "outbound": self.outbound}
        planned = {
            place: PlannedEngine(EngineEntry(place=place, kind=kind))
            for place, kind in places.items()
            if kind
        }
        return {place: (engine.name, engine.body(self.width)) for place, engine in planned.items()}


class BridgeCore(wiring.Component):
    """A station in the wire between a host and its network, with stream engines in-line.

    ================  ====  ======================================================================
    member            dir   meaning
    ================  ====  ======================================================================
    ``network_rx``    In    packet stream: frames from the MAC of the network's port
    ``network_tx``    Out   frames to it
    ``host_rx``       In    frames from the MAC of the host's port
    ``host_tx``       Out   frames to it
    ``rx`` ``tx``     I/O   frames for and of a stack of one's own, such as the TCP core
    ================  ====  ======================================================================

    Parameters: ``config``, a :class:`BridgeConfig`; ``mac``, the station's address after reset, as
    for :func:`address_block`. Frames are stored and forwarded; the data sheet is that of
    :class:`~trebuchet.cores.bridge.station.BridgeStation`.
    """

    def __init__(self, config, mac=0x02_00_00_00_00_01):
        self._station = station = BridgeStation(
            config.width,
            shortest=config.shortest,
            longest=config.longest,
            engines=config.engines(),
        )
        self.verilog_files = station.verilog_files
        members = dict(station.signature.members)
        del members["mac"]
        blocks = {name: members.pop(name) for name in tuple(members) if name.startswith("csr")}
        blocks["csr_bridge"] = blocks.pop("csr")
        network = In(CsrSignature(address_block(mac)))
        super().__init__({**members, "csr_network": network, **blocks})

    def elaborate(self, platform):
        m = Module()
        m.submodules.station = station = self._station
        for name, member in self.signature.members.items():
            if name == "csr_network":
                continue
            inner = getattr(station, "csr" if name == "csr_bridge" else name)
            outer = wiring.flipped(getattr(self, name))
            ends = (outer, inner) if member.flow is In else (inner, outer)
            wiring.connect(m, *ends)
        m.d.comb += station.mac.eq(self.csr_network.mac)
        return m


class RoleCore(wiring.Component):
    """A role (``cores/roles``) in its slot, which a processor or other logic starts.

    ===========  ====  ===========================================================================
    member       dir   meaning
    ===========  ====  ===========================================================================
    ``job``      In    with ``jobs``: stream of jobs (``cores/roles/contract.py``)
    ``answer``   Out   with ``jobs``: one answer for each
    ``irq``      Out   1 while bit 1 of ``interrupt_status`` is set
    ===========  ====  ===========================================================================

    Parameters: ``kind``, the role; ``options``, of its configuration; ``width``, the memory's data
    path in bits; ``jobs``, whether there are streams of jobs beside the registers. A processor
    starts a job by the registers ``operand_…``, ``result_…`` and ``start`` (docs/roles.md).
    """

    def __init__(self, kind, options, width=32, jobs=False):
        self.jobs = bool(jobs)
        planned = PlannedRole(RoleEntry(kind=kind, options=options))
        tag_width = max(2, planned.needs.tag_width)
        role = planned.place(RolePlace(width, tag_width, sessions=1))
        self._slot = slot = RoleSlot(role, kind, width, tag_width)
        self.verilog_files = slot.verilog_files
        streams = {"job": In(stream.Signature(JobLayout))}
        streams["answer"] = Out(stream.Signature(AnswerLayout))
        super().__init__(
            {
                **(streams if jobs else {}),
                "irq": Out(1),
                "mem": Out(MemorySignature(width, tag_width)),
                "tick": In(1),
                "csr_role": In(CsrSignature(slot.block)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.slot = slot = self._slot
        connect, outside = wiring.connect, wiring.flipped
        connect(m, slot.mem, outside(self.mem))
        connect(m, outside(self.csr_role), slot.csr)
        if self.jobs:
            connect(m, outside(self.job), slot.job)
            connect(m, slot.answer, outside(self.answer))
        else:
            m.d.comb += slot.answer.ready.eq(1)
        m.d.comb += [self.irq.eq(slot.irq), slot.tick.eq(self.tick)]
        return m
