"""Has the TCP engine of the fabric top open connections: software's part, played by a frame.

There is no CPU in the fabric top to write the registers of an active open
(:mod:`trebuchet.cores.tcp.connect`). :class:`Caller` writes them when a frame asks for it:

======  ======  ===================================================================================
bytes   value   meaning
======  ======  ===================================================================================
0-5     any     destination; the frame must not be TCP's
6-11            the peer's MAC address: the sender's own
12-13   88 b5   EtherType for local experiments (IEEE 802)
14-17           the peer's IPv4 address
18-19           the peer's port
20-21           the board's port
======  ======  ===================================================================================

The session is that of the first service (echo). While one is being opened or open, frames are
ignored, so a peer repeats its frame until the SYN comes.
"""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cores.stream import PacketSignature
from ..cores.tcp.connect import ConnectState

__all__ = ["CALL_TYPE", "Caller", "call_frame"]

CALL_TYPE = 0x88B5
_HEAD = 22  # bytes


def call_frame(mac: bytes, ip: bytes, port: int, local: int, board: bytes) -> bytes:
    """The frame by which the host ``mac``, ``ip`` asks to be called at ``port`` from ``local``."""
    frame = board + mac + CALL_TYPE.to_bytes(2, "big") + ip
    return (frame + port.to_bytes(2, "big") + local.to_bytes(2, "big")).ljust(60, b"\0")


class Caller(wiring.Component):
    """Looks at frames that pass and writes the ``connect`` registers.

    ===========  ===  =====================================================================
    ``frames``   In   packet stream as it passes: ``valid`` says that a beat is taken
    ``state``    In   register ``connect_state``
    ``mac`` …    Out  registers ``connect_mac``, ``_ip``, ``_port``, ``_local``
    ``connect``  Out  register ``connect``: a strobe
    ===========  ===  =====================================================================

    Back-pressure: none, it only looks. A frame cut short or with ``error`` is ignored. Reset: the
    registers are 0.
    """

    def __init__(self, width=32):
        self.width = width
        super().__init__(
            {
                "frames": In(PacketSignature(width)),
                "state": In(ConnectState),
                "mac": Out(48),
                "ip": Out(32),
                "port": Out(16),
                "local": Out(16),
                "connect": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n, beat = self.width // 8, self.frames.payload
        beats = -(-_HEAD // n)
        head = Array(Signal(self.width, name=f"head{k}") for k in range(beats))
        at = Signal(range(beats + 1))
        octets = Cat(*head)

        def number(start, count):  # network order
            return Cat(octets.word_select(start + k, 8) for k in reversed(range(count)))

        over = (ConnectState.IDLE, ConnectState.REFUSED, ConnectState.CLOSED)
        ended = Signal()
        free = Signal()
        with m.Switch(self.state):
            with m.Case(*over):
                m.d.comb += free.eq(1)
        m.d.sync += [ended.eq(0), self.connect.eq(0)]
        m.d.comb += self.frames.ready.eq(1)
        with m.If(self.frames.valid):
            with m.If(at != beats):
                m.d.sync += [head[at].eq(beat.data), at.eq(at + 1)]
            with m.If(beat.last):
                m.d.sync += [at.eq(0), ended.eq((at == beats) & ~beat.error)]
        with m.If(ended & (number(12, 2) == CALL_TYPE) & free & ~self.connect):
            m.d.sync += [
                self.mac.eq(octets[48:96]),
                self.ip.eq(number(14, 4)),
                self.port.eq(number(18, 2)),
                self.local.eq(number(20, 2)),
                self.connect.eq(1),
            ]
        return m
