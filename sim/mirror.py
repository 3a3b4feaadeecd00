"""A stand-in for the shell: sends every IPv4 frame back with its addresses exchanged.

To the kernel behind a TAP device the mirror looks like a host whose every service answers with
what it was sent: pings are answered, UDP comes back to its sender's port, and a TCP socket bound to
port p that connects to port p of the mirror meets itself (a simultaneous open, RFC 9293, 3.5), so
that whatever it writes comes back. The harness and its link are tested with it, without a TCP
engine of ours. Swapping addresses changes no checksum.

Ports
-----
rx : PacketSignature(32), in
    Frames. One is stored at a time; a damaged one (``error``) is dropped and counted.
tx : PacketSignature(32), out
    IPv4 frames with MAC and IP addresses exchanged, and the frames from ``other_tx``.
other_rx : PacketSignature(32), out
    Every other frame, as it came.
other_tx : PacketSignature(32), in
    Frames to send beside them.
tick : in
    Counted.
csr_mirror : CsrSignature
    Counters ``frames``, ``others``, ``errors``, ``ticks`` and the switch ``enable``: 0 drops every
    frame.

Parameters
----------
depth : int
    Beats a frame may have; a longer frame is dropped and counted as an error.
"""

from amaranth import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..cores.arbiter import PacketArbiter
from ..cores.csr import CsrSignature, Register, RegisterBlock, counter
from ..cores.stream import PacketSignature

__all__ = ["Mirror", "mirror_block"]

_IPV4 = 0x0008  # EtherType 08 00, first byte in the low bits
#: Beats that hold addresses: MACs in bytes 0 to 11, IPs in 26 to 33.
_ADDRESS_BEATS = (0, 1, 2, 6, 7, 8)

mirror_block = RegisterBlock(
    "mirror",
    (
        Register("enable", "rw", 1, "0: drop every frame", reset=1),
        counter("frames", "frames sent back"),
        counter("others", "frames handed to other_rx"),
        counter("errors", "frames dropped because they were damaged or too long"),
        counter("ticks", "milliseconds"),
    ),
    "the stand-in for the shell in tests of the simulator",
)


class Mirror(wiring.Component):
    """See the module's docstring."""

    def __init__(self, depth=512):
        if not isinstance(depth, int) or depth < 16:
            raise ValueError(f"Depth must be an integer of at least 16 beats, not {depth!r}")
        self.depth = depth
        super().__init__(
            {
                "rx": In(PacketSignature(32)),
                "tx": Out(PacketSignature(32)),
                "other_rx": Out(PacketSignature(32)),
                "other_tx": In(PacketSignature(32)),
                "tick": In(1),
                "csr_mirror": In(CsrSignature(mirror_block)),
            }
        )

    # A frame is stored whole; beats with addresses are kept in registers as well, because an
    # exchanged beat is made of two others. Then the frame leaves on one of the two outputs, or is
    # forgotten.
    def elaborate(self, platform):
        m = Module()
        csr = self.csr_mirror
        m.submodules.store = store = Memory(shape=unsigned(32), depth=self.depth, init=[])
        m.submodules.arbiter = arbiter = PacketArbiter(32, 2)
        write, read = store.write_port(), store.read_port()
        kept = {i: Signal(32, name=f"beat{i}") for i in _ADDRESS_BEATS}
        index = Signal(range(self.depth + 1))
        end = Signal.like(index)  # index of the last beat
        empty = Signal.like(self.rx.payload.empty)
        ipv4 = Signal()
        mirrored = PacketSignature(32).create(path=("mirrored",))

        wiring.connect(m, arbiter.i[0], wiring.flipped(self.other_tx))
        wiring.connect(m, mirrored, arbiter.i[1])
        wiring.connect(m, arbiter.o, wiring.flipped(self.tx))
        m.d.comb += [
            write.addr.eq(index),
            write.data.eq(self.rx.payload.data),
            read.addr.eq(index),
        ]
        m.d.sync += csr.ticks.eq(csr.ticks + self.tick)

        with m.FSM():
            with m.State("STORE"):
                m.d.comb += [self.rx.ready.eq(1), write.en.eq(self.rx.valid & (index < self.depth))]
                with m.If(self.rx.valid):
                    for i, beat in kept.items():
                        with m.If(index == i):
                            m.d.sync += beat.eq(self.rx.payload.data)
                    with m.If(index == 3):
                        m.d.sync += ipv4.eq(self.rx.payload.data[:16] == _IPV4)
                    with m.If(index != self.depth):
                        m.d.sync += index.eq(index + 1)
                    with m.If(self.rx.payload.last):
                        m.d.sync += [index.eq(0), end.eq(index), empty.eq(self.rx.payload.empty)]
                        bad = self.rx.payload.error | (index == self.depth) | (index < 9)
                        with m.If(bad):
                            m.d.sync += csr.errors.eq(csr.errors + 1)
                        with m.Elif(csr.enable):
                            m.next = "FETCH"
            with m.State("FETCH"):
                m.next = "SEND"
            with m.State("SEND"):
                last = index == end
                for port, chosen, total in (
                    (mirrored, ipv4, csr.frames),
                    (self.other_rx, ~ipv4, csr.others),
                ):
                    m.d.comb += [
                        port.valid.eq(chosen),
                        port.payload.data.eq(self._beat(m, index, kept, read.data, chosen is ipv4)),
                        port.payload.first.eq(index == 0),
                        port.payload.last.eq(last),
                        port.payload.empty.eq(Mux(last, empty, 0)),
                    ]
                    with m.If(port.valid & port.ready):
                        m.d.sync += index.eq(Mux(last, 0, index + 1))
                        m.d.sync += total.eq(total + last)
                        with m.If(last):
                            m.next = "STORE"
                        with m.Else():
                            m.next = "FETCH"
        return m

    def _beat(self, m, index, kept, stored, exchange):
        """The stored beat, or the one with exchanged addresses in its place."""
        if not exchange:
            return stored
        halves = {
            0: (kept[1][16:], kept[2][:16]),
            1: (kept[2][16:], kept[0][:16]),
            2: (kept[0][16:], kept[1][:16]),
            6: (kept[6][:16], kept[7][16:]),
            7: (kept[8][:16], kept[6][16:]),
            8: (kept[7][:16], kept[8][16:]),
        }
        beat = Signal(32)
        with m.Switch(index):
            for i, (low, high) in halves.items():
                with m.Case(i):
                    m.d.comb += beat.eq(Cat(low, high))
            with m.Default():
                m.d.comb += beat.eq(stored)
        return beat
