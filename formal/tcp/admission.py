"""Proof that no service starves another: ``cores/tcp/admission.py``.

Three services, four slots, any reserves that all fit. Sessions begin as the receive engine has
them begin (``tcp_receive_flow``): it looks at ``admits`` no sooner than ``latency`` cycles after
the last ``taken``, and has at most one session under way. They end at any time, several at once,
too. Then

* the slots that services use or have reserved, the sum of max(used, reserve), are never more than
  there are: so a service below its reserve always finds one free;
* a service that is below its reserve is admitted, whatever the others do, as soon as that has come
  through; and every service is, if a slot is claimed by nobody.

Not proved: reserves that change while sessions are there; other numbers (tests count at the sizes
of boards).
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=4, ports=(7, 9, 80), reserve=1)


class AdmissionProof(Elaboratable):
    def __init__(self, cores):
        self.dut, self.latency = cores.Admission(CONFIG), cores.latency(CONFIG)

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        n, slots = len(CONFIG.ports), CONFIG.usable
        m.d.comb += dut.settings.as_value().eq(AnyConst(len(dut.settings.as_value())))
        reserves = [dut.settings[f"reserve_{k}"] for k in range(n)]
        m.d.comb += Assume(sum(reserves) <= slots)
        self._engine(m)
        claimed, under, claims = Signal(8), Signal(n), []
        for used, reserve, is_under in zip(dut.used, reserves, under, strict=True):
            claims.append(Mux(used < reserve, reserve, used))
            m.d.comb += is_under.eq(used < reserve)
        m.d.comb += claimed.eq(sum(claims))
        total = sum(dut.used)
        wanted = under.bit_select(self.service, 1)
        m.d.comb += [
            Assert(claimed <= slots),
            Assert(total <= slots),
            Assert(~under.any() | (total < slots)),
            Assert(~self.pending | wanted | (claimed < slots)),
            Assert(~self.decides | wanted | (claimed < slots)),
        ]
        # What has not changed for so long has come through.
        still, past = Signal(range(self.latency + 1)), Signal(len(Cat(dut.used)))
        m.d.sync += past.eq(Cat(dut.used))
        same = Cat(dut.used) == past
        with m.If(~same):
            m.d.sync += still.eq(0)
        with m.Elif(still != self.latency):
            m.d.sync += still.eq(still + 1)
        with m.If(same & (still == self.latency)):
            m.d.comb += [
                Assert(dut.admits == Mux(claimed < slots, ~0, under)[:n]),
                Assert(dut.room == (claimed < slots)),
                Assert(dut.below == under),
                Assert(dut.above == Cat(u > r for u, r in zip(dut.used, reserves, strict=True))),
            ]
        for k in range(n):
            m.d.comb += Cover((dut.used[k] == slots) & ~dut.admits.any())
        m.d.comb += Cover((total == slots) & (reserves[0] == 1) & (dut.used[0] == 1))
        return m

    def _engine(self, m):
        """The receive engine, and sessions that end."""
        dut, n = self.dut, len(CONFIG.ports)
        self.service, self.pending = Signal(2), Signal()
        self.has = [Signal(range(CONFIG.sessions + 2), name=f"has_{k}") for k in range(n)]
        since = Signal(range(self.latency + 1))  # cycles since `taken`, or reset
        chosen, looks, hands, ends = Signal(2), Signal(), Signal(), Signal(n)
        free(m, chosen, looks, hands, ends)
        m.d.comb += Assume(chosen < n)
        self.decides = Signal()
        begins = self.pending & hands
        m.d.comb += [
            self.decides.eq(
                looks & ~self.pending & (since == self.latency) & dut.admits.bit_select(chosen, 1)
            ),
            dut.taken.eq(begins << self.service),
            dut.freed.eq(Cat(end & (has != 0) for end, has in zip(ends, self.has, strict=True))),
        ]
        for k, (has, used) in enumerate(zip(self.has, dut.used, strict=True)):
            m.d.sync += has.eq(has + dut.taken[k] - dut.freed[k])
            m.d.comb += Assert(used == has)
        kept = Signal(2, name="kept_service")
        m.d.comb += self.service.eq(Mux(self.pending, kept, chosen))
        m.d.sync += since.eq(since + (since != self.latency))
        m.d.sync += kept.eq(self.service)
        with m.If(self.decides):
            m.d.sync += self.pending.eq(1)
        with m.If(begins):
            m.d.sync += [self.pending.eq(0), since.eq(0)]


PROOFS = (
    Proof(
        name="tcp_admission",
        core="cores.tcp.admission.Admission(3 services, 4 sessions)",
        says="slots used or reserved are never more than there are: none starves another",
        module="trebuchet.cores.tcp.admission",
        build=AdmissionProof,
        depth=9,
        cover_depth=40,
        mutants=(
            Mutant("one_too_many", "claimed < self.config.usable", "claimed <= 4", 40),
            Mutant("reserves_nothing", "Mux(used < reserve, reserve, used)", "used", 40),
            Mutant("in_a_hurry", "return 3 +", "return 1 +", 40),
            Mutant("forgets_the_odd_one", "sum(pair[1:], pair[0])", "pair[0] + pair[-1]", 40),
            Mutant(
                "in_its_reserve",
                "self.below[k].eq(used < reserve)",
                "self.below[k].eq(used <= reserve)",
                40,
            ),
            Mutant(
                "never_ends", "used + self.taken[k] - self.freed[k]", "used + self.taken[k]", 40
            ),
        ),
        assumes="sessions begin as the receive engine has them begin (tcp_receive_flow); reserves "
        "stand still and fit",
        not_proved="other numbers of services and sessions; a reset while running",
    ),
)
