"""Proofs of ``RecordLoader`` and ``BlockLoader`` in ``cores/roles/ecg/load.py``, beats of 32 bits.

Reader and writer, which have proofs of their own, do what they like as far as their data sheets
allow. Contract, over public ports: one request at a time; for a part of a record that is not its
first the session's header is read, then what is kept, then the operand, each from its place and
once; block and zone are those of the data sheet's rules; the pairs handed on are those read, header
excepted, ``last`` on the last one; the last 704 samples, and no others, go to the writer, which is
asked once, for the session's memory; nothing is kept of a block alone or of a record's end;
``done`` comes once, when all was handed over and saved.

Not proved: other tails and widths; that the memory answers; a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ...kit.inside import Inside, opened, patched
from ...kit.proof import Mutant, Proof
from ...stream import free, new_harness, stream_rules
from ..packet_role import AnyReader, AnyWriter

__all__ = ["PROOFS"]

SCRATCH, SESSIONS = 0x4800, 4
TAIL, KEPT, HALF = 40, 176, 8  # in groups of four samples
PHASES = ("IDLE", "HEADER", "PARSE", "PLAN", "ZONE", "BLOCK", "KEPT", "PASS_KEPT", "OPERAND")
PHASES += ("PASS_OPERAND", "SAVE")


def _moves(port):
    return port.valid & port.ready


class RecordLoaderProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.cores.RecordLoader(32, 1, scratch=SCRATCH, sessions=SESSIONS)
        parts = {name: opened(getattr(self.cores, name)) for name in ("PairSplitter", "PairPacker")}
        with patched(self.cores, OperandReader=AnyReader, ResultWriter=AnyWriter, **parts):
            self.i = i = Inside(m, dut)
        self.reader, self.writer = i.parts["reader"], i.parts["writer"]
        free(m, dut.request.valid, dut.request.payload, dut.block.ready, dut.pair.ready)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        stream_rules(m, dut.request, Assume, "request")
        stream_rules(m, dut.block, Assert, "block")
        stream_rules(m, self.reader.request, Assert, "read")
        stream_rules(m, self.reader.packet, Assume, "packet")
        self.at = {name: Signal(name=f"at_{name}", init=name == "IDLE") for name in PHASES}
        self._request(m)
        self._phases(m)
        self._plan(m)
        self._pairs(m)
        return m

    def _go(self, m, old, new):
        m.d.sync += [self.at[old].eq(0), self.at[new].eq(1)]

    def _request(self, m):
        dut = self.dut
        self.load = load = Signal(dut.request.payload.shape())
        operand = dut.request.payload.operand.length
        m.d.comb += [
            Assert(dut.request.ready == self.at["IDLE"]),
            # Whole groups of samples, and not more than a part may have.
            Assume(~dut.request.valid | ((operand % 8 == 0) & (operand <= 8 * 848))),
            Assume(~dut.request.valid | dut.request.payload.stream | (operand != 0)),
        ]
        self.held, self.late, self.saving = Signal(8), Signal(8), Signal()
        with m.If(_moves(dut.request)):
            m.d.sync += [load.eq(dut.request.payload), self.held.eq(0), self.late.eq(0)]
        self.ending = load.operand.length == 0
        self.store = Signal(32)
        m.d.comb += self.store.eq(SCRATCH + (load.session[:2] << 11))

    def _phases(self, m):
        """What is read when, and when it is done."""
        at, load, dut, reader, writer = self.at, self.load, self.dut, self.reader, self.writer
        part = dut.request.payload.stream & ~dut.request.payload.first
        ask, payload = reader.request.valid, reader.request.payload
        own = at["HEADER"] | at["KEPT"]
        reading = Signal()  # a request was taken and is not done
        m.d.comb += [
            Assert(ask == (own | at["OPERAND"])),
            # The reader is done with the last beat of its packet; nothing comes unasked.
            Assume(~reader.packet.valid | reading),
            Assume(reader.done == (_moves(reader.packet) & reader.packet.payload.last)),
            Assume(~ask | reader.request.ready | ~reading),
            Assume(~(reader.request.ready & reading)),
            Assert(reading == (at["PARSE"] | at["PASS_KEPT"] | at["PASS_OPERAND"])),
        ]
        with m.If(_moves(reader.request)):
            m.d.sync += reading.eq(1)
        with m.If(reader.done):
            m.d.sync += reading.eq(0)
        with m.If(own):
            kept = Mux(self.held == 0, 128, self.held << 3)
            m.d.comb += [
                Assert(payload.base == self.store),
                Assert(payload.offset == Mux(at["HEADER"], KEPT * 8, 0)),
                Assert(payload.ring_log2 == 11),
                Assert(payload.length == Mux(at["HEADER"], 16, kept)),
            ]
        with m.If(at["OPERAND"]):
            m.d.comb += Assert(Value.cast(payload) == Value.cast(load.operand))
        with m.If(at["IDLE"] & dut.request.valid):
            m.d.sync += [at["IDLE"].eq(0), at["HEADER"].eq(part), at["PLAN"].eq(~part)]
        with m.If(at["HEADER"] & reader.request.ready):
            self._go(m, "HEADER", "PARSE")
        with m.If(at["PARSE"]):
            with m.If(reader.packet.valid & reader.packet.payload.first):
                m.d.sync += Cat(self.held, self.late).eq(reader.packet.payload.data)
            with m.If(reader.done):
                self._go(m, "PARSE", "PLAN")
        for old, new in (("PLAN", "ZONE"), ("ZONE", "BLOCK")):
            with m.If(at[old]):
                self._go(m, old, new)
        keeps = load.stream & ~self.ending
        m.d.comb += [
            Assert(dut.block.valid == at["BLOCK"]),
            Assert(writer.request.valid == (_moves(dut.block) & keeps)),
            # It is idle when a block begins.
            Assume(writer.request.ready | self.saving),
            Assume(~writer.done | self.saving),
            Assert(dut.done == (at["SAVE"] & ~self.saving)),
        ]
        with m.If(writer.request.valid):
            m.d.comb += Assert(writer.request.payload.addr == self.store)
            m.d.comb += Assert(writer.request.payload.room == 8 * KEPT)
        with m.If(writer.done):
            m.d.sync += self.saving.eq(0)
        with m.If(_moves(dut.block)):
            kept = load.stream & ((self.held != 0) | self.ending)
            m.d.sync += [self.saving.eq(keeps), at["BLOCK"].eq(0)]
            m.d.sync += [at["KEPT"].eq(kept), at["OPERAND"].eq(~kept)]
        with m.If(at["KEPT"] & reader.request.ready):
            self._go(m, "KEPT", "PASS_KEPT")
        with m.If(at["PASS_KEPT"] & reader.done):
            m.d.sync += at["PASS_KEPT"].eq(0)
            m.d.sync += [at["SAVE"].eq(self.ending), at["OPERAND"].eq(~self.ending)]
        with m.If(at["OPERAND"] & reader.request.ready):
            self._go(m, "OPERAND", "PASS_OPERAND")
        with m.If(at["PASS_OPERAND"] & reader.done):
            self._go(m, "PASS_OPERAND", "SAVE")
        with m.If(dut.done):
            self._go(m, "SAVE", "IDLE")
        i = self.i
        for name in PHASES:
            m.d.comb += Assert(i.state(name, "load") == at[name])
        late = at["KEPT"] | at["PASS_KEPT"] | at["OPERAND"] | at["PASS_OPERAND"] | at["SAVE"]
        m.d.comb += [
            Assert(i.saving == self.saving),
            Assert(late | ~self.saving),
            Assert(at["IDLE"] | (i.load == Value.cast(load))),
            Assert(at["IDLE"] | load.stream | ~self.ending),
            Assert(at["IDLE"] | (load.operand.length % 8 == 0)),
            Assert(~(at["OPERAND"] | at["PASS_OPERAND"]) | ~self.ending),
            Assert(~(at["KEPT"] | at["PASS_KEPT"]) | load.stream),
            Cover(dut.done & load.stream & ~load.first & (self.held == 2)),
        ]

    def _plan(self, m):
        """Block and zone, from the rules."""
        dut, load, held = self.dut, self.load, self.held
        new = load.operand.length >> 3
        groups, low, high = Signal(11), Signal(11), Signal(11)
        before = Signal(11)  # groups in front of the tail
        m.d.comb += [
            groups.eq(new + held),
            before.eq(Mux(groups > TAIL, groups - TAIL, 0)),
            low.eq(Mux(held > TAIL, held - TAIL, 0) + self.late),
            high.eq(Mux(self.ending, groups, before)),
        ]
        zone, block = dut.zone, dut.block.payload
        self.groups = groups
        ready = ~(self.at["IDLE"] | self.at["HEADER"] | self.at["PARSE"] | self.at["PLAN"])
        with m.If(ready):
            m.d.comb += [Assert(zone.groups == groups), Assert(zone.low == low)]
        with m.If(ready & ~self.at["ZONE"]):
            m.d.comb += [
                Assert(zone.high == high),
                Assert(zone.stream == load.stream),
                Assert(zone.ending == self.ending),
            ]
        with m.If(dut.block.valid & ~load.stream):
            m.d.comb += [
                Assert(block.samples == (load.operand.length >> 1)[:13]),
                Assert(block.low == HALF),
                Assert(block.high == (groups - (HALF - 1))[:11]),
            ]
        with m.If(dut.block.valid & load.stream):
            nothing = groups == 0
            m.d.comb += [
                Assert(block.samples == Mux(nothing, 64, groups << 2)),
                Assert(block.low == Mux(low > HALF, low, HALF)),
                Assert(block.high == Mux(nothing, 0, Mux(self.ending, (groups - 7)[:11], before))),
            ]

    def _pairs(self, m):
        """What passes, and what of it is written."""
        dut, at, reader, writer = self.dut, self.at, self.reader, self.writer
        passing = at["PASS_KEPT"] | at["PASS_OPERAND"]
        count = Signal(12)
        first_kept = (Mux(self.groups > KEPT, self.groups - KEPT, 0) << 1)[:12]
        begin = Signal(12)
        m.d.sync += begin.eq(first_kept)
        keep = self.load.stream & ~self.ending & (count >= begin)
        packet, pair = reader.packet.payload, dut.pair.payload
        m.d.comb += [
            Assert(~_moves(dut.pair) | passing),
            Assert(~passing | (_moves(dut.pair) == _moves(reader.packet))),
            Assert(passing | reader.packet.ready),
            Assert(_moves(writer.packet) == (_moves(dut.pair) & keep)),
        ]
        with m.If(dut.pair.valid):
            last = packet.last & (at["PASS_OPERAND"] | self.ending)
            m.d.comb += [
                Assert(Cat(pair.even, pair.odd) == packet.data),
                Assert(pair.last == last),
            ]
        with m.If(_moves(writer.packet)):
            m.d.comb += Assert(writer.packet.payload.data == packet.data)
            m.d.comb += Assert(writer.packet.payload.last == pair.last)
            m.d.comb += Assert(writer.packet.payload.empty == 0)
        with m.If(at["BLOCK"]):
            m.d.sync += count.eq(0)
        with m.Elif(_moves(dut.pair)):
            m.d.sync += count.eq(count + 1)
        m.d.comb += [
            Assert(~passing | (self.i.begin == begin)),
            Assert(self.i.at == count),
            Assert(self.i.parts["splitter"].inside.at == 0),
            Assert(self.i.parts["packer"].inside.at == 0),
            # `held` has no name of its own.
            Assert((self.i.unnamed(0) == self.held) & (self.i.late == self.late)),
        ]


class BlockLoaderProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        dut = self.cores.BlockLoader(32, 1)
        splitter = opened(self.cores.PairSplitter)
        with patched(self.cores, OperandReader=AnyReader, PairSplitter=splitter):
            i = Inside(m, dut)
        m.d.comb += Assert(i.parts["splitter"].inside.at == 0)
        reader = i.parts["reader"]
        free(m, dut.request.valid, dut.request.payload, dut.block.ready, dut.pair.ready)
        stream_rules(m, dut.request, Assume, "request")
        stream_rules(m, reader.packet, Assume, "packet")
        operand = dut.request.payload.operand
        block, pair, packet = dut.block.payload, dut.pair, reader.packet
        m.d.comb += [
            Assert(_moves(dut.request) == _moves(dut.block)),
            Assert(_moves(dut.request) == _moves(reader.request)),
            Assert(dut.done == reader.done),
            Assert(pair.valid == packet.valid),
            Assert(pair.ready == packet.ready),
            Cover(_moves(dut.request)),
        ]
        with m.If(dut.block.valid):
            m.d.comb += [
                Assert(block.samples == operand.length[1:14]),
                Assert(block.low == HALF),
                Assert(block.high == ((operand.length >> 3) - 7)[:11]),
            ]
        with m.If(reader.request.valid):
            theirs = Value.cast(reader.request.payload)
            m.d.comb += Assert(theirs == Value.cast(operand))
        with m.If(pair.valid):
            m.d.comb += [
                Assert(Cat(pair.payload.even, pair.payload.odd) == packet.payload.data),
                Assert(pair.payload.last == packet.payload.last),
            ]
        return m


PROOFS = (
    Proof(
        name="ecg_record_loader",
        core="cores.roles.ecg.load.RecordLoader(32, 1, 4 sessions)",
        says="header, kept samples and operand are read once each; block, zone and what is kept "
        "are those of the rules",
        module="trebuchet.cores.roles.ecg.load",
        build=RecordLoaderProof,
        depth=1,
        cover_depth=18,
        mutants=(
            Mutant(
                "keeps_one_less",
                "Mux(groups > HOLD, groups - HOLD, 0) << 1",
                "Mux(groups > HOLD, groups - HOLD + 1, 0) << 1",
                20,
            ),
            Mutant("done_unsaved", "self.done.eq(~saving)", "self.done.eq(1)", 20),
            Mutant(
                "wrong_zone",
                "zone.high.eq(Mux(groups > self.tail, groups - self.tail, 0))",
                "zone.high.eq(Mux(groups > self.tail, groups, 0))",
            ),
            Mutant(
                "header_elsewhere",
                "self._fetch(m, fetch, load, HEADER_OFFSET, 16)",
                "self._fetch(m, fetch, load, 0, 16)",
            ),
        ),
        assumes="the streams' rules; lengths that are allowed",
        not_proved="other tails and widths; that the memory answers; a reset",
    ),
    Proof(
        name="ecg_block_loader",
        core="cores.roles.ecg.load.BlockLoader(32, 1)",
        says="a request is taken with its block; its pairs are the operand's",
        module="trebuchet.cores.roles.ecg.load",
        build=BlockLoaderProof,
        depth=1,
        cover_depth=4,
        mutants=(
            Mutant(
                "without_the_block", "self.request.valid & self.block.ready", "self.request.valid"
            ),
            Mutant(
                "one_beat_more",
                "self.block.payload.high.eq(length[3:] - (HALF - 1))",
                "self.block.payload.high.eq(length[3:] - HALF)",
            ),
        ),
        assumes="the streams' rules",
    ),
)
