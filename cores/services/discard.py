"""The discard service (RFC 863, TCP port 9), and the pattern it shares with the responder."""

from amaranth import C, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from ..tcp.service import SESSION_WIDTH, EventKind, EventLayout, ServiceSignature

__all__ = ["Discard", "SingleReplyService", "check_sessions"]


def check_sessions(sessions):
    """Return ``sessions``; raise ``ValueError`` unless it is a possible number of sessions."""
    if not isinstance(sessions, int) or not 1 <= sessions <= 1 << SESSION_WIDTH:
        raise ValueError(f"Number of sessions must be 1 to {1 << SESSION_WIDTH}, not {sessions!r}")
    return sessions


class SingleReplyService(wiring.Component):
    """A service that consumes whatever comes and posts at most one descriptor, which closes.

    Subclasses say by :meth:`reply` whether data draw a reply; EOF draws one in any case.

    Parameters
    ----------
    sessions : int
        Session numbers 0 to ``sessions - 1`` may come.
    members : dict
        Further members of the signature.
    rest : bool
        Sessions are places (:mod:`~trebuchet.cores.tcp.service`). It says ``rest`` as it frees
        bytes and when its descriptor is answered, if none is unanswered.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``service``  In    :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ===========  ====  ==========================================================================

    Throughput: an event takes 5 cycles while ``tx`` and ``free`` are ready. Back-pressure: while
    one of them is not, no event is taken (the contract allows it). Reset: forgets every session.
    Bad input: a session number out of range is cut to the table's address width.
    """

    def __init__(self, sessions, members=None, rest=False):
        self.sessions, self.rest = check_sessions(sessions), rest
        super().__init__({"service": In(ServiceSignature(rest)), **(members or {})})

    def reply(self):
        """(data draw a reply, its address, its length)"""
        raise NotImplementedError

    # Three flags a session: its descriptor was posted, it is unanswered, CLOSED has come. CLOSED
    # may overtake the answer to a descriptor that was posted in the same moment, so the session is
    # released when both are there.
    def elaborate(self, platform):
        m = Module()
        flags = data.StructLayout({"posted": 1, "unanswered": 1, "dead": 1})
        m.submodules.table = table = Memory(shape=flags, depth=self.sessions, init=[])
        read = table.read_port()
        write = table.write_port()
        event = Signal(EventLayout)
        old, new = Signal(flags), write.data
        post = Signal()
        release = Signal()
        svc = self.service
        reply_on_data, addr, length = self.reply()
        reply_now = Signal()

        m.d.comb += [
            read.addr.eq(svc.event.payload.session),
            write.addr.eq(event.session),
            new.eq(old),
            svc.tx.payload.close.eq(1),
            svc.tx.payload.push.eq(1),
            svc.tx.payload.session.eq(event.session),
            svc.free.payload.session.eq(event.session),
            svc.free.payload.position.eq(event.position),
            reply_now.eq(C(reply_on_data, 1) & (event.kind == EventKind.DATA)),
        ]
        for port in (svc.tx, svc.free):
            with m.If(port.ready):
                m.d.sync += port.valid.eq(0)

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += svc.event.ready.eq(1)
                m.d.sync += event.eq(svc.event.payload)
                with m.If(svc.event.valid):
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += old.eq(read.data)
                m.next = "ACT"
            with m.State("ACT"):
                m.d.comb += write.en.eq(1)
                with m.Switch(event.kind):
                    with m.Case(EventKind.OPEN):
                        m.d.comb += new.as_value().eq(0)
                        if self.rest:
                            m.d.comb += new.posted.eq(~event.ok)
                    with m.Case(EventKind.DATA):
                        m.d.comb += post.eq(reply_now & ~old.posted)
                        m.d.sync += svc.free.valid.eq(1)
                    with m.Case(EventKind.EOF):
                        m.d.comb += post.eq(~old.posted)
                    with m.Case(EventKind.SENT):
                        m.d.comb += [new.unanswered.eq(0), release.eq(old.dead)]
                        if self.rest:
                            m.d.sync += svc.free.valid.eq(1)
                    with m.Case(EventKind.CLOSED):
                        m.d.comb += [new.dead.eq(1), release.eq(~old.unanswered)]
                with m.If(post):
                    m.d.comb += [new.posted.eq(1), new.unanswered.eq(1)]
                    m.d.sync += svc.tx.valid.eq(1)
                with m.If(release):
                    m.d.sync += svc.free.valid.eq(1)
                m.d.sync += [
                    svc.free.payload.release.eq(release),
                    svc.tx.payload.addr.eq(addr),
                    svc.tx.payload.length.eq(Mux(reply_now, length, 0)),
                ]
                if self.rest:  # all that was told is consumed
                    m.d.sync += svc.free.payload.rest.eq(~new.unanswered & ~release)
                m.next = "WAIT"
            with m.State("WAIT"):
                with m.If(~svc.tx.valid & ~svc.free.valid):
                    m.next = "IDLE"
        return m


class Discard(SingleReplyService):
    """The discard service: frees bytes as they come and closes when the peer closes.

    Parameters, ports and timing: :class:`SingleReplyService`.
    """

    def __init__(self, sessions, rest=False):
        super().__init__(sessions, rest=rest)

    def reply(self):
        return 0, 0, 0
