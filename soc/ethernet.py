"""LiteEth around the shell: MAC below it, ARP, ICMP and UDP beside it.

::

    PHY -> MAC (preamble, CRC) -> shell.rx          shell.other_rx -> depacketizer -> crossbar
    PHY <- MAC <- whole frames <- shell.tx          shell.other_tx <- packetizer   <- of LiteEth

The MAC and IP addresses may be Migen signals: LiteEth 2024.12 only ever compares them and copies
them into headers. Its top-level cores convert strings first, so the parts are put together here.
"""

from liteeth.core.arp import LiteEthARP
from liteeth.core.icmp import LiteEthICMP
from liteeth.core.ip import LiteEthIP
from liteeth.core.udp import LiteEthUDP
from liteeth.mac.common import LiteEthMACCrossbar, LiteEthMACDepacketizer, LiteEthMACPacketizer
from liteeth.mac.core import LiteEthMACCore
from litex.gen import LiteXModule
from litex.soc.interconnect.packet import PacketFIFO

from .bridge import packet_description

__all__ = ["MAX_FRAME_BYTES", "EthernetMac", "NetworkStack"]

#: Ethernet header and 1500 bytes; no VLAN tag, no FCS.
MAX_FRAME_BYTES = 1514


class EthernetMac(LiteXModule):
    """LiteEth's MAC with a packet stream each way, as LiteX endpoints ``source`` and ``sink``.

    Received frames have ``error`` set on their last beat when the CRC was wrong. A PHY cannot
    wait, so a frame is sent only when it is here to its end: ``sink`` holds up to 4 KiB of
    frames. A frame to be sent must have at most 4 KiB; the MAC pads short ones.

    Parameters
    ----------
    phy
        A LiteEth PHY.
    width : int
        Data path towards the shell, in bits.
    """

    def __init__(self, phy, width=32):
        description = packet_description(width)
        # CRC and preamble run in the PHY's clock domains, a byte a cycle; the crossings to `sys`
        # are in block RAM and deep enough for the shell to look away for a third of a frame.
        self.core = core = LiteEthMACCore(
            phy,
            width,
            rx_cdc_depth=128,
            rx_cdc_buffered=True,
            tx_cdc_depth=32,
            tx_cdc_buffered=True,
        )
        self.tx_frames = PacketFIFO(
            description, payload_depth=4096 * 8 // width, param_depth=63, buffered=True
        )
        self.sink = self.tx_frames.sink
        self.source = core.source
        self.comb += self.tx_frames.source.connect(core.sink)


class _StackMac(LiteXModule):
    """What LiteEth's cores expect of a MAC: a crossbar by Ethernet type."""

    def __init__(self, width):
        self.crossbar = LiteEthMACCrossbar(width)
        self.packetizer = LiteEthMACPacketizer(width)
        self.depacketizer = LiteEthMACDepacketizer(width)
        self.sink = self.depacketizer.sink
        self.source = self.packetizer.source
        self.comb += [
            self.crossbar.master.source.connect(self.packetizer.sink),
            self.depacketizer.source.connect(self.crossbar.master.sink),
        ]


class NetworkStack(LiteXModule):
    """ARP, ICMP echo and UDP: LiteEth's cores behind ``sink`` and ``source``, whole frames each.

    ``sink`` must get undamaged frames of 60 to :data:`MAX_FRAME_BYTES` bytes: LiteEth's
    depacketizers count on the headers' being there, and its ICMP echo stores a request as long as
    its IP header says. The shell's classifier sees to that.

    Parameters
    ----------
    mac_address, ip_address : Signal or int
        Our addresses, the first byte on the wire the most significant.
    clk_hz : int
        Frequency from which ARP's time-outs are derived.
    width : int
        Data path, in bits.
    """

    def __init__(self, mac_address, ip_address, clk_hz, width=32):
        self.mac = mac = _StackMac(width)
        self.arp = LiteEthARP(mac, mac_address, ip_address, clk_hz, entries=4, dw=width)
        # `with_broadcast` would accept every destination address, not only broadcasts.
        self.ip = LiteEthIP(
            mac, mac_address, ip_address, self.arp.table, with_broadcast=False, dw=width
        )
        # Deep enough for any frame: LiteEth would wait for ever for the end of a request whose IP
        # header states less than the frame carries, were the store smaller than the frame.
        self.icmp = LiteEthICMP(self.ip, ip_address, dw=width, fifo_depth=2048)
        self.udp = LiteEthUDP(self.ip, ip_address, dw=width)
        self.sink, self.source = mac.sink, mac.source
