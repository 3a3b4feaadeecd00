"""Proofs of the adapter to LiteDRAM's native port in ``cores/litedram_adapter.py``.

*Write*: commands go to the queue of their direction, cut right; the beats of a burst are packed
into native words, each byte and its enable at the place its address says, and words and their
addresses are queued together, in order; a burst is reported with its tag when its last word is
taken; no more are under way than there is room to report.

*Read*: a burst asks for exactly the words it touches, in order, and never for more than there is
room for; its beats are cut out of the words that come back, in order, with tag and end.

*Turns*: each command offered is one that was asked for, once, and stays until it is taken; the bus
turns only for want of work or after 16 commands, and then does: nobody waits for more.

*Levels*: if LiteDRAM takes words of data only for write commands that it accepted, it always finds
one; if it answers only read commands that it accepted, there always is a place for the answer.

The Amaranth FIFOs between the parts are replaced by anything that keeps their handshakes, but for
those whose levels the last proof is about.

Not proved: those FIFOs; LiteDRAM; behaviour under a reset while running; other widths.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal
from amaranth.lib import data

from .kit.proof import Mutant, Proof
from .kit.standins import elaborated, stand_in
from .stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]

WIDTH, NATIVE, TAG, ADDR, DEPTH, BEATS = 32, 64, 1, 4, 16, 6
RATIO, LANE = 2, 1
TURN, BURSTS = 16, 8
BURST = data.StructLayout({"addr": ADDR, "lane": LANE, "beats": BEATS, "tag": TAG})
CUT = data.StructLayout({"lane": LANE, "beats": BEATS, "tag": TAG})
WORD = data.StructLayout({"data": NATIVE, "we": NATIVE // 8, "last": 1, "tag": TAG})
FIFOS = ("writes", "reads", "words", "write_addr", "done", "back", "unpack")


class _Adapter(Elaboratable):
    """The adapter with its FIFOs replaced, but for those in ``real``."""

    real = ()

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        self.fifos = elaborated(dut).submodules
        for name in FIFOS:
            if name in self.real:
                elaborated(self.fifos[name])
            else:
                stand_in(m, self.fifos[name])
        mem, native = dut.mem, dut.native
        free(m, mem.cmd.valid, mem.cmd.payload, mem.wdata.valid, mem.wdata.payload)
        free(m, mem.rdata.ready, mem.wdone.ready)
        free(m, native.cmd.ready, native.wdata.ready, native.rdata.valid, native.rdata.payload)
        stream_rules(m, mem.cmd, Assume, "cmd")
        stream_rules(m, mem.wdata, Assume, "wdata")
        self.spec(m, mem, native)
        return m


class WriteProof(_Adapter):
    def spec(self, m, mem, native):
        writes, reads = self.fifos.writes, self.fifos.reads
        cmd = mem.cmd.payload
        # A byte address is, from the top, a native word's, a beat's in it, and a byte's in that.
        n = WIDTH // 8
        m.d.comb += Assert(mem.cmd.ready == Mux(cmd.write, writes.w_rdy, reads.w_rdy))
        for fifo, mine in ((writes, cmd.write), (reads, ~cmd.write)):
            m.d.comb += Assert((fifo.w_en & fifo.w_rdy) == (mem.cmd.valid & mem.cmd.ready & mine))
            cut = data.View(BURST, fifo.w_data)
            with m.If(fifo.w_en):
                m.d.comb += [
                    Assert(cut.addr == (cmd.addr // (n * RATIO))[:ADDR]),
                    Assert(cut.lane == (cmd.addr // n) % RATIO),
                    Assert(cut.beats == cmd.beats),
                    Assert(cut.tag == cmd.tag),
                ]
        self._pack(m, mem.wdata)
        self._report(m, mem.wdone, native.wdata)

    def _pack(self, m, wdata):
        fifos, n = self.fifos, WIDTH // 8
        writes, words, addrs = fifos.writes, fifos.words, fifos.write_addr
        head, beat = data.View(BURST, writes.r_data), wdata.payload
        open_, full = Signal(), Signal()  # beats are missing; a word is complete
        at, left, tag = Signal(ADDR + LANE), Signal(BEATS), Signal(TAG)
        word, word_addr = Signal(WORD), Signal(ADDR)
        starts = writes.r_en & writes.r_rdy
        push = words.w_en
        moves = wdata.valid & wdata.ready
        bursts = self.bursts = Signal(range(BURSTS + 1), name="bursts_")
        m.d.comb += [
            Assert(starts == (~open_ & writes.r_rdy & (bursts != BURSTS))),
            Assert(words.w_en == addrs.w_en),
            Assert(words.w_en == (full & words.w_rdy & addrs.w_rdy)),
            Assert(wdata.ready == (open_ & (~full | push))),
        ]
        with m.If(push):
            m.d.sync += [full.eq(0), word.we.eq(0)]
        with m.If(starts):
            m.d.sync += [open_.eq(1), at.eq(Cat(head.lane, head.addr))]
            m.d.sync += [left.eq(head.beats), tag.eq(head.tag)]
        with m.If(moves):
            ends = left == 0
            lane = at % RATIO
            m.d.sync += [
                word.data.word_select(lane, WIDTH).eq(beat.data),
                word.we.word_select(lane, n).eq(beat.strb),
                word.last.eq(ends),
                word.tag.eq(tag),
                word_addr.eq(at // RATIO),
                full.eq(ends | (lane == RATIO - 1)),
                at.eq(at + 1),
                left.eq(left - 1),
                open_.eq(~ends),
            ]
        sent = data.View(WORD, words.w_data)
        with m.If(push):
            m.d.comb += [
                Assert(sent.we == word.we),
                Assert(sent.last == word.last),
                Assert(sent.tag == word.tag),
                Assert(addrs.w_data == word_addr),
            ]
            for k in range(NATIVE // 8):
                same = sent.data.word_select(k, 8) == word.data.word_select(k, 8)
                m.d.comb += Assert(~word.we[k] | same)
        second = Signal()
        with m.If(push & ~word.last & word.we.all()):
            m.d.sync += second.eq(1)
        m.d.comb += Cover(second & push & word.last & (word.we == 0x0F) & (word.tag == 1))
        self._invariants(m, open_, at, left, tag, full, word, word_addr)

    def _invariants(self, m, open_, at, left, tag, full, word, word_addr):
        active, addr, lane, left_, tag_, full_, packed, packed_addr, bursts = self.dut.packer
        m.d.comb += [
            Assert(active == open_),
            Assert(full_ == full),
            Assert(packed.we == word.we),
            Assert(bursts == self.bursts),
            Assert(bursts <= BURSTS),
            Assert(~open_ | (Cat(lane, addr) == at)),
            Assert(~open_ | ((left_ == left) & (tag_ == tag))),
        ]
        with m.If(full):
            m.d.comb += [
                Assert((packed.last == word.last) & (packed.tag == word.tag)),
                Assert(packed_addr == word_addr),
            ]
        for k in range(NATIVE // 8):
            same = packed.data.word_select(k, 8) == word.data.word_select(k, 8)
            m.d.comb += Assert(~word.we[k] | same)

    def _report(self, m, wdone, wdata):
        words, done, writes = self.fifos.words, self.fifos.done, self.fifos.writes
        head = data.View(WORD, words.r_data)
        told = wdone.valid & wdone.ready
        starts = writes.r_en & writes.r_rdy
        m.d.sync += self.bursts.eq(self.bursts + starts - told)
        m.d.comb += [
            Assume(~told | (self.bursts != 0)),  # as many are reported as came in
            Assert(wdata.valid == words.r_rdy),
            Assert(words.r_en == wdata.ready),
            Assert(done.w_en == (words.r_rdy & wdata.ready & head.last)),
            Assert(wdone.valid == done.r_rdy),
            Assert(done.r_en == wdone.ready),
            Assert(done.depth >= BURSTS),
        ]
        with m.If(wdata.valid):
            m.d.comb += Assert(wdata.payload.data == head.data)
            m.d.comb += Assert(wdata.payload.we == head.we)
        with m.If(done.w_en):
            m.d.comb += Assert(done.w_data == head.tag)
        with m.If(wdone.valid):
            m.d.comb += Assert(wdone.payload.tag == done.r_data)


class ReadProof(_Adapter):
    def spec(self, m, mem, native):
        self._ask(m, native)
        self._unpack(m, mem.rdata)
        back = self.fifos.back
        m.d.comb += [
            Assert(native.rdata.ready),
            Assert(back.w_en == native.rdata.valid),
            Assert(back.w_data == native.rdata.payload.data),
        ]

    def _ask(self, m, native):
        dut, fifos = self.dut, self.fifos
        reads, unpack, back = fifos.reads, fifos.unpack, fifos.back
        head, cut = data.View(BURST, reads.r_data), data.View(CUT, unpack.w_data)
        starts = reads.r_en & reads.r_rdy
        active, addr, words, reserved = dut.asker
        request = dut.asks
        next_, left = Signal(ADDR), Signal(BEATS + 2)  # words still to ask for
        taken = request.valid & request.ready
        room = Signal(range(DEPTH + 1), init=DEPTH)
        m.d.comb += [
            Assert(starts == ((left == 0) & reads.r_rdy & unpack.w_rdy)),
            Assert(unpack.w_en == starts),
            Assert(request.valid == ((left != 0) & (room != 0))),
            Assert(~request.valid | (request.payload.addr == next_)),
            Assert(back.depth == DEPTH),
        ]
        with m.If(starts):
            first = head.lane
            after = first + head.beats + 1  # the first beat that is not asked for
            m.d.sync += [next_.eq(head.addr), left.eq((after + RATIO - 1) // RATIO)]
            for name in ("lane", "beats", "tag"):
                m.d.comb += Assert(cut[name] == head[name])
        with m.If(taken):
            m.d.sync += [next_.eq(next_ + 1), left.eq(left - 1)]
        used = back.r_en & back.r_rdy
        m.d.sync += room.eq(room + used - taken)
        m.d.comb += Assume(~used | (room != DEPTH))  # no word comes that was not asked for
        m.d.comb += [  # invariants
            Assert(active == (left != 0)),
            Assert(~active | ((words + 1 == left) & (addr == next_))),
            Assert(reserved + room == DEPTH),
        ]
        m.d.comb += Cover(taken & (left == 1) & (room == 1))

    def _unpack(self, m, rdata):
        back, unpack = self.fifos.back, self.fifos.unpack
        head = data.View(CUT, unpack.r_data)
        stream_rules(m, rdata, Assert, "rdata")
        came, words = Signal(BEATS), Signal(BEATS)  # of the burst at the head: beats, whole words
        at = Signal(BEATS + 1)
        m.d.comb += at.eq(head.lane + came)
        moves = back.r_rdy & unpack.r_rdy & (~rdata.valid | rdata.ready)
        ends = came == head.beats
        last_of_word = at % RATIO == RATIO - 1
        used = back.r_en
        m.d.comb += [
            Assert(used == (moves & (ends | last_of_word))),
            Assert((unpack.r_en & unpack.r_rdy) == (moves & ends)),
        ]
        with m.If(moves):
            m.d.sync += [came.eq(Mux(ends, 0, came + 1))]
            m.d.sync += words.eq(Mux(ends, 0, words + used))
            # As many words are used as were asked for.
            m.d.comb += Assert(~ends | (words == (head.lane + head.beats) // RATIO))
        put = Cat(back.r_data.word_select(at % RATIO, WIDTH), head.tag, ends)
        queue = Queue(
            m,
            puts=moves,
            put_word=put,
            gets=rdata.valid & rdata.ready,
            get_valid=rdata.valid,
            get_word=rdata.payload,
            capacity=1,
        )
        m.d.comb += Assert(rdata.valid == (queue.level != 0))
        m.d.comb += Cover(moves & ends & (words == 2) & (head.lane == 1))
        fresh, lane, left = self.dut.unpacker  # invariants
        m.d.comb += [
            Assert(fresh == (came == 0)),
            Assert(words == at // RATIO),
            Assert(fresh | unpack.r_rdy),
            Assert(fresh | ((lane == at % RATIO) & (left == head.beats - came))),
            Assert(~unpack.r_rdy | (came <= head.beats)),
        ]


class TurnsProof(_Adapter):
    def spec(self, m, mem, native):
        addrs, request, cmd = self.fifos.write_addr, self.dut.asks, native.cmd
        writes, reads = addrs.r_en & addrs.r_rdy, request.valid & request.ready
        stream_rules(m, cmd, Assert, "native")
        queue = Queue(
            m,
            puts=writes | reads,
            put_word=Mux(writes, Cat(1, addrs.r_data), Cat(0, request.payload.addr)),
            gets=cmd.valid & cmd.ready,
            get_valid=cmd.valid,
            get_word=cmd.payload,
            capacity=1,
        )
        able = ~cmd.valid | cmd.ready
        some = addrs.r_rdy | request.valid
        m.d.comb += [
            Assert(cmd.valid == (queue.level != 0)),
            Assert(~(writes & reads)),
            Assert((writes | reads) == (able & some)),
        ]
        # Commands in a row, and which way; how many went the other way while one waited.
        way, run = Signal(), Signal(range(TURN + 1), init=1)
        with m.If(writes | reads):
            m.d.sync += way.eq(writes)
            m.d.sync += run.eq(Mux(way != writes, 1, Mux(run == TURN, TURN, run + 1)))
            both = addrs.r_rdy & request.valid
            m.d.comb += Assert(~both | ((way != writes) == (run == TURN)))
        writing, turn = self.dut.turns
        m.d.comb += [Assert(writing == way), Assert(turn + 1 == run), Assert(run != 0)]
        for name, waits, others in (
            ("write", addrs.r_rdy & ~writes, reads),
            ("read", request.valid & ~reads, writes),
        ):
            passed = Signal(range(TURN + 2), name=f"{name}_passed")
            with m.If(~waits):
                m.d.sync += passed.eq(0)
            with m.Elif(others):
                m.d.sync += passed.eq(passed + 1)
                m.d.comb += Assert(passed < TURN)
            mine = way == (name == "write")
            m.d.comb += Assert((passed == 0) | (~mine & (passed <= run)))
        m.d.comb += Cover((run == TURN) & writes & (way == 0))


class LevelsProof(_Adapter):
    real = ("words", "write_addr", "back")

    def spec(self, m, mem, native):
        fifos, cmd = self.fifos, native.cmd
        accepted = cmd.valid & cmd.ready
        due, owed = Signal(range(32)), Signal(range(32))  # words to be taken, and to be answered
        m.d.sync += due.eq(due + (accepted & cmd.payload.we) - native.wdata.ready)
        m.d.sync += owed.eq(owed + (accepted & ~cmd.payload.we) - native.rdata.valid)
        words, addrs, back = fifos.words, fifos.write_addr, fifos.back
        m.d.comb += [
            Assume(~native.wdata.ready | (due != 0)),
            Assume(~native.rdata.valid | (owed != 0)),
            Assert(~native.wdata.ready | native.wdata.valid),
            Assert(~native.rdata.valid | back.w_rdy),
        ]
        reserved = self.dut.asker[3]
        m.d.comb += [  # invariants
            Assert(words.level == addrs.level + (cmd.valid & cmd.payload.we) + due),
            Assert(reserved == back.level + (cmd.valid & ~cmd.payload.we) + owed),
            Assert(reserved <= DEPTH),
            Assert(back.r_rdy | (back.level <= 1)),
            Cover((words.level == words.depth) & (due == 3)),
            Cover(back.level == 4),
        ]


_MODULE = "trebuchet.cores.litedram_adapter"
_ASSUMES = "the stream rules at the memory port; handshakes of the FIFOs"


def _adapter(cores):
    return cores.LiteDramAdapter(WIDTH, TAG, NATIVE, ADDR, DEPTH)


PROOFS = (
    Proof(
        name="litedram_write",
        core="cores.litedram_adapter.LiteDramAdapter(32, 1, 64, 4, 16), writes",
        says="each byte and its enable gets into the word of its address; bursts are reported",
        module=_MODULE,
        build=lambda cores: WriteProof(_adapter(cores)),
        depth=2,
        cover_depth=14,
        mutants=(
            Mutant("keeps_enables", "[full.eq(0), packed.we.eq(0)]", "[full.eq(0)]"),
            Mutant(
                "waits_for_whole_words", "full.eq(ends_word | ends_burst)", "full.eq(ends_word)"
            ),
            Mutant("address_too_early", "addr.eq(addr + ends_word)", "addr.eq(addr + 1)"),
            Mutant("reports_each_word", "native.ready & sent.last", "native.ready"),
            Mutant(
                "wrong_lane", "cmd.p.addr[lane_at:word_at]", "cmd.p.addr[lane_at + 1 : word_at + 1]"
            ),
        ),
        assumes=_ASSUMES,
    ),
    Proof(
        name="litedram_read",
        core="cores.litedram_adapter.LiteDramAdapter(32, 1, 64, 4, 16), reads",
        says="a burst asks for the words it touches and is cut out of them in order",
        module=_MODULE,
        build=lambda cores: ReadProof(_adapter(cores)),
        depth=2,
        cover_depth=24,
        mutants=(
            Mutant("forgets_the_lane", "(head.cut.lane + head.cut.beats)", "(head.cut.beats)"),
            Mutant("reserves_nothing", "reserved + taken - pop", "reserved - pop"),
            Mutant(
                "keeps_the_word",
                "(ends | (lane_now == self._ratio - 1))",
                "(lane_now == self._ratio - 1)",
            ),
            Mutant("starts_at_0", "Mux(fresh, head.lane, lane)", "Mux(fresh, 0, lane)"),
        ),
        assumes=_ASSUMES,
    ),
    Proof(
        name="litedram_turns",
        core="cores.litedram_adapter.LiteDramAdapter(32, 1, 64, 4, 16), commands",
        says="each command is offered once and stays; the bus turns after 16, and only then",
        module=_MODULE,
        build=lambda cores: TurnsProof(_adapter(cores)),
        depth=2,
        cover_depth=24,
        mutants=(
            Mutant(
                "takes_both", "read_addr.ready.eq(free & ~choose_write)", "read_addr.ready.eq(free)"
            ),
            Mutant("never_tired", "tired = turn == TURN - 1", "tired = turn == TURN", 24),
            Mutant(
                "swaps_addresses",
                "Mux(choose_write, write_addr.r_data, read_addr.p.addr)",
                "Mux(writing, write_addr.r_data, read_addr.p.addr)",
                context="writing, turn",
            ),
        ),
        assumes=_ASSUMES,
    ),
    Proof(
        name="litedram_levels",
        core="cores.litedram_adapter.LiteDramAdapter(32, 1, 64, 4, 16), levels",
        says="data for each write command are there before it; answers to reads always have room",
        module=_MODULE,
        build=lambda cores: LevelsProof(_adapter(cores)),
        depth=2,
        cover_depth=30,
        mutants=(
            Mutant(
                "wrong_direction",
                "cmd.p.we.eq(choose_write)",
                "cmd.p.we.eq(writing)",
                context="writing, turn",
            ),
            Mutant("frees_twice", "reserved + taken - pop", "reserved + taken - 2 * pop", 16),
        ),
        assumes=f"{_ASSUMES}; LiteDRAM takes and gives only what it was asked for",
    ),
)
