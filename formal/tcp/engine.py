"""Proof of ``TcpEngine`` in ``cores/tcp/engine.py``: what lies between its parts.

All parts are hollow (:mod:`~trebuchet.formal.kit.parts`): each stream, checkout port, list, setting
and strobe of one goes to the one that the data sheets say, and to no other. The RAMs between them
hold what was written last: descriptors for the transmit and the event engine, peers for the
transmit engine. The pool: each segment is in it, unused or given back, or lent, never at two
places, and what the register says is free is so. Every counter counts the strobes of its name, the
registers show what they are named after.

Not proved: the parts, which have proofs of their own; other sizes; a reset while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib.wiring import In
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.registers import COUNTERS, programmable

from ..kit.inside import Inside, RegisterFifo, patched
from ..kit.parts import all_of, hollow, moves, same, same_memory
from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

CONFIG = TcpConfig(sessions=4, ports=(7, 9), segments=3, counter_width=8)
FIXED = TcpConfig(sessions=4, ports=(7, 9), segments=3, counter_width=8, programmable=False)
ENGINES = ("receive", "publish", "transmit", "timer", "application", "events")
#: Single signals: of which part (none: the engine itself), and where they go.
WIRES = (
    ("store", "half_open", "receive", "half_open"),
    ("store", "taken", "admission", "taken"),
    ("store", "freed", "admission", "freed"),
    ("admission", "admits", "receive", "admits"),
    ("admission", "below", "receive", "below"),
    ("admission", "above", "timer", "above"),
    ("receive", "refused", "timer", "press"),
    ("receive", "wanted", "timer", "pressed"),
    ("store", "active_valid", "transmit", "active_valid"),
    ("store", "active_session", "transmit", "active_session"),
    ("store", "event_valid", "events", "event_valid"),
    ("events", "pick", "store", "event_pick"),
    ("store", "recycle_valid", "timer", "recycle_valid"),
    ("store", "recycle_session", "timer", "recycle_session"),
    ("timer", "recycling", "store", "recycling"),
    ("store", "place", "timer", "place"),
    ("store", "place_session", "timer", "place_session"),
    ("", "tick", "timer", "tick"),
    ("timer", "now", "receive", "now"),
    ("timer", "now", "transmit", "now"),
    ("timer", "now", "store", "now"),
)
#: Who counts what, as the counters' descriptions have it.
COUNTING = {
    **{"rst_tx": ("receive", "transmit"), "time_wait_reused": ("receive", "timer")},
    **{"aborts": ("timer", "application"), "rto": ("timer",), "timeouts": ("timer",)},
    "evicted": ("timer",),
    **{name: ("application",) for name in ("tx_overrun", "service_errors")},
    **{name: ("transmit",) for name in ("retransmits", "zero_window_probes", "keepalive_probes")},
}


class EngineProof(Elaboratable):
    def __init__(self, cores, config):
        self.cores, self.config = cores, config

    def elaborate(self, platform):
        m = new_harness()
        self.dut = dut = self.cores.TcpEngine(self.config)
        with patched(self.cores, NumberList=RegisterFifo):
            self.inside = Inside(m, dut)
        for name in (*ENGINES, "table", "dma", "store", "admission"):
            hollow(getattr(dut, name))
        for _, member, port in dut.signature.flatten(dut):
            if member.flow is In and len(Value.cast(port)):
                free(m, port)
        self._checkouts(m)
        self._streams(m)
        self._wires(m)
        self._settings(m)
        self._rams(m)
        self._pool(m)
        self._counters(m)
        return m

    def _checkouts(self, m):
        for name in ENGINES:
            all_of(m, getattr(self.dut, name).port, getattr(self.dut.store, name))

    def _streams(self, m):
        dut = self.dut
        rx, dma, tx, app = dut.receive, dut.dma, dut.transmit, dut.application
        item, segment = rx.input, dut.segment
        m.d.comb += [
            Assert(item.valid == segment.valid),
            Assert(segment.ready == item.ready),
            Assert(Value.cast(item.payload.kind) == 0),
            Assert(item.payload.body.segment.as_value() == segment.payload.as_value()),
        ]
        same(m, dut.payload, dma.payload)
        same_memory(m, dma.mem, dut.mem)
        same(m, tx.tx_segment, dut.tx_segment)
        same(m, dut.sent, app.sent)
        same(m, rx.verdict, dma.verdict)
        same(m, dma.written, dut.publish.written)
        same(m, rx.reply, tx.reply)
        all_of(m, rx.lookup, dut.table.lookup)
        for k in range(2):
            service = dut.services[k]
            same(m, dut.events.event[k], service.event)
            same(m, service.tx, app.tx[k])
            same(m, service.free, app.free[k])

    def _wires(self, m):
        dut = self.dut
        for source, name, target, port in WIRES:
            ours = getattr(getattr(dut, source) if source else dut, name)
            m.d.comb += Assert(ours == getattr(getattr(dut, target), port))
        store = dut.store
        reaped, who = Signal(), Signal.like(store.reap_session)
        m.d.sync += [reaped.eq(store.reap), who.eq(store.reap_session)]
        m.d.comb += [
            Assert(dut.table.reap == reaped),
            Assert(~reaped | (dut.table.reap_session == who)),
            Assert(dut.events.heads == Cat(store.event_session_0, store.event_session_1)),
            # Nobody's slot is taken away while the table is still being filled.
            Assert(dut.timer.free_valid == ((~dut.table.none & dut.admission.room) | ~store.ready)),
        ]
        key = Cat(dut.csr.isn_key_0, dut.csr.isn_key_1, dut.csr.isn_key_2, dut.csr.isn_key_3)
        m.d.comb += Assert(dut.table.key == key)

    def _settings(self, m):
        dut, config = self.dut, self.config
        for engine in (dut.receive, dut.publish, dut.timer, dut.admission):
            for name in ("enable", "abort_all", "listen"):
                m.d.comb += Assert(engine.settings[name] == getattr(dut.csr, name))
            for name, (_, value, _) in programmable(config).items():
                register = getattr(dut.csr, name)
                m.d.comb += Assert(engine.settings[name] == register)
                if not config.programmable:
                    m.d.comb += Assert(register == value)

    def _rams(self, m):
        """What an arbitrary place of each RAM holds is what was written to it last."""
        dut = self.dut
        app, rx, tx = dut.application, dut.receive, dut.transmit
        self._ram(
            m,
            "descriptors",
            (app.write, app.address, app.descriptor),
            [(tx.address, tx.descriptor), (dut.events.address, dut.events.descriptor)],
        )
        self._ram(m, "peers", (rx.peer_write, rx.port.session, rx.peer), [(tx.session, tx.peer)])
        places = 4 * self.config.sessions
        used = Signal(range(places + 1), name="used")
        m.d.comb += Assume(~dut.events.answered | (used != 0))
        m.d.comb += Assume(~app.write | (used != places))
        m.d.sync += used.eq(used + app.write - dut.events.answered)
        m.d.comb += Assert(dut.csr.descriptors_free + used == places)
        m.d.comb += Cover(used == 6)

    def _ram(self, m, name, writing, readers):
        enable, address, value = writing
        place, word = Signal(len(address), name=f"{name}_place"), Signal(len(Value.cast(value)))
        written = Signal(name=f"{name}_written")
        m.d.comb += place.eq(AnyConst(len(place)))
        with m.If(enable & (address == place)):
            m.d.sync += [word.eq(Value.cast(value)), written.eq(1)]
        peek = self.inside.parts[name].read_port(domain="comb")
        m.d.comb += peek.addr.eq(place)
        m.d.comb += Assert(~written | (Value.cast(peek.data) == word))
        for k, (at, data) in enumerate(readers):
            asked, then = Signal(name=f"{name}_asked{k}"), Signal(len(word), name=f"{name}_{k}")
            m.d.sync += [asked.eq(written & (at == place)), then.eq(word)]
            m.d.comb += Assert(~asked | (Value.cast(data) == then))

    def _pool(self, m):
        dut, n = self.dut, self.config.pool_segments
        pool, store = dut.receive.pool, dut.store
        fifo, unused = self.inside.parts["pool"], self.inside.signal("unused")
        lent, out = Signal(n, name="lent"), Signal(range(n + 1))
        gives = Signal(n)
        given, segment = self.inside.signal("given"), self.inside.signal("segment")
        m.d.comb += [
            out.eq(sum(lent)),
            gives.eq(Mux(given, 1 << segment, 0)),
            # The receive engine takes what there is; the store gives back what is lent.
            Assume(pool.valid | ~pool.ready),
            Assume((Mux(store.give, 1 << store.give_segment, 0) & (~lent | gives)) == 0),
            Assume(store.give_segment < n),
        ]
        # A segment is back a cycle after the store has given it.
        gave, back = Signal(), Signal.like(segment)
        m.d.sync += [gave.eq(store.give), back.eq(store.give_segment)]
        m.d.comb += [Assert(given == gave), Assert(~given | (segment == back))]
        m.d.comb += Assert((gives & ~lent) == 0)
        free(m, fifo.shows)
        taken = Mux(pool.ready, 1 << pool.payload, 0)
        m.d.sync += lent.eq((lent | taken) & ~gives)
        with m.If(pool.valid):
            m.d.comb += Assert((pool.payload < n) & ((lent >> pool.payload) & 1 == 0))
        m.d.comb += [
            Assert(dut.csr.segments_free + out == n),
            Assert(fifo.w_rdy | ~given),
            # If one is left, it is there as soon as the FIFO shows it.
            Assert(pool.valid | (out == n) | ~fifo.shows),
            Cover(out == n),
            Cover(pool.ready & (unused == 0) & (pool.payload == 1)),
        ]
        # Invariant: each is at one place.
        m.d.comb += Assert(unused + fifo.level + out == n)
        for k in range(n):
            waits = [(fifo.level > at) & (cell == k) for at, cell in enumerate(fifo.cells)]
            m.d.comb += Assert(sum(waits) + (k < unused) + lent[k] == 1)

    def _counters(self, m):
        dut, config = self.dut, self.config
        for name in COUNTERS:
            strobes = [getattr(dut, k).count[name] for k in COUNTING.get(name, ("receive",))]
            count = Signal(config.counter_width, name=f"{name}_count")
            late = Signal(2, name=f"{name}_late")
            m.d.sync += [late.eq(sum(strobes)), count.eq(count + late)]
            m.d.comb += Assert(getattr(dut.csr, name) == count)
            m.d.comb += Assert(self.inside.signal(f"count_{name}") == late)
        idle = (dut.table.in_use == 0) & dut.dma.idle & ~dut.segment.valid & dut.store.ready
        was_idle, reset = Signal(), Signal(init=1)
        m.d.sync += [was_idle.eq(idle), reset.eq(0)]
        m.d.comb += [
            Assert(reset | (dut.csr.idle == was_idle)),
            Assert(dut.csr.services == 2),
            Assert(dut.csr.sessions == config.sessions),
            Assert(dut.csr.sessions_used == dut.table.in_use),
            Assert(dut.csr.half_open == dut.store.half_open),
            Assert(dut.csr.used_0 == dut.admission.used[0]),
            Assert(dut.csr.used_1 == dut.admission.used[1]),
            Cover(moves(dut.segment) & (dut.csr.rst_tx == 2)),
        ]


PROOFS = tuple(
    Proof(
        name=f"tcp_engine_{kind}",
        core=f"cores.tcp.engine.TcpEngine(4 sessions, 2 services, 3 segments), {kind} registers, "
        "its parts hollow",
        says="streams, checkouts, lists, settings and strobes go where they belong; descriptors "
        "and peers as written last; no segment is lent twice; counters count",
        module="trebuchet.cores.tcp.engine",
        build=lambda cores, config=config: EngineProof(cores, config),
        depth=2,
        cover_depth=14,
        mutants=mutants,
        assumes="the pool gets back what it lent; no more descriptors are answered than written",
        not_proved="the parts, which have proofs of their own; a reset while running",
    )
    for kind, config, mutants in (
        (
            "programmable",
            CONFIG,
            (
                Mutant(
                    "first_segment_twice",
                    "unused.eq(unused - (pool.ready & fresh))",
                    "unused.eq(0 + (pool.ready & fresh))",
                    8,
                ),
                Mutant(
                    "given_too_early",
                    "free + given - pool.ready",
                    "free + self.store.give - pool.ready",
                    8,
                ),
                Mutant(
                    "timer_is_not_told",
                    "(~self.table.none & self.admission.room) | ~store.ready",
                    "~self.table.none & self.admission.room",
                    6,
                ),
                Mutant(
                    "peer_of_another",
                    "write.addr.eq(rx.port.session)",
                    "write.addr.eq(tx.session)",
                    6,
                    context="rx, tx = self.receive, self.transmit",
                ),
                Mutant("strobes_merge", "together.eq(sum(strobes))", "together.eq(strobes[0])", 6),
            ),
        ),
        (
            "fixed",
            FIXED,
            (
                Mutant(
                    "not_shown",
                    "settings[name].eq(value), getattr(self.csr, name).eq(value)",
                    "settings[name].eq(value)",
                    6,
                ),
            ),
        ),
    )
)
