"""Networks of routers: who is joined to whom, which way packets go, and that they cannot deadlock.

A *channel* is a virtual channel of a link between two routers. A packet that holds one channel and
waits for the next makes the second depend on the first; if the graph of these dependencies has no
cycle, no packet waits for ever (Dally and Seitz, 1987), given endpoints that take what arrives.
Buffers shared among VCs do not change that: the reserved places of a channel are never lent.

:func:`check` follows every packet that may exist, from each endpoint on each VC to each endpoint.
"""

from dataclasses import dataclass

from ...models.errors import TrebuchetError

__all__ = ["DeadlockError", "RoutingError", "Topology", "check", "crossbar", "mesh", "ring"]


class RoutingError(TrebuchetError):
    """Packets do not get where they should."""


class DeadlockError(RoutingError):
    """Channels depend on one another in a cycle."""


def crossbar(ports):
    """``route`` of a single router: the destination is the port."""
    return lambda port, vc, dest: (dest, vc) if dest < ports else None


@dataclass(frozen=True)
class Topology:
    """Routers, their links, and the routing function.

    Attributes
    ----------
    ports : list of list of str
        Names of the ports of each router.
    links : dict
        ``{(router, port): (router, port)}``: from an output to an input, one way.
    endpoints : list of tuple
        ``(router, port)`` of each endpoint, by its number.
    route : callable
        ``route(router, port, vc, dest)``: ``(output port, output VC)`` or None.
    """

    ports: list
    links: dict
    endpoints: list
    route: object

    def __post_init__(self):
        ends = [*self.links.values(), *self.endpoints]
        starts = [*self.links, *self.endpoints]
        wanted = {(n, p) for n, names in enumerate(self.ports) for p in range(len(names))}
        for what, found in (("inputs", ends), ("outputs", starts)):
            if len(set(found)) != len(found) or set(found) - wanted:
                raise ValueError(f"Each link and endpoint must have {what} of its own: {found!r}")

    def name(self, channel):
        """A channel for people: ``router 2 east VC 1``."""
        router, port, vc = channel
        return f"router {router} {self.ports[router][port]} VC {vc}"


def check(topology, vcs):
    """Raise unless every packet arrives where it should and channels depend on none in a cycle.

    Parameters
    ----------
    topology : Topology
    vcs : int
        Virtual channels; endpoints may send on each.

    Returns
    -------
    dict
        The channel dependency graph, ``{channel: set of channels}``.
    """
    graph: dict = {}
    for source, start in enumerate(topology.endpoints):
        for vc in range(vcs):
            for dest in range(len(topology.endpoints)):
                _follow(topology, graph, source, (*start, vc), dest, vcs)
    cycle = _cycle(graph)
    if cycle:
        names = " -> ".join(topology.name(channel) for channel in [*cycle, cycle[0]])
        raise DeadlockError(f"Channels must not depend on one another in a cycle: {names}")
    return graph


def _follow(topology, graph, source, place, dest, vcs):
    """Add the channels of one packet's way to the graph."""
    entry, before, seen = place[2], None, set()
    packet = f"A packet from endpoint {source} on VC {entry} to endpoint {dest}"
    while True:
        router, port, vc = place
        way = topology.route(router, port, vc, dest)
        if way is None:
            raise RoutingError(f"{packet} must not be dropped at router {router}")
        out_port, out_vc = way
        if not (0 <= out_vc < vcs and 0 <= out_port < len(topology.ports[router])):
            raise RoutingError(f"{packet} must not leave router {router} by {way!r}")
        out = (router, out_port)
        if out not in topology.links:
            if out != topology.endpoints[dest]:
                raise RoutingError(f"{packet} must not leave by {topology.name((*out, out_vc))}")
            return
        channel = (*out, out_vc)
        if channel in seen:
            raise RoutingError(f"{packet} must not pass {topology.name(channel)} twice")
        seen.add(channel)
        graph.setdefault(channel, set())
        if before is not None:
            graph[before].add(channel)
        before, place = channel, (*topology.links[out], out_vc)


def _cycle(graph):
    """A cycle of a graph as a list, or None. Depth first, without recursion."""
    done: set = set()
    for start in graph:
        path, on_path, branches = [], set(), [iter([start])]
        while branches:
            node = next(branches[-1], None)
            if node is None:
                branches.pop()
                if path:
                    last = path.pop()
                    on_path.discard(last)
                    done.add(last)
            elif node in on_path:
                return path[path.index(node) :]
            elif node not in done:
                path.append(node)
                on_path.add(node)
                branches.append(iter(sorted(graph[node])))
    return None


def ring(n, dateline=True):
    """``n`` routers in a ring, both ways round, with an endpoint at each: the shorter way, then up.

    VCs are used in pairs: a packet that enters on 2k or 2k + 1 travels on 2k, changes to 2k + 1
    when it passes the *dateline* between the last and the first router, and arrives on 2k. Without
    a dateline packets keep their VC, which :func:`check` refuses from 4 routers on.
    """
    if not isinstance(n, int) or n < 3:
        raise ValueError(f"Number of routers in a ring must be an integer >= 3, not {n!r}")
    local, up, down = range(3)
    links = {(k, up): ((k + 1) % n, down) for k in range(n)}
    links |= {(k, down): ((k - 1) % n, up) for k in range(n)}

    def route(router, port, vc, dest):
        if dest >= n:
            return None
        entered = vc & ~1 if dateline and port == local else vc
        if dest == router:
            return (local, vc & ~1 if dateline else vc)
        goes_up = (dest - router) % n <= n // 2
        if port == down:
            goes_up = True  # goes on as it came
        elif port == up:
            goes_up = False
        crosses = router == (n - 1 if goes_up else 0)
        return (up if goes_up else down, entered | 1 if dateline and crosses else entered)

    return Topology([["local", "up", "down"]] * n, links, [(k, local) for k in range(n)], route)


def mesh(columns, rows):
    """``columns`` by ``rows`` routers with an endpoint at each; first along the row.

    Endpoint ``x + columns * y`` is at column x, row y. Packets go along the row, then along the
    column (dimension-order routing), and keep their VC. Routers have the
    ports that they need: those at the border have no neighbour outside.
    """
    for what, value in (("columns", columns), ("rows", rows)):
        if not isinstance(value, int) or value < 1:
            raise ValueError(f"Number of {what} must be an integer >= 1, not {value!r}")
    if columns * rows < 2:
        raise ValueError(f"A mesh must have at least 2 routers, not {columns} x {rows}")
    steps = {"east": (1, 0), "west": (-1, 0), "north": (0, 1), "south": (0, -1)}
    opposite = {"east": "west", "west": "east", "north": "south", "south": "north"}
    at = {k: (k % columns, k // columns) for k in range(columns * rows)}
    number = {xy: k for k, xy in at.items()}
    around = {
        k: {
            d: number[x + dx, y + dy] for d, (dx, dy) in steps.items() if (x + dx, y + dy) in number
        }
        for k, (x, y) in at.items()
    }
    ports = [["local", *around[k]] for k in at]
    links = {
        (k, ports[k].index(d)): (other, ports[other].index(opposite[d]))
        for k in at
        for d, other in around[k].items()
    }

    def route(router, port, vc, dest):
        if dest not in at:
            return None
        (x, y), (to_x, to_y) = at[router], at[dest]
        if x != to_x:
            direction = "east" if to_x > x else "west"
        elif y != to_y:
            direction = "north" if to_y > y else "south"
        else:
            direction = "local"
        return (ports[router].index(direction), vc)

    return Topology(ports, links, [(k, 0) for k in at], route)
