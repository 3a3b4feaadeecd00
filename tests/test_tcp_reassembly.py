"""Runs kept beyond gaps: the component against sets of bytes."""

from dataclasses import replace

import pytest
from streams import make_rng, run, seeds
from tcp_bench import M32, SMALL
from trebuchet.cores.tcp.reassembly import ReassemblyBlocks
from trebuchet.cores.tcp.record import run_names
from trebuchet.models.tcp import join_runs

WINDOW = 300


def random_runs(rng, most):
    """Up to ``most`` runs of distances from RCV.NXT, none touching another, in any order."""
    cuts = sorted(rng.sample(range(2, WINDOW), 2 * rng.randint(0, most)))
    runs = [(a, b) for a, b in zip(cuts[::2], cuts[1::2], strict=True)]
    apart = [r for k, r in enumerate(runs) if k == 0 or r[0] > runs[k - 1][1]]
    rng.shuffle(apart)
    return apart


@pytest.mark.parametrize("most", [1, 2, 4])
@pytest.mark.parametrize("scaling", [False, True])
@seeds(2)
def test_runs_are_those_of_the_model(most, scaling, seed):
    config = replace(SMALL, runs=most, scaling=scaling)
    dut, rng = ReassemblyBlocks(config), make_rng(seed, f"runs/{most}")
    low = (1 << config.place_bits) - 1

    async def bench(ctx):
        seen = set()
        for _ in range(150):
            base, runs = rng.choice([rng.getrandbits(32), -rng.randrange(WINDOW)]), []
            base &= M32
            runs = random_runs(rng, most)
            ahead = rng.random() < 0.6
            edges = [e for r in runs for e in r] or [50]
            begin = 0 if not ahead else max(1, rng.choice(edges) + rng.randint(-2, 2))
            end = max(begin, rng.choice(edges) + rng.randint(-2, 40))
            record = {"rcv_nxt": base, "kept": len(runs)}
            for names, places in zip(run_names(config), runs + [(0, 0)] * 4, strict=False):
                for name, place in zip(names, places, strict=True):
                    record[name] = (base + place) & low
            for name, value in record.items():
                ctx.set(dut.record[name], value)
            ctx.set(dut.ahead, ahead)
            ctx.set(dut.begin, (base + begin) & low)
            ctx.set(dut.end, (base + end) & low)
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            for _ in range(most + 2):
                assert not ctx.get(dut.done)
                await ctx.tick()
            assert ctx.get(dut.done)
            want, edge = join_runs(runs, begin, end, ahead, most)
            if want is None:
                assert ctx.get(dut.full)
                seen.add("full")
                continue
            assert not ctx.get(dut.full)
            got = [
                ((ctx.get(r.begin) - base) & low, (ctx.get(r.end) - base) & low)
                for r in list(dut.runs)[: ctx.get(dut.count)]
            ]
            assert got == want
            if not ahead:
                assert ctx.get(dut.jump) == (edge > end)
                assert ctx.get(dut.edge) == (base + edge) & M32
                seen.add("jump" if edge > end else "no jump")
            seen.add(len(want))
        assert seen >= {"full", "jump", "no jump", *range(most + 1)}

    run(dut, bench, limit=4000, seed=seed)
