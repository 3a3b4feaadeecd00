"""The session store: all state of all sessions, checked out one record at a time."""

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from .number_lists import NumberList
from .record import NUMBERS, TIME_WIDTH, CheckoutSignature, Phase, record_layout
from .service import LENGTH_WIDTH
from .trace import trace_phase

__all__ = ["SessionStore"]

#: Bits that a block RAM writes or leaves alone together.
LANE = 9
#: Low bits that tell SND.NXT from SND.END: at most four descriptors, SYN and FIN lie between them.
QUEUED = LENGTH_WIDTH + 4
#: Numbers that the store compares as soon as it has them back. They are right at once, whether they
#: have changed or not; which of the others are new is found out as they are written.
COMPARED = ("snd_nxt", "snd_end", "rcv_nxt", "rcv_pub")


class _Places:
    """Where the record's fields lie in the RAM: each number in lanes of its own, then the rest."""

    def __init__(self, layout):
        self.layout = layout
        self.numbers = [name for name in layout.members if name in NUMBERS]
        self.rest = [name for name in layout.members if name not in NUMBERS]
        self.lanes = []  # of each, the number that lies there, or None
        for name in self.numbers:
            self.lanes += [name] * -(-layout[name].width // LANE)
        self.lanes += [None] * -(-sum(layout[name].width for name in self.rest) // LANE)
        self.width = LANE * len(self.lanes)

    def pack(self, record):
        """The RAM's word for a record."""
        parts = []
        for name in self.numbers:
            bits = Value.cast(record[name])
            parts += [bits, C(0, -len(bits) % LANE)]
        return Cat(*parts, *(record[name] for name in self.rest))

    def unpack(self, word):
        """The record of one of the RAM's words, as bits."""
        at, bits = 0, {}
        for name in (*self.numbers, *self.rest):
            width = self.layout[name].width
            bits[name] = word[at : at + width]
            at += width if name in self.rest else width + -width % LANE
        return Cat(bits[name] for name in self.layout.members)


class SessionStore(wiring.Component):
    """Holds the session records in block RAM and lends them to engines, one at a time.

    Each engine has a port with :class:`~trebuchet.cores.tcp.record.CheckoutSignature`; a
    round-robin arbiter decides who is next. After each hand-back the store looks at the record
    and puts the session on the lists it belongs on, so no engine can forget to wake another:

    * *active*: something is to be sent;
    * *event*, one list per service: something is to be told;
    * *recycle*: TIME-WAIT sessions that are released, oldest first;
    * freed: over, released, and no read or write of its memory is under way.

    A list is a FIFO of session numbers with a bit in the record that says "is on it", so none can
    overflow. An engine that serves a list is handed its head (``active_session``, …), requests
    that session, and the entry leaves the list with the grant.

    ====================  ===  =================================================================
    ``<engine>``          In   a checkout port for each engine named in ``engines``
    ``active_valid``      Out  the active list is not empty; ``active_session`` is its head
    ``event_valid``       Out  a bit per service; ``event_session_<k>`` are the heads
    ``recycle_valid``     Out  the recycle list is not empty; ``recycle_session`` is its head
    ``recycling``         In   the timer's request is for the recycle list's head
    ``event_pick``        In   which event list's head the event engine's request is for
    ``place``             Out  with ``place_session``: a session wants its first place on the
                               timer wheel; one cycle
    ``reap``              Out  with ``reap_session``: that slot has been freed; one cycle
    ``give``              Out  with ``give_segment``: that pool segment is free; one cycle
    ``half_open``         Out  sessions in SYN-RCVD
    ``taken``             Out  a strobe per service: it has one session more, in the cycle after
                               the hand-back that began it
    ``freed``             Out  a strobe per service: it has one session less; some cycles late
    ``ready``             Out  0 while the records are being cleared after reset
    ``now``               In   time in ticks
    ====================  ===  =================================================================

    What an engine hands back as a deadline is counted from the hand-back, when ``progress`` is set.
    A checkout takes 4 cycles more than the engine holds the record: choose, fetch, read, return.
    Reset: clears all records, one a cycle.

    Parameters: ``config``; ``engines``, a dict from engine name to the fields it writes. The names
    ``transmit``, ``events``, ``timer`` must be among them; ``more``, members of a subclass.
    """

    def __init__(self, config, engines, more=None):
        self.config, self.engines = config, dict(engines)
        s, n = config.session_bits, len(config.ports)
        members = {
            name: In(CheckoutSignature(config, writes)) for name, writes in self.engines.items()
        }
        members |= {f"event_session_{k}": Out(s) for k in range(n)}
        super().__init__(
            members
            | {
                "active_valid": Out(1),
                "active_session": Out(s),
                "event_valid": Out(n),
                "recycle_valid": Out(1),
                "recycle_session": Out(s),
                "recycling": In(1),
                "event_pick": In(range(max(2, n))),
                "place": Out(1),
                "place_session": Out(s),
                "reap": Out(1),
                "reap_session": Out(s),
                "give": Out(1),
                "give_segment": Out(config.segment_bits),
                "half_open": Out(range(config.sessions + 1)),
                "taken": Out(n),
                "freed": Out(n),
                "ready": Out(1),
                "now": In(TIME_WIDTH),
            }
            | (more or {})
        )

    def elaborate(self, platform):
        m = Module()
        config, names = self.config, list(self.engines)
        layout = record_layout(config)
        ports = self._engine_ports()
        self.places = places = _Places(layout)
        m.submodules.ram = ram = Memory(
            shape=unsigned(places.width), depth=config.sessions, init=[], attrs=NO_COLLISIONS
        )
        ram_r, ram_w = ram.read_port(), ram.write_port(granularity=LANE)
        record, back = Signal(layout), Signal(layout)  # as checked out; what was handed back
        changed = Signal(data.StructLayout({name: 1 for name in places.numbers}))
        then = Signal(TIME_WIDTH)  # when it was handed back
        session = Signal(config.session_bits)
        owner, chosen = Signal(range(len(names))), Signal(range(len(names)))
        requests = Signal(len(names))
        m.d.comb += [requests[k].eq(port.request) for k, port in enumerate(ports)]
        for port in ports:
            m.d.comb += port.record.eq(record)

        self._choose(m, owner, chosen, requests)
        with m.Switch(owner):
            for k, port in enumerate(ports):
                with m.Case(k):
                    m.d.comb += ram_r.addr.eq(port.session)
        pop = Signal(len(names))  # one-hot: the request of engine k is being served

        written = Signal(layout)
        recycling = Signal()  # this checkout serves the recycle list
        skip = {
            "active": owner == names.index("transmit"),
            "event": owner == names.index("events"),
            "recycle": recycling,
        }

        lend = Signal()
        done = self._grants(m, owner, lend)
        with m.FSM(init="CLEAR") as fsm:
            with m.State("CLEAR"):
                m.d.comb += ram_w.en.eq(~0)
                m.d.sync += session.eq(session + 1)
                with m.If(session == config.sessions - 1):
                    m.next = "CHOOSE"
            with m.State("CHOOSE"):
                m.d.comb += self.ready.eq(1)
                with m.If(requests.any()):
                    m.d.sync += owner.eq(chosen)
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.comb += [self.ready.eq(1), pop.eq(1 << owner)]
                m.d.sync += session.eq(ram_r.addr)
                m.d.sync += recycling.eq(pop[names.index("timer")] & self.recycling)
                m.next = "READ"
            with m.State("READ"):
                m.d.comb += self.ready.eq(1)
                m.d.comb += lend.eq(1)
                m.d.sync += Value.cast(record).eq(places.unpack(ram_r.data))
                m.next = "LENT"
            with m.State("LENT"):
                m.d.comb += self.ready.eq(1)
                m.d.sync += then.eq(self.now)
                self._take(m, owner, record, back, changed)
                with m.If(done):
                    m.next = "RETURN"
            with m.State("RETURN"):
                m.d.comb += self.ready.eq(1)
                m.d.comb += ram_w.en.eq(Cat(changed[k] if k else 1 for k in places.lanes))
                m.next = "CHOOSE"
        new, after = self._settle(m, record, back, changed, then)
        # Both copies of the record are 0, a free slot, while the store is being cleared, so that
        # what is written then needs no gate of its own: 800 LUTs.
        returning = fsm.ongoing("RETURN")
        self.ram, self.fsm, self.owner = ram, fsm, owner  # for the invariants of its proof
        self.lent, self.serves_recycle = (session, record, after), recycling
        self.returned = back, changed, then
        pushes = self._file(m, record, after, session, written, skip, returning)
        m.d.comb += [written[name].eq(new[name]) for name in places.numbers]
        m.d.comb += [ram_w.addr.eq(session), ram_w.data.eq(places.pack(written))]
        pops = {
            "active": pop[names.index("transmit")],
            "event": pop[names.index("events")],
            "recycle": pop[names.index("timer")] & self.recycling,
        }
        self._lists(m, session, pushes, pops, after.service)
        return m

    def _choose(self, m, owner, chosen, requests):
        """Round robin: the first requester after the last owner."""
        names = list(self.engines)
        with m.Switch(owner):
            for k in range(len(names)):
                with m.Case(k):
                    for j in reversed(range(1, len(names) + 1)):
                        j = (k + j) % len(names)
                        with m.If(requests[j]):
                            m.d.comb += chosen.eq(j)

    def _grants(self, m, owner, lend):
        """From the cycle after ``lend`` up to the commit, whose strobe is returned: registers,
        because what an engine hands back waits for its grant."""
        ports = self._engine_ports()
        grants, done = Signal(len(ports), name="grants"), Signal(name="done")
        self.handed = Signal(name="handed")  # the cycle after the commit
        m.d.sync += self.handed.eq(done)
        m.d.comb += [port.grant.eq(grants[k]) for k, port in enumerate(ports)]
        m.d.comb += done.eq(Cat(grants[k] & port.commit for k, port in enumerate(ports)).any())
        with m.If(lend):
            m.d.sync += grants.eq(1 << owner)
        with m.Elif(done):
            m.d.sync += grants.eq(0)
        return done

    def _take(self, m, owner, record, back, changed):
        """What the owner hands back. A number that one engine writes comes from there in any case;
        it counts only if it has changed (but see :data:`COMPARED`)."""
        ports = self._engine_ports()
        values = [port.result for port in ports]
        for name in record.shape().members:
            mine = [k for k, port in enumerate(ports) if name in port.signature.writes]
            if name not in NUMBERS:
                m.d.sync += back[name].eq(record[name])
                for k in mine:
                    with m.If(owner == k):
                        m.d.sync += back[name].eq(values[k][name])
                continue
            changes = [(owner == k) & ports[k].changes[name] for k in mine]
            m.d.sync += changed[name].eq(Cat(changes).any())
            if name == "progress":
                continue
            value = Signal.like(record[name], name=f"back_{name}")
            for at, k in enumerate(mine):
                with m.If((owner == k) if at else 1):
                    m.d.comb += value.eq(values[k][name])
            if name in COMPARED:
                value = Mux(Cat(changes).any(), value, record[name])
            m.d.sync += back[name].eq(value)

    def _settle(self, m, record, back, changed, then):
        """What is handed back, as records: one whose numbers that change are right; all right."""
        new, after = Signal(back.shape()), Signal(back.shape())
        m.d.comb += [new.eq(back), new.deadline.eq(then + back.deadline), new.progress.eq(then)]
        m.d.comb += after.eq(new)
        for name in changed.shape().members:
            if name not in COMPARED:
                m.d.comb += after[name].eq(Mux(changed[name], new[name], record[name]))
        return new, after

    def _engine_ports(self):
        return [getattr(self, name) for name in self.engines]

    def _file(self, m, record, after, session, written, skip, returning):
        """Decide which lists the record handed back belongs on; return the pushes."""
        w = Signal(record_layout(self.config), name="w")  # what is written
        is_open, is_closed = after.phase == Phase.OPEN, after.phase == Phase.CLOSED
        near = self.config.place_bits  # RCV.NXT is not further from RCV.PUB than two segments
        unsent = (after.snd_nxt[:QUEUED] != after.snd_end[:QUEUED]) & is_open & ~after.blocked
        answered = after.check & (after.count != 0) & (after.flight == 0)
        was = {name: after[f"on_{name}"] & ~skip[name] for name in skip}
        want = {name: Signal(name=f"want_{name}") for name in skip}
        free = Signal()
        due = after.ack_due | after.syn_due | after.rst_due
        events = after.ev_open | after.ev_data | after.ev_eof
        m.d.comb += [
            want["active"].eq(due | after.resend | after.probe | after.keepalive | unsent),
            want["event"].eq(events | answered | (after.ev_closed & (after.count == 0))),
            want["recycle"].eq((after.phase == Phase.TIME_WAIT) & after.released),
            free.eq(
                is_closed
                & after.released
                & ~(want["active"] | was["active"] | want["event"] | was["event"])
                & (after.count == 0)
                & (after.flight == 0)
                & (after.rcv_nxt[:near] == after.rcv_pub[:near])
            ),
            self.reap.eq(returning & free),
            self.reap_session.eq(session),
            self.give.eq(returning & record.has_segment & ~(after.has_segment & ~free)),
            self.give_segment.eq(record.segment),
            self.place.eq(returning & after.on_wheel & ~record.on_wheel),
            self.place_session.eq(session),
            w.eq(after),
            [w[f"on_{name}"].eq(was[name] | want[name]) for name in skip],
            written.eq(w),
        ]
        with m.If(free):
            m.d.comb += [w.phase.eq(Phase.FREE), w.has_segment.eq(0)]
        begins, began = after.phase == Phase.SYN_RCVD, record.phase == Phase.SYN_RCVD
        with m.If(returning):
            m.d.sync += self.half_open.eq(self.half_open + (begins & ~began) - (began & ~begins))
            if self.config.trace:
                trace_phase(m, self.now, session, record.phase, w.phase)
        self._uses(m, record, after, free)
        self.frees, self.wanted = free, {name: want[name] & ~was[name] for name in skip}
        return {name: returning & want[name] & ~was[name] for name in skip}

    def _uses(self, m, record, after, free):
        """Which service has a session more, which one less."""
        was = record.phase != Phase.FREE
        moved = Signal(name="moved")  # the slot was not this service's
        m.d.comb += moved.eq(~was | (record.service != after.service))
        for k in range(len(self.config.ports)):
            begins = (after.phase != Phase.FREE) & moved & (after.service == k)
            leaves = was & (moved | (after.phase == Phase.FREE)) & (record.service == k)
            ends = (free & (after.service == k)) | leaves
            m.d.comb += self.taken[k].eq(self.handed & begins)
            m.d.sync += self.freed[k].eq(self.handed & ends)

    def _fifo(self, m, name, session, push, pop):
        """One list; return its two outputs."""
        config = self.config
        width, ram = config.session_bits, config.lut_ram
        fifo = NumberList(width=width, depth=config.sessions, lut_ram=ram)
        m.submodules[name] = fifo
        m.d.comb += [fifo.w_data.eq(session), fifo.w_en.eq(push), fifo.r_en.eq(pop)]
        return fifo.r_rdy, fifo.r_data

    def _lists(self, m, session, pushes, pops, service):
        push = {name: Signal(name=f"push_{name}") for name in pushes}
        m.d.comb += [push[name].eq(pushes[name]) for name in pushes]
        valid, head = self._fifo(m, "active", session, push["active"], pops["active"])
        m.d.comb += [self.active_valid.eq(valid), self.active_session.eq(head)]
        valid, head = self._fifo(m, "recycle", session, push["recycle"], pops["recycle"])
        m.d.comb += [self.recycle_valid.eq(valid), self.recycle_session.eq(head)]
        for k in range(len(self.config.ports)):
            mine = push["event"] & (service == k)
            picked = pops["event"] & (self.event_pick == k)
            valid, head = self._fifo(m, f"event_{k}", session, mine, picked)
            m.d.comb += [self.event_valid[k].eq(valid)]
            m.d.comb += getattr(self, f"event_session_{k}").eq(head)
