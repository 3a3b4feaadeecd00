"""Proof of the CPU's frame port in ``cores/net/frame_port.py``.

Contract, over public ports: the stream rules at ``tx``; a frame is shown to the CPU if and only if
it is one of those that the data sheet names, no beat of it met a pending frame or a write of the
CPU, it is undamaged and fits; its length and every word of it are what came; the counters count
exactly these and those dropped. What is sent has the length that was asked for and the words that
the CPU wrote last to these places, soon; ``send``, ``tx_write`` and ``done`` do nothing while a
frame is being sent. ``rx`` never waits.

The frames to take are told here by one register for each byte that must be right, unlike in the
core, which keeps only whether a beat was wrong.

Not proved: behaviour under a reset while running; other sizes of the buffer and other data paths.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, C, Cat, Cover, Elaboratable, Mux, Signal

from .proof import Mutant, Proof
from .standins import elaborated
from .stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

#: Bytes that are the same in every frame to take; of byte 20 only the bits beside DF count.
FIXED = {12: 0x08, 13: 0x00, 14: 0x45, 20: 0, 21: 0, 23: 17}
#: And in every ARP reply.
ARP = {12: 0x08, 13: 0x06, 20: 0, 21: 2}


class FramePortProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        csr = dut.csr
        free(m, dut.rx.valid, dut.rx.payload, dut.tx.ready, csr.port, csr.rx_index, csr.done)
        free(m, csr.tx_data, csr.tx_write, csr.send, csr.irq_enable)
        stream_rules(m, dut.rx, Assume, "rx")
        self.begins = stream_rules(m, dut.tx, Assert, "tx")
        # What is longer wraps; at full size no length does.
        m.d.comb += [Assume(csr.send <= 4 * dut.words), Assert(dut.rx.ready)]
        self.sending = Signal()
        self.write = csr.tx_write & ~self.sending
        self._incoming(m)
        self._shown(m)
        self._outgoing(m)
        self._covers(m)
        return m

    def _incoming(self, m):
        """Which frames are to be taken; a beat counts in the cycle after it came."""
        dut, csr = self.dut, self.dut.csr
        came, beat = Signal(), Signal(dut.rx.payload.shape())
        m.d.sync += [came.eq(dut.rx.valid), beat.eq(dut.rx.payload)]
        number = Signal(range(dut.words + 1))  # of this beat; from `words` on it stays
        met, waits = Signal(), Signal()
        right = {at: Signal(name=f"right_{at}") for at in (*FIXED, 36, 37)}
        value = {**FIXED, 36: csr.port[8:], 37: csr.port[:8]}
        reply = {at: Signal(name=f"reply_{at}") for at in ARP}
        is_reply = Cat(*reply.values()).all() if dut.arp else C(0)
        wanted = Cat(*right.values()).all() | is_reply
        taken, fits, meets = Signal(), Signal(), Signal()
        size = Signal(range(4 * dut.words + 5))
        m.d.comb += [
            meets.eq(met | waits | self.write),
            fits.eq(number < dut.words),
            taken.eq(wanted & ~beat.error & (number > 9)),
            size.eq(4 * number + 4 - beat.empty),
        ]
        ends = came & beat.last
        received, dropped, length = Signal(16), Signal(16), Signal(11)
        m.d.sync += [
            received.eq(received + (ends & taken & fits & ~meets)),
            dropped.eq(dropped + (ends & taken & (~fits | meets))),
        ]
        with m.If(csr.done & ~self.sending):
            m.d.sync += waits.eq(0)
        with m.If(came):
            m.d.sync += [number.eq(number + fits), met.eq(meets)]
            for at, bit in right.items():
                with m.If(number == at // 4):
                    octet = beat.data.word_select(at % 4, 8)
                    octet = octet & 0x3F if at == 20 else octet
                    m.d.sync += bit.eq(octet == value[at])
            for at, bit in reply.items():
                with m.If(number == at // 4):
                    m.d.sync += bit.eq(beat.data.word_select(at % 4, 8) == ARP[at])
            with m.If(beat.last):
                m.d.sync += [number.eq(0), met.eq(0)]
                with m.If(taken & fits & ~meets):
                    m.d.sync += [waits.eq(1), length.eq(size)]
        m.d.comb += [
            Assert(csr.received == received),
            Assert(csr.dropped == dropped),
            Assert(csr.length == length),
            Assert(csr.status == Cat(waits & ~self.sending, self.sending)),
            Assert(dut.irq == (waits & ~self.sending & csr.irq_enable)),
        ]
        self.came, self.beat, self.number, self.waits, self.length = (
            came,
            beat,
            number,
            waits,
            length,
        )
        self.met, self.meets = met, meets

        # Invariants: what the core remembers of the frame so far.
        passed = [(number > at // 4) & ~bit for at, bit in right.items() if at < 36]
        m.d.comb += [
            Assert(number <= dut.words),
            Assert(dut.heard == came),
            Assert(~came | (dut.beat == beat)),
            Assert(dut.index == number),
            Assert(dut.lost == met),
            Assert(~waits | (number == 0) | met),
            Assert(dut.pending == waits),
            Assert(dut.miss == Mux(number > 9, dut.miss, Cat(*passed).any())),
            Assert(dut.match == ((number > 9) & wanted)),
            Assert(~waits | ((length > 40) & (length <= 4 * dut.words))),
        ]
        if dut.arp:
            off = [(number > at // 4) & ~bit for at, bit in reply.items()]
            m.d.comb += Assert(dut.arp_miss == Mux(number > 9, dut.arp_miss, Cat(*off).any()))
            self.answered = Signal()
            with m.If(ends & taken & is_reply & fits & ~meets):
                m.d.sync += self.answered.eq(1)

    def _shown(self, m):
        """Any one word of the frame, from the stream to ``rx_data``."""
        dut, csr = self.dut, self.dut.csr
        place, word = Signal(range(dut.words)), Signal(32)
        m.d.comb += place.eq(AnyConst(len(place)))
        with m.If(self.came & ~self.waits & (self.number == place)):
            m.d.sync += word.eq(self.beat.data)
        inside = self.waits & (4 * place < self.length)
        steady = Signal(range(3))
        looks = inside & ~self.sending & (csr.rx_index == place)
        m.d.sync += steady.eq(Mux(looks, Mux(steady == 2, 2, steady + 1), 0))
        with m.If(looks & (steady == 2)):
            m.d.comb += Assert(csr.rx_data == word)
        self.place, self.looks, self.steady = place, looks, steady

        peek = dut.ram.read_port(domain="comb")
        m.d.comb += peek.addr.eq(place)
        with m.If(inside | ((self.number > place) & ~self.met & ~self.waits)):
            m.d.comb += Assert(peek.data == word)
        # While the CPU looks, the word goes on to the memory's latch, and to the register.
        with m.If(inside & (steady != 0)):
            m.d.comb += Assert(dut.read_port.data == word)
        with m.If(inside & (steady == 2)):
            m.d.comb += Assert(dut.word == word)

    def _outgoing(self, m):
        """The length, and any one word of the frame that is sent."""
        dut, csr, tx = self.dut, self.dut.csr, self.dut.tx
        sending, gets = self.sending, tx.valid & tx.ready
        place, word = Signal(range(dut.words)), Signal(32)
        written, out = Signal(range(dut.words)), Signal(range(dut.words))
        size, sent = Signal(10), Signal(16)
        m.d.comb += place.eq(AnyConst(len(place)))
        with m.If(self.write):
            m.d.sync += written.eq(written + 1)
            with m.If(written == place):
                m.d.sync += word.eq(csr.tx_data)
        with m.If((csr.send != 0) & ~sending):
            m.d.sync += [written.eq(0), sending.eq(csr.send >= 14), size.eq(csr.send), out.eq(0)]
        last = 4 * out + 4 >= size
        with m.If(tx.valid):
            m.d.comb += [
                Assert(sending),
                Assert(tx.payload.first == (out == 0)),
                Assert(tx.payload.last == last),
                Assert(tx.payload.empty == Mux(last, 4 * out + 4 - size, 0)),
                Assert(~tx.payload.error),
            ]
            with m.If(out == place):
                m.d.comb += Assert(tx.payload.data == word)
        with m.If(gets):
            m.d.sync += out.eq(out + 1)
            with m.If(tx.payload.last):
                m.d.sync += [sending.eq(0), sent.eq(sent + 1)]
        m.d.comb += Assert(csr.sent == sent)
        waited = within(m, ~sending | tx.valid, 3, "tx")
        self.gets, self.size, self.sent = gets, size, sent

        peek = dut.ram.read_port(domain="comb")
        m.d.comb += [
            peek.addr.eq(Cat(place, 1)),
            Assert(peek.data == word),
            Assert(dut.sending == sending),
            Assert(self.begins == (~sending | (out == 0))),
            Assert(dut.at == Mux(sending, out, written)),
            Assert(~dut.fetched | (sending & ~tx.valid & (waited != 0))),
            Assert(~sending | tx.valid | (waited < 2) | dut.fetched),
            Assert(~sending | ((size >= 14) & (size <= 4 * dut.words) & (4 * out < size))),
            Assert(~sending | (dut.final == (size - 1)[2:])),
            Assert(~sending | (dut.final_empty == 3 - (size - 1)[:2])),
            Assert(~sending | (written == 0)),
        ]
        with m.If(dut.fetched & (out == place)):
            m.d.comb += Assert(dut.read_port.data == word)

    def _covers(self, m):
        dut, csr = self.dut, self.dut.csr
        m.d.comb += [
            Cover(self.looks & (self.steady == 2) & (self.length == 4 * dut.words)),
            Cover((self.sent == 1) & self.waits & (self.length == 41)),
            Cover(self.gets & dut.tx.payload.last & (self.size == 15)),
            Cover((csr.dropped == 1) & (csr.received == 0) & ~self.met),
            Cover(self.came & self.beat.last & (self.number == dut.words)),
        ]
        if dut.arp:
            m.d.comb += Cover(self.answered & (self.length == 42))


PROOFS = (
    Proof(
        name="frame_port",
        core="cores.net.frame_port.FramePort(32, 16 words)",
        says="the CPU is shown just the frames it asked for, as they came, and sends what it wrote",
        module="trebuchet.cores.net.frame_port",
        build=lambda cores: FramePortProof(cores.FramePort(32, 16)),
        depth=3,
        cover_depth=28,
        mutants=(
            Mutant("takes_fragments", "wrong, udp, 6)", "wrong, udp, 5)", 16),
            Mutant("half_a_port", "36: port[8:], 37: port[:8]", "37: port[:8]", 16),
            Mutant(
                "takes_damaged",
                "with m.If(self.match & ~beat.error):",
                "with m.If(self.match):",
                16,
            ),
            Mutant(
                "takes_short",
                "with m.If(self.index == 37 // n):",
                "with m.If(self.index == 23 // n):",
                16,
            ),
            Mutant(
                "keeps_the_too_long",
                "~self.lost & ~hit & ~self.index[-1])",
                "~self.lost & ~hit)",
                22,
            ),
            Mutant(
                "overwrites",
                "(self.heard & ~self.pending & ~self.index[-1])",
                "(self.heard & ~self.index[-1])",
                18,
            ),
            Mutant(
                "keeps_collided",
                "hit.eq(self.pending | self.cpu_write)",
                "hit.eq(self.pending)",
                16,
            ),
            Mutant(
                "shows_while_sending",
                "csr.status.eq(Cat(self.pending & ~self.sending,",
                "csr.status.eq(Cat(self.pending,",
                18,
            ),
            Mutant("writes_while_sending", "csr.tx_write & ~self.sending", "csr.tx_write", 12),
            Mutant(
                "sends_twice",
                "with m.If((csr.send != 0) & ~self.sending):",
                "with m.If(csr.send != 0):",
            ),
            Mutant("sends_short", "csr.send >= 14", "csr.send >= 13"),
            Mutant(
                "reads_anew",
                "with m.If(self.fetched | ~self.sending):",
                "with m.If(~self.sending):",
            ),
            Mutant("all_of_the_last", "Mux(last, self.final_empty, 0)", "0", 20),
        ),
        assumes="the stream rules on rx; no send of more than the buffer",
        not_proved="other sizes and data paths; behaviour under a reset while running",
    ),
    Proof(
        name="frame_port_arp",
        core="cores.net.frame_port.FramePort(32, 16 words, arp)",
        says="the same, and the CPU is shown ARP replies as well",
        module="trebuchet.cores.net.frame_port",
        build=lambda cores: FramePortProof(cores.FramePort(32, 16, arp=True)),
        depth=3,
        cover_depth=28,
        mutants=(
            Mutant("takes_requests", "13: 0x06, 21: 2}", "13: 0x06, 21: 1}", 16),
            Mutant("half_an_operation", "21: 2}, 8)", "21: 2}, 7)", 16),
            Mutant("any_frame", "~self.arp_miss & ~wrong", "~wrong", 16),
            Mutant(
                "forgets_nothing",
                "(self.arp_miss | wrong) & ~self.beat.last",
                "self.arp_miss | wrong",
                28,
            ),
        ),
        assumes="the stream rules on rx; no send of more than the buffer",
        not_proved="other sizes and data paths; behaviour under a reset while running",
    ),
)
