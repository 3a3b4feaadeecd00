"""Proof of ``cores/write_buffer.py``: bursts of up to three beats.

Contract, over public ports: the stream rules at ``o``, given those at ``i``; write commands and
write data leave in the order in which they came, unaltered; the buffer takes the data of an
accepted command whenever they come. *Prompt*: while data of a command that has left are missing at
``o``, ``o.wdata.valid`` is 1 in every cycle, and never else; ``last`` marks the final beat of the
burst. So a command whose data do not come never leaves. Reads pass in the same cycle; a read that
waits sees at most one write of its own port; a write whose data are complete is offered within two
cycles once the burst before it has left and no read is on offer. Responses pass unchanged.

Not proved: other lengths (the circuits differ in constants alone; ``test_write_buffer.py`` runs the
default); behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from .buffers import fifo_invariants
from .kit.parts import moves
from .kit.proof import Mutant, Proof
from .stream import Queue, free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

BEATS = 3


class WriteBufferProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        i, o = dut.i, dut.o
        self._rules(m, i, o)
        self._commands(m, i, o)
        self._data(m, i, o)
        return m

    def _rules(self, m, i, o):
        for name in ("cmd", "wdata"):
            given, taken = getattr(i, name), getattr(o, name)
            free(m, given.valid, given.payload, taken.ready)
            stream_rules(m, given, Assume, f"i_{name}")
            stream_rules(m, taken, Assert, f"o_{name}")
        m.d.comb += Assume(i.cmd.payload.beats < BEATS)
        for name in ("rdata", "wdone"):
            given, taken = getattr(o, name), getattr(i, name)
            free(m, given.valid, given.payload, taken.ready)
            m.d.comb += [
                Assert(taken.valid == given.valid),
                Assert(given.ready == taken.ready),
                Assert(Value.cast(taken.payload) == Value.cast(given.payload)),
            ]

    def _commands(self, m, i, o):
        dut = self.dut
        self.accepted = moves(i.cmd) & i.cmd.payload.write
        self.granted = moves(o.cmd) & o.cmd.payload.write
        queue = Queue(
            m,
            puts=self.accepted,
            put_word=i.cmd.payload,
            gets=self.granted,
            get_valid=o.cmd.valid & o.cmd.payload.write,
            get_word=o.cmd.payload,
            capacity=1,
        )
        m.d.comb += [
            Assert((queue.level != 0) == dut.busy),
            Assert(~queue.inside | (Value.cast(dut.held) == queue.word)),
            Assert(~dut.busy | dut.held.write),
        ]
        reads, passed = Signal(), Signal(2, name="passed_writes")
        m.d.comb += reads.eq(i.cmd.valid & ~i.cmd.payload.write)
        m.d.comb += Assert((moves(i.cmd) & reads) == (moves(o.cmd) & ~o.cmd.payload.write))
        with m.If(o.cmd.valid & ~o.cmd.payload.write):
            m.d.comb += Assert(reads)
            m.d.comb += Assert(Value.cast(o.cmd.payload) == Value.cast(i.cmd.payload))
        with m.If(reads):
            m.d.comb += Assert(o.cmd.valid)
        with m.If(~reads | i.cmd.ready):
            m.d.sync += passed.eq(0)
        with m.Elif(self.granted):
            m.d.sync += passed.eq(passed + 1)
        m.d.comb += [
            Assert(passed <= 1),
            # The one that has passed has left no other behind, which takes its data first.
            Assert((passed == 0) | ~dut.busy),
            Assert(~dut.read_held | reads),
            Cover(reads & (passed == 1)),
            Cover(moves(o.cmd) & reads & dut.busy & ~dut.complete),
        ]

    def _data(self, m, i, o):
        dut = self.dut
        width = range(2 * BEATS + 1)
        coming, owed = Signal(width, name="coming"), Signal(width, name="owed")
        puts, gets = moves(i.wdata), moves(o.wdata)
        m.d.sync += coming.eq(coming + Mux(self.accepted, i.cmd.payload.beats + 1, 0) - puts)
        m.d.sync += owed.eq(owed + Mux(self.granted, o.cmd.payload.beats + 1, 0) - gets)
        m.d.comb += [
            Assert(i.wdata.ready == (coming != 0)),
            Assert(o.wdata.valid == (owed != 0)),
            Assert(~o.wdata.valid | (o.wdata.payload.last == (owed == 1))),
        ]
        queue = Queue(
            m,
            puts=puts,
            put_word=Cat(i.wdata.payload.data, i.wdata.payload.strb),
            gets=gets,
            get_valid=o.wdata.valid,
            get_word=Cat(o.wdata.payload.data, o.wdata.payload.strb),
            capacity=2 * BEATS,
        )
        offered = o.cmd.valid & o.cmd.payload.write
        m.d.comb += Assert(~offered | (owed == 0))  # one burst of it is on the way
        free_way = dut.busy & (coming == 0) & (owed == 0) & ~dut.read_held
        within(m, ~free_way | offered, 1, "write")
        self._invariants(m, queue, coming, owed)
        twice = Signal(2, name="bursts")
        with m.If(gets & o.wdata.payload.last & (twice != 3)):
            m.d.sync += twice.eq(twice + 1)
        m.d.comb += [
            Cover((twice == 2) & (owed == 0) & (queue.level == 0) & ~dut.busy),
            Cover((queue.level == 2 * BEATS) & (owed == BEATS)),
            Cover(gets & puts & (owed == 2)),
        ]

    def _invariants(self, m, queue, coming, owed):
        dut, store = self.dut, self.dut.store
        fetched, shown = store.reader.fetched, store.o.valid
        fifo_invariants(m, store, queue)
        collected = Mux(dut.busy, dut.held.beats + 1 - coming, 0)
        m.d.comb += [
            Assert(dut.collecting == (coming != 0)),
            Assert(~dut.collecting | (dut.left == coming - 1)),
            Assert(~dut.collecting | dut.busy),
            Assert(~dut.busy | (dut.held.beats < BEATS)),
            Assert(~dut.busy | (coming <= dut.held.beats + 1)),
            Assert(dut.sending == (owed != 0)),
            Assert(~dut.sending | (dut.to_send == owed - 1)),
            Assert(owed <= BEATS),
            Assert(queue.level == owed + collected),
            Assert(~dut.complete | (dut.busy & ~dut.collecting)),
            # What is to be sent is at the store's output; what is complete is on the way there.
            Assert(~dut.sending | shown),
            Assert(~dut.sending | (owed == 1) | fetched),
            Assert(~dut.complete | fetched | (shown & (queue.level == 1))),
            Assert(~dut.complete | dut.sending | (queue.level == 1) | shown),
        ]
        with m.If(shown & queue.inside & (queue.place == 0)):
            m.d.comb += Assert(Value.cast(store.o.payload) == queue.word)


PROOFS = (
    Proof(
        name="write_buffer",
        core=f"cores.write_buffer.WriteBuffer(32, 1, {BEATS})",
        says="a write command leaves when its data are stored, which then come a beat a cycle",
        module="trebuchet.cores.write_buffer",
        build=lambda cores: WriteBufferProof(cores.WriteBuffer(32, 1, BEATS)),
        depth=4,
        cover_depth=24,
        mutants=(
            Mutant("no_data_yet", "self.complete & ~self.sending", "self.busy & ~self.sending"),
            Mutant("mixes_bursts", "self.complete & ~self.sending", "self.complete"),
            Mutant(
                "early",
                "self.complete.eq(self.busy & ~self.collecting)",
                "self.complete.eq(self.busy & (self.left == 0))",
            ),
            Mutant("withdraws_read", "~self.sending & ~self.read_held", "~self.sending"),
            Mutant(
                "loses_command", "~self.busy, o.cmd.ready & ~offers", "1, o.cmd.ready & ~offers"
            ),
            Mutant("last_early", "self.to_send == 0", "self.to_send == 1"),
        ),
        assumes="the stream rules on the inputs; bursts of at most three beats",
    ),
)
