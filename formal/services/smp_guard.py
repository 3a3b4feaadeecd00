"""Proof of ``is_stale`` in ``cores/services/smp_registers.py``: what a board's guard refuses.

With the guard on a message is refused exactly if some bit of its epoch, an arbitrary one, is not
the lease's, or if the lease is none; with the guard off none is. That the framer judges every
message by it is in its own proof (``framer.py``).

Not proved: anything that moves.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Cover, Elaboratable, Signal

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

BITS = 16


class SmpGuardProof(Elaboratable):
    def __init__(self, cores):
        self.cores = cores

    def elaborate(self, platform):
        m = new_harness()
        epoch, lease, guard, stale = Signal(BITS), Signal(BITS), Signal(), Signal()
        free(m, epoch, lease, guard)
        place = Signal(range(BITS))
        m.d.comb += [
            place.eq(AnyConst(4)),
            stale.eq(self.cores.is_stale(epoch, lease, guard)),
        ]
        differs = epoch.bit_select(place, 1) != lease.bit_select(place, 1)
        m.d.comb += [
            Assert(guard | ~stale),
            Assert(~guard | ~differs | stale),
            Assert(~guard | (lease != 0) | stale),
            Assert(~stale | (epoch != lease) | (lease == 0)),
            Cover(guard & ~stale & (place == BITS - 1)),
            Cover(stale & (lease != 0)),
        ]
        return m


PROOFS = (
    Proof(
        name="smp_guard",
        core="cores.services.smp_registers: is_stale",
        says="with the guard on all epochs but the lease's are refused, and all without a lease",
        module="trebuchet.cores.services.smp_registers",
        build=SmpGuardProof,
        depth=1,
        cover_depth=3,
        mutants=(
            Mutant("leaves_a_bit_out", "epoch != lease", "epoch[:15] != lease[:15]"),
            Mutant("older_ones_only", "epoch != lease", "epoch < lease"),
            Mutant("admits_none", "(epoch != lease) | (lease == NO_EPOCH)", "epoch != lease"),
            Mutant(
                "always_on", "guard & ((epoch != lease) | (lease == NO_EPOCH))", "(epoch != lease)"
            ),
        ),
        assumes="nothing",
        not_proved="that the framer judges messages by it: smp_framer",
    ),
)
