"""What services with a table of records have in common: how work on one of them begins and ends."""

from amaranth import Signal

__all__ = ["SessionWork"]


class SessionWork:
    """Methods of services: :class:`~trebuchet.cores.services.framer.SmpFramer`, for one.

    The service has ``read``, ``write``, ``active``, ``more``, ``unread`` and ``released`` as these
    two use them, ``rest`` (sessions are places), and a method ``_idle(state)``: with all consumed
    and nothing to do the record is as after OPEN.
    """

    def _resting(self):
        self.rests = Signal()  # the session rests from now on
        self.quiet = Signal()  # this work is none after which it could

    def _begin(self, m):
        """In the state in which work is chosen."""
        if self.rest:
            m.d.sync += [self.quiet.eq(0), self.service.free.payload.rest.eq(0)]

    def _no_rest(self, m):
        """In the state of an event or visit that changes nothing, or is followed by another."""
        if self.rest:
            m.d.sync += self.quiet.eq(1)

    def _restore(self, m, state):
        """At OPEN, with the record 0: what the session was when it had its last place."""
        if self.rest:
            event = self.service.event.payload
            m.d.sync += [
                state.consumed.eq(event.position),
                state.latest.eq(event.position[: self.segment_log2 + 1]),
                state.closing.eq(~event.ok),
            ]
            self._no_rest(m)

    def _finish(self, m, state):
        """List the session if there is more to do, write its record, let tx and free be taken."""
        svc = self.service
        with m.State("SETTLE"):
            m.next = "LIST"
        with m.State("LIST"):
            if self.rest:
                busy = state.dead | state.eof | state.listed | (self.unread != 0)
                m.d.sync += self.rests.eq(self._idle(state) & ~(busy | self.released | self.quiet))
            with m.If(self.more & ~state.listed & ~self.released):
                m.d.comb += self.active.w_en.eq(1)
                m.d.sync += state.listed.eq(1)
            m.next = "WRITE"
        with m.State("WRITE"):
            m.d.comb += self.write.en.eq(1)
            m.next = "WAIT"
        with m.State("WAIT"):
            with m.If(~svc.tx.valid & ~svc.free.valid):
                m.next = "IDLE"
                if self.rest:
                    self._say_rest(m)

    def _say_rest(self, m):
        """Offer ``rest`` once, with the position that is always there, and wait for it."""
        free = self.service.free
        with m.If(self.rests):
            m.d.sync += [self.rests.eq(0), free.valid.eq(1)]
            m.d.sync += [free.payload.rest.eq(1), free.payload.release.eq(0)]
            m.next = "WAIT"
