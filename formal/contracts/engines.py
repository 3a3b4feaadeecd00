"""The ready/valid contract of the components of the engines: ``cores/tcp`` and ``cores/ltl``.

What is left out, and why, is in ``tests/test_prove_contracts.py``.

Not proved: what :mod:`trebuchet.formal.kit.contracts` says; other sizes than those named.
"""

from dataclasses import replace

from amaranth.hdl import Assert, Assume, C, Mux, Value
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.connect import ConnectState
from trebuchet.cores.tcp.index_layout import IndexLayout

from ..kit.contracts import contract, shown_last, steady
from ..kit.proof import Mutant

__all__ = ["PROOFS"]

TCP = TcpConfig(sessions=2)
INDEX = IndexLayout(4, bucket_bits=1, places=1)
LTL = LtlConfig(
    width=32,
    connections=2,
    vcs=2,
    slots=4,
    window=2,
    max_message=16,
    buffer_beats=4,
    reserve=1,
    seq_bits=4,
)


# --- cores/tcp ------------------------------------------------------------------------------------


def _events(m, dut, inside):
    """From the choice of a port to the event nothing is on offer there."""
    for k, out in enumerate(dut.event):
        m.d.comb += Assert(inside.state("PICK") | (dut.pick != k) | ~out.valid)


def _connect(m, dut, inside):
    asked = Value.cast(dut.state) == ConnectState.ASKED.value
    m.d.comb += Assert(~inside["own"] | asked)
    steady(m, asked, dut.mac, dut.ip, dut.port, dut.local, dut.service)


def _dma(m, dut, inside):
    m.d.comb += Assert(inside.state("DATA") | ~inside["asking"])


def _parser(m, dut, inside):
    stored = inside.parts["fifo"].output.payload
    m.d.comb += [
        Assert(inside.begins["payload"] == inside["first"]),
        Assume(stored.last | (stored.empty == 0)),  # as it is when it goes in
    ]


def _transmit(m, dut, inside):
    m.d.comb += Assert(inside.state("IDLE") | ~dut.tx_segment.valid)


def _reader(m, dut, inside):
    steady(m, inside.state("ASK"), *dut.codes)


def _writer(m, dut, inside):
    """What is under way is a run of the ring, and memory ends nothing else."""
    head, tail, taken = inside["head"], inside["tail"], dut.taken
    for k in range(len(taken)):
        runs = (C(k, 2) - tail)[:2] < (head - tail)[:2]
        m.d.comb += Assert(taken.all() | (taken[k] == runs))
    m.d.comb += [
        Assert(~taken.all() | (head == tail)),
        Assume(~dut.mem.wdone.valid | ~dut.ready | taken.bit_select(tail, 1)),
    ]


# --- cores/ltl ------------------------------------------------------------------------------------


def _commands(m, dut, inside):
    offers = dut.send.valid | dut.receive.valid | dut.opened.valid
    m.d.comb += Assert(inside.state("WAIT", fsm="commands") | ~offers)
    steady(m, offers, dut.fields)


def _framer(m, dut, inside):
    """Walking from the output back through the pipeline to the frame under way."""
    ended = shown_last(dut.tx, inside.begins["tx"])
    for place in (inside["two"], inside["one"]):
        with m.If(place.valid):
            m.d.comb += Assert(place.first == ended)
        ended = Mux(place.valid, place.last, ended)
    active, at = inside["active"], inside["at"]
    m.d.comb += [
        Assert(ended == (~active | (at == 0))),
        Assert(at <= inside["header_beats"]),
        Assert((at != 0) | (inside["trailer"] == 0)),
        Assert(~active | (inside["trailer"] < inside["trailer_beats"])),
        Assert((dut.tx.p.empty == 0) & ~dut.tx.p.error),  # which nothing ever sets
    ]


def _pfc(m, dut, inside):
    at = inside["at"]
    steady(m, dut.o.valid, dut.priority, dut.mac)
    m.d.comb += [
        Assert(~dut.o.valid | (at < inside["beats"])),
        Assert(inside.begins["o"] == (~dut.o.valid | (at == 0))),
    ]


def _responder(m, dut, inside):
    m.d.comb += Assert(inside.state("IDLE", fsm="respond") | ~dut.frame.valid)


PROOFS = (
    contract(
        "tcp.events.EventEngine",
        lambda cls: cls(TCP),
        (
            Mutant("picks_waiting", "self.event_valid[k] & ~out.valid", "self.event_valid[k]", 14),
            Mutant("takes_back", "with m.If(out.ready):", "with m.If(1):"),
        ),
        size="2 sessions",
        more=_events,
        cover_depth=8,
    ),
    contract(
        "tcp.connect.ConnectPort",
        lambda cls: cls(replace(TCP, active=True)),
        (
            Mutant("breaks_in", "with m.If(~own & between):", "with m.If(~own):"),
            Mutant(
                "both_at_once", "o.valid.eq(own | self.i.valid)", "o.valid.eq(own ^ self.i.valid)"
            ),
        ),
        size="2 sessions",
        more=_connect,
        cover_depth=8,
        assumes="the registers stand still while the state is ASKED",
    ),
    contract(
        "tcp.dma.ReceiveDma",
        lambda cls: cls(TCP),
        (
            Mutant(
                "asks_on",
                "with m.If(cmd.valid & cmd.ready):\n"
                "    m.d.sync += [asking.eq(~final_burst), bursts.eq(bursts + 1)]\n"
                "    ...",
                "with m.If(cmd.valid):\n"
                "    m.d.sync += [asking.eq(~final_burst), bursts.eq(bursts + 1)]\n"
                "    ...",
            ),
            Mutant("overwrites", "enough & (~self.written.valid | self.written.ready)", "enough"),
        ),
        size="2 sessions",
        more=_dma,
        loose=("trim", "prepend", "pending"),  # what goes through them is the unit's function
        cover_depth=8,
    ),
    contract(
        "tcp.parser.Parser",
        lambda cls: cls(32, 64, 4),
        (
            Mutant("one_first", "first.eq(out.payload.last)", "first.eq(0)"),
            Mutant("runs", "out.ready.eq(self.payload.ready)", "out.ready.eq(1)"),
        ),
        size="32, 64 bytes, 4",
        more=_parser,
        through=(("frame", "strip.i"),),
        cover_depth=22,
    ),
    contract(
        "tcp.transmit.TransmitEngine",
        lambda cls: cls(TCP),
        (
            Mutant("overwrites", "m.If(~o.valid & self.reply.valid)", "m.If(self.reply.valid)"),
            Mutant("takes_back", "with m.If(o.ready):", "with m.If(1):"),
        ),
        size="2 sessions",
        more=_transmit,
        cover_depth=5,
    ),
    contract(
        "tcp.tx_payload.PayloadReader",
        lambda cls: cls(32, 8, 2, 2),
        (
            Mutant("asks_once", "with m.Elif(command.ready):", "with m.Elif(1):", 8),
            Mutant(
                "flickers",
                "command.valid.eq(left != 0)",
                "command.valid.eq((left != 0) & ~self.r_en)",
                8,
            ),
        ),
        size="32, 8 beats, 2 jobs",
        quiet=("mem_wdata",),
        cover_depth=8,
    ),
    contract(
        "tcp.index_reader.IndexReader",
        lambda cls: cls(INDEX, 2),
        (
            Mutant("asks_on", "with m.If(mem.cmd.ready):", "with m.If(1):"),
            Mutant(
                "flickers",
                "mem.cmd.valid.eq(1)",
                "mem.cmd.valid.eq(order.level[0])",
                context="m.submodules.order = self.order = order = StreamFifo(burst, BURSTS)",
            ),
        ),
        size="4 sessions, 2 slots",
        more=_reader,
        quiet=("mem_wdata",),
        loose=("order",),  # it has room before anything is asked for
        assumes="a code stays as it is during its walk",
    ),
    contract(
        "tcp.index_writer.IndexWriter",
        lambda cls: cls(INDEX),
        (
            Mutant("asks_on", "with m.If(mem.cmd.ready):", "with m.If(1):"),
            Mutant(
                "runs",
                "goes = self.mem.wdata.valid & self.mem.wdata.ready",
                "goes = 1 | self.mem.wdata.ready",
                10,
            ),
        ),
        size="4 sessions, 1 place",
        more=_writer,
        cover_depth=32,
        assumes="memory ends only writes that were begun",
    ),
    contract(
        "ltl.commands.Commands",
        lambda cls: cls(LTL),
        (
            Mutant("takes_back", "with m.If(port.ready):", "with m.If(1):"),
            Mutant(
                "goes_on", "with m.If(~Cat(port.valid for port in ports).any()):", "with m.If(1):"
            ),
        ),
        size="2 connections",
        more=_commands,
        assumes="`fields` is kept while an entry is on offer",
    ),
    contract(
        "ltl.deliver.Deliver",
        lambda cls: cls(LTL),
        (
            Mutant(
                "flickers",
                "beats.o.payload.last & pending[v]",
                "beats.o.payload.last & pending[v] & self.valid",
            ),
            Mutant("turns_on", "with m.If(~self.done.valid | self.done.ready):", "with m.If(1):"),
        ),
        size="2 channels",
        loose=("beats0", "beats1", "origins0", "origins1"),  # it never waits: they have room
        cover_depth=6,
    ),
    contract(
        "ltl.framer.Framer",
        lambda cls: cls(LTL),
        (
            Mutant("overwrites", "step.eq(~self.tx.valid | self.tx.ready)", "step.eq(1)", 16),
            Mutant("no_first", "tx.first.eq(two.first)", "tx.first.eq(two.last)", 15),
        ),
        size="2 connections",
        more=_framer,
        cover_depth=14,
    ),
    contract(
        "ltl.pfc.PfcSender",
        lambda cls: cls(32),
        (
            Mutant(
                "no_end", "self.o.payload.last.eq(at == beats - 1)", "self.o.payload.last.eq(0)", 20
            ),
            Mutant("runs", "with m.Elif(self.o.ready):", "with m.Elif(1):"),
        ),
        size="32",
        more=_pfc,
        assumes="`priority` and `mac` are kept while a frame leaves",
    ),
    contract(
        "ltl.respond.Responder",
        lambda cls: cls(LTL),
        (
            Mutant("takes_back", "with m.If(self.frame.ready):", "with m.If(1):"),
            Mutant("overwrites", "self.done.valid & ~self.frame.valid", "self.done.valid", 12),
        ),
        size="2 connections",
        more=_responder,
        loose=("older",),  # it never waits: a request that finds no place is lost
        cover_depth=8,
    ),
)
