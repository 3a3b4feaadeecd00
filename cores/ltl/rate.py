"""Congestion control of the send connections: DC-QCN's reaction point, and the pace.

Source: Zhu et al., Congestion Control for Large-Scale RDMA Deployments (SIGCOMM 2015), section 5;
docs/network.md (LTL) for the arithmetic, ``models/ltl_rate.py`` is its model.
"""

from amaranth.hdl import C, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from .config import TIME_BITS

__all__ = ["PARAMETERS", "RateControl"]

#: Name and width of what registers set.
PARAMETERS = {
    "line": 16,
    "minimum": 16,
    "additive": 16,
    "hyper": 16,
    "gain": 4,
    "alpha_ticks": TIME_BITS,
    "rate_ticks": TIME_BITS,
    "rate_beats": 24,
    "recovery": 4,
}
#: Beats that a connection may save up.
_BURST = 16


class RateControl(wiring.Component):
    """Says when a connection may send, and slows it down when the network is congested.

    =================  ====  ===================================================================
    ``enable``         In    0: every connection may send at any time
    ``parameters``     In    see below
    ``now``            In    time in ticks
    ``connection``     In    with ``start``, ``cnp`` and ``opened``
    ``start``          In    for one cycle: may it send? Not again before ``done``
    ``done``           Out   for one cycle, at least 3 later: the answer is
    ``allow``          Out   this one
    ``spend``          In    in that cycle: it sends
    ``beats``          In    so many beats
    ``cnp``            In    for one cycle: a congestion notification
    ``opened``         In    for one cycle: a new connection, which begins at the line rate
    ``view``           In    a connection,
    ``rate``           Out   its current rate, some time later,
    ``alpha``          Out   and its estimate of congestion
    =================  ====  ===================================================================

    Rates are in 1/65536 beat a cycle; ``alpha`` is a fraction of 65536. ``parameters``: ``line``,
    the rate at which connections begin; ``minimum``; ``additive`` and ``hyper``, the increases R_AI
    and R_HAI; ``gain``, g = 2 ** -gain; ``alpha_ticks`` and ``rate_ticks``, periods of both timers;
    ``rate_beats``, those of the byte counter; ``recovery``, F.

    A connection that has never seen congestion, or is back at the line rate, is not paced. Another
    may send when its tokens are not negative; they grow with its rate, up to a burst of 16 beats.

    *Latency*: ``done`` after 3 cycles when not enabled, else 6, and up to 6 more. *Throughput*:
    an event in 6 cycles. A ``cnp`` while one waits, which is 6 cycles at most, is lost. Timers are
    visited one connection after the other, each at least every ``12 * connections`` cycles
    of ``now``. *Reset*: connections must be opened anew.
    """

    def __init__(self, config):
        self.config = config
        index = config.connection_layout
        super().__init__(
            {
                "enable": In(1),
                "parameters": In(data.StructLayout(PARAMETERS)),
                "now": In(TIME_BITS),
                "connection": In(index),
                "start": In(1),
                "done": Out(1),
                "allow": Out(1),
                "spend": In(1),
                "beats": In(9),
                "cnp": In(1),
                "opened": In(1),
                "view": In(index),
                "rate": Out(16),
                "alpha": Out(16),
            }
        )
        self.record = data.StructLayout(
            {
                "limited": 1,
                "current": 16,
                "target": 16,
                "alpha": 16,
                "timer_stage": 4,
                "byte_stage": 4,
                "count": 24,  # beats until the byte counter expires
                "alpha_stamp": TIME_BITS,
                "rate_stamp": TIME_BITS,
                "stamp": 16,  # cycle of the last visit, for the tokens
                "tokens": signed(27),  # 11 bits of beats, 16 of fraction
            }
        )

    # One event at a time: IDLE (choose, read), LOAD, OPERANDS, MULTIPLY (its one multiplier serves
    # tokens and decrease), APPLY, for a query ANSWER, INCREASE if a stage has advanced, STORE.
    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = Memory(
            shape=self.record,
            depth=self.config.connections,
            init=[],
            attrs={"ram_style": "block"},
        )
        self.table = table
        self.read, self.write = table.read_port(), table.write_port()
        self.r, self.index = Signal(self.record), Signal(self.config.connection_layout)
        self.kind = Signal(4)  # one-hot: open, notification, query, scan
        self.a, self.b, self.product = Signal(16), Signal(16), Signal(32)
        self.notified, self.starting = Signal(), Signal()
        self.at = {name: Signal.like(self.index) for name in ("asked", "cnp", "open")}
        self.cycle, self.more = Signal(16), Signal(signed(28))
        m.d.sync += self.cycle.eq(self.cycle + 1)
        asked = self.asked = self._fast(m)
        r = self.r
        with m.FSM(name="rate") as self.fsm:
            self._idle(m, asked)
            with m.State("LOAD"):
                m.d.sync += r.eq(self.read.data)
                m.next = "OPERANDS"
            with m.State("OPERANDS"):
                m.d.sync += [
                    self.a.eq(Mux(self.kind[1], r.alpha, self.cycle - r.stamp)),
                    self.b.eq(r.current),
                    r.stamp.eq(self.cycle),
                ]
                m.next = "MULTIPLY"
            with m.State("MULTIPLY"):
                m.d.sync += [self.product.eq(self.a * self.b)]
                m.next = "APPLY"
            with m.State("APPLY"):
                m.next = "STORE"
                with m.If(self.kind[0]):
                    self._open(m)
                with m.Elif(self.kind[1]):
                    self._notified(m)
                with m.Elif(self.kind[3]):
                    self._scan(m)
                with m.If(self.kind[3] | self.kind[2]):
                    # Saturates: a second of silence is worth no more than the burst.
                    m.d.sync += self.more.eq(
                        r.tokens + Mux(self.product[24:].any(), 1 << 24, self.product[:25])
                    )
                    m.next = "TOKENS"
            with m.State("TOKENS"):
                m.d.sync += r.tokens.eq(Mux(self.more > _BURST << 16, _BURST << 16, self.more))
                m.next = "ANSWER"
            with m.State("ANSWER"):
                self._answer(m)
            with m.State("INCREASE"):
                self._increase(m)
                m.next = "AVERAGE"
            with m.State("AVERAGE"):
                average = Signal(16)
                m.d.comb += average.eq((r.current + r.target + 1) >> 1)
                m.d.sync += r.current.eq(average)
                with m.If(average >= self.parameters.line):
                    m.d.sync += r.limited.eq(0)
                m.next = "STORE"
            with m.State("STORE"):
                m.d.comb += [
                    self.write.en.eq(1),
                    self.write.addr.eq(self.index),
                    self.write.data.eq(r),
                ]
                with m.If(self.index == self.view):
                    m.d.sync += [self.rate.eq(r.current), self.alpha.eq(r.alpha)]
                m.next = "IDLE"
        self._remember(m)
        return m

    def _fast(self, m):
        """Answers when there is no control; returns whether a question is for the machine."""
        asked, delay = Signal(), Signal(3)
        self.delay = delay
        m.d.sync += delay.eq(Cat(self.start & ~self.enable, delay))
        with m.If(delay[2]):
            m.d.comb += [self.done.eq(1), self.allow.eq(1)]
        with m.If(self.start & self.enable):
            m.d.sync += asked.eq(1)
        return asked

    def _idle(self, m, asked):
        at, notified, opened = self.at, self.notified, self.starting
        scan = Signal(self.config.connection_layout)
        self.scan = scan
        with m.State("IDLE"):
            m.next = "LOAD"
            turn = Signal()  # the scan has every other turn
            self.turn = turn
            m.d.sync += turn.eq(0)
            with m.If(opened):
                m.d.comb += self.read.addr.eq(at["open"])
                m.d.sync += [self.index.eq(at["open"]), self.kind.eq(1), opened.eq(0)]
            with m.Elif(notified & ~turn):
                m.d.comb += self.read.addr.eq(at["cnp"])
                m.d.sync += [self.index.eq(at["cnp"]), self.kind.eq(2), notified.eq(0), turn.eq(1)]
            with m.Elif(asked & ~turn):
                m.d.comb += self.read.addr.eq(at["asked"])
                m.d.sync += [self.index.eq(at["asked"]), self.kind.eq(4), asked.eq(0), turn.eq(1)]
            with m.Else():
                m.d.comb += self.read.addr.eq(scan)
                m.d.sync += [
                    self.index.eq(scan),
                    self.kind.eq(8),
                    scan.eq(Mux(scan == self.config.connections - 1, 0, scan + 1)),
                ]

    def _remember(self, m):
        """Events that wait for their turn; a new one counts more than the end of an old one."""
        at = self.at
        with m.If(self.start):
            m.d.sync += at["asked"].eq(self.connection)
        with m.If(self.cnp):
            m.d.sync += [self.notified.eq(1), at["cnp"].eq(self.connection)]
        with m.If(self.opened):
            m.d.sync += [self.starting.eq(1), at["open"].eq(self.connection)]

    def _open(self, m):
        r, p = self.r, self.parameters
        m.d.sync += [
            r.eq(0),
            r.current.eq(p.line),
            r.target.eq(p.line),
            r.alpha.eq(0xFFFF),
            r.count.eq(p.rate_beats),
            r.alpha_stamp.eq(self.now),
            r.rate_stamp.eq(self.now),
            r.stamp.eq(self.cycle),
        ]

    def _notified(self, m):
        """R_T <- R_C; R_C <- R_C (1 - alpha / 2); alpha <- (1 - g) alpha + g."""
        r, p = self.r, self.parameters
        less, alpha = Signal(17), Signal(17)
        m.d.comb += [
            less.eq(r.current - self.product[17:]),
            alpha.eq(r.alpha - (r.alpha >> p.gain) + (C(1 << 16, 17) >> p.gain)),
        ]
        m.d.sync += [
            r.limited.eq(1),
            r.target.eq(r.current),
            r.current.eq(Mux(less < p.minimum, p.minimum, less)),
            r.alpha.eq(Mux(alpha[16], 0xFFFF, alpha)),
            r.timer_stage.eq(0),
            r.byte_stage.eq(0),
            r.count.eq(p.rate_beats),
            r.alpha_stamp.eq(self.now),
            r.rate_stamp.eq(self.now),
        ]

    def _due(self, stamp, period):
        return (self.now - stamp)[:TIME_BITS] >= period

    def _scan(self, m):
        r, p = self.r, self.parameters
        with m.If(self._due(r.alpha_stamp, p.alpha_ticks)):
            m.d.sync += [r.alpha.eq(r.alpha - (r.alpha >> p.gain)), r.alpha_stamp.eq(self.now)]

    def _answer(self, m):
        """For a query: allow, and charge it. For a scan: the timer of increase."""
        r, p = self.r, self.parameters
        m.next = "STORE"
        with m.If(self.kind[2]):
            m.d.comb += [self.done.eq(1), self.allow.eq(~r.limited | (r.tokens >= 0))]
            with m.If(self.spend & r.limited):
                m.d.sync += r.tokens.eq(r.tokens - (self.beats << 16))
                with m.If(r.count <= self.beats):
                    m.d.sync += [
                        r.count.eq(p.rate_beats),
                        r.byte_stage.eq(r.byte_stage + (r.byte_stage != 15)),
                    ]
                    m.next = "INCREASE"
                with m.Else():
                    m.d.sync += r.count.eq(r.count - self.beats)
        with m.Elif(r.limited & self._due(r.rate_stamp, p.rate_ticks)):
            m.d.sync += [
                r.rate_stamp.eq(self.now),
                r.timer_stage.eq(r.timer_stage + (r.timer_stage != 15)),
            ]
            m.next = "INCREASE"

    def _increase(self, m):
        """Fast recovery, then additive, then hyper increase of R_T; R_C goes half way to it."""
        r, p = self.r, self.parameters
        past = Cat(r.timer_stage > p.recovery, r.byte_stage > p.recovery)
        step, target = Signal(16), Signal(17)
        m.d.comb += [
            step.eq(Mux(past.all(), p.hyper, Mux(past.any(), p.additive, 0))),
            target.eq(r.target + step),
        ]
        m.d.sync += r.target.eq(Mux(target > p.line, p.line, target))
