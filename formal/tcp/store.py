"""Proof of the session store in ``cores/tcp/store.py``, with two sessions and four engines.

Mutual exclusion: no two engines hold a record at a time, and an engine gets the record it asked
for. Nothing is lost: the record that an engine is lent is what the last one handed back, in every
field (of an arbitrary session). Lists: after each hand-back, a session is on a list exactly if it
was left there or belongs there by the data sheet's words, once, and on the list of its service; no
list overflows. Numbers and segments: a slot is reaped exactly when it is over, released, on no list
and nothing reads or writes its memory; a segment is given back exactly when the session lets it
go; a session gets its place on the wheel once. ``half_open`` is the number of records in SYN-RCVD;
``taken`` and ``freed`` tell how many sessions each service has.
Turns: while an engine waits, each other one has at most one turn; from a hand-back to the next
grant 4 cycles pass, if somebody asks.

The engines may hand back anything, with one exception, which is assumed: none moves a session to
another service while it is on an event list.

The record is cut down to the fields that the store looks at and one that it does not, and numbers
in it to 2 bits: the store compares them with each other and with 0 only. A store that looks at
another field cannot be elaborated with it.

Not proved: the order of a list (it is an Amaranth FIFO); other numbers of sessions, services and
engines; a reset while running, which the clearing of the records is for.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data
from trebuchet.cores.tcp import record as record_module
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.record import Phase, record_layout
from trebuchet.cores.tcp.store import COMPARED

from ..kit.inside import patched
from ..kit.proof import Mutant, Proof
from ..kit.standins import buffered_fifo_words, elaborated, state_is
from ..stream import free, new_harness, within
from .checkout import handed_back

__all__ = ["ENGINES", "PROOFS", "filed", "narrow", "written"]

CONFIG = TcpConfig(sessions=2, ports=(7, 9))
ENGINES = {
    "receive": (
        *("phase", "service", "released", "on_wheel", "has_segment", "segment"),
        *("snd_end", "rcv_nxt", "rcv_pub", "ev_data", "mss", "deadline", "progress"),
    ),
    "transmit": (
        *("ack_due", "syn_due", "rst_due", "resend", "probe", "keepalive"),
        *("blocked", "snd_nxt", "flight"),
    ),
    "timer": ("phase", "released", "deadline"),
    "events": ("ev_open", "ev_data", "ev_eof", "ev_closed", "check", "count"),
}
LISTS = ("active", "event", "recycle")
#: Fields of the record that the store looks at or writes; ``mss`` stands for all others.
FIELDS = {
    *("service", "phase", "released", "has_segment", "segment", "rcv_nxt", "rcv_pub", "mss"),
    *("snd_nxt", "snd_end", "count", "flight", "ack_due", "syn_due", "rst_due", "resend"),
    *("probe", "keepalive", "blocked", "ev_open", "ev_data", "ev_eof", "ev_closed", "check"),
    *("on_active", "on_event", "on_recycle", "on_wheel", "wake", "deadline", "progress"),
}


def narrow(config):
    """The record as far as the store knows it, its numbers of 2 bits."""
    members = {n: s for n, s in record_layout(config).members.items() if n in FIELDS}
    wide = [name for name, shape in members.items() if name != "phase" and shape.width > 2]
    return data.StructLayout({n: 2 if n in wide else s for n, s in members.items()})


def _store(cores):
    """The store with narrow records, elaborated."""
    with (
        patched(record_module, record_layout=narrow),
        patched(cores, record_layout=narrow),
    ):
        dut = cores.SessionStore(CONFIG, ENGINES)
        return dut, elaborated(dut)


def filed(before, after, serves):
    """From the record as lent and as handed back: what happens (the data sheet, in its words)."""
    to_send = (
        (after.ack_due | after.syn_due | after.rst_due)
        | (after.resend | after.probe | after.keepalive)
        | ((after.phase == Phase.OPEN) & ~after.blocked & (after.snd_nxt != after.snd_end))
    )
    acknowledged = after.check & (after.count != 0) & (after.flight == 0)
    to_tell = (
        (after.ev_open | after.ev_data | after.ev_eof)
        | acknowledged
        | (after.ev_closed & (after.count == 0))
    )
    waits = (after.phase == Phase.TIME_WAIT) & after.released
    belongs = dict(zip(LISTS, (to_send, to_tell, waits), strict=True))
    stays = {name: before[f"on_{name}"] & ~serves[name] for name in LISTS}
    idle = (after.count == 0) & (after.flight == 0) & (after.rcv_nxt == after.rcv_pub)
    listed = Cat(belongs[n] | stays[n] for n in ("active", "event")).any()
    freed = (after.phase == Phase.CLOSED) & after.released & ~listed & idle
    keeps = after.has_segment & ~freed
    return {
        "reap": freed,
        "give": before.has_segment & ~keeps,
        "place": after.on_wheel & ~before.on_wheel,
        "on": {name: belongs[name] | stays[name] for name in LISTS},
    }


def written(m, after, said):
    """The record that is stored, when ``said`` happens to one handed back."""
    record = Signal(after.shape(), name="written_")
    m.d.comb += record.eq(after)
    m.d.comb += [record[f"on_{n}"].eq(said["on"][n]) for n in LISTS]
    with m.If(said["reap"]):
        m.d.comb += [record.phase.eq(Phase.FREE), record.has_segment.eq(0)]
    return record


class StoreProof(Elaboratable):
    def __init__(self, cores):
        self.dut, self.inner = _store(cores)

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        self.names = list(dut.engines)
        self.ports = {name: getattr(dut, name) for name in self.names}
        self._engines(m)
        self._checkouts(m)
        self._returns(m)
        self._records(m)
        self._lists(m)
        self._turns(m)
        return m

    def _at(self, *states):
        return state_is(self.dut.fsm, *states)

    def _owns(self, name):
        return self.dut.owner == self.names.index(name)

    def _engines(self, m):
        """Requests stay until they are granted; who serves a list asks for its head."""
        dut, ports = self.dut, self.ports
        free(m, dut.recycling, dut.event_pick, dut.now)
        picked = Mux(dut.event_pick, dut.event_session_1, dut.event_session_0)
        valid = dut.event_valid.bit_select(dut.event_pick, 1)
        serves = {
            "receive": 1,
            "transmit": dut.active_valid & (ports["transmit"].session == dut.active_session),
            "events": valid & (ports["events"].session == picked),
            "timer": ~dut.recycling
            | (dut.recycle_valid & (ports["timer"].session == dut.recycle_session)),
        }
        kept = {"events": dut.event_pick, "timer": dut.recycling}
        self.stalled = {}
        for name, port in ports.items():
            free(m, port.request, port.session, port.commit, port.result, port.changes)
            stalled = self.stalled[name] = Signal(name=f"{name}_stalled")
            steady = Cat(port.session, kept.get(name, 0))
            past = Signal(len(steady), name=f"{name}_past")
            m.d.sync += [stalled.eq(port.request & ~port.grant), past.eq(steady)]
            m.d.comb += Assume(port.grant | ~port.commit)
            with m.If(stalled):
                m.d.comb += Assume(port.request & (past == steady))
                # Invariant: the head stays until it is fetched.
                with m.If(~(self._at("READ", "LENT") & self._owns(name))):
                    m.d.comb += Assert(serves[name])
            with m.Elif(port.request):
                m.d.comb += Assume(serves[name])
        with m.If(ports["receive"].commit & ports["receive"].record.on_event):
            receive = ports["receive"]
            m.d.comb += Assume(receive.result.service == receive.record.service)

    def _checkouts(self, m):
        """One engine at a time, and with the session it asked for."""
        dut, ports = self.dut, self.ports
        self.granted = Cat(port.grant for port in ports.values())
        was = Signal(len(self.names), name="was_granted")
        m.d.sync += was.eq(self.granted)
        self.who = Signal(dut.config.session_bits, name="who")  # the session lent
        self.recycles = Signal(name="recycles")
        who_past, recycles_past = Signal.like(self.who), Signal()
        m.d.sync += [who_past.eq(self.who), recycles_past.eq(self.recycles)]
        m.d.comb += [self.who.eq(who_past), self.recycles.eq(recycles_past)]
        session, record, _ = dut.lent
        for k, (name, port) in enumerate(ports.items()):
            others = self.granted & ~(1 << k)
            with m.If(port.grant):
                m.d.comb += Assert(others == 0)
                with m.If(~was[k]):
                    m.d.comb += [Assert(self.stalled[name]), self.who.eq(port.session)]
                    m.d.comb += self.recycles.eq(dut.recycling if name == "timer" else 0)
                m.d.comb += Assert(session == self.who)
                m.d.comb += Assert(dut.serves_recycle == self.recycles)
            # Invariants.
            m.d.comb += Assert(port.grant == (self._at("LENT") & (dut.owner == k)))
            with m.If(self._at("FETCH", "READ") & (dut.owner == k)):
                m.d.comb += Assert(self.stalled[name])
            with m.If(self._at("READ") & (dut.owner == k)):
                m.d.comb += Assert(session == port.session)
                ours = dut.recycling if name == "timer" else 0
                m.d.comb += Assert(dut.serves_recycle == ours)
            with m.If(was[k]):
                m.d.comb += Assert(self._at("LENT", "RETURN") & (dut.owner == k))
                m.d.comb += [
                    Assert(session == who_past),
                    Assert(dut.serves_recycle == recycles_past),
                ]
            with m.If(port.grant & ~was[k]):
                m.d.comb += Assert(self.stalled[name])
        m.d.comb += Assert(~self._at("RETURN") | (was != 0))

    def _returns(self, m):
        """In the cycle after a commit: strobes and what is kept."""
        dut, layout = self.dut, narrow(self.dut.config)
        self.before, self.after = Signal(layout, name="before"), Signal(layout, name="after_")
        committed, self.returned = Signal(), Signal()
        serves = {name: Signal(name=f"serves_{name}") for name in LISTS}
        m.d.sync += [self.returned.eq(committed), serves["recycle"].eq(self.recycles)]
        handed = {name: handed_back(m, port, dut.now) for name, port in self.ports.items()}
        for name, port in self.ports.items():
            with m.If(port.grant):
                m.d.comb += committed.eq(port.commit)
                m.d.sync += [self.before.eq(port.record), self.after.eq(handed[name])]
                m.d.sync += serves["active"].eq(name == "transmit")
                m.d.sync += serves["event"].eq(name == "events")
        self.said = said = filed(self.before, self.after, serves)
        session, record, after = dut.lent
        for name, value in (
            ("reap", session),
            ("give", self.before.segment),
            ("place", session),
        ):
            strobe = getattr(dut, name)
            suffix = "segment" if name == "give" else "session"
            m.d.comb += Assert(strobe == (self.returned & said[name]))
            with m.If(strobe):
                m.d.comb += Assert(getattr(dut, f"{name}_{suffix}") == value)
        self.written = written(m, self.after, said)
        # Invariants.
        m.d.comb += Assert(self._at("RETURN") == self.returned)
        with m.If(self.returned):
            m.d.comb += [
                Assert(Value.cast(record) == Value.cast(self.before)),
                Assert(Value.cast(after) == Value.cast(self.after)),
                Assert(~record.on_event | (after.service == record.service)),
                *(Assert(after[f"on_{name}"] == record[f"on_{name}"]) for name in LISTS),
                Assert(self._owns("transmit") == serves["active"]),
                Assert(self._owns("events") == serves["event"]),
                Assert(dut.serves_recycle == serves["recycle"]),
            ]
            changed = dut.returned[1]  # what has not changed is not written
            for name in (n for n in COMPARED if n in changed.shape().members):
                m.d.comb += Assert(changed[name] | (after[name] == record[name]))
        recycled = Signal()
        with m.If(self.returned & serves["recycle"] & said["reap"]):
            m.d.sync += recycled.eq(1)
        m.d.comb += [Cover(recycled), Cover(self.returned & said["give"] & ~said["reap"])]
        m.d.comb += Cover(self.returned & said["place"] & said["on"]["active"])

    def _records(self, m):
        """What was handed back last is what is lent next; how many are half open."""
        dut, layout = self.dut, narrow(self.dut.config)
        n = dut.config.sessions
        chosen, truth = Signal(dut.config.session_bits), Signal(layout, name="truth")
        m.d.comb += chosen.eq(AnyConst(len(chosen)))
        session, record, _ = dut.lent
        with m.If(self.returned & (session == chosen)):
            m.d.sync += truth.eq(self.written)
        for port in self.ports.values():
            with m.If(port.grant & (self.who == chosen)):
                m.d.comb += Assert(Value.cast(port.record) == Value.cast(truth))
        # Ready as soon as there was a cycle for each record.
        cycles = Signal(range(n + 1))
        m.d.sync += cycles.eq(Mux(cycles == n, n, cycles + 1))
        m.d.comb += Assert(dut.ready == (cycles == n))
        # Invariants.
        self.stored = []
        for s in range(n):
            peek = dut.ram.read_port(domain="comb")
            m.d.comb += peek.addr.eq(s)
            stored = Signal(layout, name=f"stored{s}")
            m.d.comb += Value.cast(stored).eq(dut.places.unpack(peek.data))
            self.stored.append(stored)
            with m.If(self._at("CLEAR")):
                m.d.comb += Assert(Value.cast(stored) == 0)
            with m.If(chosen == s):
                m.d.comb += Assert(Value.cast(stored) == Value.cast(truth))
            with m.If((session == s) & self._at("LENT", "RETURN")):
                m.d.comb += Assert(Value.cast(record) == Value.cast(stored))
            with m.If((session == s) & self._at("READ")):
                fetched = dut.places.unpack(dut.ram.read_ports[0].data)
                m.d.comb += Assert(fetched == Value.cast(stored))
        half_open = sum(stored.phase == Phase.SYN_RCVD for stored in self.stored)
        self._uses(m)
        m.d.comb += [
            Assert(dut.half_open == half_open),
            Assert(self._at("CLEAR") == (cycles != n)),
            Cover(dut.half_open == n),
        ]
        with m.If(self._at("CLEAR")):
            m.d.comb += [
                Assert(session == cycles),
                Assert(Value.cast(record) == 0),
                *(Assert(Value.cast(part) == 0) for part in dut.returned),
            ]

    def _lists(self, m):
        """Each list holds exactly the sessions that are said to be on it, once; it has room."""
        dut, fifos = self.dut, self.inner.submodules
        session, busy = dut.lent[0], self._at("READ", "LENT", "RETURN")
        served = {
            "active": self._owns("transmit"),
            "event": self._owns("events"),
            "recycle": dut.serves_recycle,
        }
        services = range(len(dut.config.ports))
        for name in LISTS:
            for k in services if name == "event" else (None,):
                fifo = fifos[name if k is None else f"{name}_{k}"]
                words = buffered_fifo_words(m, fifo)
                m.d.comb += Assert(~fifo.w_en | fifo.w_rdy)
                m.d.comb += Assert(~fifo.r_en | fifo.r_rdy)
                behind = fifo.level - fifo.r_rdy
                m.d.comb += Assert(self._at("CHOOSE") | (behind == 0) | fifo.r_rdy)
                with m.If(self._at("CLEAR")):
                    m.d.comb += Assert(fifo.level == 0)
                for s, stored in enumerate(self.stored):
                    count = sum(there & (word == s) for there, word in words)
                    mine = 1 if k is None else stored.service == k
                    left = busy & (session == s) & served[name]
                    m.d.comb += Assert(count == (stored[f"on_{name}"] & mine & ~left))
                    with m.If(left & mine):
                        m.d.comb += Assert(stored[f"on_{name}"])
                m.d.comb += Cover(fifo.level == len(self.stored))

    def _uses(self, m):
        """``taken`` and ``freed`` tell how many sessions each service has."""
        dut = self.dut
        m.d.comb += Assert(dut.handed == self._at("RETURN"))
        for k in range(len(CONFIG.ports)):
            count = Signal(range(len(self.stored) + 2), name=f"sessions_{k}")
            m.d.sync += count.eq(count + dut.taken[k] - dut.freed[k])
            has = sum((s.phase != Phase.FREE) & (s.service == k) for s in self.stored)
            m.d.comb += [Assert(count == has + dut.freed[k]), Cover(has == len(self.stored))]
            m.d.comb += Assert(~self._at("CLEAR") | (count == 0))

    def _turns(self, m):
        """No engine waits for more than one turn of each other one; no time is wasted."""
        dut, n = self.dut, len(self.names)
        chosen, turns = Signal(range(n)), Signal(range(n + 1))
        m.d.comb += [chosen.eq(AnyConst(len(chosen))), Assume(chosen < n)]
        waits = Cat(p.request & ~p.grant for p in self.ports.values()).bit_select(chosen, 1)
        was = Signal(n)
        m.d.sync += was.eq(self.granted)
        with m.If(~waits):
            m.d.sync += turns.eq(0)
        with m.Elif((self.granted & ~was).any()):
            m.d.sync += turns.eq(turns + 1)
            m.d.comb += Assert(turns + 1 < n)
        asked = Cat(port.request for port in self.ports.values()).any()
        waited = within(m, ~dut.ready | ~asked | self.granted.any(), 4, "grant")
        m.d.comb += Cover((turns == n - 1) & dut.ready)
        # Invariants. A turn that is to come counts as soon as it is decided.
        ahead = Signal(range(n))
        m.d.comb += ahead.eq((chosen - dut.owner - 1) % n)  # engines between the owner and it
        begins = (self._at("FETCH", "READ") | (self._at("LENT") & ~was.any())) & (
            dut.owner != chosen
        )
        with m.If(dut.owner == chosen):
            m.d.comb += Assert((turns == 0) | self._at("FETCH", "READ", "LENT", "CHOOSE", "RETURN"))
        with m.If(self._at("FETCH", "READ", "LENT") & (dut.owner == chosen)):
            m.d.comb += Assert(turns < n)
        with m.Else():
            m.d.comb += Assert(turns + begins + ahead < n)
        m.d.comb += [
            Assert(self._at("CLEAR", "CHOOSE", "FETCH", "READ", "LENT", "RETURN")),
            Assert(~self._at("RETURN", "CLEAR") | (waited == 0)),
            Assert(waited <= 4),
            Assert(~self._at("CHOOSE") | (waited <= 1)),
            Assert(~self._at("FETCH") | (waited <= 2)),
            Assert(~self._at("READ") | (waited <= 3)),
        ]


PROOFS = (
    Proof(
        name="tcp_store",
        core="cores.tcp.store.SessionStore(2 sessions, 2 services, 4 engines), narrow records",
        says="records are lent to one engine at a time, nothing is lost; lists and strobes right",
        module="trebuchet.cores.tcp.store",
        build=StoreProof,
        depth=1,
        cover_depth=24,
        mutants=(
            Mutant("forgets_who_waits", "range(1, len(names) + 1)", "range(1, len(names))", 20),
            Mutant(
                "frees_while_written",
                "(after.flight == 0) & (after.rcv_nxt[:near] == after.rcv_pub[:near])",
                "after.flight == 0",
                14,
            ),
            Mutant(
                "gives_twice",
                "returning & record.has_segment & ~(after.has_segment & ~free)",
                "returning & record.has_segment & ~after.has_segment | free | 1",
                16,
            ),
            Mutant(
                "stays_on_list", '"active": owner == names.index("transmit"),', '"active": 0,', 24
            ),
            Mutant("wrong_service", "(service == k)", "(service >= k)", 16, within="_lists"),
            Mutant(
                "returns_elsewhere",
                "m.d.comb += [ram_w.addr.eq(session), ram_w.data.eq(places.pack(written))]",
                "m.d.comb += [ram_w.addr.eq(0), ram_w.data.eq(places.pack(written))]",
                20,
            ),
            Mutant("writes_what_stays", "changed[k] if k else 1", "changed[k] if 0 else 1", 20),
            Mutant(
                "changes_of_all",
                "(owner == k) & ports[k].changes[name]",
                "ports[k].changes[name]",
                20,
            ),
            Mutant("forgets_the_time", "then + back.deadline", "back.deadline", 20),
            Mutant(
                "counts_one_way",
                "self.half_open + (begins & ~began) - (began & ~begins)",
                "self.half_open + (begins & ~began) - 0",
                24,
            ),
            Mutant(
                "takes_again",
                "(after.phase != Phase.FREE) & moved & (after.service == k)",
                "(after.phase != Phase.FREE) & (after.service == k)",
                24,
            ),
            Mutant(
                "frees_the_old",
                "free & (after.service == k)",
                "free & (record.service == k)",
                24,
                context="moved.eq(~was | (record.service != after.service))",
            ),
        ),
        assumes="the checkout rules; a session on an event list keeps its service",
        not_proved="order within a list; other numbers of sessions, services and engines",
    ),
)
