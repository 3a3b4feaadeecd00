"""Proofs of ``Network`` in ``cores/router/network.py``: what is joined to what.

Wiring, without bound: in a mesh of 2 by 2 whose routers do anything at all, each wire of each link
goes where coordinates say: flits forth, credits back, nothing left out or crossed, endpoints by
their numbers; ``faults`` and ``idle`` are those of all routers. The routers are asked for the way
to each endpoint by coordinates, and none to others. With ``router.py`` (what a router does) and
``router_routing.py`` (ways end, channels do not wait in a cycle) this makes the network.

A bounded check runs the mesh as it is: a flit from each endpoint, all at once and to anywhere. Each
arrives at its endpoint, within the bound, and nothing else arrives anywhere.

Not proved: other topologies' wiring; a reset while running.
"""

from unittest.mock import patch

from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Cat, Const, Cover, Elaboratable, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from trebuchet.cores.router.contract import LinkSignature

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

#: Port 1 of each router leads along its row, port 2 along its column.
ROW, COLUMN = {0: 1, 1: 0, 2: 3, 3: 2}, {0: 2, 2: 0, 1: 3, 3: 1}


class _Anything(wiring.Component):
    """Has the ports of a router; asks for the same ways."""

    def __init__(self, n, config, route, pass_through):
        link = LinkSignature(config)
        dests = range(1 << config.dest_width)
        self.table = [
            [[route(p, v, d) for d in dests] for v in range(config.vcs)] for p in range(n)
        ]
        flags = {name: Out(n) for name in ("dropped", "malformed", "overflow")}
        links = {"i": In(link).array(n), "o": Out(link).array(n)}
        super().__init__(links | flags | {"idle": Out(1)})
        self.ports = n

    def elaborate(self, platform):
        m = Module()
        for p in range(self.ports):
            free(m, self.i[p].credit, self.o[p].valid, self.o[p].phit)
        free(m, self.dropped, self.malformed, self.overflow, self.idle)
        return m


class WiringProof(Elaboratable):
    def __init__(self, cores, contract, routing):
        config = contract.LinkConfig(vcs=2, flit_width=2, dest_width=3, buffer_flits=3, reserved=1)
        with patch.object(cores, "Router", _Anything):
            self.dut = cores.Network(routing.mesh(2, 2), config)

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        routers = dut.routers
        for n in range(4):
            free(m, dut.i[n].valid, dut.i[n].phit, dut.o[n].credit)
            self._joined(m, dut.i[n], routers[n].i[0])
            self._joined(m, routers[n].o[0], dut.o[n])
            self._joined(m, routers[n].o[1], routers[ROW[n]].i[1])
            self._joined(m, routers[n].o[2], routers[COLUMN[n]].i[2])
        some, idle = 0, 1
        for router in routers:
            some |= router.dropped.any() | router.malformed.any() | router.overflow.any()
            idle &= router.idle
        m.d.comb += [Assert(dut.faults == some), Assert(dut.idle == idle)]
        self._tables(m)
        past = Signal()
        m.d.sync += past.eq(dut.faults)
        m.d.comb += [Cover(past & ~dut.faults & dut.idle), Cover(dut.i[3].credit.all())]
        return m

    @staticmethod
    def _joined(m, source, sink):
        with m.If(source.valid):
            m.d.comb += Assert(Value.cast(source.phit) == Value.cast(sink.phit))
        m.d.comb += [Assert(source.valid == sink.valid), Assert(source.credit == sink.credit)]

    def _tables(self, m):
        """Along the row, then along the column; the VC stays. No way to who is not there."""
        for r, router in enumerate(self.dut.routers):
            for rows in router.table:
                for v, row in enumerate(rows):
                    for d, way in enumerate(row):
                        port = 1 if r % 2 != d % 2 else 2 if r != d else 0
                        right = way == (None if d > 3 else (port, v))
                        m.d.comb += Assert(Signal(init=right, name=f"way{r}_{v}_{d}"))


class DeliveryProof(Elaboratable):
    """Every endpoint sends what the solver likes in the first ``sends`` cycles, whole packets."""

    def __init__(self, cores, contract, routing, sends):
        config = contract.LinkConfig(
            vcs=1, flit_width=4, dest_width=2, buffer_flits=max(2, sends), reserved=sends
        )
        self.dut, self.sends = cores.Network(routing.mesh(2, 2), config), sends
        self.bound = 4 + 4 * sends

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        now, sent, got = (Signal(6, name=name) for name in ("now", "sent", "got"))
        m.d.sync += now.eq(now + (now != 63))
        for n in range(4):
            self._send(m, n, now)
            self._receive(m, n)
        begins, ends = ([link.valid for link in links] for links in (dut.i, dut.o))
        m.d.sync += [sent.eq(sent + sum(begins)), got.eq(got + sum(ends))]
        m.d.comb += [
            Assert(got <= sent),
            Assert((now < self.bound) | (got == sent)),
            Assert(~dut.faults),
            Cover((sent == 4 * self.sends) & (got == sent) & dut.idle),
        ]
        return m

    def _send(self, m, n, now):
        link = self.dut.i[n]
        dest, kept, opened = Signal(2, name=f"dest{n}"), Signal(2), Signal(name=f"open{n}")
        wants, ends = Signal(name=f"wants{n}"), Signal(name=f"ends{n}")
        m.d.comb += [wants.eq(AnySeq(1)), ends.eq(AnySeq(1)), dest.eq(kept)]
        with m.If(~opened):
            m.d.comb += dest.eq(AnySeq(2))
        with m.If(link.valid):
            m.d.sync += [kept.eq(dest), opened.eq(~link.phit.tail)]
        final = now == self.sends - 1
        m.d.comb += [
            link.valid.eq((now < self.sends) & (wants | (opened & final))),
            link.phit.dest.eq(dest),
            link.phit.head.eq(~opened),
            link.phit.tail.eq(ends | final),
            link.phit.data.eq(Cat(dest, Const(n, 2))),
        ]

    def _receive(self, m, n):
        """What comes is for this endpoint, its packets whole; it is taken at once."""
        link, phit = self.dut.o[n], self.dut.o[n].phit
        opened, source = Signal(name=f"got_open{n}"), Signal(2, name=f"source{n}")
        m.d.sync += link.credit.eq(link.valid)
        with m.If(link.valid):
            m.d.comb += [
                Assert(phit.data[:2] == n),
                Assert(phit.dest == n),
                Assert(phit.head == ~opened),
                Assert(phit.head | (phit.data[2:] == source)),
            ]
            m.d.sync += [opened.eq(~phit.tail), source.eq(phit.data[2:])]


def _modules():
    names = ("contract", "routing")
    return [__import__(f"trebuchet.cores.router.{name}", fromlist=[name]) for name in names]


PROOFS = (
    Proof(
        name="router_mesh_wiring",
        core="cores.router.network.Network(mesh(2, 2))",
        says="each link joins the routers that it should; tables lead along rows, then columns",
        module="trebuchet.cores.router.network",
        build=lambda cores: WiringProof(cores, *_modules()),
        depth=2,
        cover_depth=4,
        mutants=(
            Mutant("leaves_out_faults", "(r.dropped, r.malformed, r.overflow)", "(r.dropped,)"),
            Mutant(
                "idle_but_for_one",
                "for router in self.routers[1:]:",
                "for router in self.routers[2:]:",
            ),
            Mutant("another_way", "router, port, vc, dest", "router, port, vc, dest ^ 1"),
            Mutant(
                "back_to_itself",
                "self.routers[b].i[into]",
                "self.routers[a].i[out]",
                context="for (a, out), (b, into) in self.topology.links.items():",
            ),
        ),
        assumes="nothing",
        not_proved="other topologies",
    ),
    Proof(
        name="router_mesh_delivers",
        core="cores.router.network.Network(mesh(2, 2), 1 VC, 2 flits)",
        says="all packets arrive at their endpoints, and at no other, within 8 cycles",
        module="trebuchet.cores.router.network",
        build=lambda cores: DeliveryProof(cores, *_modules(), 1),
        method="bmc",
        depth=9,
        cover_depth=9,
        mutants=(
            Mutant(
                "back_to_itself",
                "self.routers[b].i[into]",
                "self.routers[a].i[out]",
                context="for (a, out), (b, into) in self.topology.links.items():",
            ),
            Mutant(
                "another_way",
                "self.topology.route(router, port, vc, dest)",
                "self.topology.route(router, port, vc, dest ^ 1)",
            ),
        ),
        assumes="a flit from each endpoint, at once; endpoints take what comes at once",
        not_proved="more flits than one from each endpoint, other topologies, endpoints that wait",
        bounded="to be delivered within a bound speaks of whole runs of four routers, with buffers "
        "that begin empty; what holds for ever is proved of router, wiring and ways apart",
    ),
)
