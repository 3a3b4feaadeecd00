"""Proofs of ``PacketTrim`` and ``PacketPrepend`` in ``cores/realign.py``.

Contract, over public ports, byte by byte (:class:`ByteQueue`): the bytes that leave are those that
the data sheet says, in order: of a packet all after the first ``skip``, or those of ``head`` and
then all; the first and the last of a packet are marked as such, the last with the packet's
``error``; none is lost, doubled or changed. ``swallowed`` tells of each packet of which nothing is
left, and of no other. What is whole leaves at once; the input waits for a stalled output, and
for one cycle besides at most.

Each harness then states, apart, the invariants that make these inductive: where the bytes lie.

Not proved: other widths than 32 bits; behaviour under a reset while running.
"""

from dataclasses import dataclass

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from .kit.proof import Mutant, Proof
from .stream import cover_run, free, new_harness, stream_rules, within

__all__ = ["PROOFS", "ByteQueue", "Lane", "RealignProof", "entry"]


@dataclass
class Lane:
    """A byte that may pass: whether it does, how many pass before it, what it is."""

    present: Value
    before: Value
    entry: Value


def entry(byte, first, last, error):
    return Cat(byte, first, last, error & last)


class ByteQueue:
    """Bytes, each with its marks, that leave in the order in which they came.

    As :class:`~trebuchet.formal.stream.Queue`, for beats of many bytes: the solver picks the number
    of one byte. Attributes: ``level``, ``place``, ``word`` as there; ``ends``, packets whose last
    byte is inside. ``through``: when ``ins`` are on offer, if that may leave in the same cycle.
    """

    BITS = 6

    def __init__(self, m, *, put, ins, get, valid, outs, capacity, through=None):
        self.level, self.place = Signal(self.BITS, name="level"), Signal(self.BITS, name="place")
        index, sent, received = (
            Signal(self.BITS, name=name) for name in ("index", "sent", "received")
        )
        self.word = Signal.like(Value.cast(outs[0].entry), name="word")
        ends_in, ends_out = Signal(3, name="ends_in"), Signal(3, name="ends_out")
        self.ends = (ends_in - ends_out)[:3]
        m.d.comb += [
            index.eq(AnyConst(self.BITS)),
            self.level.eq(sent - received),
            self.place.eq(index - received),
            Assert(self.level <= capacity),
        ]
        with m.If(put):
            m.d.sync += sent.eq(sent + sum(lane.present for lane in ins))
            m.d.sync += ends_in.eq(ends_in + sum(lane.present & lane.entry[9] for lane in ins))
            for lane in ins:
                with m.If(lane.present & ((sent + lane.before)[: self.BITS] == index)):
                    m.d.sync += self.word.eq(lane.entry)
        with m.If(get):
            m.d.sync += received.eq(received + sum(lane.present for lane in outs))
            m.d.sync += ends_out.eq(ends_out + sum(lane.present & lane.entry[9] for lane in outs))
        level, word = self.level, self.word
        if through is not None:
            level, word = Signal.like(level, name="level_now"), Signal.like(word, name="word_now")
            come = Mux(through, sum(lane.present for lane in ins), 0)
            m.d.comb += [level.eq(self.level + come), word.eq(self.word)]
            for lane in ins:
                here = (sent + lane.before)[: self.BITS] == index
                with m.If(through & lane.present & here):
                    m.d.comb += word.eq(lane.entry)
        with m.If(valid):
            for lane in outs:
                with m.If(lane.present):
                    m.d.comb += Assert(level > lane.before)
                    with m.If(self.place == lane.before):
                        m.d.comb += Assert(lane.entry == word)


class RealignProof(Elaboratable):
    """What both have in common; ``n`` bytes a beat.

    ``through``: bytes may leave in the cycle in which they come.
    """

    through = False

    def __init__(self, dut):
        self.dut, self.n = dut, dut.n

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = self.dut.elaborate(platform)  # so that its registers have names here
        dut = self.dut
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        self.begins = stream_rules(m, dut.i, Assume, "i")
        self.begins_out = stream_rules(m, dut.o, Assert, "o")
        self.put, self.get = dut.i.valid & dut.i.ready, dut.o.valid & dut.o.ready
        i, o = dut.i.payload, dut.o.payload
        self.count = Signal(range(self.n + 1), name="count")  # bytes of the beat that comes in
        shown = Signal(range(self.n + 1))  # bytes of the beat that leaves
        m.d.comb += [self.count.eq(self.n - i.empty), shown.eq(self.n - o.empty)]
        outs = [
            Lane(
                lane < shown,
                lane,
                entry(
                    o.data.word_select(lane, 8),
                    o.first & (lane == 0),
                    o.last & (shown == lane + 1),
                    o.error,
                ),
            )
            for lane in range(self.n)
        ]
        self.queue = queue = ByteQueue(
            m,
            put=self.enters(),
            ins=self.bytes_in(m),
            get=self.get,
            valid=dut.o.valid,
            outs=outs,
            capacity=2 * self.n,
            through=dut.i.valid if self.through else None,
        )
        # What is whole leaves; of what is not, at most one beat waits.
        with m.If(~dut.o.valid):
            m.d.comb += [Assert(queue.ends == 0), Assert(queue.level <= self.n)]
        stalled = ~dut.o.ready | ~dut.i.valid if self.through else dut.o.valid & ~dut.o.ready
        within(m, dut.i.ready | stalled, 1, "i")
        m.d.comb += Cover(self.get & o.last & ~o.first & (o.empty != 0) & o.error)
        cover_run(m, self.put & self.get, 4, "both")
        self.invariants(m, 0 if self.through else Mux(dut.o.valid, shown, 0))
        return m

    def enters(self):
        """When the bytes of :meth:`bytes_in` come in."""
        return self.put

    def lies(self, m, leaving, hold, first, last, error, held=None):
        """Invariant: ``hold`` bytes lie in ``held``, from its lowest on, behind those leaving.

        ``held``: of the component, or as said. With ``through`` no others are inside.
        """
        dut, queue = self.dut, self.queue
        held = dut.held if held is None else held
        shown = 0 if self.through else dut.o.valid & dut.o.payload.last
        m.d.comb += Assert(queue.level == leaving + hold)
        m.d.comb += Assert(queue.ends == last + shown)
        for lane in range(len(held) // 8):
            with m.If((lane < hold) & (queue.place == leaving + lane)):
                ends = last & (hold == lane + 1)
                byte = held.word_select(lane, 8)
                m.d.comb += Assert(queue.word == entry(byte, first & (lane == 0), ends, error))


class TrimProof(RealignProof):
    def bytes_in(self, m):
        dut, i, n = self.dut, self.dut.i.payload, self.n
        free(m, dut.skip)
        past, waits = Signal.like(dut.skip), Signal()
        m.d.sync += [past.eq(dut.skip), waits.eq(dut.i.valid & ~dut.i.ready)]
        m.d.comb += [Assume(dut.skip <= dut.max_skip)]
        with m.If(waits & i.first):
            m.d.comb += Assume(dut.skip == past)
        self.rest = rest = Signal(range(dut.max_skip + 1))  # bytes still to drop
        self.some = some = Signal()  # a byte of this packet was kept
        drop, keep = Signal.like(rest), Signal()
        m.d.comb += [drop.eq(Mux(i.first, dut.skip, rest)), keep.eq(drop < self.count)]
        with m.If(self.put):
            m.d.sync += rest.eq(Mux(drop > self.count, drop - self.count, 0))
            m.d.sync += some.eq(~i.last & ((some & ~i.first) | keep))
        gone = Signal()
        m.d.sync += gone.eq(self.put & i.last & ~keep & (i.first | ~some))
        m.d.comb += [Assert(dut.swallowed == gone), Cover(gone)]
        if dut.max_skip > n:
            m.d.comb += Cover(self.put & (drop > n))
        return [
            Lane(
                (drop <= lane) & (lane < self.count),
                (lane - drop)[: ByteQueue.BITS],
                entry(
                    i.data.word_select(lane, 8),
                    (i.first | ~some) & (drop == lane),
                    i.last & (self.count == lane + 1),
                    i.error,
                ),
            )
            for lane in range(n)
        ]

    def invariants(self, m, leaving):
        dut, n = self.dut, self.n
        ahead = Mux(dut.o.valid, dut.o.payload.last, self.begins_out)
        m.d.comb += [
            Assert(dut.started == self.some),
            Assert(~(dut.started & (self.begins | dut.flush))),
            Assert(~dut.flush | (self.begins & dut.o.valid)),
            Assert(dut.begun == ~ahead),
            Assert(dut.started | dut.flush | self.begins | ~dut.begun),
            Assert(~dut.begun | dut.started | dut.flush),
        ]
        with m.If(~self.begins):
            m.d.comb += Assert(self.rest == Mux(dut.started, 0, dut.left * n + dut.shift))
            m.d.comb += Assert(~dut.started | (dut.left == 0))
        hold = Signal(range(n + 1))
        m.d.comb += hold.eq(Mux(dut.flush, n - dut.flush_empty, Mux(dut.started, n - dut.shift, 0)))
        self.lies(m, leaving, hold, ~dut.begun, dut.flush, dut.flush_error)


class PrependProof(RealignProof):
    def bytes_in(self, m):
        dut, i, n = self.dut, self.dut.i.payload, self.n
        free(m, dut.count, dut.head)
        aside = Cat(dut.count, dut.head)
        past, waits = Signal(len(aside)), Signal()
        m.d.sync += [past.eq(aside), waits.eq(dut.i.valid & ~dut.i.ready)]
        with m.If(waits & i.first):
            m.d.comb += Assume(aside == past)
        inserted = Signal.like(dut.count)
        m.d.comb += inserted.eq(Mux(i.first, dut.count, 0))
        head = [
            Lane(
                lane < inserted,
                lane,
                entry(dut.head.word_select(lane, 8), lane == 0, 0, 0),
            )
            for lane in range(n - 1)
        ]
        return head + [
            Lane(
                lane < self.count,
                inserted + lane,
                entry(
                    i.data.word_select(lane, 8),
                    i.first & (inserted == 0) & (lane == 0),
                    i.last & (self.count == lane + 1),
                    i.error,
                ),
            )
            for lane in range(n)
        ]

    def invariants(self, m, leaving):
        dut, n = self.dut, self.n
        hold = Signal(range(n + 1))
        m.d.comb += [
            hold.eq(Mux(dut.flush, n - dut.flush_empty, Mux(self.begins, 0, dut.shift))),
            Assert(~dut.flush | (self.begins & dut.o.valid)),
            Assert(hold < n),
        ]
        ahead = Mux(dut.o.valid, dut.o.payload.last, self.begins_out)
        m.d.comb += Assert(ahead == (self.begins & ~dut.flush))
        self.lies(m, leaving, hold, 0, dut.flush, dut.flush_error)


COMMON = (
    Mutant(
        "joins_one_off",
        "Mux(count > j, low.word_select(j, 8), high.word_select(j, 8))",
        "Mux(count >= j, low.word_select(j, 8), high.word_select(j, 8))",
    ),
    Mutant("rotates_half", "8 << stage", "8"),
)

PROOFS = (
    *(
        Proof(
            name=f"packet_trim_{skip}",
            core=f"cores.realign.PacketTrim(32, {skip})",
            says="the bytes after the first `skip` of each packet leave, marked, in order, at once",
            module="trebuchet.cores.realign",
            build=lambda cores, skip=skip: TrimProof(cores.PacketTrim(32, skip)),
            depth=2,
            cover_depth=14,
            mutants=mutants,
            assumes="the stream rules on the input; `skip` is kept while a first beat is offered",
        )
        for skip, mutants in (
            (
                3,
                (
                    *COMMON,
                    Mutant("ends_early", "n - i.empty <= shift_now", "n - i.empty < shift_now"),
                    Mutant("takes_too_soon", "step & ~(flush & emits)", "step"),
                    Mutant(
                        "keeps_old_error",
                        "m.d.sync += flush_error.eq(error)",
                        "m.d.sync += flush_error.eq(0)",
                    ),
                ),
            ),
            (
                9,
                (
                    Mutant("drops_a_beat_less", "self.skip >> bits", "(self.skip - 1) >> bits"),
                    Mutant("tells_too_often", "self.swallowed.eq(i.last)", "self.swallowed.eq(1)"),
                    Mutant("one_first_only", "begun.eq(~last)", "begun.eq(1)"),
                ),
            ),
        )
    ),
    Proof(
        name="packet_prepend",
        quick=True,
        core="cores.realign.PacketPrepend(32)",
        says="`count` bytes of `head`, then those of the packet leave, marked, in order, at once",
        module="trebuchet.cores.realign",
        build=lambda cores: PrependProof(cores.PacketPrepend(32)),
        depth=2,
        cover_depth=14,
        mutants=(
            *COMMON,
            Mutant("fits_too_often", "i.empty >= count_now", "i.empty >= count_now - 1"),
            Mutant("error_too_early", "o.error.eq(i.error & last)", "o.error.eq(i.error)"),
            Mutant("forgets_flush", "self.i.ready.eq(step & ~flush)", "self.i.ready.eq(step)"),
        ),
        assumes="the stream rules on the input; `count`, `head` kept while a first beat is offered",
    ),
)
