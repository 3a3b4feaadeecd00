"""Proof of the CPU's frame port in ``cores/net/frame_port.py``.

Contract, over public ports: the stream rules at ``tx``; what goes into the store is what the filter
shows, and what the CPU is shown is what comes out of it, word for word and in order, whatever it
does; the counters count exactly the good frames at the store and those dropped. What is sent has
the length that was asked for and the words that the CPU wrote last to these places, soon; ``send``
and ``tx_write`` do nothing while a frame is being sent. ``rx`` never waits.

With ``frame_filter``, which proves which frames those are, and ``packet_fifo``, which proves the
store, this says that the CPU is shown just the frames of the data sheet.

Not proved: behaviour under a reset while running; other sizes of the buffer.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.proof import Mutant, Proof
from ..ltl.deliver import AnyPackets
from ..stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]


class FramePortProof(Elaboratable):
    def __init__(self, cores, width):
        self.cores, self.width = cores, width

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = self.dut = dut = with_any_store(self.cores, self.width)
        csr = dut.csr
        free(m, dut.rx.valid, dut.rx.payload, dut.tx.ready, csr.port, csr.rx_next, dut.mac, dut.ip)
        free(m, csr.tx_data, csr.tx_write, csr.send, csr.irq_enable)
        stream_rules(m, dut.rx, Assume, "rx")
        # What is longer wraps.
        m.d.comb += [Assume(csr.send <= 4 * dut.words), Assert(dut.rx.ready)]
        self.sending = Signal()
        self.write = csr.tx_write & ~self.sending
        self._incoming(m)
        self._shown(m)
        if self.width == 32:
            self.begins = stream_rules(m, dut.tx, Assert, "tx")
            self._outgoing(m)
        else:
            m.d.comb += self.sending.eq(dut.sending)
        self._covers(m)
        return m

    def _incoming(self, m):
        """What the store gets, and what is counted of it."""
        dut, csr = self.dut, self.dut.csr
        o, kept, store = dut.filter.o, dut.store.i, dut.store
        ends, good = Signal(), Signal()
        m.d.sync += [ends.eq(o.valid & o.payload.last), good.eq(~o.payload.error)]
        # packet_fifo: the strobe comes a cycle after a last beat.
        m.d.comb += Assume(~store.dropped_overflow | ends)
        counts = {name: Signal(16, name=f"{name}_frames") for name in ("received", "dropped")}
        lost = store.dropped_overflow
        m.d.sync += [
            counts["received"].eq(counts["received"] + (ends & good & ~lost)),
            counts["dropped"].eq(counts["dropped"] + (ends & good & lost)),
        ]
        m.d.comb += [
            Assert(kept.valid == o.valid),
            Assert(Value.cast(kept.payload) == Value.cast(o.payload)),
            Assert(store.depth * dut.width // 8 == dut.store_bytes),
            Assert(csr.received == counts["received"]),
            Assert(csr.dropped == counts["dropped"]),
            Assert(dut.filter.mac == dut.mac),
            Assert(dut.filter.ip == dut.ip),
            Assert(dut.filter.port == csr.port),
        ]
        self.counts = counts

    def _shown(self, m):
        """The words of the beat that the store shows, one after the other; then the next beat."""
        dut, csr, o = self.dut, self.dut.csr, self.dut.store.o
        stream_rules(m, o, Assume, "store")
        n = dut.width // 8
        place = Signal(range(max(2, dut.lanes)))  # words of the beat that the CPU has had
        left = n - o.payload.empty - 4 * place  # bytes of it, with the word that is shown
        final = o.payload.last & (left <= 4)
        status = Cat(o.valid, self.sending, final, Mux(final, (4 - left)[:2], 0))
        moves = o.valid & csr.rx_next
        over = final | (place == dut.lanes - 1)
        with m.If(moves):
            m.d.sync += place.eq(Mux(over, 0, place + 1))
        m.d.comb += [
            Assert(dut.irq == (o.valid & csr.irq_enable)),
            Assert(~o.valid | (csr.status == status)),
            Assert(o.valid | (csr.status[:2] == Cat(0, self.sending))),
            Assert(~o.valid | (csr.rx_data == o.payload.data.word_select(place, 32))),
            Assert((o.valid & o.ready) == (moves & over)),
            Assert(dut.lane == place),
            Assert((place == 0) | o.valid),
            Assert(~o.valid | (left > 0)),
        ]
        self.final, self.moves = final, moves

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
            peek.addr.eq(place),
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
        dut = self.dut
        end = self.moves & self.final
        m.d.comb += [
            Cover(end & (dut.csr.status[3:] == 3) & (dut.lane == dut.lanes - 1)),
            Cover(end & (dut.csr.status[3:] == 1) & (dut.lane == 0)),
            Cover((self.counts["received"] == 1) & (self.counts["dropped"] == 1)),
        ]
        if self.width == 32:
            m.d.comb += Cover(self.gets & dut.tx.payload.last & (self.size == 15))


def with_any_store(cores, width):
    """The port with a store that shows any packets."""
    was, cores.PacketFifo = cores.PacketFifo, AnyPackets
    try:
        return cores.FramePort(width, 64, 16)
    finally:
        cores.PacketFifo = was


_COMMON = {
    "module": "trebuchet.cores.net.frame_port",
    "depth": 3,
    "cover_depth": 28,
    "assumes": "the stream rules on rx; what packet_fifo proves; no send of more than the buffer",
    "not_proved": "other sizes; behaviour under a reset while running",
}

PROOFS = (
    Proof(
        name="frame_port",
        core="cores.net.frame_port.FramePort(32, words=16)",
        says="the CPU is shown what the store shows, frames count once, and it sends what it wrote",
        build=lambda cores: FramePortProof(cores, 32),
        mutants=(
            Mutant(
                "counts_damaged",
                "ended & ours & ~store.dropped_overflow",
                "ended & ~store.dropped_overflow",
                20,
            ),
            Mutant("counts_the_lost", "ours & ~store.dropped_overflow", "ours", 20),
            Mutant(
                "drops_the_unwanted", "ours & store.dropped_overflow", "store.dropped_overflow", 20
            ),
            Mutant(
                "ends_early",
                "o.payload.last & (self.lane == final[2:])",
                "self.lane == final[2:]",
                12,
            ),
            Mutant(
                "no_spare",
                "Mux(ends, o.payload.empty[:2], Const(0, 2))",
                "Mux(ends, 0, Const(0, 2))",
                12,
            ),
            Mutant("other_port", "select.port.eq(csr.port)", "select.port.eq(68)", 12),
            Mutant("writes_while_sending", "csr.tx_write & ~self.sending", "csr.tx_write", 12),
            Mutant(
                "sends_twice",
                "with m.If((csr.send != 0) & ~self.sending):",
                "with m.If(csr.send != 0):",
            ),
            Mutant("sends_short", "csr.send >= 14", "csr.send >= 13"),
            Mutant("all_of_the_last", "Mux(last, self.final_empty, 0)", "0", 20),
        ),
        **_COMMON,
    ),
    Proof(
        name="frame_port_64",
        core="cores.net.frame_port.FramePort(64, words=16)",
        says="a beat of two words is shown word by word, and left when the CPU has had its bytes",
        build=lambda cores: FramePortProof(cores, 64),
        mutants=(
            Mutant("stays", "Mux(o.ready, 0, self.lane + 1)", "self.lane + 1", 12),
            Mutant("both_words", "(ends | (self.lane == self.lanes - 1))", "(self.lane == 1)", 12),
            Mutant("one_word", "(ends | (self.lane == self.lanes - 1))", "1", 12),
        ),
        **_COMMON,
    ),
)
