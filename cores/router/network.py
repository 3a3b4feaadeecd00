"""A network of elastic routers."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .contract import LinkConfig, LinkSignature
from .router import Router
from .routing import check

__all__ = ["Network"]


class Network(wiring.Component):
    """Routers joined as a :class:`~trebuchet.cores.router.routing.Topology` says.

    ===========  ==========  ====================================================================
    ``i``        In, array   links from the endpoints, by their numbers
    ``o``        Out, array  links to the endpoints
    ``faults``   Out         for a cycle: some router dropped a packet, met a malformed one, or
                             lost a flit that had no credit
    ``idle``     Out         all routers are
    ===========  ==========  ====================================================================

    Parameters: ``topology``; ``config``, a :class:`~trebuchet.cores.router.contract.LinkConfig`
    whose ``dest_width`` holds all endpoints; ``pass_through`` as of
    :class:`~trebuchet.cores.router.router.Router`. The constructor refuses, with
    :class:`~trebuchet.cores.router.routing.RoutingError`, a network whose packets do not all
    arrive, or whose channels depend on one another in a cycle. Latency 1 cycle a router (2 without
    ``pass_through``). Between two endpoints packets of one VC stay in order. Reset: empty.
    """

    def __init__(self, topology, config=None, pass_through=True):
        self.topology = topology
        self.config = config if config is not None else LinkConfig()
        n = len(topology.endpoints)
        if n > 1 << self.config.dest_width:
            raise ValueError(
                f"Width of a destination must hold {n} endpoints, not {1 << self.config.dest_width}"
            )
        check(topology, self.config.vcs)
        self.routers = [
            Router(len(names), self.config, self._route(k), pass_through)
            for k, names in enumerate(topology.ports)
        ]
        link = LinkSignature(self.config)
        super().__init__(
            {
                "i": In(link).array(n),
                "o": Out(link).array(n),
                "faults": Out(1),
                "idle": Out(1),
            }
        )

    def _route(self, router):
        """The routing function of one router; None for what cannot be there."""
        ends, n = (
            {*self.topology.links.values(), *self.topology.endpoints},
            len(self.topology.endpoints),
        )

        def route(port, vc, dest):
            if dest >= n or (router, port) not in ends:
                return None
            return self.topology.route(router, port, vc, dest)

        return route

    def elaborate(self, platform):
        m = Module()
        faults, idle = Signal(), Signal(init=1)
        m.d.comb += [self.faults.eq(faults), self.idle.eq(idle)]
        for k, router in enumerate(self.routers):
            m.submodules[f"router{k}"] = router
        bad = [port for r in self.routers for port in (r.dropped, r.malformed, r.overflow)]
        m.d.comb += faults.eq(sum((b.any() for b in bad[1:]), bad[0].any()) != 0)
        all_idle = self.routers[0].idle
        for router in self.routers[1:]:
            all_idle = all_idle & router.idle
        m.d.comb += idle.eq(all_idle)
        for (a, out), (b, into) in self.topology.links.items():
            wiring.connect(m, self.routers[a].o[out], self.routers[b].i[into])
        for n, (router, port) in enumerate(self.topology.endpoints):
            wiring.connect(m, wiring.flipped(self.i[n]), self.routers[router].i[port])
            wiring.connect(m, self.routers[router].o[port], wiring.flipped(self.o[n]))
        return m
