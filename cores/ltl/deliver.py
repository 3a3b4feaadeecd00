"""Where messages leave: one buffer a virtual channel, filled only with whole good messages."""

from amaranth.hdl import Array, Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import PacketFifo, StreamFifo
from ..stream import beat_layout

__all__ = ["Deliver"]


class Deliver(wiring.Component):
    """Buffers of the message outputs.

    ===============  ==========  =================================================================
    ``valid``        In          a beat of a message for channel ``vc``; ``error`` in the last one
    ``beat``         In          takes the message back
    ``vc``           In
    ``commit``       In          for one cycle, with the good message's last beat: it has
    ``words``        In          ``words`` beats and is
    ``connection``   In          of this connection
    ``level``        Out, array  beats of messages that have been committed
    ``o``            Out, array  messages (``message_layout``), one stream a virtual channel
    ``done``         Out         connections of which a message has left: one beat each
    ``overflow``     Out         for one cycle: a message found no room. Never, if its writer minds
                                 ``level``
    ===============  ==========  =================================================================

    *Latency*: 3 cycles from ``commit`` to the first beat. *Throughput*: a beat a cycle in, and out
    of every channel. *Back-pressure*: a channel's output may wait at will; ``done`` must be taken
    some time, since a channel's next message ends only then. *Reset*: empty.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "valid": In(1),
                "beat": In(beat_layout(config.width)),
                "vc": In(config.vc_layout),
                "commit": In(1),
                "words": In(range(config.message_beats + 1)),
                "connection": In(config.connection_layout),
                "level": Out(range(config.buffer_beats + 1)).array(config.vcs),
                "o": Out(stream.Signature(config.message_layout)).array(config.vcs),
                "done": Out(stream.Signature(config.connection_layout)),
                "overflow": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        pending = Signal(config.vcs)
        finished = [Signal(config.connection_layout, name=f"done{v}") for v in range(config.vcs)]
        overflows = []
        self.pending, self.finished, self.queues = pending, finished, []
        for v in range(config.vcs):
            m.submodules[f"beats{v}"] = beats = PacketFifo(config.width, config.buffer_beats)
            m.submodules[f"origins{v}"] = origins = StreamFifo(
                config.connection_layout, config.buffer_beats, registered=True
            )
            self.queues.append((beats, origins))
            overflows.append(beats.dropped_overflow)
            mine, out, moves = Signal(name=f"mine{v}"), self.o[v], Signal(name=f"moves{v}")
            waits = beats.o.payload.last & pending[v]
            m.d.comb += [
                mine.eq(self.vc == v),
                beats.i.valid.eq(self.valid & mine),
                beats.i.payload.eq(self.beat),
                origins.i.valid.eq(self.commit & mine),
                origins.i.payload.eq(self.connection),
                out.valid.eq(beats.o.valid & origins.o.valid & ~waits),
                out.payload.eq(Cat(beats.o.payload, origins.o.payload)),
                moves.eq(out.valid & out.ready),
                beats.o.ready.eq(moves),
                origins.o.ready.eq(moves & out.payload.last),
            ]
            gained = Signal.like(self.words, name=f"gained{v}")
            with m.If(self.commit & mine):
                m.d.comb += gained.eq(self.words)
            m.d.sync += self.level[v].eq(self.level[v] + gained - moves)
            with m.If(moves & out.payload.last):
                m.d.sync += [pending[v].eq(1), finished[v].eq(out.payload.connection)]
        m.d.comb += self.overflow.eq(Cat(*overflows).any())
        self._report(m, pending, finished)
        return m

    def _report(self, m, pending, finished):
        """One ``done`` after the other; channels take turns."""
        n = self.config.vcs
        self.turn = turn = Signal(range(n))
        m.d.comb += [
            self.done.valid.eq(pending.bit_select(turn, 1)),
            self.done.payload.eq(Array(finished)[turn]),
        ]
        with m.If(~self.done.valid | self.done.ready):
            m.d.sync += turn.eq((turn + 1) if n & (n - 1) == 0 else Array([*range(1, n), 0])[turn])
        with m.If(self.done.valid & self.done.ready):
            m.d.sync += pending.bit_select(turn, 1).eq(0)
