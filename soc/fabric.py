"""What every SoC has around the shell: clocks, memory port, MAC, host services, millisecond."""

from litex.gen import LiteXModule
from litex.soc.integration.soc_core import SoCCore
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRStatus, CSRStorage
from migen import If, Mux, Signal

from ..boards.schema import HOST_DOMAINS
from ..cores.bridge.station import BridgeStation
from ..cores.engines.catalog import PlannedEngine
from ..cores.memory import MemorySignature
from ..cores.net.guard import FrameGuard
from ..cores.net.hosts.services import SHORTEST, HostServices
from ..cores.net.vlan import VlanStrip
from .board_calls import make_platform
from .bridge import AmaranthModule, unflipped
from .ethernet import EthernetMac
from .map import MemoryMap
from .memory import DramPort
from .words import WholeWords

__all__ = ["FabricSoC", "Tick"]


class Tick(LiteXModule):
    """The shell's millisecond: the divided clock, or an input pin in simulation.

    ``pulse`` is 1 for one cycle a millisecond. CSRs: ``period`` in clock cycles, ``uptime``
    in ticks since reset (it wraps after 49 days). ``millisecond`` is the divided clock in any case.
    A new ``period`` holds from the next millisecond on.
    """

    def __init__(self, sys_clk_hz, external=None, select=None):
        self.pulse = Signal()
        self.period = CSRStorage(
            32, reset=sys_clk_hz // 1000, description="clock cycles in a millisecond, at least 1"
        )
        self.uptime = CSRStatus(32, description="milliseconds since reset")
        # Down to zero: comparing two numbers took 25 ns of an ECP5 at speed grade 6.
        left = Signal(32, reset=sys_clk_hz // 1000 - 1)
        self.millisecond = divided = Signal()
        self.sync += [
            divided.eq(left == 0),
            If(left == 0, left.eq(self.period.storage - 1)).Else(left.eq(left - 1)),
            If(self.pulse, self.uptime.status.eq(self.uptime.status + 1)),
        ]
        if external is None:
            self.comb += self.pulse.eq(divided)
        else:
            self.comb += self.pulse.eq(Mux(select, external, divided))


class FabricSoC(SoCCore):
    """The part of a SoC that a processor has no hand in; what is built says the subclass.

    Parameters
    ----------
    board : Board
        What is built in, and how large.
    directory : path
        Gateware folder of the build, where the converted Verilog goes.
    core
        Arguments of LiteX's ``SoCCore``.
    """

    #: Words of the firmware, on an ECP5 whose ROM has a stand-in for them.
    firmware = ()

    def __init__(self, board, directory, **core):
        self.board = board
        self.memory_map = MemoryMap(board.dram_bytes)
        self._directory = directory
        SoCCore.__init__(self, make_platform(board), board.sys_clk_hz, **core)

    def register_map(self):
        """``(block, base address)`` of every register block; complete once the SoC is finalized."""
        return []

    def _convert(self, component, name):
        return AmaranthModule(self.platform, component, name, self._directory)

    def _add_tick(self):
        pads = {}
        if self.board.external_tick:
            pads = {
                "external": self.platform.request("tick"),
                "select": self.platform.request("tick_external"),
            }
        self.tick = Tick(self.board.sys_clk_hz, **pads)
        self.comb += self.fabric.ports[("tick",)].eq(self.tick.pulse)

    def _add_memory(self, shell):
        signature = unflipped(shell.signature.members["mem"].signature)
        if not isinstance(signature, MemorySignature):
            raise TypeError(f"The shell's port 'mem' must be a memory port, not {signature!r}")
        self.dram_port = DramPort(
            self.platform,
            self.sdram.crossbar.get_port() if self.board.dram_masks else self._share_words(),
            self.board.dram_bytes,
            self.fabric,
            "mem",
            signature,
            self._directory,
        )

    def _share_words(self, users=1):
        """The shell's port, the last, of a memory that is written in whole words only."""
        self.whole_words = WholeWords(self.sdram.crossbar.get_port(), users)
        return self.whole_words.ports[-1]

    def _add_network(self):
        width = self.board.data_width
        packets = self.fabric.packets
        self.mac = EthernetMac(self.ethphy, width, stores=not self.board.bridge)
        received, sent = self.mac.source, self.mac.sink
        if self.board.bridge:
            received, sent = self._add_bridge(width)
        # A frame without its priority tag is the same as one that never had it, but maybe shorter.
        self.priority_strip = self._convert(VlanStrip(width, priority=True), "priority_strip")
        plain = self.priority_strip.packets
        self.frame_guard = self._convert(FrameGuard(width, SHORTEST), "frame_guard")
        services = HostServices(width, self.board.udp_services)
        self.host_services = self._convert(services, "host_services")
        good, answers = self.frame_guard.packets["o"], self.host_services.packets
        self.comb += [
            received.connect(plain["i"]),
            plain["o"].connect(packets["rx"]),
            good.connect(answers["i"]),
            *(self.host_services.ports[(name,)].eq(x) for name, x in self._addresses().items()),
        ]
        self._join("tx", packets["tx"], sent)
        self._join("other_rx", packets["other_rx"], self.frame_guard.packets["i"])
        self._join("other_tx", self._other_frames(good, answers["o"]), packets["other_tx"])

    def _add_bridge(self, width):
        """The host's port, and the shell as a station between it and the network's; its line."""
        domains = {name.removeprefix("eth_"): domain for name, domain in HOST_DOMAINS.items()}
        self.host_mac = EthernetMac(self.host_ethphy, width, stores=False, **domains)
        engines = map(PlannedEngine, self.board.plan.engines)
        bodies = {e.entry.place: (e.name, e.body(width)) for e in engines}
        station = BridgeStation(width, engines=bodies)
        self.bridge_station = self._convert(station, "bridge_station")
        packets = self.bridge_station.packets
        for port, mac in (("network", self.mac), ("host", self.host_mac)):
            self.comb += [
                mac.source.connect(packets[f"{port}_rx"]),
                packets[f"{port}_tx"].connect(mac.sink),
            ]
        self.comb += self.bridge_station.ports[("mac",)].eq(self._addresses()["mac"])
        return packets["rx"], packets["tx"]

    def _other_frames(self, received, answers):
        """What is sent beside TCP: ``answers`` of the host services, and whatever comes of the
        whole frames ``received`` that are not TCP's. Those never wait."""
        return answers

    def _join(self, name, source, sink):
        """From ``source`` to ``sink`` by way of registers, both ways: ``ready`` comes far."""
        buffer = stream.Buffer(source.description, pipe_valid=True, pipe_ready=True)
        self.add_module(name=f"{name}_buffer", module=buffer)
        self.comb += [source.connect(buffer.sink), buffer.source.connect(sink)]

    def _addresses(self):
        """Our MAC and IP address; the board's own when the shell has no registers."""
        bank = self.fabric.banks.get("csr_shell")
        if bank is None:
            mac = int.from_bytes(self.board.mac_int.to_bytes(6, "big"), "little")
            return {"mac": mac, "ip": self.board.ip_int}
        return {name: bank.read[name] for name in ("mac", "ip")}
