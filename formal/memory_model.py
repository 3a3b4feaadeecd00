"""Proof of the memory model in ``cores/memory_model.py``, with four words and two bursts each way.

Against an abstract memory, one arbitrary byte of it: each beat of write data is stored at the next
address of the oldest write command that still lacks data, byte for byte as ``strb`` says; bursts
are reported once, in order, with their tag, when their last beat is stored and ``latency`` is over,
no earlier and no later. Each read command is answered by one burst of as many beats as it asked
for, from its address on, wrapping; never mixed with another burst's beats; bursts of one tag in
order of their commands; one that finds nothing under way comes after ``latency`` cycles and, where
bursts overtake, up to 31 more. The data are what the memory held in the cycle before they came,
whatever delay was drawn. A command is taken whenever there is room for it.

Not proved: an upper bound of a read's delay behind others; the Verilog RAM that may stand for the
storage; behaviour under a reset while running; other sizes.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from .buffers import fifo_invariants
from .kit.proof import Mutant, Proof
from .kit.standins import elaborated
from .stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]


def _moves(stream):
    return stream.valid & stream.ready


class MemoryModelProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        self.inner = elaborated(dut)
        port, n = dut.port, dut.width // 8
        free(m, port.cmd.valid, port.cmd.payload, port.wdata.valid, port.wdata.payload)
        free(m, port.rdata.ready, port.wdone.ready)
        stream_rules(m, port.cmd, Assume, "cmd")
        stream_rules(m, port.wdata, Assume, "wdata")
        stream_rules(m, port.rdata, Assert, "rdata")
        stream_rules(m, port.wdone, Assert, "wdone")
        # The byte that the proof looks at, and what it must hold.
        self.words = dut.size // n
        self.bits = (self.words - 1).bit_length()
        self.at, self.lane = Signal(self.bits, name="at"), Signal(range(n), name="lane")
        self.held, self.shown = Signal(8, name="held"), Signal(8, name="shown")
        m.d.comb += [self.at.eq(AnyConst(self.bits)), self.lane.eq(AnyConst(len(self.lane)))]
        self.word = port.cmd.payload.addr[(n - 1).bit_length() :][: self.bits]
        self._writes(m)
        self._reads(m)
        self._latency(m)
        ram = self.inner.submodules.ram.read_port(domain="comb")
        m.d.comb += ram.addr.eq(self.at)
        m.d.comb += Assert(ram.data.word_select(self.lane, 8) == self.held)
        return m

    def _writes(self, m):
        dut, port = self.dut, self.dut.port
        cmd, beat, wdone = port.cmd.payload, port.wdata.payload, port.wdone
        commands, done = self.inner.submodules.commands, self.inner.submodules.finished
        moves = _moves(port.wdata)
        asked = Queue(
            m,
            puts=_moves(port.cmd) & cmd.write,
            put_word=Cat(self.word, cmd.tag),
            gets=moves & beat.last,
            get_valid=port.wdata.ready,
            get_word=commands.o.payload,
            capacity=dut.outstanding,
        )
        fifo_invariants(m, commands, asked)
        told = Queue(
            m,
            puts=moves & beat.last,
            put_word=Cat(dut.now, commands.o.payload.tag),
            gets=_moves(wdone),
            get_valid=done.o.valid,
            get_word=done.o.payload,
            capacity=dut.outstanding,
        )
        fifo_invariants(m, done, told)
        beats, late = Signal(6, name="beats_written"), Signal()
        with m.If(moves):
            m.d.sync += beats.eq(Mux(beat.last, 0, beats + 1))
            address = (commands.o.payload.word + beats)[: self.bits]
            with m.If((address == self.at) & beat.strb.bit_select(self.lane, 1)):
                m.d.sync += self.held.eq(beat.data.word_select(self.lane, 8))
        m.d.sync += late.eq(wdone.valid & ~wdone.ready)
        over = late | ((dut.now - done.o.payload.time)[:16] >= dut.latency)
        m.d.comb += [
            Assert(wdone.valid == (done.o.valid & over)),
            Assert(~wdone.valid | (wdone.payload.tag == done.o.payload.tag)),
            Assert(port.wdata.ready == (commands.o.valid & (told.level != dut.outstanding))),
            Assert(~cmd.write | (port.cmd.ready == (asked.level != dut.outstanding))),
            Cover((told.level == dut.outstanding) & _moves(wdone) & (self.held != 0)),
            Assert(dut.offset == beats),  # invariants
            Assert(dut.overdue == late),
        ]

    def _reads(self, m):
        """Bursts of one arbitrary tag; of all tags, where there is no overtaking."""
        dut, port = self.dut, self.dut.port
        cmd, beat = port.cmd.payload, port.rdata.payload
        chosen = Signal(dut.tag_width)
        m.d.comb += chosen.eq(AnyConst(dut.tag_width))

        def ours(tag):
            return (tag == chosen) if dut.reorder else 1

        table, used, after = dut.waiting
        queued, queued_valid, active, left = dut.reading
        here = port.rdata.valid & ours(beat.tag)
        moves = _moves(port.rdata) & ours(beat.tag)
        request = Cat(self.word, cmd.beats, cmd.tag)
        word = Signal(request.shape(), name="request")
        queue = Queue(
            m,
            puts=_moves(port.cmd) & ~cmd.write & ours(cmd.tag),
            put_word=request,
            gets=moves & beat.last,
            get_valid=here,
            get_word=word,  # what the beats say is compared below
            capacity=dut.outstanding + 3,
        )
        m.d.comb += word.eq(queue.word)
        first, beats = word[: self.bits], word[self.bits : self.bits + 6]
        tag = word[self.bits + 6 :]
        came, mixed = Signal(6, name="beats_read"), Signal()
        with m.If(moves):
            m.d.sync += [came.eq(Mux(beat.last, 0, came + 1)), mixed.eq(~beat.last)]
        with m.If(~port.rdata.valid | port.rdata.ready):
            m.d.sync += self.shown.eq(self.held)
        with m.If(mixed & port.rdata.valid):
            m.d.comb += Assert(ours(beat.tag))
        with m.If(here & (queue.place == 0)):
            m.d.comb += [Assert(beat.last == (came == beats)), Assert(beat.tag == tag)]
            with m.If((first + came)[: self.bits] == self.at):
                m.d.comb += Assert(beat.data.word_select(self.lane, 8) == self.shown)
        m.d.comb += Assert(cmd.write | (port.cmd.ready == ~used.all()))
        if dut.reorder:
            other = Signal()  # a burst of another tag came while the chosen one waited
            with m.If(_moves(port.rdata) & (beat.tag != chosen) & queue.inside):
                m.d.sync += other.eq(1)
            old = Signal()
            with m.If(queue.inside & (queue.place == queue.level - 1) & used.all()):
                m.d.sync += old.eq(1)
            m.d.comb += Cover(old & other & moves & beat.last & (queue.place == 0))
        m.d.comb += Cover(moves & (queue.place == 0) & (came == 2) & (beat.data != 0))

        # Invariants: where each burst is, and how far.
        is_active = dut.busy & ours(active.tag)
        is_queued = queued_valid & ours(queued.tag)
        ended = Signal()
        ahead_queued, ahead_table = Signal(3), Signal(3)
        m.d.comb += [
            ended.eq(here & beat.last),
            ahead_queued.eq(ended + is_active),
            ahead_table.eq(ahead_queued + is_queued),
            Assert(
                queue.level
                == ahead_table + sum(used[k] & ours(entry.tag) for k, entry in enumerate(table))
            ),
        ]

        def same(entry, place):
            chosen_one = queue.inside & (queue.place == place)
            return ~chosen_one | (Cat(entry.word, entry.beats, entry.tag) == word)

        for k, entry in enumerate(table):
            older = sum(after[k])
            with m.If(used[k]):
                m.d.comb += Assert(~after[k][k])
                with m.If(ours(entry.tag)):
                    m.d.comb += Assert(same(entry, (ahead_table + older)[:3]))
            for j, other in enumerate(table[:k]):
                alike = (entry.tag == other.tag) if dut.reorder else 1
                both = used[k] & used[j] & alike
                m.d.comb += Assert((after[k][j] ^ after[j][k]) == both)
                m.d.comb += Assert(~after[k][j] | ~after[j][k])
        m.d.comb += Assert(~is_queued | same(queued, ahead_queued))
        with m.If(is_active):
            with m.If(queue.inside & (queue.place == ended)):
                m.d.comb += [
                    Assert(active.beats == beats),
                    Assert(active.tag == tag),
                    Assert(active.word == (first + beats - left)[: self.bits]),
                ]
            with m.If(ended):
                m.d.comb += Assert(left == active.beats)
            with m.Else():
                m.d.comb += Assert((came + here + left)[:6] == active.beats)
            m.d.comb += Assert(left <= active.beats)
        with m.Elif(~here):
            m.d.comb += [Assert(came == 0), Assert(~mixed)]
        m.d.comb += [
            Assert(~here | beat.last | is_active),
            Assert(~(came != 0) | mixed),
            Assert(~mixed | ended | is_active),
        ]

    def _latency(self, m):
        """A read that finds nothing under way is answered after ``latency`` and what was drawn."""
        dut, port = self.dut, self.dut.port
        asked = _moves(port.cmd) & ~port.cmd.payload.write
        told = _moves(port.rdata) & port.rdata.payload.last
        open_, alone, begun = Signal(4, name="open_"), Signal(), Signal()
        most = dut.latency + (31 if dut.reorder else 0)
        age = Signal(range(most + 2))
        m.d.sync += open_.eq(open_ + asked - told)
        with m.If(asked):
            m.d.sync += [alone.eq(open_ == 0), age.eq(1), begun.eq(0)]
        with m.Elif(alone & ~begun):
            m.d.sync += [age.eq(age + 1), begun.eq(port.rdata.valid)]
        with m.If(alone & ~begun):
            m.d.comb += Assert(~port.rdata.valid | (age >= dut.latency))
            m.d.comb += Assert(port.rdata.valid | (age < most))
        m.d.comb += Cover(alone & ~begun & port.rdata.valid)
        # Invariants.
        _, used, _ = dut.waiting
        _, queued_valid, _, _ = dut.reading
        shown = port.rdata.valid
        under_way = sum(used) + queued_valid + dut.busy + (shown & port.rdata.payload.last)
        m.d.comb += [
            Assert(open_ == under_way),
            Assert(~shown | dut.busy | port.rdata.payload.last),
        ]
        with m.If(alone & ~begun):
            m.d.comb += [Assert(open_ == 1), Assert(age != 0)]

            def at(condition, least):
                """The burst is there from this age on, at the latest when most was drawn."""
                latest = least + most - dut.latency
                m.d.comb += Assert(~condition | ((age >= least) & (age <= latest)))

            at(queued_valid, dut.latency - 2)
            at(dut.busy & ~shown, dut.latency - 1)
            at(shown, dut.latency)
            for k, delay in enumerate(dut.delays):
                due = age + delay
                first = dut.latency - 3
                m.d.comb += Assert(
                    ~used[k] | ((due >= first) & (due <= first + most - dut.latency))
                )


MUTANTS = (
    Mutant("ignores_strobes", "Mux(w_en, w_strb, 0)", "Mux(w_en, -1, 0)", 10),
    Mutant("reports_early", "(age >= self.latency)", "(age >= self.latency - 2)", 12),
    Mutant(
        "answers_late", "max(0, self.latency - 4) + extra", "max(0, self.latency - 3) + extra", 14
    ),
    Mutant("one_beat_more", "(step & (left == 0))", "(step & (left + 1 == 0))", 20),
    Mutant(
        "skips_storage",
        "offset.eq(Mux(port.wdata.payload.last, 0, offset + 1))",
        "offset.eq(offset + 1)",
        14,
    ),
)

PROOFS = tuple(
    Proof(
        name=f"memory_model_{name}",
        core=f"cores.memory_model.MemoryModel(16, 32, 1, latency=6, outstanding=2, {reorder})",
        says="answers as a memory would, whatever delays it draws; order and bursts as promised",
        module="trebuchet.cores.memory_model",
        build=lambda cores, r=reorder: MemoryModelProof(
            cores.MemoryModel(16, 32, 1, latency=6, outstanding=2, reorder=r)
        ),
        depth=3,
        cover_depth=45 if reorder else 24,
        mutants=MUTANTS[:2] + MUTANTS[4:] if reorder else MUTANTS[:4],
        assumes="the stream rules on commands and write data",
        not_proved="an upper bound of a read's delay; the external RAM; other sizes",
    )
    for name, reorder in (("reorders", True), ("in_order", False))
)
