"""``SessionStore`` keeps each field of each session, at all sizes."""

from part_sizes import at_sizes
from streams import run
from test_sizes_tcp import config_of
from trebuchet.cores.tcp.store import SessionStore


@at_sizes("tcp.store.SessionStore", but=("width",))
def test_store(size):
    """What is handed back of a session comes back, and of no other; in each field."""
    config = config_of(size)
    names = ("snd_una", "rcv_nxt", "rcv_base", "snd_nxt", "mss", "cwnd")
    writers = ("receive", "transmit", "timer", "events")
    dut = SessionStore(config, dict.fromkeys(writers, names))
    port = dut.receive

    async def checkout(ctx, session, fields):
        ctx.set(port.session, session)
        ctx.set(port.request, 1)
        while not ctx.get(port.grant):
            await ctx.tick()
        ctx.set(port.request, 0)
        found = {name: ctx.get(port.record[name]) for name in names}
        for name in names:
            ctx.set(port.result[name], fields.get(name, found[name]))
            ctx.set(port.changes[name], name in fields)
        ctx.set(port.commit, 1)
        await ctx.tick()
        ctx.set(port.commit, 0)
        await ctx.tick()
        return found

    def content(session):
        return {n: (session * 0x9E37 + k * 0x101 + 1) & 0x7FF for k, n in enumerate(names)}

    async def bench(ctx):
        while not ctx.get(dut.ready):
            await ctx.tick()
        for session in range(config.sessions):
            assert not any((await checkout(ctx, session, content(session))).values())
        for session in range(config.sessions):
            assert await checkout(ctx, session, {}) == content(session)

    run(dut, bench, limit=40 * config.sessions + 200)
