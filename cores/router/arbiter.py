"""Round-robin arbiter over requests that come and go."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["RoundRobin"]


class RoundRobin(wiring.Component):
    """Grants one of the requests in every cycle, the one granted last has the lowest priority.

    =========  ===  ===============================================================================
    ``i``      In   bit k: requester k wants a grant in this cycle
    ``o``      Out  one-hot: who has it; 0 if nobody wants
    =========  ===  ===============================================================================

    Parameters: ``n``, requesters, at least 1. Combinational; a grant is used in its cycle. A
    requester that keeps asking sees at most ``n - 1`` grants to others, one each. Requests may be
    withdrawn. Reset: requester 0 has the highest priority.
    """

    def __init__(self, n):
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"Number of requesters must be an integer >= 1, not {n!r}")
        self.n = n
        super().__init__({"i": In(n), "o": Out(n)})
        self.behind = Signal(n)  # the requesters after the one granted last; no port: for proofs

    # `wanted` are the requests behind the last grant, or all if there are none; `before[k]` tells
    # that one of them comes before k: nobody there gets the grant, and all there are next.
    def elaborate(self, platform):
        m = Module()
        preferred, wanted, before = (Signal(self.n) for _ in range(3))
        m.d.comb += [
            preferred.eq(self.i & self.behind),
            wanted.eq(Mux(preferred.any(), preferred, self.i)),
            before.eq(Cat(wanted[:k].any() for k in range(self.n))),
            self.o.eq(wanted & ~before),
        ]
        with m.If(self.i.any()):
            m.d.sync += self.behind.eq(before)
        return m
