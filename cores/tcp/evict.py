"""Eviction: which session is ended when a service is refused one more."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .record import TIME_WIDTH, Phase, record_layout

__all__ = ["SCAN", "Evictor"]

#: Sessions that one scan looks at where their records are in external memory.
SCAN = 256


class Evictor(wiring.Component):
    """Looks for the session that has been idle for longest, and has it ended.

    A refusal (``press``) starts a scan: the timer engine visits one session number after the
    other and shows what it finds (``seen``). What may be ended is a session of a service that has
    more than its reserve, or of the service that was refused; not one that is over and waits for
    its service. A session is idle since it began, since data of the peer were last taken while
    nothing waited for the peer's ACK, or since the peer acknowledged data, or data were queued;
    answers to keep-alive probes do not count. A released TIME-WAIT counts as idle for longest. If
    the scan finds one that has been idle for ``least`` ticks or more, a last visit (``strike``)
    ends the one that has been idle for longest, provided that all this is still so. Of equals it is
    the first that was met.

    ==============  ===  ======================================================================
    ``press``       In   strobe: ``service`` was refused a session; unheard during a scan
    ``service``     In   which one
    ``above``       In   a bit per service: it has more than its reserve
    ``least``       In   ticks that a session must have been idle for; 0: none is ever ended
    ``high``        In   no session with this number, or a higher one, was ever used
    ``want``        Out  visit ``session``; stays until ``seen``
    ``session``     Out  its number
    ``strike``      Out  this visit is the last: end it if ``ends``
    ``seen``        In   strobe: the visit is under way; ``owner``, ``phase``, ``released`` and
                         ``age``, ticks since its last progress, are the session's
    ``ends``        Out  in the cycle of ``seen``: the session is to be ended
    ==============  ===  ======================================================================

    A scan is of all sessions if their records are in block RAM, so that it finds the one that has
    been idle for longest; else of the next :data:`SCAN` numbers, and the next scan goes on from
    there. ``seen`` may wait for any time. *Reset*: no scan.
    """

    def __init__(self, config):
        self.config = config
        n, s = len(config.ports), config.session_bits
        self.scan = min(config.sessions, SCAN) if config.cache else config.sessions
        service = record_layout(config).members["service"]
        super().__init__(
            {
                "press": In(1),
                "service": In(service),
                "above": In(n),
                "least": In(22),
                "high": In(range(config.sessions + 1)),
                "want": Out(1),
                "session": Out(s),
                "strike": Out(1),
                "seen": In(1),
                "owner": In(service),
                "phase": In(Phase),
                "released": In(1),
                "age": In(TIME_WIDTH),
                "ends": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        asked = Signal.like(self.service)  # who was refused
        hand, left = Signal.like(self.session), Signal(range(self.scan))
        found, oldest, age = Signal(), Signal.like(self.session), Signal(TIME_WIDTH)
        live, done, idle = Signal(), Signal(), Signal(TIME_WIDTH)
        m.d.comb += [
            done.eq((self.phase == Phase.TIME_WAIT) & self.released),
            live.eq(
                (self.phase == Phase.OPEN)
                | (self.phase == Phase.SYN_RCVD)
                | (self.phase == Phase.SYN_SENT)
            ),
            idle.eq(Mux(done, ~0, self.age)),
        ]
        mine = self.above.bit_select(self.owner, 1) | (self.owner == asked)
        able = Signal()
        m.d.comb += able.eq(mine & (done | (live & (self.age >= self.least))))
        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                m.d.sync += [asked.eq(self.service), found.eq(0), left.eq(self.scan - 1)]
                with m.If(self.press & (self.least != 0) & (self.high != 0)):
                    m.next = "SCAN"
            with m.State("SCAN"):
                m.d.comb += [self.want.eq(1), self.session.eq(hand)]
                with m.If(self.seen):
                    m.d.sync += [left.eq(left - 1), hand.eq(hand + 1)]
                    with m.If(hand + 1 == self.high):
                        m.d.sync += hand.eq(0)
                    with m.If(able & (~found | (idle > age))):
                        m.d.sync += [found.eq(1), oldest.eq(hand), age.eq(idle)]
                    with m.If(left == 0):
                        m.next = "FOUND"
            with m.State("FOUND"):
                m.next = "IDLE"
                with m.If(found):
                    m.next = "STRIKE"
            with m.State("STRIKE"):
                m.d.comb += [self.want.eq(1), self.strike.eq(1), self.session.eq(oldest)]
                m.d.comb += self.ends.eq(self.seen & able)
                with m.If(self.seen):
                    m.next = "IDLE"
        self.asked, self.hand, self.left, self.found = asked, hand, left, found
        self.oldest, self.oldest_age = oldest, age
        return m
