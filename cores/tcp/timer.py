"""Time: the timer wheel and the engine that serves it."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..memory import MemorySignature
from .evict import Evictor
from .number_lists import NumberList, placed
from .record import (
    KILL_WRITES,
    TIME_WIDTH,
    CheckoutSignature,
    Handback,
    Phase,
    kill,
    record_layout,
)
from .registers import settings_layout
from .wheels import TimerWheels, wake_width

__all__ = ["COUNTS", "TimerEngine", "WheelsTimerEngine", "writes"]

WRITES = (*KILL_WRITES, "deadline", "retries", "rto", "snd_nxt", "ahead", "blocked", "rtt_on")
WRITES += ("cwnd", "ssthresh", "credit", "recover", "recovering", "dup_acks", "on_wheel")
COUNTS = ("rto", "timeouts", "aborts", "time_wait_reused", "evicted")
#: Sessions that may wait for a place on the wheels.
PLACINGS = 16


def writes(config):
    """Fields of the record this engine writes."""
    return (*WRITES, "ack_wait", "near", "busy") if config.ack_delay else WRITES


class TimerEngine(wiring.Component):
    """Visits each session when its deadline has come.

    A wheel of ``config.wheel`` slots, one a tick, each a chain of sessions. Every live session is
    on it exactly once, at its deadline or, if that is further off than a revolution, one slot
    short of a revolution ahead; with ``config.ack_delay`` no further ahead than that, if data have
    come since the last visit. A visit looks at the deadline in the record: it has come, or the
    session is placed anew. So engines only write ``deadline``; nothing is ever unlinked. As long as
    no time-out is shorter than a revolution, none is served late.

    ====================  ===  ================================================================
    ``tick``              In   strobe: a millisecond has passed
    ``now``               Out  ticks since reset
    ``place``             In   strobe: ``place_session`` is new
    ``recycle_valid``     In   there is a released TIME-WAIT session, ``recycle_session``
    ``free_valid``        In   a session number is free, and reserved for nobody; while not,
                               TIME-WAITs are cut short
    ``recycling``         Out  this request is for ``recycle_session``
    ``press``             In   strobe: service ``pressed`` was refused a session
    ``above``             In   a bit per service: it has more sessions than its reserve
    ``port``              Out  checkout port
    ``settings``          In   the programmable registers
    ``count``             Out  a strobe per entry of :data:`COUNTS`
    ====================  ===  ================================================================

    When a service is refused a session, an :class:`~trebuchet.cores.tcp.evict.Evictor` has each
    session looked at, a visit at a time between those of the wheel, and the one that has been idle
    for longest ended.

    About 11 cycles a visit, of which it holds the record for 4. Ticks that come during a visit are
    remembered. Reset: time 0, empty wheel, after a cycle per slot.
    """

    def __init__(self, config, more=None):
        self.config = config
        s = config.session_bits
        super().__init__(
            {
                "tick": In(1),
                "now": Out(TIME_WIDTH),
                "place": In(1),
                "place_session": In(s),
                "recycle_valid": In(1),
                "recycle_session": In(s),
                "free_valid": In(1),
                "recycling": Out(1),
                "press": In(1),
                "pressed": In(record_layout(config).members["service"]),
                "above": In(len(config.ports)),
                "port": Out(CheckoutSignature(config, writes(config))),
                "settings": In(settings_layout(config)),
                "count": Out(data.StructLayout({name: 1 for name in COUNTS})),
            }
            | (more or {})
        )

    def elaborate(self, platform):
        m = Module()
        config, port = self.config, self.port
        s, slots = config.session_bits, config.wheel
        bits = slots.bit_length() - 1
        link = data.StructLayout({"valid": 1, "session": s})
        # No head is used that was read in the cycle in which it was written.
        attrs = placed(slots * link.size, config.lut_ram)
        m.submodules.heads = heads = Memory(shape=link, depth=slots, init=[], attrs=attrs)
        m.submodules.nexts = nexts = Memory(shape=link, depth=config.sessions, init=[])
        m.submodules.arrivals = arrivals = NumberList(
            width=s, depth=config.sessions, lut_ram=config.lut_ram
        )
        head_r, head_w = heads.read_port(), heads.write_port()
        next_r, next_w = nexts.read_port(), nexts.write_port()
        r = port.record
        self.w = Handback(m, port)
        ticks = Signal(8)  # not yet served
        taken = Signal()
        walk = Signal(link)  # what is still to visit in this slot
        slot = Signal(bits)
        distance = Signal(TIME_WIDTH)
        self._signals(m)
        self._eviction(m, config.sessions)
        m.d.comb += [
            arrivals.w_data.eq(self.place_session),
            arrivals.w_en.eq(self.place),
            next_r.addr.eq(port.session),
            head_r.addr.eq(slot),
            head_w.addr.eq(slot),
            next_w.addr.eq(port.session),
            next_w.data.eq(head_r.data),
            head_w.data.session.eq(port.session),
        ]
        m.d.sync += ticks.eq(ticks + (self.tick & (ticks != 0xFF)) - taken)

        with m.FSM():
            with m.State("CLEAR"):
                m.d.comb += head_w.en.eq(1)
                m.d.comb += head_w.data.eq(0)
                m.d.sync += slot.eq(slot + 1)
                with m.If(slot == slots - 1):
                    m.next = "IDLE"
            with m.State("IDLE"):
                m.d.sync += [self.recycling.eq(0), self.looks.eq(0)]
                with m.If(walk.valid):
                    m.d.sync += port.session.eq(walk.session)
                    m.next = "CLAIM"
                with m.Elif(arrivals.r_rdy):
                    m.d.comb += arrivals.r_en.eq(1)
                    m.d.sync += port.session.eq(arrivals.r_data)
                    m.next = "CLAIM"
                with m.Elif(~self.free_valid & self.recycle_valid):
                    m.d.sync += [port.session.eq(self.recycle_session), self.recycling.eq(1)]
                    m.next = "CLAIM"
                with m.Elif(ticks != 0):
                    m.d.comb += taken.eq(1)
                    m.d.sync += [self.now.eq(self.now + 1), slot.eq(self.now + 1)]
                    m.next = "SLOT"
                with m.Elif(self.evictor.want):
                    self._look_next(m)
            with m.State("SLOT"):
                m.next = "EMPTY"
            with m.State("EMPTY"):  # take the whole chain of this tick off the wheel
                m.d.comb += [head_w.en.eq(1), head_w.data.valid.eq(0)]
                m.d.sync += walk.eq(head_r.data)
                m.next = "IDLE"
            self._claim(m, distance)
            with m.State("VISIT"):
                m.d.comb += port.commit.eq(1)
                self._visit(m)
                # The chain has precedence in IDLE, so if there is one, this session is its head.
                with m.If(walk.valid):
                    m.d.sync += walk.eq(next_r.data)
                m.next = "IDLE"
                with m.If(r.phase != Phase.FREE):
                    m.next = "AIM"
            with m.State("AIM"):
                m.next = "HEAD"
                ahead = Mux(self.late, 1, Mux(distance >= slots, slots - 1, distance))
                if config.ack_delay:
                    soon = min(config.ack_delay, slots - 1)
                    ahead = Mux(self.soon & (ahead > soon), soon, ahead)
                m.d.sync += slot.eq(self.now + ahead)
            with m.State("HEAD"):
                m.next = "LINK"
            with m.State("LINK"):
                m.d.comb += [head_w.en.eq(1), head_w.data.valid.eq(1), next_w.en.eq(1)]
                m.next = "IDLE"
        self.w.finish(m)
        return m

    def _eviction(self, m, high):
        """Which session is looked at next, and whether it is ended."""
        m.submodules.evictor = self.evictor = evictor = Evictor(self.config)
        self.looks = Signal()  # this visit is the evictor's
        r = self.port.record
        m.d.comb += [
            evictor.press.eq(self.press),
            evictor.service.eq(self.pressed),
            evictor.above.eq(self.above),
            evictor.least.eq(self.settings.evict_idle),
            evictor.high.eq(high),
            evictor.owner.eq(r.service),
            evictor.phase.eq(r.phase),
            evictor.released.eq(r.released),
            evictor.age.eq(self.age),
        ]

    def _look_next(self, m):
        m.d.sync += [self.port.session.eq(self.evictor.session), self.looks.eq(1)]
        m.next = "CLAIM"

    def _look(self, m):
        """A visit of the evictor's. It changes nothing, or ends the session."""
        r = self.port.record
        m.d.comb += [self.port.commit.eq(1), self.evictor.seen.eq(1)]
        with m.If(self.evictor.ends):
            with m.If(r.phase == Phase.TIME_WAIT):
                m.d.comb += [self.w.phase.eq(Phase.CLOSED), self.count.time_wait_reused.eq(1)]
            with m.Else():
                m.d.comb += [kill(self.port, r.phase == Phase.OPEN), self.count.evicted.eq(1)]

    def _recycle(self, m):
        port, r = self.port, self.port.record
        m.d.comb += port.commit.eq(1)
        with m.If((r.phase == Phase.TIME_WAIT) & r.released):
            m.d.comb += self.w.phase.eq(Phase.CLOSED)
            m.d.comb += self.count.time_wait_reused.eq(1)

    def _signals(self, m):
        """What a visit needs, right three cycles after the grant."""
        r, settings = self.port.record, self.settings
        self.late, self.stalled = Signal(), Signal()
        self.answered = Signal()  # nothing that is queued waits for an ACK
        self.soon = Signal()  # the next visit is to be near
        bits = self.config.window_bits
        self.rto, self.half = Signal(17), Signal(bits)
        age, out = Signal(TIME_WIDTH), Signal(bits + 1)
        self.age, self.out = age, out  # for proofs
        m.d.sync += [
            self.answered.eq(r.snd_una == r.snd_end),
            age.eq(self.now - r.progress),
            self.stalled.eq(age >= settings.user_timeout),
            self.rto.eq(Mux(r.rto > self.config.rto_max // 2, self.config.rto_max, r.rto << 1)),
            out.eq((r.snd_max - r.snd_una)[: bits + 1]),
            self.half.eq(Mux(out >> 1 > r.mss << 1, out >> 1, r.mss << 1)),
        ]

    def _claim(self, m, distance):
        """From the number of a session to its record, and whether its time has come."""
        port = self.port
        with m.State("CLAIM"):
            m.d.comb += port.request.eq(1)
            with m.If(port.grant):
                m.next = "LATE"
                with m.If(self.recycling):
                    m.next = "RECYCLE"
        with m.State("RECYCLE"):
            self._recycle(m)
            m.next = "IDLE"
        with m.State("LATE"):
            m.d.sync += distance.eq(port.record.deadline - self.now)
            m.next = "JUDGE"
        with m.State("JUDGE"):
            m.d.sync += self.late.eq(distance[-1] | (distance == 0))
            m.next = "VISIT"
            with m.If(self.looks):
                m.next = "LOOK"
        with m.State("LOOK"):
            self._look(m)
            m.next = "IDLE"

    def _visit(self, m):
        r, w, settings = self.port.record, self.w, self.settings
        if self.config.ack_delay:
            m.d.comb += [w.ack_wait.eq(0), w.near.eq(r.busy), w.busy.eq(0)]
            live = r.phase == Phase.OPEN
            m.d.comb += w.ack_due.eq(r.ack_due | (r.ack_wait & live))
            m.d.sync += self.soon.eq(r.busy)
        with m.If(r.phase == Phase.FREE):
            m.d.comb += w.on_wheel.eq(0)
        with m.Elif(settings.abort_all & (r.phase != Phase.CLOSED)):
            with m.If(r.phase == Phase.TIME_WAIT):
                m.d.comb += w.phase.eq(Phase.CLOSED)
            with m.Else():
                m.d.comb += [kill(self.port, 1), self.count.aborts.eq(1)]
        with m.Elif(self.late):
            with m.Switch(r.phase):
                with m.Case(Phase.SYN_RCVD, *([Phase.SYN_SENT] if self.config.active else [])):
                    m.d.comb += w.syn_due.eq(1)
                    self._retry(m, settings.syn_retries, self.rto)
                with m.Case(Phase.OPEN):
                    with m.If(self.answered):
                        m.d.comb += w.keepalive.eq(1)
                        again = settings.keepalive_interval
                        self._retry(m, settings.keepalive_retries, again, backoff=False)
                    with m.Else():
                        self._expired(m)
                        self._retry(m, settings.retries, self.rto, also=self.stalled)
                with m.Case(Phase.TIME_WAIT):
                    m.d.comb += w.phase.eq(Phase.CLOSED)
                with m.Default():  # until the service releases it
                    m.d.comb += w.deadline.eq(self.config.wheel)

    def _retry(self, m, limit, delay, *, backoff=True, also=0):
        """Once more, or the end. After what is to be done once more: later assignments win."""
        r, w = self.port.record, self.w
        m.d.comb += [w.retries.eq(r.retries + 1), w.deadline.eq(delay)]
        if backoff:
            m.d.comb += [w.rto.eq(self.rto), w.rtt_on.eq(0)]
        with m.If((r.retries >= limit) | also):
            m.d.comb += [kill(self.port, r.phase == Phase.OPEN), self.count.timeouts.eq(1)]

    def _expired(self, m):
        """RFC 6298, 5.4: all from SND.UNA on again; or a probe of a closed window."""
        r, w = self.port.record, self.w
        m.d.comb += w.blocked.eq(0)
        with m.If(r.snd_wnd == 0):
            m.d.comb += w.probe.eq(1)
        with m.Else():
            m.d.comb += [self.count.rto.eq(1), w.snd_nxt.eq(r.snd_una), w.ahead.eq(0)]
            m.d.comb += [w.cwnd.eq(r.mss), w.credit.eq(0), w.resend.eq(0)]
            m.d.comb += [w.recover.eq(r.snd_max), w.recovering.eq(0), w.dup_acks.eq(0)]
            with m.If(r.retries == 0):  # RFC 5681, 3.1: once for each loss
                m.d.comb += w.ssthresh.eq(self.half)


class WheelsTimerEngine(TimerEngine):
    """:class:`TimerEngine` with :class:`~trebuchet.cores.tcp.wheels.TimerWheels`.

    The store asks for each place: ``place`` and ``place_session`` with ``place_wake`` and
    ``place_linked`` stay until ``place_taken``. Up to :data:`PLACINGS` wait for the wheels, which
    may take a memory access or two for each, so that the store, which everybody waits for, does
    not. They stay in order, and the wheels compare ticks when a placing's turn comes, so none of
    their rules is touched: a visit that overtook a placing leaves it nothing to do. ``mem`` is the
    wheels' memory port. A visit hands the session back without a place, and so the store asks for
    the next one. Exact to a tick whatever the time-outs.

    A visit may be half a minute ahead, which is too long for ``abort_all``: while that is set, the
    engine also goes through all numbers below ``high``, those that were ever used, again and again,
    a visit at a time between those of the wheels. Such a visit leaves a session on its wheel.

    Reset: time 0, empty wheels; the memory must be reset too.
    """

    def __init__(self, config):
        more = {"place_wake": In(wake_width()), "place_linked": In(1), "place_taken": Out(1)}
        more["high"] = In(range(config.sessions + 1))
        super().__init__(config, {**more, "mem": Out(MemorySignature(config.width, 0))})
        self.wheels = TimerWheels(config.sessions, config.width, base=config.wheels_base)

    def elaborate(self, platform):
        m = Module()
        port, r = self.port, self.port.record
        m.submodules.wheels = wheels = self.wheels
        wiring.connect(m, wheels.mem, wiring.flipped(self.mem))
        m.submodules.placings = placings = StreamFifo(
            wheels.place.payload.shape(), PLACINGS, registered=False
        )
        wiring.connect(m, placings.o, wheels.place)
        place = placings.i
        self.w = Handback(m, port)
        distance = Signal(TIME_WIDTH)
        step, walks = Signal.like(port.session), Signal()  # next of the walk; this visit is its
        self._signals(m)
        self._eviction(m, self.high)
        with m.If(~self.settings.abort_all):
            m.d.sync += step.eq(0)
        m.d.comb += [
            wheels.tick.eq(self.tick),
            self.now.eq(wheels.now),
            place.valid.eq(self.place),
            place.payload.session.eq(self.place_session),
            place.payload.wake.eq(self.place_wake),
            place.payload.linked.eq(self.place_linked),
            self.place_taken.eq(place.ready),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [self.recycling.eq(0), walks.eq(0), self.looks.eq(0)]
                with m.If(wheels.visit.valid):
                    m.d.comb += wheels.visit.ready.eq(1)
                    m.d.sync += port.session.eq(wheels.visit.payload)
                    m.next = "CLAIM"
                with m.Elif(~self.free_valid & self.recycle_valid):
                    m.d.sync += [port.session.eq(self.recycle_session), self.recycling.eq(1)]
                    m.next = "CLAIM"
                with m.Elif(self.settings.abort_all & (self.high != 0)):
                    m.d.sync += [port.session.eq(step), walks.eq(1)]
                    m.d.sync += step.eq(Mux(step + 1 == self.high, 0, step + 1))
                    m.next = "CLAIM"
                with m.Elif(self.evictor.want):
                    self._look_next(m)
            self._claim(m, distance)
            with m.State("VISIT"):
                m.d.comb += port.commit.eq(1)
                self._visit(m)
                m.d.comb += self.w.on_wheel.eq(walks & r.on_wheel)
                m.next = "IDLE"
        self.w.finish(m)
        return m
