"""Second implementations, on purpose unlike our own, bound to the same properties as ours.

The properties speak about ports only, so that they can be bound to somebody else's core. Two such
cores are in ``second_cores.py`` as examples, no part of any design: a FIFO that is a shift
register, without RAM, pointers or an output pipeline (contract:
:func:`~trebuchet.formal.buffers.bind_fifo`), and an arbiter that decides in the same cycle instead
of by a register (contract: :class:`~trebuchet.formal.arbiter.ArbiterContract`). Only the invariants
that make the properties inductive differ: the FIFO's are two lines.

Not proved: other sizes than those named; behaviour under a reset while running.
"""

from amaranth.hdl import Array, Assert, Elaboratable, Mux, Signal

from .arbiter import BEAT, ArbiterContract
from .buffers import bind_fifo
from .kit.proof import Mutant, Proof
from .stream import new_harness

__all__ = ["PROOFS"]


class ShiftFifoProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        queue, _ = bind_fifo(m, dut, delay=0)
        with m.If(queue.inside):  # an invariant
            m.d.comb += Assert(Array(dut.places)[queue.place] == queue.word)
        return m


class PromptArbiterProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        contract = ArbiterContract(m, dut)
        # Invariants: what is held; how far the chosen input is behind the one served last; what is
        # held since it waits comes before it.
        n, owner = dut.n, contract.owner
        distance, held = Signal(range(n)), Signal(range(n))
        for places, who in ((distance, contract.chosen), (held, owner)):
            m.d.comb += places.eq(Mux(who > dut.served, 0, n) + who - dut.served - 1)
        m.d.comb += [Assert(dut.served < n), Assert(dut.held | ~contract.started)]
        with m.If(dut.held):
            shown = Array(i.valid for i in contract.inputs)[owner]
            m.d.comb += [Assert(shown | contract.started), Assert(owner < n)]
            m.d.comb += Assert(dut.index == owner)
        with m.If(contract.waits):
            m.d.comb += Assert(contract.units + distance <= n - 1)
            with m.If(dut.held & (contract.units != 0)):
                m.d.comb += Assert(held <= distance)
        return m


PROOFS = (
    Proof(
        name="second_fifo",
        quick=True,
        core="formal.second_cores.ShiftFifo(4, 3), an example",
        says="the contract of our FIFO holds of a shift register too",
        module="trebuchet.formal.second_cores",
        build=lambda cores: ShiftFifoProof(cores.ShiftFifo(4, 3)),
        depth=2,
        cover_depth=12,
        mutants=(
            Mutant("forgets_shift", "after.eq(self.level - get)", "after.eq(self.level)"),
            Mutant(
                "one_too_many",
                "self.i.ready.eq(self.level != self.depth)",
                "self.i.ready.eq(2 + self.depth)",
            ),
            Mutant(
                "newest_first",
                "self.o.payload.eq(self.places[0])",
                "self.o.payload.eq(self.places[1])",
            ),
        ),
    ),
    *(
        Proof(
            name=f"second_arbiter_{name}",
            core=f"formal.second_cores.PromptArbiter(3 bits, 3, last={last!r}), an example",
            says="the contract of our arbiter holds of one that decides in the same cycle too",
            module="trebuchet.formal.second_cores",
            build=lambda cores, last=last: PromptArbiterProof(cores.PromptArbiter(BEAT, 3, last)),
            depth=2,
            cover_depth=12,
            mutants=(
                Mutant("lets_go", "self.held.eq(~(self.o.ready & ends))", "self.held.eq(0)"),
                Mutant("fixed_order", "self.served.eq(self.index)", "self.served.eq(0)"),
                Mutant("forgets_itself", "range(1, self.n + 1)", "range(1, self.n)"),
            ),
        )
        for name, last in (("beats", None), ("units", "end"))
    ),
)
