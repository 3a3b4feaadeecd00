"""``Commands``: each goes to the tables that it is for, once, and a wrong index to none."""

from streams import make_rng, run, seeds, stream_get
from trebuchet.cores.ltl.commands import Commands
from trebuchet.cores.ltl.config import LtlConfig

CONFIG = LtlConfig(connections=3)


@seeds(2)
def test_commands_reach_their_tables(seed):
    dut, rng = Commands(CONFIG), make_rng(seed, "commands")
    given, taken, wrong = [], [], [0, 0]
    for _ in range(40):
        given.append((rng.choice([0, 1, 2, 2, 3, 65535]), rng.random() < 0.5, rng.random() < 0.5))

    async def command(ctx):
        for number, (index, opens, receives) in enumerate(given):
            taken.append([])
            ctx.set(dut.command, index << 16 | receives << 2 | opens << 1 | 1)
            await ctx.tick()
            ctx.set(dut.command, rng.getrandbits(32) & ~1)  # the register's strobe is over
            assert ctx.get(dut.busy)
            while ctx.get(dut.busy):
                await ctx.tick()
            expected = []
            if index < CONFIG.connections:
                expected.append(("receive" if receives else "send", index, opens))
                if opens:
                    expected.append(("peer", index | receives << 2))
                if receives and opens:
                    expected.append(("opened", index))
            else:
                wrong[0] += 1
            assert sorted(taken[number], key=str) == sorted(expected, key=str), given[number]

    def table(name):
        async def take(ctx):
            waits = make_rng(seed, name)
            while True:
                entry = await stream_get(ctx, getattr(dut, name), rng=waits, stall=0.7)
                taken[-1].append((name, entry["connection"], bool(entry["open"])))

        take.background = True
        return take

    async def opened(ctx):
        waits = make_rng(seed, "opened")
        while True:
            index = await stream_get(ctx, dut.opened, rng=waits, stall=0.7)
            taken[-1].append(("opened", index))

    async def watch(ctx):
        samples = dut.peer_en, dut.peer_addr, dut.wrong
        async for _, _, enable, address, refused in ctx.tick().sample(*samples):
            wrong[1] += refused
            if enable:
                taken[-1].append(("peer", address))

    opened.background = watch.background = True
    run(dut, command, table("send"), table("receive"), opened, watch, limit=3000, seed=seed)
    assert wrong[0] == wrong[1] > 0
