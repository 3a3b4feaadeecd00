"""Between packet streams and links of flits: what a role, the TCP engine or LTL has at its port.

A packet of :mod:`trebuchet.cores.stream` becomes a packet of flits, a beat a flit. ``empty`` and
``error`` go in the flit's ``user`` bits, ``error`` on top. Both directions have one packet stream
for each VC, so that a VC that waits holds up no other.
"""

from amaranth import Array, Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature
from .arbiter import RoundRobin
from .buffer import ElasticBuffer
from .contract import LinkSignature
from .credits import CreditCounter
from .phit import PhitReceiver, PhitSender

__all__ = ["FlitsToPackets", "PacketsToFlits", "user_width"]


def user_width(flit_width):
    """Bits beside the data that the adapters need for flits of ``flit_width`` bits."""
    return (flit_width // 8 - 1).bit_length() + 1


def _check(config):
    signature = PacketSignature(config.flit_width)
    if config.user_width != user_width(config.flit_width):
        raise ValueError(
            f"User width must be {user_width(config.flit_width)} bits for flits of "
            f"{config.flit_width}, not {config.user_width}"
        )
    return signature


class PacketsToFlits(wiring.Component):
    """Sends packets into a router, or any other receiver of flits.

    ========  ==========  ====================================================================
    ``i``     In, array   a packet stream for each VC
    ``dest``  In, array   where the packet goes that stream v offers: stays the same from its
                          first to its last beat
    ``o``     Out         link
    ``idle``  Out         no beat is offered, and what was sent has left the receiver's buffer
    ========  ==========  ====================================================================

    Parameters: ``config``, a :class:`~trebuchet.cores.router.contract.LinkConfig` whose flit width
    is a data path width and whose user width is :func:`user_width`.

    Latency 1 cycle; a beat a cycle over all streams, which take turns beat by beat as far as they
    have credits. Back-pressure: a stream waits while its VC has no credit. Reset: the link begins
    anew, so its other end is reset, too. Bad input: a packet without end keeps its VC.
    """

    def __init__(self, config):
        stream = _check(config)
        self.config = config
        super().__init__(
            {
                "i": In(stream).array(config.vcs),
                "dest": In(config.dest_width).array(config.vcs),
                "o": Out(LinkSignature(config)),
                "idle": Out(1),
            }
        )
        # No ports: for proofs.
        self.counter, self.sender = CreditCounter(config), PhitSender(config)
        self.arbiter = RoundRobin(config.vcs)

    def elaborate(self, platform):
        m = Module()
        vcs = range(self.config.vcs)
        m.submodules.counter = counter = self.counter
        m.submodules.arbiter = arbiter = self.arbiter
        m.submodules.sender = sender = self.sender
        valid = Cat(self.i[v].valid for v in vcs)
        vc = Signal.like(sender.flit.vc)
        for b, bit in enumerate(vc):
            m.d.comb += bit.eq(Cat(arbiter.o[v] for v in vcs if v >> b & 1).any())
        for v in vcs:
            m.d.comb += [
                arbiter.i[v].eq(self.i[v].valid & counter.ready[v] & sender.ready),
                self.i[v].ready.eq(arbiter.o[v]),
            ]
        beats = {name: Array(self.i[v].payload[name] for v in vcs)[vc] for name in BEAT}
        m.d.comb += [
            sender.put.eq(arbiter.o.any()),
            sender.flit.data.eq(beats["data"]),
            sender.flit.user.eq(Cat(beats["empty"], beats["error"])),
            sender.flit.dest.eq(Array(self.dest[v] for v in vcs)[vc]),
            sender.flit.vc.eq(vc),
            sender.flit.head.eq(beats["first"]),
            sender.flit.tail.eq(beats["last"]),
            counter.send.eq(arbiter.o),
            counter.credit.eq(self.o.credit),
            self.o.valid.eq(sender.valid),
            self.o.phit.eq(sender.phit),
            self.idle.eq(counter.idle & ~valid.any()),
        ]
        return m


class FlitsToPackets(wiring.Component):
    """Receives packets from a router, or any other sender of flits.

    ============  ==========  ================================================================
    ``i``         In          link
    ``o``         Out, array  a packet stream for each VC
    ``overflow``  Out         for a cycle: a flit that had no credit is lost
    ============  ==========  ================================================================

    Parameters: ``config`` as of :class:`PacketsToFlits`. It has the buffer that the link's sender
    counts on. Latency 1 cycle from the flit's last phit, a beat a cycle on each stream. A stream
    that is not taken holds its VC's reserve and what it has of the shared places, nothing else.
    Between two adapters a credit takes 4 cycles to come back (3 between routers): beside a stream
    that waits another keeps its full pace if ``reserved`` is at least 4.
    Reset: empty; the link's other end is reset, too. Bad input: as the flits, so the beats: the
    sender keeps rule 2 of the contract (a router does).
    """

    def __init__(self, config):
        stream = _check(config)
        self.config = config
        super().__init__(
            {
                "i": In(LinkSignature(config)),
                "o": Out(stream).array(config.vcs),
                "overflow": Out(1),
            }
        )
        bits = config.flit_width + config.user_width
        # No ports: for proofs.
        self.receiver = PhitReceiver(config)
        self.buffer = ElasticBuffer(config.vcs, config.buffer_flits, bits, 2, through=False)

    def elaborate(self, platform):
        m = Module()
        config, buffer = self.config, self.buffer
        m.submodules.receiver = receiver = self.receiver
        m.submodules.buffer = buffer
        flit = receiver.flit
        m.d.comb += [
            receiver.valid.eq(self.i.valid),
            receiver.phit.eq(self.i.phit),
            buffer.word.eq(Cat(flit.data, flit.user)),
            buffer.tag.eq(Cat(flit.head, flit.tail)),
        ]
        for v in range(config.vcs):
            o, word, tag = self.o[v], buffer.words[v], buffer.tags[v]
            m.d.comb += [
                buffer.put[v].eq(receiver.get & (flit.vc == v)),
                o.valid.eq(buffer.valid[v]),
                o.payload.data.eq(word),
                Cat(o.payload.empty, o.payload.error).eq(word[config.flit_width :]),
                Cat(o.payload.first, o.payload.last).eq(tag),
                buffer.take[v].eq(o.valid & o.ready),
            ]
        m.d.sync += [self.i.credit.eq(buffer.take), self.overflow.eq(buffer.overflow)]
        return m


BEAT = ("data", "empty", "first", "last", "error")
