"""Proof of ``PacketRole`` in ``cores/roles/packet_role.py`` around any body.

Reader and writer, which have proofs of their own, do what they like as far as their data sheets
allow. Contract, over public ports: one job at a time, each answered once, with who asked; another
kind is ``BAD_TYPE``, another length ``BAD_LENGTH``, and then nothing is read or written; no operand
at all is ``OK`` where that is allowed; otherwise operand and result are asked for once, as the job
says, and the answer comes when both are done, ``NO_ROOM`` before ``BAD_DATA`` before ``OK`` with
the bytes written; the body is given the reader's packet, the writer the body's, unaltered.

Not proved: that body and memory come to an end; other ranges of lengths; a reset while running.
"""

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ...cores.memory import MemorySignature
from ...cores.roles.fetch import OperandLayout, ResultLayout
from ...cores.stream import PacketSignature
from ...models.status import Status
from ..kit.inside import Inside, patched
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


def _moves(port):
    return port.valid & port.ready


class _Any(wiring.Component):
    """A part whose outputs are chosen by the solver."""

    def elaborate(self, platform):
        m = Module()
        for _, member, value in self.signature.flatten(self):
            if member.flow == Out and len(Value.cast(value)):
                m.d.comb += Value.cast(value).eq(AnySeq(len(Value.cast(value))))
        return m


class AnyReader(_Any):
    def __init__(self, width, tag_width):
        super().__init__(
            {
                "request": In(stream.Signature(OperandLayout)),
                "packet": Out(PacketSignature(width)),
                "done": Out(1),
                "mem": Out(MemorySignature(width, tag_width)),
            }
        )


class AnyWriter(_Any):
    def __init__(self, width, tag_width):
        super().__init__(
            {
                "request": In(stream.Signature(ResultLayout)),
                "packet": In(PacketSignature(width)),
                "finish": In(1),
                "done": Out(1),
                "length": Out(20),
                "overflow": Out(1),
                "error": Out(1),
                "mem": Out(MemorySignature(width, tag_width)),
            }
        )


class AnyBody(_Any):
    def __init__(self):
        super().__init__({"i": In(PacketSignature(32)), "o": Out(PacketSignature(32))})


class PacketRoleProof(Elaboratable):
    def __init__(self, cores, lengths):
        self.cores, self.lengths = cores, lengths

    def elaborate(self, platform):
        m = new_harness()
        body = AnyBody()
        dut = self.cores.PacketRole(body, 32, 1, self.lengths)
        with patched(self.cores, OperandReader=AnyReader, ResultWriter=AnyWriter):
            i = Inside(m, dut)
        reader, writer = i.parts["reader"], i.parts["writer"]
        free(m, dut.job.valid, dut.job.payload, dut.answer.ready)
        free(m, dut.mem.cmd.ready, dut.mem.wdata.ready, dut.mem.rdata.valid, dut.mem.wdone.valid)
        stream_rules(m, dut.job, Assume, "job")
        stream_rules(m, dut.answer, Assert, "answer")
        stream_rules(m, reader.request, Assert, "read")
        stream_rules(m, writer.request, Assert, "write")
        for ours, theirs in ((reader.packet, body.i), (body.o, writer.packet)):
            m.d.comb += [
                Assert(ours.valid == theirs.valid),
                Assert(ours.ready == theirs.ready),
                Assert(Value.cast(ours.payload) == Value.cast(theirs.payload)),
            ]
        busy, job = Signal(), Signal(dut.job.payload.shape())
        asked, done = Signal(2), Signal(2)  # of the reader, of the writer
        runs, status, length = Signal(), Signal(8), Signal(20)
        fits = Signal()
        values = self.lengths
        m.d.comb += fits.eq(
            (job.length >= values.start)
            & (job.length <= values[-1])
            & (job.length % values.step == 0)
        )
        m.d.comb += [
            Assert(dut.job.ready == ~busy),
            Assert(~dut.answer.valid | busy),
            runs.eq((Value.cast(job.kind) == 0) & fits & (job.length != 0)),
            # Each ends once, after it was asked, and the writer keeps what it says.
            Assume(~reader.done | (asked[0] & ~done[0])),
            Assume(~writer.done | (asked[1] & ~done[1])),
        ]
        past = Signal(22)
        says = Signal(22)
        m.d.comb += says.eq(writer.length | (writer.overflow << 20) | (writer.error << 21))
        with m.If(writer.done):
            m.d.sync += past.eq(says)
        with m.If(done[1]):
            m.d.comb += Assume(says == past)
        with m.If(_moves(dut.job)):
            m.d.sync += [job.eq(dut.job.payload), busy.eq(1), asked.eq(0), done.eq(0)]
        for k, part in enumerate((reader, writer)):
            with m.If(part.done):
                m.d.sync += done[k].eq(1)
            with m.If(_moves(part.request)):
                m.d.sync += asked[k].eq(1)
                m.d.comb += Assert(busy & runs & ~asked[k])
        with m.If(reader.request.valid):
            for name in OperandLayout.members:
                m.d.comb += Assert(reader.request.payload[name] == job[name])
        with m.If(writer.request.valid):
            m.d.comb += Assert(writer.request.payload.addr == job.result)
            m.d.comb += Assert(writer.request.payload.room == job.room)
        m.d.comb += Assert(~writer.finish)
        ended = Mux(writer.overflow, Status.NO_ROOM, Mux(writer.error, Status.BAD_DATA, Status.OK))
        wrong = Mux(fits, Status.OK, Status.BAD_LENGTH)
        bad = Mux(Value.cast(job.kind) != 0, Status.BAD_TYPE, wrong)
        m.d.comb += [
            status.eq(Mux(runs, ended, bad)),
            length.eq(Mux(runs & (ended == Status.OK), writer.length, 0)),
        ]
        answer = dut.answer.payload
        with m.If(dut.answer.valid):
            m.d.comb += [
                Assert(~runs | done.all()),
                Assert(answer.status == status),
                Assert(answer.length == length),
                Assert(answer.source == job.source),
                Assert(answer.session == job.session),
                Assert(answer.id == job.id),
            ]
        with m.If(_moves(dut.answer)):
            m.d.sync += busy.eq(0)
        # Invariants.
        state = {name: i.state(name, "role") for name in ("IDLE", "CHECK", "RUN", "ANSWER")}
        m.d.comb += [
            Assert(i.fsm_bounded("role")),
            Assert(state["IDLE"] == ~busy),
            Assert(dut.answer.valid == state["ANSWER"]),
            Assert(~busy | (i.job == Value.cast(job))),
            Assert(~state["RUN"] | runs),
            Assert(busy | (asked == done)),
            Assert(~state["CHECK"] | ((asked == 0) & (done == 0))),
            Assert(~state["ANSWER"] | runs | (asked == 0)),
        ]
        for k, part in enumerate((reader, writer)):
            waits = part.request.valid
            m.d.comb += [
                Assert(~waits | (state["RUN"] & ~asked[k])),
                Assert(~state["RUN"] | waits | asked[k]),
                Assert(~done[k] | asked[k]),
                Assert(~state["RUN"] | (i.done[k] == done[k])),
            ]
        with m.If(state["RUN"]):
            m.d.comb += [Assert(i.status == Status.OK), Assert(answer.length == 0)]
        seen = Signal(2)
        with m.If(_moves(dut.answer) & runs & (answer.status == Status.OK) & (answer.length == 5)):
            m.d.sync += seen[0].eq(1)
        with m.If(_moves(dut.answer) & (answer.status == Status.BAD_LENGTH) & (job.length != 0)):
            m.d.sync += seen[1].eq(1)
        wanted = 1 if 0 in values else 3
        m.d.comb += Cover((seen == wanted) & dut.answer.valid & (answer.status == Status.NO_ROOM))
        return m


MUTANTS = (
    Mutant("answers_early", "with m.If(done.all()):", "with m.If(done.any()):"),
    Mutant("no_room_is_ok", "with m.If(writer.overflow):", "with m.If(0):"),
    Mutant("runs_any_kind", "job.kind != JobKind.DATA", "job.kind == JobKind.CONFIGURE"),
    Mutant(
        "asks_again",
        "with m.If(reader.request.ready):\n"
        "    m.d.sync += read_waits.eq(0)\n"
        "with m.If(writer.request.ready):\n"
        "    m.d.sync += write_waits.eq(0)",
        "with m.If(reader.request.ready):\n"
        "    m.d.sync += read_waits.eq(0)\n"
        "with m.If(writer.done):\n"
        "    m.d.sync += write_waits.eq(0)",
    ),
)

PROOFS = (
    Proof(
        name="packet_role",
        core="cores.roles.packet_role.PacketRole(any body, 32, 1, range(8, 64, 4))",
        says="each job is answered once: by its kind, its length, or what reader and writer say",
        module="trebuchet.cores.roles.packet_role",
        build=lambda cores: PacketRoleProof(cores, range(8, 64, 4)),
        depth=2,
        cover_depth=16,
        mutants=(
            *MUTANTS,
            Mutant("short_by_one", "length >= wanted.start", "length > wanted.start"),
            Mutant("long_by_one", "length <= wanted[-1]", "length < wanted[-1]"),
            Mutant(
                "odd_lengths",
                "length[:log2] == 0 if log2 else C(1)",
                "length[:1] == 0 if log2 else C(1)",
            ),
        ),
        assumes="the streams' rules; reader and writer end once and keep what they say",
        not_proved="that body and memory come to an end; other ranges; a reset while running",
    ),
    Proof(
        name="packet_role_any_length",
        core="cores.roles.packet_role.PacketRole(any body, 32, 1, range(0, 1 << 20))",
        says="the same where every length is allowed, as in the loopback role; 0 is answered OK",
        module="trebuchet.cores.roles.packet_role",
        build=lambda cores: PacketRoleProof(cores, range(0, 1 << 20)),
        depth=2,
        cover_depth=16,
        mutants=(
            *MUTANTS[:2],
            Mutant("reads_nothing", "job.length != 0", "1"),
            Mutant(
                "refuses_all", "fits = length[:log2] == 0 if log2 else C(1)", "fits = length[0]"
            ),
        ),
        assumes="the streams' rules; reader and writer end once and keep what they say",
        not_proved="that body and memory come to an end; a reset while running",
    ),
)
