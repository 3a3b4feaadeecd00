"""A role that breaks one rule of its contract at a time: what a harness must notice."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from trebuchet.cores.csr import Register, RegisterBlock
from trebuchet.cores.roles.contract import RoleSignature
from trebuchet.models.status import Status

__all__ = ["FAULTS", "Saboteur"]

#: Number of each fault, and what is said about it.
FAULTS = {
    "reads outside": (1, "reads 0x.* no operand"),
    "writes outside": (2, "writes 0x.* no result"),
    "answers early": (3, "before the last wdone"),
    "answers twice": (4, "answer to no job"),
    "never answers": (5, "no (answer for|end after)"),
    "wrong id": (6, "answer to no job"),
    "reads after its answer": (7, "reads 0x.* no operand"),
    "takes its answer back": (8, "valid fell"),
    "changes a command": (9, "payload changed"),
    "more than the room": (10, "longer than its room"),
    "error with a length": (11, "not OK has a length"),
    "last too early": (12, "last is wrong"),
    "unaligned": (13, "unaligned"),
}

BLOCK = RegisterBlock("saboteur", (Register("fault", "rw", 8),))


class Saboteur(wiring.Component):
    """Reads 4 bytes, writes 8 zero bytes, answers; ``fault`` says what goes wrong."""

    def __init__(self):
        super().__init__(RoleSignature(BLOCK, 32, 2))

    def elaborate(self, platform):
        m = Module()
        fault, mem, answer = self.csr.fault, self.mem, self.answer.payload
        job = Signal.like(self.job.payload)
        beat, again, odd = Signal(), Signal(), Signal()
        from_operand = job.base | (job.offset & 0x3FC)
        addr = mem.cmd.payload.addr
        m.d.comb += [
            mem.rdata.ready.eq(1),
            mem.wdone.ready.eq(1),
            mem.wdata.payload.strb.eq(15),
            mem.wdata.payload.last.eq(beat | (fault == 12)),
            *(answer[name].eq(job[name]) for name in ("source", "session")),
            answer.id.eq(job.id + (fault == 6)),
            answer.length.eq(Mux(fault == 10, job.room + 1, 8)),
            answer.status.eq(Mux(fault == 11, Status.NO_ROOM, Status.OK)),
        ]
        m.d.sync += odd.eq(~odd)
        with m.FSM():
            with m.State("TAKE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += [job.eq(self.job.payload), again.eq(fault == 4)]
                with m.If(self.job.valid):
                    m.next = "ASK"
            with m.State("ASK"):
                changes = Mux(fault == 9, odd << 2, 0)
                m.d.comb += mem.cmd.valid.eq(1)
                m.d.comb += addr.eq(Mux(fault == 1, job.base ^ 0x400, from_operand) + changes)
                with m.If(fault == 13):
                    m.d.comb += addr.eq(from_operand + 1)
                with m.If(mem.cmd.ready):
                    m.next = "GET"
            with m.State("GET"):
                with m.If(mem.rdata.valid):
                    m.next = "COMMAND"
            with m.State("COMMAND"):
                m.d.comb += [
                    mem.cmd.valid.eq(1),
                    mem.cmd.payload.write.eq(1),
                    mem.cmd.payload.beats.eq(1),
                    addr.eq(job.result + Mux(fault == 2, job.room - 4, 0)),
                ]
                with m.If(mem.cmd.ready):
                    m.next = "PUT"
            with m.State("PUT"):
                m.d.comb += mem.wdata.valid.eq(1)
                with m.If(mem.wdata.ready):
                    m.d.sync += beat.eq(~beat)
                    with m.If(beat):
                        m.next = "WAIT"
                        with m.If(fault == 3):
                            m.next = "ANSWER"
            with m.State("WAIT"):
                with m.If(mem.wdone.valid & (fault != 5)):
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq((fault != 8) | odd)
                with m.If(self.answer.valid & self.answer.ready):
                    m.d.sync += again.eq(0)
                    m.next = "TAKE"
                    with m.If(again):
                        m.next = "ANSWER"
                    with m.If(fault == 7):
                        m.next = "AFTER"
            with m.State("AFTER"):
                m.d.comb += [mem.cmd.valid.eq(1), addr.eq(from_operand)]
                with m.If(mem.cmd.ready):
                    m.next = "TAKE"
        return m
