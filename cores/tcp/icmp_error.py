"""ICMP errors about our segments: their way into the receive engine, and their effect.

Sources: RFC 1191 sections 4 and 6.5 (path MTU discovery), RFC 5927 sections 4 to 7 (which errors to
believe), RFC 9293 section 3.9.2.2.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .classifier import judgement_layout
from .icmp import notice_layout
from .receive_input import InputKind, input_layout, notice_body
from .record import KILL_WRITES, Handback, Phase, UpdateSignature, kill, opening

__all__ = ["COUNTS", "MSS_FLOOR", "IcmpErrorPort", "IcmpErrorUpdate"]

#: No notice makes the MSS smaller: a datagram of 576 bytes is what every host takes (RFC 9293,
#: 3.7.1), and links that take less are not found today. With the 68 bytes that RFC 1191 allows, one
#: forged notice would have all data sent 28 bytes at a time, for good (RFC 5927, section 7).
MSS_FLOOR = 536
#: Bytes of the IPv4 and TCP headers, which have no options.
_HEADERS = 40
#: Codes of Destination Unreachable (RFC 792).
PROTOCOL, PORT, TOO_BIG = 2, 3, 4

#: What the engine counts of notices: one strobe each, and each notice is one of them.
COUNTS = ("icmp_mss", "icmp_aborts", "icmp_soft", "icmp_ignored")


#: Fields of the record that a notice changes.
WRITES = ("mss", "cwnd", "credit", "snd_nxt", "ahead", "blocked", "recover", "recovering")
WRITES += ("dup_acks", "rtt_on", *KILL_WRITES)


class IcmpErrorPort(wiring.Component):
    """Inserts ICMP notices into the receive engine's input.

    ===========  ===  ========================================================================
    ``i``        In   stream of :func:`~trebuchet.cores.tcp.receive_input.input_layout`
    ``notice``   In   stream of :func:`~trebuchet.cores.tcp.icmp.notice_layout`
    ``o``        Out  the items of ``i``, unaltered, with items of kind ``NOTICE`` in between
    ===========  ===  ========================================================================

    A notice is passed on with its addresses, number and code, and with the MSS that the next hop's
    MTU leaves, at least :data:`MSS_FLOOR`.

    Latency: none for items of ``i``, a cycle for notices. Throughput: after a notice comes an item
    of ``i``, if one waits, so notices cannot take more than every other turn. Back-pressure: each
    waits for the engine, and for the other. Reset: nothing on offer.
    """

    def __init__(self, config):
        layout = input_layout(config)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "notice": In(stream.Signature(notice_layout())),
                "o": Out(stream.Signature(layout)),
            }
        )
        self.own = Signal()  # a notice is on offer

    def elaborate(self, platform):
        m = Module()
        own, o, said = self.own, self.o, self.notice.payload
        item = Signal(o.payload.shape())
        body, mss = item.body.notice, Signal(16)
        m.d.sync += mss.eq(Mux(said.mtu < MSS_FLOOR + _HEADERS, MSS_FLOOR, said.mtu - _HEADERS))
        m.d.comb += [
            item.kind.eq(InputKind.NOTICE),
            [body[name].eq(said[name]) for name in ("ip", "remote_port", "local_port")],
            [body.seq.eq(said.seq), body.mss.eq(mss), body.code.eq(said.code)],
            o.valid.eq(own | self.i.valid),
            o.payload.eq(Mux(own, item, self.i.payload)),
            self.i.ready.eq(o.ready & ~own),
            self.notice.ready.eq(o.ready & own),
        ]
        # An item that has been offered stays until it is taken.
        between = ~self.i.valid | self.i.ready
        m.d.sync += own.eq(Mux(own, ~o.ready, self.notice.valid & between))
        return m


class IcmpErrorUpdate(wiring.Component):
    """Derives a record's new values from an ICMP error about one of the session's segments.

    ==============  ===  ======================================================================
    ``notice``      In   the variant ``notice`` of the receive engine's input
    ``judgement``   In   judgement_layout, of the notice's number as an acknowledgement
    ``update``      Out  :class:`~trebuchet.cores.tcp.record.UpdateSignature`: the record and
                         its new values
    ``count``       Out  a strobe per entry of :data:`COUNTS`, one of them for each notice
    ==============  ===  ======================================================================

    A notice is believed only if it is about a byte that is under way, SND.UNA <= its number <
    SND.MAX (RFC 5927, 4.1); it never makes a session. Then, by its code:

    * 4, in ESTABLISHED and the states after it: if the MSS becomes smaller, everything from SND.UNA
      on is sent again with the new one, beginning with one segment (RFC 1191, 6.5). No queue has
      overflowed: the threshold of slow start, the time-out and the count of retries stay, and the
      timer, which is running, goes on. The segment being timed may be among those sent again, so
      it is timed no longer;
    * 2 and 3, in SYN-SENT: the attempt is over, as after a RST;
    * all others, and these in other states: nothing (RFC 9293, MUST-56; RFC 5927, section 5).

    Latency: the outputs are valid a cycle after all inputs are stable. No stream, no back-pressure;
    nothing to reset. *Bad input*: any notice is valid input.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "notice": In(notice_body(config)),
                "judgement": In(judgement_layout(config)),
                "update": Out(UpdateSignature(config, WRITES)),
                "count": Out(data.StructLayout({name: 1 for name in COUNTS})),
            }
        )
        self.under_way, self.smaller = Signal(), Signal()

    def elaborate(self, platform):
        m = Module()
        notice, j, r, count = self.notice, self.judgement, self.update.record, self.count
        m.d.sync += [
            self.under_way.eq((j.ack_same | j.ack_new) & (j.acked != j.out)),
            self.smaller.eq(notice.mss < r.mss),
        ]
        w = Handback(m, self.update)
        refuses = (notice.code == PROTOCOL) | (notice.code == PORT)
        with m.If(~self.under_way):
            m.d.comb += count.icmp_ignored.eq(1)
        with m.Elif((notice.code == TOO_BIG) & (r.phase == Phase.OPEN) & self.smaller):
            m.d.comb += [w.mss.eq(notice.mss), w.cwnd.eq(notice.mss), w.credit.eq(0)]
            m.d.comb += [w.snd_nxt.eq(r.snd_una), w.ahead.eq(0), w.resend.eq(0), w.blocked.eq(0)]
            m.d.comb += [w.recover.eq(r.snd_max), w.recovering.eq(0), w.dup_acks.eq(0)]
            m.d.comb += [w.rtt_on.eq(0), count.icmp_mss.eq(1)]
        with m.Elif(refuses & opening(self.config, r)):
            m.d.comb += [kill(self.update, 0), count.icmp_aborts.eq(1)]
        with m.Else():
            m.d.comb += count.icmp_soft.eq(1)
        w.finish(m)
        return m
