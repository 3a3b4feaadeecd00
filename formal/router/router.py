"""Proof of ``Router`` in ``cores/router/router.py``: the whole router, without bound.

Contract, over public ports. A naive specification follows each input: which packet
is open, which way it goes (the routing function itself, asked for each destination). Of each queue,
that is each VC of each input, the solver picks one flit by its number. Whenever a credit goes back,
the flit that this queue lost in the cycle before is on the link of the output that its packet is
for, on the VC that it is for, unchanged, with head and tail where the packet's are; on no other
output; and no output shows a flit that no queue lost. As queues count their flits, this is order
and content for each input, VC and output, and nothing lost, doubled, or misled. On a VC of an
output all flits from head to tail come from the same VC of the same input.

Credits: what the sender of a link counts as held is what is in the buffer and the credit on the
wire; no flit is sent without credit, by the naive count of the contract. A flit that may leave
does, or another one does at that output, and this for at most ``ports * vcs - 1`` times in a row. A
packet for nowhere leaves at once. ``dropped``, ``malformed``, ``overflow`` and ``idle`` say exactly
what their data sheet says. Heads and tails are anything: packets that break rule 2 are among the
traffic; where ``rude`` is set, flits that no credit was there for, too.

Where a flit has several phits, what is said of flits on links is said of those that the input's
receiver collects and of those that are put on the link (``router_phit.py``).

The invariants tie queues (``router_buffer.py``), ownership and credits together.

Not proved: other sizes than those named; a reset while running; how long a packet waits for another
packet to end, which is up to its sender.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .buffer import BufferGhost
from .phit import Flit, SentFlit

__all__ = ["PROOFS"]


def _any(values):
    return Cat(values).any()


class _Held:
    """Rule 3 of the contract from outside: flits of each VC whose credit has not come back."""

    def __init__(self, m, config, name, sent, vc, credit):
        self.held = [Signal(4, name=f"{name}_held{v}") for v in range(config.vcs)]
        self.lent = sum(Mux(h > config.reserved, h - config.reserved, 0) for h in self.held)
        self.shared = config.buffer_flits - config.vcs * config.reserved
        self.may = Cat((h < config.reserved) | (self.lent < self.shared) for h in self.held)
        for v, held in enumerate(self.held):
            m.d.sync += held.eq(held + (sent & (vc == v)) - credit[v])


class _Input:
    """What comes in at port ``p``, and what leaves its queues."""

    def __init__(self, m, dut, p, route, rude):
        self.m, self.dut, self.p, self.route = m, dut, p, route
        self.link, self.buffer, config = dut.i[p], dut.buffers[p], dut.config
        free(m, self.link.valid, self.link.phit)
        self.valid, self.flit = self.link.valid, self.link.phit
        if config.phits > 1:
            self.valid, self.flit = dut.receivers[p].get, dut.receivers[p].flit
        self.stored = self.valid & ~self.buffer.overflow if rude else self.valid
        self.count = _Held(m, config, f"in{p}", self.stored, self.flit.vc, self.link.credit)
        self.ghost = BufferGhost(m, self.buffer)
        self.now = [self._arrive(v) for v in range(config.vcs)]
        self.left = [self._leave(v) for v in range(config.vcs)]
        self._flags(rude)

    def _arrive(self, v):
        """The flit that comes in, as it must leave, if it is of VC v."""
        m, dut, p, phit = self.m, self.dut, self.p, self.flit
        now = Flit(dut.ports, phit, f"now{p}_{v}")
        opened, way = Signal(name=f"in{p}_open{v}"), Signal(dut.ports, name=f"in{p}_way{v}")
        way_vc = Signal.like(phit.vc, name=f"in{p}_way_vc{v}")
        m.d.comb += [now.data.eq(phit.data), now.dest.eq(phit.dest)]
        m.d.comb += [now.tail.eq(phit.tail), now.head.eq(~opened)]
        with m.If(opened):
            m.d.comb += [now.to.eq(way), now.vc.eq(way_vc)]
        with m.Elif(phit.head):
            for d in range(1 << dut.config.dest_width):
                if (out := self.route(p, v, d)) is not None:
                    with m.If(phit.dest == d):
                        m.d.comb += [now.to.eq(1 << out[0]), now.vc.eq(out[1])]
        with m.If(self.stored & (phit.vc == v)):
            m.d.sync += [opened.eq(~phit.tail), way.eq(now.to), way_vc.eq(now.vc)]
        now.opened = opened
        # Invariants.
        m.d.comb += Assert(dut.opened[p][v] == opened)
        ways = dut.ways[p][v]
        with m.If(opened):
            m.d.comb += [Assert(ways.to == way), Assert(ways.vc == way_vc)]
            m.d.comb += self._known(v, way, way_vc)
        return now

    def _known(self, v, to, vc):
        """A way that the routing function knows, or none."""
        dests = range(1 << self.dut.config.dest_width)
        ways = {self.route(self.p, v, d) for d in dests} - {None}
        return Assert(_any([to == 0, *((to == 1 << o) & (vc == w) for o, w in sorted(ways))]))

    def _leave(self, v):
        """The chosen flit of queue v in the cycle after it left; ``shown`` tells that it did."""
        m, p, ghost, now = self.m, self.p, self.ghost, self.now[v]
        want = Flit(self.dut.ports, self.flit, f"want{p}_{v}")
        left = Flit(self.dut.ports, self.flit, f"left{p}_{v}")
        left.shown = Signal(name=f"shown{p}_{v}")
        level, place, take = ghost.level[v], ghost.place[v], self.buffer.take[v]
        with m.If(self.stored & (self.flit.vc == v) & ghost.chosen[v]):
            m.d.sync += want.all.eq(now.all)
        m.d.sync += [
            left.shown.eq(take & (place == 0)),
            left.all.eq(Mux(level == 0, now.all, want.all)),
        ]
        m.d.comb += [
            Assert(~left.shown | self.link.credit[v]),
            Assert(self.count.held[v] == level + self.link.credit[v]),
        ]
        # Invariants.
        word, tag = ghost.word[v], ghost.tag[v]
        with m.If(place < level):
            m.d.comb += [
                Assert(word == Cat(want.data, want.dest)),
                Assert((tag.to == want.to) & (tag.tail == want.tail)),
                Assert((want.to == 0) | (tag.vc == want.vc)),
            ]
        self._chain(v, want)
        return left

    def _chain(self, v, want):
        """Invariant: packets in a queue are whole, from the one that is leaving to the open one."""
        m, dut, p, ghost = self.m, self.dut, self.p, self.ghost
        level, pv = ghost.level[v], p * dut.config.vcs + v
        granted = [dut.grants[o][pv] for o in range(dut.ports)]
        self.way = getattr(self, "way", {})
        to, vc = Signal(dut.ports, name=f"way{p}_{v}"), Signal.like(want.vc, name=f"vc{p}_{v}")
        self.way[v] = to, vc
        with m.If(_any(granted)):
            m.d.sync += [to.eq(Cat(granted)), vc.eq(self.buffer.tags[v].vc)]
        opened = dut.owns[p][v]
        for k, tag in enumerate(ghost.tags[v]):
            here, then = Signal(name=f"here{p}_{v}_{k}"), Signal(name=f"then{p}_{v}_{k}")
            m.d.comb += here.eq(level > k)
            with m.If(here):
                m.d.comb += self._known(v, tag.to, tag.vc)
                with m.If(opened):
                    m.d.comb += [Assert(tag.to == to), Assert(tag.vc == vc)]
                with m.If((ghost.place[v] == k) & (tag.to != 0)):
                    m.d.comb += Assert(want.head == ~opened)
            m.d.comb += then.eq(Mux(here, ~tag.tail & (tag.to != 0), opened))
            opened, to, vc = then, Mux(here, tag.to, to), Mux(here, tag.vc, vc)
        ways = dut.ways[p][v]
        m.d.comb += Assert(opened == (dut.opened[p][v] & (ways.to != 0)))
        with m.If(opened):
            m.d.comb += [Assert(to == ways.to), Assert(vc == ways.vc)]

    def _flags(self, rude):
        m, dut, p, phit = self.m, self.dut, self.p, self.flit
        mine = [phit.vc == v for v in range(dut.config.vcs)]
        level, freed = sum(self.ghost.level), Signal(4, name=f"freed{p}")
        taken = zip(self.buffer.take, self.ghost.level, strict=True)
        stored = [take & (n != 0) for take, n in taken]
        m.d.sync += freed.eq(sum(stored))
        pairs = list(zip(mine, self.now, strict=True))
        some, full = _any(mine), level + freed >= dut.config.buffer_flits
        nowhere = _any(is_v & (now.to == 0) & ~now.opened for is_v, now in pairs)
        broken = _any(is_v & (now.opened == phit.head) for is_v, now in pairs)
        was = {name: Signal(name=f"{name}{p}") for name in ("dropped", "malformed", "overflow")}
        keeps = self.valid & some & ~full
        m.d.sync += [
            was["dropped"].eq(keeps & phit.head & nowhere),
            was["malformed"].eq((keeps & broken) | (self.valid & ~some)),
            was["overflow"].eq(self.valid & some & full),
        ]
        for name, flag in was.items():
            m.d.comb += Assert(getattr(dut, name)[p] == flag)
        if not rude:
            may = Cat(is_v & self.count.may[v] for v, is_v in enumerate(mine)).any()
            m.d.comb += [Assume(~self.valid | may | ~some), Assert(~dut.overflow[p])]
            m.d.comb += Assert(self.count.lent <= self.count.shared)


class _Output:
    """What leaves at port ``o``, and who owns its VCs."""

    def __init__(self, m, dut, o):
        self.m, self.dut, self.o, self.link = m, dut, o, dut.o[o]
        link, config, n = self.link, dut.config, dut.ports * dut.config.vcs
        free(m, link.credit)
        self.valid, self.flit, self.ready = link.valid, link.phit, 1
        if config.phits > 1:
            self._phits()
        self.count = _Held(m, config, f"out{o}", self.valid, self.flit.vc, link.credit)
        self.who = Signal(n, name=f"who{o}")  # the queue whose flit is on the link
        m.d.sync += self.who.eq(dut.grants[o])
        m.d.comb += [Assert(self.valid == self.who.any()), Assert((self.who & (self.who - 1)) == 0)]
        # Of each VC the packet that is open, and whose it is: after the flit on the link.
        self.opened = [Signal(name=f"out{o}_open{w}") for w in range(config.vcs)]
        self.owner = [Signal(n, name=f"out{o}_owner{w}") for w in range(config.vcs)]
        self.now = [self._owned(w) for w in range(config.vcs)]
        self._credits()

    def _phits(self):
        """The flit that begins on the link in this cycle; its phits follow."""
        m, sender, phits = self.m, self.dut.senders[self.o], self.dut.config.phits
        self.valid = Signal(name=f"begins{self.o}")
        self.flit = Signal(sender.flit.shape(), name=f"begun{self.o}")
        m.d.sync += [self.valid.eq(sender.put), Value.cast(self.flit).eq(Value.cast(sender.flit))]
        sent = SentFlit(m, put=sender.put, flit=sender.flit, link=self.link, phits=phits)
        self.ready = ~sent.busy | sent.last
        m.d.comb += Assert(sender.left == Mux(sent.busy, phits - 1 - sent.number, 0))
        m.d.comb += Assert(self.valid == (sent.busy & (sent.number == 0)))

    def _owned(self, w):
        m, phit = self.m, self.flit
        opened, owner = Signal(name=f"owned{self.o}_{w}"), Signal.like(self.owner[w])
        m.d.comb += [opened.eq(self.opened[w]), owner.eq(self.owner[w])]
        with m.If(self.valid & (phit.vc == w)):
            m.d.comb += [
                opened.eq(~phit.tail),
                owner.eq(self.who),
                Assert(phit.head == ~self.opened[w]),
                Assert(phit.head | (self.owner[w] == self.who)),
            ]
        m.d.sync += [self.opened[w].eq(opened), self.owner[w].eq(owner)]
        m.d.comb += Assert(self.dut.owned[self.o][w] == opened)  # an invariant
        return opened, owner

    def _credits(self):
        m, link, counter = self.m, self.link, self.dut.counters[self.o]
        may = Cat((self.flit.vc == w) & bit for w, bit in enumerate(self.count.may)).any()
        m.d.comb += Assert(~self.valid | may)
        for w, held in enumerate(self.count.held):
            mine = self.valid & (self.flit.vc == w)
            m.d.comb += [
                Assume(~link.credit[w] | (held != 0)),
                Assert(counter.held[w] == held + mine),  # an invariant
            ]
        config = self.dut.config
        excess = [Mux(h > config.reserved, h - config.reserved, 0) for h in counter.held]
        m.d.comb += Assert(counter.lent == sum(excess))
        m.d.comb += Assert(counter.lent <= config.buffer_flits - config.vcs * config.reserved)

    def may_leave(self, pv, tag, valid):
        """Whether the first flit of a queue may leave here, by the data sheet."""
        counter = self.dut.counters[self.o]
        turns = []
        for w, (opened, owner) in enumerate(self.now):
            held = counter.held
            config = self.dut.config
            lent = sum(Mux(h > config.reserved, h - config.reserved, 0) for h in held)
            shared = config.buffer_flits - config.vcs * config.reserved
            credit = (held[w] < config.reserved) | (lent < shared)
            turns.append((tag.vc == w) & credit & (~opened | owner[pv]))
        return valid & tag.to[self.o] & self.ready & _any(turns)


class RouterProof(Elaboratable):
    def __init__(self, dut, route, rude=False):
        self.dut, self.route, self.rude = dut, route, rude

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        ports = range(dut.ports)
        self.inputs = [_Input(m, dut, p, self.route, self.rude) for p in ports]
        self.outputs = [_Output(m, dut, o) for o in ports]
        self.queues = [(p, v) for p in ports for v in range(dut.config.vcs)]
        self._switch(m)
        self._owners(m)
        for output in self.outputs:
            self._progress(m, output)
        self._idle(m)
        self._cover(m)
        return m

    def _switch(self, m):
        """What left a queue is on the link of its output, and nothing else is."""
        left = [self.inputs[p].left[v] for p, v in self.queues]
        gone = [self.inputs[p].link.credit[v] for p, v in self.queues]
        known = Signal()  # of all queues that lost a flit it was the chosen one
        pairs = zip(left, gone, strict=True)
        m.d.comb += known.eq(Cat(~g | flit.shown for flit, g in pairs).all())
        for output in self.outputs:
            phit, o = output.flit, output.o
            for k, flit in enumerate(left):
                with m.If(flit.shown & flit.to[o]):
                    m.d.comb += [
                        Assert(output.valid & output.who[k]),
                        Assert((phit.data == flit.data) & (phit.dest == flit.dest)),
                        Assert((phit.vc == flit.vc) & (phit.tail == flit.tail)),
                        Assert(phit.head == flit.head),
                    ]
            with m.If(known):
                m.d.comb += Assert(output.valid == sum(f.shown & f.to[o] for f in left))

    def _owners(self, m):
        """Invariant: an open VC of an output and the queue that owns it know of each other."""
        for output in self.outputs:
            for w, (opened, owner) in enumerate(output.now):
                with m.If(opened):
                    m.d.comb += Assert(owner.any() & ((owner & (owner - 1)) == 0))
                for k, (p, v) in enumerate(self.queues):
                    to, vc = self.inputs[p].way[v]
                    here = self.dut.owns[p][v] & (to == 1 << output.o) & (vc == w)
                    m.d.comb += Assert(here == (opened & owner[k]))
        for p, v in self.queues:
            with m.If(self.dut.owns[p][v]):
                to, vc = self.inputs[p].way[v]
                m.d.comb += self.inputs[p]._known(v, to, vc)
                m.d.comb += Assert(to != 0)

    def _progress(self, m, output):
        """Some flit leaves if one may; whoever may is served within a round."""
        dut, o, n = self.dut, output.o, len(self.queues)
        may = Signal(n, name=f"may{o}")
        for k, (p, v) in enumerate(self.queues):
            buffer = dut.buffers[p]
            m.d.comb += may[k].eq(output.may_leave(k, buffer.tags[v], buffer.valid[v]))
        grant = dut.grants[o]
        m.d.comb += [Assert((grant & ~may) == 0), Assert(grant.any() == may.any())]
        asker, waited = Signal(range(n), name=f"asker{o}"), Signal(range(n + 2), name=f"waited{o}")
        m.d.comb += [asker.eq(AnyConst(len(asker))), Assume(asker < n)]
        with m.If(may.bit_select(asker, 1) & ~grant.bit_select(asker, 1)):
            m.d.sync += waited.eq(waited + 1)
        with m.Elif(output.ready):
            m.d.sync += waited.eq(0)
        m.d.comb += [Assert(waited <= n - 1), Cover(waited == n - 1)]
        # Invariants: `behind` is all above some queue; those before the asker have had turns.
        behind = dut.arbiters[o].behind
        m.d.comb += Assert((~behind & (~behind + 1)[:n]) == 0)
        start, ahead = Signal(range(n + 1), name=f"start{o}"), Signal(range(n + 1))
        m.d.comb += start.eq(n - sum(behind[k] for k in range(n)))
        round_ = Mux(asker >= start, asker - start, n - start + asker)
        m.d.comb += [ahead.eq(Mux(start == n, asker, round_)), Assert(waited + ahead <= n - 1)]

    def _idle(self, m):
        busy = []
        for p, v in self.queues:
            i = self.inputs[p]
            busy += [i.now[v].opened, i.ghost.level[v] != 0, self.dut.owns[p][v]]
            if self.dut.pass_through:
                busy.append(i.stored & (i.flit.vc == v))
            with m.If(i.buffer.valid[v] & (i.buffer.tags[v].to == 0)):
                m.d.comb += Assert(i.buffer.take[v])
        for output in self.outputs:
            busy += [output.valid, *(h != 0 for h in output.count.held)]
        m.d.comb += Assert(self.dut.idle == ~_any(busy))

    def _cover(self, m):
        seen_all, seen_drop, full = Signal(), Signal(), Signal()
        with m.If(Cat(output.valid for output in self.outputs).all()):
            m.d.sync += seen_all.eq(1)
        with m.If(self.dut.dropped.any()):
            m.d.sync += seen_drop.eq(1)
        with m.If(sum(self.inputs[0].count.held) == self.dut.config.buffer_flits):
            m.d.sync += full.eq(1)
        m.d.comb += [
            Cover(seen_all & self.dut.idle),
            Cover(seen_drop & self.dut.idle),
            Cover(full & self.dut.idle),
            Cover(Cat(opened for opened, _ in self.outputs[0].now).all()),
        ]


def _keep(port, vc, dest):
    """The destination is the port; the VC stays."""
    return (dest, vc) if dest < 2 else None


def _turn(port, vc, dest):
    """Another way from each port and VC: a reference for tables that are not regular."""
    return (dest ^ port, vc ^ (dest & port)) if dest < 2 else None


def _three(port, vc, dest):
    return ((dest + port) % 3, 0) if dest < 3 else None


def _proof(name, core, ports, route, rude, through, mutants, **link):
    def build(cores):
        config = cores.LinkConfig(**{"flit_width": 1, "dest_width": 2, "reserved": 1} | link)
        return RouterProof(cores.Router(ports, config, route, through), route, rude)

    return Proof(
        name=f"router_{name}",
        core=f"cores.router.router.Router({core}",
        says="flits keep content, order and way; packets stay whole; credits add up; fair outputs",
        module="trebuchet.cores.router.router",
        build=build,
        depth=2,
        cover_depth=12,
        mutants=mutants,
        assumes="senders have credits (not if rude); receivers give back what they owe",
        not_proved="how long a packet waits for the end of another; a reset while running",
    )


CREDITS = "trebuchet.cores.router.credits"
PROOFS = (
    _proof(
        "2x2",
        "2 ports, 2 VCs, 3 flits, 1 reserved)",
        2,
        _keep,
        False,
        True,
        (
            Mutant("interleaves", "self.owns[p][v] | ~_bit(self.owned[o], out_vc)", "1"),
            Mutant("needs_no_credit", "tag.to[o] & credit & turn", "tag.to[o] & turn"),
            Mutant(
                "forgets_the_way",
                "tag.to.eq(way.to), tag.vc.eq(way.vc)",
                "tag.to.eq(1), tag.vc.eq(way.vc)",
            ),
            Mutant(
                "credits_the_wrong_vc",
                "self.i[p].credit.eq(buffer.take)",
                "self.i[p].credit.eq(buffer.take[::-1])",
            ),
            Mutant(
                "releases_early",
                "self.owned[o][w].eq(~tail)",
                "self.owned[o][w].eq(head)",
                context="out.head.eq(head)",
            ),
        ),
        vcs=2,
        buffer_flits=3,
    ),
    _proof(
        "turns",
        "2 ports, 2 VCs, 3 flits, 1 reserved, pass_through=False), which changes VCs",
        2,
        _turn,
        True,
        False,
        (
            Mutant("keeps_the_vc", "tag.vc.eq(way[1])", "tag.vc.eq(0)"),
            Mutant("keeps_an_open_packet", "opened[v].eq(~flit.tail)", "opened[v].eq(1)"),
            Mutant(
                "opens_what_is_lost",
                "with m.If(buffer.put[v] & ~buffer.overflow):",
                "with m.If(buffer.put[v]):",
            ),
            Mutant("lends_the_reserve", "self.lent != shared", "1", where=CREDITS),
        ),
        vcs=2,
        buffer_flits=3,
    ),
    _proof(
        "3x1",
        "3 ports, 1 VC, 2 flits, all reserved)",
        3,
        _three,
        False,
        True,
        (
            Mutant("keeps_nowhere", "granted | (buffer.valid[v] & (tag.to == 0))", "granted"),
            Mutant(
                "calls_it_idle",
                "self.opened, self.owns, [b.valid for b in self.buffers]",
                "self.owns, [b.valid for b in self.buffers]",
            ),
            Mutant("sends_old_words", "Mux(passes, fresh, stored)", "stored"),
        ),
        vcs=1,
        buffer_flits=2,
        reserved=2,
    ),
    _proof(
        "phits",
        "2 ports, 1 VC, 2 flits of 2 phits)",
        2,
        _keep,
        False,
        False,
        (
            Mutant(
                "overwrites_the_link",
                "tag.to[o] & credit & turn & sender.ready",
                "tag.to[o] & credit & turn",
            ),
            Mutant(
                "stores_each_phit",
                "receiver.get & (flit.vc == v)",
                "link.valid & (flit.vc == v)",
                context="link, receiver, buffer = self.i[p], self.receivers[p], self.buffers[p]",
            ),
        ),
        vcs=1,
        flit_width=2,
        phit_width=1,
        buffer_flits=2,
    ),
)
