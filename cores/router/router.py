"""The elastic router.

Source: cloud-scale-acceleration, section V.B.
"""

from functools import reduce
from operator import or_

from amaranth import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .arbiter import RoundRobin
from .buffer import ElasticBuffer
from .contract import LinkConfig, LinkSignature
from .credits import CreditCounter
from .phit import PhitReceiver, PhitSender
from .routing import crossbar

__all__ = ["Router"]


class Router(wiring.Component):
    """Input-buffered crossbar with virtual channels, credits and elastically shared buffers.

    Parameters
    ----------
    ports : int
        Number of ports, each an input and an output.
    config : LinkConfig
        All links of the router.
    route : callable
        ``route(port, vc, dest)``: ``(output port, output VC)`` of a packet that comes in at
        ``port`` on ``vc`` for ``dest``, or None if there is no way; called for every combination
        when the router is made. Default: :func:`~trebuchet.cores.router.routing.crossbar`, the
        destination is the port's number, the VC stays.
    pass_through : bool
        Whether a flit may leave in the cycle in which it comes in. Without, a flit is stored
        first: a cycle more, less logic and shorter paths.

    =============  ==========  ===================================================================
    member         dir         meaning
    =============  ==========  ===================================================================
    ``i``          In, array   ``ports`` links of :func:`~trebuchet.cores.router.contract
                               .LinkSignature`
    ``o``          Out, array  ``ports`` links
    ``dropped``    Out         bit p, for a cycle: a packet for nowhere came in at port p
    ``malformed``  Out         bit p, for a cycle: a flit at port p broke rule 2, or has a VC that
                               does not exist
    ``overflow``   Out         bit p, for a cycle: a flit at port p found no place and is lost
    ``idle``       Out         no packet is open, and what was sent has left the next buffer
    =============  ==========  ===================================================================

    1. Flits of one input, VC and output leave in the order in which they came, unchanged but for
       ``vc``. A port sends to itself, too.
    2. On one VC of an output packets do not interleave: from head to tail it belongs to one VC of
       one input. On different VCs they do, flit by flit.
    3. An output serves the flits that could leave now in round robin: one that could leave in each
       cycle waits for at most ``ports * vcs - 1`` others.
    4. The VCs of an input can all send in one cycle, to different outputs.

    Latency: 1 cycle from the last phit at an input to the first phit at an output, 2 without
    ``pass_through``. Throughput: one phit per port and cycle. Back-pressure: credits, see the
    contract. A credit goes back in the cycle after its flit left. Reset: empty; both ends of a link
    are reset together.

    Bad input: a packet for which there is no way is taken and dropped whole, its credits come
    back. A flit without a head before it is dropped up to the next tail; a head inside of a packet
    goes on as part of that packet. A flit of no VC is lost, and there is nobody to whom its credit
    could go. A flit sent without credit is stored if there is any place left, at the cost of the
    other VCs of this input; otherwise it is lost, as if it had not been sent: without its head a
    packet is dropped, without its tail it goes on until a tail comes. An endpoint that stops inside
    of a packet keeps that VC of its output; it must end what it has begun.
    """

    # The allocator needs no matching: as each VC of an input has its own read port of the buffer
    # (which costs LUT RAM, and that is cheap), inputs never have to choose between VCs, and each
    # output picks for itself among the first flits of all queues. Where a queue's flit goes was
    # found out when the flit came in, so that a stored flit asks from a register.
    def __init__(self, ports, config=None, route=None, pass_through=True):
        if not isinstance(ports, int) or ports < 2:
            raise ValueError(f"Number of ports must be an integer >= 2, not {ports!r}")
        self.ports, self.config = ports, config if config is not None else LinkConfig()
        self.pass_through = bool(pass_through)
        self.table = self._table(route if route is not None else crossbar(ports))
        link = LinkSignature(self.config)
        super().__init__(
            {
                "i": In(link).array(ports),
                "o": Out(link).array(ports),
                "dropped": Out(ports),
                "malformed": Out(ports),
                "overflow": Out(ports),
                "idle": Out(1),
            }
        )
        vcs, layout = self.config.vcs, self.config.flit_layout
        self.tag = data.StructLayout({"to": ports, "vc": layout["vc"].shape, "tail": 1})
        self.word_width = layout.size - layout["vc"].width - 2
        # No ports: for proofs.
        self.buffers = [
            ElasticBuffer(vcs, self.config.buffer_flits, self.word_width, self.tag, pass_through)
            for _ in range(ports)
        ]
        self.counters = [CreditCounter(self.config) for _ in range(ports)]
        self.arbiters = [RoundRobin(ports * vcs) for _ in range(ports)]
        self.senders = [PhitSender(self.config) for _ in range(ports)]
        self.receivers = [PhitReceiver(self.config) for _ in range(ports)]
        # Coming in: bit v, a packet is open on VC v; where it goes.
        self.opened = [Signal(vcs, name=f"open{p}") for p in range(ports)]
        self.ways = [
            [Signal(self.tag, name=f"way{p}_{v}") for v in range(vcs)] for p in range(ports)
        ]
        # Going out: bit v, the packet on VC v of this input owns a VC of an output.
        self.owns = [Signal(vcs, name=f"owns{p}") for p in range(ports)]
        # Bit w: VC w of this output has an owner.
        self.owned = [Signal(vcs, name=f"owned{o}") for o in range(ports)]
        self.grants = [Signal(ports * vcs, name=f"grant{o}") for o in range(ports)]

    def _table(self, route):
        """``table[port][vc]``: ``(output, VC)`` or None of each destination."""
        vcs = range(self.config.vcs)
        dests = range(1 << self.config.dest_width)
        table = [[[route(p, v, d) for d in dests] for v in vcs] for p in range(self.ports)]
        for p, rows in enumerate(table):
            for v, row in enumerate(rows):
                for d, way in enumerate(row):
                    if way is not None and not (way[0] in range(self.ports) and way[1] in vcs):
                        raise ValueError(
                            f"Way from port {p}, VC {v} to destination {d} must be one of "
                            f"{self.ports} ports and {len(vcs)} VCs, or None, not {way!r}"
                        )
        return table

    def elaborate(self, platform):
        m = Module()
        for p in range(self.ports):
            m.submodules[f"receiver{p}"] = self.receivers[p]
            m.submodules[f"buffer{p}"] = self.buffers[p]
            m.submodules[f"counter{p}"] = self.counters[p]
            m.submodules[f"arbiter{p}"] = self.arbiters[p]
            m.submodules[f"sender{p}"] = self.senders[p]
        for p in range(self.ports):
            self._input(m, p)
        for o in range(self.ports):
            self._output(m, o)
        for p in range(self.ports):
            self._leave(m, p)
        m.d.comb += self.idle.eq(
            ~Cat(self.opened, self.owns, [b.valid for b in self.buffers]).any()
            & Cat(counter.idle for counter in self.counters).all()
        )
        return m

    def _input(self, m, p):
        """Find the way of each flit, and store it."""
        link, receiver, buffer = self.i[p], self.receivers[p], self.buffers[p]
        flit, opened = receiver.flit, self.opened[p]
        m.d.comb += [receiver.valid.eq(link.valid), receiver.phit.eq(link.phit)]
        m.d.comb += buffer.word.eq(Value.cast(flit)[: self.word_width])
        # One flit comes in at a time, so that its way is found once, for whatever VC it has.
        tag, is_open, way = buffer.tag, Signal(), Signal(self.tag)
        m.d.comb += [
            is_open.eq(Array(opened)[flit.vc]),
            way.eq(Array(self.ways[p])[flit.vc]),
            tag.tail.eq(flit.tail),
        ]
        with m.If(is_open):
            m.d.comb += [tag.to.eq(way.to), tag.vc.eq(way.vc)]
        with m.Elif(flit.head):
            with m.Switch(flit.vc):
                for v, row in enumerate(self.table[p]):
                    with m.Case(v):
                        self._look_up(m, tag, flit.dest, row)
        for v in range(self.config.vcs):
            m.d.comb += buffer.put[v].eq(receiver.get & (flit.vc == v))
            with m.If(buffer.put[v] & ~buffer.overflow):
                m.d.sync += [opened[v].eq(~flit.tail), self.ways[p][v].eq(tag)]
        stored = buffer.put.any() & ~buffer.overflow
        nowhere = stored & ~is_open & flit.head & (tag.to == 0)
        broken = stored & (is_open == flit.head)
        m.d.sync += [
            self.dropped[p].eq(nowhere),
            self.malformed[p].eq(broken | (receiver.get & ~buffer.put.any())),
            self.overflow[p].eq(buffer.overflow),
        ]

    @staticmethod
    def _look_up(m, tag, dest, row):
        with m.Switch(dest):
            for d, way in enumerate(row):
                if way is not None:
                    with m.Case(d):
                        m.d.comb += [tag.to.eq(1 << way[0]), tag.vc.eq(way[1])]

    def _out_vcs(self, p, v):
        """VCs to which packets of VC v of input p may change."""
        return sorted({way[1] for way in self.table[p][v] if way is not None})

    def _leads(self, p, v, o):
        """Whether any packet of VC v of input p leaves at output o: if not, there is no logic."""
        return any(way is not None and way[0] == o for way in self.table[p][v])

    def _tag_vc(self, p, v):
        """The VC on which the first flit of a queue leaves; a constant where it can be."""
        vcs = self._out_vcs(p, v)
        return self.buffers[p].tags[v].vc if len(vcs) > 1 else (vcs[0] if vcs else 0)

    def _output(self, m, o):
        """Choose one flit, and send it."""
        vcs, counter, arbiter = self.config.vcs, self.counters[o], self.arbiters[o]
        sender, link, grant = self.senders[o], self.o[o], self.grants[o]
        for p in range(self.ports):
            for v, tag in enumerate(self.buffers[p].tags):
                if not self._leads(p, v, o):
                    continue
                out_vc = self._tag_vc(p, v)
                credit = _bit(counter.ready, out_vc)
                turn = self.owns[p][v] | ~_bit(self.owned[o], out_vc)
                m.d.comb += arbiter.i[p * vcs + v].eq(
                    self.buffers[p].valid[v] & tag.to[o] & credit & turn & sender.ready
                )
        m.d.comb += grant.eq(arbiter.o)
        port = _number(m, [grant[p * vcs : (p + 1) * vcs].any() for p in range(self.ports)])
        queue = _number(m, [grant[v::vcs].any() for v in range(vcs)])
        # Stored words of each VC, and the words that come in, chosen by port; then one of them.
        stored = Array(Array(b.words[v] for b in self.buffers)[port] for v in range(vcs))[queue]
        fresh = Array(b.word for b in self.buffers)[port]
        # A granted queue without a word in memory has the word that comes in.
        passes = 0
        if self.pass_through:
            ports = [Array(b.fresh[v] for b in self.buffers)[port] for v in range(vcs)]
            passes = Array(ports)[queue]
        out, tail, head, vc = sender.flit, Signal(), Signal(), Signal.like(sender.flit.vc)
        pairs = [(grant[k], *divmod(k, vcs)) for k in range(self.ports * vcs)]
        m.d.comb += [
            Value.cast(out)[: self.word_width].eq(Mux(passes, fresh, stored)),
            tail.eq(Cat(g & self.buffers[p].tags[v].tail for g, p, v in pairs).any()),
            head.eq(~Cat(g & self.owns[p][v] for g, p, v in pairs).any()),
            vc.eq(_any(Mux(g, self._tag_vc(p, v), 0) for g, p, v in pairs)),
            out.tail.eq(tail),
            out.head.eq(head),
            out.vc.eq(vc),
            sender.put.eq(grant.any()),
        ]
        for w in range(vcs):
            with m.If(sender.put & (vc == w)):
                m.d.sync += self.owned[o][w].eq(~tail)
                m.d.comb += counter.send[w].eq(1)
        m.d.comb += [
            counter.credit.eq(link.credit),
            link.valid.eq(sender.valid),
            link.phit.eq(sender.phit),
        ]

    def _leave(self, m, p):
        """Take from each queue what was granted, or goes nowhere."""
        vcs, buffer = self.config.vcs, self.buffers[p]
        for v in range(vcs):
            granted = Cat(self.grants[o][p * vcs + v] for o in range(self.ports)).any()
            tag = buffer.tags[v]
            m.d.comb += buffer.take[v].eq(granted | (buffer.valid[v] & (tag.to == 0)))
            with m.If(granted):
                m.d.sync += self.owns[p][v].eq(~tag.tail)
        m.d.sync += self.i[p].credit.eq(buffer.take)


def _bit(signal, index):
    """A bit of ``signal`` by number, which may be a constant."""
    return signal[index] if isinstance(index, int) else signal.bit_select(index, 1)


def _any(values):
    return reduce(or_, values)


def _number(m, bits):
    """Which of ``bits``, of which at most one is set."""
    number = Signal(range(len(bits)))
    for b, bit in enumerate(number):
        m.d.comb += bit.eq(Cat(one for k, one in enumerate(bits) if k >> b & 1).any())
    return number
