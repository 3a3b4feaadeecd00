"""Round-robin arbiter over requests that come and go."""

from amaranth import Module, Mux, Signal
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

    def elaborate(self, platform):
        m = Module()
        preferred = Signal(self.n)
        m.d.comb += [
            preferred.eq(self.i & self.behind),
            self.o.eq(_lowest(Mux(preferred.any(), preferred, self.i), self.n)),
        ]
        with m.If(self.i.any()):
            # Bits above the granted one.
            m.d.sync += self.behind.eq(~(self.o | (self.o - 1)))
        return m


def _lowest(value, n):
    return (value & (~value + 1))[:n]
