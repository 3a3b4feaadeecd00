"""A role whose work is a packet in, a packet out: everything else around it."""

from amaranth import C, Module, Signal
from amaranth.lib import wiring

from ...models.status import Status
from ..engines.contract import check_body
from ..tcp.service import LENGTH_WIDTH
from .contract import AnswerLayout, JobKind, JobLayout, RoleSignature
from .fetch import MemoryJoin, OperandReader, ResultWriter

__all__ = ["PacketRole"]


class PacketRole(wiring.Component):
    """Turns the body of a stream engine into a role.

    Parameters
    ----------
    body : Component
        Keeps the contract of :mod:`~trebuchet.cores.engines.contract`, with streams of ``width``
        bits: it is given the operand as one packet and gives the result as one. May have registers.
    width, tag_width : int
        Data path and tag bits of the memory port, in bits.
    lengths : range
        Bytes of operand that ``body`` can work on; any other length is answered ``BAD_LENGTH``.
        Length 0, where ``lengths`` has it, is answered ``OK`` with an empty result; there is no
        packet then.

    Ports: :class:`~trebuchet.cores.roles.contract.RoleSignature` with the body's registers.

    A result whose packet has ``error`` is answered ``BAD_DATA``, one that does not fit ``room``
    ``NO_ROOM``, a job of another kind than ``DATA`` ``BAD_TYPE``. Of the contract's surroundings:
    no packet given to ``body`` is damaged; a job is answered when its packet has left, so there is
    one packet at work at most, and each beat of a result is taken in the end; registers reach the
    body at once.

    One job at a time. Latency: the body's, two memory latencies and 14 cycles. Throughput inside a
    job: the body's, at most 16 beats in 18 cycles. Back-pressure: the body sees stalls of the
    memory on both streams. Reset: abandons the job. Bound on an answer: the body's.
    """

    prompt_writes = True

    def __init__(self, body, width=32, tag_width=2, lengths=range(1, 1 << LENGTH_WIDTH)):
        self.block = check_body(body, width)
        if lengths.step <= 0 or not 0 <= lengths.start < lengths.stop <= 1 << LENGTH_WIDTH:
            raise ValueError(f"Lengths must be a rising range below 2**20, not {lengths!r}")
        if lengths.step & (lengths.step - 1) or lengths.start % lengths.step:
            raise ValueError(
                f"Lengths must be multiples of a power of two, not those of {lengths!r}"
            )
        self.body, self.width, self.tag_width, self.lengths = body, width, tag_width, lengths
        self.verilog_files = getattr(body, "verilog_files", ())
        super().__init__(RoleSignature(self.block, width, tag_width))

    def elaborate(self, platform):
        m = Module()
        m.submodules.body = body = self.body
        m.submodules.reader = reader = OperandReader(self.width, self.tag_width)
        m.submodules.writer = writer = ResultWriter(self.width, self.tag_width)
        m.submodules.join = join = MemoryJoin(self.width, self.tag_width)
        wiring.connect(m, reader.packet, body.i)
        wiring.connect(m, body.o, writer.packet)
        wiring.connect(m, reader.mem, join.reader)
        wiring.connect(m, writer.mem, join.writer)
        wiring.connect(m, join.mem, wiring.flipped(self.mem))
        if self.block is not None:
            wiring.connect(m, wiring.flipped(self.csr), body.csr)

        job = Signal(JobLayout)
        status = Signal(AnswerLayout["status"].shape)
        read_waits, write_waits = Signal(), Signal()
        done = Signal(2)
        m.d.comb += [
            reader.request.valid.eq(read_waits),
            writer.request.valid.eq(write_waits),
            writer.request.payload.addr.eq(job.result),
            writer.request.payload.room.eq(job.room),
            self.answer.payload.status.eq(status),
        ]
        for name in ("base", "offset", "ring_log2", "length"):
            m.d.comb += reader.request.payload[name].eq(job[name])
        for name in ("source", "session", "id"):
            m.d.comb += self.answer.payload[name].eq(job[name])
        with m.If(reader.request.ready):
            m.d.sync += read_waits.eq(0)
        with m.If(writer.request.ready):
            m.d.sync += write_waits.eq(0)
        with m.FSM(name="role"):
            with m.State("IDLE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += [job.eq(self.job.payload), done.eq(0)]
                with m.If(self.job.valid):
                    m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += [status.eq(Status.OK), self.answer.payload.length.eq(0)]
                m.next = "ANSWER"
                with m.If(job.kind != JobKind.DATA):
                    m.d.sync += status.eq(Status.BAD_TYPE)
                with m.Elif(~self._fits(job.length)):
                    m.d.sync += status.eq(Status.BAD_LENGTH)
                with m.Elif(job.length != 0):
                    m.d.sync += [read_waits.eq(1), write_waits.eq(1)]
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.sync += done.eq(done | reader.done | writer.done << 1)
                with m.If(done.all()):
                    with m.If(writer.overflow):
                        m.d.sync += status.eq(Status.NO_ROOM)
                    with m.Elif(writer.error):
                        m.d.sync += status.eq(Status.BAD_DATA)
                    with m.Else():
                        m.d.sync += self.answer.payload.length.eq(writer.length)
                    m.next = "ANSWER"
            with m.State("ANSWER"):
                m.d.comb += self.answer.valid.eq(1)
                with m.If(self.answer.ready):
                    m.next = "IDLE"
        return m

    def _fits(self, length):
        """Whether ``length`` is one of ``lengths``; a comparison that is always true is no gate."""
        wanted = self.lengths
        log2 = wanted.step.bit_length() - 1
        fits = length[:log2] == 0 if log2 else C(1)
        if wanted.start > 0:
            fits &= length >= wanted.start
        if wanted[-1] + wanted.step < 1 << LENGTH_WIDTH:
            fits &= length <= wanted[-1]
        return fits
