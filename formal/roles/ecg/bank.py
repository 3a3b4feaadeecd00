"""Proof of ``VectorStore`` in ``cores/roles/ecg/bank.py``.

A queue of values in which a vector is offered only when all of it is inside.

Not proved: a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Signal
from amaranth.lib import data

from ...kit.inside import Inside, RegisterStreamFifo, patched
from ...kit.parts import moves
from ...kit.proof import Mutant, Proof
from ...stream import Queue, free, new_harness, stream_rules

__all__ = ["PROOFS"]


class VectorStoreProof(Elaboratable):
    """With a FIFO of registers, whose cells tell how many vectors are inside."""

    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        dut = self.cores.VectorStore(3)
        with patched(self.cores, StreamFifo=RegisterStreamFifo):
            i = Inside(m, dut)
        fifo = i.parts["fifo"].fifo
        m.d.comb += fifo.shows.eq(1)
        free(m, dut.i.valid, dut.i.payload, dut.o.ready)
        stream_rules(m, dut.i, Assume, "i")
        stream_rules(m, dut.o, Assert, "o")
        depth = 2 * dut.inputs
        puts, gets = moves(dut.i), moves(dut.o)
        queue = Queue(
            m,
            puts=puts,
            put_word=dut.i.payload,
            gets=gets,
            get_valid=dut.o.valid,
            get_word=dut.o.payload,
            capacity=depth,
        )
        ends = Signal(range(depth + 1))  # last values inside
        m.d.sync += ends.eq(ends + (puts & dut.i.payload.last) - (gets & dut.o.payload.last))
        m.d.comb += [
            Assert(dut.o.valid == (ends != 0)),
            Assert(dut.i.ready == (queue.level != depth)),
            Assert(i.complete == ends),
            Assert(fifo.level == queue.level),
            Cover(gets & dut.o.payload.last & (queue.level == 4)),
        ]
        lasts = [data.View(dut.i.payload.shape(), cell).last for cell in fifo.cells]
        m.d.comb += Assert(ends == sum((fifo.level > k) & last for k, last in enumerate(lasts)))
        for k, cell in enumerate(fifo.cells):
            with m.If(queue.inside & (queue.place == k)):
                m.d.comb += Assert(cell == queue.word)
        return m


PROOFS = (
    Proof(
        name="ecg_vector_store",
        core="cores.roles.ecg.bank.VectorStore(3)",
        says="a queue of values that offers a vector only when all of it is there",
        module="trebuchet.cores.roles.ecg.bank",
        build=VectorStoreProof,
        depth=1,
        cover_depth=14,
        mutants=(
            Mutant("offers_parts", "offered.eq(complete != 0)", "offered.eq(1)"),
            Mutant("counts_values", "self.o.ready & self.o.payload.last", "self.o.ready"),
        ),
    ),
)
