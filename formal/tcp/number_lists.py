"""Proof of the TCP engine's list in ``cores/tcp/number_lists.py``, with two and with four places.

What comes out is what went in, in its order; the oldest number shows within a cycle after it is
first in line, and stays until it is taken; ``level`` is how many are inside.

Not proved: what happens to a list that more is put into than it holds; other depths, which differ
in constants only; a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Signal

from ..kit.proof import Mutant, Proof
from ..kit.standins import buffered_fifo_words
from ..stream import Queue, free, new_harness

__all__ = ["PROOFS"]


class ListProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        words = buffered_fifo_words(m, dut)
        free(m, dut.w_en, dut.w_data, dut.r_en)
        puts, gets = dut.w_en, dut.r_en & dut.r_rdy
        queue = Queue(
            m,
            puts=puts,
            put_word=dut.w_data,
            gets=gets,
            get_valid=dut.r_rdy,
            get_word=dut.r_data,
            capacity=dut.depth,
        )
        waits, oldest = Signal(), Signal.like(dut.r_data)
        late, was_full = Signal(), Signal()
        m.d.sync += [
            waits.eq(dut.r_rdy & ~dut.r_en),
            oldest.eq(dut.r_data),
            late.eq((queue.level != 0) & ~dut.r_rdy),
        ]
        with m.If(queue.level == dut.depth):
            m.d.sync += was_full.eq(1)
        with m.If(waits):
            m.d.comb += [Assert(dut.r_rdy), Assert(dut.r_data == oldest)]
        m.d.comb += [
            Assume((queue.level != dut.depth) | ~dut.w_en),
            Assert(dut.level == queue.level),
            Assert(dut.w_rdy == (queue.level != dut.depth)),
            Assert(~late | dut.r_rdy),
            Cover(was_full & (queue.level == 0)),
        ]
        # Invariant: the chosen number is at its place; behind an empty latch there is none.
        for place, (there, word) in enumerate(words):
            at = place if place == 0 else place - 1 + dut.r_rdy
            with m.If(queue.inside & there & (queue.place == at)):
                m.d.comb += Assert(word == queue.word)
        m.d.comb += Assert(dut.level - dut.r_rdy < dut.depth)
        return m


PROOFS = tuple(
    Proof(
        name=f"tcp_list_{depth}",
        quick=True,
        core=f"cores.tcp.number_lists.NumberList({depth} places of 3 bits)",
        says="numbers come out as they went in; the oldest shows within a cycle, and stays",
        module="trebuchet.cores.tcp.number_lists",
        build=lambda cores, depth=depth: ListProof(cores.NumberList(width=3, depth=depth)),
        depth=2,
        cover_depth=3 * depth + 4,
        mutants=mutants,
        assumes="no more is put in than fits",
        not_proved="other depths; a reset while running",
    )
    for depth, mutants in (
        (
            2,
            (
                Mutant("shows_late", "(~self.r_rdy | self.r_en)", "~self.r_rdy & self.r_en", 10),
                Mutant("shows_twice", "self.r_rdy.eq(0)", "self.r_rdy.eq(1)", 10),
            ),
        ),
        (
            4,
            (
                Mutant("skips", "head.eq(head + fetch)", "head.eq(head + 2 * fetch)", 10),
                Mutant("takes_no_notice", "tail.eq(tail + self.w_en)", "tail.eq(tail + 1)", 10),
            ),
        ),
    )
)
