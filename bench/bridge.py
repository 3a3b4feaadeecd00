"""Line rate, latency and area of the bridge with a 64-bit data path.

The line is one word a cycle, each way, without a pause: more than Ethernet of the same clock can
carry, whose preamble, FCS and gap take 24 bytes a frame. Sizes are those on the wire, so a frame
of 64 bytes is one of 60 here, without its FCS. Both directions run at once, the tap is switched
on, and both forms (cut-through and store-and-forward) are measured: the worst counts. Every frame
must come out once, unaltered and in order; a run in which one does not counts for nothing.
"""

import random
from collections.abc import Sequence

from amaranth.sim import Simulator

from ..cores.bridge.bridge import Bridge
from .area import area_job
from .job import Job, Netlist, Values

__all__ = ["area", "cycles", "run", "share"]

WIDTH = 64
LANES = WIDTH // 8
FCS = 4
#: Frames of each length; enough to fill the stores many times over.
COUNTS = {64: 200, 1518: 14}


def _bridge(store_and_forward: bool = False) -> Bridge:
    return Bridge(WIDTH, store_and_forward=store_and_forward)


def _words(frames: Sequence[bytes]) -> list[dict[str, int]]:
    return [
        {
            "data": int.from_bytes(frame[at : at + LANES], "little"),
            "empty": max(0, at + LANES - len(frame)),
            "first": at == 0,
            "last": at + LANES >= len(frame),
            "error": 0,
        }
        for frame in frames
        for at in range(0, len(frame), LANES)
    ]


def run(frames: Sequence[Sequence[bytes]], store_and_forward: bool) -> list[tuple[int, int]]:
    """When words leave, with ``frames[d]`` in direction ``d``: the first, the last.

    Each in cycles after a direction's first word was offered.
    """
    dut = _bridge(store_and_forward)
    ways = [_words(f) for f in frames]
    arrived: list[list[int]] = [[], []]

    def feed(d: int):
        async def put(ctx):
            ctx.set(dut.csr.enable, 1)
            ctx.set(dut.rx[d].valid, 1)
            for word in ways[d]:
                ctx.set(dut.rx[d].payload, word)
                while not (await ctx.tick().sample(dut.rx[d].ready))[2]:
                    pass
            ctx.set(dut.rx[d].valid, 0)

        return put

    def drain(d: int):
        tx, cycle = dut.tx[1 - d], 0

        async def get(ctx):
            nonlocal cycle
            ctx.set(tx.ready, 1)
            for word in ways[d]:
                while True:
                    _, _, valid, beat = await ctx.tick().sample(tx.valid, tx.payload)
                    cycle += 1
                    if valid:
                        break
                    if cycle > 2 * len(ways[d]) + 1000:
                        raise RuntimeError(f"direction {d} lost a frame")
                if {name: int(beat[name]) for name in word} != word:
                    raise RuntimeError(f"direction {d}: a frame was altered or came out of order")
                arrived[d].append(cycle)

        return get

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for d in range(2):
        simulator.add_testbench(feed(d))
        simulator.add_testbench(drain(d))
    simulator.run()
    return [(times[0] - 1, times[-1] - 1) for times in arrived]


def share(frames: Sequence[Sequence[bytes]], store_and_forward: bool) -> float:
    """Share of the line, of the worse direction.

    The time that counts is from the first word in to the last one out, less what the last frame
    takes alone. (So it must be the longest: with store-and-forward a short one waits behind it.)
    """
    alone = run([f[-1:] for f in frames], store_and_forward)
    together = run(frames, store_and_forward)
    shares = []
    for d in range(2):
        words, last = len(_words(frames[d])), len(_words(frames[d][-1:]))
        shares.append((words - last) / (together[d][1] - alone[d][1]))
    return min(shares)


def _frames(rng: random.Random, sizes: Sequence[int]) -> list[bytes]:
    return [rng.randbytes(size - FCS) for size in sizes]


def cycles() -> Job:
    """Return the measurement of the share of the line that the bridge carries, and of latency."""
    netlists = [Netlist(lambda way=way: _bridge(way)) for way in (False, True)]  # type: ignore[misc]
    return Job((netlists,), _measure, tools=("amaranth",))


def _measure() -> Values:
    rng = random.Random("bridge")
    cases = {str(size): [size] * count for size, count in COUNTS.items()}
    cases["mixed"] = [rng.randint(64, 1518) for _ in range(15)] + [1518]
    values: Values = {
        f"bridge.share_{name}": min(
            share([_frames(rng, sizes) for _ in range(2)], store) for store in (False, True)
        )
        for name, sizes in cases.items()
    }
    first = run([_frames(rng, [64])] * 2, store_and_forward=False)
    values["bridge.latency_cycles"] = max(begin for begin, _ in first)
    return values


def area() -> Job:
    """Return the measurement of area, cut-through."""
    return area_job(_bridge, {"bridge.lut6": "LUT6", "bridge.bram36": "BRAM36"})
