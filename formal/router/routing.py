"""Proofs of ``cores/router/routing.py``: where packets go, and what is refused.

The routing function of a topology is a table of constants, the packet is the solver's: which
endpoint sends it, on which VC, to whom. It is followed from router to router along the topology's
links. It arrives at its endpoint, by a shortest way, at each router by the port and VC that the
data sheet says, told here from coordinates, not from names. Each channel on its way has a higher
rank than the one before, by a ranking of all channels: so channels do not depend on one another in
a cycle, and no packet waits for ever (Dally and Seitz, 1987). At every router, whatever the port
and VC, there is no way to a destination that does not exist.

:func:`check` returns exactly the dependencies that those ways make, told independently; it refuses
each of a list of networks that are wrong in one way. ``_cycle`` finds a cycle in a graph of three
nodes if and only if there is one: all such graphs, against the transitive closure.

Not proved: other sizes than those named.
"""

from itertools import product

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Elaboratable, Signal

from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS", "MeshSpec"]


class MeshSpec:
    """A mesh by coordinates: along the row first. Ports: 0 is the endpoint's."""

    def __init__(self, columns, rows):
        self.columns, self.n = columns, columns * rows

    def next(self, router, vc, dest, came):
        """The next router (``dest`` itself: none, it is here) and the VC of the way to it."""
        x, y, to_x, to_y = (
            k for n in (router, dest) for k in (n % self.columns, n // self.columns)
        )
        if x != to_x:
            return router + (1 if to_x > x else -1), vc
        if y != to_y:
            return router + (self.columns if to_y > y else -self.columns), vc
        return router, vc

    def hops(self, source, dest):
        x, y = (
            abs(source % self.columns - dest % self.columns),
            abs(source // self.columns - dest // self.columns),
        )
        return x + y

    def rank(self, router, after, vc):
        """Of the channel from a router to its neighbour: rows before columns."""
        x = router % self.columns
        if abs(after - router) == 1 and after // self.columns == router // self.columns:
            return x if after > router else self.columns - x
        y = router // self.columns
        return 16 + (y if after > router else 16 - y)


class RingSpec:
    """A ring: the shorter way, up if both are; odd VCs from the dateline on."""

    def __init__(self, n):
        self.n = n

    def next(self, router, vc, dest, came):
        """``came``: the router before, or the same for the endpoint."""
        even = vc - vc % 2
        if router == dest:
            return router, even
        if came == router:
            up, vc = (dest - router) % self.n * 2 <= self.n, even
        else:
            up = came == (router - 1) % self.n
        after = (router + 1 if up else router - 1) % self.n
        crosses = {router, after} == {0, self.n - 1}
        return after, even + 1 if crosses else vc

    def hops(self, source, dest):
        return min((dest - source) % self.n, (source - dest) % self.n)

    def rank(self, router, after, vc):
        up = after == (router + 1) % self.n
        done = router if up else self.n - 1 - router  # 0: just behind the dateline
        return done if vc % 2 == 0 else self.n + (done + 1) % self.n


def _states(spec, vcs):
    """All ``(router, router before, vc, dest)`` that a packet can meet, told by ``spec``."""
    for source in range(spec.n):
        for entry in range(vcs):
            for dest in range(spec.n):
                router, came, vc = source, source, entry
                for _ in range(2 * spec.n):
                    yield router, came, vc, dest
                    after, out = spec.next(router, vc, dest, came)
                    if after == router:
                        break
                    router, came, vc = after, router, out


def _dependencies(spec, vcs):
    """Channels as ``(router, next router, vc)``, and those that one may wait for."""
    graph = {}
    for router, came, vc, dest in _states(spec, vcs):
        after, out = spec.next(router, vc, dest, came)
        if after != router:
            graph.setdefault((router, after, out), set())
            if came != router:
                graph[came, router, vc].add((router, after, out))
    return graph


def _checked(routing, topology, vcs):
    """What ``check`` returns, with channels as in :func:`_dependencies`; None if it refuses."""
    try:
        graph = routing.check(topology, vcs)
    except Exception:
        return None

    def channel(c):
        return (c[0], topology.links[c[:2]][0], c[2])

    return {channel(a): {channel(b) for b in after} for a, after in graph.items()}


def _look_up(m, keys, rows, widths):
    """Signals with the row of a table that ``keys`` (3 bits each) name; 0 where there is none."""
    values = [Signal(width) for width in widths]
    with m.Switch(Cat(reversed(keys))):
        for key, row in rows.items():
            with m.Case("".join(f"{k:03b}" for k in key)):
                m.d.comb += [value.eq(k) for value, k in zip(values, row, strict=True)]
    return values


class WayProof(Elaboratable):
    """Follows a packet of the solver's choice through a topology."""

    def __init__(self, routing, topology, spec, vcs):
        self.topology, self.spec, self.vcs = topology, spec, vcs
        self.checks = _checked(routing, topology, vcs) == _dependencies(spec, vcs)

    def _ask(self, *place):
        """The function under proof; a way that does not exist if it fails."""
        try:
            return self.topology.route(*place)
        except Exception:
            return 7, 7

    def _table(self, m, router, port, vc, dest):
        """``(there is a way, its port, its VC)``: the function under proof."""
        rows = {}
        for r, names in enumerate(self.topology.ports):
            for p, v, d in product(range(len(names)), range(self.vcs), range(8)):
                if (way := self._ask(r, p, v, d)) is not None:
                    rows[r, p, v, d] = (1, way[0] & 7, way[1] & 7)
        return _look_up(m, (router, port, vc, dest), rows, (1, 3, 3))

    def elaborate(self, platform):
        m = new_harness()
        spec, topology, vcs = self.spec, self.topology, self.vcs
        m.d.comb += Assert(Const(self.checks, 1))
        source, entry, dest = Signal(3), Signal(3), Signal(3)
        m.d.comb += [source.eq(AnyConst(3)), entry.eq(AnyConst(3)), dest.eq(AnyConst(3))]
        m.d.comb += [Assume(source < spec.n), Assume(entry < vcs), Assume(dest < spec.n)]
        router, port, vc, came, hops = (Signal(k) for k in (3, 3, 3, 3, 4))
        begun, arrived, rank = Signal(), Signal(), Signal(7)
        with m.If(~begun):
            m.d.sync += [begun.eq(1), router.eq(source), came.eq(source), vc.eq(entry)]
            start = Array(p for _, p in topology.endpoints)[source]
            m.d.sync += port.eq(start)
        some, out, out_vc = self._table(m, router, port, vc, dest)
        rows = {}
        for r, c, v, d in _states(spec, vcs):
            then, w = spec.next(r, v, d, c)
            mine = 0 if then == r else 1 + spec.rank(r, then, w)
            rows[r, c, v, d] = (1, then, w, spec.hops(r, d), mine)
        widths = (1, 3, 3, 4, 7)
        known, after, after_vc, left, mine = _look_up(m, (router, came, vc, dest), rows, widths)
        pairs = product(range(spec.n), repeat=2)
        rows = {(s, d): (spec.hops(s, d),) for s, d in pairs}
        (best,) = _look_up(m, (source, dest), rows, (4,))
        with m.If(begun & ~arrived):
            m.d.comb += [
                Assert(known),
                Assert(some),
                Assert(out_vc == after_vc),
                Assert(hops + left == best),
                Assert((rank < mine) | (after == router)),
            ]
            numbered = enumerate(topology.endpoints)
            with m.If(after == router):  # leaves the network: at its endpoint
                ends = [(dest == n) & (router == r) & (out == p) for n, (r, p) in numbered]
                m.d.comb += [Assert(Cat(ends).any()), Assert(router == dest), Assert(hops == best)]
                m.d.sync += arrived.eq(1)
            with m.Else():
                joined = Signal()
                for (r, o), (into, p) in topology.links.items():
                    with m.If((router == r) & (out == o)):
                        m.d.comb += [joined.eq(1), Assert(after == into)]
                        m.d.sync += port.eq(p)
                m.d.comb += Assert(joined)
                m.d.sync += [router.eq(after), came.eq(router), vc.eq(out_vc), hops.eq(hops + 1)]
                m.d.sync += rank.eq(mine)
        longest = max(spec.hops(s, d) for s in range(spec.n) for d in range(spec.n))
        m.d.comb += [Cover(arrived & (hops == longest)), Cover(arrived & (hops == 0))]
        self._invariants(m, begun, arrived, router, port, came)
        self._nowhere(m)
        return m

    def _invariants(self, m, begun, arrived, router, port, came):
        """The port is the one by which a packet comes from the router before."""
        ways = [(router == r) & (came == r) & (port == p) for r, p in self.topology.endpoints]
        for (r, _), (into, p) in self.topology.links.items():
            ways.append((router == into) & (came == r) & (port == p))
        with m.If(begun & ~arrived):
            m.d.comb += Assert(Cat(ways).any())

    def _nowhere(self, m):
        """There is no way to what does not exist, from anywhere."""
        place = [Signal(3, name=f"any_{name}") for name in ("router", "port", "vc", "dest")]
        m.d.comb += [signal.eq(AnySeq(3)) for signal in place]
        some, _, _ = self._table(m, *place)
        m.d.comb += Assert(~some | (place[3] < self.spec.n))


def _broken(routing):
    """Networks that are wrong in one way, and the error that each must raise."""
    line = {(0, 1): (1, 1), (1, 1): (0, 1)}
    names, ends = [["local", "next"]] * 2, [(0, 0), (1, 0)]

    def made(route, links=line, vcs=2, topology=names, endpoints=ends):
        return routing.Topology(topology, links, endpoints, route), vcs

    def right(router, port, vc, dest):
        return (0 if router == dest else 1, vc)

    def odd(way):
        """``right`` but for packets from 0 to 1."""
        return lambda router, port, vc, dest: (
            way if (router, port, dest) == (0, 0, 1) else right(router, port, vc, dest)
        )

    loose = [["local", "next", "none"], ["local", "next"]]
    yield "right", made(right), None
    for name, way in (("nowhere", None), ("vc", (1, 2)), ("port", (2, 0)), ("back", (0, 0))):
        yield name, made(odd(way)), routing.RoutingError
    yield "below", made(odd((1, -1))), routing.RoutingError
    yield "behind", made(odd((-1, 0))), routing.RoutingError
    yield "loose_end", made(odd((2, 0)), topology=loose), routing.RoutingError
    yield "for_ever", made(lambda *_: (1, 0)), routing.RoutingError
    yield "ring", (routing.ring(4, dateline=False), 1), routing.DeadlockError
    yield "ring_5", (routing.ring(5, dateline=False), 2), routing.DeadlockError
    yield "ring_of_one_vc", (routing.ring(4), 1), routing.RoutingError
    yield "ring_of_3", (routing.ring(3, dateline=False), 1), None


def _refuses(routing, make, error):
    try:
        make()
    except error:
        return True
    except Exception:
        return False
    return error is None


def _verdicts(routing):
    """Whether each wrong thing is refused as it should be."""
    both, kept = routing.RoutingError, routing.DeadlockError
    yield "errors", issubclass(kept, both)
    for name, (topology, vcs), error in _broken(routing):
        exact = True
        try:
            routing.check(topology, vcs)
            exact = error is None
        except both as e:
            exact = type(e) is error
        yield name, exact

    def topology(links, ends):
        return lambda: routing.Topology([["a", "b"]] * 2, links, ends, None)

    one = {(0, 1): (1, 1)}
    for name, make, error in (
        ("joined", topology(one, [(0, 0), (1, 0)]), ()),
        ("two_into_one", topology(one | {(1, 1): (1, 1)}, [(0, 0)]), ValueError),
        ("endpoint_on_a_link", topology(one, [(0, 1)]), ValueError),
        ("endpoint_into_a_link", topology(one, [(1, 1)]), ValueError),
        ("no_such_port", topology({(0, 2): (1, 1)}, []), ValueError),
        ("no_such_input", topology({(0, 1): (2, 1)}, []), ValueError),
        ("no_ring", lambda: routing.ring(2), ValueError),
        ("no_mesh", lambda: routing.mesh(1, 1), ValueError),
        ("no_columns", lambda: routing.mesh(0, 3), ValueError),
        ("no_rows", lambda: routing.mesh(3, 0), ValueError),
    ):
        yield name, _refuses(routing, make, error or None) if error else _works(make)
    cross = routing.crossbar(3)
    for dest in range(6):
        for vc in range(2):
            want = (dest, vc) if dest < 3 else None
            yield f"crossbar_{dest}_{vc}", all(cross(p, vc, dest) == want for p in range(3))


def _works(make):
    try:
        make()
    except Exception:
        return False
    return True


class RefusalProof(Elaboratable):
    """The list of what must be refused; and all graphs of three nodes."""

    def __init__(self, routing):
        self.verdicts = dict(_verdicts(routing))
        self.cyclic = sum(self._cyclic(routing, g) << g for g in range(512))

    @staticmethod
    def _cyclic(routing, edges):
        """Whether ``_cycle`` finds one that is there in the graph of these ``edges``."""
        after = {a: {b for b in range(3) if edges >> (3 * a + b) & 1} for a in range(3)}
        cycle = routing._cycle(after)
        if cycle is None:
            return 0
        pairs = zip(cycle, [*cycle[1:], cycle[0]], strict=True)
        return int(bool(cycle) and all(b in after[a] for a, b in pairs))

    def elaborate(self, platform):
        m = new_harness()
        chosen, edges = Signal(8), Signal(9)
        m.d.comb += [chosen.eq(AnySeq(8)), edges.eq(AnySeq(9))]
        for k, right in enumerate(self.verdicts.values()):
            with m.If(chosen == k):
                m.d.comb += Assert(Const(bool(right), 1))
        reach = [[edges[3 * a + b] for b in range(3)] for a in range(3)]
        for k in range(3):
            reach = [
                [reach[a][b] | (reach[a][k] & reach[k][b]) for b in range(3)] for a in range(3)
            ]
        loop = reach[0][0] | reach[1][1] | reach[2][2]
        found = Signal()
        m.d.comb += [found.eq(Const(self.cyclic, 512).bit_select(edges, 1)), Assert(found == loop)]
        past = Signal()
        m.d.sync += past.eq(found)
        m.d.comb += [Cover(past & ~found), Cover(chosen == len(self.verdicts) - 1)]
        return m


def _way(name, says, make, spec, vcs, mutants):
    return Proof(
        name=f"router_way_{name}",
        core=f"cores.router.routing.{says}",
        says="each packet arrives, by the shortest way, as documented; channels never in a cycle",
        module="trebuchet.cores.router.routing",
        build=lambda cores: WayProof(cores, make(cores), spec, vcs),
        depth=2,
        cover_depth=8,
        mutants=mutants,
        assumes="endpoints, VCs and destinations that exist, but for what is said of others",
        not_proved="other sizes",
    )


MESH_MUTANTS = (
    Mutant(
        "columns_first",
        "if x != to_x:",
        "if x != to_x and y == to_y:",
        context="(x, y), (to_x, to_y) = at[router], at[dest]",
    ),
    Mutant(
        "east_for_west", '"east" if to_x > x else "west"', '"east" if to_x >= x - 1 else "west"'
    ),
    Mutant(
        "north_for_south", '"north" if to_y > y else "south"', '"north" if to_y < y else "south"'
    ),
)
PROOFS = (
    _way("mesh", "mesh(3, 2)", lambda r: r.mesh(3, 2), MeshSpec(3, 2), 2, MESH_MUTANTS),
    _way(
        "ring",
        "ring(5)",
        lambda r: r.ring(5),
        RingSpec(5),
        2,
        (
            Mutant(
                "the_longer_way",
                "(dest - router) % n <= n // 2",
                "(dest - router) % n <= n // 2 + 1",
            ),
            Mutant("turns_back", "goes_up = True  #", "goes_up = False  #"),
            Mutant(
                "no_dateline",
                "entered | 1 if dateline and crosses else entered",
                "entered if dateline and crosses else entered",
            ),
            Mutant("dateline_elsewhere", "n - 1 if goes_up else 0", "n - 2 if goes_up else 0"),
            Mutant("arrives_odd", "(local, vc & ~1 if dateline else vc)", "(local, vc)"),
        ),
    ),
    _way(
        "even_ring",
        "ring(4), 4 VCs",
        lambda r: r.ring(4),
        RingSpec(4),
        4,
        (
            Mutant("then_down", "(dest - router) % n <= n // 2", "(dest - router) % n < n // 2"),
            Mutant(
                "mixes_pairs",
                "entered = vc & ~1 if dateline and port == local else vc",
                "entered = 0 if dateline and port == local else vc",
            ),
            Mutant("knows_one_more", "if dest >= n:", "if dest > n:"),
        ),
    ),
    Proof(
        name="router_refuses",
        core="cores.router.routing.check, Topology, crossbar",
        says="wrong networks are refused; a cycle is found if and only if there is one",
        module="trebuchet.cores.router.routing",
        build=RefusalProof,
        depth=2,
        cover_depth=4,
        mutants=(
            Mutant("any_vc", "0 <= out_vc < vcs", "0 <= out_vc"),
            Mutant("one_branch", "iter(sorted(graph[node]))", "iter(sorted(graph[node])[:1])"),
            Mutant(
                "any_endpoint",
                "if out != topology.endpoints[dest]:",
                "if out not in topology.endpoints:",
            ),
            Mutant("no_cycle", "if cycle:", "if len(cycle or ()) > 9:", within="check"),
            Mutant(
                "shares_inputs",
                "len(set(found)) != len(found) or set(found) - wanted",
                "set(found) - wanted",
            ),
        ),
        assumes="nothing",
        not_proved="networks that are wrong in other ways than those of the list",
    ),
)
