"""A board in the wire that is a station, too: host, network, and the board's own stack."""

from dataclasses import replace

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..arbiter import PacketArbiter
from ..csr import CsrSignature, Register, RegisterBlock, counter
from ..stream import PacketSignature
from .bridge import BRIDGE_BLOCK, DIRECTIONS, Bridge
from .listener import TapListener
from .sender import PortSender

__all__ = ["ENABLED_BLOCK", "STATION_BLOCK", "BridgeStation"]

#: The bridge's registers where the station must be there from the start.
ENABLED_BLOCK = replace(
    BRIDGE_BLOCK,
    registers=tuple(
        replace(register, reset=1) if register.name == "enable" else register
        for register in BRIDGE_BLOCK.registers
    ),
)

STATION_BLOCK = RegisterBlock(
    "station",
    (
        Register("host_mac", "ro", 48, "the host's MAC address, first byte lowest; 0: not known"),
        *(
            counter(f"{direction}_lost", "frames for the board for which there was no room")
            for direction in DIRECTIONS
        ),
    ),
    "the board as a station on the wire between the network and the host",
)


class BridgeStation(wiring.Component):
    """A :class:`~trebuchet.cores.bridge.bridge.Bridge` that has the board's own stack at its tap.

    ===============  ====  ==============  ========================================================
    member           dir   shape           meaning
    ===============  ====  ==============  ========================================================
    ``network_rx``   In    packet stream   frames from the MAC of the network's port
    ``network_tx``   Out   packet stream   frames to it
    ``host_rx``      In    packet stream   frames from the MAC of the host's port
    ``host_tx``      Out   packet stream   frames to it
    ``rx``           Out   packet stream   frames for the board's stack; ``error`` is always 0
    ``tx``           In    packet stream   frames of the board's stack
    ``mac``          In    48              the board's address, first byte in bits 7..0
    ``csr``          In    CsrSignature    :data:`ENABLED_BLOCK`
    ``csr_station``  In    CsrSignature    :data:`STATION_BLOCK`
    ===============  ====  ==============  ========================================================

    With an engine there is further ``csr_inbound`` or ``csr_outbound``, its registers. It sees the
    frames that pass, group frames among them, and none to or from the board itself.

    *Frames from a port*, store-and-forward: to ``mac``, they go to ``rx`` and no further (and
    count as ``dropped``); to a group address, to ``rx`` and out of the other port; all others out
    of the other port. See :class:`~.listener.TapListener` for those that are damaged, and for those
    that ``rx`` has no room for.

    *Frames from* ``tx``: to the host's port when they are for the host, to both for a group
    address, else to the network's; see :class:`~.sender.PortSender`. The host's address is the
    source of the last good frame from its port. Beside frames that pass they have half of the line
    (:class:`~.fair.FairMux`). They may be shorter than an Ethernet frame: the MACs pad.

    *A frame to a port* offers a beat in each cycle from its first to its last, so a MAC needs no
    store of its own where beats come faster than the line takes them.

    *While* ``enable`` *is 0*, which it is not after reset, frames pass and the board is deaf and
    mute: ``rx`` gets nothing, and what comes from ``tx`` is swallowed.

    *Back-pressure*: ``rx`` may wait at will, at the cost of frames for it. ``tx`` waits for the
    port or ports that its frame goes to. ``network_rx`` waits for ``host_tx`` and no other, and
    likewise the other way. *Reset*: empty, ``enable`` 1, counters 0, no host known.

    Parameters
    ----------
    width : int
        Data path in bits.
    depth : int or None
        Beats of frames that wait for ``rx``, of each direction; by default 2 KiB.
    options
        Of :class:`~trebuchet.cores.bridge.bridge.Bridge`: ``shortest``, ``longest``, ``engines``.
    """

    def __init__(self, width=32, depth=None, **options):
        self.width = width
        # No ports: for proofs.
        self.bridge = Bridge(
            width,
            store_and_forward=True,
            latency=TapListener.LATENCY,
            shortest_injected=1,
            **options,
        )
        self.verilog_files = self.bridge.verilog_files
        self.listeners = [TapListener(width, depth) for _ in DIRECTIONS]
        self.sender = PortSender(width)
        self.merge = PacketArbiter(width, len(DIRECTIONS))
        stream = PacketSignature(width)
        members = {
            "network_rx": In(stream),
            "network_tx": Out(stream),
            "host_rx": In(stream),
            "host_tx": Out(stream),
            "rx": Out(stream),
            "tx": In(stream),
            "mac": In(48),
            "csr": In(CsrSignature(ENABLED_BLOCK)),
            "csr_station": In(CsrSignature(STATION_BLOCK)),
        }
        for name, block in self.bridge.engine_blocks.items():
            members[name] = In(CsrSignature(block))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.bridge, m.submodules.sender = bridge, sender = self.bridge, self.sender
        m.submodules.merge = merge = self.merge
        connect, outside = wiring.connect, wiring.flipped
        for port, rx, tx in (
            (0, self.network_rx, self.network_tx),
            (1, self.host_rx, self.host_tx),
        ):
            connect(m, outside(rx), bridge.rx[port])
            connect(m, bridge.tx[port], outside(tx))
            # A direction is named after the port that it comes from.
            connect(m, sender.o[port], bridge.inject[1 - port])
        connect(m, outside(self.tx), sender.i)
        connect(m, merge.o, outside(self.rx))
        for d, (direction, listener) in enumerate(zip(DIRECTIONS, self.listeners, strict=True)):
            m.submodules[f"{direction}_listener"] = listener
            connect(m, bridge.tap[d], listener.tap)
            connect(m, listener.o, merge.i[d])
            count = getattr(self.csr_station, f"{direction}_lost")
            m.d.comb += listener.mac.eq(self.mac)
            m.d.sync += count.eq(count + listener.lost)
        host = self.listeners[1].source
        m.d.comb += [sender.host.eq(host), self.csr_station.host_mac.eq(host)]
        for register in ENABLED_BLOCK.registers:
            ours, theirs = (getattr(csr, register.name) for csr in (self.csr, bridge.csr))
            m.d.comb += theirs.eq(ours) if register.access == "rw" else ours.eq(theirs)
        for name in bridge.engine_blocks:
            connect(m, outside(getattr(self, name)), getattr(bridge, name))
        return m
