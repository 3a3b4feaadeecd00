"""The ready/valid contract of the components in ``cores/roles``, but for those of ``ecg``.

What is left out, and why, is in ``tests/test_prove_contracts.py``.

Not proved: what :mod:`trebuchet.formal.kit.contracts` says; other sizes than those named.
"""

from amaranth.hdl import Assert, Assume, Module
from amaranth.lib import wiring
from trebuchet.cores.roles.loopback.role import LoopbackRole, Wire
from trebuchet.cores.roles.matmul.array import Shape

from ..kit.contracts import contract, leaves_of, shown_last, streams_of
from ..kit.proof import Mutant
from ..stream import free

__all__ = ["PROOFS"]


# --- memory: readers and writers ----------------------------------------------------------------


def _operand_reader(m, dut, inside):
    out, first, left = dut.packet, inside["first"], inside["to_emit"]
    running = inside.state("RUN")
    ended = shown_last(out, inside.begins["packet"])
    with m.If(running & ~first):
        m.d.comb += Assert(ended == (left == 0))
        m.d.comb += Assert(out.valid | (left != 0))
    with m.Else():
        m.d.comb += [Assert(~out.valid), Assert(inside.begins["packet"])]
    m.d.comb += Assert(first | running | inside.state("IDLE"))
    m.d.comb += Assert(~(running & first) | (left != 0))
    m.d.comb += Assert(~out.p.error)  # which nothing ever sets


def _result_writer(m, dut, inside):
    with m.If(inside.state("IDLE")):
        m.d.comb += [
            Assert(~dut.mem.cmd.valid),
            Assert(inside["owed"] == 0),
            Assert(inside["filled"] == 0),
        ]


# --- roles --------------------------------------------------------------------------------------


def _benchmark_body(m, dut, inside):
    waits, gives = (inside.state(name, fsm="body") for name in ("WAIT", "GIVE"))
    m.d.comb += [
        Assert(inside.begins["o"] == (~gives | dut.o.p.first)),
        Assert(~waits | dut.o.p.first),
    ]


def _burnin_body(m, dut, inside):
    report, answer, bad = (inside.state(name, fsm="body") for name in ("REPORT", "ANSWER", "BAD"))
    runs = inside.state("RUN", fsm="body") | inside.state("SUM", fsm="body")
    m.d.comb += [
        Assert(inside.begins["o"] | report | answer),
        Assert(~answer | ~inside.begins["o"]),
        Assert(~(report | answer | bad | runs) | (dut.o.p.first == inside.begins["o"])),
    ]


def _packet_role(m, dut, inside):
    """A part is done only with what it has taken."""
    reads, writes = inside["read_waits"], inside["write_waits"]
    reader, writer = inside.parts["reader"], inside.parts["writer"]
    m.d.comb += [
        Assume(~(reader.done & reads)),
        Assume(~(writer.done & writes)),
        Assert(~(reads & inside["done"][0]) & ~(writes & inside["done"][1])),
        Assert(inside.state("RUN", fsm="role") | ~(reads | writes)),
    ]


def _slot(m, dut, inside):
    """The role does what it likes; the gate keeps the memory's rules, also while it is reset."""
    role = dut.role
    free(m, *(port for _, port in leaves_of(role, wiring.Out)))
    for _, port in streams_of(role, wiring.Out):
        free(m, port.valid, port.payload)
    for _, port in streams_of(role, wiring.In):
        free(m, port.ready)


def _any_role():
    role = LoopbackRole()
    role.elaborate = lambda platform: Module()
    return role


PROOFS = (
    contract(
        "roles.fetch.OperandReader",
        lambda cls: cls(),
        (
            Mutant(
                "overwrites",
                "(~out.valid | out.ready) & (fifo.r_rdy | (to_take == 0))",
                "fifo.r_rdy | (to_take == 0)",
            ),
            Mutant(
                "last_too_early",
                "out.payload.last.eq(to_emit == 1)",
                "out.payload.last.eq(to_emit == 2)",
                14,
                within="_align",
            ),
            Mutant(
                "asks_over",
                "known & running & ~cmd.valid & (beats != 0)",
                "known & running & (beats != 0)",
                14,
            ),
        ),
        more=_operand_reader,
        quiet=("mem_wdata",),
        cover_depth=14,
    ),
    contract(
        "roles.fetch.ResultWriter",
        lambda cls: cls(),
        (
            Mutant(
                "address_walks",
                "with m.If(cmd.valid & cmd.ready):\n"
                "    m.d.sync += cmd.valid.eq(0)\n"
                "    m.d.sync += cmd.payload.addr.eq(cmd.payload.addr + BURST_BEATS * n)",
                "with m.If(cmd.valid & cmd.ready):\n"
                "    m.d.sync += cmd.valid.eq(0)\n"
                "with m.If(cmd.valid):\n"
                "    m.d.sync += cmd.payload.addr.eq(cmd.payload.addr + BURST_BEATS * n)",
            ),
            Mutant("counts_stalled", "sent.eq(wdata.valid & wdata.ready)", "sent.eq(wdata.valid)"),
        ),
        more=_result_writer,
        cover_depth=12,
    ),
    contract(
        "roles.fetch.MemoryJoin",
        lambda cls: cls(),
        (
            Mutant("changes_its_mind", "self.writer.cmd.valid & ~held", "self.writer.cmd.valid"),
            Mutant("holds_writes", "~self.mem.cmd.ready & ~write", "~self.mem.cmd.ready"),
        ),
        quiet=("reader_wdone", "writer_rdata"),
    ),
    contract(
        "roles.benchmark.role.BenchmarkBody",
        lambda cls: cls(),
        (
            Mutant("drops_a_beat", "with m.If(self.o.ready):", "with m.If(1):"),
            Mutant("first_again", "size.eq(size - n), o.first.eq(0), ", "size.eq(size - n), "),
        ),
        more=_benchmark_body,
        cover_depth=10,
    ),
    contract(
        "roles.burnin.role.BurninBody",
        lambda cls: cls(lanes=1),
        (
            Mutant(
                "offers_what_changes",
                "o.data.eq(report[:width])",
                "o.data.eq(report[:width] ^ signature)",
                28,
                within='with m.State("REPORT"):',
                context="start, step, first, signature = self._lanes(m, seed, inject, faults)",
            ),
            Mutant(
                "first_again",
                "[report.eq(report >> width), left.eq(left - 1), o.first.eq(0)]",
                "[report.eq(report >> width), left.eq(left - 1)]",
                28,
            ),
        ),
        more=_burnin_body,
        cover_depth=30,
    ),
    contract(
        "roles.packet_role.PacketRole",
        lambda cls: cls(Wire()),
        (
            Mutant("forgets_the_answer", "with m.If(self.answer.ready):", "with m.If(1):"),
            Mutant(
                "withdraws",
                "with m.If(reader.request.ready):\n"
                "    m.d.sync += read_waits.eq(0)\n"
                "with m.If(writer.request.ready):\n"
                "    m.d.sync += write_waits.eq(0)",
                "with m.If(1):\n"
                "    m.d.sync += read_waits.eq(0)\n"
                "with m.If(writer.request.ready):\n"
                "    m.d.sync += write_waits.eq(0)",
            ),
        ),
        size="any body",
        more=_packet_role,
        through=(("reader.packet", "body.i"), ("body.o", "writer.packet")),
        assumes="the stream rules; reader and writer are done only with what they took",
        cover_depth=10,
    ),
    contract(
        "roles.slot.RoleSlot",
        lambda cls: cls(_any_role(), "any"),
        (
            Mutant("overwrites", "with m.If(~full):", "with m.If(1):"),
            Mutant("forgets", "with m.Elif(self.answer.ready | to_cpu):", "with m.Elif(1):"),
        ),
        size="any role, which may break the rules",
        more=_slot,
        keep=("role",),
        loose=("gate",),
        cover_depth=10,
    ),
    contract(
        "roles.matmul.role.Multiplier",
        lambda cls: cls(Shape(4, 4, 64), 8),
        (
            Mutant("pops_always", "fifo.r_en.eq(self.o.ready)", "fifo.r_en.eq(1)"),
            Mutant(
                "shows_now_and_then",
                "self.o.valid.eq(fifo.r_rdy)",
                "self.o.valid.eq(fifo.r_rdy & array.o_en)",
                context="m.submodules.array = array = MacArray(self.shape)",
            ),
        ),
        size="order 4, 64 bits",
    ),
    contract(
        "roles.matmul.role.MatmulRole",
        lambda cls: cls(32, 2, macs=4, n=4),
        (
            Mutant("forgets_the_answer", "with m.If(self.answer.ready):", "with m.If(1):"),
            Mutant("asks_once", "with m.If(request.ready):", "with m.If(1):"),
        ),
        size="order 4",
        loose=("writer",),  # that the packet has the length of the request is its function
        cover_depth=12,
    ),
)
