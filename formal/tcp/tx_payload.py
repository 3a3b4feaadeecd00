"""Proofs of ``cores/tcp/tx_payload.py``, half by half, for any number of jobs.

Ask: each job's commands name the lines that hold its payload, in order, once, in bursts of the
allowed length; none goes out before the buffer has room for all of its job; the plan that is left
for the other half says where the bytes are and where they belong.

Fill: for any plan, an arbitrary byte of an arbitrary beat that is written is the byte of the
payload that belongs there, or 0 if none does; each job writes its beats, once, and waits for
nothing but memory; beats are read as they were written, in order; the adder gets each beat once,
and ``done`` comes as many cycles after the last one as it takes to add it.

Both are of the whole core, with a FIFO of plans between the halves that the solver plays. Bursts
are cut to two beats here, so that short payloads take several.

Not proved: the sum itself (net_checksum_32); 64 bits; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal
from trebuchet.cores.memory import BEATS_WIDTH

from ..kit.inside import Inside, patched
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, within

__all__ = ["PROOFS"]

BURST, DEPTH, N = 2, 4, 4
#: Cycles from a beat in the adder to its sum (``Checksum``).
ADDS = 4
#: Signals of the core without a name of their own, by the order in which they are driven.
UNNAMED = {
    **{"left": 3, "turned_valid": 5, "turned": 6, "write": 7, "write_last": 8},
    **{"previous": 9, "prime": 10, "first": 11, "at": 13},
}


class AnyPlans(Elaboratable):
    """In the place of the FIFO of plans: full, or with a plan for the other half, at any time."""

    def __init__(self, width, depth):
        self.w_data, self.r_data = Signal(width), Signal(width)
        self.w_en, self.w_rdy, self.r_en, self.r_rdy = Signal(), Signal(), Signal(), Signal()

    def elaborate(self, platform):
        return Module()


def _reader(m, cores):
    """The core under proof, and a look inside it."""
    dut = cores.PayloadReader(8 * N, DEPTH, 2, 1)
    with patched(cores, _BURST=BURST, SyncFIFO=AnyPlans):
        return dut, Inside(m, dut)


def _plan(start, offset, length):
    """What a job comes to: beats to read, beats to write, place behind its last byte."""
    some = length != 0
    source, target = (start + length + N - 1) >> 2, (offset + length + N - 1) >> 2
    return Mux(some, source, 0)[:3], Mux(some, target, 0)[:3], (offset + length)[:2]


class AskProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        self.dut, self.inside = dut, inside = _reader(m, self.cores)
        plans, cmd, job = inside.parts["plans"], dut.mem.cmd, dut.job
        free(m, plans.w_rdy, cmd.ready, job.valid, job.payload, dut.r_en)
        taken = job.valid & job.ready
        # The job at work.
        addr, length, offset = Signal(32), Signal(5), Signal(2)
        some, planned = Signal(), Signal()
        lines, beats, tail = _plan(addr[:2], offset, length)
        asked = Signal(3)
        sent = cmd.valid & cmd.ready
        m.d.comb += Assume(job.payload.offset + job.payload.length <= N * DEPTH)
        with m.If(taken):
            m.d.comb += Assert(~some | (planned & (asked == lines)))
            m.d.sync += [addr.eq(job.payload.addr), length.eq(job.payload.length)]
            m.d.sync += [offset.eq(job.payload.offset), some.eq(1), planned.eq(0), asked.eq(0)]
        with m.Elif(plans.w_en):
            m.d.sync += planned.eq(1)
        with m.Elif(sent):
            m.d.sync += asked.eq(asked + cmd.payload.beats + 1)

        used = Signal(4)  # beats reserved in the buffer, and not read
        m.d.comb += [Assume(~dut.r_en | (used != 0)), Assert(used <= DEPTH)]
        m.d.sync += used.eq(used + Mux(plans.w_en, beats, 0) - dut.r_en)
        plan = Cat(lines, beats, addr[:2], offset, tail)
        with m.If(plans.w_en):
            m.d.comb += [
                Assert(some & ~planned & plans.w_rdy),
                Assert(used + beats <= DEPTH),
                Assert(plans.w_data == plan),
            ]
        left, line = Signal(3), Signal(30)
        m.d.comb += [left.eq(lines - asked), line.eq(addr[2:] + asked)]
        with m.If(cmd.valid):
            m.d.comb += [
                Assert(some & planned & (asked < lines)),
                Assert(cmd.payload.addr == Cat(Const(0, 2), line)),
                Assert(cmd.payload.beats + 1 == Mux(left > BURST, BURST, left)),
                Assert(~cmd.payload.write & (cmd.payload.tag == 0)),
            ]
        m.d.comb += [Assert(~dut.mem.wdata.valid), Assert(dut.mem.wdone.ready)]
        m.d.comb += Assert(Const(self.cores._BURST) <= 1 << BEATS_WIDTH)
        # Nothing is waited for but these.
        room = plans.w_rdy & (used + beats <= DEPTH)
        within(m, ~some | planned | ~room | plans.w_en, 2, "plan")
        within(m, ~planned | cmd.valid | job.ready, 2, "ask")
        m.d.comb += [
            Cover(sent & (asked == 4)),
            Cover(plans.w_en & (length == 0) & (used == DEPTH)),
            Cover(plans.w_en & (used + beats == DEPTH) & (used == 2)),
        ]
        self._invariants(m, (addr, length, offset, some, planned, asked), used, plan)
        return m

    def _invariants(self, m, ghost, used, plan):
        inside = self.inside
        addr, length, offset, some, planned, asked = ghost
        lines = plan[:3]

        def at(*names):
            return Cat(inside.state(name, "ask") for name in names).any()

        m.d.comb += [
            Assert(inside.free == DEPTH - used),
            Assert(inside.fsm_bounded("ask")),
            Assert(planned == (at("ASK") | (at("IDLE") & some))),
            Assert(some | at("IDLE")),
            Assert(~some | (offset + length <= N * DEPTH)),
            Assert(asked <= lines),
        ]
        with m.If(~planned):
            m.d.comb += Assert(asked == 0)
        with m.If(at("IDLE") & some):
            m.d.comb += Assert(asked == lines)
        with m.If(at("PLAN", "ROOM")):
            m.d.comb += Assert(inside.job == Cat(addr, length, offset))
        with m.If(at("ROOM", "ASK")):
            m.d.comb += Assert(inside.made == plan)
        with m.If(at("ASK")):
            m.d.comb += Assert(inside.unnamed(UNNAMED["left"]) == lines - asked)
            with m.If(inside.unnamed(UNNAMED["left"]) != 0):
                m.d.comb += Assert(inside.line == (addr[2:] + asked)[:30])


class FillProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        self.dut, self.inside = dut, inside = _reader(m, self.cores)
        plans, rdata = inside.parts["plans"], dut.mem.rdata
        free(m, plans.r_rdy, rdata.valid, rdata.payload, dut.r_en)
        next_job = [Signal(w, name=f"next_{k}") for k, w in (("at", 2), ("by", 2), ("length", 5))]
        self.job = [Signal(len(s), name=f"job_{k}") for k, s in enumerate(next_job)]
        free(m, *next_job)
        start, offset, length = next_job
        source, target, tail = _plan(start, offset, length)
        m.d.comb += [
            Assume(offset + length <= N * DEPTH),
            plans.r_data.eq(Cat(source, target, start, offset, tail)),
            Assert(~plans.r_en | plans.r_rdy),
        ]
        self.begins = begins = Signal()
        self.some, self.taken, self.emitted = Signal(), Signal(3), Signal(3)
        self.reserved, self.written, self.read = (Signal(3, name=n) for n in "rwo")
        m.d.comb += begins.eq(plans.r_en)
        self.take = Signal()
        m.d.comb += self.take.eq(rdata.valid & rdata.ready)
        self.source, self.target, _ = _plan(*self.job)
        write = inside.parts["ram"].write_ports[0]
        with m.If(begins):
            # Asked for when there was room.
            m.d.comb += Assume((self.reserved - self.read)[:3] + target <= DEPTH)
            m.d.comb += Assert(
                ~self.some | ((self.taken == self.source) & (self.emitted == self.target))
            )
            m.d.comb += Assert(~write.en)
            m.d.sync += [mine.eq(new) for mine, new in zip(self.job, next_job, strict=True)]
            m.d.sync += [self.some.eq(1), self.taken.eq(0), self.emitted.eq(0)]
            m.d.sync += self.reserved.eq(self.reserved + target)
        with m.Else():
            m.d.sync += self.taken.eq(self.taken + self.take)
            m.d.sync += self.emitted.eq(self.emitted + inside.emit)
        self._byte(m, write)
        self._buffer(m, write)
        self._sums(m, write, length)
        self._invariants(m)
        return m

    def _byte(self, m, write):
        """One byte of one beat of each job is followed."""
        start, offset, length = self.job
        at, lane, byte = Signal(3), Signal(2), Signal(8)
        m.d.comb += [at.eq(AnyConst(3)), lane.eq(AnyConst(2))]
        number = Signal(6)  # of the payload's bytes; "negative" before the first
        m.d.comb += number.eq(Cat(lane, at) - offset)
        is_text = (number < length) & (Cat(lane, at) >= offset)
        place = Signal(6)
        m.d.comb += place.eq(start + number)
        came_in = place[2:]  # the beat from memory that has it
        data = self.dut.mem.rdata.payload.data
        with m.If(self.take & (self.taken == came_in)):
            m.d.sync += byte.eq(data.word_select(place[:2], 8))
        with m.If(write.en & (self.emitted == at + 1)):
            m.d.comb += Assert(write.data.word_select(lane, 8) == Mux(is_text, byte, 0))
            m.d.comb += [Assert(~is_text | (self.taken > came_in))]
            m.d.comb += Cover(is_text & (at == 2) & (start > offset) & (byte == 0x5A))
            m.d.comb += Cover(is_text & (at == 1) & (start < offset) & (byte == 0xA5))
        # Invariants: it is in the beat that was turned last, or in the one before.
        inside, valid = self.inside, self.inside.unnamed(UNNAMED["turned_valid"])
        done = (self.taken - valid)[:3]  # beats that have left `turned`
        with m.If(is_text & self.some):
            with m.If((self.taken != 0) & (self.taken == came_in + 1)):
                m.d.comb += Assert(inside.unnamed(UNNAMED["turned"]).word_select(lane, 8) == byte)
            with m.If((done != 0) & (done == came_in + 1)):
                m.d.comb += Assert(inside.unnamed(UNNAMED["previous"]).word_select(lane, 8) == byte)

    def _buffer(self, m, write):
        """Beats are read as they were written, each once, in order."""
        read, written, reserved = self.read, self.written, self.reserved
        ram = self.inside.parts["ram"]
        m.d.sync += [written.eq(written + write.en), read.eq(read + self.dut.r_en)]
        index, word = Signal(3), Signal(8 * N)
        m.d.comb += index.eq(AnyConst(3))
        with m.If(write.en & (written == index)):
            m.d.sync += word.eq(write.data)
        came = Signal()
        m.d.sync += came.eq(self.dut.r_en & (read == index))
        with m.If(came):
            m.d.comb += Assert(self.dut.r_data == word)
        peek = ram.read_port(domain="comb")
        m.d.comb += peek.addr.eq(index[:2])
        with m.If((index - read)[:3] < (written - read)[:3]):
            m.d.comb += Assert(peek.data == word)
        still = self.some & (self.emitted - write.en != self.target)
        left = Mux(self.some, self.target - self.emitted + write.en, 0)[:3]
        m.d.comb += [
            Assert((reserved - read)[:3] <= DEPTH),
            Assert((reserved - written)[:3] == left),
            Assert((written - read)[:3] <= (reserved - read)[:3]),
            Assert(self.inside.unnamed(UNNAMED["at"]) == written[:2]),
            Assert(self.inside.out == read[:2]),
            Assert(~write.en | self.some),
        ]
        del still

    def _sums(self, m, write, length):
        """The adder gets each beat once; `done` when the sum of a job is there, and its beats."""
        dut, adder = self.dut, self.inside.parts["adder"]
        empty = [Signal(name=f"empty{k}") for k in range(2)]
        m.d.sync += [empty[0].eq(self.begins & (length == 0)), empty[1].eq(empty[0])]
        last = Signal()
        m.d.comb += [
            last.eq((write.en & (self.emitted == self.target)) | empty[1]),
            Assert(adder.en == write.en),
            Assert(~adder.en | (adder.data == write.data)),
            Assert(~adder.en | adder.keep.all()),
            Assert(adder.extra == 0),
            Assert(adder.start == ((write.en & (self.emitted == 1)) | empty[1])),
            Assert(dut.sum == adder.sum),
        ]
        later = [Signal(name=f"later{k}") for k in range(ADDS)]
        upto = [Signal(3, name=f"upto{k}") for k in range(ADDS)]
        m.d.sync += [b.eq(a) for a, b in zip([last, *later], later, strict=False)]
        m.d.sync += [b.eq(a) for a, b in zip(upto, upto[1:], strict=False)]
        with m.If(last):
            m.d.sync += upto[0].eq(self.written + write.en)
        m.d.comb += Assert(dut.done == later[-1])
        # The reader may only take beats of jobs that are done.
        m.d.comb += Assume(~dut.r_en | (self.read != upto[-1]) & ~dut.done)
        places = [(value - self.read)[:3] for value in (*reversed(upto), self.written)]
        m.d.comb += [Assert(a <= b) for a, b in zip(places, places[1:], strict=False)]
        m.d.comb += [Cover(dut.done & later[1]), Cover(dut.done & (self.read == 3))]
        done = Signal(ADDS)
        m.d.comb += done.eq(Cat(*later))
        m.d.comb += Assert(self.inside.signal("done") == done)
        m.d.comb += Assert(self.inside.unnamed(UNNAMED["write_last"]) == last)
        m.d.comb += Assert(self.inside.write_start == adder.start)
        self.empty = empty

    def _invariants(self, m):
        inside = self.inside
        start, offset, length = self.job
        now = inside.now
        left_in, left_out = now[:3], now[3:6]
        write = inside.unnamed(UNNAMED["write"])
        prime, flush, valid = (
            inside.unnamed(UNNAMED["prime"]),
            inside.flush,
            inside.unnamed(UNNAMED["turned_valid"]),
        )
        primed = start > offset
        done = (self.taken - valid)[:3]
        run, setting = inside.state("RUN", "fill"), inside.state("SET", "fill")
        idle = inside.state("IDLE", "fill")
        _, _, tail = _plan(*self.job)
        m.d.comb += [
            Assert(inside.fsm_bounded("fill")),
            Assert(self.some | idle),
            Assert(setting == (inside.state("SET", "fill"))),
            Assert(self.empty[0] == (setting & (length == 0))),
            Assert(~self.empty[1] | (idle & (length == 0) & self.some)),
            Assert(~self.some | (offset + length <= N * DEPTH)),
            Assert((self.taken <= self.source) | ~self.some),
            Assert((self.emitted <= self.target) | ~self.some),
            Assert(self.some | ((self.taken == 0) & (self.emitted == 0))),
        ]
        finished = (self.taken == self.source) & ~valid & ~flush & (self.emitted == self.target)
        with m.If(setting | run):
            m.d.comb += [
                Assert(left_in == self.source - self.taken),
                Assert(left_out == self.target - self.emitted),
                Assert(now[6:] == Cat(start, offset, tail)),
                Assert(inside.unnamed(UNNAMED["first"]) == (self.emitted == 0)),
            ]
        with m.If(setting):
            m.d.comb += Assert(
                (self.taken == 0) & (self.emitted == 0) & ~inside.unnamed(UNNAMED["write"])
            )
            m.d.comb += Assert(~valid & ~flush & ~inside.turned_last)
        with m.If(idle):
            m.d.comb += Assert(
                ~valid & ~flush & ~inside.unnamed(UNNAMED["write"]) & ~inside.turned_last
            )
            m.d.comb += Assert(finished | ~self.some)
        with m.If(run):
            m.d.comb += [
                Assert(length != 0),
                Assert(inside.turn == (start - offset)[:2]),
                Assert(prime == (primed & (done == 0))),
                Assert(~valid | (self.taken != 0)),
                Assert(inside.turned_last == (valid & (self.taken == self.source))),
                Assert(~inside.unnamed(UNNAMED["write"]) | (self.emitted != 0)),
            ]
            with m.If(flush):
                m.d.comb += Assert((done == self.source) & (self.emitted + 1 == self.target))
                m.d.comb += Assert(~valid)
            with m.Elif(done == self.source):
                m.d.comb += Assert(self.emitted == self.target)
            with m.Else():
                m.d.comb += Assert(self.emitted == done - (primed & (done != 0)))
        # Memory is waited for alone: the job is over soon after its last beat.
        m.d.comb += Assert(self.dut.mem.rdata.ready == (run & (left_in != 0)))
        waited = within(m, ~run | (left_in != 0), 4, "fill")
        with m.If(run & (left_in == 0)):
            m.d.comb += [
                Assert(~valid | (waited == 0)),
                Assert(~flush | (waited <= 1)),
                Assert(~write | (waited <= 2)),
                Assert(waited <= 3),
            ]


PROOFS = (
    Proof(
        name="tcp_payload_ask",
        core="cores.tcp.tx_payload.PayloadReader(32, 4, 2), bursts of 2 beats",
        says="the lines of each payload are asked for in order, once, when the buffer has room; "
        "the plan says where its bytes belong",
        module="trebuchet.cores.tcp.tx_payload",
        build=AskProof,
        depth=3,
        cover_depth=26,
        mutants=(
            Mutant("beat_without_room", "made.target <= free", "made.target <= free + 1", 20),
            Mutant("forgets_to_reserve", "Mux(reserve, made.target, 0)", "0", 14),
            Mutant(
                "asks_for_less",
                "Mux(long, left - _BURST, 0)",
                "Mux(long, left - _BURST - 1, 0)",
                16,
            ),
            Mutant("line_not_moved", "line.eq(line + _BURST)", "line.eq(line)", 16),
            Mutant(
                "source_rounded_down",
                "made.source.eq(Mux(some, (start_end + n - 1) >> bits, 0))",
                "made.source.eq(Mux(some, start_end >> bits, 0))",
                12,
            ),
        ),
        assumes="a job fits the buffer; only beats that were reserved are read",
        not_proved="64 bits; a reset while running",
    ),
    Proof(
        name="tcp_payload_fill",
        core="cores.tcp.tx_payload.PayloadReader(32, 4, 2)",
        says="each byte of a payload lands in its place, zeros beside it; beats are read as they "
        "were written; `done` comes when all are there and summed",
        module="trebuchet.cores.tcp.tx_payload",
        build=FillProof,
        depth=3,
        cover_depth=18,
        mutants=(
            Mutant(
                "turned_the_other_way",
                "turn.eq(now.start - now.offset)",
                "turn.eq(now.offset - now.start)",
                14,
            ),
            Mutant("a_byte_behind_the_end", "(i >= now.tail)", "(i > now.tail)", 14),
            Mutant(
                "lands_on_the_beat",
                "(first & (i < now.offset)) | (last_out & (now.tail != 0) & (i >= now.tail))",
                "last_out & (now.tail != 0) & (i >= now.tail)",
                14,
            ),
            Mutant(
                "first_beat_twice",
                "prime.eq(now.start > now.offset)",
                "prime.eq(now.start >= now.offset)",
                14,
            ),
            Mutant("done_too_early", "self.done.eq(done[-1])", "self.done.eq(done[-2])", 14),
        ),
        assumes="plans as tcp_payload_ask proves them; only beats of jobs that are done are read",
        not_proved="the sum (net_checksum_32); 64 bits; a reset while running",
    ),
)
