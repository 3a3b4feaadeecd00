"""The timer wheels: each session is visited at its tick, however its deadline moves."""

import re

import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_checker
from trebuchet.cores.tcp.wheels import Alarm, TimerWheels, wake_limit, wake_width

SESSIONS, BASE = 16, 64
#: A small clock: 8 near slots, 4 far ones, visits up to 12 ticks ahead.
SMALL = {"window": 4, "windows": 4}
SIGN = 1 << 23


def signed(difference, bits):
    """A difference modulo ``2 ** bits`` as a number of either sign."""
    half = 1 << bits - 1
    return (difference + half) % (1 << bits) - half


def alarm(now, deadline, linked, wake, *, window, windows):
    """What :class:`Alarm` says: (``aim``, ``ask``)."""
    bits = wake_width(window, windows)
    left = signed(deadline - now, 24)
    aim = (now + max(1, min(left, wake_limit(window, windows)))) % (1 << bits)
    return aim, not linked or signed(aim - wake, bits) < 0


class Clock:
    """Background test bench: ticks at random, as fast as the wheels and ``store`` can keep up with.

    A request that is made in one tick is taken before the end of the next one, and a visit too.
    """

    background = True

    def __init__(self, dut, rng, *, pause=(1, 40)):
        self.dut, self.rng, self.pause, self.ticks, self.store = dut, rng, pause, 0, None

    async def __call__(self, ctx):
        while True:
            for _ in range(self.rng.randint(*self.pause)):
                await ctx.tick()
            while self.ticks - ctx.get(self.dut.now) > 1 or self.store.behind(
                ctx.get(self.dut.now)
            ):
                await ctx.tick()
            ctx.set(self.dut.tick, 1)
            self.ticks += 1
            await ctx.tick()
            ctx.set(self.dut.tick, 0)


class Store:
    """Records with deadlines, an engine that writes them, and one that visits.

    ``due`` is where the naive model has each session that is on a wheel. A visit must come at that
    tick, and only then. ``late`` is how many ticks after its deadline the latest time-out was
    shown, or after the tick that followed the writing if it was past by then.
    """

    def __init__(self, dut, clock, rng, *, period=0, quick=False):
        self.dut, self.clock, self.rng, self.period = dut, clock, rng, period
        clock.store = self
        self.geometry = {"window": dut.window, "windows": dut.windows}
        self.bits = wake_width(**self.geometry)
        self.quick = quick
        self.deadline, self.written = {}, {}
        self.linked, self.wake, self.due = {}, {}, {}
        self.alive, self.waiting = set(), []
        self.visits = self.fired = self.late = 0
        self.shown = None

    def hand_back(self, now, session):
        """As the store does: a request, if the record asks for one."""
        if session not in self.alive:
            return
        aim, ask = alarm(
            now,
            self.deadline[session],
            self.linked.get(session, 0),
            self.wake.get(session, 0),
            **self.geometry,
        )
        if ask:
            request = {"session": session, "wake": aim, "linked": self.linked.get(session, 0)}
            self.linked[session], self.wake[session] = 1, aim
            self.waiting.append((now, request))

    def behind(self, now):
        """Whether the oldest request, or the visit that is shown, dates from an earlier tick."""
        return bool(self.waiting) and self.waiting[0][0] < now or (self.shown or now) < now

    def write(self, now, session, ahead):
        self.alive.add(session)
        self.deadline[session] = (now + ahead) % (1 << 24)
        self.written[session] = now
        self.hand_back(now, session)

    def taken(self, now, request):
        """The wheels took a request: where the session is from now on."""
        session = request["session"]
        left = signed(request["wake"] - now, self.bits)
        tick = now + max(1, left)
        if not request["linked"] or self.due.get(session, now) > tick:
            self.due[session] = tick

    def visit(self, now, session):
        self.visits += 1
        self.linked[session] = 0
        if session in self.alive and signed(self.deadline[session] - now, 24) <= 0:
            self.fired += 1
            since = max(self.deadline[session], self.written[session] + 1)
            self.late = max(self.late, self.shown - since)
            self.alive.discard(session)
            if self.period:
                self.write(now, session, self.period)
        else:
            self.hand_back(now, session)

    async def requests(self, ctx):
        dut = self.dut
        while True:
            request = self.waiting[0][1] if self.waiting else None
            ctx.set(dut.place.valid, request is not None)
            if request is not None:
                ctx.set(dut.place.payload, request)
            _, _, ready, now = await ctx.tick().sample(dut.place.ready, dut.now)
            if request is not None and ready:
                self.taken(now, self.waiting.pop(0)[1])

    async def visits_of(self, ctx):
        dut = self.dut
        while True:
            ready = self.quick or self.rng.random() < 0.2
            ctx.set(dut.visit.ready, ready)
            _, _, valid, session, now = await ctx.tick().sample(
                dut.visit.valid, dut.visit.payload, dut.now
            )
            if valid and self.shown is None:
                assert self.due.pop(session, None) == now, f"{session} must not be visited at {now}"
                self.shown = now
            if valid and ready:
                self.visit(now, session)
                self.shown = None

    def benches(self):
        for bench in (self.requests, self.visits_of):

            async def call(ctx, bench=bench):
                await bench(ctx)

            call.background = True
            yield call


def world(seed, *, width=64, geometry=SMALL, rng=True, latency=(4, 12), pause=(1, 40), **kwargs):
    dut = TimerWheels(SESSIONS, width, base=BASE, **geometry)
    memory = bytearray(1 << (BASE + dut.size - 1).bit_length())
    # Writes are not slower here: a visit is as late as the memory is slow, for a clock this fast.
    responder = MemoryResponder(
        dut.mem,
        memory,
        rng=make_rng(seed, "memory") if rng else None,
        latency=latency,
        write_latency=latency,
    )
    clock = Clock(dut, make_rng(seed, "clock"), pause=pause)
    store = Store(dut, clock, make_rng(seed, "store"), **kwargs)
    checks = [stream_checker(dut.mem.cmd, "cmd"), stream_checker(dut.mem.wdata, "wdata")]
    checks.append(stream_checker(dut.visit, "visit"))
    return dut, clock, store, [clock, *store.benches(), responder, *checks]


async def cleared(ctx, dut):
    await ctx.tick().repeat(2 << dut.slot_bits)


@pytest.mark.parametrize(
    "width", [64, *(pytest.param(n, marks=pytest.mark.nightly) for n in (32, 128))]
)
@seeds(2)
def test_exact_however_deadlines_move(width, seed):
    """Deadlines past, near, far beyond the wheels, moved both ways at any time."""
    dut, clock, store, benches = world(seed, width=width)

    async def bench(ctx):
        rng = make_rng(seed, "writer")
        await cleared(ctx, dut)
        while clock.ticks < 90:
            await ctx.tick().repeat(rng.randint(1, 60))
            ahead = rng.choice([-3, 0, 1, 2, 3, 5, 8, 11, 12, 13, 20, 40])
            store.write(ctx.get(dut.now), rng.randrange(SESSIONS), ahead)
        while store.alive or store.waiting or store.due:
            await ctx.tick()
        assert store.fired > 20
        assert store.late <= 1

    run(dut, bench, *benches, limit=30_000, seed=seed)


def test_all_at_one_tick():
    """Every session in one far slot, then in one near slot; none is forgotten, none early."""
    dut, clock, store, benches = world(0, rng=False, quick=True)

    async def bench(ctx):
        await cleared(ctx, dut)
        while ctx.get(dut.now) % 4:
            await ctx.tick()
        begin = ctx.get(dut.now)
        for session in range(SESSIONS):
            store.write(begin, session, 11)
        while store.alive:
            await ctx.tick()
        assert (store.visits, store.fired) == (SESSIONS, SESSIONS)
        assert store.late == 0

    run(dut, bench, *benches, limit=10_000)


def test_what_idle_and_busy_sessions_cost():
    """Clock of 8 times 8 ticks. Idle: two visits in 105 ticks, 1.9 times as far as the wheels
    reach, as 60 s are. Busy: a deadline 20 off that each tick moves away costs one each 20."""
    dut, clock, store, benches = world(
        0, geometry={"window": 8, "windows": 8}, rng=False, quick=True, pause=(30, 30)
    )

    async def bench(ctx):
        await cleared(ctx, dut)
        begin = ctx.get(dut.now)
        for session in range(8):
            store.write(begin, session, 105)
        for _ in range(100):
            now = ctx.get(dut.now)
            store.write(now, 8, 20)
            while ctx.get(dut.now) == now:
                await ctx.tick()
        assert store.visits <= 8 + 6
        assert store.visits >= 8 + 4
        while store.fired < 9:
            await ctx.tick()
        assert store.visits <= 2 * 8 + 8
        assert store.late == 0

    run(dut, bench, *benches, limit=20_000)


def test_placing_goes_on_while_a_visit_waits():
    """The visitor does not take a visit; whoever places is served all the same."""
    dut, clock, store, benches = world(0, rng=False)

    async def bench(ctx):
        await cleared(ctx, dut)
        store.write(ctx.get(dut.now), 3, 1)
        while not ctx.get(dut.visit.valid):
            await ctx.tick()
        for session in range(4, 12):
            store.write(ctx.get(dut.now), session, 2)
        await ctx.tick().repeat(300)
        assert not store.waiting

    only = [b for b in benches if b is not benches[2]]  # nobody takes visits
    store.taken = lambda now, request: None
    run(dut, bench, *only, limit=1000)


@pytest.mark.parametrize("geometry", [SMALL, {"window": 512, "windows": 64}])
@seeds(1)
def test_alarm(geometry, seed):
    rng, dut = make_rng(seed, "alarm"), Alarm(**geometry)
    limit, bits = wake_limit(**geometry), wake_width(**geometry)

    async def bench(ctx):
        for _ in range(400):
            now = rng.choice([rng.getrandbits(24), (1 << 24) - rng.randrange(40)])
            ahead = rng.choice([-SIGN, -1, 0, 1, 2, limit - 1, limit, limit + 1, SIGN - 1])
            queued = rng.choice([ahead - 1, ahead, ahead + 1, 0, 1, limit])
            linked, wake = rng.randrange(2), (now + max(0, min(queued, limit))) % (1 << bits)
            deadline = (now + ahead) % (1 << 24)
            for name, value in (("now", now), ("deadline", deadline), ("wake", wake)):
                ctx.set(getattr(dut, name), value)
            ctx.set(dut.linked, linked)
            await ctx.delay(1e-9)
            assert (ctx.get(dut.aim), ctx.get(dut.ask)) == alarm(
                now, deadline, linked, wake, **geometry
            )

    run(dut, bench, limit=10, seed=seed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sessions": 100}, "Number of sessions must be a power of two from 2 to 8388608, not 100"),
        ({"sessions": 1}, "Number of sessions must be a power of two from 2 to 8388608, not 1"),
        ({"window": 48}, "Window must be a power of two >= 2, not 48"),
        (
            {"windows": 2},
            "Number of windows must be a power of two >= 4, 32768 ticks in all at most, not 2",
        ),
        (
            {"windows": 128},
            "Number of windows must be a power of two >= 4, 32768 ticks in all at most, not 128",
        ),
        ({"base": 8}, "Base must be a multiple of 16 with 512 bytes inside the memory, not 8"),
        ({"width": 16}, "Data path width must be one of (32, 64, 128) bits, not 16"),
    ],
)
def test_parameters(arguments, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        TimerWheels(**{"sessions": 64, **arguments})
