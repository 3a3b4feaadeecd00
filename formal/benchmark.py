"""Proof of ``BenchmarkBody`` in ``cores/roles/benchmark/role.py``, with beats of 32 bits.

Contract, over public ports: each packet in is answered by one packet, ``delay`` + 2 cycles after
its last beat: its first 16 bytes, then the words of four xorshift32 generators in turn, from the
same seeds for each packet; as many bytes as ``output_length`` says, at least 16, or as the operand
had.

Not proved: operands of fewer than 16 bytes, which the role refuses; other widths; a reset while
running.
"""

from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..models.roles import BENCHMARK_SEEDS
from .inside import Inside
from .proof import Mutant, Proof
from .stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]


def _moves(port):
    return port.valid & port.ready


def _xorshift(x):
    """One step of Marsaglia's generator: shifts of 13, 17 and 5."""
    x = x ^ (x << 13)[:32]
    x = x ^ (x >> 17)
    return (x ^ (x << 5)[:32])[:32]


class BenchmarkProof(Elaboratable):
    def __init__(self, cores):
        self.dut = cores.BenchmarkBody(32)

    def elaborate(self, platform):
        m = new_harness()
        dut, csr = self.dut, self.dut.csr
        i = Inside(m, dut)
        self.head = i.unnamed(1)  # `size` and `head` have no names of their own
        free(m, dut.i.valid, dut.i.payload, dut.o.ready, csr.delay, csr.output_length)
        begins = stream_rules(m, dut.i, Assume, "i")
        out_begins = stream_rules(m, dut.o, Assert, "o")
        taken, sent, size = Signal(18), Signal(18), Signal(20)
        head = [Signal(32, name=f"head{k}") for k in range(4)]
        noise = [Signal(32, name=f"noise{k}") for k in range(4)]
        taking, sized, waited, delay = Signal(init=1), Signal(), Signal(32), Signal(32)
        beat, out = dut.i.payload, dut.o.payload
        wanted = csr.output_length
        giving = ~taking & ~sized & (waited == delay + 1)
        m.d.comb += [
            # 16 bytes to 1 MiB - 1.
            Assume(~dut.i.valid | ~beat.last | (taken >= 3)),
            Assume(~dut.i.valid | (taken < (1 << 18) - 1)),
            Assume(csr.delay < (1 << 32) - 1),
            Assert(dut.i.ready == taking),
            Assert(dut.o.valid == giving),
        ]
        with m.If(_moves(dut.i)):
            m.d.sync += [taken.eq(taken + 1), size.eq((taken << 2) + 4 - beat.empty)]
            for k, word in enumerate(head):
                with m.If(taken == k):
                    m.d.sync += word.eq(beat.data)
            with m.If(beat.last):
                m.d.sync += [taking.eq(0), sized.eq(1)]
        with m.If(sized):
            least = Mux(wanted < 16, 16, wanted)
            m.d.sync += [sized.eq(0), waited.eq(0), delay.eq(csr.delay), sent.eq(0)]
            m.d.sync += size.eq(Mux(wanted == 0, size, least))
            m.d.sync += [word.eq(s) for word, s in zip(noise, BENCHMARK_SEEDS, strict=True)]
        with m.Elif(~taking & ~giving):
            m.d.sync += waited.eq(waited + 1)
        final = (sent << 2) + 4 >= size
        with m.If(dut.o.valid):
            turn = sent[:2]
            m.d.comb += [
                Assert(out.data == Mux(sent < 4, Array(head)[turn], Array(noise)[turn])),
                Assert(out.first == (sent == 0)),
                Assert(out.last == final),
                Assert(out.empty == Mux(final, ((sent << 2) + 4 - size)[:2], 0)),
                Assert(~out.error),
            ]
        with m.If(_moves(dut.o)):
            m.d.sync += sent.eq(sent + 1)
            for k, word in enumerate(noise):
                with m.If((sent[:2] == k) & (sent >= 4)):
                    m.d.sync += word.eq(_xorshift(word))
            with m.If(final):
                m.d.sync += [taking.eq(1), taken.eq(0)]
        m.d.comb += Cover(_moves(dut.o) & (sent == 5) & final & (size == 22))
        self._invariants(m, i, taking, sized, giving, taken, sent, size, head, noise)
        m.d.comb += [
            Assert(~i.state("WAIT", "body") | (i.wait == delay - waited)),
            Assert(~i.state("WAIT", "body") | (waited <= delay)),
            Assert(delay != (1 << 32) - 1),
            Assert(begins == (~taking | (taken == 0))),
            Assert(out_begins == (~giving | (sent == 0))),
        ]
        return m

    def _invariants(self, m, i, taking, sized, giving, taken, sent, size, head, noise):
        def rotated(words, by):
            return Array(Cat(words[k:], words[:k]) for k in range(4))[by]

        m.d.comb += [
            Assert(i.fsm_bounded("body")),
            Assert(i.state("TAKE", "body") == taking),
            Assert(i.state("SIZE", "body") == sized),
            Assert(i.state("GIVE", "body") == giving),
            Assert(~(taking & sized)),
        ]
        with m.If(taking):
            known = Mux(taken < 4, taken, 4)
            m.d.comb += Assert((taken == 0) | (i.left == 4 - known))
            m.d.comb += Assert((taken == 0) | (size == taken << 2))
            m.d.comb += Assert((taken == 0) | (i.unnamed(0) == size))
            # The newest word is on top.
            for have in range(1, 4):
                with m.If(taken == have):
                    m.d.comb += Assert(self.head[128 - 32 * have :] == Cat(head[:have]))
            with m.If(taken >= 4):
                m.d.comb += Assert(self.head == Cat(head))
        with m.Elif(sized):
            m.d.comb += [Assert(self.head == Cat(head)), Assert(size >= 13)]
        with m.Else():
            given = Mux(sent < 4, sent, 4)
            m.d.comb += [
                Assert(i.left == 4 - given),
                Assert((sent << 2) < size),
                Assert(self.dut.o.payload.first == (sent == 0)),
                Assert(i.noise == rotated(noise, Mux(sent < 4, 0, sent[:2]))),
                Assert(giving | (sent == 0)),
            ]
            for gone in range(4):
                with m.If(sent == gone):
                    m.d.comb += Assert(self.head[: 128 - 32 * gone] == Cat(head[gone:]))
        with m.If(~taking):
            m.d.comb += Assert(i.unnamed(0) == (size - Mux(sized, 0, sent << 2))[:20])


PROOFS = (
    Proof(
        name="benchmark_body",
        core="cores.roles.benchmark.role.BenchmarkBody(32)",
        says="after the delay: the operand's head, then the generators' words, as many as asked",
        module="trebuchet.cores.roles.benchmark.role",
        build=BenchmarkProof,
        depth=1,
        cover_depth=22,
        mutants=(
            Mutant("one_byte_more", "o.last.eq(size <= n)", "o.last.eq(size < n)", 16),
            Mutant("short_results", "Mux(wanted < HEAD, HEAD, wanted)", "wanted", 12),
            Mutant("other_generator", "(x >> 17)", "(x >> 16)", 22),
            Mutant("no_delay", "with m.If(wait == 0):", "with m.If(wait <= 1):", 12),
            Mutant("loses_the_head", "i.first | (left != 0)", "i.first", 12),
        ),
        assumes="the stream rules; operands of at least 16 bytes",
        not_proved="other widths; a reset while running",
        quick=False,
    ),
)
