"""A port by which the CPU receives and sends whole Ethernet frames, one at a time each way.

It is meant for protocols that must run before the board has an address, as DHCP: the CPU sees the
UDP datagrams for one port whatever IP and MAC address they are sent to.

Sources: RFC 791, 3.1 (IPv4 header); RFC 768 (UDP); RFC 2131, 4.1 (what DHCP needs of it).
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..csr import CsrSignature, Field, Register, RegisterBlock
from ..stream import PacketSignature, check_data_width

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
            2,
            "state of the port",
            fields=(
                Field("pending", 0, 1, "a frame waits for the CPU; 0 while one is being sent"),
                Field("sending", 1, 1, "a frame is being sent"),
            ),
        ),
        Register("port", "rw", 16, "UDP destination port of the frames to receive", reset=68),
        Register("length", "ro", 11, "bytes of the pending frame"),
        Register("rx_index", "rw", 8, "which word of the pending frame rx_data shows"),
        Register("rx_data", "ro", 32, "four bytes of the frame, the first in bits 7..0"),
        Register("done", "stb", 1, "write 1: the pending frame has been read"),
        Register("tx_data", "rw", 32, "four bytes of the frame to send, the first in bits 7..0"),
        Register("tx_write", "stb", 1, "write 1: append tx_data to the frame"),
        Register("send", "stb", 10, "send the frame; its bytes, at least 14"),
        Register("irq_enable", "rw", 1, "1: interrupt while a frame is pending"),
        _events("received", "frames shown to the CPU"),
        _events("dropped", "frames for the CPU dropped: no room, or too long"),
        _events("sent", "frames sent"),
    ),
    "frames that the CPU receives and sends",
)

#: Words of 32 bits in each half of the buffer: what `rx_index` can name.
_WORDS = 256


class FramePort(wiring.Component):
    """Listens to a stream of frames for UDP to one port; sends frames that the CPU wrote.

    ==========  ====  =============  =============================================================
    member      dir   width          meaning
    ==========  ====  =============  =============================================================
    ``rx``      In    packet stream  copy of a stream of frames; ``ready`` is always 1
    ``tx``      Out   packet stream  frames of the CPU; ``error`` is 0
    ``csr``     In    CsrSignature   :data:`NIC_BLOCK`
    ``irq``     Out   1              ``status.pending`` and ``irq_enable``
    ==========  ====  =============  =============================================================

    Taken are frames with Ethertype 0x0800, an IPv4 header without options (0x45), no fragment
    (offset and MF 0), protocol 17, and destination port ``port``; the frame goes on past the beat
    with that port (40 bytes at 32 bits). With ``arp`` also those with Ethertype 0x0806 and
    operation 2, a reply, as long. Addresses, lengths and checksums are the CPU's to judge.
    All other frames, and those with ``error``, are ignored. A frame is dropped and counted if it
    has more than 1,024 bytes, if the one before it has not been read when it begins, or if the CPU
    writes a word in the very cycle of one of its beats: CPU and stream share the memory's write
    port, and neither waits.

    The firmware's loops, and every access they need::

        if (!(status & PENDING)) return;             // or the interrupt
        for (i = 0; i < (length + 3) / 4; i++) {
            rx_index = i;                            // rx_data follows two cycles later
            word[i] = rx_data;
        }
        done = 1;                                    // PENDING falls

        if (status & SENDING) return;                // later
        for (i = 0; i < (len + 3) / 4; i++) {        // starts at word 0 after reset and `send`
            tx_data = frame[i];
            tx_write = 1;                            // appends, and moves on by itself
        }
        send = len;

    ``send`` of 1 to 13 bytes sends nothing and starts at word 0 again. ``tx_write``, ``send`` and
    ``done`` while SENDING do nothing; ``rx_data`` is the sender's then, hence PENDING reads 0.
    Short frames are not padded: a MAC does that. Words beyond the buffer wrap.

    Throughput: a beat a cycle in; a beat in three cycles out. Latency: two cycles from the last
    beat to PENDING, four from ``send`` to the first beat. Memory: 2 KiB, one block RAM of 512 by
    36 bits at a data path of 32 bits. Reset: nothing pending, nothing sent, counters 0; what is in
    the memory stays.

    Parameters
    ----------
    width : int
        Data path in bits.
    words : int
        Words of 32 bits of the longest frame, a power of two from 16 to 256: a proof is quicker
        with less memory.
    arp : bool
        The CPU sees ARP replies (RFC 826), too.
    """

    def __init__(self, width=32, words=_WORDS, arp=False):
        self.width = check_data_width(width)
        self.arp = bool(arp)
        if not isinstance(words, int) or not 16 <= words <= _WORDS or words & (words - 1):
            raise ValueError(
                f"Words of a frame must be a power of two from 16 to {_WORDS}, not {words!r}"
            )
        self.words = words
        super().__init__(
            {
                "rx": In(PacketSignature(width)),
                "tx": Out(PacketSignature(width)),
                "csr": In(CsrSignature(NIC_BLOCK)),
                "irq": Out(1),
            }
        )
        self.lanes = width // 32  # CPU's words in a word of the memory
        self.depth = words // self.lanes  # of these in a frame
        self.ram = Memory(shape=width, depth=2 * self.depth, init=[], attrs=NO_COLLISIONS)
        self.write_port = self.ram.write_port(granularity=32)
        self.read_port = self.ram.read_port()
        # What the proofs' invariants name, beside the memory.
        self.beat, self.heard = Signal(self.rx.payload.shape()), Signal()
        self.index = Signal(range(self.depth + 1))  # beats of this frame so far; the last: too many
        self.miss, self.match, self.lost = Signal(), Signal(), Signal()
        self.arp_miss = Signal()
        self.pending, self.sending, self.fetched = Signal(), Signal(), Signal()
        self.cpu_write = Signal()
        self.at = Signal(range(words))  # word that the CPU writes next, or that is sent next
        self.final, self.final_empty = Signal(range(self.depth)), Signal(range(width // 8))
        self.word = Signal(width)

    # The lower half of the memory receives, the upper half sends. Every frame is written while
    # nothing is pending, and only its last beat decides whether it stays.
    def elaborate(self, platform):
        m = Module()
        m.submodules.ram = self.ram
        csr, port = self.csr, self.write_port
        m.d.comb += [
            self.rx.ready.eq(1),
            self.cpu_write.eq(csr.tx_write & ~self.sending),
            port.data.eq(self.beat.data),
            port.addr.eq(self.index[: (self.depth - 1).bit_length()]),
            port.en.eq((self.heard & ~self.pending & ~self.index[-1]).replicate(self.lanes)),
        ]
        with m.If(self.cpu_write):
            lane, place = self._split(self.at)
            m.d.comb += [
                port.data.eq(csr.tx_data.replicate(self.lanes)),
                port.addr.eq(Cat(place, 1)),
                port.en.eq(1 << lane),
            ]
        self._receive(m)
        self._send(m)
        self._read(m)
        m.d.comb += [
            csr.status.eq(Cat(self.pending & ~self.sending, self.sending)),
            self.irq.eq(self.pending & ~self.sending & csr.irq_enable),
        ]
        return m

    def _split(self, number):
        """Lane, and word of the memory, of a word of the CPU."""
        low = (self.lanes - 1).bit_length()
        return number[:low], number[low:]

    def _wrong(self, m, wrong, wanted, mask):
        """Whether the beat has a byte that a frame to be received does not have.

        Of byte 20 the bits ``mask`` count.
        """
        n = self.width // 8
        with m.Switch(self.index):
            for beat in range(37 // n + 1):
                byte = {beat * n + k: self.beat.data.word_select(k, 8) for k in range(n)}
                terms = [byte[k] != value for k, value in wanted.items() if k in byte]
                if 20 in byte:
                    terms.append(byte[20][:mask] != 0)
                with m.Case(beat):
                    m.d.comb += wrong.eq(Cat(*terms).any() if terms else 0)

    def _receive(self, m):
        csr, beat, n = self.csr, self.beat, self.width // 8
        wrong, hit, keep = Signal(), Signal(), Signal()
        port = csr.port
        udp = {12: 0x08, 13: 0x00, 14: 0x45, 21: 0, 23: 17, 36: port[8:], 37: port[:8]}
        self._wrong(m, wrong, udp, 6)  # the bits beside DF: more fragments, or an offset
        # The tapped stream may have a long path behind its `ready`.
        m.d.sync += [self.heard.eq(self.rx.valid), beat.eq(self.rx.payload)]
        m.d.comb += [
            hit.eq(self.pending | self.cpu_write),
            keep.eq(self.match & ~self.lost & ~hit & ~self.index[-1]),
        ]
        with m.If(csr.done & ~self.sending):
            m.d.sync += self.pending.eq(0)
        with m.If(self.heard):
            m.d.sync += [
                self.index.eq(self.index + ~self.index[-1]),
                self.miss.eq(self.miss | wrong),
                self.lost.eq(self.lost | hit),
            ]
            with m.If(self.index == 37 // n):
                m.d.sync += self.match.eq(~self.miss & ~wrong)
            if self.arp:
                self._match_arp(m)
            with m.If(beat.last):
                m.d.sync += [self.index.eq(0), self.miss.eq(0), self.lost.eq(0), self.match.eq(0)]
                with m.If(self.match & ~beat.error):
                    m.d.sync += [
                        csr.received.eq(csr.received + keep),
                        csr.dropped.eq(csr.dropped + ~keep),
                    ]
                    with m.If(keep):
                        m.d.sync += [
                            self.pending.eq(1),
                            csr.length.eq((self.index + 1) * n - beat.empty),
                        ]

    def _match_arp(self, m):
        """The same for ARP replies."""
        wrong, last = Signal(), self.index == 37 // (self.width // 8)
        self._wrong(m, wrong, {12: 0x08, 13: 0x06, 21: 2}, 8)
        m.d.sync += self.arp_miss.eq((self.arp_miss | wrong) & ~self.beat.last)
        with m.If(last & ~self.arp_miss & ~wrong):
            m.d.sync += self.match.eq(1)

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
        m.d.comb += tx.payload.data.eq(self.word)
        with m.If(tx.valid & tx.ready):
            m.d.sync += [tx.valid.eq(0), self.at.eq(self.at + self.lanes)]
            with m.If(tx.payload.last):
                m.d.sync += [self.sending.eq(0), self.at.eq(0), csr.sent.eq(csr.sent + 1)]

    def _read(self, m):
        """One register behind the memory for both readers."""
        _, sent = self._split(self.at)
        lane, shown = self._split(self.csr.rx_index[: (self.words - 1).bit_length()])
        m.d.comb += self.read_port.addr.eq(Mux(self.sending, Cat(sent, 1), shown))
        with m.If(self.fetched | ~self.sending):
            m.d.sync += self.word.eq(self.read_port.data)
        m.d.comb += self.csr.rx_data.eq(self.word.word_select(lane, 32))
