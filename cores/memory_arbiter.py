"""Many memory ports onto one."""

from amaranth.hdl import Cat, Const, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .arbiter import StreamArbiter, StreamDemux
from .buffers import StreamFifo
from .memory import BEATS_WIDTH, MemorySignature
from .priority_arbiter import PATIENCE, PriorityArbiter
from .write_buffer import WriteBuffer

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
    """Arbiter of ``n`` memory ports onto one: by class, then round robin.

    =========  ==========  ==================================================================
    ``ports``  In, array   ``n`` ports, ``MemorySignature(width, tag_width)``
    ``mem``    Out         one port, ``MemorySignature(width, mem_tag_width)``
    =========  ==========  ==================================================================

    Parameters: ``n``, ports, at least 1; ``width``; ``tag_width`` of the requesters;
    ``write_bursts``, accepted write commands whose data have not all passed, at most (at least 2);
    ``rdata_depth``, beats of a FIFO for the read data of each port, 0 for none; ``priority``, the
    class of each port, 0 (first) or 1, all 0 by default; ``patience``, commands of class 0 that
    pass a waiting class 1, at most; ``prompt``, ports without a write buffer, none by default.
    ``mem_tag_width`` is ``tag_width`` plus the bits of a port's number, which it puts on top.

    **Write data** follow the order of the write commands. A port that is not prompt has a
    :class:`~trebuchet.cores.write_buffer.WriteBuffer`: its write commands take part only when all
    their data are stored, and then these pass a beat a cycle. Such a port may be as slow as it
    likes, or stop in the middle of a burst: no other port's commands or data wait for it.

    A **prompt** port has no buffer and must keep this rule: within a bounded time after its write
    command was accepted it offers each beat, and that time depends on no response of the memory
    and on no other port. Ports that only read are prompt. A prompt port that breaks the rule delays
    other ports' write data and, once ``write_bursts`` commands wait, their commands.

    **Waiting.** While a command waits (at the output of the buffer, if its port has one), at most
    ``waiting_bound(port)`` commands of other ports are accepted at ``mem``:

    - all ports of one class: ``n - 1``
    - class 0 of n0 ports, class 1 of n1, patience P: ``n0 + (n0 - 1) // P``
    - class 1: ``n1 * (P + 1) - 1``

    A read of a buffered port may wait for one complete write of its own port first, and then for
    as many others again. In cycles: let ``mem`` take a command that it is offered within C cycles,
    and a beat of write data pass at least every B cycles while one is due. Then a command is
    accepted within ``(waiting_bound(port) + 1) * (C + 64 * B + 2) + 1`` cycles
    (``waiting_cycles``): each command may wait for C, and for one burst's data if ``write_bursts``
    of them are waiting. Its data pass after those of at most ``write_bursts - 1`` bursts.

    Responses go by the tag. Without ``rdata_depth`` a port that holds ``rdata.ready`` or
    ``wdone.ready`` low holds up the responses behind it: rule 7 of :mod:`trebuchet.cores.memory`
    makes that a while, never for ever. With ``rdata_depth`` at least what a port ever asks for at
    one time, read data never wait for other ports.

    Adds no latency to responses (2 cycles with ``rdata_depth``) nor to commands of the port whose
    turn it is, one cycle to others; a write of a buffered port waits for its data and 2 cycles
    more. Full throughput; a buffered port has the data of one write burst under way. Reset: idle;
    requesters and responder must be reset too.
    """

    def __init__(
        self,
        n,
        width=32,
        tag_width=2,
        *,
        write_bursts=8,
        rdata_depth=0,
        priority=None,
        patience=PATIENCE,
        prompt=(),
    ):
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"Number of ports must be an integer >= 1, not {n!r}")
        if not isinstance(write_bursts, int) or write_bursts < 2:
            raise ValueError(f"Write bursts must be an integer >= 2, not {write_bursts!r}")
        if not isinstance(rdata_depth, int) or rdata_depth == 1 or rdata_depth < 0:
            raise ValueError(f"Depth of read data must be 0 or >= 2, not {rdata_depth!r}")
        self.n, self.width, self.tag_width = n, width, tag_width
        self.write_bursts, self.rdata_depth = write_bursts, rdata_depth
        self.priority = (0,) * n if priority is None else tuple(priority)
        if len(self.priority) != n or not set(self.priority) <= {0, 1}:
            raise ValueError(f"Priority must be 0 or 1 for each of {n} ports, not {priority!r}")
        self.prompt = frozenset(prompt)
        if not self.prompt <= set(range(n)):
            raise ValueError(f"Prompt ports must be among {n} ports, not {prompt!r}")
        self.mem_tag_width = tag_width + (n - 1).bit_length()
        super().__init__(
            {
                "ports": In(MemorySignature(width, tag_width)).array(n),
                "mem": Out(MemorySignature(width, self.mem_tag_width)),
            }
        )
        # No ports: for proofs. Owners of the write commands whose data are to come.
        self.order = StreamFifo(range(n), write_bursts)
        shape = self.mem.cmd.payload.shape()
        if len(set(self.priority)) == 1:
            self.arbiter = StreamArbiter(shape, n)
        else:
            self.arbiter = PriorityArbiter(shape, self.priority, patience)

    def waiting_bound(self, port):
        """Return the number of other ports' commands, at most, that pass a waiting command."""
        if isinstance(self.arbiter, PriorityArbiter):
            return self.arbiter.waiting_bound(port)
        return self.n - 1

    def waiting_cycles(self, port, command, beat):
        """Return the cycles, at most, until a command is accepted; see the class."""
        burst = beat << BEATS_WIDTH
        return (self.waiting_bound(port) + 1) * (command + burst + 2) + 1

    def elaborate(self, platform):
        m = Module()
        sources = [self._source(m, k) for k in range(self.n)]
        self._commands(m, sources)
        self._write_data(m, sources)
        self._responses(m, sources, "rdata", self.rdata_depth)
        self._responses(m, sources, "wdone", 0)
        return m

    def _source(self, m, k):
        """Port ``k``, behind its buffer if it has one."""
        if k in self.prompt:
            return self.ports[k]
        m.submodules[f"buffer{k}"] = buffer = WriteBuffer(self.width, self.tag_width)
        wiring.connect(m, wiring.flipped(self.ports[k]), buffer.i)
        return buffer.o

    # `order` steers the write data. A write command that finds it full is shown when it has room,
    # and keeps its turn: were it passed over, others could take the room again and again. It stays
    # visible, because `order` fills only when the shown command moves.
    def _commands(self, m, sources):
        mem, order = self.mem, self.order
        m.submodules.arbiter = arbiter = self.arbiter
        m.submodules.order = order
        for k, source in enumerate(sources):
            theirs, ours = source.cmd, arbiter.i[k]
            m.d.comb += theirs.ready.eq(ours.ready)
            m.d.comb += ours.valid.eq(theirs.valid)
            m.d.comb += [
                ours.payload[name].eq(theirs.payload[name]) for name in ("write", "addr", "beats")
            ]
            m.d.comb += ours.payload.tag.eq(Cat(theirs.payload.tag, Const(k, range(self.n))))
        visible = Signal()
        m.d.comb += [
            visible.eq(~arbiter.o.payload.write | order.i.ready),
            mem.cmd.valid.eq(arbiter.o.valid & visible),
            mem.cmd.payload.eq(arbiter.o.payload),
            arbiter.o.ready.eq(mem.cmd.ready & visible),
            order.i.valid.eq(mem.cmd.valid & mem.cmd.ready & mem.cmd.payload.write),
            order.i.payload.eq(arbiter.index),
            order.o.ready.eq(mem.wdata.valid & mem.wdata.ready & mem.wdata.payload.last),
        ]

    def _write_data(self, m, sources):
        mem, order = self.mem, self.order
        with m.Switch(order.o.payload):
            for k, source in enumerate(sources):
                with m.Case(k):
                    theirs = source.wdata
                    m.d.comb += [
                        mem.wdata.payload.eq(theirs.payload),
                        mem.wdata.valid.eq(theirs.valid & order.o.valid),
                        theirs.ready.eq(mem.wdata.ready & order.o.valid),
                    ]

    def _responses(self, m, sources, member, depth):
        source = getattr(self.mem, member)
        m.submodules[f"{member}_demux"] = demux = StreamDemux(source.payload.shape(), self.n)
        wiring.connect(m, wiring.flipped(source), demux.i)
        m.d.comb += demux.select.eq(source.payload.tag[self.tag_width :])
        for k in range(self.n):
            target, out = getattr(sources[k], member), demux.o[k]
            fields = {name: out.payload[name] for name in target.payload.shape().members}
            fields["tag"] = out.payload.tag[: self.tag_width]
            if depth:
                fifo = StreamFifo(target.payload.shape(), depth)
                m.submodules[f"{member}_fifo{k}"] = fifo
                m.d.comb += [target.valid.eq(fifo.o.valid), fifo.o.ready.eq(target.ready)]
                m.d.comb += [target.payload[name].eq(fifo.o.payload[name]) for name in fields]
                target = fifo.i
            m.d.comb += [target.valid.eq(out.valid), out.ready.eq(target.ready)]
            m.d.comb += [target.payload[name].eq(value) for name, value in fields.items()]
