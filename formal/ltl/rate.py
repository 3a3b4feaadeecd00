"""Proof of ``RateControl`` in ``cores/ltl/rate.py``, against DC-QCN's reaction point.

A ghost keeps the record of one connection that the solver chooses; each event does to it what
docs/network.md and the data sheet say: a notification lowers the rate by half of alpha, and raises
alpha; a period without one lowers alpha; the timer and the byte counter advance their stages, and
the rate goes half way to a target that grows by nothing, R_AI or R_HAI. Tokens grow with rate and
time, up to a burst; a paced connection may send when they are not negative.

Always: the minimum <= current rate <= line rate, target <= line rate, tokens between a frame below
zero and the burst. A question is answered; who was never notified, or is back at the line
rate, is not paced.

The proof begins in any state that the invariants allow.

Not proved: a reset while running; that the multiplier multiplies, but for some factors.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value, signed
from trebuchet.cores.ltl.config import LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .parts import AnyMemory, Chosen, Law, opened

__all__ = ["PROOFS"]

SMALL = LtlConfig(connections=2, slots=4, window=2, max_message=64, buffer_beats=8)
OPEN, CNP, QUERY, SCAN = range(4)
BURST = 16 << 16
STATES = ("OPERANDS", "MULTIPLY", "APPLY", "TOKENS", "ANSWER", "INCREASE", "AVERAGE", "STORE")


class RateProof(Elaboratable):
    def __init__(self, cores):
        self.cores, self.dut = cores, cores.RateControl(SMALL)

    def elaborate(self, platform):
        self.m = m = new_harness()
        dut = self.dut
        m.submodules.dut = opened(dut, platform, self.cores, Memory=AnyMemory)
        self.on, self.law, self.p = dut.fsm.ongoing, Law(m), dut.parameters
        self.chosen = Signal(1, name="chosen")
        for port in (Value.cast(dut.parameters), dut.view, self.chosen):
            m.d.comb += port.eq(AnyConst(len(port)))
        m.d.comb += Assume((self.p.minimum <= self.p.line) & (self.p.line != 0))
        free(m, dut.enable, dut.now, dut.connection, dut.start, dut.spend, dut.beats)
        free(m, dut.cnp, dut.opened)
        ghost = Chosen(m, dut.record, "ghost")
        self.g, self.after = ghost.now, ghost.next
        self.here = dut.index == self.chosen
        self.elapsed = Signal(16, name="elapsed")
        self._choice()
        self._table()
        self._operands()
        self._open_and_notify()
        self._tokens()
        self._answer()
        self._increase()
        self._shown()
        return m

    def _set(self, **fields):
        self.m.d.sync += [self.after[name].eq(value) for name, value in fields.items()]

    def _at(self, state, *kinds):
        wanted = Cat(self.dut.kind[k] for k in kinds).any() if kinds else 1
        return self.on(state) & self.here & wanted

    def _choice(self):
        """Which event is next; a scan has every other turn."""
        m, dut, on = self.m, self.dut, self.on
        opens, cnp, asks, turn = (Signal(name=f"waits_{n}") for n in ("open", "cnp", "ask", "turn"))
        where = {n: Signal(1, name=f"about_{n}") for n in ("open", "cnp", "asked")}
        idle, kind, about = on("IDLE"), Signal(4, name="next_kind"), Signal(1, name="next_about")
        m.d.comb += [kind.eq(1 << SCAN), about.eq(dut.scan)]
        with m.If(opens):
            m.d.comb += [kind.eq(1 << OPEN), about.eq(where["open"])]
        with m.Elif(cnp & ~turn):
            m.d.comb += [kind.eq(1 << CNP), about.eq(where["cnp"])]
        with m.Elif(asks & ~turn):
            m.d.comb += [kind.eq(1 << QUERY), about.eq(where["asked"])]
        with m.If(idle):
            m.d.sync += turn.eq(kind[CNP] | kind[QUERY])
            m.d.sync += [opens.eq(opens & ~kind[OPEN]), cnp.eq(cnp & ~kind[CNP])]
            m.d.sync += asks.eq(asks & ~kind[QUERY])
        with m.If(dut.opened):
            m.d.sync += [opens.eq(1), where["open"].eq(dut.connection)]
        with m.If(dut.cnp):
            m.d.sync += [cnp.eq(1), where["cnp"].eq(dut.connection)]
        # One question at a time.
        open_question, fast = Signal(name="asked_"), Signal(3, name="fast")
        m.d.comb += Assume(~dut.start | ~open_question)
        m.d.sync += fast.eq(Cat(dut.start & ~dut.enable, fast))
        with m.If(dut.start):
            m.d.sync += [open_question.eq(1), where["asked"].eq(dut.connection)]
            with m.If(dut.enable):
                m.d.sync += asks.eq(1)
        with m.If(dut.done):
            m.d.sync += open_question.eq(0)
        answers = on("ANSWER") & dut.kind[QUERY]
        m.d.comb += [
            Assert(dut.done == (fast[2] | answers)),
            Assert(~fast[2] | dut.allow),
            Assert(~(fast[2] & answers)),
        ]
        queries = dut.kind[QUERY] & ~(on("IDLE") | on("STORE") | on("INCREASE") | on("AVERAGE"))
        self.law(open_question == (fast.any() | asks | queries), ~(fast.any() & (asks | queries)))
        self.law(~(asks & queries), (fast & (fast - 1)) == 0)
        chosen_kind, chosen_about, was = Signal(4), Signal(1), Signal()
        m.d.sync += [was.eq(idle), chosen_kind.eq(kind), chosen_about.eq(about)]
        with m.If(was):
            m.d.comb += [Assert(on("LOAD")), Assert(dut.kind == chosen_kind)]
            m.d.comb += Assert(dut.index == chosen_about)
        # Invariants.
        m.d.comb += [
            Assert((dut.starting == opens) & (dut.notified == cnp) & (dut.asked == asks)),
            Assert(dut.turn == turn),
            Assert(dut.delay == fast),
            *(Assert(dut.at[n] == w) for n, w in where.items()),
        ]
        scans = Signal(1, name="next_scan")
        with m.If(idle & kind[SCAN]):
            m.d.sync += scans.eq(~scans)
        m.d.comb += Assert(dut.scan == scans)
        self.law(on("IDLE") | ((dut.kind != 0) & ((dut.kind & (dut.kind - 1)) == 0)))
        late = on("TOKENS") | on("ANSWER")
        self.law(~late | dut.kind[QUERY] | dut.kind[SCAN])
        self.law(~(on("INCREASE") | on("AVERAGE")) | dut.kind[QUERY] | dut.kind[SCAN])

    def _table(self):
        m, dut, on, law, g, p = self.m, self.dut, self.on, self.law, self.g, self.p
        words = Array(Value.cast(word) for word in dut.table.words)
        ghost = Value.cast(g)
        busy = Cat(on(state) for state in STATES).any()
        law((self.here & busy) | (words[self.chosen] == ghost))
        law(~(self.here & busy) | (Value.cast(dut.r) == ghost))
        law(~on("LOAD") | (Value.cast(dut.read.data) == words[dut.index]))
        with m.If(on("STORE")):
            m.d.comb += [Assert(dut.write.en), Assert(dut.write.addr == dut.index)]
        m.d.comb += Assert(on("STORE") | ~dut.write.en)
        # What holds of a connection that has been opened.
        opened = Chosen(m, 1, "opened_once")
        with m.If(self._at("APPLY", OPEN)):
            m.d.sync += opened.next.eq(1)
        with m.If(opened.now):
            law(g.current >= p.minimum, g.target >= g.current, g.target <= p.line)
        law((g.tokens <= BURST) & (g.tokens >= -(511 << 16)))
        m.d.comb += Cover(opened.now & g.limited & (g.tokens < 0) & dut.done & ~dut.allow)

    def _operands(self):
        m, dut, g = self.m, self.dut, self.g
        cycle = Signal(16, name="cycle_")
        m.d.sync += cycle.eq(cycle + 1)
        m.d.comb += Assert(dut.cycle == cycle)
        with m.If(self._at("OPERANDS")):
            m.d.sync += self.elapsed.eq(cycle - g.stamp)
            self._set(stamp=cycle)
        with m.If(self._at("MULTIPLY")):
            self.law(dut.a == Mux(dut.kind[CNP], g.alpha, self.elapsed), dut.b == g.current)
        # The multiplier is taken for right, but for some factors.
        self.product, a, b = dut.product, dut.a, dut.b
        with m.If(self.on("APPLY")):
            self.law((a != 0) | (self.product == 0), (a != 1) | (self.product == b))
            self.law((a != 0x8000) | (self.product == b << 15), (b != 1) | (self.product == a))

    def _open_and_notify(self):
        m, dut, g, p = self.m, self.dut, self.g, self.p
        with m.If(self._at("APPLY", OPEN)):
            self._set(limited=0, current=p.line, target=p.line, alpha=0xFFFF, tokens=0)
            self._set(timer_stage=0, byte_stage=0, count=p.rate_beats, stamp=dut.cycle)
            self._set(alpha_stamp=dut.now, rate_stamp=dut.now)
        cut, lower, gain = Signal(16, name="cut"), Signal(16, name="lower"), Signal(18)
        m.d.comb += [
            cut.eq(self.product >> 17),
            lower.eq(Mux(g.current > cut, g.current - cut, 0)),
            gain.eq(g.alpha - (g.alpha >> p.gain) + (0x10000 >> p.gain)),
        ]
        with m.If(self._at("APPLY", CNP)):
            self._set(limited=1, target=g.current, timer_stage=0, byte_stage=0)
            self._set(current=Mux(lower > p.minimum, lower, p.minimum))
            self._set(alpha=Mux(gain > 0xFFFF, 0xFFFF, gain), count=p.rate_beats)
            self._set(alpha_stamp=dut.now, rate_stamp=dut.now)
            m.d.comb += Cover((cut != 0) & (lower > p.minimum) & (g.alpha != 0xFFFF))
        quiet = Signal(16)
        m.d.comb += quiet.eq(dut.now - g.alpha_stamp)
        with m.If(self._at("APPLY", SCAN) & (quiet >= p.alpha_ticks)):
            self._set(alpha=g.alpha - (g.alpha >> p.gain), alpha_stamp=dut.now)

    def _tokens(self):
        m, dut, g = self.m, self.dut, self.g
        earned, more = Signal(25, name="earned"), Signal(signed(29), name="more_")
        m.d.comb += earned.eq(Mux(self.product > (1 << 24), 1 << 24, self.product))
        with m.If(self._at("APPLY", QUERY, SCAN)):
            m.d.sync += more.eq(g.tokens + earned)
        with m.If(self._at("TOKENS")):
            self.law(dut.more == more)
            self._set(tokens=Mux(more > BURST, BURST, more))

    def _answer(self):
        m, dut, g, p = self.m, self.dut, self.g, self.p
        answers = self._at("ANSWER", QUERY)
        may = ~g.limited | (g.tokens >= 0)
        m.d.comb += [
            Assume(~dut.spend | (dut.done & dut.allow)),
            Assert(~answers | (dut.allow == may)),
        ]
        spends = answers & dut.spend & g.limited
        expires = g.count <= dut.beats
        with m.If(spends):
            self._set(tokens=g.tokens - (dut.beats << 16))
            self._set(count=Mux(expires, p.rate_beats, g.count - dut.beats))
            with m.If(expires & (g.byte_stage != 15)):
                self._set(byte_stage=g.byte_stage + 1)
        waited = Signal(16)
        m.d.comb += waited.eq(dut.now - g.rate_stamp)
        ticks = self._at("ANSWER", SCAN) & g.limited & (waited >= p.rate_ticks)
        with m.If(ticks):
            self._set(rate_stamp=dut.now)
            with m.If(g.timer_stage != 15):
                self._set(timer_stage=g.timer_stage + 1)
        grows, mine, answered = (Signal(name=n) for n in ("grows", "mine_", "answered"))
        m.d.sync += [grows.eq((spends & expires) | ticks), mine.eq(self.here)]
        m.d.sync += answered.eq(self.on("ANSWER"))
        with m.If(answered & mine):
            self.law(self.on("INCREASE") == grows, self.on("STORE") == ~grows)

    def _increase(self):
        m, g, p = self.m, self.g, self.p
        stages = (g.timer_stage > p.recovery) + (g.byte_stage > p.recovery)
        step, aim, rate = Signal(16), Signal(18, name="aim"), Signal(17, name="half_way")
        m.d.comb += [
            step.eq(Mux(stages == 2, p.hyper, Mux(stages == 1, p.additive, 0))),
            aim.eq(g.target + step),
            rate.eq((g.current + g.target + 1) // 2),
        ]
        with m.If(self._at("INCREASE")):
            self._set(target=Mux(aim > p.line, p.line, aim))
        with m.If(self._at("AVERAGE")):
            self._set(current=rate)
            with m.If(rate >= p.line):
                self._set(limited=0)
        was_increase, was_average = Signal(), Signal()
        m.d.sync += [was_increase.eq(self.on("INCREASE")), was_average.eq(self.on("AVERAGE"))]
        with m.If(was_increase):
            self.law(self.on("AVERAGE"))
        with m.If(was_average):
            self.law(self.on("STORE"))
        m.d.comb += Cover(self._at("INCREASE") & (stages == 2) & (aim < p.line))

    def _shown(self):
        m, dut, g = self.m, self.dut, self.g
        shown, rate, alpha = Signal(), Signal(16), Signal(16)
        with m.If(self._at("STORE") & (dut.view == self.chosen)):
            m.d.sync += [shown.eq(1), rate.eq(g.current), alpha.eq(g.alpha)]
        with m.If(shown & (dut.view == self.chosen)):
            m.d.comb += [Assert(dut.rate == rate), Assert(dut.alpha == alpha)]


PROOFS = (
    Proof(
        name="ltl_rate",
        core="cores.ltl.rate.RateControl(2 connections)",
        says="DC-QCN step by step; minimum <= rate <= line rate; sends only on tokens that it has",
        module="trebuchet.cores.ltl.rate",
        build=RateProof,
        depth=2,
        cover_depth=20,
        mutants=(
            Mutant("cuts_by_alpha", "self.product[17:]", "self.product[16:]", 16),
            Mutant("above_the_line", "Mux(target > p.line, p.line, target)", "target", 12),
            Mutant(
                "no_burst_limit",
                "Mux(self.more > _BURST << 16, _BURST << 16, self.more)",
                "self.more",
                10,
            ),
            Mutant(
                "hyper_too_early",
                "Mux(past.all(), p.hyper, Mux(past.any(), p.additive, 0))",
                "Mux(past.any(), p.hyper, Mux(past.any(), p.additive, 0))",
                12,
            ),
        ),
        assumes="parameters are constant; a question at a time; only what was allowed is spent",
    ),
)
