"""Endpoints for routers and networks of routers: sources with credits, sinks that check.

A packet is a list of flit data; its first word names source, VC, destination and number, so that
every sink knows what must come next. All ports are driven by one test bench, cycle by cycle.
"""

from collections import deque
from dataclasses import dataclass, field

from streams import make_rng
from trebuchet.models.router import Flit


def stamp(source, vc, dest, number, index):
    """Data of flit ``index`` of a packet: 16 bits at most, so narrow flits can be tested, too."""
    return (number * 64 + source * 8 + vc * 2 + dest * 16 + index * 5) & 0xFFFF


@dataclass
class Receiver:
    """The naive side of a link that takes flits: rule 3 checked, credits given back by chance."""

    config: object
    held: list = field(default_factory=list)
    open: list = field(default_factory=list)
    packets: list = field(default_factory=list)
    owed: list = field(default_factory=list)
    parts: list = field(default_factory=list)

    def __post_init__(self):
        vcs = self.config.vcs
        self.held, self.owed = [0] * vcs, [0] * vcs
        self.open = [None] * vcs

    def take(self, phit):
        """One phit that came over the link."""
        c = self.config
        fields = {name: phit[name] for name in ("dest", "vc", "head", "tail")}
        if self.parts:
            assert fields == self.parts[0][0], "rule 1: all phits of a flit are alike"
        self.parts.append((fields, phit["data"]))
        if len(self.parts) == 1:
            lent = sum(max(0, h - c.reserved) for h in self.held)
            v = fields["vc"]
            assert self.held[v] < c.reserved or lent < c.shared, "rule 3: sent without credit"
            self.held[v] += 1
        if len(self.parts) < c.phits:
            return
        word = sum(d << (k * c.phit_width) for k, (_, d) in enumerate(self.parts))
        self.parts = []
        v = fields["vc"]
        self.owed[v] += 1
        if fields["head"]:
            assert self.open[v] is None, "rule 2: packets interleave"
            self.open[v] = (fields["dest"], [])
        assert self.open[v] is not None, "rule 2: no head"
        self.open[v][1].append(word)
        if fields["tail"]:
            self.packets.append((v, *self.open[v]))
            self.open[v] = None

    def credits(self, rng, chance):
        """Credits to give in this cycle: of each VC with probability ``chance``."""
        mask = 0
        for v, owed in enumerate(self.owed):
            if owed and rng.random() < (chance[v] if isinstance(chance, list) else chance):
                self.owed[v] -= 1
                self.held[v] -= 1
                mask |= 1 << v
        return mask


@dataclass
class Sender:
    """The naive side of a link that sends flits; ``queues[v]`` holds what is to go on VC v."""

    config: object
    queues: list = field(default_factory=list)
    held: list = field(default_factory=list)
    phits: deque = field(default_factory=deque)

    def __post_init__(self):
        self.queues = [deque() for _ in range(self.config.vcs)]
        self.held = [0] * self.config.vcs

    def put(self, vc, dest, words):
        for k, word in enumerate(words):
            self.queues[vc].append(Flit(vc, k == 0, k == len(words) - 1, dest, word))

    def next(self, rng, load, rude=False):
        """The flit that goes now, or None."""
        c = self.config
        if self.phits or rng.random() >= load:
            return None
        lent = sum(max(0, h - c.reserved) for h in self.held)
        may = [
            v
            for v in range(c.vcs)
            if self.queues[v] and (rude or self.held[v] < c.reserved or lent < c.shared)
        ]
        if not may:
            return None
        v = rng.choice(may)
        self.held[v] += 1
        return self.queues[v].popleft()

    def credit(self, mask):
        for v in range(self.config.vcs):
            if mask >> v & 1:
                assert self.held[v] > 0, "a credit that nobody is owed"
                self.held[v] -= 1

    @property
    def done(self):
        return not any(self.queues) and not self.phits


def phits_of(flit, config):
    mask = (1 << config.phit_width) - 1
    same = {"dest": flit.dest, "vc": flit.vc, "head": flit.head, "tail": flit.tail}
    return [
        same | {"data": flit.data >> (k * config.phit_width) & mask} for k in range(config.phits)
    ]


class Endpoints:
    """A sender and a receiver at every port of ``dut``, which has arrays of links ``i`` and ``o``.

    ``load`` and ``chance`` (of a credit, in a cycle) may be numbers or functions of port and cycle.
    """

    def __init__(self, dut, n, config, seed, load=0.8, chance=0.5):
        self.dut, self.n, self.config = dut, n, config
        self.rng = make_rng(seed, "endpoints")
        self.senders = [Sender(config) for _ in range(n)]
        self.receivers = [Receiver(config) for _ in range(n)]
        self.load, self.chance = load, chance
        self.expected = {}  # (source, VC, dest): words of packets, in order
        self.cycle, self.flits, self.faults = 0, 0, 0

    def add(self, source, vc, dest, length):
        key = self.expected.setdefault((source, vc, dest), deque())
        words = [
            stamp(source, vc, dest, len(key), k) & ((1 << self.config.flit_width) - 1)
            for k in range(length)
        ]
        key.append(words)
        self.senders[source].put(vc, dest, words)

    def add_random(self, packets, length, dests=None):
        """``packets`` at each source, ``length(rng)`` flits each, to any destination on any VC."""
        for source in range(self.n):
            for _ in range(packets):
                dest = self.rng.choice(dests or range(self.n))
                self.add(source, self.rng.randrange(self.config.vcs), dest, length(self.rng))

    def _value(self, what, port):
        return what(port, self.cycle) if callable(what) else what

    async def step(self, ctx):
        """One cycle."""
        dut = self.dut
        for p, (sender, receiver) in enumerate(zip(self.senders, self.receivers, strict=True)):
            flit = sender.next(self.rng, self._value(self.load, p))
            if flit is not None:
                sender.phits.extend(phits_of(flit, self.config))
            sender.credit(ctx.get(dut.i[p].credit))  # counts from the next cycle on
            go = bool(sender.phits) and (self.config.phits == 1 or self.rng.random() < 0.8)
            ctx.set(dut.i[p].valid, go)
            if go:
                ctx.set(dut.i[p].phit, sender.phits.popleft())
            ctx.set(dut.o[p].credit, receiver.credits(self.rng, self._value(self.chance, p)))
        await ctx.tick()
        self.cycle += 1
        for name in ("faults", "dropped", "malformed", "overflow"):
            self.faults += bool(ctx.get(getattr(self.dut, name))) if hasattr(self.dut, name) else 0
        for p, receiver in enumerate(self.receivers):
            if ctx.get(dut.o[p].valid):
                phit = ctx.get(dut.o[p].phit)
                receiver.take({name: phit[name] for name in ("data", "dest", "vc", "head", "tail")})
                self.flits += 1

    def check_content(self, vc_of=lambda vc: vc):
        """Everything arrived where it should, in order for each source, VC and destination."""
        for port, receiver in enumerate(self.receivers):
            for vc, dest, words in receiver.packets:
                assert dest == port, f"a packet for {dest} came to {port}"
                match = [
                    key
                    for key, packets in self.expected.items()
                    if key[2] == port and vc_of(key[1]) == vc and packets and packets[0] == words
                ]
                assert match, f"port {port} got {words} on VC {vc}, which is nobody's next packet"
                self.expected[match[0]].popleft()
            receiver.packets.clear()

    def finished(self):
        senders = all(s.done and not any(s.held) for s in self.senders)
        return senders and not any(any(r.held) for r in self.receivers)

    async def drain(self, ctx, vc_of=lambda vc: vc):
        """Until all is delivered and every credit is back."""
        while not (self.finished() and ctx.get(self.dut.idle)):
            await self.step(ctx)
            self.check_content(vc_of)
        assert not any(self.expected.values()), "packets are missing"
        for _ in range(3):
            await self.step(ctx)
        assert ctx.get(self.dut.idle) == 1
        assert self.faults == 0
