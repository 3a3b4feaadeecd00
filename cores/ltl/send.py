"""The sender: send connection table, windows, acknowledgements, time-outs.

Source: cloud-scale-acceleration, section V.A; go-back-N (docs/network.md says why).
"""

from enum import IntEnum

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from .config import TIME_BITS, Kind

__all__ = ["Sender", "Source"]


class Source(IntEnum):
    """What the sender works on; messages to commit follow, one number a virtual channel."""

    RESPONSE = 0
    SEND = 1
    COMMAND = 2
    SCAN = 3
    COMMIT = 4


def record_layout(config):
    """Entry of the send table. Counts are of frames from the oldest unacknowledged one on."""
    return data.StructLayout(
        {
            "open": 1,
            "listed": 1,  # in the list of connections that may have something to send
            "una": config.seq_layout,  # sequence number of the oldest unacknowledged frame
            "sent": config.count_layout,  # to be sent next: una + sent
            "peak": config.count_layout,  # sent at least once: what may be acknowledged
            "queued": config.count_layout,  # in the store
            "limit": config.count_layout,  # the peer has room for so many
            "retries": 8,
            "deadline": TIME_BITS,
            "rto": TIME_BITS,
            "incarnation": 16,
        }
    )


class Sender(wiring.Component):
    """Decides which frame is sent when, until it is acknowledged or its connection has failed.

    =================  ===========  ==============================================================
    ``commit``         In, array    messages that lie in the store, one stream a virtual channel
    ``response``       In           what ACK frames said
    ``command``        In           opens and closes connections
    ``frame``          Out          DATA and PROBE frames to send
    ``release``        Out          a message whose slot is free again,
    ``release_valid``  Out          for one cycle each
    ``failure``        Out          numbers of connections that failed
    ``now``            In           time in ticks
    ``retries``        In           a connection fails at the time-out after so many in a row
    ``hold``           In           send nothing, and take no time-outs (the class is paused)
    ``pace_start``     Out          for one cycle: may ``pace_connection`` send?
    ``pace_done``      In           for one cycle, at least 3 later: the answer is ``pace_allow``
    ``spend``          Out          for one cycle: ``pace_connection`` sends ``spend_beats``
    ``cnp``            Out          for one cycle: a congestion notification for it
    ``opened``         Out          for one cycle: it has been opened
    ``drop``           In           the limiter drops the frame that ``spend`` is about
    ``kill``           Out          for one cycle: frames of ``pace_connection`` must not be
                                    finished, their slots are free now
    ``events``         Out          for one cycle each, see below
    =================  ===========  ==============================================================

    ``events``: ``sent``, ``resent``, ``limited`` (dropped by the limiter), ``probes``,
    ``timeouts``, ``failures``, ``stale`` (an ACK of a closed connection, another incarnation, or
    of what was never sent), ``nacks``, ``unopened`` (a message for a connection that is not open,
    dropped).

    A message gets the next sequence number when it is committed; it stays in the store until an
    ACK covers it. Frames are sent in order while the window, the peer's credit and the pace
    allow. A NACK or a time-out sends everything again from the oldest unacknowledged frame on
    (go-back-N). A connection whose peer gives no credit sends a PROBE at each time-out. After
    ``retries`` time-outs in a row without an answer the next one is a failure: the connection
    is closed, all its slots are released and its number comes out of ``failure``.

    *Latency*: 6 to 8 cycles from an event to the frame. *Throughput*: an event takes 5 to 8
    cycles and two more for each slot released; sources take turns. *Back-pressure*: ``frame`` may
    wait at will, and holds up only sending. ``commit`` waits while its connection's window is
    full. ``failure`` never overflows. *Reset*: all connections are closed after ``connections``
    cycles. *Bad input*: an index of no connection must not come in.
    """

    def __init__(self, config):
        self.config = config
        self.record = record_layout(config)
        super().__init__(
            {
                "commit": In(stream.Signature(config.commit_layout)).array(config.vcs),
                "response": In(stream.Signature(config.response_layout)),
                "command": In(stream.Signature(config.command_layout)),
                "frame": Out(stream.Signature(config.frame_layout)),
                "release": Out(config.stored_layout),
                "release_valid": Out(1),
                "failure": Out(stream.Signature(config.connection_layout)),
                "now": In(TIME_BITS),
                "retries": In(8),
                "hold": In(1),
                "pace_connection": Out(config.connection_layout),
                "pace_start": Out(1),
                "pace_done": In(1),
                "pace_allow": In(1),
                "spend": Out(1),
                "spend_beats": Out(8 if config.width == 64 else 9),
                "cnp": Out(1),
                "opened": Out(1),
                "drop": In(1),
                "kill": Out(1),
                "events": Out(
                    data.StructLayout(
                        {
                            name: 1
                            for name in (
                                "sent",
                                "resent",
                                "limited",
                                "probes",
                                "timeouts",
                                "failures",
                                "stale",
                                "nacks",
                                "unopened",
                            )
                        }
                    )
                ),
            }
        )

    # One event at a time goes through the states IDLE (choose, read the record), LOAD, PREPARE
    # (compare), APPLY (change the record), STORE (write it back, list the connection if it has
    # something to send), and RELEASE for slots that are free now. A source's event is taken when
    # it is done with, so that a commit that does not fit is simply offered again.
    def elaborate(self, platform):
        m = Module()
        config = self.config
        self._memories(m)
        self.connection = Signal(config.connection_layout)
        self.source = Signal(Source.COMMIT + config.vcs)  # one-hot
        self.r = Signal(self.record)
        self.free_at, self.free_count = Signal(config.seq_layout), Signal(config.count_layout)
        self.delta, self.known = Signal(config.seq_layout), Signal()
        self.can, self.expired, self.full = Signal(), Signal(), Signal()
        self.take = Signal()
        ports = [self.response, self.active.o, self.command, None, *self.commit]
        for k, port in enumerate(ports):
            if port is not None:
                m.d.comb += port.ready.eq(self.take & self.source[k])
        m.d.comb += self.pace_connection.eq(self.connection)
        m.d.sync += [self.events.eq(0), self.release_valid.eq(0)]
        with m.If(self.frame.ready):
            m.d.sync += self.frame.valid.eq(0)
        # The frame that would be sent next; registered, since it comes out of a RAM.
        self.next = Signal(config.stored_layout)
        m.d.sync += self.next.eq(self.ring_read.data)
        m.d.comb += self.ring_read.addr.eq(self._place(self.r.una + self.r.sent))
        with m.FSM(name="sender") as self.fsm:
            self._clear(m)
            self._idle(m)
            with m.State("LOAD"):
                m.d.sync += self.r.eq(self.table_read.data)
                m.d.comb += self.pace_start.eq(self.source[Source.SEND])
                m.next = "PREPARE"
            with m.State("PREPARE"):
                self._prepare(m)
                m.next = "APPLY"
            with m.State("APPLY"):
                for source, handle in enumerate(
                    (self._response, self._send, self._command, self._scan)
                ):
                    with m.If(self.source[source]):
                        handle(m)
                with m.If(self.source[Source.COMMIT :].any()):
                    self._commit(m)
            self._store(m)
            self._release(m)
        return m

    def _memories(self, m):
        config = self.config
        m.submodules.table = table = Memory(
            shape=self.record, depth=config.connections, init=[], attrs={"ram_style": "block"}
        )
        self.table = table
        self.table_read, self.table_write = table.read_port(), table.write_port()
        m.submodules.ring = ring = Memory(
            shape=config.stored_layout,
            depth=config.connections * config.window,
            init=[],
            attrs={"ram_style": "block"},
        )
        self.ring = ring
        self.ring_read, self.ring_write = ring.read_port(), ring.write_port()
        # Each connection is listed once at most; one place more, because the one that is being
        # looked at is listed anew before it is taken out.
        m.submodules.active = self.active = StreamFifo(
            config.connection_layout, config.connections + 1
        )
        m.submodules.failed = self.failed = StreamFifo(
            config.connection_layout, config.connections + 1
        )
        wiring.connect(m, self.failed.o, wiring.flipped(self.failure))

    def _place(self, seq):
        """Where the ring holds the frame with that sequence number."""
        return Cat(seq[: (self.config.window - 1).bit_length()], self.connection)

    def _clear(self, m):
        with m.State("CLEAR"):
            m.d.comb += [self.table_write.en.eq(1), self.table_write.addr.eq(self.connection)]
            m.d.sync += self.connection.eq(self.connection + 1)
            with m.If(self.connection == self.config.connections - 1):
                m.next = "IDLE"

    def _idle(self, m):
        config = self.config
        self.scan = scan = Signal(config.connection_layout)
        requests, above, chosen = (Signal.like(self.source, name=n) for n in ("req", "abv", "chs"))
        connections = [
            self.response.payload.connection,
            self.active.o.payload,
            self.command.payload.connection,
            scan,
            *(port.payload.connection for port in self.commit),
        ]
        m.d.comb += [
            requests.eq(
                Cat(
                    self.response.valid,
                    self.active.o.valid & ~self.frame.valid & ~self.hold,
                    self.command.valid,
                    1,
                    *(port.valid for port in self.commit),
                )
            ),
            # Turns: the next one after the last.
            above.eq(requests & ~(self.source | (self.source - 1))),
            chosen.eq(Mux(above.any(), above & -above, requests & -requests)),
        ]
        with m.State("IDLE"):
            with m.If(chosen[Source.SCAN]):
                m.d.sync += scan.eq(Mux(scan == config.connections - 1, 0, scan + 1))
            for k, connection in enumerate(connections):
                with m.If(chosen[k]):
                    m.d.comb += self.table_read.addr.eq(connection)
                    m.d.sync += self.connection.eq(connection)
            m.d.sync += self.source.eq(chosen)
            m.next = "LOAD"

    def _prepare(self, m):
        r, response = self.r, self.response.payload
        m.d.sync += [
            self.delta.eq(response.seq - r.una),
            self.known.eq(r.open & (response.incarnation == r.incarnation)),
            self.can.eq(r.open & (r.sent < r.queued) & (r.sent < r.limit)),
            self.expired.eq(
                r.open & (r.queued != 0) & ~(self.now - r.deadline)[TIME_BITS - 1] & ~self.hold
            ),
            self.full.eq(r.queued == self.config.window),
            self.free_at.eq(r.una),
            self.free_count.eq(0),
        ]

    def _response(self, m):
        r, response, config = self.r, self.response.payload, self.config
        delta = self.delta[: r.peak.shape().width]
        credit = Mux(response.credit > config.window, config.window, response.credit)
        left = Signal(config.count_layout)
        m.d.comb += [left.eq(Mux(r.limit > delta, r.limit - delta, 0)), self.take.eq(1)]
        m.next = "STORE"
        with m.If(~self.known | (self.delta > r.peak)):
            m.d.sync += self.events.stale.eq(1)
            m.next = "IDLE"
        with m.Else():
            m.d.comb += self.cnp.eq(response.cnp)
            m.d.sync += [
                r.una.eq(response.seq),
                r.peak.eq(r.peak - delta),
                r.queued.eq(r.queued - delta),
                r.sent.eq(Mux(r.sent > delta, r.sent - delta, 0)),
                r.limit.eq(Mux(left > credit, left, credit)),
                self.free_count.eq(delta),
            ]
            with m.If(response.nack & (r.sent > delta)):
                m.d.sync += [r.sent.eq(0), self.events.nacks.eq(1)]
            # An answer from a peer without room is a sign of life, too.
            with m.If((delta != 0) | (r.peak == 0)):
                m.d.sync += [r.retries.eq(0), r.deadline.eq(self.now + r.rto)]

    def _send(self, m):
        r, config = self.r, self.config
        padded = (self.next.length + 7)[3:]
        m.d.comb += self.spend_beats.eq(padded * (8 // config.bytes) + 64 // config.bytes)
        # `can` comes together with the answer of the pacer or before it.
        with m.If(self.pace_done):
            m.d.comb += self.take.eq(1)
            m.d.sync += r.listed.eq(0)
            m.next = "STORE"
            with m.If(self.can & self.pace_allow):
                m.d.comb += self.spend.eq(1)
                m.d.sync += [
                    self.frame.valid.eq(~self.drop),
                    self.frame.payload.eq(0),
                    self.frame.payload.kind.eq(Kind.DATA),
                    self.frame.payload.connection.eq(self.connection),
                    self.frame.payload.seq.eq(r.una + r.sent),
                    self.frame.payload.slot.eq(self.next.slot),
                    self.frame.payload.length.eq(self.next.length),
                    r.sent.eq(r.sent + 1),
                    self.events.sent.eq(~self.drop),
                    self.events.limited.eq(self.drop),
                    self.events.resent.eq(r.sent != r.peak),
                ]
                with m.If(r.sent == r.peak):
                    m.d.sync += r.peak.eq(r.peak + 1)
                with m.If(r.peak == 0):
                    m.d.sync += r.deadline.eq(self.now + r.rto)

    def _command(self, m):
        r, command = self.r, self.command.payload
        listed = Signal()
        m.d.comb += [self.take.eq(1), listed.eq(r.listed), self.opened.eq(command.open)]
        credit = Mux(command.credit > self.config.window, self.config.window, command.credit)
        m.d.sync += [
            r.eq(0),
            r.listed.eq(listed),
            r.open.eq(command.open),
            r.incarnation.eq(command.incarnation),
            r.rto.eq(command.rto),
            r.limit.eq(credit),
            self.free_count.eq(r.queued),
        ]
        m.next = "STORE"

    def _scan(self, m):
        r = self.r
        again = r.peak != 0
        m.next = "STORE"
        with m.If(~self.expired):
            m.next = "IDLE"
        with m.Elif(again | (r.limit == 0)):
            with m.If(r.retries == self.retries):
                m.d.sync += [r.open.eq(0), r.queued.eq(0), self.free_count.eq(r.queued)]
                m.d.sync += [self.events.failures.eq(1), self.events.timeouts.eq(1)]
                m.d.comb += self.failed.i.valid.eq(1)
            with m.Elif(again | ~self.frame.valid):
                m.d.sync += [
                    r.retries.eq(r.retries + 1),
                    r.deadline.eq(self.now + r.rto),
                    r.sent.eq(0),
                    self.events.timeouts.eq(1),
                ]
                with m.If(~again):
                    m.d.sync += [
                        self.events.probes.eq(1),
                        self.frame.valid.eq(1),
                        self.frame.payload.eq(0),
                        self.frame.payload.kind.eq(Kind.PROBE),
                        self.frame.payload.connection.eq(self.connection),
                        self.frame.payload.seq.eq(r.una),
                    ]
            with m.Else():
                m.next = "IDLE"
        with m.Else():  # it waits for its turn or its rate: the peer is not to blame
            m.d.sync += r.deadline.eq(self.now + r.rto)
        m.d.comb += self.failed.i.payload.eq(self.connection)

    def _commit(self, m):
        r = self.r
        stored = Signal(self.config.stored_layout)
        ports = [port.payload.stored for port in self.commit]
        for v, port in enumerate(ports):
            with m.If(self.source[Source.COMMIT + v]):
                m.d.comb += stored.eq(port)
        m.d.comb += [
            self.ring_write.addr.eq(self._place(r.una + r.queued)),
            self.ring_write.data.eq(stored),
        ]
        with m.If(~r.open):
            m.d.comb += self.take.eq(1)
            m.d.sync += [self.release.eq(stored), self.release_valid.eq(1)]
            m.d.sync += self.events.unopened.eq(1)
            m.next = "IDLE"
        with m.Elif(self.full):
            m.next = "IDLE"
        with m.Else():
            m.d.comb += [self.take.eq(1), self.ring_write.en.eq(1)]
            m.d.sync += r.queued.eq(r.queued + 1)
            with m.If(r.queued == 0):
                m.d.sync += [r.deadline.eq(self.now + r.rto), r.retries.eq(0)]
            m.next = "STORE"

    def _store(self, m):
        r = self.r
        sendable = Signal()
        m.d.comb += sendable.eq(r.open & (r.sent < r.queued) & (r.sent < r.limit))
        with m.State("STORE"):
            m.d.comb += [
                self.table_write.en.eq(1),
                self.table_write.addr.eq(self.connection),
                self.table_write.data.eq(r),
                self.table_write.data.listed.eq(r.listed | sendable),
                self.active.i.valid.eq(sendable & ~r.listed),
                self.active.i.payload.eq(self.connection),
            ]
            m.next = "IDLE"
            with m.If(self.free_count != 0):
                m.next = "RELEASE"
            closes = self.source[Source.COMMAND] | self.source[Source.SCAN]
            with m.If(closes & (self.free_count != 0)):
                m.d.comb += self.kill.eq(1)
                with m.If(self.frame.payload.connection == self.connection):
                    m.d.sync += self.frame.valid.eq(0)

    def _release(self, m):
        with m.State("RELEASE"):
            m.d.comb += self.ring_read.addr.eq(self._place(self.free_at))
            m.d.sync += [
                self.free_at.eq(self.free_at + 1),
                self.free_count.eq(self.free_count - 1),
            ]
            m.next = "RELEASED"
        with m.State("RELEASED"):
            m.d.sync += [self.release.eq(self.ring_read.data), self.release_valid.eq(1)]
            m.next = "RELEASE"
            with m.If(self.free_count == 0):
                m.next = "IDLE"
