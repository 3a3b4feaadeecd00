"""Find a path in the index of a store: hash table in external memory, paths compared bytewise."""

from amaranth import C, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ...models.http.image import BUCKET_BYTES, ENTRY, ENTRY_BYTES, PATH_OFFSET, SLOTS
from ...models.http.limits import LIMITS
from ..memory import ADDR_WIDTH, MemorySignature

__all__ = ["EntryLayout", "Lookup"]

#: The fields of an entry before its path (:mod:`trebuchet.models.http.image`).
EntryLayout = data.StructLayout({name: unsigned(width) for name, width in ENTRY.items()})
#: Those of its first 64 bits.
_FirstWordLayout = data.StructLayout(
    {name: unsigned(ENTRY[name]) for name in list(ENTRY)[: list(ENTRY).index("found")]}
)


class Lookup(wiring.Component):
    """Collects a path and looks it up.

    Parameters
    ----------
    width : int
        Data path of the memory port in bits, 32 or 64.

    ============  ===  ===========================================================================
    member        dir  meaning
    ============  ===  ===========================================================================
    ``path``      In   1: ``byte`` is a byte of the path, the first one if ``new``; only while
                       ``busy`` is 0
    ``start``     In   the path is complete, since the cycle before or longer: look it up
    ``length``    In   its bytes, 1 to 96; constant from ``start`` until ``busy`` falls
    ``crc``       In   its CRC-32; likewise
    ``index``     In   address of the first bucket, a multiple of 64
    ``mask``      In   number of buckets - 1; both constant while ``busy``
    ``busy``      Out  a look-up is under way
    ``found``     Out  of the last look-up, constant until the next
    ``cold``      Out  likewise: the path's entry is not ready
    ``entry``     Out  with ``found``: :data:`EntryLayout`; likewise
    ``mem``       Out  memory port that reads, tag width 0
    ============  ===  ===========================================================================

    ``found``: an entry to which a slot of the path's bucket points, with the path's CRC in that
    slot, is ready and has exactly the path's bytes; the first such slot counts. So an equal CRC
    alone finds nothing, whatever the client sends. ``cold`` says that the entry that counts is not
    ready: the object exists, but is not in memory.

    Latency: two memory latencies and 8 + 4 + length / 8 words, about 10 cycles more; a slot with an
    equal CRC whose path differs costs the same again, at most 7 times. One look-up at a time.
    Back-pressure: read data are taken at once. Reset: idle; the memory must be reset with it. Bad
    input: a memory with garbage gives a wrong answer, but at most 16 bursts, and an answer.
    """

    def __init__(self, width=64):
        if width not in (32, 64):
            raise ValueError(f"Data path of a look-up must be 32 or 64 bits, not {width!r}")
        self.width = width
        super().__init__(
            {
                "path": In(1),
                "new": In(1),
                "byte": In(8),
                "start": In(1),
                "length": In(range(LIMITS.path + 1)),
                "crc": In(32),
                "index": In(ADDR_WIDTH),
                "mask": In(ADDR_WIDTH),
                "busy": Out(1),
                "found": Out(1),
                "cold": Out(1),
                "entry": Out(EntryLayout),
                "mem": Out(MemorySignature(width, 0)),
            }
        )
        # No ports: for proofs.
        self.words = Memory(shape=unsigned(64), depth=16, init=[])
        self.had = Signal(7)  # bytes of the path so far
        self.first = Signal(range(SLOTS))  # slots before it have been tried
        self.has, self.place = Signal(), Signal(range(SLOTS))  # a slot with the path's CRC
        self.pointer = Signal(ADDR_WIDTH)
        self.equal = Signal()  # the entry, as far as it has been read, is that of the path

    # The path is collected in words of eight bytes. The first byte of a word writes zeros behind
    # itself, each other one only itself, so the last word is filled up with zeros.
    def elaborate(self, platform):
        m = Module()
        m.submodules.words = self.words
        self._collect(m)
        self._gather(m)
        cmd = self.mem.cmd
        m.d.comb += [self.mem.rdata.ready.eq(1), self.mem.wdone.ready.eq(1)]
        with m.If(cmd.ready):
            m.d.sync += cmd.valid.eq(0)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += self.first.eq(0)
                with m.If(self.start):
                    m.d.sync += [self.found.eq(0), self.cold.eq(0)]
                    m.next = "ASK_BUCKET"
            with m.State("ASK_BUCKET"):
                self._ask_bucket(m)
                m.next = "BUCKET"
            with m.State("BUCKET"):
                self._bucket(m)
            with m.State("ASK_ENTRY"):
                self._ask_entry(m)
                m.next = "ENTRY"
            with m.State("ENTRY"):
                self._entry(m)
        return m

    def _collect(self, m):
        write = self.words.write_port(granularity=8)
        had, opens = Signal.like(self.had), Signal()
        m.d.comb += [
            had.eq(Mux(self.new, 0, self.had)),
            opens.eq(had[:3] == 0),
            write.addr.eq(had[3:]),
            write.data.eq(Cat(self.byte, (self.byte & ~opens.replicate(8)).replicate(7))),
            write.en.eq(Cat(self.path & (opens | (had[:3] == k)) for k in range(8))),
        ]
        with m.If(self.path):
            m.d.sync += self.had.eq(had + 1)

    def _gather(self, m):
        """Words of 64 bits from the beats of the memory port."""
        rdata = self.mem.rdata
        self.word, self.word_comes, self.last = Signal(64), Signal(), Signal()
        self.count = Signal(5)  # words of the burst so far
        m.d.comb += self.last.eq(rdata.payload.last)
        if self.width == 64:
            m.d.comb += [self.word.eq(rdata.payload.data), self.word_comes.eq(rdata.valid)]
        else:
            low = Signal(32)
            half = Signal()
            m.d.comb += self.word.eq(Cat(low, rdata.payload.data))
            m.d.comb += self.word_comes.eq(rdata.valid & half)
            with m.If(rdata.valid):
                m.d.sync += [low.eq(rdata.payload.data), half.eq(~half)]
        with m.If(self.word_comes):
            m.d.sync += self.count.eq(Mux(self.last, 0, self.count + 1))

    def _ask(self, m, addr, words):
        cmd = self.mem.cmd
        beats = 64 // self.width
        m.d.comb += self.busy.eq(1)
        m.d.sync += [
            cmd.valid.eq(1),
            cmd.payload.addr.eq(addr),
            cmd.payload.beats.eq(words * beats - 1),
            self.equal.eq(1),
        ]

    def _ask_bucket(self, m):
        shift = (BUCKET_BYTES - 1).bit_length()
        bucket = self.index + ((self.crc & self.mask) << shift)
        self._ask(m, Cat(C(0, 3), self.first, bucket[shift:ADDR_WIDTH]), SLOTS - self.first)
        m.d.sync += self.has.eq(0)

    def _bucket(self, m):
        pointer = self.word[32:]
        m.d.comb += self.busy.eq(1)
        fits = Signal()
        m.d.comb += fits.eq((self.word[:32] == self.crc) & pointer.any() & ~self.has)
        with m.If(self.word_comes):
            with m.If(fits):
                m.d.sync += [
                    self.has.eq(1),
                    self.place.eq(self.first + self.count),
                    self.pointer.eq(pointer),
                ]
            with m.If(self.last):
                m.next = "IDLE"
                with m.If(self.has | fits):
                    m.next = "ASK_ENTRY"

    def _ask_entry(self, m):
        words = PATH_OFFSET // 8 + ((self.length + 7) >> 3)
        shift = (ENTRY_BYTES - 1).bit_length()
        self._ask(m, Cat(C(0, shift), self.pointer[shift:]), words)

    def _entry(self, m):
        entry, head = self.entry, PATH_OFFSET // 8
        read = self.words.read_port(domain="comb")
        raw = entry.as_value()
        differs = Signal()
        m.d.comb += [self.busy.eq(1), read.addr.eq(self.count - head)]
        with m.If(self.count == 0):
            head_word = data.View(_FirstWordLayout, self.word)
            m.d.comb += differs.eq(head_word.path_length != self.length)
        with m.Elif(self.count >= head):
            m.d.comb += differs.eq(self.word != read.data)
        with m.If(self.word_comes):
            for k in range(head):
                with m.If(self.count == k):
                    m.d.sync += raw.word_select(k, 64).eq(self.word)
            with m.If(differs):
                m.d.sync += self.equal.eq(0)
            with m.If(self.last):
                m.next = "IDLE"
                with m.If(self.equal & ~differs):
                    m.d.sync += [self.found.eq(entry.ready), self.cold.eq(~entry.ready)]
                with m.Elif(self.place != SLOTS - 1):
                    m.d.sync += self.first.eq(self.place + 1)
                    m.next = "ASK_BUCKET"
