"""Rings and meshes: routing, cycles of channels refused, delivery when saturated."""

from dataclasses import replace

import pytest
from router_bench import Endpoints
from streams import run, seeds
from trebuchet.cores.router.contract import LinkConfig
from trebuchet.cores.router.network import Network
from trebuchet.cores.router.routing import (
    DeadlockError,
    RoutingError,
    Topology,
    check,
    mesh,
    ring,
)

pytestmark = pytest.mark.slow


def link(**kwargs):
    return LinkConfig(**({"flit_width": 16, "dest_width": 4, "buffer_flits": 8} | kwargs))


def test_a_ring_without_dateline_is_refused_by_name():
    with pytest.raises(DeadlockError) as error:
        Network(ring(4, dateline=False), link())
    assert str(error.value) == (
        "Channels must not depend on one another in a cycle: router 0 up VC 0 -> router 1 up VC 0"
        " -> router 2 up VC 0 -> router 3 up VC 0 -> router 0 up VC 0"
    )


@pytest.mark.parametrize("n", [3, 4, 5, 8])
@pytest.mark.parametrize("vcs", [2, 4])
def test_a_ring_with_dateline_has_no_cycle(n, vcs):
    graph = check(ring(n), vcs)
    assert {router for router, _, _ in graph} == set(range(n))
    # Every channel is passed, but those behind the dateline that a shortest way never reaches.
    assert all(nexts <= set(graph) for nexts in graph.values())


def test_a_dateline_needs_two_vcs():
    with pytest.raises(RoutingError, match=r"must not leave router \d by"):
        check(ring(4), 1)


@pytest.mark.parametrize(("columns", "rows"), [(2, 1), (2, 2), (3, 3), (4, 2)])
def test_dimension_order_has_no_cycle(columns, rows):
    check(mesh(columns, rows), 1)


def test_other_turns_are_refused_by_name():
    """Half of the packets go along the column first: the turns close a cycle."""
    good = mesh(3, 3)

    def route(router, port, vc, dest):
        names, (x, y) = good.ports[router], (router % 3, router // 3)
        if dest % 2 and y != dest // 3:
            return names.index("north" if dest // 3 > y else "south"), vc
        if dest % 2 and x != dest % 3:
            return names.index("east" if dest % 3 > x else "west"), vc
        return good.route(router, port, vc, dest)

    with pytest.raises(DeadlockError, match=r"router \d (north|south|east|west) VC 0 -> router"):
        check(replace(good, route=route), 1)


def test_ways_that_do_not_arrive_are_refused():
    good = mesh(2, 2)
    for route, text in (
        (lambda r, p, v, d: None, "on VC 0 to endpoint 0 must not be dropped at router 0"),
        (lambda r, p, v, d: (0, v), "to endpoint 1 must not leave by router 0 local VC 0"),
        (lambda r, p, v, d: (1, v), "must not pass router 0 east VC 0 twice"),
        (lambda r, p, v, d: (1, v + 1), r"must not leave router 0 by \(1, 1\)"),
    ):
        with pytest.raises(RoutingError, match=text):
            check(replace(good, route=route), 1)


def test_a_port_has_one_neighbour():
    with pytest.raises(ValueError, match="Each link and endpoint must have inputs of its own"):
        Topology([["a", "b"], ["a"]], {(0, 0): (1, 0), (0, 1): (1, 0)}, [], None)
    with pytest.raises(ValueError, match="Number of routers in a ring must be an integer >= 3"):
        ring(2)
    with pytest.raises(ValueError, match="A mesh must have at least 2 routers, not 1 x 1"):
        mesh(1, 1)
    with pytest.raises(ValueError, match="Width of a destination must hold 9 endpoints, not 8"):
        Network(mesh(3, 3), link(dest_width=3))


@pytest.mark.parametrize(
    ("topology", "config", "through", "packets"),
    [
        (mesh(2, 2), link(phit_width=8), False, 15),
        (ring(4), link(), True, 25),
        *(
            pytest.param(*values, marks=pytest.mark.nightly)
            for values in (
                (mesh(2, 2), link(), True, 25),
                (mesh(3, 3), link(vcs=1, buffer_flits=4), True, 12),
                (ring(5), link(vcs=4, buffer_flits=12, reserved=1), True, 15),
            )
        ),
    ],
)
@pytest.mark.parametrize("chance", [1.0, 0.3])
@seeds(1)
def test_everything_arrives_when_saturated(topology, config, through, packets, chance, seed):
    """Infinite backlog everywhere, packets longer than a buffer among them."""
    n = len(topology.endpoints)
    dut = Network(topology, config, through)
    ends = Endpoints(dut, n, config, seed, load=1.0, chance=chance)
    ends.add_random(packets, lambda rng: rng.choice([1, 2, 4, 12]))
    vc_of = (lambda vc: vc & ~1) if topology.ports[0][1] == "up" else (lambda vc: vc)

    async def drive(ctx):
        await ends.drain(ctx, vc_of)

    run(dut, drive, limit=20_000, seed=seed)


@seeds(1)
def test_all_to_one(seed):
    """Everybody sends to one endpoint of a ring, over the dateline too: it takes a flit a cycle."""
    dut = Network(ring(4), link())
    ends = Endpoints(dut, 4, link(), seed, load=1.0, chance=1.0)
    ends.add_random(20, lambda rng: 4, dests=[0])

    async def drive(ctx):
        await ends.drain(ctx, lambda vc: vc & ~1)
        assert ends.cycle < 4 * 20 * 4 * 1.1

    run(dut, drive, limit=2000, seed=seed)


def test_packets_for_nobody_are_dropped():
    """Destinations that no endpoint has: dropped at the first router, told by ``faults``."""
    config = link()
    dut = Network(mesh(2, 2), config)
    faults = []

    async def drive(ctx):
        for dest in (3, 9, 15, 4):
            ctx.set(dut.i[1].phit, {"data": dest, "dest": dest, "vc": 1, "head": 1, "tail": 1})
            ctx.set(dut.i[1].valid, 1)
            await ctx.tick()
            ctx.set(dut.i[1].valid, 0)
            assert ctx.get(dut.i[1].credit) == 2
            faults.append(ctx.get(dut.faults))
            for cycle in range(4):
                assert ctx.get(dut.o[3].valid) == (dest == 3 and cycle == 1)
                ctx.set(dut.o[3].credit, 2 * ctx.get(dut.o[3].valid))
                await ctx.tick()
        assert ctx.get(dut.idle) == 1

    run(dut, drive, limit=50)
    assert faults == [0, 1, 1, 1]
