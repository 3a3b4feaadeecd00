"""LiteEth around the shell: MAC below it, ARP, ICMP and UDP beside it.

::

    PHY -> MAC (preamble, CRC) -> shell.rx          shell.other_rx -> depacketizer -> crossbar
    PHY <- MAC <- whole frames <- shell.tx          shell.other_tx <- packetizer   <- of LiteEth

The MAC and IP addresses may be Migen signals: LiteEth 2024.12 only ever compares them and copies
them into headers. Its top-level cores convert strings first, so the parts are put together here.
"""

from liteeth.common import (
    eth_fcs_length,
    eth_icmp_user_description,
    eth_ipv4_user_description,
    eth_min_frame_length,
    eth_udp_user_description,
    icmp_protocol,
)
from liteeth.core.arp import LiteEthARP
from liteeth.core.icmp import LiteEthICMPEcho, LiteEthICMPRX, LiteEthICMPTX
from liteeth.core.ip import LiteEthIP
from liteeth.core.udp import LiteEthUDP
from liteeth.mac.common import LiteEthMACCrossbar, LiteEthMACDepacketizer, LiteEthMACPacketizer
from liteeth.mac.crc import LiteEthMACCRC32Checker, LiteEthMACCRC32Inserter
from liteeth.mac.gap import LiteEthMACGap
from liteeth.mac.last_be import LiteEthMACRXLastBE, LiteEthMACTXLastBE
from liteeth.mac.padding import LiteEthMACPaddingInserter
from liteeth.mac.preamble import LiteEthMACPreambleChecker, LiteEthMACPreambleInserter
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from litex.soc.interconnect.csr import CSRStatus
from litex.soc.interconnect.packet import PacketFIFO
from litex.soc.interconnect.stream import DIR_SINK, BufferizeEndpoints
from migen import ClockDomainsRenamer, If, Signal
from migen.genlib.cdc import PulseSynchronizer

from ..cores.net.udp_echo import UdpDiscard, UdpEcho
from .bridge import AmaranthModule, packet_description
from .crossing import Crossing

__all__ = ["MAX_FRAME_BYTES", "EthernetMac", "NetworkStack", "UdpServices"]

#: RFC 862 and RFC 863.
UDP_ECHO, UDP_DISCARD = 7, 9

#: Ethernet header and 1500 bytes; no VLAN tag, no FCS.
MAX_FRAME_BYTES = 1514


class EthernetMac(LiteXModule):
    """LiteEth's MAC with a packet stream each way, as LiteX endpoints ``source`` and ``sink``.

    Received frames have ``error`` set on their last beat when the CRC was wrong. A PHY cannot
    wait, so a frame is sent only when it is here to its end: ``sink`` holds up to 4 KiB of
    frames. A frame to be sent must have at most 4 KiB; the MAC pads short ones. CSRs: counters
    ``preamble_errors`` and ``crc_errors``.

    It is put together from the parts of ``LiteEthMACCore``, in its order, with one register stage
    more: on the way out, LiteEth's ``ready`` runs from the preamble inserter back through padding,
    into the read side of the crossing's LUT RAM, which misses 125 MHz on an ECP5.
    Preamble and CRC are handled a byte a cycle in the PHY's clock domains, so a preamble that a
    PHY has shortened by some bytes is still found.

    Parameters
    ----------
    phy
        A LiteEth PHY with a data path of 8 bits.
    width : int
        Data path towards the shell, in bits.
    """

    def __init__(self, phy, width=32):
        if phy.dw != 8:
            raise ValueError(f"The PHY's data path must be 8 bits, not {phy.dw!r}")
        self.tx_frames = PacketFIFO(
            packet_description(width),
            payload_depth=4096 * 8 // width,
            param_depth=63,
            buffered=True,
        )
        self.sink = self.tx_frames.sink
        self._add_transmitter(phy, width)
        self._add_receiver(phy, width)

    def _add_transmitter(self, phy, width):
        wide, narrow = packet_description(width), packet_description(8)
        # Whole frames wait before it, and words come faster than they go: 16 cover the crossing.
        # With 32, which take two banks of LUT RAM, it was the slowest path of the 125 MHz.
        self.tx_cdc = Crossing(wide, "sys", "eth_tx", depth=16)
        stages = [
            stream.StrideConverter(wide, narrow),
            LiteEthMACTXLastBE(8),
            stream.Buffer(narrow, pipe_valid=True, pipe_ready=True),
            LiteEthMACPaddingInserter(8, eth_min_frame_length - eth_fcs_length),
            BufferizeEndpoints({"sink": DIR_SINK})(LiteEthMACCRC32Inserter(narrow)),
            # Without, the check sequence waits for `ready` of the preamble: 114 MHz on an ECP5 at
            # speed grade 6.
            stream.Buffer(narrow, pipe_valid=True, pipe_ready=True),
            LiteEthMACPreambleInserter(8),
        ]
        if not getattr(phy, "integrated_ifg_inserter", False):
            stages.append(LiteEthMACGap(8))
        # So that no logic is left before the pins: 110 MHz at speed grade 6 without.
        stages.append(stream.Buffer(narrow))
        stages = [ClockDomainsRenamer("eth_tx")(stage) for stage in stages]
        self.submodules += stages
        self.tx_pipeline = stream.Pipeline(self.tx_frames, self.tx_cdc, *stages, phy)

    def _add_receiver(self, phy, width):
        wide, narrow = packet_description(width), packet_description(8)
        preamble = ClockDomainsRenamer("eth_rx")(LiteEthMACPreambleChecker(8))
        crc = ClockDomainsRenamer("eth_rx")(
            BufferizeEndpoints({"sink": DIR_SINK})(LiteEthMACCRC32Checker(narrow))
        )
        stages = [
            ClockDomainsRenamer("eth_rx")(stage)
            for stage in (
                LiteEthMACRXLastBE(8),
                stream.StrideConverter(narrow, wide),
                # `ready` of the crossing, back to the preamble: 103 MHz at speed grade 6 without.
                stream.Buffer(wide, pipe_valid=True, pipe_ready=True),
            )
        ]
        self.submodules += preamble, crc, stages
        # In block RAM, and deep enough for the shell to look away for a third of a frame.
        self.rx_cdc = stream.ClockDomainCrossing(
            wide, cd_from="eth_rx", cd_to="sys", depth=128, buffered=True
        )
        self.rx_pipeline = stream.Pipeline(phy, preamble, crc, *stages, self.rx_cdc)
        self.source = self.rx_cdc.source
        self.preamble_errors = CSRStatus(32, description="frames without a start delimiter")
        self.crc_errors = CSRStatus(32, description="frames with a wrong check sequence")
        self._count(preamble.error, self.preamble_errors)
        self._count(crc.error, self.crc_errors)

    def _count(self, pulse, register):
        crossing = PulseSynchronizer("eth_rx", "sys")
        self.submodules += crossing
        self.comb += crossing.i.eq(pulse)
        self.sync += If(crossing.o, register.status.eq(register.status + 1))


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


class _PingEcho(LiteXModule):
    """LiteEth's ``LiteEthICMP`` with registers: in front, before which the IP header is checked,
    and before the answer, whose checksum comes from memory by way of an adder."""

    def __init__(self, ip, ip_address, width, fifo_depth):
        self.rx = LiteEthICMPRX(ip_address, width)
        self.tx = LiteEthICMPTX(ip_address, width)
        self.echo = LiteEthICMPEcho(width, fifo_depth=fifo_depth)
        self.buffer = stream.Buffer(eth_ipv4_user_description(width))
        self.answer = stream.Buffer(eth_icmp_user_description(width), pipe_ready=True)
        port = ip.crossbar.get_port(icmp_protocol, width)
        self.rx_pipeline = stream.Pipeline(port.source, self.buffer, self.rx, self.echo)
        self.tx_pipeline = stream.Pipeline(self.echo, self.answer, self.tx, port.sink)


class NetworkStack(LiteXModule):
    """ARP, ICMP echo and UDP: LiteEth's cores behind ``sink`` and ``source``, whole frames each.

    ``sink`` must get undamaged frames of 60 to :data:`MAX_FRAME_BYTES` bytes: LiteEth's
    depacketizers count on the headers' being there, and its ICMP echo stores a request as long as
    its IP header says. :class:`~trebuchet.cores.net.guard.FrameGuard` sees to that.

    Parameters
    ----------
    mac_address, ip_address : Signal or int
        Our addresses, the first byte on the wire the most significant.
    clk_hz : int
        Frequency from which ARP's time-outs are derived.
    width : int
        Data path, in bits.
    with_udp : bool
        Whether there is ``udp``; without it nothing is sent but answers to ARP and echo requests.
    """

    def __init__(self, mac_address, ip_address, clk_hz, width=32, with_udp=True):
        self.mac = mac = _StackMac(width)
        self.arp = LiteEthARP(mac, mac_address, ip_address, clk_hz, entries=4, dw=width)
        # `with_broadcast` would accept every destination address, not only broadcasts.
        self.ip = LiteEthIP(
            mac, mac_address, ip_address, self.arp.table, with_broadcast=False, dw=width
        )
        # Deep enough for any frame: LiteEth would wait for ever for the end of a request whose IP
        # header states less than the frame carries, were the store smaller than the frame.
        self.icmp = _PingEcho(self.ip, ip_address, width, fifo_depth=2048)
        if with_udp:
            self.udp = LiteEthUDP(self.ip, ip_address, dw=width)
        # `ready` comes from the far end of what it is for.
        self.buffer = stream.Buffer(packet_description(width), pipe_valid=True, pipe_ready=True)
        self.comb += self.buffer.source.connect(mac.sink)
        self.sink, self.source = self.buffer.sink, mac.source


class _PaddingTrim(LiteXModule):
    """Takes the Ethernet padding off a datagram's last beat.

    LiteEth's UDP receiver ends a datagram by its length, but when the frame ends in the same beat
    it hands on the frame's last byte: 17 bytes of payload arrive as 18. Bytes are only ever taken
    away: a datagram that is shorter than it says stays so.
    """

    def __init__(self, width):
        n = width // 8
        self.sink = sink = stream.Endpoint(eth_udp_user_description(width))
        self.source = source = stream.Endpoint(eth_udp_user_description(width))
        before = Signal(17)
        wanted = Signal(n)
        self.comb += [
            sink.connect(source),
            wanted.eq(1 << ((sink.length - 1) & (n - 1))),
            If(
                sink.last & (before + n >= sink.length) & (wanted < sink.last_be),
                source.last_be.eq(wanted),
            ),
        ]
        self.sync += If(
            sink.valid & sink.ready,
            If(sink.last, before.eq(0)).Elif(~before[16], before.eq(before + n)),
        )


class UdpServices(LiteXModule):
    """The UDP echo and discard services behind LiteEth's UDP core.

    Parameters
    ----------
    platform, directory
        As for :class:`~trebuchet.soc.bridge.AmaranthModule`.
    udp : LiteEthUDP
        Gets user ports 7 and 9.
    width : int
        Data path, in bits.
    """

    def __init__(self, platform, udp, width, directory):
        self.echo = AmaranthModule(platform, UdpEcho(width), "udp_echo", directory)
        self.discard = AmaranthModule(platform, UdpDiscard(width), "udp_discard", directory)
        self.banks = {"echo": self.echo.banks["csr"], "discard": self.discard.banks["csr"]}
        beat = {"valid", "ready", "data", "last", "last_be", "error"}

        port = udp.crossbar.get_port(UDP_DISCARD, dw=width)
        self.trim_discard = trim = _PaddingTrim(width)
        self.comb += [
            port.source.connect(trim.sink),
            trim.source.connect(self.discard.packets["rx"], keep=beat),
        ]

        port = udp.crossbar.get_port(UDP_ECHO, dw=width)
        self.trim_echo = trim = _PaddingTrim(width)
        ports = self.echo.ports
        self.comb += [
            port.source.connect(trim.sink),
            trim.source.connect(self.echo.packets["rx"], keep=beat),
            ports[("rx_ip",)].eq(trim.source.ip_address),
            ports[("rx_port",)].eq(trim.source.src_port),
            ports[("rx_length",)].eq(trim.source.length),
            self.echo.packets["tx"].connect(port.sink, keep=beat),
            port.sink.ip_address.eq(ports[("tx_ip",)]),
            port.sink.src_port.eq(UDP_ECHO),
            port.sink.dst_port.eq(ports[("tx_port",)]),
            port.sink.length.eq(ports[("tx_length",)]),
        ]
