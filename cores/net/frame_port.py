"""A port by which the CPU receives and sends whole Ethernet frames.

It is meant for what is too rare or too long for gateware: DHCP, fragments, IPv4 options, ports that
nobody serves, conflicts of addresses. The CPU sees the frames that
:class:`~.frame_filter.FrameFilter` selects.
"""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS, PacketFifo
from ..csr import CsrSignature, Field, Register, RegisterBlock
from ..stream import PacketSignature, check_data_width
from .frame_filter import FrameFilter

__all__ = ["NIC_BLOCK", "FramePort"]


def _events(name, description):
    """A counter of events that are rare: half of the usual width, and wraps."""
    return Register(name, "ro", 16, description)


NIC_BLOCK = RegisterBlock(
    "nic",
    (
        Register(
            "status",
            "ro",
            5,
            "state of the port",
            fields=(
                Field("pending", 0, 1, "a frame waits for the CPU"),
                Field("sending", 1, 1, "a frame is being sent"),
                Field("end", 2, 1, "rx_data shows the last bytes of the frame"),
                Field("spare", 3, 2, "bytes of rx_data beyond the frame's end"),
            ),
        ),
        Register("port", "rw", 16, "UDP port of the frames to any address", reset=68),
        Register("rx_data", "ro", 32, "next four bytes of the frame, the first in bits 7..0"),
        Register("rx_next", "stb", 1, "write 1: rx_data shows the next four bytes"),
        Register("tx_data", "rw", 32, "four bytes of the frame to send, the first in bits 7..0"),
        Register("tx_write", "stb", 1, "write 1: append tx_data to the frame"),
        Register("send", "stb", 10, "send the frame; its bytes, at least 14"),
        Register("irq_enable", "rw", 1, "1: interrupt while a frame is pending"),
        _events("received", "frames for the CPU stored"),
        _events("dropped", "frames for the CPU dropped: no room"),
        _events("sent", "frames sent"),
    ),
    "frames that the CPU receives and sends",
)

#: Words of 32 bits of the longest frame that is sent: what `send` can name.
_LARGEST = 256


class FramePort(wiring.Component):
    """Listens to a stream of frames for those of the CPU; sends frames that the CPU wrote.

    ==========  ====  =============  =============================================================
    member      dir   width          meaning
    ==========  ====  =============  =============================================================
    ``rx``      In    packet stream  copy of a stream of frames; ``ready`` is always 1
    ``tx``      Out   packet stream  frames of the CPU; ``error`` is 0
    ``mac``     In    48             our MAC address, its first byte in bits 7..0
    ``ip``      In    32             our IPv4 address as a number
    ``csr``     In    CsrSignature   :data:`NIC_BLOCK`
    ``irq``     Out   1              ``status.pending`` and ``irq_enable``
    ==========  ====  =============  =============================================================

    Taken are the frames that :class:`~.frame_filter.FrameFilter` names, of ``csr.port``, ``arp``
    and ``served``, but for damaged ones. They wait in a store of ``store`` bytes; one for which it
    has no room is dropped and counted. Whoever puts a copy in has no more than 1,518 bytes a frame.

    The firmware's loops, and every access they need::

        if (!(status & PENDING)) return;             // or the interrupt
        do {
            word[i++] = rx_data;
            end = status;                            // before rx_next
            rx_next = 1;                             // the next word is there two cycles later
        } while (!(end & END));                      // 4 i - SPARE bytes

        if (status & SENDING) return;                // later
        for (i = 0; i < (len + 3) / 4; i++) {        // starts at word 0 after reset and `send`
            tx_data = frame[i];
            tx_write = 1;                            // appends, and moves on by itself
        }
        send = len;

    ``send`` of 1 to 13 bytes sends nothing and starts at word 0 again. ``tx_write`` and ``send``
    while SENDING do nothing, nor does ``rx_next`` while nothing is pending. Short frames are not
    padded: a MAC does that. Words beyond the buffer wrap.

    Throughput: a beat a cycle in; a beat in three cycles out. Latency: five cycles from the last
    beat to PENDING, four from ``send`` to the first beat. Memory: the store, at 32 bits a block RAM
    of 512 by 36 bits for each 2 KiB, and LUT RAM for the frame to send. Reset: nothing pending,
    nothing sent, counters 0.

    Parameters
    ----------
    width : int
        Data path in bits.
    store : int
        Bytes of frames that wait, a power of two of at least 64.
    words : int
        Words of 32 bits of the longest frame to send, a power of two from 16 to 256.
    arp, served
        Of the filter.
    """

    def __init__(self, width=32, store=4096, words=128, arp=False, served=()):
        self.width = check_data_width(width)
        if not isinstance(words, int) or not 16 <= words <= _LARGEST or words & (words - 1):
            raise ValueError(
                f"Words of a frame must be a power of two from 16 to {_LARGEST}, not {words!r}"
            )
        if not isinstance(store, int) or store < 64 or store & (store - 1):
            raise ValueError(f"Bytes of the store must be a power of two from 64, not {store!r}")
        self.words, self.store_bytes = words, store
        super().__init__(
            {
                "rx": In(PacketSignature(width)),
                "tx": Out(PacketSignature(width)),
                "mac": In(48),
                "ip": In(32),
                "csr": In(CsrSignature(NIC_BLOCK)),
                "irq": Out(1),
            }
        )
        self.filter = FrameFilter(width, arp, served)
        self.store = PacketFifo(width, store * 8 // width)
        self.lanes = width // 32  # CPU's words in a word of the memory
        self.depth = words // self.lanes  # of these in a frame
        attrs = {**NO_COLLISIONS, "ram_style": "distributed"}
        self.ram = Memory(shape=width, depth=self.depth, init=[], attrs=attrs)
        self.write_port = self.ram.write_port(granularity=32)
        self.read_port = self.ram.read_port()
        # What the proofs' invariants name, beside the memory.
        self.lane = Signal(range(max(2, self.lanes)))  # of the beat that the CPU is shown
        self.sending, self.fetched = Signal(), Signal()
        self.cpu_write = Signal()
        self.at = Signal(range(words))  # word that the CPU writes next, or that is sent next
        self.final, self.final_empty = Signal(range(self.depth)), Signal(range(width // 8))
        self.word = Signal(width)

    def elaborate(self, platform):
        m = Module()
        m.submodules.ram, m.submodules.filter, m.submodules.store = (
            self.ram,
            self.filter,
            self.store,
        )
        csr, port = self.csr, self.write_port
        lane, place = self._split(self.at)
        m.d.comb += [
            self.cpu_write.eq(csr.tx_write & ~self.sending),
            port.data.eq(csr.tx_data.replicate(self.lanes)),
            port.addr.eq(place),
            port.en.eq(Mux(self.cpu_write, 1 << lane, 0)),
        ]
        self._receive(m)
        self._show(m)
        self._send(m)
        return m

    def _split(self, number):
        """Lane, and word of the memory, of a word of the CPU."""
        low = (self.lanes - 1).bit_length()
        return number[:low], number[low:]

    def _receive(self, m):
        csr, select, store = self.csr, self.filter, self.store
        wiring.connect(m, wiring.flipped(self.rx), select.i)
        wiring.connect(m, select.o, store.i)
        m.d.comb += [
            select.mac.eq(self.mac),
            select.ip.eq(self.ip),
            select.port.eq(csr.port),
        ]
        # A frame that does not fit counts if it is one of ours, which its last beat says.
        ended, ours = Signal(), Signal()
        m.d.sync += [
            ended.eq(select.o.valid & select.o.payload.last),
            ours.eq(~select.o.payload.error),
            csr.received.eq(
                csr.received + (ended & ours & ~store.dropped_overflow),
            ),
            csr.dropped.eq(csr.dropped + (ours & store.dropped_overflow)),
        ]

    def _show(self, m):
        """The words of the frame at the store's output."""
        csr, o, n = self.csr, self.store.o, self.width // 8
        ends = Signal()
        final = Const(n - 1, range(n)) - o.payload.empty  # the frame's last byte in its last beat
        m.d.comb += [
            ends.eq(o.payload.last & (self.lane == final[2:])),
            csr.rx_data.eq(o.payload.data.word_select(self.lane, 32)),
            csr.status.eq(
                Cat(o.valid, self.sending, ends, Mux(ends, o.payload.empty[:2], Const(0, 2)))
            ),
            self.irq.eq(o.valid & csr.irq_enable),
            o.ready.eq(csr.rx_next & (ends | (self.lane == self.lanes - 1))),
        ]
        with m.If(csr.rx_next & o.valid):
            m.d.sync += self.lane.eq(Mux(o.ready, 0, self.lane + 1))

    def _send(self, m):
        csr, tx, n = self.csr, self.tx, self.width // 8
        _, place = self._split(self.at)
        ends, last = Signal(10), Signal()
        m.d.comb += [ends.eq(csr.send - 1), last.eq(place == self.final)]
        with m.If(self.cpu_write):
            m.d.sync += self.at.eq(self.at + 1)
        with m.If((csr.send != 0) & ~self.sending):
            m.d.sync += [
                self.at.eq(0),
                self.sending.eq(csr.send >= 14),
                self.final.eq(ends[n.bit_length() - 1 :]),
                self.final_empty.eq(~ends[: n.bit_length() - 1]),
            ]
        m.d.sync += self.fetched.eq(self.sending & ~self.fetched & ~tx.valid)
        with m.If(self.fetched):
            m.d.sync += [
                tx.valid.eq(1),
                tx.payload.first.eq(place == 0),
                tx.payload.last.eq(last),
                tx.payload.empty.eq(Mux(last, self.final_empty, 0)),
            ]
        m.d.comb += [self.read_port.addr.eq(place), tx.payload.data.eq(self.word)]
        m.d.sync += self.word.eq(self.read_port.data)  # the same again while it waits
        with m.If(tx.valid & tx.ready):
            m.d.sync += [tx.valid.eq(0), self.at.eq(self.at + self.lanes)]
            with m.If(tx.payload.last):
                m.d.sync += [self.sending.eq(0), self.at.eq(0), csr.sent.eq(csr.sent + 1)]
