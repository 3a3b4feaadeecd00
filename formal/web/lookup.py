"""Proof of ``Lookup`` in ``cores/web/lookup.py``, on both data paths, in a memory with anything.

The reference follows the ports. Of the path it keeps one byte, any; of a burst what it says.

Proved: ``found`` or ``cold`` is 1 only after a burst of an entry that says the path's length and
has the path's bytes, with zeros behind them: ``found`` if it is ready, else ``cold``. It is the
entry to which a slot of the path's bucket points, with the path's CRC in that slot; ``entry`` is
its first four words. Every slot with the CRC is tried, in order, until one is found. Each request
makes ``busy`` rise and fall once; it asks for at most 8 buckets and 8 entries, in turn, of at most
8 and 16 words, from the right addresses. While ``busy`` a command is on offer, data are owed, or
the next cycle offers a command: nothing else is waited for, so a look-up ends if the memory
answers.

The memory may say something else each time. That the word memory has the path is proved of an
arbitrary byte, so of all; the words of entries are compared with it.

Not proved: that the memory answers; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, C, Cat, Cover, Elaboratable, Mux, Signal, Value

from ...models.http.image import SLOTS
from ...models.http.limits import LIMITS
from ..kit.inside import Inside
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

#: Words of an entry before its path.
HEAD = 4


class LookupProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut, mem = self.dut, self.dut.mem
        self.inside = Inside(m, dut)
        free(m, dut.path, dut.new, dut.byte, dut.start, dut.length, dut.crc, dut.index, dut.mask)
        free(m, mem.cmd.ready, mem.rdata.valid, mem.rdata.payload, mem.wdone.valid, mem.wdata.ready)
        stream_rules(m, mem.cmd, Assert, "cmd")
        stream_rules(m, mem.rdata, Assume, "rdata")
        self._path(m)
        self._memory(m)
        self._request(m)
        self._buckets(m)
        self._entries(m)
        self._covers(m)
        return m

    def _path(self, m):
        """Byte ``j`` of the path, and that the word memory has it, or a zero behind the path."""
        dut = self.dut
        self.j, self.byte = Signal(range(LIMITS.path)), Signal(8, name="path_byte")
        self.had = had = Signal(range(LIMITS.path + 1))  # bytes of the path that came
        before, word = Signal.like(had), dut.words.read_port(domain="comb")
        m.d.comb += [
            self.j.eq(AnyConst(len(self.j))),
            Assume(self.j < LIMITS.path),
            before.eq(Mux(dut.new, 0, had)),
            Assume(~dut.path | ~dut.busy),
            Assume(~dut.path | (before < LIMITS.path)),
            word.addr.eq(self.j[3:]),
        ]
        with m.If(dut.path):
            m.d.sync += had.eq(before + 1)
            with m.If(before == self.j):
                m.d.sync += self.byte.eq(dut.byte)
        stored = word.data.word_select(self.j[:3], 8)
        self.covered = self.j[3:] < (had + 7)[3:]  # its word is one of the path's
        self.expected = Mux(self.j < had, self.byte, 0)
        m.d.comb += [
            Assert(had <= LIMITS.path),
            Assert(~self.covered | (stored == self.expected)),
            Assert(dut.had == had),
        ]

    def _memory(self, m):
        """Bursts, one at a time, and the words of each, numbered."""
        dut, mem, cmd, rdata = self.dut, self.dut.mem, self.dut.mem.cmd, self.dut.mem.rdata
        self.owed, self.beats = Signal(name="owed"), Signal(6, name="beats")
        self.came = came = Signal(6, name="came")
        comes, last = moves(rdata), came == self.beats
        with m.If(comes):
            m.d.sync += came.eq(Mux(last, 0, came + 1))
        with m.If(moves(cmd)):
            m.d.sync += self.beats.eq(cmd.payload.beats)
        m.d.sync += self.owed.eq((self.owed | moves(cmd)) & ~(comes & last))
        self.over = comes & last
        self.word, self.whole = Signal(64, name="whole_word"), Signal(name="word_whole")
        if dut.width == 64:
            m.d.comb += [self.word.eq(rdata.payload.data), self.whole.eq(comes)]
            self.number = came
        else:
            low = Signal(32, name="low_half")
            with m.If(comes & ~came[0]):
                m.d.sync += low.eq(rdata.payload.data)
            m.d.comb += [self.word.eq(Cat(low, rdata.payload.data)), self.whole.eq(comes & came[0])]
            m.d.comb += Assert(~came[0] | (self.inside.low == low))
            m.d.comb += Assert(self.inside.half == came[0])
            self.number = came[1:]
        m.d.comb += [
            Assume(~rdata.valid | self.owed),
            Assume(~rdata.valid | (rdata.payload.last == last)),
            Assert(rdata.ready & mem.wdone.ready),
            Assert(~mem.wdata.valid),
            Assert(~cmd.payload.write),
            Assert(~(self.owed & cmd.valid)),
            Assert(self.owed | (came == 0)),
            Assert(~self.owed | (came <= self.beats)),
            Assert(dut.count == self.number),
        ]

    def _request(self, m):
        """A request stands still; ``busy`` is 1 from the cycle after it to its end."""
        dut, i = self.dut, self.inside
        self.open = opened = Signal(name="is_open")
        self.ends, was = Signal(name="ends"), Signal(name="was_open")
        held = Cat(dut.length, dut.crc, dut.index, dut.mask)
        result = Cat(dut.found, dut.cold, Value.cast(dut.entry))
        past, kept, rested = Signal(len(held)), Signal(len(result)), Signal()
        m.d.sync += [past.eq(held), was.eq(opened | dut.start), kept.eq(result)]
        m.d.sync += [opened.eq((opened | dut.start) & ~self.ends), rested.eq(~opened & ~dut.start)]
        m.d.comb += [
            Assume(~dut.start | ~dut.busy & ~dut.path & (dut.length == self.had)),
            Assume(~dut.start | (dut.length != 0)),
            Assume(~(was & opened) | (held == past)),
            Assume(dut.index[:6] == 0),
            Assert(dut.busy == opened),
            Assert(~opened | (dut.length == self.had) & (dut.length != 0)),
            Assert(~rested | (result == kept)),
        ]
        asks = i.state("ASK_BUCKET") | i.state("ASK_ENTRY")
        reads = i.state("BUCKET") | i.state("ENTRY")
        m.d.comb += [
            Assert(i.fsm_bounded()),
            # Nothing else is waited for.
            Assert(~opened | dut.mem.cmd.valid | self.owed | asks),
            Assert(reads == (dut.mem.cmd.valid | self.owed)),
            Assert(i.state("IDLE") == ~opened),
        ]

    def _buckets(self, m):
        """Which slot is tried: the first with the CRC behind those that were tried."""
        dut, cmd, i = self.dut, self.dut.mem.cmd, self.inside
        self.entry = entry = Signal(name="of_entry")  # the burst is of an entry, not of a bucket
        self.tried = tried = Signal(range(SLOTS), name="tried")  # slots that are done with
        asked = Signal(range(2 * SLOTS + 1), name="bursts")
        has, self.place = Signal(name="has_slot"), Signal(range(SLOTS), name="slot")
        place, pointer, self.now = self.place, Signal(32, name="entry_at"), Signal(name="has_now")
        words, addr = Signal(5, name="words"), Signal(32, name="burst_at")
        fits = (self.word[:32] == dut.crc) & (self.word[32:] != 0)
        bucket = (dut.index + (dut.crc & dut.mask) * 64)[:32]
        m.d.comb += [
            self.now.eq(has | (self.whole & fits)),
            words.eq(Mux(entry, HEAD + ((dut.length + 7) >> 3), SLOTS - tried)),
            addr.eq(Mux(entry, Cat(C(0, 7), pointer[7:]), bucket + tried * 8)),
        ]
        with m.If(self.whole & ~entry & fits & ~has):
            m.d.sync += [has.eq(1), place.eq(tried + self.number), pointer.eq(self.word[32:])]
        with m.If(self.over & ~entry):
            m.d.sync += entry.eq(self.now)
        with m.If(self.over & entry):
            m.d.sync += [entry.eq(0), has.eq(0), tried.eq(place + 1)]
        with m.If(moves(cmd)):
            m.d.sync += asked.eq(asked + 1)
        with m.If(~self.open):
            m.d.sync += [tried.eq(0), asked.eq(0), has.eq(0), entry.eq(0)]
        asks, beats = i.state("ASK_BUCKET"), words * (64 // dut.width) - 1
        m.d.comb += [
            Assert(~cmd.valid | (cmd.payload.addr == addr)),
            Assert(~cmd.valid | (cmd.payload.beats == beats)),
            # Two bursts for each slot that was tried, so 16 at most.
            Assert(~self.open | (asked <= 2 * tried + entry + self.owed)),
            Assert(~self.owed | (self.beats == beats)),
            Assert(~self.open | (entry == ~(asks | i.state("BUCKET")))),
            Assert(~self.open | (dut.first == tried)),
            Assert(~self.open | entry | asks | (dut.has == has)),
            Assert(~(self.open & asks) | ~has),
            Assert(~(self.open & entry) | has),
            Assert(~(self.open & has) | (place >= tried)),
            Assert(~(self.open & has) | (dut.place == place) & (dut.pointer == pointer)),
        ]

    def _entries(self, m):
        """Whether an entry is the path's, what it says, and what comes of it."""
        dut, i, entry = self.dut, self.inside, self.dut.entry
        peek, differs = dut.words.read_port(domain="comb"), Signal(name="word_differs")
        same, byte = Signal(name="same_so_far"), Signal(8, name="entry_byte")
        ready, fits = Signal(name="entry_ready"), Signal(name="length_fits")
        which, kept = Signal(range(HEAD)), Signal(64, name="entry_word")
        m.d.comb += [
            which.eq(AnyConst(2)),
            peek.addr.eq(self.number - HEAD),
            differs.eq(self.word != peek.data),
        ]
        with m.If(self.number == 0):
            m.d.comb += differs.eq(self.word[8:15] != dut.length)
        with m.Elif(self.number < HEAD):
            m.d.comb += differs.eq(0)
        comes = self.entry & self.whole
        mine = comes & (self.number == HEAD + self.j[3:])
        with m.If(comes):
            m.d.sync += same.eq((same | (self.number == 0)) & ~differs)
            with m.If(self.number == 0):
                m.d.sync += [ready.eq(self.word[0]), fits.eq(self.word[8:15] == dut.length)]
            with m.If(self.number == which):
                m.d.sync += kept.eq(self.word)
        with m.If(mine):
            m.d.sync += byte.eq(self.word.word_select(self.j[:3], 8))
        found = self.over & self.entry & (same | (self.number == 0)) & ~differs
        last = self.place == SLOTS - 1
        m.d.comb += self.ends.eq(self.over & Mux(self.entry, found | last, ~self.now))
        # As they were when the look-up ended: the next path may come while `found` holds.
        good, covered, expected = Signal(name="was_found"), Signal(), Signal(8)
        with m.If(self.open):
            m.d.sync += [covered.eq(self.covered), expected.eq(self.expected)]
        with m.If(self.ends):
            m.d.sync += good.eq(found)
        begun = self.owed & self.entry & (self.number != 0)
        read = begun & (self.number > HEAD + self.j[3:])
        raw = Value.cast(entry).word_select(which, 64)
        was, ended = Signal(name="has_ended"), dut.found | dut.cold
        m.d.sync += was.eq((was | self.ends) & ~dut.start)
        m.d.comb += [
            # What is found is ready and has the path's bytes, and is told as it was read.
            Assert(~was | (ended == good)),
            Assert(~ended | ~self.open),
            Assert(~ended | (dut.found == ready)),
            Assert(~ended | (dut.cold != ready)),
            Assert(~ended | fits),
            Assert(~ended | ~covered | (byte == expected)),
            Assert(~ended | (raw == kept)),
            Assert(was | ~ended),
            Assert(~(begun & same) | fits),
            Assert(~begun | (entry.ready == ready)),
            Assert(~(read & same) | ~self.covered | (byte == self.expected)),
            Assert(~ended | same),
            Assert(~(begun & (self.number > which)) | (raw == kept)),
            Assert(~begun | (dut.equal == same)),
            Assert(~self.open | begun | ~self.entry | dut.equal | i.state("ASK_ENTRY")),
        ]

    def _covers(self, m):
        dut = self.dut
        twice = Signal()
        with m.If(self.over & self.entry & ~self.ends):
            m.d.sync += twice.eq(1)
        m.d.comb += [
            Cover(dut.found & (self.had == 1)),
            Cover(dut.cold & (self.had == 1)),
            Cover(self.ends & ~self.entry),
        ]
        if dut.width == 64:
            m.d.comb += Cover(dut.found & twice)


MUTANTS = (
    Mutant("ignores_the_path", "differs.eq(self.word != read.data)", "differs.eq(0)", 21),
    Mutant("ignores_ready", "self.found.eq(entry.ready)", "self.found.eq(1)", 21),
    Mutant("always_cold", "self.cold.eq(~entry.ready)", "self.cold.eq(1)", 21),
    Mutant(
        "ignores_length",
        "differs.eq(head_word.path_length != self.length)",
        "differs.eq(0)",
        21,
    ),
    Mutant("follows_nothing", "pointer.any() & ~self.has", "~self.has", 20),
    Mutant("misses_the_last_slot", "with m.If(self.has | fits):", "with m.If(self.has):", 20),
    Mutant("stale_tail", "(opens | (had[:3] == k))", "(had[:3] == k)", 20),
    Mutant("gives_up", "with m.Elif(self.place != SLOTS - 1):", "with m.Elif(0):", 21),
    Mutant("tries_for_ever", "with m.Elif(self.place != SLOTS - 1):", "with m.Else():", 21),
)
#: What differs on 32 bits.
NARROW = (
    Mutant("one_half", "rdata.valid & half", "rdata.valid", 16),
    Mutant("half_a_bucket", "words * beats - 1", "words - 1", 8, context="beats = ..."),
)

PROOFS = tuple(
    Proof(
        name=f"web_lookup_{width}",
        core=f"cores.web.lookup.Lookup({width})",
        says="found only if the entry is ready and has the path's bytes, cold only if it has them "
        "and is not ready; every slot with the CRC is tried; at most 16 bursts, one answer, "
        "nothing else is waited for",
        module="trebuchet.cores.web.lookup",
        build=lambda cores, w=width: LookupProof(cores.Lookup(w)),
        depth=2,
        cover_depth=36,
        mutants=MUTANTS if width == 64 else NARROW,
        assumes="path and request as the data sheet says; read data only as asked for",
        not_proved="that the memory answers; a reset while running",
    )
    for width in (64, 32)
)
