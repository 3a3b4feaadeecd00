"""The elastic router against its model, cycle by cycle; under back-pressure; on bad input."""

import pytest
from router_bench import Endpoints, Receiver, Sender, phits_of
from streams import make_rng, run, seeds
from trebuchet.cores.router.contract import LinkConfig
from trebuchet.cores.router.router import Router
from trebuchet.models.router import Flit, RouterModel

SMALL = {"flit_width": 16, "dest_width": 3}


def link(**kwargs):
    return LinkConfig(**(SMALL | kwargs))


def model_of(router, route=None):
    c = router.config
    return RouterModel(router.ports, c.vcs, c.buffer_flits, c.reserved, route, router.pass_through)


async def against_model(ctx, dut, model, seed, cycles, length, *, bad=0.0, rude=False):
    """Random traffic, some of it bad, into both; the same must come out in every cycle."""
    rng, c = make_rng(seed, "traffic"), dut.config
    senders = [Sender(c) for _ in range(dut.ports)]
    receivers = [Receiver(c) for _ in range(dut.ports)]
    seen = {"dropped": 0, "malformed": 0, "overflow": 0, "flits": 0}
    for cycle in range(cycles):
        flits, credits = [], []
        for sender in senders:
            for v in range(c.vcs):
                if len(sender.queues[v]) < 8:
                    dests = dut.ports if rng.random() >= bad else 1 << c.dest_width
                    n = length(rng)
                    sender.put(v, rng.randrange(dests), [rng.getrandbits(16) for _ in range(n)])
            flit = sender.next(rng, 0.9, rude=rude and rng.random() < 0.2)
            if flit is not None and rng.random() < bad / 8:
                # Another head or tail, or, if there is one, a VC that does not exist.
                vc = flit.vc
                if c.vcs == 3 and rng.random() < 0.3:
                    sender.held[vc] -= 1
                    vc = 3
                flit = Flit(vc, rng.random() < 0.5, rng.random() < 0.5, flit.dest, flit.data)
            flits.append(flit)
        for receiver in receivers:
            credits.append(receiver.credits(rng, 0.15 if cycle // 200 % 2 else 0.9))
        for p in range(dut.ports):
            ctx.set(dut.i[p].valid, flits[p] is not None)
            if flits[p] is not None:
                ctx.set(dut.i[p].phit, phits_of(flits[p], c)[0])
            ctx.set(dut.o[p].credit, credits[p])
            for v in range(c.vcs):  # a credit counts from the next cycle on
                senders[p].held[v] -= ctx.get(dut.i[p].credit) >> v & 1
        await ctx.tick()
        want = model.step(flits, credits)
        for p in range(dut.ports):
            phit = ctx.get(dut.o[p].phit) if ctx.get(dut.o[p].valid) else None
            got = None
            if phit is not None:
                got = Flit(phit.vc, bool(phit.head), bool(phit.tail), phit.dest, phit.data)
            expected = want.flits[p]
            if expected is not None and not expected.head:
                assert got is not None
                got, expected = (Flit(f.vc, f.head, f.tail, 0, f.data) for f in (got, expected))
            assert got == expected, f"cycle {cycle}, output {p}"
            if phit is not None:
                names = ("data", "dest", "vc", "head", "tail")
                receivers[p].take({name: phit[name] for name in names})
                seen["flits"] += 1
            assert ctx.get(dut.i[p].credit) == want.credits[p], f"cycle {cycle}, input {p}"
            for name in ("dropped", "malformed", "overflow"):
                assert bool(ctx.get(getattr(dut, name)) >> p & 1) == getattr(want, name)[p], name
                seen[name] += getattr(want, name)[p]
    return seen


@pytest.mark.parametrize(
    ("ports", "config", "through"),
    [
        (2, link(vcs=1, buffer_flits=2, reserved=1), True),
        (2, link(vcs=1, buffer_flits=3, reserved=3), False),
        (3, link(vcs=2, buffer_flits=5, reserved=1), True),
        *(
            pytest.param(*values, marks=pytest.mark.nightly)
            for values in (
                (4, link(vcs=2, buffer_flits=16, reserved=3), True),
                (4, link(vcs=2, buffer_flits=8, reserved=2), False),
                (3, link(vcs=3, buffer_flits=7, reserved=2), True),
                (4, link(vcs=4, buffer_flits=17, reserved=3), True),
            )
        ),
    ],
)
@seeds(1)
def test_same_as_the_model(ports, config, through, seed):
    dut = Router(ports, config, pass_through=through)

    async def drive(ctx):
        seen = await against_model(
            ctx, dut, model_of(dut), seed, 400, lambda rng: rng.choice([1, 1, 2, 3, 9])
        )
        assert seen["flits"] > 200
        assert seen["dropped"] == seen["malformed"] == seen["overflow"] == 0

    run(dut, drive, limit=500, seed=seed)


@pytest.mark.parametrize("vcs", [2, pytest.param(3, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("rude", [False, True])
@seeds(1)
def test_bad_input_is_the_models(vcs, rude, seed):
    """Packets for nowhere, missing heads and tails, no such VC, flits sent without credit."""
    dut = Router(3, link(vcs=vcs, buffer_flits=8, reserved=2))

    async def drive(ctx):
        seen = await against_model(
            ctx, dut, model_of(dut), seed, 800, lambda rng: rng.randint(1, 4), bad=0.3, rude=rude
        )
        assert seen["dropped"] > 10
        assert seen["malformed"] > 10
        assert bool(seen["overflow"]) == rude

    run(dut, drive, limit=900, seed=seed)


@seeds(1)
def test_ways_that_change_the_vc(seed):
    """A routing function that crosses ports and joins VCs."""

    def route(port, vc, dest):
        return None if dest >= 6 else ((dest + port) % 3, (vc + dest // 3) % 2)

    dut = Router(3, link(vcs=2, buffer_flits=9, reserved=2), route)

    async def drive(ctx):
        await against_model(
            ctx, dut, model_of(dut, route), seed, 800, lambda rng: rng.randint(1, 5), bad=0.4
        )

    run(dut, drive, limit=900, seed=seed)


@pytest.mark.parametrize(
    "config",
    [
        link(vcs=2, buffer_flits=9, phit_width=4),
        pytest.param(link(vcs=2, buffer_flits=8), marks=pytest.mark.nightly),
        pytest.param(link(vcs=1, buffer_flits=4, phit_width=8), marks=pytest.mark.nightly),
    ],
)
@pytest.mark.parametrize("chance", [1.0, 0.1])
@seeds(1)
def test_everything_arrives_and_every_credit_comes_back(config, chance, seed):
    dut = Router(4, config)
    ends = Endpoints(dut, 4, config, seed, chance=chance)
    ends.add_random(25, lambda rng: rng.choice([1, 2, 8]))
    run(dut, ends.drain, limit=20_000, seed=seed)


@seeds(1)
def test_a_blocked_vc_holds_nobody_else(seed):
    """No credit ever comes back for VC 0 of output 0: all other traffic passes at full rate."""
    config = link(vcs=2, buffer_flits=16)
    dut = Router(2, config)
    ends = Endpoints(dut, 2, config, seed, load=1.0, chance=lambda p, t: [float(p == 1), 1.0])

    async def drive(ctx):
        for source in range(2):
            for _ in range(20):
                ends.add(source, 0, 0, 4)
        for _ in range(200):
            await ends.step(ctx)
        ends.expected.clear()
        ends.receivers[0].packets.clear()
        before = ends.flits
        for source in range(2):
            for k in range(100):
                ends.add(source, 1, k % 2, 1)
        for _ in range(150):
            await ends.step(ctx)
            ends.check_content()
        assert ends.flits - before == 200
        assert not any(ends.expected.values())

    run(dut, drive, limit=400, seed=seed)


@pytest.mark.parametrize(("through", "cycles"), [(True, 1), (False, 2)])
def test_latency(through, cycles):
    config = link(vcs=2, buffer_flits=8)
    dut = Router(4, config, pass_through=through)

    async def drive(ctx):
        for source in range(4):
            for dest in range(4):
                flit = Flit(1, True, True, dest, 7)
                ctx.set(dut.i[source].phit, phits_of(flit, config)[0])
                ctx.set(dut.i[source].valid, 1)
                for _ in range(cycles):
                    assert not ctx.get(dut.o[dest].valid)
                    await ctx.tick()
                    ctx.set(dut.i[source].valid, 0)
                assert ctx.get(dut.o[dest].valid)
                assert ctx.get(dut.o[dest].phit.data) == 7
                await ctx.tick().repeat(2)

    run(dut, drive, limit=200)


@pytest.mark.parametrize("vc", [0, 1])
def test_one_flit_per_port_and_cycle(vc):
    """A permutation on one VC alone, U-turns too: every output sends in every cycle."""
    config = link(vcs=2, buffer_flits=16)
    dut = Router(4, config)
    ends = Endpoints(dut, 4, config, 0, load=1.0, chance=1.0)

    async def drive(ctx):
        for source in range(4):
            for _ in range(10):
                ends.add(source, vc, (source * 3) % 4, 8)
        while not all(s.done for s in ends.senders):
            await ends.step(ctx)
        assert ends.cycle == 80
        await ends.drain(ctx)

    run(dut, drive, limit=200)


def test_bad_parameters():
    with pytest.raises(ValueError, match="Number of ports must be an integer >= 2, not 1"):
        Router(1)
    with pytest.raises(ValueError, match="Way from port 0, VC 0 to destination 0 must be one of"):
        Router(2, LinkConfig(), lambda p, v, d: (2, v))
    for name, value, text in (
        ("vcs", 0, "Number of virtual channels must be an integer >= 1, not 0"),
        ("phit_width", 7, "Phit width must divide the flit width of 64 bits, not 7"),
        ("reserved", 0, "Reserved flits must be an integer >= 1, not 0"),
        ("buffer_flits", 5, "Buffer flits must be an integer >= 6, not 5"),
        ("dest_width", "2", "Width of a destination must be an integer >= 1, not '2'"),
    ):
        with pytest.raises(ValueError, match=text):
            LinkConfig(**{name: value})
