"""Payload reader of the TCP sender: bursts from memory in, aligned beats and their sum out."""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..memory import ADDR_WIDTH, MemorySignature
from ..net.checksum import Checksum

__all__ = ["PayloadReader"]

_BURST = 64


class PayloadReader(wiring.Component):
    """Reads payloads from memory into a buffer, in order, several ahead.

    ==========  ====  ===============  =========================================================
    member      dir   shape            meaning
    ==========  ====  ===============  =========================================================
    ``job``     In    stream           ``addr``, ``length`` (bytes, may be 0), ``offset`` (place of
                                       the payload's first byte in its beat)
    ``mem``     Out   MemorySignature  reads only, tag 0
    ``done``    Out   1                pulse: the next job's payload is in the buffer
    ``sum``     Out   16               with ``done``: the payload's one's complement sum, bytes
                                       placed as in the beats
    ``r_en``    In    1                read the next beat; legal only after its job is done
    ``r_data``  Out   width            the beat, one cycle after ``r_en``; bytes outside the payload
                                       are 0
    ==========  ====  ===============  =========================================================

    A job takes ``ceil((offset + length) / n)`` beats of the buffer. Commands for a job go out when
    there is room for all of it, so read data never wait for the buffer, only up to four cycles
    between two jobs. *Throughput* one beat a cycle within a job.

    Parameters: ``width``, ``depth`` (beats of the buffer, a power of two), ``jobs`` (that may
    wait), ``tag_width`` of the memory port.
    """

    def __init__(self, width, depth, jobs, tag_width):
        self.width, self.depth, self.jobs = width, depth, jobs
        n = width // 8
        self.job_layout = data.StructLayout(
            {"addr": ADDR_WIDTH, "length": range(8 * depth), "offset": range(n)}
        )
        super().__init__(
            {
                "job": In(stream.Signature(self.job_layout)),
                "mem": Out(MemorySignature(width, tag_width)),
                "done": Out(1),
                "sum": Out(16),
                "r_en": In(1),
                "r_data": Out(width),
            }
        )

    def elaborate(self, platform):
        # The asking side runs ahead and leaves a plan for each job; the filling side
        # follows the plans as the data come.
        m = Module()
        n = self.width // 8
        beats = range(self.depth + 1)
        plan = data.StructLayout(
            {
                "source": beats,  # beats to come from memory
                "target": beats,  # beats to write
                "start": range(n),  # first byte's place in the source
                "offset": range(n),  # and in the target
                "tail": range(n),  # place behind the last byte in the target
            }
        )
        m.submodules.plans = plans = SyncFIFO(width=plan.size, depth=self.jobs)
        self._ask(m, plan, plans)
        self._fill(m, plan, plans)
        return m

    def _ask(self, m, plan, plans):
        n = self.width // 8
        bits = n.bit_length() - 1
        job = Signal(self.job_layout)
        made = Signal(plan)
        free = Signal(range(self.depth + 1), init=self.depth)
        reserve = Signal()
        wide = len(job.length) + 1
        start_end, target_end = Signal(wide), Signal(wide)
        m.d.comb += [
            start_end.eq(job.addr[:bits] + job.length),
            target_end.eq(job.offset + job.length),
            plans.w_data.eq(made.as_value()),
            plans.w_en.eq(reserve),
        ]
        m.d.sync += free.eq(free + self.r_en - Mux(reserve, made.target, 0))
        left, line = Signal(range(self.depth + 1)), Signal(ADDR_WIDTH - bits)
        long = left > _BURST
        command = self.mem.cmd
        m.d.comb += [
            command.payload.addr.eq(Cat(C(0, bits), line)),
            command.payload.beats.eq(Mux(long, _BURST - 1, left - 1)),
        ]
        with m.FSM(name="ask"):
            with m.State("IDLE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += job.eq(self.job.payload)
                with m.If(self.job.valid):
                    m.next = "PLAN"
            with m.State("PLAN"):
                some = job.length != 0
                m.d.sync += [
                    made.source.eq(Mux(some, (start_end + n - 1) >> bits, 0)),
                    made.target.eq(Mux(some, (target_end + n - 1) >> bits, 0)),
                    made.start.eq(job.addr[:bits]),
                    made.offset.eq(job.offset),
                    made.tail.eq(target_end[:bits]),
                ]
                m.next = "ROOM"
            with m.State("ROOM"):
                m.d.sync += [left.eq(made.source), line.eq(job.addr[bits:])]
                with m.If(plans.w_rdy & (made.target <= free)):
                    m.d.comb += reserve.eq(1)
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += command.valid.eq(left != 0)
                with m.If(left == 0):
                    m.next = "IDLE"
                with m.Elif(command.ready):
                    m.d.sync += [line.eq(line + _BURST), left.eq(Mux(long, left - _BURST, 0))]

    def _fill(self, m, plan, plans):
        n = self.width // 8
        bits = n.bit_length() - 1
        now = Signal(plan)
        m.submodules.ram = ram = Memory(
            shape=self.width, depth=self.depth, init=[], attrs=NO_COLLISIONS
        )
        m.submodules.adder = adder = Checksum(self.width)
        wp, rp = ram.write_port(), ram.read_port()
        rdata = self.mem.rdata
        take, last_in = Signal(), Signal()
        m.d.comb += [take.eq(rdata.valid & rdata.ready), last_in.eq(now.source == 1)]
        m.d.comb += self.mem.wdone.ready.eq(1)

        # Stage 1 turns a beat so that each byte is in its place of the target, but for some
        # bytes in the beat before: those come from `previous` in stage 2.
        turn = Signal(bits)
        turned, turned_valid, turned_last = Signal(self.width), Signal(), Signal()
        m.d.sync += [turned_valid.eq(take), turned_last.eq(take & last_in)]
        with m.If(take):
            m.d.sync += now.source.eq(now.source - 1)
            with m.Switch(turn):
                for k in range(n):
                    with m.Case(k):
                        m.d.sync += turned.eq(rdata.payload.data.rotate_right(8 * k))

        previous, behind = Signal(self.width), Signal(n)
        first, prime, flush = Signal(), Signal(), Signal()
        write, write_last, write_start = Signal(), Signal(), Signal()
        word = Signal(self.width)
        emit = Signal()
        last_out = now.target == 1
        m.d.comb += emit.eq((turned_valid & ~prime) | flush)
        m.d.sync += [
            write.eq(emit),
            write_last.eq(emit & last_out),
            write_start.eq(emit & first),
            flush.eq(turned_last & (now.target != Mux(prime, 0, 1))),
        ]
        with m.If(turned_valid):
            m.d.sync += [previous.eq(turned), prime.eq(0)]
        with m.If(emit):
            m.d.sync += [first.eq(0), now.target.eq(now.target - 1)]
        for i in range(n):
            cut = (first & (i < now.offset)) | (last_out & (now.tail != 0) & (i >= now.tail))
            byte = Mux(behind[i], previous.word_select(i, 8), turned.word_select(i, 8))
            m.d.sync += word.word_select(i, 8).eq(byte & (~cut).replicate(8))

        with m.FSM(name="fill"):
            with m.State("IDLE"):
                m.d.sync += [now.eq(plans.r_data), first.eq(1)]
                with m.If(plans.r_rdy):
                    m.d.comb += plans.r_en.eq(1)
                    m.next = "SET"
            with m.State("SET"):
                m.d.sync += [turn.eq(now.start - now.offset), prime.eq(now.start > now.offset)]
                # An empty job passes as a last beat that is not written.
                none = now.source == 0
                m.d.sync += [write_last.eq(none), write_start.eq(none)]
                m.next = "RUN"
                with m.If(none):
                    m.next = "IDLE"
            with m.State("RUN"):
                m.d.comb += rdata.ready.eq(now.source != 0)
                with m.If((now.target == 0) & ~write):
                    m.next = "IDLE"
        with m.Switch(turn):
            for k in range(1, n):
                with m.Case(k):
                    m.d.comb += behind.eq((1 << (n - k)) - 1)

        at, out = Signal(range(self.depth)), Signal(range(self.depth))
        m.d.sync += [at.eq(at + write), out.eq(out + self.r_en)]
        done = Signal(4)
        m.d.sync += done.eq(Cat(write_last, done))
        m.d.comb += [
            wp.addr.eq(at),
            wp.data.eq(word),
            wp.en.eq(write),
            rp.addr.eq(out),
            rp.en.eq(self.r_en),
            self.r_data.eq(rp.data),
            adder.start.eq(write_start),
            adder.en.eq(write),
            adder.keep.eq(~0),
            adder.data.eq(word),
            self.sum.eq(adder.sum),
            self.done.eq(done[-1]),
        ]
