"""Proofs of ``cores/cluster/messages.py``, and of the header's layout in ``contract.py``.

The reference models here are written from the tables of ``contract.py`` and the components' data
sheets, in terms of the ports: what is offered in every cycle, and what is taken. They hold in
lockstep with the core, by induction.

``Segmenter``: each call becomes messages of at most ``CHUNK`` bytes, each behind the header that
the table says, bit by bit; offsets follow each other; ``last`` is in the header of the message that
ends the call; bytes go through unaltered, and none is left out. ``Reassembler``: the same way back;
a message without a whole good header leaves no trace. Both together: what goes in comes out, each
byte where the offset of its message says. ``AbortGuard``: whatever its sender does, what comes out
is whole packets, in order; those that were cut have an error mark.

``CHUNK`` is made small for the proofs: no circuit but two counters' lengths depends on it.

Not proved: a packet that is longer than its call says; behaviour under a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, C, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.parts import Opened, moves
from ..kit.proof import Mutant, Proof
from ..stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS", "CallGhost", "header_bits"]

MODULE = "trebuchet.cores.cluster.messages"
CONTRACT = "trebuchet.cores.cluster.contract"
SMALL = 48  # bytes of a message in the proofs
STEP = 3  # in units of 16
HEADER = 64  # bits


def header_bits(call, last, offset):
    """The table of ``contract.py``, bit by bit."""
    fields = (
        (call.peer, 8),
        (last, 1),
        (call.kind, 2),
        (call.role, 5),
        (call.status, 8),
        (call.number, 8),
        (offset, 16),
        (C(0), 16),
    )
    return Cat(Cat(Value.cast(value), C(0, width))[:width] for value, width in fields)


class CallGhost:
    """The call under way, told from the ports of a ``Segmenter``."""

    def __init__(self, m, dut):
        call, given, o = dut.call, dut.data, dut.o
        self.words, self.beats = HEADER // dut.width, SMALL * 8 // dut.width
        self.active = Signal(name="active")
        self.word = Signal(range(self.words + 1), name="ghost_word")  # of the header, sent
        self.beat = Signal(range(self.beats), name="ghost_beat")
        self.offset = Signal(16, name="ghost_offset")
        self.left = Signal(20, name="ghost_left")  # bytes
        self.call = Signal(call.payload.shape(), name="ghost_call")
        self.data = Signal(name="in_data")
        m.d.comb += self.data.eq(self.active & (self.word == self.words))
        with m.If(moves(call)):
            m.d.sync += [self.active.eq(1), self.call.eq(call.payload)]
            m.d.sync += [self.left.eq(call.payload.length), self.offset.eq(0)]
        with m.If(self.active & ~self.data & o.ready):
            m.d.sync += self.word.eq(self.word + 1)
            with m.If((self.word == self.words - 1) & (self.left == 0)):
                m.d.sync += [self.active.eq(0), self.word.eq(0)]
        with m.If(self.data & given.valid & o.ready):
            m.d.sync += self.beat.eq(self.beat + 1)
            with m.If(given.payload.last | (self.beat == self.beats - 1)):
                m.d.sync += [self.word.eq(0), self.beat.eq(0)]
                m.d.sync += self.offset.eq(self.offset + STEP)
                m.d.sync += self.left.eq(self.left - SMALL)
            with m.If(given.payload.last):
                m.d.sync += self.active.eq(0)
        # A packet may end too early, but not too late.
        rest = Signal(20, name="rest")
        m.d.comb += rest.eq(self.left - self.beat * (dut.width // 8))
        with m.If(self.data & given.valid):
            m.d.comb += Assume(given.payload.last | (rest > dut.width // 8))

    def invariants(self, m, core):
        """What the core's registers must be."""
        inside = core.core.inside
        m.d.comb += [
            Assert(core.state("HEADER") == (self.active & ~self.data)),
            Assert(core.state("DATA") == self.data),
            Assert(core.state("IDLE") == ~self.active),
            Assert(inside["beat"] == self.beat),
            Assert(self.word <= self.words),
            Assert(self.beat < self.beats),
            Assert(self.active | (self.word == 0)),
            Assert(self.data | (self.beat == 0)),
            Assert(~self.data | (self.left != 0)),
            Assert(~self.data | (self.left > self.beat * (SMALL // self.beats))),
        ]
        if self.words > 1:
            m.d.comb += Assert(inside["word"] == Mux(self.data, 0, self.word))
        with m.If(self.active):
            m.d.comb += [
                Assert(inside["left"] == self.left),
                Assert(inside["offset"] == self.offset),
                Assert(Value.cast(inside["call"]) == Value.cast(self.call)),
            ]

    def header(self):
        return header_bits(self.call, self.left <= SMALL, self.offset)


class SegmenterProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        core = Opened(self.cores, dut, platform, CHUNK=SMALL)
        m.submodules.dut = core.fragment
        call, given, o = dut.call, dut.data, dut.o
        free(m, call.valid, call.payload, given.valid, given.payload, o.ready)
        stream_rules(m, call, Assume, "call")
        stream_rules(m, given, Assume, "data")
        begins = stream_rules(m, o, Assert, "o")
        ghost = CallGhost(m, dut)
        m.d.comb += [
            Assert(call.ready == ~ghost.active),
            Assert(dut.idle == (~ghost.active & ~call.valid)),
            Assert(o.valid == (ghost.active & (~ghost.data | given.valid))),
            Assert(given.ready == (ghost.data & o.ready)),
        ]
        with m.If(ghost.data & given.valid):
            m.d.comb += [
                Assert(o.payload.data == given.payload.data),
                Assert(o.payload.empty == given.payload.empty),
                Assert(o.payload.error == given.payload.error),
                Assert(o.payload.last == (given.payload.last | (ghost.beat == ghost.beats - 1))),
            ]
        with m.Elif(o.valid):
            last_word = ghost.word == ghost.words - 1
            m.d.comb += [
                Assert(o.payload.data == ghost.header().word_select(ghost.word, dut.width)),
                Assert(o.payload.last == (last_word & (ghost.left == 0))),
            ]
        ghost.invariants(m, core)
        m.d.comb += Assert(begins == (ghost.word == 0))
        ends = moves(given) & given.payload.last
        m.d.comb += [
            Cover(ends & (ghost.offset == STEP) & (ghost.left <= SMALL) & (ghost.beat == 1)),
            Cover(moves(o) & o.payload.last & ~ghost.data),
            Cover(ends & (ghost.left > SMALL)),
        ]
        return m


class ReassemblerProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        core = Opened(self.cores, dut, platform)
        m.submodules.dut = core.fragment
        i, head, given = dut.i, dut.head, dut.data
        free(m, i.valid, i.payload, head.ready, given.ready)
        beat, words = i.payload, HEADER // dut.width
        stream_rules(m, i, Assume, "i", chosen=0)
        stream_rules(m, head, Assert, "head")
        begins_out = stream_rules(m, given, Assert, "data")
        # After a reset the first beat may be any of its message's.
        begins, started, early = Signal(init=1), Signal(), Signal()
        m.d.comb += early.eq(AnyConst(1) & ~started)
        with m.If(moves(i)):
            m.d.sync += [begins.eq(beat.last), started.eq(1)]
        with m.If(i.valid):
            m.d.comb += Assume(beat.first == (begins & ~early))
            m.d.comb += Assume(beat.last | ((beat.empty == 0) & ~beat.error))
        # The model: words of the header that have come, then the offer, then the data.
        word, offers, data = Signal(range(words + 1)), Signal(), Signal()
        header, bare, fresh = Signal(HEADER), Signal(), Signal()
        whole, good = Signal(), Signal()
        m.d.comb += [
            whole.eq(beat.first if words == 1 else (word == 1) & ~beat.first),
            good.eq((beat.empty == 0) & ~beat.error),
        ]
        with m.If(moves(i) & ~offers & ~data):
            m.d.sync += word.eq(beat.first & ~beat.last & (words > 1))
            with m.If(beat.first):
                m.d.sync += header[: dut.width].eq(beat.data)
            if words > 1:
                with m.Else():
                    m.d.sync += header[dut.width :].eq(beat.data)
            with m.If(whole & good):
                m.d.sync += [offers.eq(1), word.eq(0), bare.eq(beat.last)]
        with m.If(moves(head)):
            m.d.sync += [offers.eq(0), data.eq(~bare), fresh.eq(1)]
        with m.If(moves(given)):
            m.d.sync += [fresh.eq(0), data.eq(~beat.last)]
        m.d.comb += [
            Assert(head.valid == offers),
            Assert(given.valid == (data & i.valid)),
            Assert(i.ready == Mux(data, given.ready, ~offers)),
        ]
        with m.If(offers):
            m.d.comb += [
                Assert(Value.cast(head.payload.header) == header),
                Assert(head.payload.bare == bare),
            ]
        with m.If(given.valid):
            m.d.comb += [
                Assert(given.payload.data == beat.data),
                Assert(given.payload.empty == beat.empty),
                Assert(given.payload.error == beat.error),
                Assert(given.payload.last == beat.last),
                Assert(given.payload.first == fresh),
            ]
        # Invariants.
        inside = dut.inside
        m.d.comb += [
            Assert(core.state("OFFER") == offers),
            Assert(core.state("DATA") == data),
            Assert(core.state("HEADER") == (~offers & ~data)),
            Assert(begins_out == (~data | fresh)),
            Assert(~data | ~begins),
            Assert((word == 0) | (~begins & ~offers & ~data)),
            Assert(~offers | (begins == bare)),
            Assert(~(data | offers | (word != 0)) | started),
            Assert(~offers | inside["first"]),
            Assert(~data | (inside["first"] == fresh)),
        ]
        if words > 1:
            m.d.comb += Assert(inside["word"] == word)
            with m.If(word == 1):
                held = Value.cast(head.payload.header)
                m.d.comb += Assert(held[: dut.width] == header[: dut.width])
        seen = Signal(2)
        with m.If(moves(i) & ~offers & ~data & beat.last & ~(whole & good)):
            m.d.sync += seen[0].eq(1)
        with m.If(moves(head) & bare):
            m.d.sync += seen[1].eq(1)
        m.d.comb += Cover(seen.all() & moves(given) & beat.last & ~fresh)
        return m


class RoundTripProof(Elaboratable):
    """A cutter, and an opener behind it."""

    def __init__(self, cores):
        self.cores, self.cutter, self.opener = cores, cores.Segmenter(32), cores.Reassembler(32)

    def elaborate(self, platform):
        m = new_harness()
        cutter, opener = self.cutter, self.opener
        core = Opened(self.cores, cutter, platform, CHUNK=SMALL)
        back = Opened(self.cores, opener, platform)
        m.submodules.cutter, m.submodules.opener = core.fragment, back.fragment
        call, given, head, got = cutter.call, cutter.data, opener.head, opener.data
        free(m, call.valid, call.payload, given.valid, given.payload, head.ready, got.ready)
        m.d.comb += [
            opener.i.valid.eq(cutter.o.valid),
            opener.i.payload.eq(cutter.o.payload),
            cutter.o.ready.eq(opener.i.ready),
        ]
        stream_rules(m, call, Assume, "call")
        stream_rules(m, given, Assume, "data")
        ghost = CallGhost(m, cutter)
        taken, place, n = Signal(20), Signal(20), cutter.width // 8  # bytes in; where they go
        with m.If(moves(call)):
            m.d.sync += taken.eq(0)
        with m.If(moves(given)):
            m.d.sync += taken.eq(taken + n)
        with m.If(moves(head)):
            m.d.sync += place.eq(head.payload.header.offset << 4)
        with m.If(moves(got)):
            m.d.sync += place.eq(place + n)
        # A message without data is offered when its call is over, so its header is kept.
        header, bare = Signal(HEADER), Signal()
        ends = moves(cutter.o) & cutter.o.payload.last & ~ghost.data
        with m.If(ends):
            m.d.sync += [header.eq(ghost.header()), bare.eq(1)]
        with m.Elif(moves(head)):
            m.d.sync += bare.eq(0)
        wanted, shown = Mux(bare, header, ghost.header()), Value.cast(head.payload.header)
        m.d.comb += Assert(moves(given) == moves(got))
        with m.If(moves(got)):
            m.d.comb += Assert(place == taken)
            m.d.comb += [
                Assert(got.payload[name] == given.payload[name])
                for name in ("data", "empty", "error")
            ]
        with m.If(head.valid):
            m.d.comb += [Assert(shown == wanted), Assert(head.payload.bare == bare)]
        # Invariants: where the opener is while the cutter is at a word or a beat.
        ghost.invariants(m, core)
        offers, data, reads = (back.state(name) for name in ("OFFER", "DATA", "HEADER"))
        m.d.comb += [
            Assert(ghost.data == (data | (offers & ~bare))),
            Assert(~bare | offers),
            Assert(~offers | (ghost.beat == 0)),
            Assert(~bare | (ghost.word == 0)),
            Assert(opener.inside["word"] == Mux(reads, ghost.word, 0)),
            Assert(~offers | opener.inside["first"]),
            Assert(~data | (opener.inside["first"] == (ghost.beat == 0))),
        ]
        with m.If(reads & (ghost.word == 1)):
            m.d.comb += Assert(shown[:32] == wanted[:32])
        with m.If(ghost.active):
            m.d.comb += Assert(taken == ((ghost.offset << 4) + ghost.beat * n)[:20])
        with m.If(data):
            m.d.comb += Assert(place == taken)
        m.d.comb += Cover(moves(got) & given.payload.last & (ghost.offset == STEP))
        m.d.comb += Cover(moves(head) & head.payload.bare)
        return m


class AbortGuardProof(Elaboratable):
    def __init__(self, cores, dut):
        self.cores, self.dut = cores, dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        core = Opened(self.cores, dut, platform, watched=("SkidBuffer",))
        m.submodules.dut = core.fragment
        stage, i, o = core.part("SkidBuffer"), dut.i, dut.o
        beat = i.payload
        # The sender keeps no rule but the fifth: it may be reset in any cycle.
        free(m, i.valid, i.payload, o.ready, dut.cut)
        m.d.comb += Assume(beat.last | ((beat.empty == 0) & ~beat.error))
        begins = stream_rules(m, o, Assert, "o")
        # The model: the packet under way and what enters the stage behind.
        under, ends, enters, room = Signal(), Signal(), Signal(), Signal()
        word = Signal(beat.shape())
        m.d.comb += [
            ends.eq(under & (dut.cut | (i.valid & beat.first))),
            enters.eq(ends | (i.valid & ~dut.cut & (under | beat.first))),
            word.eq(beat),
        ]
        with m.If(ends):
            m.d.comb += [word.eq(0), word.last.eq(1), word.error.eq(1)]
        with m.If(enters & room):
            m.d.sync += under.eq(~word.last)
        queue = Queue(
            m,
            puts=enters & room,
            put_word=word,
            gets=moves(o),
            get_valid=o.valid,
            get_word=o.payload,
            capacity=2,
        )
        m.d.comb += [room.eq(queue.level != 2), Assert(o.valid == (queue.level != 0))]
        with m.If(i.valid):
            swallowed = dut.cut | ~(under | beat.first)
            m.d.comb += Assert(i.ready == (swallowed | (room & ~ends)))
        # Invariants.
        shown, skid = o.payload, stage.skid
        m.d.comb += Assert(dut.inside["under_way"] == under)
        m.d.comb += Assert(stage.skid_full == (queue.level == 2))
        with m.If(queue.level == 0):
            m.d.comb += Assert(begins == ~under)
        with m.If(queue.level == 1):
            m.d.comb += Assert(shown.last == ~under)
        with m.If(queue.level == 2):
            m.d.comb += [Assert(skid.first == shown.last), Assert(skid.last == ~under)]
            m.d.comb += Assert(skid.last | ((skid.empty == 0) & ~skid.error))
        with m.If(queue.inside & (queue.place == 1)):
            m.d.comb += Assert(Value.cast(skid) == queue.word)
        was_cut = Signal()
        with m.If(moves(o) & shown.error & ~shown.first & (shown.data == 0)):
            m.d.sync += was_cut.eq(1)
        m.d.comb += Cover(was_cut & moves(o) & shown.last & ~shown.error & ~shown.first)
        m.d.comb += Cover(ends & ~dut.cut & room)
        return m


SEGMENTER_MUTANTS = (
    Mutant("skips_an_offset", "offset + CHUNK // 16", "offset + CHUNK // 8", 20),
    Mutant("last_too_late", "left <= CHUNK", "left < CHUNK"),
    Mutant("never_cuts", "given.payload.last | (beat == beats - 1)", "given.payload.last", 20),
    Mutant(
        "forgets_the_end", "(word == words - 1) & (left == 0)", "(word == words - 1) & (left != 0)"
    ),
    Mutant(
        "kind_before_last",
        '"last": unsigned(1),\n        "kind": JobKind,',
        '"kind": JobKind,\n        "last": unsigned(1),',
        where=CONTRACT,
    ),
)
REASSEMBLER_MUTANTS = (
    Mutant("takes_damaged", "(i.payload.empty == 0) & ~(i.payload.last & i.payload.error)", "1"),
    Mutant("stays_in_data", "with m.If(head.payload.bare):", "with m.If(0):"),
    Mutant(
        "first_twice",
        "m.d.sync += first.eq(0)",
        "m.d.sync += first.eq(first)",
        within='with m.State("DATA"):',
    ),
    Mutant("takes_the_middle", "(word == 1) & ~i.payload.first & good", "~i.payload.first & good"),
    Mutant(
        "offers_unasked",
        "given.valid.eq(i.valid)",
        "given.valid.eq(1)",
        within="Reassembler.elaborate",
    ),
)
ABORT_GUARD_MUTANTS = (
    Mutant("passes_the_rest", "~(under_way | i.payload.first)", "~i.valid"),
    Mutant("loses_the_first", "(put.ready & ~ends)", "put.ready"),
    Mutant("no_error", "put.payload.error.eq(1)", "put.payload.error.eq(0)"),
    Mutant("cuts_too_late", "self.cut | (i.valid & i.payload.first)", "self.cut & i.valid"),
)

PROOFS = (
    *(
        Proof(
            name=f"cluster_segmenter_{width}",
            core=f"cores.cluster.messages.Segmenter({width})",
            says="a call becomes messages with the table's headers; its bytes go on unaltered",
            module=MODULE,
            build=lambda cores, width=width: SegmenterProof(cores, cores.Segmenter(width)),
            depth=2,
            cover_depth=20,
            mutants=SEGMENTER_MUTANTS if width == 32 else SEGMENTER_MUTANTS[:2],
            assumes="the stream rules on the inputs; no packet is longer than its call says",
        )
        for width in (32, 64)
    ),
    *(
        Proof(
            name=f"cluster_reassembler_{width}",
            core=f"cores.cluster.messages.Reassembler({width})",
            says="a message is its header and its bytes; without a good header it leaves no trace",
            module=MODULE,
            build=lambda cores, width=width: ReassemblerProof(cores, cores.Reassembler(width)),
            depth=3,
            cover_depth=16,
            mutants=REASSEMBLER_MUTANTS if width == 32 else REASSEMBLER_MUTANTS[:2],
        )
        for width in (32, 64)
    ),
    Proof(
        name="cluster_round_trip",
        core="cores.cluster.messages.Segmenter(32), Reassembler(32) behind it",
        says="each byte of a call comes out where its message's header says, unaltered",
        module=MODULE,
        build=RoundTripProof,
        depth=2,
        cover_depth=20,
        mutants=(SEGMENTER_MUTANTS[0], REASSEMBLER_MUTANTS[1]),
        assumes="the stream rules on the inputs; no packet is longer than its call says",
    ),
    Proof(
        name="cluster_abort_guard",
        core="cores.cluster.messages.AbortGuard(32)",
        says="whole packets come out, in order, whatever the sender does; cut ones are marked",
        module=MODULE,
        build=lambda cores: AbortGuardProof(cores, cores.AbortGuard(32)),
        depth=2,
        cover_depth=12,
        mutants=ABORT_GUARD_MUTANTS,
        assumes="a beat that is not a last one has no empty bytes and no error mark",
    ),
)
