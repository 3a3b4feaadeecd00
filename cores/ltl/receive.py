"""The receiver: receive connection table, order, acknowledgement.

Source: cloud-scale-acceleration, section V.A.
"""

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..stream import beat_layout
from .config import TIME_BITS, Kind
from .parser import HEADER

__all__ = ["Receiver", "receive_layout"]

EVENTS = (
    "delivered",
    "duplicates",
    "out_of_order",
    "unknown",
    "incarnation",
    "no_room",
    "marked",
    "ack_overflow",
)


def receive_layout(config):
    """Entry of the receive table."""
    return data.StructLayout(
        {
            "open": 1,
            "nacked": 1,  # a NACK for `expected` was sent
            "vc": config.vc_layout,
            "credit": 8,  # frames that the connection may have in the output's buffer
            "incarnation": 16,
            "expected": config.seq_layout,
            "ahead": config.seq_layout,  # the last frame out of order
            "notified": TIME_BITS,  # when the last congestion notification was asked for
        }
    )


class Receiver(wiring.Component):
    """Judges each frame that the parser has taken apart; delivers, acknowledges, counts.

    ================  ====  ====================================================================
    ``lookup`` …      In    the parser's outputs of these names
    ``command``       In    opens and closes connections
    ``valid`` …       Out   to the output buffers (``deliver.py``)
    ``level``         In    their fill
    ``request``       Out   connections that owe an ACK
    ``response``      Out   what ACK frames said, for the sender
    ``entry_addr``    In    second read port of the table: the entry of connection
    ``entry``         Out   ``entry_addr``, a cycle later
    ``total``         Out   and how many messages were ever delivered by it, modulo
    ``now``           In    time in ticks
    ``cnp_interval``  In    ticks between two congestion notifications of a connection, at least
    ``events``        Out   for one cycle each: :data:`EVENTS`
    ================  ====  ====================================================================

    A DATA frame of an open connection is delivered if it is the next one and its output has room.
    A later one is not delivered; the first such is answered with a NACK, and again one that is
    not ahead of the last (the sender has gone back, and a frame was lost again). An earlier one is
    acknowledged again. A PROBE is acknowledged.

    *Latency*: an ACK is asked for at the parser's ``end``. *Throughput*: the parser's.
    *Back-pressure*: none to the parser; when ``response`` or ``request`` is not ready its word is
    lost (as if the frame had been), which ``ack_overflow`` tells of the first. ``command`` waits
    for the end of a frame. *Reset*: all connections are closed after ``connections`` cycles;
    a frame that is looked up before is for none. *Bad input*: an entry that does not exist counts
    as ``unknown``.
    """

    def __init__(self, config):
        self.config = config
        super().__init__(
            {
                "lookup": In(1),
                "about": In(16),
                "header": In(HEADER),
                "body": In(1),
                "data": In(config.width),
                "last": In(1),
                "end": In(1),
                "good": In(1),
                "command": In(stream.Signature(config.command_layout)),
                "valid": Out(1),
                "beat": Out(beat_layout(config.width)),
                "vc": Out(config.vc_layout),
                "commit": Out(1),
                "words": Out(range(config.message_beats + 1)),
                "connection": Out(config.connection_layout),
                "level": In(range(config.buffer_beats + 1)).array(config.vcs),
                "request": Out(stream.Signature(config.request_layout)),
                "response": Out(stream.Signature(config.response_layout)),
                "entry_addr": In(config.connection_layout),
                "entry": Out(receive_layout(config)),
                "total": Out(config.total_layout),
                "now": In(TIME_BITS),
                "cnp_interval": In(TIME_BITS),
                "events": Out(data.StructLayout({name: 1 for name in EVENTS})),
            }
        )

    # The entry is read while the rest of the header comes in; the comparisons are registers that
    # follow entry and header, and settle before the first beat of the message is here.
    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.table = table = Memory(
            shape=receive_layout(config),
            depth=config.connections,
            init=[],
            attrs={"ram_style": "block"},
        )
        # Beside the table, since a connection that is opened anew goes on counting: messages of
        # its old incarnation may still be in the output's buffer.
        m.submodules.totals = totals = Memory(
            shape=config.total_layout, depth=config.connections, init=[]
        )
        read, second, write = table.read_port(), table.read_port(), table.write_port()
        counts, total = (totals.read_port(), totals.read_port()), totals.write_port()
        looked, clearing = Signal(), Signal(init=1)
        self.table, self.totals, self.clearing = table, totals, clearing
        self.entry_held = entry = Signal(receive_layout(config))
        self.total_held = so_far = Signal(config.total_layout)
        index = self.header.connection[: config.connection_layout.width]
        m.d.comb += [
            read.addr.eq(self.about),
            second.addr.eq(self.entry_addr),
            self.entry.eq(second.data),
            counts[0].addr.eq(self.about),
            counts[1].addr.eq(self.entry_addr),
            self.total.eq(counts[1].data),
            total.addr.eq(index),
            total.data.eq(so_far + 1),
            total.en.eq(self.commit),
            self.connection.eq(index),
        ]
        stale = Signal(init=1)  # what is read now may be of before a reset: it is not cleared yet
        m.d.sync += [looked.eq(self.lookup), stale.eq(clearing)]
        with m.If(looked):
            m.d.sync += [entry.eq(read.data), so_far.eq(counts[0].data)]
            with m.If(stale):
                m.d.sync += entry.open.eq(0)
        self._compare(m)
        self._deliver(m)
        self._follow(m)
        m.d.comb += write.addr.eq(index)
        with m.If(clearing):
            self.clear = clear = Signal(config.connection_layout)
            m.d.sync += clear.eq(clear + 1)
            m.d.comb += [write.en.eq(1), write.addr.eq(clear)]
            m.d.comb += [total.en.eq(1), total.addr.eq(clear), total.data.eq(0)]
            with m.If(clear == config.connections - 1):
                m.d.sync += clearing.eq(0)
        with m.Else():
            self._judge(m, write)
            self._commands(m, write)
        return m

    def _compare(self, m):
        config, header, entry = self.config, self.header, self.entry_held
        shift = (config.bytes - 1).bit_length()
        self.is_data, self.is_ack, self.exists = Signal(), Signal(), Signal()
        self.mine, self.next, self.early = Signal(), Signal(), Signal()
        self.behind, self.room, self.due = Signal(), Signal(), Signal()
        level, words = Signal.like(self.level[0]), Signal.like(self.words)
        ahead, delta = Signal(config.seq_layout), Signal(config.seq_layout)
        m.d.comb += [
            delta.eq(header.seq - entry.expected),
            ahead.eq(header.seq - entry.ahead),
            self.vc.eq(entry.vc),
            self.words.eq(words),
        ]
        m.d.sync += [
            self.is_data.eq(header.kind == Kind.DATA),
            self.is_ack.eq(header.kind == Kind.ACK),
            self.exists.eq(header.connection < config.connections),
            self.mine.eq(header.incarnation == entry.incarnation),
            self.next.eq(delta == 0),
            self.early.eq(delta[-1]),
            # Not ahead of the last one out of order: the sender has gone back since.
            self.behind.eq(ahead[-1] | (ahead == 0)),
            words.eq((header.length + config.bytes - 1)[shift:]),
            level.eq(Array(self.level)[entry.vc]),
            self.room.eq(level + words <= config.buffer_beats),
            self.due.eq((self.now - entry.notified)[:TIME_BITS] >= self.cnp_interval),
        ]
        self.known = self.exists & entry.open & self.mine
        self.accept = Signal()
        m.d.comb += self.accept.eq(self.is_data & self.known & self.next & self.room_held(m))

    def room_held(self, m):
        """Room as it was when the first beat came: it may only grow while the frame comes in."""
        held, begun = Signal(name="room_then"), Signal(name="begun")
        self.begun, self.room_then = begun, held
        with m.If(self.end | self.lookup):
            m.d.sync += begun.eq(0)
        with m.Elif(self.body & ~begun):
            m.d.sync += [begun.eq(1), held.eq(self.room)]
        return Mux(begun, held, self.room)

    def _deliver(self, m):
        """Write the message, one beat behind, so that its last one can carry the verdict."""
        held, have, first = Signal(self.config.width), Signal(), Signal(init=1)
        n = self.config.bytes
        finish = Signal()
        self.have, self.held, self.first = have, held, first
        m.d.comb += [
            finish.eq(self.end & have),
            self.valid.eq((self.body & have & self.accept) | finish),
            self.beat.data.eq(held),
            self.beat.first.eq(first),
            self.beat.last.eq(finish),
            self.beat.error.eq(finish & ~self.good),
        ]
        with m.If(finish & self.good):
            m.d.comb += self.beat.empty.eq((-self.header.length)[: (n - 1).bit_length()])
        with m.If(self.body & self.accept):
            m.d.sync += [held.eq(self.data), have.eq(1)]
        with m.If(self.end):
            m.d.sync += have.eq(0)
        with m.If(self.valid):
            m.d.sync += first.eq(self.beat.last)

    def _judge(self, m, write):
        header, entry, ok = self.header, self.entry_held, Signal()
        request, response = self.request, self.response.payload
        m.d.comb += [
            ok.eq(self.end & self.good & ~self.is_ack & self.known),
            request.payload.connection.eq(self.connection),
            self.response.valid.eq(self.end & self.good & self.is_ack & self.exists),
            response.connection.eq(self.connection),
            response.incarnation.eq(header.incarnation),
            response.seq.eq(header.seq),
            response.credit.eq(Mux(header.credit[8:].any(), 255, header.credit)),
            response.nack.eq(header.nack),
            response.cnp.eq(header.cnp),
            write.data.eq(entry),
        ]
        events = self.events
        reached = self.end & self.good
        m.d.comb += [
            events.unknown.eq(reached & Mux(self.is_ack, ~self.exists, ~self.exists | ~entry.open)),
            events.incarnation.eq(reached & ~self.is_ack & self.exists & entry.open & ~self.mine),
            events.ack_overflow.eq(self.response.valid & ~self.response.ready),
            events.marked.eq(ok & header.marked),
        ]
        cnp = ok & header.marked & self.due
        with m.If(ok):
            m.d.comb += [write.en.eq(1), request.payload.cnp.eq(cnp), request.valid.eq(cnp)]
        with m.If(cnp):
            m.d.comb += write.data.notified.eq(self.now)
        with m.If(ok & self.is_data):
            with m.If(self.accept):
                m.d.comb += [
                    self.commit.eq(1),
                    events.delivered.eq(1),
                    request.valid.eq(1),
                    write.data.expected.eq(entry.expected + 1),
                    write.data.nacked.eq(0),
                ]
            with m.Elif(self.next):
                m.d.comb += events.no_room.eq(1)
            with m.Elif(self.early):
                m.d.comb += [events.duplicates.eq(1), request.valid.eq(1)]
            with m.Else():
                m.d.comb += [
                    events.out_of_order.eq(1),
                    write.data.nacked.eq(1),
                    write.data.ahead.eq(header.seq),
                ]
                with m.If(~entry.nacked | self.behind):
                    m.d.comb += [request.valid.eq(1), request.payload.nack.eq(1)]
        with m.Elif(ok):
            m.d.comb += request.valid.eq(1)

    def _follow(self, m):
        """Set ``busy`` from a frame's lookup to its end."""
        self.busy = busy = Signal()
        with m.If(self.lookup):
            m.d.sync += busy.eq(1)
        with m.Elif(self.end):
            m.d.sync += busy.eq(0)

    def _commands(self, m, write):
        """Between frames: from ``end`` to the next lookup."""
        command, busy = self.command.payload, self.busy
        m.d.comb += self.command.ready.eq(~busy & ~self.lookup & ~self.end)
        with m.If(self.command.valid & self.command.ready):
            m.d.comb += [
                write.en.eq(1),
                write.addr.eq(command.connection),
                write.data.eq(0),
                write.data.open.eq(command.open),
                write.data.vc.eq(command.vc),
                write.data.credit.eq(command.credit),
                write.data.incarnation.eq(command.incarnation),
                write.data.notified.eq(self.now - self.cnp_interval),
            ]
