"""Proof of ``cores/tcp/lists.py``: a list is a queue, wherever its entries lie.

Two lists of up to 8 entries with ends of 4 and bursts of 2, so that a full list is in all places
at once. One list, which the solver picks, is followed: what leaves it is what was pushed, in order,
none lost, doubled or invented, while the other one shares the block RAM and the bursts. Its entries
lie, in order, in the head register, on the way there, in the front ring, in memory, on the way to
memory, in the rear ring and before it; the invariants say which entry is where.

The memory answers after any time, and holds nothing of a burst that is written until its ``wdone``;
so a block that were read too early would come out wrong.

Not proved: that a head comes within so many cycles, and turns among lists (tests measure both);
other sizes and widths; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.tcp import lists

from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]

SESSIONS, BLOCK, RING = 8, 2, 4
BITS, WORDS = 3, 2  # of a session's number and of a ring's place; of a block's number


def _moves(stream):
    return stream.valid & stream.ready


class Memory:
    """The entries of the followed list, and what is on its way to and from any list."""

    def __init__(self, m, mem, mine, per_beat):
        beats = BLOCK // per_beat
        self.cells = [Signal(BITS, name=f"cell{k}") for k in range(SESSIONS)]
        #: A write was accepted; its beats so far, and what they hold. A read; its beats so far.
        self.writes, self.reads = Signal(), Signal()
        self.put, self.got = Signal(2), Signal(2)
        self.coming = [Signal(BITS, name=f"coming{k}") for k in range(BLOCK)]
        self.going = [Signal(BITS, name=f"going{k}") for k in range(BLOCK)]
        cmd, wdata, rdata = mem.cmd, mem.wdata, mem.rdata
        free(m, cmd.ready, wdata.ready, rdata.valid, rdata.payload, mem.wdone.valid)
        for name in ("cmd", "wdata"):
            stream_rules(m, getattr(mem, name), Assert, name)
        stream_rules(m, rdata, Assume, "rdata")
        block = cmd.payload.addr[3:5]
        self.write_block, self.read_block = Signal(2), Signal(2)
        self.write_mine, self.read_mine = Signal(), Signal()
        with m.If(_moves(cmd)):
            m.d.comb += Assert(cmd.payload.beats == beats - 1)
            with m.If(cmd.payload.write):
                m.d.comb += Assert(~self.writes)
                m.d.sync += [self.writes.eq(1), self.put.eq(0), self.write_block.eq(block)]
                m.d.sync += self.write_mine.eq(cmd.payload.addr[5] == mine)
            with m.Else():
                m.d.comb += Assert(~self.reads)
                m.d.sync += [self.reads.eq(1), self.got.eq(0), self.read_block.eq(block)]
                m.d.sync += self.read_mine.eq(cmd.payload.addr[5] == mine)
                for k, cell in enumerate(self.going):
                    m.d.sync += cell.eq(Array(self.cells)[block * BLOCK + k])
        m.d.comb += Assume(~wdata.ready | (self.writes & (self.put != beats)))
        with m.If(_moves(wdata)):
            m.d.sync += self.put.eq(self.put + 1)
            m.d.comb += Assert(wdata.payload.last == (self.put == beats - 1))
            m.d.comb += Assert(wdata.payload.strb.all())
            for k, cell in enumerate(self.coming):
                with m.If(self.put == k // per_beat):
                    m.d.sync += cell.eq(wdata.payload.data.word_select(k % per_beat, 32)[:BITS])
        m.d.comb += Assume(~mem.wdone.valid | (self.writes & (self.put == beats)))
        with m.If(mem.wdone.valid):
            m.d.comb += Assert(mem.wdone.ready)
            m.d.sync += self.writes.eq(0)
            with m.If(self.write_mine):
                for k, cell in enumerate(self.cells):
                    with m.If(self.write_block == k // BLOCK):
                        m.d.sync += cell.eq(self.coming[k % BLOCK])
        m.d.comb += Assume(~rdata.valid | self.reads)
        m.d.comb += Assume(rdata.payload.last == (self.got == beats - 1))
        for k, cell in enumerate(self.going):
            with m.If(self.read_mine & (self.got == k // per_beat)):
                m.d.comb += Assume(rdata.payload.data.word_select(k % per_beat, 32)[:BITS] == cell)
        with m.If(_moves(rdata)):
            m.d.sync += [self.got.eq(self.got + 1), self.reads.eq(~rdata.payload.last)]


class List:
    """What there is of one list, ``which``, and where."""

    def __init__(self, m, dut, inside, memory, which, name):
        def pick(flags):
            return flags.bit_select(which, 1)

        def at(part, width):
            port = inside.parts[part].read_port(domain="comb")
            value = Signal(width, name=f"{name}_{part}")
            m.d.comb += [port.addr.eq(which), value.eq(port.data)]
            return value

        def number(what, width, value):
            signal = Signal(width, name=f"{name}_{what}")
            m.d.comb += signal.eq(value)
            return signal

        ends = [at(f"end{k}", BITS) for k in range(2)]
        self.starts = [at(f"start{k}", BITS) for k in range(2)]
        self.refilled, self.spilled = at("refilled", 2), at("spilled", 2)
        self.flip, self.deep = number("flip", 1, pick(dut.flip)), number("deep", 1, pick(dut.deep))
        self.todo, self.valid = pick(dut.todo), pick(dut.valid)
        self.fetched, self.some = pick(inside.fetched), pick(dut.some)
        levels = [(ends[k] - self.starts[k])[:BITS] for k in range(2)]
        self.front = number("front", BITS, Mux(self.flip, levels[1], levels[0]))
        self.rear = number("rear", BITS, Mux(self.flip, levels[0], levels[1]))
        self.spilling = number("spilling", 1, dut.spill.active & (dut.spill.list == which))
        self.refilling = number("refilling", 1, dut.refill.active & (dut.refill.list == which))
        #: Blocks in memory or on the way; entries of a refill that are in the front already.
        blocks = (self.spilled - self.refilled - 1)[:2] + 1
        self.blocks = number("blocks", 3, Mux(self.deep, blocks, 0))
        done = Mux(memory.reads, memory.got, 0) * dut.per_beat + inside.refill_lane
        self.done = number("done", 3, Mux(self.refilling, done, 0))
        left = number("left", 3, Mux(self.spilling, inside.left, 0))
        self.out = number("out", 6, self.blocks * BLOCK - left - self.done)
        held = self.valid + self.fetched + self.front + self.out + self.rear + self.todo
        self.total = number("total", 7, held)
        self._invariants(m, dut, left)

    def _invariants(self, m, dut, left):
        m.d.comb += [
            Assert(self.total <= SESSIONS),
            Assert(~(self.valid & self.fetched)),
            Assert(self.front <= RING),
            Assert(self.rear <= RING),
            Assert(self.deep | (self.spilled == self.refilled)),
            Assert(self.deep | ~(self.spilling | self.refilling)),
            Assert(~self.spilling | (self.rear >= left)),
            Assert(~self.spilling | (dut.spill.block == (self.spilled - 1)[:2])),
            Assert(~self.refilling | (dut.refill.block == self.refilled)),
            Assert(~self.refilling | (self.front + BLOCK - self.done <= RING)),
            Assert(~(self.spilling & self.refilling) | (self.blocks >= 2)),
            Assert(self.some | (self.front == 0)),
            Assert(self.some | self.deep | (self.rear == 0)),
        ]
        with m.If(~dut.up):
            m.d.comb += Assert(self.total == 0)


class ListProof(Elaboratable):
    """``course``: list 0 is pushed whenever it may be, which is how mutants are caught soonest."""

    def __init__(self, dut, course=False):
        self.dut, self.course = dut, course

    def elaborate(self, platform):
        m = new_harness()
        dut, push = self.dut, self.dut.push
        self.inside = Inside(m, dut)
        self.mine = mine = Signal()
        m.d.comb += mine.eq(AnyConst(1))
        free(m, push.valid, push.payload, dut.pop)
        stream_rules(m, push, Assume, "push")
        m.d.comb += Assume((dut.pop & ~dut.valid) == 0)
        self.memory = Memory(m, dut.mem, mine, dut.per_beat)
        self.list = List(m, dut, self.inside, self.memory, mine, "mine")
        other = List(m, dut, self.inside, self.memory, ~mine, "other")
        self.queue = queue = Queue(
            m,
            puts=_moves(push) & push.payload.lists.bit_select(mine, 1),
            put_word=push.payload.session,
            gets=dut.pop.bit_select(mine, 1),
            get_valid=self.list.valid,
            get_word=Mux(mine, dut.head[1], dut.head[0]),
            capacity=SESSIONS,
        )
        for which, found in ((mine, self.list), (~mine, other)):
            asked = push.valid & push.payload.lists.bit_select(which, 1)
            m.d.comb += Assume(~asked | (found.total < SESSIONS))
        self._control(m)
        self._places(m)
        m.d.comb += Assert(self.list.total == queue.level)
        m.d.comb += Assert(dut.busy.bit_select(mine, 1) | (queue.level == 0))
        with m.If(~dut.up):
            m.d.comb += Assert(~dut.spill.active & ~dut.refill.active & (dut.todo == 0))
        pushing, memory, mem = Signal(), self.memory, dut.mem
        asks = (push.valid == (self.list.total < SESSIONS - 1)) & (push.payload.lists == 1)
        m.d.comb += pushing.eq((mine == 0) & asks & (push.payload.session == queue.sent[:BITS]))
        if self.course:
            m.d.comb += Assume(pushing)
        # One way to get there, told so that it is found soon: an entry has been in memory.
        steady, back = Signal(init=1), Signal()
        written = memory.writes & (memory.put == BLOCK // dut.per_beat)
        swift = mem.cmd.ready & (mem.rdata.valid == memory.reads) & (mem.wdone.valid == written)
        swift &= mem.wdata.ready == (memory.writes & ~written)
        m.d.sync += steady.eq(steady & pushing & swift & (dut.pop == dut.valid))
        with m.If(self.list.refilling & _moves(mem.rdata)):
            m.d.sync += back.eq(1)
        m.d.comb += Cover(steady & back)
        return m

    def _control(self, m):
        """What the bursts are doing agrees with what the memory was asked for."""
        dut, inside, memory, cmd = self.dut, self.inside, self.memory, self.dut.mem.cmd
        spill, refill, left = dut.spill, dut.refill, inside.left
        lane, came, filled = inside.spill_lane, inside.came, inside.filled
        wdata, per_beat, beats = dut.mem.wdata, dut.per_beat, BLOCK // dut.per_beat
        read = Signal(3)  # entries of the spill that have been read
        m.d.comb += read.eq(BLOCK - left)
        self.read = read
        waits = Signal(2)  # commands at the port: of a read, of a write
        m.d.comb += waits.eq(Mux(cmd.valid, Mux(cmd.payload.write, 2, 1), 0))
        asked = ((refill, waits[0], memory.reads), (spill, waits[1], memory.writes))
        for burst, at_port, begun in asked:
            m.d.comb += [
                Assert(burst.active == (burst.asks | at_port | begun)),
                Assert((burst.asks + at_port + begun)[:2] <= 1),
            ]
            addr = cmd.payload.addr
            with m.If(at_port):
                m.d.comb += Assert((addr[3:5] == burst.block) & (addr[5] == burst.list))
                m.d.comb += Assert(cmd.payload.beats == beats - 1)
        m.d.comb += [
            Assert(left <= BLOCK),
            Assert(~memory.writes | (memory.write_block == spill.block)),
            Assert(~memory.writes | (memory.write_mine == (spill.list == self.mine))),
            Assert(~memory.reads | (memory.read_block == refill.block)),
            Assert(~memory.reads | (memory.read_mine == (refill.list == self.mine))),
            Assert(memory.put <= beats),
            Assert(~memory.reads | (memory.got < beats)),
            Assert(lane == (read & (per_beat - 1))),
            Assert(filled == (came & (lane == 0))),
            Assert(~(spill.asks & spill.active) | (left == BLOCK)),
        ]
        put = Mux(memory.writes, memory.put, 0)
        shown = put * per_beat + Mux(wdata.valid, per_beat, 0) + Mux(filled, per_beat, lane)
        with m.If(spill.active):
            m.d.comb += Assert(shown == read)
            m.d.comb += Assert(~wdata.valid | (wdata.payload.last == (put == beats - 1)))
        with m.Else():
            m.d.comb += [Assert((left == 0) | (left == BLOCK)), Assert(~wdata.valid & ~came)]
            m.d.comb += Assert(lane == 0)
        if per_beat == 1:
            m.d.comb += Assert(inside.refill_lane == 0)
        with m.If(~refill.active):
            m.d.comb += Assert(inside.refill_lane == 0)
        with m.If(refill.asks | waits[0]):
            m.d.comb += Assert(inside.refill_lane == 0)

    def _places(self, m):
        """Where the chosen entry is: so many leave before it."""
        dut, queue, word, place = self.dut, self.queue, self.queue.word, Signal(6)
        ram, mine = self.inside.parts["ram"].read_port(domain="comb"), self.list
        memory, data = self.memory, dut.ram_r.data
        begin = Signal(6)
        m.d.comb += [place.eq(queue.place), begin.eq(mine.valid + mine.fetched)]
        front, rear = begin + mine.front, begin + mine.front + mine.out
        todo = rear + mine.rear
        starts = Mux(mine.flip, mine.starts[1], mine.starts[0])
        rears = Mux(mine.flip, mine.starts[0], mine.starts[1])
        index, at = Signal(6), Signal(BITS)
        m.d.comb += [
            index.eq(place - front + mine.done),
            at.eq(mine.refilled * BLOCK + index),
            ram.addr.eq(Cat((starts + place - begin)[:2], mine.flip, self.mine)),
        ]
        entry = index[:1]  # of its block
        transit = mine.spilling & (index >= (mine.blocks - 1) * BLOCK)
        with m.If(queue.inside):
            with m.If(place < begin):
                with m.If(~mine.valid):
                    m.d.comb += Assert(data == word)
            with m.Elif(place < front):
                m.d.comb += Assert(ram.data == word)
            with m.Elif(place < rear):
                with m.If(transit):
                    self._transit(m, entry, word, data)
                with m.Else():
                    m.d.comb += Assert(Array(memory.cells)[at] == word)
                with m.If(mine.refilling & memory.reads & (index < BLOCK)):
                    m.d.comb += Assert(Array(memory.going)[entry] == word)
            with m.Elif(place < todo):
                m.d.comb += ram.addr.eq(Cat((rears + place - rear)[:2], ~mine.flip, self.mine))
                m.d.comb += Assert(ram.data == word)
            with m.Else():
                m.d.comb += Assert(dut.session == word)

    def _transit(self, m, entry, word, data):
        """Of a block that is being spilled: taken by the memory, at the port, or on the way."""
        memory, wdata, inside = self.memory, self.dut.mem.wdata, self.inside
        per_beat = self.dut.per_beat
        put = Mux(memory.writes, memory.put, 0)
        at = entry & (per_beat - 1)
        shown = wdata.payload.data.word_select(at, 32)[:BITS]
        with m.If(entry < put * per_beat):
            m.d.comb += Assert(Array(memory.coming)[entry] == word)
        with m.Elif(wdata.valid & (entry < (put + 1) * per_beat)):
            m.d.comb += Assert(shown == word)
        with m.Elif(inside.came & (entry == (self.read - 1)[:1])):
            m.d.comb += Assert(data == word)
        if per_beat > 1:
            with m.Else():
                m.d.comb += Assert(inside.lane0 == word)


MUTANTS = (
    Mutant(
        "overtakes_the_rear",
        "direct.eq(~side.deep & (side.rear == 0) & (side.front != self.ring))",
        "direct.eq(~side.deep & (side.front != self.ring))",
        16,
    ),
    Mutant(
        "overfills_the_front",
        "~side.deep & (side.rear == 0) & (side.front != self.ring)",
        "~side.deep & (side.rear == 0)",
        16,
    ),
    Mutant("fetches_twice", "self.some & ~self.valid & ~fetched", "self.some & ~self.valid", 12),
    Mutant("spills_the_front", "ring = side.flip ^ side.back", "ring = side.flip", 20),
    Mutant("forgets_what_it_spilled", "self.sinks.eq(own)", "self.sinks.eq(0)", 18),
    Mutant(
        "reads_before_wdone",
        "(side.front <= self.ring - self.block) & ~unsafe",
        "side.front <= self.ring - self.block",
        22,
    ),
)


def _proof(width, mutants):
    def build(cores):
        dut = cores.ListServer(2, SESSIONS, width, block=BLOCK, places=4 * RING)
        return ListProof(dut, course=cores is not lists)

    return Proof(
        name=f"tcp_lists_{width}",
        core=f"cores.tcp.lists.ListServer(2 lists, 8 sessions, {width} bits, bursts of 2)",
        says="a list is a queue: what is popped is what was pushed, once, in order, wherever the "
        "entries lie; one that is not busy is empty",
        module="trebuchet.cores.tcp.lists",
        build=build,
        depth=2,
        cover_depth=30,
        mutants=mutants,
        assumes="a list never holds more than all sessions; only valid heads are popped; the "
        "memory keeps the rules of cores/memory.py",
        not_proved="when a head comes, turns among lists; other sizes; a reset while running",
    )


PROOFS = (_proof(64, MUTANTS), _proof(32, MUTANTS[:1]))
