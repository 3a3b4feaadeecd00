"""Sweeps that follow each other soon while a service has few free places."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Pressure"]


class Pressure(wiring.Component):
    """Has unfinished requests end early when they take the places that others need.

    A request that has not come to its end keeps its session's place
    (:mod:`~trebuchet.cores.tcp.service`). So as many sessions as there are places, with a byte of a
    request each, would shut everybody out until they are late. While less than a quarter of the
    places is free, this asks for a sweep every 2 ** ``period_log2`` cycles: what is incomplete at
    two of them is late.

    ===========  ===  =========================================================================
    ``free``     In   free places of the service
    ``sweep``    Out  strobe
    ===========  ===  =========================================================================

    Parameters
    ----------
    places : int
        Places of the service, a power of two of at least 4.
    period_log2 : int
        log2 of the cycles between sweeps, 10 or more: longer than it takes to send a request whose
        segments follow each other at once, and than ``places`` pieces of work of the service, as a
        sweep that is under way hears no other.

    The first sweep is at most a period after ``free`` has fallen, so a request is late one to two
    periods after that at the earliest. Places that are taken for other reasons, as connections that
    are sent large objects, are left alone: a sweep costs the service a look at each place.
    Latency 1 cycle. Reset: a period from now. Bad input: none.
    """

    def __init__(self, places, period_log2=16):
        if not isinstance(places, int) or places < 4 or places & (places - 1):
            raise ValueError(f"Places must be a power of two of at least 4, not {places!r}")
        if not isinstance(period_log2, int) or period_log2 < 10:
            raise ValueError(f"Period must be at least 2**10 cycles, not 2**{period_log2!r}")
        self.places, self.period_log2 = places, period_log2
        super().__init__({"free": In(range(places + 1)), "sweep": Out(1)})

    def elaborate(self, platform):
        m = Module()
        passed = Signal(self.period_log2)
        m.d.sync += passed.eq(passed + 1)
        m.d.sync += self.sweep.eq((passed == 0) & (self.free < self.places // 4))
        return m
