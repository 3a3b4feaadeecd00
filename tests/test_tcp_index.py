"""The session index and the stack of free numbers, against a dict and a list."""

import pytest
from streams import MemoryResponder, make_rng, run, seeds, stream_checker, stream_put
from trebuchet.cores.tcp.index import SessionIndex
from trebuchet.cores.tcp.index_cache import TupleCache
from trebuchet.cores.tcp.index_layout import IndexLayout
from trebuchet.cores.tcp.number_stack import NumberStack
from trebuchet.models.session_index import code_of, contents, tuple_of
from trebuchet.models.tcp import speck64_128

KEY = 0x1B1A1918_13121110_0B0A0908_03020100
BASE = 0x400


class Bench:
    """A session index with its memory; the model is ``entered``, tuple to number."""

    def __init__(self, seed, *, width=64, latency=(4, 40), stall=0.3, calm=False, **parameters):
        parameters = {"sessions": 16, "cache_sets": 2, "bucket_bits": 1} | parameters
        self.dut = SessionIndex(width=width, base=BASE, **parameters)
        self.memory = bytearray(make_rng(seed, "memory").randbytes(BASE + self.dut.size))
        rng = None if calm else make_rng(seed, "responder")
        self.responder = MemoryResponder(
            self.dut.mem, self.memory, rng=rng, latency=latency, stall=stall
        )
        self.before = bytes(self.memory[:BASE])
        self.rng = make_rng(seed, "index")
        self.entered = {}
        self.reaped = []  # tuple and number of those whose removal has not ended
        self.checks = [stream_checker(self.dut.mem.cmd), self.responder]

    def sharing(self, count, bits=12):
        """Tuples that share both buckets and the set of the cache: as bad as it can be."""
        codes = [(k + 1) << 44 | 0 << 32 | k << bits & 0xFFFFFFFF for k in range(count)]
        return [tuple_of(code, KEY) for code in codes]

    async def ready(self, ctx):
        ctx.set(self.dut.key, KEY)
        while not ctx.get(self.dut.lookup.ready):
            await ctx.tick()

    async def begin(self, ctx, key, syn=False):
        dut = self.dut
        ctx.set(dut.lookup.tuple, key)
        ctx.set(dut.lookup.want_hash, syn)
        while not ctx.get(dut.lookup.ready):
            await ctx.tick()
        ctx.set(dut.lookup.start, 1)
        await ctx.tick()
        ctx.set(dut.lookup.start, 0)
        cycles = 1
        while not (ctx.get(dut.lookup.done) and (ctx.get(dut.lookup.hash_valid) or not syn)):
            await ctx.tick()
            cycles += 1
        if syn:
            assert ctx.get(dut.lookup.hash) == speck64_128(key, KEY) & 0xFFFFFFFF
        return cycles

    async def end(self, ctx, key, insert=False):
        dut = self.dut
        number = ctx.get(dut.lookup.free_session)
        if insert:
            assert ctx.get(dut.lookup.free_valid)
            assert number not in self.entered.values()
            self.entered[key] = number
        ctx.set(dut.lookup.finish, 1)
        ctx.set(dut.lookup.insert, insert)
        await ctx.tick()
        ctx.set(dut.lookup.finish, 0)
        ctx.set(dut.lookup.insert, 0)

    async def lookup(self, ctx, key, insert=False, syn=False):
        """A dialogue; insert if it is not there. Checks the answer; returns its latency."""
        dut = self.dut
        while not ctx.get(dut.lookup.ready):
            await ctx.tick()
        going = list(self.reaped)  # one whose removal has not ended may still be found
        cycles = await self.begin(ctx, key, syn)
        found, session = ctx.get(dut.lookup.found), ctx.get(dut.lookup.session)
        if key in self.entered:
            assert found, f"{key:#x}"
            assert session == self.entered[key], f"{key:#x}"
            insert = False
        else:
            assert not found or (key, session) in going, f"{key:#x}"
        if insert and not ctx.get(dut.lookup.free_valid):
            # Refused: only when there is none, be it that some are still being removed.
            assert len(self.entered) + len(self.reaped) == self.dut.layout.sessions
            insert = False
        free, number = ctx.get(dut.lookup.free_valid), ctx.get(dut.lookup.free_session)
        for _ in range(self.rng.choice((0, 0, 1, 9))):
            await ctx.tick()
            assert ctx.get(dut.lookup.done)
        if free:  # what was on offer still is
            assert (ctx.get(dut.lookup.free_valid), ctx.get(dut.lookup.free_session)) == (1, number)
        await self.end(ctx, key, insert)
        return cycles

    async def reap(self, ctx, key):
        payload = {"session": self.entered.pop(key), "tuple": key}
        self.reaped.append((key, payload["session"]))
        await stream_put(ctx, self.dut.reap, payload, rng=self.rng, idle=0.1)

    def count_freed(self):
        async def watch(ctx):
            while True:
                _, _, freed = await ctx.tick().sample(self.dut.freed)
                if freed:
                    self.reaped.pop(0)

        watch.background = True
        return watch

    async def settle(self, ctx):
        taken = self.dut.writer.taken  # changes under way
        while (
            self.reaped
            or not ctx.get(self.dut.lookup.ready)
            or ctx.get(taken)
            or self.responder.busy
        ):
            await ctx.tick()
        await ctx.tick()

    def check_memory(self, ctx):
        layout = self.dut.layout
        there = contents(
            self.memory,
            KEY,
            sessions=layout.sessions,
            bucket_bits=layout.bucket_bits,
            base=BASE,
            spilled=ctx.get(self.dut.spilled),
        )
        assert there == self.entered, (sorted(there.items()), sorted(self.entered.items()))
        assert ctx.get(self.dut.in_use) == len(self.entered)
        assert self.memory[:BASE] == self.before

    def run(self, *benches, limit, seed):
        return run(self.dut, *benches, self.count_freed(), *self.checks, limit=limit, seed=seed)


@seeds(4)
def test_code_is_a_permutation(seed):
    rng = make_rng(seed, "code")
    for _ in range(20):
        key_tuple, key = rng.getrandbits(64), rng.getrandbits(128)
        assert tuple_of(code_of(key_tuple, key), key) == key_tuple


def hints(bench, queue):
    """Background: hint what is in ``queue``, in order; now and then something else."""

    async def put(ctx):
        rng = make_rng(0, "hints")
        while True:
            if not queue:
                await ctx.tick()
                continue
            key, syn = queue.pop(0)
            if rng.random() < 0.1:
                key = rng.getrandbits(64)
            await stream_put(ctx, bench.dut.hint, {"tuple": key, "syn": syn})

    put.background = True
    return put


@pytest.mark.parametrize("case", ["spread", "sharing", "few"])
@seeds(2)
def test_churn(case, seed):
    """No tuple is lost or confused, no number given twice, none refused while one is free."""
    width = 32 if seed % 2 else 64
    ahead = {"spread": 1, "sharing": 2, "few": 3}[case]
    bench = Bench(seed, width=width, ahead=ahead, latency=(2, 25), stall=0.15)
    rng, queue = bench.rng, []
    if case == "spread":
        tuples = [rng.getrandbits(64) for _ in range(24)]
    elif case == "sharing":  # 14 places for 16 sessions: the overflow list is in use
        tuples = bench.sharing(24)
    else:  # always the same few, so that everything is in each other's way
        tuples = [rng.getrandbits(64) for _ in range(3)]

    async def script(ctx):
        await bench.ready(ctx)
        todo = [(rng.choice(tuples), rng.random() < 0.2) for _ in range(100)]
        most = 0
        for k, (key, syn) in enumerate(todo):
            queue[:] = todo[k + 1 : k + 1 + rng.choice((0, 1, 2))]
            fill = 0.95 if k < 50 else 0.5
            if bench.entered and rng.random() > fill:
                await bench.reap(ctx, rng.choice(list(bench.entered)))
            await bench.lookup(ctx, key, insert=rng.random() < fill, syn=syn)
            most = max(most, ctx.get(bench.dut.spilled))
        assert (most > 0) == (case == "sharing")
        await bench.settle(ctx)
        bench.check_memory(ctx)
        for key in list(bench.entered):
            await bench.reap(ctx, key)
        await bench.settle(ctx)
        bench.check_memory(ctx)
        assert not bench.entered
        assert ctx.get(bench.dut.spilled) == 0

    bench.run(script, hints(bench, queue), limit=40_000, seed=seed)


@pytest.mark.nightly
@seeds(2)
def test_every_number_is_given_out_though_all_tuples_share_their_buckets(seed):
    bench = Bench(seed, sessions=64, bucket_bits=1, calm=True, latency=(4, 4), stack_depth=32)
    tuples = bench.sharing(65)

    async def script(ctx):
        await bench.ready(ctx)
        for key in tuples:
            await bench.lookup(ctx, key, insert=True)
        assert set(bench.entered) == set(tuples[:64])
        assert set(bench.entered.values()) == set(range(64))
        assert ctx.get(bench.dut.spilled) == 50
        await bench.settle(ctx)
        bench.check_memory(ctx)
        for key in bench.rng.sample(tuples[:64], 40):
            await bench.reap(ctx, key)
        await bench.settle(ctx)
        bench.check_memory(ctx)
        for key in tuples:
            await bench.lookup(ctx, key)

    bench.run(script, limit=30_000, seed=seed)


@seeds(2)
def test_reaped_and_entered_anew_within_a_dialogue(seed):
    """What was found dies before ``finish``: the tuple is entered again while its old entry is
    still there, and only the new one is left in the end."""
    bench = Bench(seed, latency=(20, 40))
    tuples = [bench.rng.getrandbits(64) for _ in range(6)]

    async def script(ctx):
        await bench.ready(ctx)
        for key in tuples:
            await bench.lookup(ctx, key, insert=True)
        for key in tuples:
            await bench.begin(ctx, key)
            assert ctx.get(bench.dut.lookup.found)
            assert ctx.get(bench.dut.lookup.session) == bench.entered[key]
            await bench.reap(ctx, key)
            await ctx.tick().repeat(bench.rng.choice((1, 5, 30, 120)))
            assert ctx.get(bench.dut.lookup.done)
            assert ctx.get(bench.dut.lookup.found)
            await bench.end(ctx, key, insert=True)
            other = bench.rng.choice(tuples)
            if bench.rng.random() < 0.5:  # it may be over as soon as it is entered
                await bench.reap(ctx, key)
            await bench.lookup(ctx, other)
        await bench.settle(ctx)
        bench.check_memory(ctx)

    bench.run(script, limit=20_000, seed=seed)


def test_memory_that_is_started_late_is_not_touched_before():
    """A board's firmware trains its memory: what is written before that is lost."""
    bench = Bench(seed=1)
    dut, memory = bench.dut, bytes(bench.memory)

    async def script(ctx):
        ctx.set(dut.go, 0)
        for _ in range(300):
            await ctx.tick()
            assert not ctx.get(dut.mem.cmd.valid)
            assert not ctx.get(dut.lookup.ready)
        assert bytes(bench.memory) == memory
        ctx.set(dut.go, 1)
        await bench.ready(ctx)
        found = contents(bench.memory, KEY, sessions=16, bucket_bits=1, base=BASE)
        assert not found

    run(dut, script, *bench.checks, limit=2000, seed=1)


def test_latencies():
    """The figures of the docstring: memory answers after 40 cycles, buckets are 64 bytes."""
    figures = {}
    bench = Bench(0, sessions=64, bucket_bits=3, calm=True, latency=(40, 40), cache_sets=4)
    tuples = [bench.rng.getrandbits(64) for _ in range(30)]

    async def until_idle(ctx):
        cycles = 1
        while not ctx.get(bench.dut.lookup.ready):
            await ctx.tick()
            cycles += 1
        return cycles

    async def removed(ctx, key):
        await bench.reap(ctx, key)
        cycles = 0
        while bench.reaped:
            await ctx.tick()
            cycles += 1
        return cycles

    async def script(ctx):
        await bench.ready(ctx)
        for key in tuples:
            figures["miss"] = await bench.begin(ctx, key)
            await bench.end(ctx, key, insert=True)
            figures["insertion"] = await until_idle(ctx)
        await bench.settle(ctx)
        figures["hit"] = await bench.begin(ctx, tuples[-1])
        await bench.end(ctx, tuples[-1])
        figures["memory"] = await bench.begin(ctx, tuples[0])
        await bench.end(ctx, tuples[0])
        for name, wait in (("hinted hit", 24), ("hinted miss", 80), ("hinted late miss", 24)):
            key = tuples[-1] if name == "hinted hit" else bench.rng.getrandbits(64)
            await stream_put(ctx, bench.dut.hint, {"tuple": key, "syn": 0})
            await ctx.tick().repeat(wait)
            figures[name] = await bench.begin(ctx, key)
            await bench.end(ctx, key)
        figures["hash"] = await bench.begin(ctx, tuples[0], syn=True)
        await bench.end(ctx, tuples[0])
        await bench.settle(ctx)
        figures["removal"] = await removed(ctx, tuples[0])
        figures["removal from memory"] = await removed(ctx, tuples[1])
        # A look-up while both a removal and an insertion are on their way.
        key = bench.rng.getrandbits(64)
        await bench.lookup(ctx, key, insert=True)
        await bench.reap(ctx, tuples[2])
        figures["hit meanwhile"] = await bench.begin(ctx, key)
        await bench.end(ctx, key)
        await bench.settle(ctx)
        bench.check_memory(ctx)

    bench.run(script, limit=20_000, seed=0)
    assert figures == {
        "miss": 75,
        "insertion": 4,
        "hit": 12,
        "memory": 78,
        "hinted hit": 1,
        "hinted miss": 1,
        "hinted late miss": 48,
        "hash": 30,
        "removal": 61,
        "removal from memory": 124,
        "hit meanwhile": 19,
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SessionIndex(width=128), "Data path of the session index must be 32 or 64 bits, "),
        (lambda: SessionIndex(ahead=4), "Look-ups ahead must be 1 to 3, not 4"),
        (lambda: SessionIndex(100), "Number of sessions must be a power of two from 2 to 131072, "),
        (lambda: SessionIndex(base=32), "Index base must be a multiple of 64 with .*, not 32"),
        (lambda: IndexLayout(bucket_bits=9), "Bits of a bucket's number must be 10 to 16, not 9"),
        (lambda: IndexLayout(places=8), "Places of a bucket must be 1, 3 or 7, not 8"),
        (lambda: TupleCache(4, 3), "Sets of the cache must be a power of two, 2 to 4096, not 3"),
        (lambda: NumberStack(3), "count must be a power of two of at least 2, not 3"),
        (lambda: NumberStack(8, depth=8), "burst must be a quarter of depth at most, and 64, not"),
        (lambda: NumberStack(8, 8), "base must be a multiple of 64, not 8"),
        (lambda: NumberStack(8, numbers=9), "numbers must be 1 to 8, not 9"),
    ],
)
def test_parameters_are_checked(make, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        make()


def test_sizes_of_the_full_preset():
    """16 bytes a session in buckets, and room for the overflow list and the stack."""
    dut = SessionIndex()
    layout = dut.layout
    assert layout.buckets * 64 == 131072 * 16
    assert (layout.buckets * layout.places) / layout.sessions == 1.75
    assert (layout.low_bits, layout.high_bits) == (46, 4)
    assert dut.size == (2 + 2 + 1) << 20
