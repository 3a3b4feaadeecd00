"""LiteEth below the shell: a PHY's bytes become packet streams, and back.

::

    PHY -> MAC (preamble, CRC) -> shell.rx
    PHY <- MAC <- whole frames <- shell.tx
"""

from liteeth.common import eth_fcs_length, eth_min_frame_length
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
from migen import ClockDomainsRenamer, If
from migen.genlib.cdc import PulseSynchronizer

from .bridge import packet_description
from .crossing import Crossing

__all__ = ["EthernetMac"]

#: Bytes of the shortest frame before its check sequence.
_SHORTEST = eth_min_frame_length - eth_fcs_length


class _ShortPadding(LiteXModule):
    """LiteEth's padding on a path of a byte, without ``last_be``, which says no more than ``last``.

    It is 1 always, and its comparisons are gone: 124 MHz at speed grade 6 with them.
    """

    def __init__(self):
        self.padding = padding = LiteEthMACPaddingInserter(8, _SHORTEST)
        self.sink, self.source = (stream.Endpoint(packet_description(8)) for _ in range(2))
        for source, sink in ((self.sink, padding.sink), (padding.source, self.source)):
            self.comb += source.connect(sink, omit={"last_be"}), sink.last_be.eq(1)


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
    rx, tx : str
        Clock domains of the PHY.
    stores : bool
        If not, it saves five block RAMs of an ECP5, and whoever is at the other side has a store
        both ways: ``sink`` gets frames without a pause, faster than the line takes them, and from
        ``source`` every word is taken soon.
    """

    def __init__(self, phy, width=32, rx="eth_rx", tx="eth_tx", stores=True):
        if phy.dw != 8:
            raise ValueError(f"The PHY's data path must be 8 bits, not {phy.dw!r}")
        if stores:
            self.tx_frames = PacketFIFO(
                packet_description(width),
                payload_depth=4096 * 8 // width,
                param_depth=63,
                buffered=True,
            )
        self._add_transmitter(phy, width, tx, stores)
        self._add_receiver(phy, width, rx, stores)

    def _add_transmitter(self, phy, width, domain, stores):
        wide, narrow = packet_description(width), packet_description(8)
        # Whole frames wait before it, and words come faster than they go: 16 cover the crossing.
        # With 32, which take two banks of LUT RAM, it was the slowest path of the 125 MHz.
        self.tx_cdc = Crossing(wide, "sys", domain, depth=16)
        stages = [
            stream.StrideConverter(wide, narrow),
            LiteEthMACTXLastBE(8),
            stream.Buffer(narrow, pipe_valid=True, pipe_ready=True),
            LiteEthMACPaddingInserter(8, _SHORTEST) if stores else _ShortPadding(),
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
        if not stores:
            # With two MACs on an FPGA, further from their pins, the padding's count, `ready` of the
            # check sequence, back through the padding, and `ready` of the converter, back into the
            # crossing, came to 103, 119 and 122 MHz at speed grade 6.
            stages.insert(4, stream.Buffer(narrow, pipe_valid=True, pipe_ready=True))
            stages.insert(3, stream.Buffer(narrow))
            stages.insert(0, stream.Buffer(wide, pipe_valid=True, pipe_ready=True))
        stages = [ClockDomainsRenamer(domain)(stage) for stage in stages]
        self.submodules += stages
        frames = [self.tx_frames] if stores else []
        self.tx_pipeline = stream.Pipeline(*frames, self.tx_cdc, *stages, phy)
        self.sink = (frames or [self.tx_cdc])[0].sink

    def _add_receiver(self, phy, width, domain, stores):
        wide, narrow = packet_description(width), packet_description(8)
        preamble = ClockDomainsRenamer(domain)(LiteEthMACPreambleChecker(8))
        crc = ClockDomainsRenamer(domain)(
            BufferizeEndpoints({"sink": DIR_SINK})(LiteEthMACCRC32Checker(narrow))
        )
        stages = [
            ClockDomainsRenamer(domain)(stage)
            for stage in (
                # `ready` of the converter, back through the check sequence's own buffer: 115 MHz
                # at speed grade 6 without.
                stream.Buffer(narrow, pipe_valid=True, pipe_ready=True),
                LiteEthMACRXLastBE(8),
                stream.StrideConverter(narrow, wide),
                # `ready` of the crossing, back to the preamble: 103 MHz at speed grade 6 without.
                stream.Buffer(wide, pipe_valid=True, pipe_ready=True),
            )
        ]
        self.submodules += preamble, crc, stages
        # The pins of a second port may be at the other side of the FPGA: 115 MHz without.
        far = (
            [] if stores else [ClockDomainsRenamer(domain)(stream.Buffer(narrow)) for _ in range(2)]
        )
        self.submodules += far
        # In block RAM, and deep enough for the shell to look away for a third of a frame.
        room = {"depth": 128, "block": True} if stores else {"depth": 16}
        self.rx_cdc = Crossing(wide, domain, "sys", **room)
        self.rx_pipeline = stream.Pipeline(phy, *far, preamble, crc, *stages, self.rx_cdc)
        self.source = self.rx_cdc.source
        self.preamble_errors = CSRStatus(32, description="frames without a start delimiter")
        self.crc_errors = CSRStatus(32, description="frames with a wrong check sequence")
        self._count(domain, preamble.error, self.preamble_errors)
        self._count(domain, crc.error, self.crc_errors)

    def _count(self, domain, pulse, register):
        crossing = PulseSynchronizer(domain, "sys")
        self.submodules += crossing
        self.comb += crossing.i.eq(pulse)
        self.sync += If(crossing.o, register.status.eq(register.status + 1))
