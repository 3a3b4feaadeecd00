"""``SynCookie``: its cookies are those of the model, for a slot and the next."""

import pytest
from streams import make_rng, run, seeds
from tcp_bench import M32, SMALL
from test_tcp_cookies import KEY
from trebuchet.cores.tcp.cookie import SLOT_LOG2, SynCookie
from trebuchet.models.tcp import cookie_mss, speck64_128, syn_cookie

SLOT = 1 << SLOT_LOG2


class Baker:
    """A :class:`SynCookie` with a table's cipher beside it."""

    def __init__(self, ctx, dut, key):
        self.ctx, self.dut, self.key, self.now = ctx, dut, key, 0

    async def show(self, ip, port, service, **fields):
        """A segment stands still, and is hashed as the engine does it."""
        ctx, seg = self.ctx, self.dut.segment
        for name, value in {"ip": ip, "remote_port": port, **fields}.items():
            ctx.set(seg[name], value)
        ctx.set(self.dut.service, service)
        ctx.set(self.dut.hold, 0)
        await ctx.tick().repeat(3)
        ctx.set(self.dut.hold, 1)
        block = ctx.get(self.dut.block)
        await ctx.tick().repeat(2)
        ctx.set(self.dut.hash, speck64_128(block, self.key) & M32)
        await ctx.tick().repeat(2)

    async def pass_time(self, ticks):
        """Time goes by, a slot at most in a step."""
        end = self.now + ticks
        while self.now < end:
            self.now = min(end, self.now + SLOT)
            self.ctx.set(self.dut.now, self.now % (1 << 24))
            await self.ctx.tick().repeat(3)

    async def bake(self, ip, port, service, mss, first=1):
        self.ctx.set(self.dut.mss, mss)
        self.ctx.set(self.dut.first, first)
        await self.show(ip, port, service, flags={"syn": 1}, ack=0)
        number = self.ctx.get(self.dut.number)
        self.ctx.set(self.dut.sent, 1)
        await self.ctx.tick()
        self.ctx.set(self.dut.sent, 0)
        return number

    async def taste(self, ip, port, service, ack, first=1):
        self.ctx.set(self.dut.first, first & M32)
        await self.show(ip, port, service, flags={"ack": 1}, ack=ack & M32)
        get, dut = self.ctx.get, self.dut
        return get(dut.told) if get(dut.plausible) and get(dut.good) else None


@seeds(3)
def test_cookies_are_the_models(seed):
    """Random peers and times, honest and not."""
    dut, rng = SynCookie(SMALL), make_rng(seed, "cookies")
    key = rng.getrandbits(128)

    async def bench(ctx):
        baker, sent = Baker(ctx, dut, key), []
        assert await baker.taste(1, 2, 0, syn_cookie(key, 1, 2, 0, 0, 1460, 1) + 1) is None
        for _ in range(40):
            await baker.pass_time(rng.choice([0, 0, 1, rng.randrange(SLOT), 2 * SLOT]))
            slot = baker.now >> SLOT_LOG2
            who = rng.getrandbits(32), rng.getrandbits(16), rng.randrange(3)
            mss = rng.choice([536, 1219, 1220, 1439, 1440, 1459, 1460, rng.randint(536, 1460)])
            first = rng.choice([0, rng.getrandbits(32)])
            number = await baker.bake(*who, mss, first)
            assert number == syn_cookie(key, *who, slot, mss, first)
            sent.append((who, number, first))
            who, number, first = rng.choice(sent[-8:])
            if rng.random() < 0.4:
                number ^= 1 << rng.randrange(32)
            if rng.random() < 0.4:
                first = (first + rng.choice([1, 5, 32, -32, 1460, rng.randrange(1 << 22)])) & M32
            assert await baker.taste(*who, number + 1, first) == cookie_mss(
                key, *who, (slot, slot - 1), (number + 1) & M32, first
            )
        other = (who[0] ^ 1 << rng.randrange(32), *who[1:])
        number = await baker.bake(*who, 1460)
        assert await baker.taste(*who, number + 1) == 1460
        assert await baker.taste(*other, number + 1) is None
        assert await baker.taste(who[0], who[1], (who[2] + 1) % 3, number + 1) is None

    run(dut, bench, limit=20_000, seed=seed)


def test_a_cookie_holds_for_its_slot_and_the_next():
    """To the tick; after a slot without any, none is believed at all."""
    dut, who = SynCookie(SMALL), (7, 8, 1)

    async def bench(ctx):
        baker = Baker(ctx, dut, KEY)
        await baker.pass_time(5 * SLOT - 1)
        number = await baker.bake(*who, 1300)
        await baker.pass_time(1)
        assert await baker.taste(*who, number + 1) == 1220
        await baker.pass_time(SLOT - 1)
        assert await baker.taste(*who, number + 1) == 1220
        await baker.pass_time(1)
        assert await baker.taste(*who, number + 1) is None
        fresh = syn_cookie(KEY, *who, 6, 1460, 1)
        assert await baker.taste(*who, fresh + 1) is None, "none was sent in slot 6 or 5"

    run(dut, bench, limit=5_000)


@pytest.mark.parametrize("late", range(1, 11))
def test_a_slot_that_ends_under_a_cookie(late):
    """Whenever the slot ends, before, while or after the number is made, the ACK is good."""
    dut, who = SynCookie(SMALL), (7, 8, 1)

    async def bench(ctx):
        baker = Baker(ctx, dut, KEY)
        number = await baker.bake(*who, 1460)
        await ctx.tick().repeat(12)
        assert await baker.taste(*who, number + 1) == 1460

    async def clock(ctx):
        await ctx.tick().repeat(late)
        ctx.set(dut.now, SLOT)

    run(dut, bench, clock, limit=200)
