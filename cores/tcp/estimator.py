"""Arithmetic of the retransmission time-out (RFC 6298) and the congestion window (RFC 5681)."""

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["CONGESTION", "CongestionWindow", "FixedWindow", "RttEstimator"]


class RttEstimator(wiring.Component):
    """New SRTT, RTTVAR and RTO for a record and a sample, 5 cycles after its inputs are stable.

    SRTT is kept times 8 and RTTVAR times 4, in ticks, as Jacobson's code does, so that the
    gains 1/8 and 1/4 lose nothing but the last fraction. The golden model is
    :func:`trebuchet.models.tcp.rtt_update`.

    =============  ===  ===========================================================
    ``srtt8``      In   and ``rttvar4``, ``valid``: estimates so far
    ``sample``     In   1: a sample was taken, of ``now`` - ``start``
    ``rto_min``    In   and ``rto_initial``: registers
    ``srtt8_new``  Out  and ``rttvar4_new``: estimates with the sample (if there is one)
    ``rto``        Out  time-out from the new estimates
    =============  ===  ===========================================================
    """

    def __init__(self, rto_max):
        self.rto_max = rto_max
        super().__init__(
            {
                "srtt8": In(19),
                "rttvar4": In(18),
                "valid": In(1),
                "sample": In(1),
                "start": In(16),
                "now": In(16),
                "rto_min": In(16),
                "rto_initial": In(16),
                "srtt8_new": Out(19),
                "rttvar4_new": Out(18),
                "rto": Out(17),
            }
        )

    def elaborate(self, platform):
        m = Module()
        measured, error = Signal(16), Signal(signed(17))
        size = Signal(17)  # of the error
        total = Signal(20)
        known = Signal()
        m.d.comb += size.eq(Mux(error[-1], -error, error))
        m.d.sync += [
            measured.eq(self.now - self.start),
            error.eq(measured - (self.srtt8 >> 3)),
            self.srtt8_new.eq(self.srtt8),
            self.rttvar4_new.eq(self.rttvar4),
            known.eq(self.valid | self.sample),
            total.eq((self.srtt8_new >> 3) + Mux(self.rttvar4_new == 0, 1, self.rttvar4_new)),
        ]
        with m.If(self.sample & self.valid):
            m.d.sync += self.srtt8_new.eq(self.srtt8 + error)
            m.d.sync += self.rttvar4_new.eq(self.rttvar4 - (self.rttvar4 >> 2) + size)
        with m.Elif(self.sample):
            m.d.sync += [self.srtt8_new.eq(measured << 3), self.rttvar4_new.eq(measured << 1)]
        m.d.sync += self.rto.eq(total)
        with m.If(~known):
            m.d.sync += self.rto.eq(self.rto_initial)
        with m.Elif(total < self.rto_min):
            m.d.sync += self.rto.eq(self.rto_min)
        with m.Elif(total > self.rto_max):
            m.d.sync += self.rto.eq(self.rto_max)
        return m


class CongestionWindow(wiring.Component):
    """Congestion window after an ACK, 3 cycles after its inputs are stable.

    This is the interface of every congestion control, and that of NewReno, which is the default.
    Which ACK or loss is which is the receive engine's business (RFC 6582), and so is the window of
    one MSS after a time-out the timer's (RFC 5681, 3.1).

    Slow start adds what was acknowledged, at most one MSS; congestion avoidance adds an MSS
    each time a whole window has been acknowledged (RFC 5681, 3.1, by counting bytes).

    =============  ===  =====================================================================
    ``acked``      In   bytes newly acknowledged
    ``out``        In   bytes unacknowledged before
    ``cwnd`` …     In   ``cwnd``, ``credit``, ``ssthresh``, ``mss`` of the record
    ``grown``      Out  new ``cwnd``; ``credit_new`` goes with it
    ``half``       Out  ``ssthresh`` after a loss: half of ``out``, at least two MSS
    =============  ===  =====================================================================

    Parameter ``bits``: of the windows. It grows until its top bit is set: no peer's window is
    larger, so more is of no use.
    """

    def __init__(self, bits=17):
        self.bits = bits
        super().__init__(
            {
                "acked": In(bits + 1),
                "out": In(bits + 1),
                "cwnd": In(bits),
                "credit": In(bits),
                "ssthresh": In(bits),
                "mss": In(11),
                "grown": Out(bits),
                "credit_new": Out(bits),
                "half": Out(bits),
            }
        )

    def elaborate(self, platform):
        m = Module()
        step, total, slow, whole = Signal(11), Signal(self.bits + 2), Signal(), Signal()
        rest = Signal(self.bits)
        large = self.cwnd[-1]
        m.d.sync += [
            step.eq(Mux(self.acked > self.mss, self.mss, self.acked)),
            total.eq(self.credit + self.acked),
            slow.eq(self.cwnd < self.ssthresh),
            whole.eq(total >= self.cwnd),
            rest.eq(total - self.cwnd),
            self.half.eq(Mux((self.out >> 1) > (self.mss << 1), self.out >> 1, self.mss << 1)),
            self.grown.eq(self.cwnd),
            self.credit_new.eq(0),
        ]
        with m.If(slow & ~large):
            m.d.sync += self.grown.eq(self.cwnd + step)
        with m.Elif(~large & whole):
            m.d.sync += [self.grown.eq(self.cwnd + self.mss), self.credit_new.eq(rest)]
        with m.Elif(~large):
            m.d.sync += self.credit_new.eq(total)
        return m


class FixedWindow(CongestionWindow):
    """No congestion control: from the first ACK on the peer's window alone limits what is sent.

    For links of one's own, with nobody to share them with, where a loss means a damaged frame and
    not a full queue: it costs one retransmission and no speed. Ports and latency of
    :class:`CongestionWindow`; ``grown`` is the largest window there is, ``half`` is ``cwnd``.
    """

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.half.eq(self.cwnd)
        m.d.comb += [self.grown.eq(1 << self.bits - 1), self.credit_new.eq(0)]
        return m


#: Congestion controls by name, as a configuration chooses them.
CONGESTION = {"newreno": CongestionWindow, "fixed": FixedWindow}
