"""Many memory ports onto one."""

from amaranth.hdl import Cat, Const, Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .arbiter import StreamArbiter, StreamDemux
from .buffers import StreamFifo
from .memory import MemorySignature

__all__ = ["MemoryArbiter", "connect_narrow"]


def connect_narrow(m, requester, port):
    """Connect a requester to an arbiter's port whose tag may have more bits; those are 0."""
    for member in ("cmd", "wdata"):
        theirs, ours = getattr(requester, member), getattr(port, member)
        m.d.comb += [ours.valid.eq(theirs.valid), theirs.ready.eq(ours.ready)]
        for name in ours.payload.shape().members:
            m.d.comb += ours.payload[name].eq(theirs.payload[name])
    for member in ("rdata", "wdone"):
        theirs, ours = getattr(requester, member), getattr(port, member)
        m.d.comb += [theirs.valid.eq(ours.valid), ours.ready.eq(theirs.ready)]
        for name in theirs.payload.shape().members:
            m.d.comb += theirs.payload[name].eq(ours.payload[name])


class MemoryArbiter(wiring.Component):
    """Round-robin arbiter of ``n`` memory ports onto one.

    =========  ==========  ==================================================================
    ``ports``  In, array   ``n`` ports, ``MemorySignature(width, tag_width)``
    ``mem``    Out         one port, ``MemorySignature(width, mem_tag_width)``
    =========  ==========  ==================================================================

    Parameters: ``n``, ports, at least 1; ``width``; ``tag_width`` of the requesters;
    ``write_bursts``, accepted write commands whose data have not all passed, at most (at least 2);
    ``rdata_depth``, beats of a FIFO for the read data of each port, 0 for none.
    ``mem_tag_width`` is ``tag_width`` plus the bits of a port's number, which it puts on top.

    Commands take turns, one each; a write command that finds no room is passed over, so that it
    does not hold up reads. Write data follow the order of the write commands: a requester
    supplies them without waiting for anybody's response, and until it does, other ports' write data
    wait too. Responses go by the tag. Without ``rdata_depth`` a port that holds ``rdata.ready`` or
    ``wdone.ready`` low holds up the responses behind it: rule 7 of :mod:`trebuchet.cores.memory`
    makes that a while, never for ever. With ``rdata_depth`` at least what a port ever asks for at
    one time, read data never wait for other ports.

    Adds no latency to responses (2 cycles with ``rdata_depth``) nor to commands of the port whose
    turn it is, one cycle to others. Full throughput. Reset: idle; the responder must be reset too.
    """

    def __init__(self, n, width=32, tag_width=2, *, write_bursts=8, rdata_depth=0):
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"Number of ports must be an integer >= 1, not {n!r}")
        if not isinstance(write_bursts, int) or write_bursts < 2:
            raise ValueError(f"Write bursts must be an integer >= 2, not {write_bursts!r}")
        if not isinstance(rdata_depth, int) or rdata_depth == 1 or rdata_depth < 0:
            raise ValueError(f"Depth of read data must be 0 or >= 2, not {rdata_depth!r}")
        self.n, self.width, self.tag_width = n, width, tag_width
        self.write_bursts, self.rdata_depth = write_bursts, rdata_depth
        self.mem_tag_width = tag_width + (n - 1).bit_length()
        super().__init__(
            {
                "ports": In(MemorySignature(width, tag_width)).array(n),
                "mem": Out(MemorySignature(width, self.mem_tag_width)),
            }
        )
        # Owners of the write commands whose data are to come. No port: an attribute for proofs.
        self.order = StreamFifo(range(n), write_bursts)

    def elaborate(self, platform):
        m = Module()
        self._commands(m)
        self._responses(m, "rdata", self.rdata_depth)
        self._responses(m, "wdone", 0)
        return m

    # `order` steers the write data. A write command is hidden from the arbiter while `order` is
    # full; one that the arbiter already shows stays visible, because `order` fills only when the
    # shown command moves.
    def _commands(self, m):
        mem = self.mem
        m.submodules.arbiter = arbiter = StreamArbiter(mem.cmd.payload.shape(), self.n)
        m.submodules.order = order = self.order
        for k in range(self.n):
            theirs, ours = self.ports[k].cmd, arbiter.i[k]
            visible = ~theirs.payload.write | order.i.ready
            m.d.comb += [
                ours.valid.eq(theirs.valid & visible),
                theirs.ready.eq(ours.ready & visible),
                ours.payload.write.eq(theirs.payload.write),
                ours.payload.addr.eq(theirs.payload.addr),
                ours.payload.beats.eq(theirs.payload.beats),
                ours.payload.tag.eq(Cat(theirs.payload.tag, Const(k, range(self.n)))),
            ]
        wiring.connect(m, arbiter.o, wiring.flipped(mem.cmd))
        m.d.comb += [
            order.i.valid.eq(mem.cmd.valid & mem.cmd.ready & mem.cmd.payload.write),
            order.i.payload.eq(arbiter.index),
            order.o.ready.eq(mem.wdata.valid & mem.wdata.ready & mem.wdata.payload.last),
        ]
        with m.Switch(order.o.payload):
            for k in range(self.n):
                with m.Case(k):
                    theirs = self.ports[k].wdata
                    m.d.comb += [
                        mem.wdata.payload.eq(theirs.payload),
                        mem.wdata.valid.eq(theirs.valid & order.o.valid),
                        theirs.ready.eq(mem.wdata.ready & order.o.valid),
                    ]

    def _responses(self, m, member, depth):
        source = getattr(self.mem, member)
        m.submodules[f"{member}_demux"] = demux = StreamDemux(source.payload.shape(), self.n)
        wiring.connect(m, wiring.flipped(source), demux.i)
        m.d.comb += demux.select.eq(source.payload.tag[self.tag_width :])
        for k in range(self.n):
            target, out = getattr(self.ports[k], member), demux.o[k]
            fields = {name: out.payload[name] for name in target.payload.shape().members}
            fields["tag"] = out.payload.tag[: self.tag_width]
            if depth:
                fifo = StreamFifo(target.payload.shape(), depth)
                m.submodules[f"{member}_fifo{k}"] = fifo
                wiring.connect(m, fifo.o, wiring.flipped(target))
                target = fifo.i
            m.d.comb += [target.valid.eq(out.valid), out.ready.eq(target.ready)]
            m.d.comb += [target.payload[name].eq(value) for name, value in fields.items()]
