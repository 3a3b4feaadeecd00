"""The buffer of an input port: one memory, a queue for each virtual channel."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

__all__ = ["ElasticBuffer"]


class ElasticBuffer(wiring.Component):
    """Queues that share the places of one memory, a word in and a word of each queue out a cycle.

    ============  =========  =====================================================================
    ``put``       In         one-hot or 0: a word for this queue comes in this cycle
    ``word``      In         its bulk
    ``tag``       In         what must be known of it as soon as it is first in its queue
    ``valid``     Out        bit v: queue v has a word
    ``fresh``     Out        bit v: the first word of queue v is the one that comes in
    ``words``     Out array  the first word of each queue, unless its bit of ``fresh`` is set
    ``tags``      Out array  its tag
    ``take``      In         bit v: the first word of queue v leaves; only with ``valid`` bit v
    ``overflow``  Out        the word that comes in is lost, since no place is free
    ============  =========  =====================================================================

    Parameters: ``queues``; ``depth``, places; ``word``, bits; ``tag``, a shape; ``through``,
    whether a word that finds its queue empty is shown at once, and may leave in that cycle without
    filling a place (latency 0; one must be free all the same), or a cycle later (latency 1).

    Every queue may lose a word in the same cycle. Who may have how many places is not decided here
    (rule 3 of :mod:`~trebuchet.cores.router.contract`): one queue can fill them all. A place that
    was freed in one cycle can be filled in the second one after it. Reset: empty.
    """

    def __init__(self, queues, depth, word, tag, through=True):
        for what, value, least in (("Queues", queues, 1), ("Depth", depth, 2), ("Word", word, 1)):
            if not isinstance(value, int) or value < least:
                raise ValueError(f"{what} must be an integer >= {least}, not {value!r}")
        self.queues, self.depth, self.through = queues, depth, bool(through)
        super().__init__(
            {
                "put": In(queues),
                "word": In(word),
                "tag": In(tag),
                "valid": Out(queues),
                "fresh": Out(queues),
                "words": Out(word).array(queues),
                "tags": Out(tag).array(queues),
                "take": In(queues),
                "overflow": Out(1),
            }
        )
        # No ports: for proofs.
        self.bits = (depth - 1).bit_length()
        self.ram = Memory(shape=unsigned(word), depth=depth, init=[])
        # Of the word that follows the one in a place: where it is, and its tag.
        self.next = Memory(
            shape=data.StructLayout({"place": self.bits, "tag": tag}), depth=depth, init=[]
        )
        self.next_write = self.next.write_port()
        self.free = Signal(depth, init=(1 << depth) - 2)  # places, without the chosen one
        self.chosen = Signal(self.bits)  # where the next word goes
        self.chosen_valid = Signal(init=1)
        self.filled = Signal(queues)  # queues with a word in memory
        self.first = [Signal(self.bits, name=f"first{v}") for v in range(queues)]
        self.last = [Signal(self.bits, name=f"last{v}") for v in range(queues)]
        self.first_tag = [Signal(tag, name=f"first_tag{v}") for v in range(queues)]
        self.stores, self.pops = Signal(queues), Signal(queues)

    # Each queue is a list linked through `next`, which is read at the first word in advance, so
    # that a queue has place and tag of its new first word in the cycle after the old one left.
    # Each queue has its own copy of both memories to read (LUT RAM), none waits for another.
    def elaborate(self, platform):
        m = Module()
        m.submodules.ram, m.submodules.next = self.ram, self.next
        write, freed = self.ram.write_port(), []
        m.d.comb += [
            write.addr.eq(self.chosen),
            write.data.eq(self.word),
            write.en.eq(self.stores.any()),
            self.next_write.data.place.eq(self.chosen),
            self.next_write.data.tag.eq(self.tag),
        ]
        for v in range(self.queues):
            self._queue(m, v)
            freed.append(_one_hot(self.first[v], self.depth, self.pops[v]))
        self._choose(m, freed)
        return m

    def _queue(self, m, v):
        filled, first, last = self.filled[v], self.first[v], self.last[v]
        read, follow = self.ram.read_port(domain="comb"), self.next.read_port(domain="comb")
        passes, single, link = Signal(), Signal(), self.next_write
        if self.through:
            m.d.comb += [
                self.valid[v].eq(filled | (self.put[v] & self.chosen_valid)),
                self.fresh[v].eq(~filled),
                Value.cast(self.tags[v]).eq(Mux(filled, self.first_tag[v], self.tag)),
                passes.eq(~filled & self.take[v]),
            ]
        else:
            m.d.comb += [
                self.valid[v].eq(filled),
                self.tags[v].eq(self.first_tag[v]),
            ]
        m.d.comb += [
            read.addr.eq(first),
            self.words[v].eq(read.data),
            follow.addr.eq(first),
            single.eq(first == last),
            self.stores[v].eq(self.put[v] & ~passes & self.chosen_valid),
            self.pops[v].eq(self.take[v] & filled),
        ]
        with m.If(self.stores[v]):
            m.d.sync += last.eq(self.chosen)
            m.d.comb += link.en.eq(filled)
        with m.If(self.put[v]):
            m.d.comb += link.addr.eq(last)
        ends = Mux(self.pops[v], single, ~filled)  # nothing in memory but what comes now
        m.d.sync += filled.eq(self.stores[v] | ~ends)
        with m.If(ends):
            m.d.sync += [first.eq(self.chosen), self.first_tag[v].eq(self.tag)]
        with m.Elif(self.pops[v]):
            m.d.sync += [first.eq(follow.data.place), self.first_tag[v].eq(follow.data.tag)]

    def _choose(self, m, freed):
        """Keep a free place at hand; a place that is freed now is looked at in the next cycle."""
        stores = self.stores.any()
        m.d.comb += self.overflow.eq(self.put.any() & ~self.chosen_valid)
        some, picked = _lowest(m, self.free)
        picks = Signal()
        m.d.comb += picks.eq(stores | ~self.chosen_valid)
        with m.If(picks):
            m.d.sync += [self.chosen.eq(picked), self.chosen_valid.eq(some)]
        taken = _one_hot(picked, self.depth, picks)
        m.d.sync += self.free.eq((self.free & ~taken) | _any(freed))


def _lowest(m, bits):
    """Whether one of ``bits`` is set, and the number of the lowest; a tree, no carry chain."""
    if len(bits) == 1:
        return bits[0], Const(0, 0)
    half = 1 << ((len(bits) - 1).bit_length() - 1)
    low, low_number = _lowest(m, bits[:half])
    high, high_number = _lowest(m, bits[half:])
    some, number = Signal(), Signal(len(low_number) + 1)
    m.d.comb += [some.eq(low | high), number.eq(Cat(Mux(low, low_number, high_number), ~low))]
    return some, number


def _one_hot(number, count, enable):
    """Bit ``number`` of ``count`` if ``enable``; decoded as rows and columns, which bits share."""
    half = len(number) // 2
    low, high = number[:half], number[half:]
    rows = [high == k for k in range(1 << len(high))]
    columns = [low == k for k in range(1 << half)]
    bits = Cat(row & column for row in rows for column in columns)[:count]
    return bits & enable.replicate(count)


def _any(values):
    result = values[0]
    for value in values[1:]:
        result = result | value
    return Cat(result)
