"""Proofs of ``cores/tcp/estimator.py``: both units compute what the RFCs say, for all inputs.

Round trips: SRTT, RTTVAR and the time-out are those of RFC 6298, section 2, with the gains 1/8 and
1/4, a granularity of one tick and the bounds of the registers, written here in whole numbers wide
enough that nothing overflows. Congestion window: slow start, congestion avoidance by counting
bytes and the threshold after a loss are those of RFC 5681, 3.1.

Not proved: what comes out before the inputs were stable for the latency of the data sheet.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, signed

from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS"]


def _stable(m, signals, latency):
    """Give the inputs ``signals`` any values; whether they have been there for ``latency`` cycles.

    The values do not change: what was there before is in the registers, which may hold anything.
    """
    for signal in signals:
        m.d.comb += signal.eq(AnyConst(len(signal)))
    run = Signal(range(latency + 1))
    with m.If(run != latency):
        m.d.sync += run.eq(run + 1)
    return run == latency


class RttProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        inputs = [dut.srtt8, dut.rttvar4, dut.valid, dut.sample, dut.start, dut.now]
        ready = _stable(m, [*inputs, dut.rto_min, dut.rto_initial], 5)
        trip, off = Signal(16), Signal(signed(18))
        srtt, rttvar, bound = (Signal(signed(22), name=n) for n in ("srtt", "rttvar", "bound"))
        m.d.comb += [
            Assume(dut.rto_min <= dut.rto_max),
            trip.eq((dut.now - dut.start)[:16]),
            off.eq(trip - (dut.srtt8 >> 3)),
            srtt.eq(dut.srtt8),
            rttvar.eq(dut.rttvar4),
        ]
        with m.If(dut.sample & ~dut.valid):  # 2.2: SRTT = R, RTTVAR = R / 2
            m.d.comb += [srtt.eq(trip << 3), rttvar.eq(trip << 1)]
        with m.Elif(dut.sample):  # 2.3
            m.d.comb += [
                rttvar.eq(dut.rttvar4 - (dut.rttvar4 >> 2) + Mux(off < 0, -off, off)),
                srtt.eq(dut.srtt8 + off),
            ]
        m.d.comb += bound.eq((srtt >> 3) + Mux(rttvar > 1, rttvar, 1))
        with m.If(~dut.sample & ~dut.valid):  # 2.1
            m.d.comb += bound.eq(dut.rto_initial)
        with m.Elif((srtt >> 3) + Mux(rttvar > 1, rttvar, 1) < dut.rto_min):
            m.d.comb += bound.eq(dut.rto_min)
        with m.Elif((srtt >> 3) + Mux(rttvar > 1, rttvar, 1) > dut.rto_max):
            m.d.comb += bound.eq(dut.rto_max)
        with m.If(ready):
            m.d.comb += [
                Assert(dut.srtt8_new == srtt),
                Assert(dut.rttvar4_new == rttvar),
                Assert(dut.rto == bound),
                Cover(dut.sample & dut.valid & (off > 100) & (bound > dut.rto_min)),
                Cover(dut.sample & dut.valid & (off < -100) & (bound == dut.rto_max)),
                Cover(dut.sample & ~dut.valid & (dut.now < dut.start) & (trip != 0)),
            ]
        return m


class WindowProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        inputs = [dut.acked, dut.out, dut.cwnd, dut.credit, dut.ssthresh, dut.mss]
        ready = _stable(m, inputs, 3)
        top = 1 << dut.bits - 1
        counted, grown, credit, half = (Signal(24, name=n) for n in ("all", "big", "rest", "hlf"))
        m.d.comb += [
            # What was acknowledged fits a window and its FIN; so does what is counted.
            Assume(dut.acked <= top),
            Assume(dut.credit <= top),
            Assume(dut.cwnd != 0),
            counted.eq(dut.credit + dut.acked),
            grown.eq(dut.cwnd),
            half.eq(Mux((dut.out >> 1) > (dut.mss << 1), dut.out >> 1, dut.mss << 1)),
        ]
        with m.If(dut.cwnd > top - 1):
            m.d.comb += credit.eq(0)  # nobody announces so much
        with m.Elif(dut.cwnd < dut.ssthresh):
            m.d.comb += grown.eq(dut.cwnd + Mux(dut.acked < dut.mss, dut.acked, dut.mss))
        with m.Elif(counted < dut.cwnd):
            m.d.comb += credit.eq(counted)
        with m.Else():
            m.d.comb += [grown.eq(dut.cwnd + dut.mss), credit.eq(counted - dut.cwnd)]
        with m.If(ready):
            m.d.comb += [
                Assert(dut.grown == grown),
                Assert(dut.credit_new == credit[: dut.bits]),
                Assert(dut.half == half),
                Assert(dut.grown >= dut.cwnd),
                Cover((grown == dut.cwnd + 1460) & (credit > 5)),
                Cover((grown == dut.cwnd + 3) & (dut.mss > 600)),
                Cover((grown == dut.cwnd) & (credit > dut.mss) & (half > 3 * dut.mss)),
            ]
        return m


class FixedProof(Elaboratable):
    """The peer's window, which is below 2**(bits - 1), is the only limit."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        inputs = [dut.acked, dut.out, dut.cwnd, dut.credit, dut.ssthresh, dut.mss]
        ready, theirs = _stable(m, inputs, 3), Signal(dut.bits - 1)
        m.d.comb += [theirs.eq(AnyConst(len(theirs))), Assume(dut.cwnd != 0)]
        with m.If(ready):
            m.d.comb += [
                Assert(dut.grown > theirs),
                Assert(dut.half == dut.cwnd),
                Assert(dut.credit_new == 0),
                Cover(theirs.all() & (dut.half == 1460)),
            ]
        return m


PROOFS = (
    Proof(
        name="tcp_fixed_window",
        quick=True,
        core="cores.tcp.estimator.FixedWindow",
        says="after any ACK no peer's window is larger than the congestion window; no loss makes "
        "it smaller",
        module="trebuchet.cores.tcp.estimator",
        build=lambda cores: FixedProof(cores.FixedWindow()),
        depth=4,
        cover_depth=5,
        mutants=(
            Mutant("half_a_window", "self.grown.eq(1 << self.bits - 1)", "self.grown.eq(1 << 15)"),
            Mutant("slower_after_a_loss", "self.half.eq(self.cwnd)", "self.half.eq(self.mss)"),
        ),
        assumes="the congestion window is not 0",
    ),
    Proof(
        name="tcp_rtt",
        core="cores.tcp.estimator.RttEstimator(60000)",
        says="SRTT, RTTVAR and the time-out with its bounds are those of RFC 6298, section 2",
        module="trebuchet.cores.tcp.estimator",
        build=lambda cores: RttProof(cores.RttEstimator(60_000)),
        depth=6,
        cover_depth=6,
        mutants=(
            Mutant("deviation_gain_of_1_8", "(self.rttvar4 >> 2)", "(self.rttvar4 >> 3)"),
            Mutant("no_granularity", "Mux(self.rttvar4_new == 0, 1, self.rttvar4_new)", "0"),
            Mutant("upper_bound_missed", "total > self.rto_max", "total > 2 * self.rto_max"),
        ),
        assumes="the smallest time-out is not above the largest",
        not_proved="outputs before the inputs were stable for 5 cycles",
    ),
    Proof(
        name="tcp_congestion_window",
        core="cores.tcp.estimator.CongestionWindow",
        says="the congestion window grows, and ssthresh is set, as RFC 5681, 3.1, says",
        module="trebuchet.cores.tcp.estimator",
        build=lambda cores: WindowProof(cores.CongestionWindow()),
        depth=4,
        cover_depth=4,
        mutants=(
            Mutant(
                "a_step_without_bound",
                "Mux(self.acked > self.mss, self.mss, self.acked)",
                "self.acked",
            ),
            Mutant("grows_a_byte_late", "total >= self.cwnd", "total > self.cwnd"),
            Mutant(
                "slow_start_at_the_threshold",
                "self.cwnd < self.ssthresh",
                "self.cwnd <= self.ssthresh",
            ),
            Mutant(
                "half_of_one_segment",
                "Mux((self.out >> 1) > (self.mss << 1), self.out >> 1, self.mss << 1)",
                "Mux((self.out >> 1) > self.mss, self.out >> 1, self.mss)",
            ),
        ),
        assumes="at most 65,536 bytes are acknowledged at once, and counted; the window is not 0",
        not_proved="outputs before the inputs were stable for 3 cycles",
    ),
)
