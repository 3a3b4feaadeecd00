"""Joining and splitting streams: arbiters for beats and whole packets, demultiplexer.

All obey the rules of :mod:`trebuchet.cores.stream`.
"""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from .stream import beat_layout

__all__ = ["PacketArbiter", "StreamArbiter", "StreamDemux"]


class StreamArbiter(wiring.Component):
    """Round-robin arbiter: many streams of one shape into one.

    =========  ===========  ===============================================================
    ``i``      In, array    ``n`` streams of ``shape``
    ``o``      Out          stream of ``shape``
    ``index``  Out          which input ``o`` shows; with ``o.valid`` set, stable until the
                            transfer (with ``last``: until the unit's end)
    =========  ===========  ===============================================================

    Parameters: ``shape``; ``n``, number of inputs, at least 1; ``last``, name of the payload field
    that marks the final beat of a unit which must not be interleaved with others, or None when
    every beat stands alone.

    ``o`` is combinational from the granted input, the grant is a register. One beat a cycle
    whenever any input has one in succession: the grant moves to the next waiting input as a unit
    ends, and stays where it is when nobody else waits. Latency 0 for the granted input, 1 cycle
    for another when ``o`` was idle. An input waits for at most ``n - 1`` units of others. Reset:
    input 0 is granted, no unit is under way.
    """

    def __init__(self, shape, n, last=None):
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"Number of arbiter inputs must be an integer >= 1, not {n!r}")
        if last is not None and (
            not isinstance(shape, data.StructLayout) or last not in shape.members
        ):
            raise ValueError(f"Field {last!r} must be a member of the payload, not in {shape!r}")
        self.shape, self.n, self.last = shape, n, last
        super().__init__(
            {
                "i": In(stream.Signature(shape)).array(n),
                "o": Out(stream.Signature(shape)),
                "index": Out(range(n)),
            }
        )
        # A unit is under way: its first beat has moved, its last has not. No port: for proofs.
        self.started = Signal()

    def elaborate(self, platform):
        m = Module()
        inputs = [self.i[k] for k in range(self.n)]
        grant, following = Signal(range(self.n)), Signal(range(self.n))
        ends = self.o.payload[self.last] if self.last is not None else 1
        free = Signal()

        m.d.comb += self.index.eq(grant)
        # The next waiting input after the granted one; the granted one when nobody else waits.
        m.d.comb += following.eq(grant)
        with m.Switch(grant):
            for k in range(self.n):
                with m.Case(k):
                    m.d.comb += [
                        self.o.valid.eq(inputs[k].valid),
                        self.o.payload.eq(inputs[k].payload),
                        inputs[k].ready.eq(self.o.ready),
                    ]
                    for step in reversed(range(1, self.n)):
                        other = (k + step) % self.n
                        with m.If(inputs[other].valid):
                            m.d.comb += following.eq(other)
        moves = self.o.valid & self.o.ready
        m.d.comb += free.eq(Mux(moves, ends, ~self.started & ~self.o.valid))
        if self.last is not None:
            with m.If(moves):
                m.d.sync += self.started.eq(~ends)
        with m.If(free):
            m.d.sync += grant.eq(following)
        return m


class PacketArbiter(StreamArbiter):
    """:class:`StreamArbiter` for packet streams: whole packets, in turn.

    Parameters: ``width``, data path of all streams; ``n``, number of inputs.
    """

    def __init__(self, width, n):
        self.width = width
        super().__init__(beat_layout(width), n, last="last")


class StreamDemux(wiring.Component):
    """Sends each beat of a stream to the output that ``select`` names.

    ==========  ==========  =================================================================
    ``i``       In          stream of ``shape``
    ``select``  In          output for the beat that ``i`` offers: belongs to ``i.payload``, so
                            it does not change while ``i.valid`` is 1 and ``i.ready`` 0; for packets
                            it stays the same from first to last beat
    ``o``       Out, array  ``n`` streams of ``shape``
    ==========  ==========  =================================================================

    Parameters: ``shape``; ``n``, number of outputs, at least 1. Combinational: latency 0, one beat
    a cycle, back-pressure comes from the selected output. A beat for an output that does not
    exist is swallowed, so that nothing hangs.
    """

    def __init__(self, shape, n):
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"Number of outputs must be an integer >= 1, not {n!r}")
        self.shape, self.n = shape, n
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "select": In(range(n)),
                "o": Out(stream.Signature(shape)).array(n),
            }
        )

    def elaborate(self, platform):
        m = Module()
        readies = Array([self.o[k].ready for k in range(self.n)])
        m.d.comb += self.i.ready.eq(Mux(self.select < self.n, readies[self.select], 1))
        for k in range(self.n):
            m.d.comb += [
                self.o[k].valid.eq(self.i.valid & (self.select == k)),
                self.o[k].payload.eq(self.i.payload),
            ]
        return m
