"""Proof of ``Ingress`` in ``cores/ltl/ingress.py``: slots, what is stored, whose turn it is.

Each slot is free, the next one, or taken, and never two of these; nothing is written to a slot that
is taken. Of each message each beat is written to its place in the slot, and if it was good, it is
offered to the sender with its connection, slot, channel and length; a bad one is told, and its slot
used again. A channel that holds less than its reserve may always take a slot, and what is
beyond the reserves is never more than the shared slots: no channel can shut out another. The next
channel is the next one in turn that can be served.

Not proved: a reset while running; more slots and longer messages; the FIFOs inside, which have
proofs of their own.
"""

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.ltl.config import LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .parts import LateFifo, Law, opened

__all__ = ["PROOFS"]

SMALL = LtlConfig(
    width=32, connections=2, slots=3, window=2, max_message=6, buffer_beats=8, reserve=1
)
SHARED = SMALL.slots - SMALL.vcs * SMALL.reserve


class IngressProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.Ingress(SMALL)

    def elaborate(self, platform):
        self.m = m = new_harness()
        dut = self.dut
        m.submodules.dut = opened(dut, platform, self.cores, StreamFifo=LateFifo)
        self.law = Law(m)
        for v in range(SMALL.vcs):
            beat = dut.i[v].payload
            free(m, dut.i[v].valid, beat, dut.commit[v].ready)
            stream_rules(m, dut.i[v], Assume, f"i{v}")
            m.d.comb += Assume(beat.last | ((beat.empty == 0) & ~beat.error))
            stream_rules(m, dut.commit[v], Assert, f"commit{v}")
        free(m, dut.release, dut.release_valid)
        self.copying, self.vc = Signal(name="copies"), Signal(1, name="whose")
        self._copy()
        self._slots()
        self._turn()
        return m

    def _copy(self):
        m, dut = self.m, self.dut
        beats = SMALL.message_beats
        i = Array(Value.cast(port.payload) for port in dut.i)[self.vc]
        beat = Signal(SMALL.message_layout, name="beat_now")
        moves, count = Signal(name="moves"), Signal(range(beats + 1), name="count")
        m.d.comb += [
            Value.cast(beat).eq(i),
            moves.eq(Array(port.valid for port in dut.i)[self.vc] & self.copying),
        ]
        for v in range(SMALL.vcs):
            m.d.comb += Assert(dut.i[v].ready == (self.copying & (self.vc == v)))
        fits, length = count < beats, Signal(12, name="length_now")
        m.d.comb += length.eq(4 * count + 4 - beat.empty)
        ends = moves & beat.last
        self.ends, self.good = ends, Signal(name="good")
        m.d.comb += self.good.eq(ends & fits & ~beat.error & (length <= SMALL.max_message))
        with m.If(moves):
            m.d.sync += count.eq(Mux(beat.last, 0, Mux(fits, count + 1, count)))
        wrote, at, data = Signal(), Signal(1), Signal(32)
        slot, damaged, oversize = Signal.like(dut.slot), Signal(), Signal()
        m.d.sync += [
            wrote.eq(moves & fits),
            at.eq(count),
            data.eq(beat.data),
            slot.eq(dut.slot),
            damaged.eq(ends & beat.error),
            oversize.eq(ends & ~beat.error & ~self.good),
        ]
        m.d.comb += [
            Assert(dut.en == wrote),
            Assert(~wrote | ((dut.addr == Cat(at, slot)) & (dut.data == data))),
            Assert(dut.damaged == damaged),
            Assert(dut.oversize == oversize),
            Assert((dut.index == count) & (count <= beats)),
        ]
        for v, fifo in enumerate(dut.waiting):
            offer = fifo.i.payload
            m.d.comb += Assert(fifo.i.valid == (self.good & (self.vc == v)))
            with m.If(fifo.i.valid):
                m.d.comb += [
                    Assert(fifo.i.ready),
                    Assert(offer.connection == beat.connection),
                    Assert(offer.stored.slot == dut.slot),
                    Assert(offer.stored.vc == v),
                    Assert(offer.stored.length == length),
                ]
            m.d.comb += [
                Assert(dut.commit[v].valid == fifo.o.valid),
                Assert(fifo.o.ready == dut.commit[v].ready),
                Assert(Value.cast(dut.commit[v].payload) == Value.cast(fifo.o.payload)),
            ]
        self.wrote_slot, self.wrote = slot, wrote
        m.d.comb += [
            Cover(self.good & (length == 6) & (self.vc == 1)),
            Cover(oversize & (dut.used == 2)),
            Cover(damaged),
        ]

    def _slots(self):
        """Each slot has one owner: the list, the engine, or a message."""
        m, dut, law = self.m, self.dut, self.law
        taken = [Signal(name=f"taken{s}") for s in range(SMALL.slots)]
        owner = [Signal(1, name=f"owner{s}") for s in range(SMALL.slots)]
        gone, words = dut.release, dut.free.words
        m.d.comb += Assume(~dut.release_valid | (gone.slot < SMALL.slots))
        for s in range(SMALL.slots):
            leaves = dut.release_valid & (gone.slot == s)
            comes = self.good & (dut.slot == s)
            m.d.comb += Assume(~leaves | (taken[s] & (owner[s] == gone.vc)))
            m.d.comb += Assert(~comes | ~taken[s])
            with m.If(comes):
                m.d.sync += [taken[s].eq(1), owner[s].eq(self.vc)]
            with m.Elif(leaves):
                m.d.sync += taken[s].eq(0)
            # The last beat is written in the cycle after; nobody else has the slot by then.
            again = Signal(name=f"was_taken{s}")
            m.d.sync += again.eq(taken[s])
            m.d.comb += Assert(~(dut.en & (dut.addr[1:] == s)) | ~again)
            listed = sum((dut.free.level > k) & (w == s) for k, w in enumerate(words))
            law((listed + (dut.have & (dut.slot == s)) + taken[s] + (dut.fill <= s)) == 1)
        law(~dut.have | (dut.slot < SMALL.slots))
        for k, word in enumerate(words):
            law((dut.free.level <= k) | (word < SMALL.slots))
        held = [sum(t & (o == v) for t, o in zip(taken, owner, strict=True)) for v in range(2)]
        beyond = sum(Mux(h > SMALL.reserve, h - SMALL.reserve, 0) for h in held)
        self.may = [(h < SMALL.reserve) | (beyond < SHARED) for h in held]
        m.d.comb += Assert(dut.used == sum(held))
        law(beyond <= SHARED, dut.beyond == beyond)
        law(dut.held[0] == held[0], dut.held[1] == held[1])
        law(~self.copying | (dut.have & Array(self.may)[self.vc]))
        m.d.comb += Cover((sum(held) == 3) & dut.release_valid)
        m.d.comb += Cover((held[0] == 2) & dut.i[0].valid & self.good & (self.vc == 1))

    def _turn(self):
        """After a message a cycle's rest; then the next channel in turn that can be served."""
        m, dut = self.m, self.dut
        wants = [
            dut.i[v].valid & (dut.waiting[v].level < 2) & self.may[v] for v in range(SMALL.vcs)
        ]
        with m.If(self.ends):
            m.d.sync += self.copying.eq(0)
        with m.Elif(~self.copying & dut.have & Cat(wants).any()):
            m.d.sync += self.copying.eq(1)
            m.d.sync += self.vc.eq(Mux(Array(wants)[~self.vc], ~self.vc, self.vc))
        law = self.law
        law(dut.copying == self.copying, dut.vc == self.vc)
        for v in range(SMALL.vcs):
            law(~(self.copying & (self.vc == v)) | (dut.waiting[v].level < 2))
        # The next slot is fetched as soon as the list shows one.
        shown = Signal()
        m.d.sync += shown.eq(dut.free.o.valid)
        m.d.comb += Assert(~shown | dut.have)


PROOFS = (
    Proof(
        name="ltl_ingress",
        core="cores.ltl.ingress.Ingress(2 channels, 3 slots, messages of 6 bytes)",
        says="slots have one owner, reserves are kept, messages are stored and offered unchanged",
        module="trebuchet.cores.ltl.ingress",
        build=IngressProof,
        depth=3,
        cover_depth=20,
        mutants=(
            Mutant("lends_the_reserve", "(beyond < shared)", "(beyond <= shared)", 16),
            Mutant(
                "offers_damaged",
                "room & ~beat.error & (length <= config.max_message)",
                "room & (length <= config.max_message)",
                12,
            ),
            Mutant(
                "too_long",
                "(length <= config.max_message)",
                "(length <= config.max_message + 1)",
                12,
            ),
            Mutant(
                "uses_slot_twice", "free.o.ready.eq(~have | taken)", "free.o.ready.eq(~have)", 14
            ),
            Mutant(
                "gives_back_wrong",
                "self.release_valid & (self.release.vc == v)",
                "self.release_valid",
                14,
            ),
        ),
        assumes="the stream rules; a slot is released once, by the channel that has it",
    ),
)
