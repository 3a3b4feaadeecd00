"""``TupleCache`` against a dictionary."""

from streams import make_rng, run, seeds
from trebuchet.cores.tcp.index_cache import TupleCache


@seeds(2)
def test_tuple_cache(seed):
    """Two tuples a set, the newest; none that was dropped, none twice."""
    dut, rng = TupleCache(4, sets=2), make_rng(seed, "cache")
    codes = [k << 40 | (k & 1) << 32 | k for k in range(6)]
    model = [[], []]  # of each set: code, number, the newest first

    async def script(ctx):
        while not ctx.get(dut.ready):
            await ctx.tick()
        for _ in range(300):
            code, number = rng.choice(codes), rng.randrange(3)
            entries = model[code >> 32 & 1]
            ctx.set(dut.code, code)
            ctx.set(dut.number, number)
            ctx.set(dut.where, {"side": number & 1, "index": code & 7})
            await ctx.tick()
            known = dict(entries)
            assert ctx.get(dut.hit) == (code in known)
            if code in known:
                assert ctx.get(dut.its_number) == known[code]
                assert ctx.get(dut.its_where.side) == known[code] & 1
                assert ctx.get(dut.its_where.index) == code & 7
            kind = rng.choice(("put", "drop", None))
            if kind == "put":
                entries[:] = [(code, number)] + [e for e in entries if e[0] != code][:1]
            elif kind == "drop" and (code, number) in entries:
                # Its place stays empty until something is put: the newer one does not move up.
                entries.remove((code, number))
            if kind:
                ctx.set(getattr(dut, kind), 1)
            await ctx.tick()
            ctx.set(dut.put, 0)
            ctx.set(dut.drop, 0)

    run(dut, script, limit=3000, seed=seed)
