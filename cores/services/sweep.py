"""Requests that do not come to an end: which session has waited too long for the rest of one."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["PERIOD_WIDTH", "RequestClock", "Sweeper"]

#: Bits of the time that a request may take, in ticks.
PERIOD_WIDTH = 22


class RequestClock(wiring.Component):
    """Says when the sessions of a service are to be looked through for unfinished requests.

    ===========  ===  =========================================================================
    ``tick``     In   strobe: a millisecond of protocol time has passed
    ``period``   In   ticks from one ``sweep`` to the next; 0: none
    ``sweep``    Out  strobe, in the cycle of a tick
    ===========  ===  =========================================================================

    A shorter ``period`` counts from the last sweep on. Reset: a period from now.
    """

    tick: In(1)
    period: In(PERIOD_WIDTH)
    sweep: Out(1)

    def elaborate(self, platform):
        m = Module()
        passed = Signal(PERIOD_WIDTH)
        with m.If(self.tick & (self.period != 0)):
            m.d.sync += passed.eq(passed + 1)
            with m.If(passed + 1 >= self.period):
                m.d.comb += self.sweep.eq(1)
                m.d.sync += passed.eq(0)
        return m


class Sweeper(wiring.Component):
    """Goes through all session numbers once, between other work.

    =============  ===  =======================================================================
    ``sweep``      In   strobe: begin; while one is under way it is not heard
    ``other``      In   a listed session waits for its turn
    ``idle``       In   whoever does the work takes ``session``, if ``turn``, or a listed one
    ``turn``       Out  it is the turn of ``session``: of every two one, if others wait
    ``session``    Out  number
    =============  ===  =======================================================================

    A session that waits for the rest of a request at two sweeps in a row, the same request, is
    *late*: so after one to two periods. Reset: no sweep.
    """

    def __init__(self, sessions):
        self.sessions = sessions
        super().__init__(
            {
                "sweep": In(1),
                "other": In(1),
                "idle": In(1),
                "turn": Out(1),
                "session": Out(range(sessions)),
            }
        )
        self.runs = Signal()  # no port: for proofs

    def elaborate(self, platform):
        m = Module()
        runs, passed = self.runs, Signal()  # a listed one has had its turn since ours
        m.d.comb += self.turn.eq(runs & (passed | ~self.other))
        with m.If(self.sweep):
            m.d.sync += runs.eq(1)
        with m.If(self.idle):
            m.d.sync += passed.eq(~self.turn)
            with m.If(self.turn):
                m.d.sync += self.session.eq(self.session + 1)
                with m.If(self.session == self.sessions - 1):
                    m.d.sync += [self.session.eq(0), runs.eq(0)]
        return m
