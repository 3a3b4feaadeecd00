"""What the receiver owes its peers: ACKs, NACKs, congestion notifications and credits."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from .config import Kind
from .receive import receive_layout

__all__ = ["Responder"]


class Responder(wiring.Component):
    """Makes ACK frames from requests, and keeps the credits of the receive connections.

    ===============  ====  =====================================================================
    ``request``      In    connections that owe an ACK; always ready but for ``lost``
    ``done``         In    connections of which a message has left the output's buffer
    ``opened``       In    receive connections that were opened
    ``entry_addr``   Out   read port of the receive table
    ``entry``        In    a cycle later
    ``total``        In    and how many messages were ever delivered by it, modulo
    ``frame``        Out   ACK frames for the framer
    ``lost``         Out   for one cycle: a request was dropped, because too many wait
    ===============  ====  =====================================================================

    An ACK says what is true when it is made: the next sequence number, and for how many more
    frames the connection has room (``credit`` of its table entry, less what waits in the output's
    buffer, also of earlier incarnations; 0 if more waits). Successive requests of one connection
    become one ACK while the framer is busy. When messages have left, an ACK is made of its own
    accord if the peer's credit has grown by half of all since the last one, so that a peer without
    credit hears of it.

    *Latency*: 4 cycles. *Throughput*: one ACK in 4 cycles. *Back-pressure*: ``frame`` may wait at
    will; then up to 64 requests wait, further ones are lost, as an ACK on the wire may be.
    *Reset*: nothing owed, after ``connections`` cycles; connections must be opened anew.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "request": In(stream.Signature(config.request_layout)),
                "done": In(stream.Signature(config.connection_layout)),
                "opened": In(stream.Signature(config.connection_layout)),
                "entry_addr": Out(config.connection_layout),
                "entry": In(receive_layout(config)),
                "total": In(config.total_layout),
                "frame": Out(stream.Signature(config.frame_layout)),
                "lost": Out(1),
            }
        )

    # `newest` holds the last request until the next one comes or it is served: requests of the
    # same connection merge there.
    def elaborate(self, platform):
        m = Module()
        config = self.config
        count = config.total_layout
        layout = data.StructLayout({"consumed": count, "advertised": count})
        m.submodules.credits = self.credits = credits = Memory(
            shape=layout, depth=config.connections, init=[], attrs={"ram_style": "block"}
        )
        read, write = credits.read_port(), credits.write_port()
        next_request = self._queue(m)
        connection = Signal(config.connection_layout)
        asked, left, begun = Signal(), Signal(), Signal()
        flags = Signal(config.request_layout)
        consumed, limit, grown, waiting = (
            Signal(count, name=name) for name in ("consumed", "limit", "grown", "waiting")
        )
        total, room = Signal(count), Signal(9)
        state, entry = Signal(layout), Signal(receive_layout(config))
        m.d.comb += [
            read.addr.eq(self.entry_addr),
            write.addr.eq(connection),
            consumed.eq(state.consumed + left),
            grown.eq(limit - state.advertised),
            room.eq(entry.credit - waiting),
        ]
        frame = self.frame.payload
        with m.If(self.frame.ready):
            m.d.sync += self.frame.valid.eq(0)
        with m.FSM(name="respond") as self.fsm:
            with m.State("CLEAR"):
                m.d.comb += write.en.eq(1)
                m.d.sync += connection.eq(connection + 1)
                with m.If(connection == config.connections - 1):
                    m.next = "IDLE"
            with m.State("IDLE"):
                which = Signal(config.connection_layout)
                m.d.comb += self.entry_addr.eq(which)
                m.d.sync += [connection.eq(which), flags.eq(0)]
                m.d.sync += [asked.eq(0), left.eq(0), begun.eq(0)]
                with m.If(self.opened.valid & ~self.frame.valid):
                    m.d.comb += [self.opened.ready.eq(1), which.eq(self.opened.payload)]
                    m.d.sync += begun.eq(1)
                    m.next = "LOAD"
                with m.Elif(self.done.valid & ~self.frame.valid):
                    m.d.comb += [self.done.ready.eq(1), which.eq(self.done.payload)]
                    m.d.sync += left.eq(1)
                    m.next = "LOAD"
                with m.Elif(next_request.valid & ~self.frame.valid):
                    m.d.comb += [
                        next_request.ready.eq(1),
                        which.eq(next_request.payload.connection),
                    ]
                    m.d.sync += [asked.eq(1), flags.eq(next_request.payload)]
                    m.next = "LOAD"
            with m.State("LOAD"):
                m.d.sync += [entry.eq(self.entry), total.eq(self.total), state.eq(read.data)]
                m.next = "ADD"
            with m.State("ADD"):
                m.d.sync += [limit.eq(consumed + entry.credit), waiting.eq(total - consumed)]
                m.next = "DECIDE"
            with m.State("DECIDE"):
                tell = Signal()
                m.d.comb += [
                    tell.eq(asked | (left & entry.open & (grown >= (entry.credit + 1) >> 1))),
                    write.en.eq(1),
                    write.data.consumed.eq(consumed),
                    write.data.advertised.eq(Mux(tell | begun, limit, state.advertised)),
                ]
                m.d.sync += [
                    self.frame.valid.eq(tell),
                    frame.eq(0),
                    frame.kind.eq(Kind.ACK),
                    frame.connection.eq(connection),
                    frame.seq.eq(entry.expected),
                    frame.credit.eq(Mux(room[8], 0, room)),
                    frame.nack.eq(flags.nack),
                    frame.cnp.eq(flags.cnp),
                ]
                m.next = "IDLE"
        return m

    def _queue(self, m):
        """Requests in order, merged; returns the stream of those to serve."""
        layout = self.config.request_layout
        m.submodules.older = older = StreamFifo(layout, 64)
        newest, have, same = Signal(layout), Signal(), Signal()
        self.older, self.newest, self.have = older, newest, have
        request, serve = self.request, stream.Signature(layout).create()
        self.serve = serve
        m.d.comb += [
            request.ready.eq(1),
            same.eq(have & (request.payload.connection == newest.connection)),
            older.i.payload.eq(newest),
            serve.valid.eq(older.o.valid | have),
            serve.payload.eq(Mux(older.o.valid, older.o.payload.as_value(), newest)),
            older.o.ready.eq(serve.ready),
        ]
        # Only when nothing at all is in the queue may the newest overtake it.
        empty = older.level == 0
        takes = serve.ready & ~older.o.valid & have & empty
        with m.If(~older.o.valid & ~empty):
            m.d.comb += serve.valid.eq(0)
        with m.If(request.valid):
            m.d.sync += [newest.eq(request.payload), have.eq(1)]
            with m.If(same & ~takes):
                m.d.sync += [
                    newest.nack.eq(newest.nack | request.payload.nack),
                    newest.cnp.eq(newest.cnp | request.payload.cnp),
                ]
            with m.Elif(have & ~takes):
                m.d.comb += [older.i.valid.eq(1), self.lost.eq(~older.i.ready)]
        with m.Elif(takes):
            m.d.sync += have.eq(0)
        return serve
