"""Proof of ``cores/tcp/tx_payload.py``: what is read, where its bytes land, and their sum.

Two jobs, one behind the other, of any length up to 7 bytes (0 too), any address and any place in
the beat; memory and reader as slow as they like. Asserted: the commands ask for exactly the lines
that hold the payload, in bursts of the allowed length; nothing is asked for before the buffer has
room for it; every beat read holds the payload's bytes in their places and zeros beside them; the
sum is the one's complement sum (RFC 1071) of those beats; ``done`` comes once for each job and not
before its beats are there. Bursts are cut to two beats here, so that short payloads take several.

Not proved: longer payloads, later jobs; a reset while running.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Cat, Const, Cover, Elaboratable, Mux, Signal

from .proof import Mutant, Proof
from .stream import new_harness

__all__ = ["PROOFS"]

LONGEST, BURST, DEPTH = 7, 2, 4


class PayloadProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        cores = self.cores
        self.dut = dut = cores.PayloadReader(32, DEPTH, 2, 1)
        kept, cores._BURST = cores._BURST, BURST
        try:
            m.submodules.dut = dut.elaborate(platform)
        finally:
            cores._BURST = kept
        dut._MustUse__used = True
        self.read = Signal(4)  # beats taken from the buffer
        m.d.sync += self.read.eq(self.read + dut.r_en)
        self.jobs = [self._job(m, k) for k in range(2)]
        put = Signal(2)
        chosen = Array(Cat(j["addr"], j["length"], j["offset"]) for j in self.jobs)[put[0]]
        m.d.comb += [
            dut.job.valid.eq(put != 2),
            dut.job.payload.addr.eq(chosen[:32]),
            dut.job.payload.length.eq(chosen[32:35]),
            dut.job.payload.offset.eq(chosen[35:]),
        ]
        m.d.sync += put.eq(put + (dut.job.valid & dut.job.ready))
        asked = self._commands(m, put)
        self._answers(m, asked)
        self._beats(m)
        return m

    def _job(self, m, k):
        """One job: its parameters and what must come of them."""
        job = {
            name: Signal(width, name=f"{name}_{k}")
            for name, width in (("addr", 32), ("length", 3), ("offset", 2), ("lines", 2))
        }
        job |= {name: Signal(2, name=f"{name}_{k}") for name in ("beats",)}
        words = [Signal(32, name=f"word_{k}_{i}") for i in range(3)]
        for signal in (job["addr"], job["length"], job["offset"], *words):
            m.d.comb += signal.eq(AnyConst(len(signal)))
        start, length, offset = job["addr"][:2], job["length"], job["offset"]
        text, placed = Signal(8 * LONGEST), Signal(96, name=f"placed_{k}")
        source = Cat(*words) >> (start << 3)
        for i in range(LONGEST):
            m.d.comb += text[8 * i : 8 * i + 8].eq(Mux(i < length, source[8 * i : 8 * i + 8], 0))
        m.d.comb += [
            placed.eq(text << (offset << 3)),
            job["lines"].eq(Mux(length == 0, 0, (start + length + 3) >> 2)),
            job["beats"].eq(Mux(length == 0, 0, (offset + length + 3) >> 2)),
        ]
        total = Const(0, 33)
        for i in range(3):
            part = Signal(33, name=f"sum_{k}_{i}")
            m.d.comb += part.eq(total[:32] + placed[32 * i : 32 * i + 32] + total[32])
            total = part
        wide, folded = Signal(18, name=f"wide_{k}"), Signal(17, name=f"folded_{k}")
        job["sum"] = Signal(16, name=f"sum_{k}")
        m.d.comb += [
            wide.eq(total[:16] + total[16:32] + total[32]),
            folded.eq(wide[:16] + wide[16:]),
            job["sum"].eq(folded[:16] + folded[16]),
        ]
        return job | {"words": words, "placed": placed}

    def _commands(self, m, put):
        """The lines of both jobs, in order; returns how many were asked for."""
        cmd, (one, two) = self.dut.mem.cmd, self.jobs
        asked, reserved = Signal(4), Signal(4)
        first = asked < one["lines"]
        line, left = Signal(30), Signal(3)
        m.d.comb += [
            cmd.ready.eq(AnySeq(1)),
            line.eq(Mux(first, one["addr"][2:] + asked, two["addr"][2:] + (asked - one["lines"]))),
            left.eq(Mux(first, one["lines"], one["lines"] + two["lines"]) - asked),
            reserved.eq(one["beats"] + Mux(first, 0, two["beats"])),
        ]
        with m.If(cmd.valid):
            m.d.comb += [
                Assert(left != 0),
                Assert(put > ~first),
                Assert(cmd.payload.addr == Cat(Const(0, 2), line)),
                Assert(cmd.payload.beats + 1 == Mux(left > BURST, BURST, left)),
                Assert(~cmd.payload.write & (cmd.payload.tag == 0)),
                Assert(reserved - self.read <= DEPTH),
            ]
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += asked.eq(asked + cmd.payload.beats + 1)
        return asked

    def _answers(self, m, asked):
        one, two = self.jobs
        rdata, given = self.dut.mem.rdata, Signal(4)
        pending, go = Signal(), Signal()
        index = Mux(given < one["lines"], given, given - one["lines"])[:2]
        m.d.comb += [
            go.eq(AnySeq(1)),
            rdata.valid.eq((given != asked) & (go | pending)),
            rdata.payload.data.eq(
                Mux(given < one["lines"], Array(one["words"])[index], Array(two["words"])[index])
            ),
            Assert(~self.dut.mem.wdata.valid),
        ]
        m.d.sync += pending.eq(rdata.valid & ~rdata.ready)
        with m.If(rdata.valid & rdata.ready):
            m.d.sync += given.eq(given + 1)
        self.given = given

    def _beats(self, m):
        dut, (one, two) = self.dut, self.jobs
        done, read = Signal(2), self.read
        there, beat, past = Signal(4), Signal(32), Signal(32)
        was, index = Signal(), Signal(4)
        m.d.comb += [
            there.eq(Mux(done == 0, 0, one["beats"]) + Mux(done == 2, two["beats"], 0)),
            dut.r_en.eq(AnySeq(1) & (read != there)),
            index.eq(Mux(read < one["beats"], read, read - one["beats"])),
            beat.eq(
                Mux(read < one["beats"], one["placed"], two["placed"]).word_select(index[:2], 32)
            ),
        ]
        m.d.sync += [past.eq(beat), was.eq(dut.r_en)]
        with m.If(was):
            m.d.comb += Assert(dut.r_data == past)
        with m.If(dut.done):
            m.d.sync += done.eq(done + 1)
            m.d.comb += [
                Assert(done != 2),
                Assert(self.given >= one["lines"] + Mux(done == 0, 0, two["lines"])),
                Assert(dut.sum == Mux(done == 0, one["sum"], two["sum"])),
            ]
        wrapped = (one["beats"] == 3) & (two["beats"] == 2) & (two["addr"][:2] > two["offset"])
        m.d.comb += Cover((done == 2) & (read == 5) & wrapped)
        m.d.comb += Cover((done == 2) & (one["length"] == 0) & (two["beats"] == 3) & (read == 3))


PROOFS = (
    Proof(
        name="tcp_payload",
        core="cores.tcp.tx_payload.PayloadReader(32, 4, 2), bursts of 2 beats",
        says="a payload's lines are asked for when there is room, its bytes land in their places "
        "with zeros beside them, and its sum is right",
        module="trebuchet.cores.tcp.tx_payload",
        build=PayloadProof,
        depth=24,
        cover_depth=30,
        mutants=(
            Mutant(
                "turned_the_other_way",
                "turn.eq(now.start - now.offset)",
                "turn.eq(now.offset - now.start)",
                20,
            ),
            Mutant("a_byte_behind_the_end", "(i >= now.tail)", "(i > now.tail)", 20),
            Mutant("a_beat_without_room", "made.target <= free)", "made.target <= free + 1)", 24),
            Mutant("lands_on_the_beat", "(first & (i < now.offset)) | ", "", 20),
            Mutant(
                "first_beat_twice",
                "prime.eq(now.start > now.offset)",
                "prime.eq(now.start >= now.offset)",
                20,
            ),
        ),
        method="bmc",
        assumes="two jobs of at most 7 bytes; the memory answers in order, at any time",
        not_proved="longer payloads; later jobs",
        bounded="two jobs are over by then unless memory or reader wait; where a byte lands needs "
        "a ghost of the whole pipeline to be inductive",
    ),
)
