"""Proofs of ``ElasticBuffer`` and of a link with ``CreditCounter``, both in ``cores/router``.

Buffer, over public ports: what leaves a queue is what came into it, in order (an arbitrary word of
each queue), shown at once or a cycle later as its data sheet says; a word is lost only when
``overflow`` says so, and then no place was free. The invariants say where everything is: each place
belongs to exactly one queue, at one position, or is free, or is the chosen one.

Link, a counter that sends to a buffer by way of a register, credits coming back by way of another:
for each VC the credits that are missing are the flits on the wire, in the buffer and the credits on
the way back; what is lent is what VCs hold beyond their reserve; the buffer never overflows; a VC
that holds less than its reserve may send, whatever the others do; one that holds nothing more than
it was lent gets all of it back. If the receiver takes each VC's flits within some cycles, a VC that
does not send may do so after a bounded time, whatever others do, and from then on until it does.

Not proved: a reset while running; other sizes than those named (the circuits do not differ but in
constants).
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.router.buffer import ElasticBuffer
from trebuchet.cores.router.contract import LinkConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS", "BufferGhost"]


class BufferGhost:
    """What each queue of a buffer must hold, told from the ports; and the invariants.

    ``level[v]``: words in memory. Numbers of words count modulo more than twice the depth. Of queue
    v, ``chosen[v]`` tells that the word which comes in is the chosen one, and ``place[v]`` how many
    words leave before it, ``word[v]`` and ``tag[v]`` what it is; ``tags[v]`` are those of all its
    words, first to last.
    """

    def __init__(self, m, dut):
        self.m, self.dut = m, dut
        self.bits = (2 * dut.depth).bit_length()
        self.level, self.chains, self.tags = [], [], []
        self.chosen, self.place, self.word, self.tag = [], [], [], []
        # All of `next`, for the chains: a read port for each place.
        self.next = [dut.next.read_port(domain="comb") for _ in range(dut.depth)]
        m.d.comb += [port.addr.eq(s) for s, port in enumerate(self.next)]
        for v in range(dut.queues):
            self._queue(v)
        self._places()

    def _queue(self, v):
        m, dut = self.m, self.dut
        index, sent, received, level, place = (
            Signal(self.bits, name=f"{name}{v}")
            for name in ("index", "sent", "received", "level", "place")
        )
        word = Signal.like(dut.word, name=f"word{v}")
        tag = Signal.like(dut.tag, name=f"tag{v}")
        puts, gets = dut.put[v] & ~dut.overflow, dut.take[v]
        m.d.comb += [
            index.eq(AnyConst(self.bits)),
            level.eq(sent - received),
            place.eq(index - received),
            Assert(level <= dut.depth),
            Assert(dut.filled[v] == (level != 0)),
        ]
        m.d.sync += [sent.eq(sent + puts), received.eq(received + gets)]
        with m.If(puts & (sent == index)):
            m.d.sync += [word.eq(dut.word), tag.eq(dut.tag)]
        # Contract.
        fresh = (level == 0) & puts if dut.through else 0
        m.d.comb += Assert(dut.valid[v] == ((level != 0) | fresh))
        with m.If(dut.valid[v] & (level == 0)):
            m.d.comb += [Assert(dut.fresh[v]), Assert(dut.tags[v] == dut.tag)]
        with m.If((level != 0) & (place == 0)):
            m.d.comb += [
                Assert(~dut.fresh[v]),
                Assert(dut.words[v] == word),
                Assert(dut.tags[v] == tag),
            ]
        # Invariants: the chosen word and its tag lie where its place in the chain says.
        chain = [dut.first[v]]
        peek = dut.ram.read_port(domain="comb")
        m.d.comb += peek.addr.eq(chain[0])
        places = Array(port.data.place for port in self.next)
        tags = Array(Value.cast(port.data.tag) for port in self.next)
        for k in range(1, dut.depth):
            chain.append(Signal(dut.bits, name=f"chain{v}_{k}"))
            m.d.comb += chain[k].eq(places[chain[k - 1]])
            with m.If((place == k) & (k < level)):
                m.d.comb += [peek.addr.eq(chain[k]), Assert(tags[chain[k - 1]] == Value.cast(tag))]
        with m.If(place < level):
            m.d.comb += Assert(peek.data == word)
        for k, at in enumerate(chain):
            m.d.comb += Assert((k >= level) | (at < dut.depth))
            with m.If(level == k + 1):
                m.d.comb += Assert(dut.last[v] == at)
        self.level.append(level)
        self.chains.append(chain)
        shape = dut.tag.shape()
        behind = [shape(tags[at]) if callable(shape) else tags[at] for at in chain[:-1]]
        self.tags.append([dut.first_tag[v], *behind])
        self.chosen.append(sent == index)
        self.place.append(place)
        self.word.append(word)
        self.tag.append(tag)

    def _places(self):
        """Each place has exactly one owner."""
        m, dut = self.m, self.dut
        for s in range(dut.depth):
            owners = [dut.free[s], dut.chosen_valid & (dut.chosen == s)]
            for level, chain in zip(self.level, self.chains, strict=True):
                owners += [(k < level) & (at == s) for k, at in enumerate(chain)]
            m.d.comb += Assert(sum(owners) == 1)
        m.d.comb += Assert(~dut.chosen_valid | (dut.chosen < dut.depth))
        # While none is chosen all free places became free in the last cycle.
        freed = Signal(dut.depth)
        m.d.sync += freed.eq(0)
        for v in range(dut.queues):
            with m.If(dut.take[v] & (self.level[v] != 0)):
                m.d.sync += freed.bit_select(dut.first[v], 1).eq(1)
        with m.If(~dut.chosen_valid):
            m.d.comb += Assert((dut.free & ~freed) == 0)


def _one_hot_or_zero(value):
    return (value & (value - 1)) == 0


class BufferProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.put, dut.word, dut.tag)
        wanted = Signal(dut.queues)
        free(m, wanted)
        m.d.comb += [Assume(_one_hot_or_zero(dut.put)), dut.take.eq(wanted & dut.valid)]
        ghost = BufferGhost(m, dut)
        total, freed = Signal(8), Signal(8)
        m.d.comb += total.eq(sum(ghost.level))
        m.d.sync += freed.eq(sum(dut.take[v] & (ghost.level[v] != 0) for v in range(dut.queues)))
        m.d.comb += Assert(~dut.overflow | (dut.put.any() & (total + freed >= dut.depth)))
        # One queue holds everything; all leave in one cycle; the memory is full, then empty.
        was_full = Signal()
        with m.If(total == dut.depth):
            m.d.sync += was_full.eq(1)
        m.d.comb += [
            Cover(ghost.level[0] == dut.depth),
            Cover(was_full & (total == 0)),
            Cover(dut.take.all() & (ghost.level[0] > 1)),
            Cover(dut.overflow),
        ]
        return m


class LinkProof(Elaboratable):
    def __init__(self, counter):
        self.counter, self.config = counter, counter.config
        self.buffer = ElasticBuffer(self.config.vcs, self.config.buffer_flits, 1, 1)

    def elaborate(self, platform):
        m = new_harness()
        config, counter, buffer = self.config, self.counter, self.buffer
        m.submodules.counter, m.submodules.buffer = counter, buffer
        send, wanted = Signal(config.vcs), Signal(config.vcs)
        m.d.comb += [
            send.eq(AnySeq(config.vcs)),
            wanted.eq(AnySeq(config.vcs)),
            Assume(_one_hot_or_zero(send)),
            counter.send.eq(send & counter.ready),
            buffer.take.eq(wanted & buffer.valid),
        ]
        free(m, buffer.word, buffer.tag)
        m.d.sync += [buffer.put.eq(counter.send), counter.credit.eq(buffer.take)]
        ghost = BufferGhost(m, buffer)
        excess = [Mux(h > config.reserved, h - config.reserved, 0) for h in counter.held]
        m.d.comb += [Assert(~buffer.overflow), Assert(counter.lent == sum(excess))]
        m.d.comb += [
            Assert(counter.lent <= config.shared),
            Assert(sum(counter.held) <= config.buffer_flits),
            Assert(_one_hot_or_zero(buffer.put)),
            Assert(counter.idle == (sum(counter.held) == 0)),
        ]
        for v, held in enumerate(counter.held):
            m.d.comb += [
                Assert(held == ghost.level[v] + buffer.put[v] + counter.credit[v]),
                Assert((held >= config.reserved) | counter.ready[v]),
            ]
        self._progress(m, ghost, wanted)
        others = Signal()
        with m.If(counter.held[0] == config.buffer_flits - (config.vcs - 1) * config.reserved):
            m.d.sync += others.eq(1)
        m.d.comb += [
            Cover(others & counter.send[1] & (counter.lent == config.shared)),
            Cover(others & counter.idle),
            Cover(sum(counter.held) == config.buffer_flits),
            Cover(counter.credit.all() & counter.send.any()),
        ]
        return m

    def _progress(self, m, ghost, wanted):
        """A VC that is served within ``PATIENCE`` cycles may send again, whatever others do."""
        config, counter, buffer = self.config, self.counter, self.buffer
        vc, late = Signal(range(config.vcs)), Signal(range(PATIENCE))
        waited, bound = Signal(6), config.buffer_flits * PATIENCE
        m.d.comb += [vc.eq(AnyConst(len(vc))), Assume(vc < config.vcs)]
        valid, takes = buffer.valid.bit_select(vc, 1), wanted.bit_select(vc, 1)
        with m.If(~valid | takes):
            m.d.sync += late.eq(0)
        with m.Else():
            m.d.sync += late.eq(late + 1)
            m.d.comb += Assume(late < PATIENCE - 1)
        with m.If(counter.send.bit_select(vc, 1)):
            m.d.sync += waited.eq(0)
        with m.Elif(waited != bound + 2):
            m.d.sync += waited.eq(waited + 1)
        m.d.comb += [
            Assert(counter.ready.bit_select(vc, 1) | (waited < bound + 2)),
            Cover(waited == PATIENCE + 2),
        ]
        # Invariants: while something of it is there, the wait is paid for by flits that left.
        there, credit = Signal(4), counter.credit.bit_select(vc, 1)
        m.d.comb += [
            there.eq(Array(ghost.level)[vc] + buffer.put.bit_select(vc, 1)),
            Assert((there == 0) | (waited <= (config.buffer_flits - there) * PATIENCE + late)),
            Assert((there != 0) | ~credit | (waited <= bound)),
            Assert(late < PATIENCE),
        ]


PATIENCE = 3
BUFFER_MUTANTS = (
    Mutant("forgets_the_link", "link.en.eq(filled)", "link.en.eq(0)"),
    Mutant("writes_any_link", "link.en.eq(filled)", "link.en.eq(1)"),
    Mutant("loses_the_only_one", "Mux(self.pops[v], single, ~filled)", "~filled"),
    Mutant("frees_what_passed", "self.take[v] & filled", "self.take[v]"),
    Mutant("keeps_places", "(self.free & ~taken) | _any(freed)", "self.free & ~taken"),
)
LINK = LinkConfig(vcs=2, flit_width=1, buffer_flits=4, reserved=1)
COUNTER_MUTANTS = (
    Mutant("lends_the_reserve", "self.lent != shared", "1"),
    Mutant("forgets_what_is_lent", "up & (held >= reserved)", "up & (held > reserved)"),
    Mutant("repays_too_much", "down & (held > reserved)", "down"),
    Mutant("counts_one_way", "credit & ~self.send[v]", "credit"),
)
_NOT = "a reset while running"

PROOFS = (
    *(
        Proof(
            name=f"router_buffer_{name}",
            core=f"cores.router.buffer.ElasticBuffer(2, 4, 2, 1, {through})",
            says="each queue keeps content and order; each place has one owner",
            module="trebuchet.cores.router.buffer",
            build=lambda cores, t=through: BufferProof(cores.ElasticBuffer(2, 4, 2, 1, t)),
            depth=3,
            cover_depth=14,
            mutants=BUFFER_MUTANTS if through else BUFFER_MUTANTS[:2],
            assumes="one word in a cycle; only words that are there are taken",
            not_proved=_NOT,
        )
        for name, through in (("through", True), ("stored", False))
    ),
    Proof(
        name="router_link",
        quick=True,
        core="cores.router.credits.CreditCounter(2 VCs, 4 flits, 1 reserved) and ElasticBuffer",
        says="credits + wire + buffer = capacity; no overflow; each VC may send within a bound",
        module="trebuchet.cores.router.credits",
        build=lambda cores: LinkProof(cores.CreditCounter(LINK)),
        depth=3,
        cover_depth=14,
        mutants=COUNTER_MUTANTS,
        assumes="one flit a cycle is sent, only with `ready`; each VC is served within 3 cycles",
        not_proved=_NOT,
    ),
)
