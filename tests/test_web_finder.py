"""The head finder (``cores/web``): ends, bytes and results, for any fragmentation."""

from streams import MemoryResponder, make_rng, plain, run, seeds, stream_get, stream_put
from trebuchet.cores.web.finder import End, HeadFinder

CR, LF = 13, 10
START, EMPTY, LINE, TEXT, LINE_CR, LAST_CR = range(6)


def naive(data):
    """Bytes up to a head's end, and whether it is there (RFC 9112, 2.2), from scratch."""
    for at, byte in enumerate(data):
        before = data[at - 1] if at else None
        if before == CR and byte != LF:
            return at + 1, True
        if byte == LF and before != CR:
            return at + 1, True
        if byte == LF and at >= 3 and data[at - 3 : at + 1] == b"\r\n\r\n":
            return at + 1, True
    return len(data), False


def some_head(rng):
    """Bytes among which line ends are frequent; most are a head's."""
    words = [b"GET / HTTP/1.1", b"Host: a", b"A:", bytes(rng.choices(range(32, 127), k=60))]
    lines = [rng.choice(words)]
    lines *= rng.randint(1, 6)
    data = b"\r\n" * rng.randrange(2) + b"\r\n".join(lines) + b"\r\n\r\n"
    if rng.random() < 0.3:
        at = rng.randrange(len(data))
        data = data[:at] + rng.choice([b"\r", b"\n", b"\r\n", b"\n\r", b"\0"]) + data[at:]
    return data + rng.choice([b"", b"GET", b"\r\n\r\n", rng.randbytes(40)])


class World:
    """Receive rings in a memory, and a job at a time for each slot, on one head after the other."""

    def __init__(self, dut, rng, heads):
        self.dut, self.rng, self.todo = dut, rng, list(heads)
        self.log2 = dut.segment_log2
        self.memory = bytearray(rng.randbytes(dut.slots << self.log2))
        self.work = [None] * dut.slots
        self.got = [b""] * dut.slots
        self.done = 0
        self.queue = []

    def begin(self, slot):
        """The first job of a slot's next head, of which only some bytes have come."""
        if not self.todo:
            return
        data = self.todo.pop()
        at = self.rng.randrange(1 << self.log2)
        for k, byte in enumerate(data):
            self.memory[(slot << self.log2) + ((at + k) % (1 << self.log2))] = byte
        self.work[slot] = {"data": data, "at": at, "seen": 0, "state": START}
        self.next(slot)

    def next(self, slot, parse=None):
        w = self.work[slot]
        if parse:  # the whole head again
            w |= {"seen": 0, "state": START}
        length = len(w["data"]) if parse else self.rng.randint(1, len(w["data"]) - w["seen"])
        w |= {"length": length, "parse": w["seen"] == 0, "whole": self.rng.randrange(2)}
        self.got[slot] = b""
        self.queue.append(
            {
                "slot": slot,
                "base": slot,
                "position": (w["at"] + w["seen"]) % (1 << self.log2),
                "length": length,
                "state": w["state"],
                "parse": w["parse"],
                "whole": w["whole"],
            }
        )

    def result(self, r):
        slot = r["slot"]
        w = self.work[slot]
        assert r["parse"] == w["parse"]
        end, found = naive(w["data"][: w["seen"] + w["length"]])
        assert r["found"] == found, (r, w)
        if w["parse"]:
            kind = End.HEAD if found else End.LONG if w["whole"] else End.CUT
            assert self.got[slot] == (w["data"][:end], kind), (self.got[slot], w)
        else:
            assert self.got[slot] == b""
        w |= {"seen": w["seen"] + w["length"], "state": r["state"]}
        if found and w["parse"]:
            w["seen"] = len(w["data"])  # what is behind the head is of no interest
        if not found and w["seen"] < len(w["data"]):
            self.next(slot)
        elif found and not w["parse"]:
            self.next(slot, parse=True)
        else:
            self.done += 1
            self.begin(slot)


def drive(dut, heads, seed, limit, stall=True):
    rng = make_rng(seed, "world")
    world = World(dut, rng, heads)
    count = len(heads)
    for slot in range(dut.slots):
        world.begin(slot)

    async def jobs(ctx):
        own = make_rng(seed, "jobs")
        while world.done < count:
            if world.queue:
                await stream_put(ctx, dut.job, world.queue.pop(0), rng=own if stall else None)
            else:
                await ctx.tick()

    async def results(ctx):
        own = make_rng(seed, "results")
        while world.done < count:
            world.result(plain(await stream_get(ctx, dut.result, rng=own if stall else None)))

    async def beats(ctx):
        own = make_rng(seed, "room")
        async for _, _, valid, beat in ctx.tick().sample(dut.beat_valid, dut.beat):
            ctx.set(dut.room, own.getrandbits(dut.slots) if stall else (1 << dut.slots) - 1)
            if valid:
                slot = beat.slot
                data = int(beat.data).to_bytes(dut.width // 8, "little")
                assert isinstance(world.got[slot], bytes), "a beat after the last one"
                assert beat.skip < beat.stop
                world.got[slot] += data[beat.skip : beat.stop]
                if beat.end != End.MORE:
                    world.got[slot] = (world.got[slot], End(beat.end))

    beats.background = True
    memory = MemoryResponder(
        dut.mem, world.memory, rng=make_rng(seed, "memory") if stall else None, latency=(4, 40)
    )
    run(dut, beats, jobs, results, memory, limit=limit, seed=seed)
    assert world.done == count


@seeds(4)
def test_finder(seed):
    rng = make_rng(seed, "heads")
    heads = [some_head(rng) for _ in range(60)]
    sizes = [(64, 10, 4, 16), (32, 10, 1, 2), (128, 12, 2, 1), (64, 11, 3, 3)]
    width, log2, slots, burst = sizes[seed % len(sizes)]
    dut = HeadFinder(width, log2, slots, burst)
    drive(dut, heads, seed, limit=100_000)
