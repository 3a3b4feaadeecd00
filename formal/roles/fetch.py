"""Proof of ``MemoryJoin`` in ``cores/roles/fetch.py``.

Contract, over public ports: a command of one side, unaltered, at a time, and it stays; a waiting
write goes first; data and answers go through.

Not proved: other widths; a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Signal, Value

from ..kit.inside import Inside
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS", "moves"]


def moves(stream):
    return stream.valid & stream.ready


class MemoryJoinProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut)
        mem, reader, writer = dut.mem, dut.reader, dut.writer
        for port in (reader.cmd, writer.cmd, writer.wdata, mem.rdata, mem.wdone):
            free(m, port.valid, port.payload)
        for port in (mem.cmd, mem.wdata, reader.rdata, writer.wdone):
            free(m, port.ready)
        stream_rules(m, reader.cmd, Assume, "reader")
        stream_rules(m, writer.cmd, Assume, "writer")
        stream_rules(m, mem.cmd, Assert, "mem")
        m.d.comb += [
            Assert(mem.cmd.valid == (reader.cmd.valid | writer.cmd.valid)),
            Assert(moves(mem.cmd) == (moves(reader.cmd) | moves(writer.cmd))),
            Assert(~(reader.cmd.ready & writer.cmd.ready)),
        ]
        for port in (reader.cmd, writer.cmd):
            with m.If(moves(port)):
                m.d.comb += Assert(Value.cast(port.payload) == Value.cast(mem.cmd.payload))
        # A write goes first, unless a read was on offer before it came.
        read_held = Signal()
        stays = reader.cmd.valid & ~mem.cmd.ready & (read_held | ~writer.cmd.valid)
        m.d.sync += read_held.eq(stays)
        m.d.comb += [
            Assert(inside.held == read_held),
            Assert(~(moves(reader.cmd) & writer.cmd.valid) | read_held),
            Assert(~moves(writer.cmd) | ~read_held),
        ]
        data = ((mem.wdata, writer.wdata), (mem.rdata, reader.rdata), (mem.wdone, writer.wdone))
        for ours, theirs in data:
            m.d.comb += [
                Assert(ours.valid == theirs.valid),
                Assert(ours.ready == theirs.ready),
                Assert(Value.cast(ours.payload) == Value.cast(theirs.payload)),
            ]
        m.d.comb += [Assert(~reader.wdone.valid), Assert(~writer.rdata.valid)]
        both = Signal()
        m.d.sync += both.eq(moves(writer.cmd) & reader.cmd.valid)
        m.d.comb += [Cover(both & moves(reader.cmd)), Cover(read_held & writer.cmd.valid)]
        return m


PROOFS = (
    Proof(
        name="role_memory_join",
        core="cores.roles.fetch.MemoryJoin(32, 1)",
        says="one command at a time, unaltered and stable, writes first; data go through",
        module="trebuchet.cores.roles.fetch",
        build=lambda cores: MemoryJoinProof(cores.MemoryJoin(32, 1)),
        depth=2,
        cover_depth=6,
        mutants=(
            Mutant("withdraws_a_read", "self.writer.cmd.valid & ~held", "self.writer.cmd.valid"),
            Mutant(
                "takes_both",
                "self.reader.cmd.ready.eq(self.mem.cmd.ready & ~write)",
                "self.reader.cmd.ready.eq(self.mem.cmd.ready)",
            ),
            Mutant(
                "reads_first",
                "self.mem.cmd.valid & ~self.mem.cmd.ready & ~write",
                "self.mem.cmd.valid & ~write",
            ),
        ),
    ),
)
