"""The ready/valid contract of the components that move packets: ``bridge``, ``net``, ``cluster``.

Also of ``PacketArbiter``, ``StreamDemux`` and the LiteDRAM adapter. What is left out, and why, is
in ``tests/test_prove_contracts.py``.

Amaranth's own FIFOs are taken to hand on what they were given, in order: where one holds packets,
the borders of those that come out are assumed.

Not proved: what :mod:`trebuchet.formal.kit.contracts` says; other sizes than those named.
"""

from amaranth.hdl import Assert, Assume, Module, Mux, Signal, Value
from amaranth.lib import stream
from trebuchet.cores.cluster.server import ServerMemory
from trebuchet.cores.stream import beat_layout

from ..kit.contracts import contract, shown_last, steady
from ..kit.proof import Mutant
from ..stream import free, stream_rules

__all__ = ["PROOFS"]


# --- arbiter, demultiplexer -----------------------------------------------------------------------


def _packet_arbiter(m, dut, inside):
    m.d.comb += Assert(inside.begins["o"] == ~dut.started)
    for k in range(dut.n):
        mine = dut.started & (dut.index == k)
        m.d.comb += Assert(inside.begins[f"i_{k}"] == ~mine)


def _demux(m, dut, inside):
    """``select`` names one output for all of a packet."""
    to = Signal.like(dut.select)
    with m.If(dut.i.valid & dut.i.ready):
        m.d.sync += to.eq(dut.select)
    steady(m, dut.i.valid & ~dut.i.ready, dut.select)
    begins = inside.begins["i"]
    with m.If(dut.i.valid & ~begins):
        m.d.comb += Assume(dut.select == to)
    for k in range(dut.n):
        m.d.comb += Assert(inside.begins[f"o_{k}"] == (begins | (to != k)))


# --- cores/net ------------------------------------------------------------------------------------


def _classifier(m, dut, inside):
    begins = _hollow_fifo(m, inside["delay"], beat_layout(dut.width))
    _hollow_fifo(m, inside["verdicts"], 1)
    within, to_toe = inside["inside"], inside["to_toe_held"]
    cutting, owed = inside["cutting"], inside["owed"]
    m.d.comb += [
        Assert(begins == ~within),
        Assert(shown_last(dut.toe, inside.begins["toe"]) == ~(within & to_toe)),
        Assert(
            shown_last(dut.other, inside.begins["other"]) == ~(owed | (within & ~to_toe & ~cutting))
        ),
        Assert(~cutting | (within & ~to_toe)),
        Assert(~(owed & within & ~to_toe) | cutting),
    ]


def _hollow_fifo(m, fifo, layout):
    """One of Amaranth's FIFOs as a hollow part whose output is a stream."""
    fifo.elaborate = lambda platform: Module()
    free(m, fifo.w_rdy, fifo.r_rdy, fifo.r_data)
    shown = stream.Signature(layout).create(path=(f"shown{len(Value.cast(fifo.r_data))}",))
    m.d.comb += [
        shown.valid.eq(fifo.r_rdy),
        shown.ready.eq(fifo.r_en),
        shown.payload.eq(fifo.r_data),
    ]
    return stream_rules(m, shown, Assume, f"shown{len(Value.cast(fifo.r_data))}")


def _guard(m, dut, inside):
    kept = inside["kept"]
    m.d.comb += Assert(shown_last(kept, inside.begins["store.i"]) == inside.begins["i"])


def _hosts(m, dut, inside):
    """The store takes a beat every cycle, which its own proof says."""
    kept = inside.parts["store"].i
    m.d.comb += [
        Assume(kept.ready),
        Assert(inside.begins["i"] == dut.at[0]),
        Assert(~dut.late_valid | (dut.late.last == inside["begins"])),
        Assert(
            shown_last(kept, inside.begins["store.i"])
            == Mux(dut.late_valid, dut.late.first, inside["begins"])
        ),
    ]
    for valid, beat in (
        (dut.s1_valid, dut.s1),
        (dut.s2_valid, dut.s2),
        (dut.late_valid, dut.late),
    ):
        m.d.comb += Assert(~valid | beat.last | (beat.empty == 0))


def _injector(m, dut, inside):
    kept = dut.store.i
    m.d.comb += Assert(shown_last(kept, inside.begins["store.i"]) == ~dut.inside)


def _flickers(old, source, sink, context=()):
    """A mutant that connects two streams only while the component is enabled."""
    enable = "self.csr.enable" if "wiring" in old else "self.enable"
    new = (
        f"m.d.comb += [{sink}.payload.eq({source}.payload),"
        f" {sink}.valid.eq({source}.valid & {enable}), {source}.ready.eq({sink}.ready)]"
    )
    return Mutant("flickers_" + sink.split(".")[-1].split("[")[0], old, new, context=context)


# --- cores/cluster --------------------------------------------------------------------------------


def _cutter(m, dut, inside):
    begins, word = inside.begins["o"], inside["word"]
    with m.If(inside.state("HEADER")):
        m.d.comb += Assert(begins == (word == 0))
    with m.Else():
        m.d.comb += [Assert(begins == inside.state("IDLE")), Assert(word == 0)]


def _opener(m, dut, inside):
    begins, first = inside.begins["data"], inside["first"]
    with m.If(inside.state("DATA")):
        m.d.comb += Assert(begins == first)
    with m.Else():
        m.d.comb += [Assert(begins), Assert(first | inside.state("HEADER"))]


def _transfer(m, dut, inside):
    comes, goes = inside.begins["opener.data"], inside.begins["writer.packet"]
    write, skip = inside.state("WRITE"), inside.state("SKIP")
    m.d.comb += Assume(~(dut.drop & dut.store.valid))
    m.d.comb += [
        Assert(goes | write),
        Assert(comes | write | skip),
        Assert(~write | (comes == goes)),
    ]


def _memory():
    return ServerMemory(0, 1, 8, 8)


ENDS = (("i", "transfer.i"), ("transfer.o", "o"))
LANE = (
    *(("rx", "tap.i"), ("tap.o", "store.i"), ("store.o", "mux.i_0")),
    *(("inject", "injector.i"), ("injector.o", "mux.i_1"), ("mux.o", "tx")),
)
LANES = (
    *(("rx_0", "inbound.rx"), ("inject_0", "inbound.inject"), ("inbound.tx", "tx_1")),
    *(("rx_1", "outbound.rx"), ("inject_1", "outbound.inject"), ("outbound.tx", "tx_0")),
)
OVER = "with m.If(1):"

PROOFS = (
    contract(
        "arbiter.PacketArbiter",
        lambda cls: cls(32, 2),
        (
            Mutant(
                "interleaves",
                "Mux(moves, ends, ~self.started & ~self.o.valid)",
                "Mux(moves, 1, ~self.started & ~self.o.valid)",
            ),
            Mutant("leaves_stalled", "~self.started & ~self.o.valid", "~self.started"),
        ),
        size="32, 2",
        more=_packet_arbiter,
    ),
    contract(
        "arbiter.StreamDemux",
        lambda cls: cls(beat_layout(32), 2),
        (
            Mutant("all_but_it", "self.select == k", "self.select != k"),
            Mutant(
                "waits_for_ready",
                "self.i.valid & (self.select == k)",
                "self.i.ready & (self.select == k)",
            ),
        ),
        size="beats of 32 bits, 2",
        more=_demux,
        assumes="the stream rules; `select` is kept while a beat waits, and within a packet",
    ),
    contract(
        "litedram_adapter.LiteDramAdapter",
        lambda cls: cls(32, 1, 64, 8, 16),
        (
            Mutant("takes_over", "free.eq(~cmd.valid | cmd.ready)", "free.eq(1)"),
            Mutant("overwrites", "back.r_rdy & (~out.valid | out.ready)", "back.r_rdy", 14),
        ),
        size="32 to 64 bits",
        cover_depth=16,
    ),
    contract(
        "net.classify.Classifier",
        lambda cls: cls(32, 8),
        (
            Mutant("owes_nothing", "m.d.sync += owed.eq(1)", "m.d.sync += owed.eq(0)", 14),
            Mutant(
                "cuts_whole", "m.d.sync += cutting.eq(~beat.last)", "m.d.sync += cutting.eq(0)", 14
            ),
        ),
        size="32, patience=8",
        more=_classifier,
        cover_depth=8,
    ),
    contract(
        "net.guard.FrameGuard",
        lambda cls: cls(32, 8, 16),
        (
            Mutant("error_anywhere", "i.p.last & (i.p.error | short | long)", "i.p.error | short"),
            Mutant("overwrites", "i.ready.eq(~kept.valid | kept.ready)", "i.ready.eq(1)"),
        ),
        size="32, 8 to 16 bytes",
        more=_guard,
        through=(("store.o", "o"),),
    ),
    contract(
        "net.hosts.services.HostServices",
        lambda cls: cls(32, False, 32),
        (
            Mutant(
                "error_anywhere", "kept.p.error.eq(late.last & ~good)", "kept.p.error.eq(~good)"
            ),
            Mutant("all_first", "begins.eq(s2.last)", "begins.eq(1)"),
            Mutant("says_twice", "self.late_valid.eq(moved)", "self.late_valid.eq(self.s2_valid)"),
        ),
        size="32, no UDP, 32 beats",
        more=_hosts,
        through=(("store.o", "o"),),
    ),
    contract(
        "net.rollback_fifo.RollbackFifo",
        lambda cls: cls(3, 4),
        (
            Mutant("overwrites", "~self.output.valid | self.output.ready", "1"),
            Mutant(
                "gives_way",
                "with m.If(load):\n"
                "    m.d.sync += [self.output.valid.eq(fetched), "
                "self.output.payload.eq(rp.data)]",
                "with m.If(load | self.full):\n"
                "    m.d.sync += [self.output.valid.eq(fetched), "
                "self.output.payload.eq(rp.data)]",
            ),
        ),
        size="3 bits, 4",
        cover_depth=8,
    ),
    contract(
        "bridge.inject.Injector",
        lambda cls: cls(32, 8, 16, 8),
        (
            Mutant("no_end", "kept.p.last.eq(i.p.last | cut)", "kept.p.last.eq(i.p.last)"),
            Mutant("takes_over", "room.eq(~kept.valid | kept.ready)", "room.eq(1)"),
        ),
        size="32, 8 to 16 bytes",
        more=_injector,
        through=(("store.o", "o"),),
    ),
    contract(
        "bridge.bridge.BridgeLane",
        lambda cls: cls(32, latency=1, shortest=8, longest=16),
        (
            _flickers(
                "connect(m, tap.o, store.i)",
                "tap.o",
                "store.i",
                "connect(m, tap.tap, outside(self.tap))",
            ),
            _flickers("connect(m, mux.o, outside(self.tx))", "mux.o", "self.tx"),
        ),
        through=LANE,
        size="32, latency=1, 8 to 16 bytes",
    ),
    contract(
        "bridge.bridge.Bridge",
        lambda cls: cls(32, latency=1, shortest=8, longest=16),
        (
            _flickers(
                "wiring.connect(m, wiring.flipped(self.rx[d]), lane.rx)", "self.rx[d]", "lane.rx"
            ),
            _flickers(
                "wiring.connect(m, lane.tx, wiring.flipped(self.tx[1 - d]))",
                "lane.tx",
                "self.tx[1 - d]",
            ),
        ),
        through=LANES,
        size="32, latency=1, 8 to 16 bytes",
    ),
    contract(
        "cluster.messages.Segmenter",
        lambda cls: cls(),
        (
            Mutant(
                "first_again",
                "o.payload.first.eq(0)",
                "o.payload.first.eq(given.payload.first)",
                context="o, given = self.o, self.data",
            ),
            Mutant("header_runs", "with m.If(o.ready):", OVER, within="Segmenter.elaborate"),
        ),
        more=_cutter,
        cover_depth=8,
    ),
    contract(
        "cluster.messages.Reassembler",
        lambda cls: cls(),
        (
            Mutant("head_runs", "with m.If(head.ready):", OVER, within="Reassembler.elaborate"),
            Mutant(
                "first_stays",
                "m.d.sync += first.eq(0)",
                "m.d.sync += first.eq(1)",
                within='with m.State("DATA"):',
            ),
        ),
        more=_opener,
        cover_depth=8,
    ),
    contract(
        "cluster.transfer.Transfer",
        lambda cls: cls(),
        (
            Mutant("sends_over", "cutter.call.ready & ~reads", "cutter.call.ready"),
            Mutant(
                "skips_in_part",
                "with m.If(given.valid & given.payload.last):",
                "with m.If(given.valid):",
            ),
        ),
        assumes="the stream rules; `drop` only while no place is on offer",
        more=_transfer,
        through=(("i", "opener.i"), ("cutter.o", "o"), ("reader.packet", "cutter.data")),
    ),
    contract(
        "cluster.caller.Caller",
        lambda cls: cls(1),
        (
            Mutant("forgets_the_answer", "with m.If(self.answer.ready):", OVER),
            Mutant("withdraws", "with m.If(transfer.send.ready):", OVER),
        ),
        size="1",
        through=ENDS,
        cover_depth=8,
    ),
    contract(
        "cluster.server.Server",
        lambda cls: cls(_memory(), 1),
        (
            Mutant("job_runs", "with m.If(self.calls | self.refused):", OVER),
            Mutant("withdraws", "with m.If(transfer.send.ready):", OVER),
        ),
        size="1 peer, 256 bytes",
        through=ENDS,
        cover_depth=10,
    ),
    contract(
        "cluster.scheduler.JobScheduler",
        lambda cls: cls(2),
        (
            Mutant(
                "odd_source",
                "self.answer.payload.source.eq(0)",
                "self.answer.payload.source.eq(self.enable)",
            ),
            Mutant(
                "odd_job",
                "merge.i[2].payload.source.eq(NOT_SHARED)",
                "merge.i[2].payload.source.eq(self.enable)",
            ),
        ),
        size="2 peers",
    ),
)
