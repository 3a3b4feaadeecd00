"""The TCP offload engine: everything between the parser, the sender and the services."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..csr import CsrSignature
from ..memory import MemorySignature
from ..memory_arbiter import MemoryArbiter, connect_narrow
from ..stream import PacketSignature
from . import application, events, publish, receive, timer, transmit
from . import icmp_error as notice
from .admission import Admission
from .cached import CachedStore
from .config import TcpConfig
from .connect import ConnectPort
from .dma import ReceiveDma
from .icmp import notice_layout
from .index import SessionIndex
from .inspect import Inspector
from .lookup import session_tuple
from .number_lists import NumberList
from .places import PlacePools
from .receive_input import segments_only
from .record import descriptor_layout, peer_layout
from .registers import counters, programmable, settings_layout, tcp_block
from .segment import rx_segment_layout, tx_segment_layout
from .service import SESSION_WIDTH, TX_PER_SESSION, EventKind, ServiceSignature
from .store import SessionStore
from .table import SessionTable
from .trace import trace_counts

__all__ = ["TcpEngine"]


class TcpEngine(wiring.Component):
    """TCP for ``config.sessions`` connections (docs/tcp.md).

    Peers open them, or with ``config.active`` this side, asked by the registers ``connect…``.

    ==============  ===  ======================================================================
    ``segment``     In   stream of :func:`rx_segment_layout`, from the parser
    ``payload``     In   packet stream: the payload of each segment with ``length`` > 0
    ``notice``      In   with ``config.icmp``: stream of
                         :func:`~trebuchet.cores.tcp.icmp.notice_layout`, ICMP errors
    ``tx_segment``  Out  stream of :func:`tx_segment_layout`, to the sender
    ``sent``        In   stream of session numbers, from the sender, one for each segment, in any
                         order: its memory will not be read again for it
    ``mem``         Out  memory port: received payloads go into the pool
    ``state``       Out  with ``config.cache``: memory port of the sessions' state
    ``go``          In   with ``config.cache``: that memory can be written; it stays, and is 1 if
                         it is left alone. Segments wait until it is, and buckets are cleared
    ``services``    Out  array of :class:`~trebuchet.cores.tcp.service.ServiceSignature`
    ``tick``        In   one-cycle pulse each millisecond of protocol time
    ``csr``         In   register block ``"tcp"`` (:func:`~trebuchet.cores.tcp.registers.tcp_block`)
    ==============  ===  ======================================================================

    Parameters: ``config``, a :class:`~trebuchet.cores.tcp.config.TcpConfig`.

    Received segments are taken one at a time, about one in 24 cycles; a payload moves one beat a
    cycle beside that. A segment without data goes out as session 2**17 - 1, which the engine
    ignores on ``sent``, because there is no memory to wait for.

    Back-pressure: ``segment`` and ``payload`` wait for the memory and (for RST replies) the
    sender; ``tx``, ``free`` and ``sent`` wait for neither events nor anything outside the engine.
    Bad input from the network is counted and answered as the RFCs say; bad input from a service
    is counted. Reset: no session, everything free, after 2 cycles per session.
    """

    def __init__(self, config):
        if not isinstance(config, TcpConfig):
            raise TypeError(f"Configuration must be a TcpConfig, not {config!r}")
        self.config = config
        self.block = tcp_block(config)
        more = {}
        if config.icmp:
            more["notice"] = In(stream.Signature(notice_layout()))
        if config.cache:
            tag = config.state_tag_width - 2
            self._state = MemoryArbiter(4, config.width, tag, prompt=range(4))
            more["state"] = Out(self._state.signature.members["mem"].signature)
            more["go"] = In(1, init=1)
        super().__init__(
            {
                "segment": In(stream.Signature(rx_segment_layout(config))),
                "payload": In(PacketSignature(config.width)),
                "tx_segment": Out(stream.Signature(tx_segment_layout(config))),
                "sent": In(stream.Signature(SESSION_WIDTH)),
                "mem": Out(MemorySignature(config.width, config.tag_width)),
                "services": Out(ServiceSignature(rest=config.places)).array(len(config.ports)),
                "tick": In(1),
                "csr": In(CsrSignature(self.block)),
            }
            | more
        )

    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.table = self.table = self._table()
        m.submodules.receive = self.receive = receive.ReceiveEngine(config)
        m.submodules.dma = self.dma = ReceiveDma(config)
        m.submodules.publish = self.publish = publish.PublishEngine(config)
        m.submodules.transmit = self.transmit = transmit.TransmitEngine(config)
        clock = timer.WheelsTimerEngine if config.cache else timer.TimerEngine
        m.submodules.timer = self.timer = clock(config)
        m.submodules.application = self.application = application.ApplicationEngine(config)
        m.submodules.events = self.events = events.EventEngine(config)
        engines = {
            "receive": receive.writes(config),
            "publish": publish.writes(config),
            "transmit": transmit.writes(config),
            "timer": timer.writes(config),
            "application": application.writes(config),
            "events": events.writes(config),
        }
        if config.inspect:
            m.submodules.inspector = self.inspector = Inspector(config)
            engines["inspector"] = ()
        store = CachedStore if config.cache else SessionStore
        m.submodules.store = self.store = store(config, engines)
        for name in engines:
            wiring.connect(m, getattr(self, name).port, getattr(self.store, name))
        settings = Signal(settings_layout(config))
        fixed = {} if config.programmable else programmable(config)
        for name, (_, value, _) in fixed.items():
            m.d.comb += [settings[name].eq(value), getattr(self.csr, name).eq(value)]
        for name in settings.shape().members:
            if name not in fixed:
                m.d.comb += settings[name].eq(getattr(self.csr, name))
        m.submodules.admission = self.admission = Admission(config)
        for engine in (self.receive, self.publish, self.timer, self.admission):
            m.d.comb += engine.settings.eq(settings)
        for engine in (self.receive, self.transmit, self.store):
            m.d.comb += engine.now.eq(self.timer.now)
        self._outside(m)
        self._receive_side(m)
        self._admission(m)
        self._lists(m)
        if config.cache:
            self._cached(m)
        else:
            self._descriptors(m)
            self._peers(m)
        self._pool(m)
        if config.places:
            self._places(m)
        self._counters(m)
        if config.trace:
            self._trace(m)
        return m

    def _trace(self, m):
        for name in ("receive", "transmit", "timer", "application"):
            engine = getattr(self, name)
            trace_counts(m, self.timer.now, name, engine.port, engine.count)
        if self.config.icmp:
            trace_counts(m, self.timer.now, "receive", self.receive.port, self.receive.noticed)

    def _outside(self, m):
        """The engine's own ports."""
        rx, dma, app = self.receive, self.dma, self.application
        segment = self._look_ahead(m) if self.config.cache else wiring.flipped(self.segment)
        item = stream.Signature(rx.input.payload.shape()).create()
        segments_only(m, segment, item)
        if self.config.icmp:
            item = self._notices(m, item)
        if self.config.active:
            item = self._connect(m, item)
        wiring.connect(m, item, rx.input)
        wiring.connect(m, wiring.flipped(self.payload), dma.payload)
        wiring.connect(m, dma.mem, wiring.flipped(self.mem))
        wiring.connect(m, self.transmit.tx_segment, wiring.flipped(self.tx_segment))
        wiring.connect(m, wiring.flipped(self.sent), app.sent)
        for k in range(len(self.config.ports)):
            port = self.services[k]
            wiring.connect(m, self.events.event[k], wiring.flipped(port.event))
            wiring.connect(m, wiring.flipped(port.tx), app.tx[k])
            wiring.connect(m, wiring.flipped(port.free), app.free[k])
        m.d.comb += self.timer.tick.eq(self.tick)

    def _notices(self, m, item):
        """Insert ICMP errors into the receive engine's input."""
        m.submodules.notices = port = notice.IcmpErrorPort(self.config)
        wiring.connect(m, item, port.i)
        wiring.connect(m, wiring.flipped(self.notice), port.notice)
        return port.o

    def _look_ahead(self, m):
        """A segment at work, while the one behind it is looked up; the segment at work.

        The session that is found is fetched into the cache, and so is the place of the number that
        the next new session will get.
        """
        behind, index, store = self.segment, self.table, self.store
        ahead = stream.Signature(behind.payload.shape()).create()
        told, offered = Signal(), Signal()  # `behind` is known; so is the number on offer
        seg = behind.payload
        m.d.comb += [
            behind.ready.eq(~ahead.valid | ahead.ready),
            index.hint.valid.eq(behind.valid & ahead.valid & ~told),
            index.hint.payload.tuple.eq(session_tuple(seg)),
            index.hint.payload.syn.eq(seg.flags.syn),
        ]
        m.d.sync += told.eq(~behind.ready & (told | index.hint.ready))
        with m.If(behind.ready):
            m.d.sync += [ahead.valid.eq(behind.valid), ahead.payload.eq(seg)]
        with m.If(store.hint_taken):
            m.d.sync += store.hint.eq(0)
        with m.If(index.coming):
            m.d.sync += [store.hint.eq(1), store.hint_session.eq(index.coming_session)]
        with m.Elif(~store.hint & index.lookup.free_valid & ~offered):
            m.d.sync += [store.hint.eq(1), store.hint_session.eq(index.lookup.free_session)]
            m.d.sync += offered.eq(1)
        with m.If(index.lookup.insert):
            m.d.sync += offered.eq(0)
        return ahead

    def _connect(self, m, item):
        """Insert requests to open sessions into the receive engine's input."""
        csr, rx, events = self.csr, self.receive, self.events
        m.submodules.connect = port = ConnectPort(self.config)
        wiring.connect(m, item, port.i)
        m.d.comb += [
            port.ask.eq(csr.connect & (csr.connect_service < len(events.event))),
            port.mac.eq(csr.connect_mac),
            port.ip.eq(csr.connect_ip),
            port.port.eq(csr.connect_port),
            port.local.eq(csr.connect_local),
            *([port.vlan.eq(csr.connect_vlan)] if self.config.vlan else []),
            port.service.eq(csr.connect_service),
            port.accepted.eq(rx.accepted),
            port.opened.eq(rx.opened),
            port.made.eq(rx.port.session),
            csr.connect_state.eq(port.state),
            csr.connect_session.eq(port.session),
        ]
        with m.Switch(csr.connect_service):
            for k, event in enumerate(events.event):
                with m.Case(k):
                    over = event.payload.kind == EventKind.CLOSED
                    m.d.comb += port.closed.eq(event.valid & event.ready & over)
                    named = events.names[k] if self.config.places else event.payload.session
                    m.d.comb += port.over.eq(named)
        return port.o

    def _receive_side(self, m):
        rx, table = self.receive, self.table
        wiring.connect(m, rx.verdict, self.dma.verdict)
        wiring.connect(m, self.dma.written, self.publish.written)
        wiring.connect(m, rx.reply, self.transmit.reply)
        wiring.connect(m, rx.lookup, table.lookup)
        m.d.comb += [
            table.key.eq(Cat(getattr(self.csr, f"isn_key_{k}") for k in range(4))),
            self._removals(m),
            rx.half_open.eq(self.store.half_open),
        ]

    def _admission(self, m):
        """Which service may have one more session; a refusal presses for one to be ended."""
        gate, rx, timer = self.admission, self.receive, self.timer
        m.d.comb += [
            gate.taken.eq(self.store.taken),
            gate.freed.eq(self.store.freed),
            rx.admits.eq(gate.admits),
            rx.below.eq(gate.below),
            timer.above.eq(gate.above),
            timer.press.eq(rx.refused),
            timer.pressed.eq(rx.wanted),
            [getattr(self.csr, f"used_{k}").eq(used) for k, used in enumerate(gate.used)],
        ]

    def _table(self):
        config = self.config
        if config.cache:
            # The last of 131,072 stands for no session at all.
            base, numbers = config.index_base, config.usable
            return SessionIndex(config.sessions, config.width, base, numbers=numbers, ahead=1)
        return SessionTable(config)

    def _removals(self, m):
        store, table = self.store, self.table
        if self.config.cache:
            return [
                table.reap.valid.eq(store.reap),
                table.reap.payload.session.eq(store.reap_session),
                table.reap.payload.tuple.eq(store.reap_tuple),
                store.reap_taken.eq(table.reap.ready),
            ]
        # A cycle late: that a slot is free is found out from its whole record.
        m.d.sync += [table.reap.eq(store.reap), table.reap_session.eq(store.reap_session)]
        return []

    def _lists(self, m):
        store, events, timer = self.store, self.events, self.timer
        n = len(self.config.ports)
        m.d.comb += [
            self.transmit.active_valid.eq(store.active_valid),
            self.transmit.active_session.eq(store.active_session),
            events.event_valid.eq(store.event_valid),
            events.heads.eq(Cat(getattr(store, f"event_session_{k}") for k in range(n))),
            store.event_pick.eq(events.pick),
            timer.recycle_valid.eq(store.recycle_valid),
            timer.recycle_session.eq(store.recycle_session),
            # While no service may have one more without its reserve, TIME-WAITs are cut short.
            timer.free_valid.eq((~self.table.none & self.admission.room) | ~store.ready),
            timer.place.eq(store.place),
            timer.place_session.eq(store.place_session),
            store.recycling.eq(timer.recycling),
        ]

    def _descriptors(self, m):
        """The descriptor RAM: four slots a session, read by two engines, written by one."""
        app, depth = self.application, self._depth
        m.submodules.descriptors = ram = Memory(
            shape=descriptor_layout(), depth=depth, init=[], attrs=NO_COLLISIONS
        )
        write = ram.write_port()
        m.d.comb += [write.en.eq(app.write), write.addr.eq(app.address)]
        m.d.comb += write.data.eq(app.descriptor)
        for engine in (self.transmit, self.events):
            read = ram.read_port()
            m.d.comb += [read.addr.eq(engine.address), engine.descriptor.eq(read.data)]
        self._count_descriptors(m)

    @property
    def _depth(self):
        return TX_PER_SESSION * self.config.sessions

    def _count_descriptors(self, m):
        used = Signal(range(self._depth + 1))
        m.d.sync += used.eq(used + self.application.write - self.events.answered)
        m.d.comb += self.csr.descriptors_free.eq(self._depth - used)

    def _cached(self, m):
        """Descriptors and peers are in the store. They are only looked at under its lock."""
        store, app, rx = self.store, self.application, self.receive
        m.submodules.state = arbiter = self._state
        parts = (store.mem, store.lists_mem, self.timer.mem, self.table.mem)
        for k, mem in enumerate(parts):
            connect_narrow(m, mem, arbiter.ports[k])
        wiring.connect(m, arbiter.mem, wiring.flipped(self.state))
        m.d.comb += [
            store.place_taken.eq(self.timer.place_taken),
            self.timer.place_wake.eq(store.place_wake),
            self.timer.place_linked.eq(store.place_linked),
            self.timer.high.eq(store.high),
            self.table.go.eq(self.go),
            store.enter.eq(app.write),
            store.entry_address.eq(app.address),
            store.entry.eq(app.descriptor),
            store.peer_write.eq(rx.peer_write),
            store.new_peer.eq(rx.peer),
            self.transmit.peer.eq(store.peer),
        ]
        for name in ("transmit", "events"):
            engine = getattr(self, name)
            m.d.comb += getattr(store, f"address_{name}").eq(engine.address)
            m.d.comb += engine.descriptor.eq(store.descriptor)
        self._count_descriptors(m)
        if self.config.inspect:
            self._inspect(m)

    def _peers(self, m):
        """Who each session is with. No session is sent for in the cycle in which it is made."""
        rx, tx = self.receive, self.transmit
        m.submodules.peers = ram = Memory(
            shape=peer_layout(self.config), depth=self.config.sessions, init=[], attrs=NO_COLLISIONS
        )
        write, read = ram.write_port(), ram.read_port()
        m.d.comb += [write.en.eq(rx.peer_write), write.addr.eq(rx.port.session)]
        m.d.comb += [write.data.eq(rx.peer), read.addr.eq(tx.session), tx.peer.eq(read.data)]
        if self.config.inspect:
            self._inspect(m, ram.read_port())

    def _inspect(self, m, read=None):
        csr, look = self.csr, self.inspector
        m.d.comb += [
            Cat(look.session, look.word, look.ask).eq(csr.inspect),
            look.peer.eq(self.store.peer)
            if read is None
            else [read.addr.eq(look.port.session), look.peer.eq(read.data)],
            csr.inspect_busy.eq(look.busy),
            csr.inspect_value.eq(look.value),
        ]

    def _pool(self, m):
        """The pool: each segment is used for the first time, then comes from a FIFO."""
        config, pool = self.config, self.receive.pool
        m.submodules.pool = fifo = NumberList(
            width=config.segment_bits, depth=max(2, config.pool_segments), lut_ram=config.lut_ram
        )
        unused = Signal(range(config.pool_segments + 1), init=config.pool_segments)
        free = Signal(range(config.pool_segments + 1), init=config.pool_segments)
        given, segment = Signal(name="given"), Signal(config.segment_bits)
        fresh = unused != 0
        m.d.sync += [given.eq(self.store.give), segment.eq(self.store.give_segment)]  # late, too
        m.d.comb += [
            fifo.w_en.eq(given),
            fifo.w_data.eq(segment),
            pool.valid.eq(fresh | fifo.r_rdy),
            pool.payload.eq(Mux(fresh, unused - 1, fifo.r_data)),
            fifo.r_en.eq(pool.ready & ~fresh),
        ]
        m.d.sync += unused.eq(unused - (pool.ready & fresh))
        m.d.sync += free.eq(free + given - pool.ready)
        m.d.comb += self.csr.segments_free.eq(free)

    def _places(self, m):
        """Pools of places: the event engine takes, the application engine finds and gives back."""
        config, events, app = self.config, self.events, self.application
        m.submodules.places = self.places = pools = PlacePools(
            config.places, len(config.ports), config.session_bits, config.lut_ram
        )
        m.d.comb += [
            pools.pick.eq(events.pick),
            events.place.eq(pools.number),
            events.place_valid.eq(pools.valid),
            pools.take.eq(events.take),
            pools.session.eq(events.port.session),
            pools.asked.eq(app.asked),
            app.holder.eq(pools.holder),
            pools.give.eq(app.give),
            pools.given.eq(app.given),
            [getattr(self.csr, f"places_free_{k}").eq(free) for k, free in enumerate(pools.free)],
        ]

    def _counters(self, m):
        csr, table = self.csr, self.table
        engines = (self.receive, self.transmit, self.timer, self.application)
        engines += (self.events,) if self.config.places else ()
        for name in counters(self.config):
            strobes = [e.count[name] for e in engines if name in e.count.shape().members]
            if name in notice.COUNTS:
                strobes = [self.receive.noticed[name]]
            together = Signal(range(len(strobes) + 1), name=f"count_{name}")
            m.d.sync += together.eq(sum(strobes))
            register = getattr(csr, name)
            m.d.sync += register.eq(register + together)
        if self.config.cache:
            m.d.comb += csr.sessions_high.eq(self.store.high)
        m.d.comb += [
            csr.services.eq(len(self.config.ports)),
            csr.sessions.eq(self.config.sessions),
            csr.sessions_used.eq(table.in_use),
            csr.half_open.eq(self.store.half_open),
        ]
        # Entries of the recycle list stay with the number, of which no session may be left.
        busy = self.segment.valid | self.receive.input.valid
        if self.config.cache:
            busy = busy | self.store.listed
        m.d.sync += csr.idle.eq((table.in_use == 0) & self.dma.idle & ~busy & self.store.ready)
