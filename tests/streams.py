"""Stream and memory-port helpers shared by all gateware tests.

A test is a set of ``async`` test benches run by :func:`run`, with a cycle limit and a seed::

    @seeds(3)
    def test_echo(seed):
        dut = Echo()

        async def put(ctx):
            rng = make_rng(seed, "put")
            for packet in packets:
                await packet_put(ctx, dut.i, packet, rng=rng)

        async def get(ctx):
            rng = make_rng(seed, "get")
            for packet in packets:
                assert await packet_get(ctx, dut.o, rng=rng) == (packet, False)

        run(dut, put, get, stream_checker(dut.o), limit=10_000, seed=seed)

``rng=None`` anywhere means no idle cycles and no back-pressure: use it to measure throughput.
A failure carries the seed; ``TREBUCHET_SEED=n pytest …`` runs each seeded test with that one.
"""

import contextlib
import os
import random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data
from memory_bench import MemoryRequester, MemoryResponder, plainly, raw
from simulator import make_simulator

__all__ = [
    "MemoryRequester",
    "MemoryResponder",
    "CycleLimitError",
    "Simulation",
    "beats_of",
    "make_rng",
    "packet_get",
    "packet_put",
    "plain",
    "random_bytes",
    "run",
    "seeds",
    "stream_checker",
    "stream_get",
    "stream_put",
]


class CycleLimitError(AssertionError):
    """A simulation did not finish within its cycle limit."""


def seeds(count=3):
    """Parametrise a test with ``seed`` = 0 … ``count - 1``, or with ``TREBUCHET_SEED`` alone.

    All seeds but the first are left to the nightly tier.
    """
    override = os.environ.get("TREBUCHET_SEED")
    if override is not None:
        return pytest.mark.parametrize("seed", [int(override)])
    more = [pytest.param(seed, marks=pytest.mark.nightly) for seed in range(1, count)]
    return pytest.mark.parametrize("seed", [0, *more])


def random_bytes(rng, low, high):
    """Between ``low`` and ``high`` random bytes, both inclusive."""
    return rng.randbytes(rng.randint(low, high))


def plain(value):
    """A sampled payload as plain Python: nested dicts for structs, lists for arrays, else int."""
    if not isinstance(value, data.Const):
        return value
    layout = value.shape()
    if isinstance(layout, data.ArrayLayout):
        return [plain(value[i]) for i in range(layout.length)]
    return {name: plain(value[name]) for name, _ in layout}


def make_rng(seed, name):
    """An independent generator for one test bench: ``random.Random`` seeded by both."""
    return random.Random(f"{name}/{seed}")


class Simulation:
    """``dut`` ready to be simulated, several times if need be: each :meth:`run` is from reset.

    To make one of a large design takes as long as some thousand cycles of it.
    """

    def __init__(self, dut):
        top = Module()
        top.submodules.dut = dut
        alive = Signal()
        top.d.sync += alive.eq(~alive)  # gives purely combinational devices a clock domain
        self._sim = make_simulator(top)
        self._sim.add_clock(1e-6)
        self._sim.add_testbench(self._watchdog, background=True)
        self._benches, self._places = (), 0
        self._cycles = self._limit = 0

    async def _watchdog(self, ctx):
        async for _ in ctx.tick():
            self._cycles += 1
            if self._cycles >= self._limit:
                raise CycleLimitError(f"no end after {self._limit} cycles")

    def _add_place(self, number):
        """A test bench of the simulator, which runs the one of ours that has this number."""

        async def place(ctx):
            if number >= len(self._benches):
                return
            bench = self._benches[number]
            if getattr(bench, "background", False):
                await bench(ctx)
            else:
                with ctx.critical():
                    await bench(ctx)

        self._sim.add_testbench(place, background=True)

    def run(self, *testbenches, limit, seed=None, vcd=None):
        """As :func:`run`. After an exception this object is of no use."""
        if self._places:
            self._sim.reset()
        self._benches, self._cycles, self._limit = testbenches, 0, limit
        for number in range(self._places, len(testbenches)):
            self._add_place(number)
        self._places = max(self._places, len(testbenches))
        try:
            with self._sim.write_vcd(vcd) if vcd else contextlib.nullcontext():
                self._sim.run()
        except Exception as exc:
            exc.add_note(f"seed {seed}, cycle {self._cycles}: repeat with TREBUCHET_SEED={seed}")
            raise
        return self._cycles


def run(dut, *testbenches, limit, seed=None, vcd=None):
    """Simulate ``dut`` until every test bench has returned; return the number of cycles taken.

    A test bench is an ``async`` function of the simulator context. One with a true attribute
    ``background`` (:class:`MemoryResponder`, :func:`stream_checker`, …) does not keep the
    simulation alive. More than ``limit`` cycles raise :class:`CycleLimitError`. Whatever is raised
    gets a note with the seed. ``vcd`` names a wave file to write.
    """
    return Simulation(dut).run(*testbenches, limit=limit, seed=seed, vcd=vcd)


# --- any stream --------------------------------------------------------------------------------


async def stream_put(ctx, stream, payload, *, rng=None, idle=0.3):
    """Send one beat, after a random number of idle cycles (each with probability ``idle``).

    ``payload`` is whatever ``ctx.set`` takes: an int, or a dict for a struct. While idle, the
    payload is noise.
    """
    while rng is not None and rng.random() < idle:
        _noise(ctx, stream, rng)
        await ctx.tick()
    ctx.set(stream.payload, payload)
    ctx.set(stream.valid, 1)
    while True:
        _, _, ready = await ctx.tick().sample(stream.ready)
        if ready:
            break
    ctx.set(stream.valid, 0)


def _noise(ctx, stream, rng):
    raw = stream.payload.as_value() if hasattr(stream.payload, "as_value") else stream.payload
    ctx.set(raw, rng.getrandbits(max(1, len(raw))) & ((1 << len(raw)) - 1))


async def stream_get(ctx, stream, *, rng=None, stall=0.3):
    """Receive one beat with random back-pressure; return its payload (see :func:`plain`).

    Checks on the way that a stalled payload neither changes nor goes away.
    """
    held = None
    while True:
        ready = rng is None or rng.random() >= stall
        ctx.set(stream.ready, ready)
        _, _, valid, payload = await ctx.tick().sample(stream.valid, raw(stream.payload))
        if held is not None:
            assert valid, "valid fell before the transfer (stream rule 2)"
            assert payload == held, "payload changed before the transfer (stream rule 2)"
        if valid and ready:
            ctx.set(stream.ready, 0)
            return plainly(stream.payload, payload)
        held = payload if valid else None


def stream_checker(stream, name="stream"):
    """A background test bench that checks rule 2 on a stream, rules 4 and 5 too on packets."""
    members = getattr(getattr(stream.payload, "shape", lambda: None)(), "members", {})
    is_packet = {"data", "empty", "first", "last", "error"} == set(members)

    async def check(ctx):
        held, expect_first = None, True
        samples = stream.valid, stream.ready, raw(stream.payload)
        async for _, _, valid, ready, payload in ctx.tick().sample(*samples):
            if held is not None:
                assert valid, f"{name}: valid fell before the transfer (rule 2)"
                assert payload == held, f"{name}: payload changed while stalled (rule 2)"
            held = payload if valid and not ready else None
            if valid and is_packet:
                beat = plainly(stream.payload, payload)
                _check_beat(beat, expect_first, name)
                if ready:
                    expect_first = bool(beat.last)

    check.background = True
    return check


# --- packet streams ----------------------------------------------------------------------------


def _check_beat(beat, expect_first, name="packet stream"):
    assert bool(beat.first) == expect_first, f"{name}: first is {beat.first} (rule 4)"
    if not beat.last:
        assert beat.empty == 0, f"{name}: empty is {beat.empty} without last (rule 5)"
        assert beat.error == 0, f"{name}: error without last (rule 5)"


def beats_of(packet, width, *, error=False, rng=None):
    """The beats of a packet as dicts; bytes that ``empty`` counts are noise given ``rng``."""
    n = width // 8
    assert len(packet) > 0, "a packet has at least one byte (rule 6)"
    for at in range(0, len(packet), n):
        chunk = packet[at : at + n]
        last = at + n >= len(packet)
        empty = n - len(chunk)
        fill = rng.randbytes(empty) if rng is not None else bytes(empty)
        yield {
            "data": int.from_bytes(chunk + fill, "little"),
            "empty": empty,
            "first": at == 0,
            "last": last,
            "error": bool(error and last),
        }


async def packet_put(ctx, stream, packet, error=False, rng=None, idle=0.3):
    """Send the bytes of one packet, with random idle cycles before each beat."""
    for beat in beats_of(packet, len(stream.payload.data), error=error, rng=rng):
        await stream_put(ctx, stream, beat, rng=rng, idle=idle)


async def packet_get(ctx, stream, rng=None, stall=0.3):
    """Receive one packet under random back-pressure; return ``(bytes, error)``.

    Checks the stream's rules 2, 4 and 5 on the way.
    """
    n = len(stream.payload.data) // 8
    packet = b""
    while True:
        beat = await stream_get(ctx, stream, rng=rng, stall=stall)
        _check_beat(beat, expect_first=not packet)
        packet += int(beat.data).to_bytes(n, "little")[: n - beat.empty]
        if beat.last:
            return packet, bool(beat.error)
