"""SYN cookies (RFC 4987, 3.6): sequence numbers that remember a handshake nobody keeps.

When as many handshakes are under way as may be, a SYN is answered without a session: what would be
in its record is in the SYN-ACK's sequence number, and comes back with the peer's ACK.
"""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .record import TIME_WIDTH, record_layout
from .segment import rx_segment_layout

__all__ = ["COUNTS", "SIZES", "SynCookie", "syn_ack"]

#: What the engine counts of cookies: one strobe each.
COUNTS = ("cookies_sent", "cookies_taken")
#: The peer's MSS as a cookie tells it: the largest of these that it takes. To a peer that does not
#: even take the first, which every host does (RFC 9293, 3.7.1), none is sent.
SIZES = (536, 1220, 1440, 1460)
#: A cookie holds until the end of the slot after its own: 32 to 65 seconds of milliseconds.
SLOT_LOG2 = 15
#: Slots before one comes again: three days. A cookie is no use to anybody but the host that got it.
SLOT_WIDTH = 13


class SynCookie(wiring.Component):
    """Makes cookies, and knows them again.

    =============  ===  ======================================================================
    ``segment``    In   a SYN to answer or an ACK to look at, still from three cycles before any
                        output is looked at
    ``mss``        In   with a SYN: the peer's MSS
    ``first``      In   the sequence number behind the SYN; with an ACK: its own
    ``service``    In   which service listens at its port
    ``now``        In   time in ticks
    ``hold``       In   ``block`` is being hashed: it stays, whatever the time is
    ``sent``       In   strobe: ``number`` was sent
    ``block``      Out  64 bits, looked up like a tuple for its hash
    ``hash``       In   32 bits, keyed, right two cycles before ``number`` and ``good`` are
    ``able``       Out  of a SYN: ``number`` can stand for it
    ``number``     Out  of a SYN: the sequence number to answer with, an even one
    ``plausible``  Out  of an ACK: it could be that of a cookie sent in this slot or the one before
    ``good``       Out  of a plausible ACK: it is, and ``first`` is what it was then
    ``told``       Out  of a good ACK: the peer's MSS
    =============  ===  ======================================================================

    A cookie's bits, from the top: 27 of the keyed hash of the peer's address and port, the service
    and the slot of time, exclusive or ``first``, whose lowest five bits go to the top; the slot's
    lowest two; two for the MSS; 0. So one guess in 134 million is right, and only of slots in which
    cookies were sent: otherwise ``plausible`` is 0. And an ACK is good only if its text is the
    stream's beginning: two values of ``first`` with the same 27 bits are 2**27 - 31 or more apart.
    Window scaling and SACK are forgotten, as by a peer that has neither.

    No stream, no back-pressure. *Reset*: no cookie has been sent.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "segment": In(rx_segment_layout(config)),
                "mss": In(11),
                "first": In(32),
                "service": In(record_layout(config).members["service"]),
                "now": In(TIME_WIDTH),
                "hold": In(1),
                "sent": In(1),
                "block": Out(64),
                "hash": In(32),
                "able": Out(1),
                "number": Out(32),
                "plausible": Out(1),
                "good": Out(1),
                "told": Out(11),
            }
        )
        self.slot = Signal(SLOT_WIDTH)
        self.then = Signal(SLOT_WIDTH)  # of the cookie
        self.served = Signal(2)  # cookies were sent: in this slot, in the one before

    def elaborate(self, platform):
        m = Module()
        seg, slot, served = self.segment, self.slot, self.served
        half, begins = Signal(), Signal()  # of the time that two slots take; a slot does
        m.d.sync += [half.eq(self.now[SLOT_LOG2]), begins.eq(self.now[SLOT_LOG2] ^ half)]
        # The cookie's slot may be the one before by the time that it is sent.
        m.d.sync += served.eq(served | self.sent.replicate(2))
        with m.If(begins):
            m.d.sync += [slot.eq(slot + 1), served.eq(Cat(self.sent, served[0] | self.sent))]

        past = (slot - 1)[:SLOT_WIDTH]
        theirs = seg.ack[3:5]  # of the number behind the cookie, which is even
        now, before = theirs == slot[:2], theirs == past[:2]
        with m.If(~self.hold):
            m.d.sync += [
                self.then.eq(Mux(seg.flags.syn | now, slot, past)),
                self.block.eq(Cat(self.then, C(0, 16 - SLOT_WIDTH), seg.remote_port, seg.ip)),
                self.block[SLOT_WIDTH:16].eq(self.service),
            ]
        size, mixed = Signal(2), Signal(27)
        m.d.comb += mixed.eq(self.hash[5:] ^ self.first[5:] ^ Cat(C(0, 22), self.first[:5]))
        for k, least in enumerate(SIZES[1:], 1):
            with m.If(self.mss >= least):
                m.d.comb += size.eq(k)
        m.d.sync += [
            self.able.eq(self.mss >= SIZES[0]),
            self.number.eq(Cat(C(0, 1), size, self.then[:2], mixed)),
            self.plausible.eq(seg.ack[0] & ((now & served[0]) | (before & served[1]))),
            self.good.eq(seg.ack[5:] == mixed),
        ]
        with m.Switch(seg.ack[1:3]):
            for k, value in enumerate(SIZES):
                with m.Case(k):
                    m.d.sync += self.told.eq(min(value, self.config.mss))
        return m


def syn_ack(m, o, config, cookie, ack):
    """Make register ``o``, the reply to a SYN without a session, the SYN-ACK with its cookie."""
    m.d.sync += [o.flags.rst.eq(0), o.flags.syn.eq(1), o.seq.eq(cookie.number)]
    m.d.sync += [o.ack.eq(ack), o.mss.eq(config.mss), o.window.eq(min(config.window, 65535))]
