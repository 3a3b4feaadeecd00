"""Bounded check of ``Router`` in ``cores/router/router.py``, 2 ports and 2 VCs, over public ports.

The solver chooses one flow, an input, VC and output. Flits of the flow carry a mark and their
number; nobody else's carry the mark. A marked flit then leaves at that output only, on that VC, and
bears the next number: none is lost, doubled, changed, reordered or misled. As router and properties
do not look at the data, this holds for any data. On each VC of an output a head comes when no
packet is open and only then; no flit is sent without credit, by the naive count of the contract;
when the router says that it is idle, each sender has all its credits back, except those that it
sees in this cycle. Packets for nowhere and all lengths are among the traffic.

The parts are proved without bound in ``router_buffer.py`` and ``router_arbiter.py``.

Not proved: more than the cycles named; other sizes; what happens when a sender breaks the rules
(compared with the model in ``tests/test_router.py``); a reset while running.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.router.contract import LinkConfig

from .proof import Mutant, Proof
from .stream import new_harness

__all__ = ["PROOFS"]

NUMBER = 2  # bits of a flit's number


class _Count:
    """Rule 3 from outside: flits of each VC whose credit has not come back."""

    def __init__(self, m, config, name, sent, vc, credit):
        self.held = [Signal(4, name=f"{name}_held{v}") for v in range(config.vcs)]
        lent = sum(Mux(h > config.reserved, h - config.reserved, 0) for h in self.held)
        may = Array((h < config.reserved) | (lent < config.shared) for h in self.held)
        self.may = may[vc]
        self.none = sum(self.held) == 0
        for v, held in enumerate(self.held):
            m.d.sync += held.eq(held + (sent & (vc == v)) - credit[v])


class RouterProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        config, ports = dut.config, range(dut.ports)
        port, vc, dest = (Signal(1, name=f"flow_{name}") for name in ("port", "vc", "dest"))
        m.d.comb += [signal.eq(AnyConst(1)) for signal in (port, vc, dest)]
        self.sent, self.got = Signal(NUMBER), Signal(NUMBER)
        counts = [self._input(m, p, port == p, vc, dest) for p in ports]
        opened = [self._output(m, o, dest == o, vc) for o in ports]
        quiet = ~Cat(dut.i[p].valid for p in ports).any()
        for p in ports:
            for v in range(config.vcs):
                m.d.comb += Assert(~(dut.idle & quiet) | (counts[p].held[v] == dut.i[p].credit[v]))
        seen_all, seen_drop = Signal(), Signal()
        with m.If(Cat(dut.o[o].valid for o in ports).all()):
            m.d.sync += seen_all.eq(1)
        with m.If(dut.dropped.any()):
            m.d.sync += seen_drop.eq(1)
        m.d.comb += [
            Cover(seen_all & dut.idle & (self.got == 3)),
            Cover(seen_drop & dut.idle & counts[0].none & counts[1].none),
            Cover(opened[0].all()),  # packets interleave on the two VCs of an output
            Cover(sum(counts[0].held) == config.buffer_flits),
            Assert(~dut.malformed.any()),
            Assert(~dut.overflow.any()),
        ]
        return m

    def _input(self, m, p, mine, flow_vc, flow_dest):
        """A sender that keeps the rules."""
        dut, link = self.dut, self.dut.i[p]
        flit, layout = link.phit, link.phit.shape()
        raw = Signal(layout.size, name=f"raw{p}")
        m.d.comb += [link.valid.eq(AnySeq(1)), raw.eq(AnySeq(layout.size)), flit.eq(raw)]
        count = _Count(m, dut.config, f"in{p}", link.valid, flit.vc, link.credit)
        opened = Signal(dut.config.vcs, name=f"in{p}_open")
        dests = Array(Signal(2, name=f"in{p}_dest{v}") for v in range(dut.config.vcs))
        now = Mux(flit.head, flit.dest, dests[flit.vc])
        marked = mine & (flit.vc == flow_vc) & (now == flow_dest)
        with m.If(link.valid):
            m.d.comb += [
                Assume(count.may),
                Assume(flit.head != opened.bit_select(flit.vc, 1)),
                Assume(flit.data[NUMBER] == marked),
                Assume(~marked | (flit.data[:NUMBER] == self.sent)),
            ]
            m.d.sync += [
                opened.bit_select(flit.vc, 1).eq(~flit.tail),
                dests[flit.vc].eq(now),
            ]
            with m.If(marked):
                m.d.sync += self.sent.eq(self.sent + 1)
        return count

    def _output(self, m, o, mine, flow_vc):
        """A receiver that checks; gives credits back as it likes."""
        dut, link = self.dut, self.dut.o[o]
        flit = link.phit
        credit = Signal(dut.config.vcs, name=f"credit{o}")
        m.d.comb += [credit.eq(AnySeq(dut.config.vcs)), link.credit.eq(credit)]
        count = _Count(m, dut.config, f"out{o}", link.valid, flit.vc, credit)
        opened = Signal(dut.config.vcs, name=f"out{o}_open")
        for v, held in enumerate(count.held):
            m.d.comb += Assume(~credit[v] | (held != 0))
        with m.If(link.valid):
            m.d.comb += [
                Assert(count.may),
                Assert(flit.head != opened.bit_select(flit.vc, 1)),
                Assert(~flit.head | (flit.dest == o)),
            ]
            m.d.sync += opened.bit_select(flit.vc, 1).eq(~flit.tail)
            with m.If(flit.data[NUMBER]):
                m.d.comb += [
                    Assert(mine & (flit.vc == flow_vc)),
                    Assert(flit.data[:NUMBER] == self.got),
                ]
                m.d.sync += self.got.eq(self.got + 1)
        return opened


CONFIG = LinkConfig(vcs=2, flit_width=NUMBER + 1, dest_width=2, buffer_flits=3, reserved=1)

PROOFS = (
    Proof(
        name="router_2x2",
        core="cores.router.router.Router(2 ports, 2 VCs, 3 flits, 1 reserved)",
        says="flows keep content and order; no wrong port, no interleaving, no flit without credit",
        module="trebuchet.cores.router.router",
        build=lambda cores: RouterProof(cores.Router(2, CONFIG)),
        method="bmc",
        depth=6,
        cover_depth=9,
        mutants=(
            Mutant("interleaves", "self.owns[p][v] | ~_bit(self.owned[o], out_vc)", "1"),
            Mutant("needs_no_credit", "tag.to[o] & credit & turn", "tag.to[o] & turn"),
            Mutant("forgets_the_way", "tag.to.eq(way.to), tag.vc", "tag.to.eq(1), tag.vc"),
            Mutant(
                "credits_the_wrong_vc", "credit.eq(buffer.take)", "credit.eq(buffer.take[::-1])"
            ),
        ),
        assumes="senders keep rules 1 to 4 of the contract; receivers give back what they owe",
        not_proved="more cycles than the depth; senders that break the rules",
        bounded="no invariant yet that ties buffers, links and what each output owns together",
        quick=False,
    ),
)
