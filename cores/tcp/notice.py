"""What ICMP errors about our segments do to their sessions.

Sources: RFC 1191 sections 4 and 6.5 (path MTU discovery), RFC 5927 sections 4 to 7 (which errors to
believe), RFC 9293 section 3.9.2.2.
"""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .icmp import notice_layout
from .receive import ReceiveEngine
from .record import Phase, kill, opening
from .segment import rx_segment_layout

__all__ = ["COUNTS", "MSS_FLOOR", "IcmpReceiveEngine", "NoticePort"]

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


class NoticePort(wiring.Component):
    """Puts notices between the segments that arrive.

    ===========  ===  ========================================================================
    ``segment``  In   stream from the parser
    ``notice``   In   stream of :func:`~trebuchet.cores.tcp.icmp.notice_layout`
    ``o``        Out  the segments with notices in between, for which ``own`` is 1
    ``own``      Out  what is on offer is a notice
    ===========  ===  ========================================================================

    A notice has the addresses of the session that its segment was of, ``ack`` the number of that
    segment's first byte, ``mss`` the MSS that the next hop's MTU leaves, at least
    :data:`MSS_FLOOR`, and ``window`` its code. Its flags are those of a RST, so nobody answers it,
    whatever comes of it; all else is 0.

    Latency: none for segments, a cycle for notices. Throughput: after a notice comes a segment, if
    one waits, so notices cannot take more than every other turn. Back-pressure: each waits for the
    engine, and for the other. Reset: nothing on offer.
    """

    def __init__(self, config):
        layout = rx_segment_layout(config)
        super().__init__(
            {
                "segment": In(stream.Signature(layout)),
                "notice": In(stream.Signature(notice_layout())),
                "o": Out(stream.Signature(layout)),
                "own": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        own, o, said = self.own, self.o, self.notice.payload
        item = Signal(o.payload.shape())
        mss = Signal(16)
        m.d.sync += mss.eq(Mux(said.mtu < MSS_FLOOR + _HEADERS, MSS_FLOOR, said.mtu - _HEADERS))
        m.d.comb += [
            item.ip.eq(said.ip),
            item.remote_port.eq(said.remote_port),
            item.local_port.eq(said.local_port),
            item.ack.eq(said.seq),
            item.mss.eq(mss),
            item.window.eq(said.code),
            item.flags.rst.eq(1),
            o.valid.eq(own | self.segment.valid),
            o.payload.eq(Mux(own, item, self.segment.payload)),
            self.segment.ready.eq(o.ready & ~own),
            self.notice.ready.eq(o.ready & own),
        ]
        # A segment that has been offered stays until it is taken.
        between = ~self.segment.valid | self.segment.ready
        m.d.sync += own.eq(Mux(own, ~o.ready, self.notice.valid & between))
        return m


class IcmpReceiveEngine(ReceiveEngine):
    """:class:`~trebuchet.cores.tcp.receive.ReceiveEngine` that heeds ICMP errors, too.

    ==============  ===  ======================================================================
    ``notice``      In   with ``segment``: it is a notice, as :class:`NoticePort` puts it
    ``noticed``     Out  a strobe per entry of :data:`COUNTS`
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
    """

    def __init__(self, config):
        more = {"notice": In(1), "noticed": Out(data.StructLayout({name: 1 for name in COUNTS}))}
        super().__init__(config, more)
        self.under_way, self.smaller = Signal(), Signal()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        j = self.j
        m.d.sync += [  # right long before the record is handed back, six cycles after its grant
            self.under_way.eq((j.ack_same | j.ack_new) & (j.acked != j.out)),
            self.smaller.eq(self.segment.payload.mss < self.port.record.mss),
        ]
        return m

    def _decide(self, m, accept, fresh, gone):
        with m.If(self.notice & ~(self.lookup.found & ~gone)):
            m.d.comb += self.noticed.icmp_ignored.eq(1)
            m.next = "TAIL"
        with m.Else():
            super()._decide(m, accept, fresh, gone)

    def _update(self, m):
        with m.If(self.notice):
            self._heed(m)
        with m.Else():
            super()._update(m)

    def _heed(self, m):
        seg, r, w = self.segment.payload, self.port.record, self.w
        refuses = (seg.window == PROTOCOL) | (seg.window == PORT)
        with m.If(~self.under_way):
            m.d.comb += self.noticed.icmp_ignored.eq(1)
        with m.Elif((seg.window == TOO_BIG) & (r.phase == Phase.OPEN) & self.smaller):
            m.d.comb += [w.mss.eq(seg.mss), w.cwnd.eq(seg.mss), w.credit.eq(0)]
            m.d.comb += [w.snd_nxt.eq(r.snd_una), w.ahead.eq(0), w.resend.eq(0), w.blocked.eq(0)]
            m.d.comb += [w.recover.eq(r.snd_max), w.recovering.eq(0), w.dup_acks.eq(0)]
            m.d.comb += [w.rtt_on.eq(0), self.noticed.icmp_mss.eq(1)]
        with m.Elif(refuses & opening(self.config, r)):
            m.d.comb += [kill(self.port, 0), self.noticed.icmp_aborts.eq(1)]
        with m.Else():
            m.d.comb += self.noticed.icmp_soft.eq(1)
