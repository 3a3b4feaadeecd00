"""Proof of the store-and-forward packet FIFO in ``cores/buffers.py``.

Contract, over public ports: the stream rules at the output, given those at the input; what comes
out are the beats of the good packets, all of them, in order, soon; a packet is dropped only for one
of the two reasons, and always for them; the FIFO never waits for ever.

The harness then states, apart, the invariants that make this inductive, in terms of the core's
own registers.

Not proved: behaviour under a reset while running; other widths and depths than those named.
"""

from dataclasses import dataclass

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from .buffers import word_in_ram
from .kit.proof import Mutant, Proof
from .stream import free, new_harness, stream_rules, within

__all__ = ["PROOFS"]


class _Ghost:
    """What a packet FIFO must do, told from its ports: which beats have come in for good.

    A packet that has ended is pending for the one cycle until the drop strobes have spoken.
    ``current`` counts the beats of the packet coming in, and stops beyond ``depth``: such a packet
    is dropped whatever its length. Beats of good packets are numbered as in
    :class:`~trebuchet.formal.stream.Queue`.
    """

    def __init__(self, m, dut, puts, gets):
        beat, layout = dut.i.payload, dut.i.payload.shape()
        bits = (4 * dut.depth + 4).bit_length()
        names = ("sent", "base", "current", "received", "index", "level", "place", "pending_beats")
        for name in names:
            setattr(self, name, Signal(bits, name=name))
        self.word = Signal(layout, name="word")
        # The good beat before the chosen one; before the very first one, as if a packet had ended.
        self.prior = Signal(layout, name="prior", init={"last": 1})
        self.inside, self.prior_inside = Signal(name="inside"), Signal(name="prior_inside")
        self.pending, self.pending_error = Signal(name="pending"), Signal(name="pending_error")
        self.dropped = dut.dropped_error | dut.dropped_overflow
        kept = self.pending & ~self.dropped
        stored = self.level + Mux(dut.skipping, 0, self.current)
        m.d.comb += [
            self.index.eq(AnyConst(bits)),
            self.base.eq(self.sent + Mux(kept, self.pending_beats, 0)),
            self.level.eq(self.base - self.received),
            self.place.eq(self.index - self.received),
            self.inside.eq(self.place < stored),
            self.prior_inside.eq((self.place - 1)[:bits] < stored),
        ]
        m.d.sync += [self.sent.eq(self.base), self.pending.eq(puts & beat.last)]
        m.d.sync += self.received.eq(self.received + gets)
        longer = Mux(self.current > dut.depth, self.current, self.current + 1)
        with m.If(puts):
            m.d.sync += self.current.eq(Mux(beat.last, 0, longer))
            m.d.sync += [self.pending_beats.eq(longer), self.pending_error.eq(beat.error)]
            with m.If(self.next_is(0)):
                m.d.sync += self.word.eq(beat)
            with m.If(self.next_is(-1)):
                m.d.sync += self.prior.eq(beat)

    def next_is(self, offset):
        """The next beat to come in has the number of the chosen one plus ``offset``."""
        return (self.base + self.current - self.index - offset)[: len(self.index)] == 0


@dataclass
class _Tracked:
    word: Signal
    place: Value
    inside: Value


class PacketFifoProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = dut
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        begins_in = stream_rules(m, dut.i, Assume, "i")
        puts, gets = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        ghost = _Ghost(m, dut, puts, gets)
        begins_out = stream_rules(m, dut.o, Assert, "o", chosen=ghost.place == 0)
        stored = dut.stored.width
        sent, shown = Value.cast(ghost.word)[:stored], Value.cast(dut.o.payload)[:stored]

        # Only beats of good packets come out, all of them, in order, and soon.
        m.d.comb += Assert(ghost.level <= dut.depth + 2)
        with m.If(dut.o.valid):
            m.d.comb += [Assert(ghost.level != 0), Assert(~dut.o.payload.error)]
            with m.If(ghost.place == 0):
                m.d.comb += Assert(shown == sent)
        waited = within(m, (ghost.level == 0) | dut.o.valid, 2, "o")
        crowded = self._drops(m, ghost, puts)
        # It waits only for a reader that has something to read, so it never hangs.
        m.d.comb += Assert(dut.i.ready | (0 if dut.drop_when_full else ghost.level != 0))
        self._covers(m, ghost, gets)
        self._storage(m, ghost, waited, crowded)
        self._borders(m, ghost, begins_in, begins_out)
        return m

    def _drops(self, m, ghost, puts):
        """A drop has its reason, and a packet with a reason is dropped."""
        dut, depth = self.dut, self.dut.depth
        crowded = Signal()  # a beat of the packet may have found the storage full
        full = ghost.level + ghost.current >= depth
        with m.If(puts):
            m.d.sync += crowded.eq(full | (crowded & (ghost.current != 0)))
        with m.If(ghost.dropped):
            m.d.comb += Assert(ghost.pending)
            m.d.comb += Assert(~(dut.dropped_error & dut.dropped_overflow))
        with m.If(dut.dropped_error):
            m.d.comb += Assert(ghost.pending_error)
        with m.If(dut.dropped_overflow):
            m.d.comb += Assert(crowded if dut.drop_when_full else ghost.pending_beats > depth)
        with m.If(ghost.pending & ghost.pending_error):
            m.d.comb += Assert(ghost.dropped)
        with m.If(ghost.pending & (ghost.pending_beats > depth)):
            m.d.comb += Assert(dut.dropped_overflow)
        return crowded

    def _covers(self, m, ghost, gets):
        dut = self.dut
        seen = Signal(2)
        m.d.sync += seen.eq(seen | Cat(dut.dropped_error, dut.dropped_overflow))
        m.d.comb += Cover(seen.all() & gets & (ghost.place == 0) & (ghost.word.data != 0))
        m.d.comb += Cover(gets & dut.o.payload.last & ~dut.o.payload.first)

    def _storage(self, m, ghost, waited, crowded):
        """Invariants: what the pointers mean, where the chosen beat and the one before lie."""
        dut, depth = self.dut, self.dut.depth
        bits = len(dut.read)
        held, coming = Signal(bits), Signal(bits)
        m.d.comb += [held.eq(dut.commit - dut.read), coming.eq(dut.write - dut.commit)]

        def addr(place):
            return (dut.read + place)[: bits - 1]

        prior = _Tracked(ghost.prior, (ghost.place - 1)[: len(ghost.place)], ghost.prior_inside)
        before = word_in_ram(m, dut, ghost, addr)
        word_in_ram(m, dut, prior, addr)
        with m.If(dut.o.valid & (prior.place == 0)):
            stored = dut.stored.width
            m.d.comb += Assert(
                Value.cast(dut.o.payload)[:stored] == Value.cast(prior.word)[:stored]
            )
        arrives = dut.o.valid | (dut.reader.fetched & (waited == 1))
        m.d.comb += [
            Assert(held + coming <= depth),
            Assert(ghost.level == held + before),
            Assert(ghost.current <= depth + 1),
            Assert((waited == 0) | arrives),
        ]
        with m.If(dut.skipping):
            m.d.comb += [Assert(ghost.current != 0), Assert(crowded)]
            if not dut.drop_when_full:
                m.d.comb += Assert(ghost.current == depth + 1)
        with m.Else():
            m.d.comb += Assert(ghost.current == coming)

    def _borders(self, m, ghost, begins_in, begins_out):
        """Invariants: where packets begin and end, which rule 4 at the output rests on."""
        m.d.comb += Assert(begins_in == (ghost.current == 0))
        with m.If(ghost.inside):
            m.d.comb += Assert(ghost.word.first == ghost.prior.last)
            m.d.comb += Assert(ghost.word.last | (ghost.word.empty == 0))
        with m.If(ghost.place == 0):
            m.d.comb += Assert(begins_out == ghost.prior.last)
        with m.If(ghost.index == ghost.base):
            m.d.comb += Assert(ghost.prior.last)
        with m.If(ghost.next_is(0) & ~self.dut.skipping & (ghost.current != 0)):
            m.d.comb += Assert(~ghost.prior.last)


MUTANTS = (
    Mutant("passes_damaged", "beat.last & beat.error", "beat.last & beat.error & beat.first"),
    Mutant(
        "keeps_leftover",
        "[write.eq(commit), self.dropped_overflow.eq(1)]",
        "self.dropped_overflow.eq(1)",
        16,
    ),
    Mutant(
        "shows_early", "available=read != commit", "available=read != write", context="write + 1"
    ),
)
HANGS = Mutant("hangs", "~full | hopeless | skipping", "~full | skipping")

PROOFS = tuple(
    Proof(
        name=f"packet_fifo_{name}",
        core=f"cores.buffers.PacketFifo(32, 4, drop_when_full={drops})",
        says="good packets come out whole and in order; a drop has its reason; no hang",
        module="trebuchet.cores.buffers",
        build=lambda cores, d=drops: PacketFifoProof(cores.PacketFifo(32, 4, d)),
        depth=4,
        cover_depth=24,
        mutants=MUTANTS if drops else (*MUTANTS, HANGS),
    )
    for name, drops in (("drops", True), ("waits", False))
)
