"""Proof of ``cores/tcp/evict.py``: who is ended when a service is refused a session.

Four session numbers, two services, any of the numbers ever used; records of any kind. What is ended
is live or a released TIME-WAIT, has been idle for long enough, and is of the service that was
refused or of one above its reserve, as it is when it is ended. If no record changes meanwhile, it
is the one that has been idle for longest, of equals the one met first; and if none is ended, there
was none. Visits come after any time.

Not proved: that a scan ends (the timer engine visits when it has nothing else to do).
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Fragment, Mux, Signal
from amaranth.lib import data
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.record import TIME_WIDTH, Phase

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=4, ports=(7, 9))
_RECORD = data.StructLayout({"owner": 1, "phase": 3, "released": 1, "age": TIME_WIDTH})


class EvictProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        m.submodules.dut = Fragment.get(dut, "formal")
        n = CONFIG.sessions
        free(m, dut.press, dut.service, dut.seen, dut.above)
        for constant in (dut.least, dut.high):
            m.d.comb += constant.eq(AnyConst(len(constant)))
        m.d.comb += Assume((dut.high > 0) & (dut.high <= n))
        still, above = Signal(), Signal.like(dut.above)
        m.d.comb += [still.eq(AnyConst(1)), above.eq(AnyConst(2))]
        m.d.comb += Assume(~still | (dut.above == above))
        m.d.comb += Assume(~dut.seen | dut.want)
        records = []  # as they are if nothing changes
        for s in range(n):
            record = Signal(_RECORD, name=f"record_{s}")
            m.d.comb += record.as_value().eq(AnyConst(_RECORD.size))
            records.append(record)
        shown, other = Signal(_RECORD), Signal(_RECORD)
        free(m, other)
        m.d.comb += [
            shown.eq(Mux(still, Array(r.as_value() for r in records)[dut.session], other)),
            dut.owner.eq(shown.owner),
            dut.phase.eq(shown.phase),
            dut.released.eq(shown.released),
            dut.age.eq(shown.age),
        ]
        asked = Signal.like(dut.service)  # by whom
        code = dut.fsm.encoding
        at = {name: dut.fsm.state == value for name, value in code.items()}
        with m.If(at["IDLE"]):
            m.d.sync += asked.eq(dut.service)
        able, idle = self._judge(asked, dut.above, shown)
        past = {name: Signal(name=f"was_{name}") for name in at}
        m.d.sync += [signal.eq(at[name]) for name, signal in past.items()]
        pressed = Signal()
        m.d.sync += pressed.eq(dut.press & (dut.least != 0))
        m.d.comb += [
            Assert(dut.want == (at["SCAN"] | at["STRIKE"])),
            Assert(dut.strike == at["STRIKE"]),
            Assert(dut.ends == (dut.seen & dut.strike & able)),
            Assert(~past["IDLE"] | (at["SCAN"] == pressed)),
            Assert(at["IDLE"] | (dut.least != 0)),
            Assert(at["IDLE"] | (dut.asked == asked)),
            Assert(dut.hand < dut.high),
            Cover(dut.ends & (dut.session == 2)),
            Cover(dut.seen & dut.strike & ~dut.ends),
        ]
        self._longest(m, records, asked, at, still)
        return m

    def _judge(self, asked, above, record):
        """Whether a session may be ended, and for how long it has been idle."""
        gone = (record.phase == Phase.TIME_WAIT.value) & record.released
        phases = (Phase.OPEN, Phase.SYN_RCVD, Phase.SYN_SENT)
        live = sum(record.phase == phase.value for phase in phases) == 1
        mine = (record.owner == asked) | Mux(record.owner, above[1], above[0])
        able = mine & (gone | (live & (record.age >= self.dut.least)))
        return able, Mux(gone, (1 << TIME_WIDTH) - 1, record.age)

    def _longest(self, m, records, asked, at, still):
        """If nothing changes: of those met so far, the one that has been idle for longest."""
        dut, n = self.dut, CONFIG.sessions
        start, count = Signal(2), Signal(range(n + 1))  # where the scan began; numbers met
        with m.If(at["IDLE"]):
            m.d.sync += [start.eq(dut.hand), count.eq(0)]
        with m.If(at["SCAN"] & dut.seen):
            m.d.sync += count.eq(count + 1)
        where = Signal(4)
        m.d.comb += where.eq(start + count)
        scans = at["SCAN"] | at["FOUND"] | at["STRIKE"]
        place = Mux(where >= 2 * dut.high, where - 2 * dut.high, where)
        for _ in range(2):
            place = Mux(place >= dut.high, place - dut.high, place)
        m.d.comb += [
            Assert(~scans | (dut.hand == place[:2])),
            Assert(~scans | (start < dut.high)),
            Assert(~at["SCAN"] | (dut.left + count == n - 1)),
            Assert(~(at["FOUND"] | at["STRIKE"]) | (count == n)),
            Assert(~at["STRIKE"] | dut.found),
            Assert(~dut.found | (dut.oldest < dut.high)),
        ]
        distance, met, chosen = [], [], Signal(TIME_WIDTH + 1)
        for s, record in enumerate(records):
            far = Signal(4, name=f"distance_{s}")
            m.d.comb += far.eq(Mux(s < start, s + dut.high - start, s - start))
            distance.append(far)
            met.append((s < dut.high) & (far < count))
            able, idle = self._judge(asked, dut.above, record)
            with m.If(dut.oldest == s):
                m.d.comb += chosen.eq(idle)
                with m.If(still & scans & dut.found):
                    m.d.comb += [Assert(able), Assert(dut.oldest_age == idle), Assert(met[s])]
        at_oldest = Array(distance)[dut.oldest]
        for s, record in enumerate(records):
            able, idle = self._judge(asked, dut.above, record)
            with m.If(still & scans & met[s] & able):
                m.d.comb += Assert(dut.found & (idle <= chosen))
                m.d.comb += Assert((idle < chosen) | (at_oldest <= distance[s]))


PROOFS = (
    Proof(
        name="tcp_evict",
        core="cores.tcp.evict.Evictor(4 sessions, 2 services)",
        says="ended is the longest idle session of the service refused or of one above its reserve",
        module="trebuchet.cores.tcp.evict",
        build=lambda cores: EvictProof(cores.Evictor(CONFIG)),
        depth=2,
        cover_depth=16,
        mutants=(
            Mutant("youngest", "(idle > age)", "(idle < age)", 12),
            Mutant("last_of_equals", "(idle > age)", "(idle >= age)", 12),
            Mutant("anybody", "self.above.bit_select(self.owner, 1)", "1", 12),
            Mutant("too_soon", "self.age >= self.least", "self.age >= 0", 12),
            Mutant("ends_what_has_changed", "self.seen & able", "self.seen", 12),
            Mutant("leaves_one_out", "left.eq(self.scan - 1)", "left.eq(self.scan - 2)", 12),
            Mutant("runs_past_the_end", "hand + 1 == self.high", "hand == self.high", 12),
        ),
        assumes="a visit comes only when asked for",
        not_proved="that a scan ends; other numbers of sessions and services",
    ),
)
