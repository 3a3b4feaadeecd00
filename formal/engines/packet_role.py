"""Proof of ``PacketRole`` in ``cores/roles/packet_role.py`` as the surroundings of a body.

Around any body that keeps the stream engine contract (:mod:`~trebuchet.formal.engines.contract`,
assumed here): the body is given packets by the rules, one at a time, each of them undamaged; a job
is answered when its packet has left, so that no job begins with anything of another one in the
body, and nothing is asked of the body that it is not due.

Reader and writer are as ``formal/roles/packet_role.py`` has them: they do what their data sheets
allow.

Not proved: that the body and the memory come to an end; a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Signal

from ..kit.inside import Inside, patched
from ..kit.parts import moves
from ..kit.proof import Mutant, Proof
from ..roles.packet_role import AnyBody, AnyReader, AnyWriter
from ..stream import free, new_harness, stream_rules
from .contract import EngineRules

__all__ = ["PROOFS"]


class RoleProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        body = AnyBody()
        dut = self.cores.PacketRole(body, 32, 1, range(0, 1 << 20))
        with patched(self.cores, OperandReader=AnyReader, ResultWriter=AnyWriter):
            inside = Inside(m, dut)
        reader, writer = inside.parts["reader"], inside.parts["writer"]
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        stream_rules(m, dut.job, Assume, "job")
        given = stream_rules(m, reader.packet, Assume, "packet")
        rules = EngineRules(m, body.i, body.o, theirs=Assert, ours=Assume)
        asked, ended, done = (Signal(2, name=name) for name in ("asked", "ended", "done"))
        reads, writes, read, written = Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            reads.eq(asked[0] & ~ended[0]),
            writes.eq(asked[1] & ~ended[1]),
            read.eq(moves(reader.packet) & reader.packet.payload.last),
            written.eq(moves(writer.packet) & writer.packet.payload.last),
            # Their data sheets: a packet a request; done with its last beat, or when it is stored.
            Assume(~reader.packet.valid | reads),
            Assume(~reader.packet.valid | ~reader.packet.payload.error),
            Assume(reader.done == read),
            Assume(~writer.packet.ready | writes),
            Assume(~writer.done | (ended[1] & ~done[1])),
        ]
        for k, part in enumerate((reader, writer)):
            with m.If(moves(part.request)):
                m.d.sync += asked[k].eq(1)
        with m.If(read):
            m.d.sync += [ended[0].eq(1), done[0].eq(1)]
        with m.If(written):
            m.d.sync += ended[1].eq(1)
        with m.If(writer.done):
            m.d.sync += done[1].eq(1)
        with m.If(moves(dut.job)):
            m.d.sync += [asked.eq(0), ended.eq(0), done.eq(0)]
        busy = Signal()
        with m.If(moves(dut.job) | moves(dut.answer)):
            m.d.sync += busy.eq(moves(dut.job))
        empty = (rules.level == 0) & rules.begins_i & rules.begins_o & ~body.i.valid
        m.d.comb += [
            Assert(~dut.answer.valid | empty),
            Assert(~dut.answer.valid | ~body.o.valid),
            Assert(busy | empty),
            Assert(~(moves(body.i) & body.i.p.error)),
        ]
        m.d.comb += Assert(inside.state("IDLE", "role") == ~busy)
        self._invariants(m, dut, inside, rules, asked, ended, done, given)
        m.d.comb += Cover(done.all() & dut.answer.valid & (inside.status != 0))
        return m

    def _invariants(self, m, dut, inside, rules, asked, ended, done, given):
        reader, writer = inside.parts["reader"], inside.parts["writer"]
        run = inside.state("RUN", "role")
        m.d.comb += [
            Assert(inside.fsm_bounded("role")),
            Assert(given == rules.begins_i),
            Assert(rules.level == (ended[0] & ~ended[1])),
            Assert(~rules.damaged.any()),
            Assert(~run | (inside.done == done)),
            Assert(ended[0] == done[0]),
            Assert(ended[1] | ~done[1]),
            Assert(ended[0] | ~ended[1]),
        ]
        with m.If(~run):
            m.d.comb += [
                Assert((asked == done) & (ended == done)),
                Assert(rules.begins_i & rules.begins_o),
                Assert(~reader.request.valid & ~writer.request.valid),
            ]
        for k, (part, begins) in enumerate(((reader, rules.begins_i), (writer, rules.begins_o))):
            waits = part.request.valid
            m.d.comb += [
                Assert(asked[k] | (begins & ~ended[k])),
                Assert(~ended[k] | begins),
                Assert(~(waits & asked[k])),
                Assert(~run | waits | asked[k]),
            ]


PROOFS = (
    Proof(
        name="engine_role",
        core="cores.roles.packet_role.PacketRole(any body that keeps the contract, 32, 1)",
        says="the body is given one packet at a time; a job is answered when it has left",
        module="trebuchet.cores.roles.packet_role",
        build=RoleProof,
        depth=2,
        cover_depth=16,
        mutants=(
            Mutant("answers_early", "with m.If(done.all()):", "with m.If(done[0]):"),
            Mutant("answers_at_once", "with m.If(done.all()):", "with m.If(1):"),
            Mutant(
                "asks_again",
                "with m.If(reader.request.ready):\n"
                "    m.d.sync += read_waits.eq(0)\n"
                "with m.If(writer.request.ready):\n"
                "    m.d.sync += write_waits.eq(0)",
                "with m.If(0):\n"
                "    m.d.sync += read_waits.eq(0)\n"
                "with m.If(writer.request.ready):\n"
                "    m.d.sync += write_waits.eq(0)",
            ),
        ),
        assumes="the body keeps the contract; reader and writer keep their data sheets",
        not_proved="that body and memory come to an end; a reset while running",
    ),
)
