"""The session store in external memory: records of sessions at work in a cache on chip."""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..memory import MemorySignature
from .cache_transfer import CacheLineTransfer
from .line import extension_layout, rest_layout, whole
from .lists import ListServer
from .lookup import session_tuple
from .record import (
    NUMBERS,
    TIME_WIDTH,
    Phase,
    descriptor_layout,
    peer_layout,
    record_layout,
    wake_width,
)
from .store import SessionStore
from .wheels import Alarm

__all__ = ["CachedStore"]

#: Block RAM, of which no word is used that was read while it was written.
_RAM = {**NO_COLLISIONS, "ram_style": "block"}


class CachedStore(SessionStore):
    """:class:`~trebuchet.cores.tcp.store.SessionStore` for more sessions than block RAM holds.

    Beside the records it keeps who each session is with, and its transmit descriptors: they come
    and go together. The cache has ``config.cache`` slots; a session's is the low bits of its
    number. An engine that asks for a session which is not there is set aside until it is; others
    are served meanwhile, and their misses begin, up to ``2**config.tag_width`` at a time
    (:class:`~trebuchet.cores.tcp.cache_transfer.CacheLineTransfer`).

    Ports beside those of ``SessionStore``:

    =====================  ===  ================================================================
    ``peer_write``         In   ``new_peer`` is who the session lent is with
    ``peer``               Out  who that is, from the second cycle of a grant on
    ``address_<engine>``   In   of a descriptor of the session lent (place in the ring, number),
                                for engines ``transmit`` and ``events``
    ``descriptor``         Out  what is there, 1 cycle later
    ``enter``              In   write ``entry`` to ``entry_address``, for the session lent, at the
                                latest in the cycle after its hand-back
    ``hint``               In   with ``hint_session``: it will be asked for; until ``hint_taken``
    ``miss``               Out  strobe: a move has begun
    ``place``              Out  ``place_session`` is to be visited at tick ``place_wake``, is on a
                                wheel if ``place_linked``; until ``place_taken``
    ``reap``               Out  with ``reap_session``, who was with ``reap_tuple``; until
                                ``reap_taken``
    ``high``               Out  no session with this number, or a higher one, was ever used
    ``listed``             Out  a session is on the active list or on an event list
    ``mem``                Out  memory port of the records
    ``lists_mem``          Out  memory port of the lists, which are in a
                                :class:`~trebuchet.cores.tcp.lists.ListServer`
    =====================  ===  ================================================================

    A session that is in the cache is lent after as many cycles as from block RAM. Coherence:

    * Nothing that is lent can be moved: a move begins between two checkouts, with the victim's
      record as it is then, and closes the slot until everything is over, writes included. So
      there is one copy of a session at any time, or one in the cache that is newer than memory's.
    * The engine that missed finds the slot closed to all others until it has had its turn, so that
      two sessions cannot throw each other out for ever.
    * Numbers at or above the *high-water mark* have never been used: nothing is read for them, and
      nothing written. The mark moves as the next one is lent. So memory needs no clearing.

    A hand-back waits for the lists, the wheels and the index, which wait for memory alone.

    Reset: the cache is empty after a cycle a slot; the high-water mark is 0.
    """

    def __init__(self, config, engines):
        s = config.session_bits
        self.slots, self.slot_bits = config.cache, (config.cache - 1).bit_length()
        self.mover = CacheLineTransfer(config, self.slots)
        more = {
            "peer_write": In(1),
            "new_peer": In(peer_layout(config)),
            "peer": Out(peer_layout(config)),
            "address_transmit": In(s + 2),
            "address_events": In(s + 2),
            "descriptor": Out(descriptor_layout()),
            "enter": In(1),
            "entry_address": In(s + 2),
            "entry": In(descriptor_layout()),
            "hint": In(1),
            "hint_session": In(s),
            "hint_taken": Out(1),
            "miss": Out(1),
            "place_wake": Out(wake_width()),
            "place_linked": Out(1),
            "place_taken": In(1),
            "reap_tuple": Out(64),
            "reap_taken": In(1),
            "high": Out(range(config.sessions + 1)),
            "listed": Out(1),
            "mem": Out(MemorySignature(config.width, config.tag_width)),
            "lists_mem": Out(MemorySignature(config.width, 0)),
        }
        self.lists = ListServer(
            config.list_count,
            config.sessions,
            config.width,
            base=config.lists_base,
            block=min(32, config.sessions // 2),
        )
        super().__init__(config, engines, more)

    def elaborate(self, platform):
        m = Module()
        config, names = self.config, list(self.engines)
        layout = record_layout(config)
        m.submodules.mover = self.mover
        wiring.connect(m, self.mover.mem, wiring.flipped(self.mem))
        self._rams(m)
        record, back = Signal(layout), Signal(layout)  # as checked out; what was handed back
        changed = Signal(data.StructLayout({n: 1 for n in layout.members if n in NUMBERS}))
        then = Signal(TIME_WIDTH)  # when it was handed back
        _, after = self._settle(m, record, back, changed, then)
        self.session = session = Signal(config.session_bits)
        self.owner = owner = Signal(range(len(names) + 1))  # the last one: a hint
        self.serves_recycle = recycling = Signal()
        self.lent = session, record, after  # for the invariants of its proof
        pop, recycles = Signal(len(names)), Signal()
        for name in names:
            m.d.comb += getattr(self, name).record.eq(record)
        written = Signal(layout.size)
        skip = {
            "active": owner == names.index("transmit"),
            "event": owner == names.index("events"),
            "recycle": recycling,
        }
        self.filed, self.asks_place, self.aim = Signal(), Signal(), Signal(wake_width())
        self._requests(m)
        self._moves(m)
        m.d.comb += recycles.eq(pop[names.index("timer")] & self.recycling)
        done = self._grants(m, owner, self.lends)
        with m.FSM(init="CLEAR") as fsm:
            self.fsm = fsm
            with m.State("CLEAR"):
                m.d.sync += session.eq(session + 1)
                with m.If(session == self.slots - 1):
                    m.next = "CHOOSE"
            with m.State("CHOOSE"):
                with m.If(self.asks.any() | self.hint):
                    m.d.sync += owner.eq(self.chosen)
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += session.eq(self.asked)
                m.next = "READ"
            with m.State("READ"):
                m.d.sync += [Value.cast(record).eq(self.stored), recycling.eq(recycles)]
                m.next = "CHOOSE"
                with m.If(owner == len(names)):
                    m.d.comb += self.hint_taken.eq(1)
                    m.d.comb += self.mover.start.eq(self.begin)
                with m.Elif(self.hit):
                    m.d.comb += [pop.eq(1 << owner), self.lends.eq(1)]
                    m.next = "LENT"
                with m.Else():
                    self._missed(m)
            with m.State("LENT"):
                m.d.sync += then.eq(self.now)
                self._take(m, owner, record, back, changed)
                with m.If(done):
                    m.next = "RETURN"
            with m.State("RETURN"):
                with m.If(self.filed):
                    with m.If(session == self.high):
                        m.d.sync += self.high.eq(self.high + 1)
                    m.next = "CHOOSE"
        m.d.comb += self.ready.eq(~fsm.ongoing("CLEAR"))
        returning = Signal()
        m.d.comb += returning.eq(fsm.ongoing("RETURN") & self.filed)
        self._file(m, record, after, session, written, skip, returning)
        self._ports(m, written, returning)
        pops = {
            "active": pop[names.index("transmit")],
            "event": pop[names.index("events")],
            "recycle": recycles,
        }
        self._alarm(m, after)
        self._serve(m, pops, after.service)
        return m

    def _alarm(self, m, after):
        """When the session is to be visited next; what is written of that."""
        m.submodules.alarm = alarm = Alarm()
        m.d.comb += [
            alarm.now.eq(self.now),
            alarm.deadline.eq(after.deadline),
            alarm.linked.eq(after.on_wheel),
            alarm.wake.eq(after.wake),
            self.asks_place.eq(alarm.ask & (after.phase != Phase.FREE) & ~self.frees),
            self.aim.eq(alarm.aim),
            self.place_wake.eq(alarm.aim),
            self.place_linked.eq(after.on_wheel),
        ]

    def _serve(self, m, pops, service):
        """The lists; a hand-back ends when they, wheels and index have taken what is theirs."""
        m.submodules.lists = lists = self.lists
        wiring.connect(m, lists.mem, wiring.flipped(self.lists_mem))
        n = len(self.config.ports)
        returns = self.fsm.ongoing("RETURN")
        mask, pushed, placed, reaped = Signal(2 + n), Signal(), Signal(), Signal()
        push = lists.push
        m.d.comb += [
            mask.eq(Cat(self.wanted["active"], self.wanted["recycle"])),
            push.valid.eq(returns & (mask != 0) & ~pushed),
            push.payload.lists.eq(mask),
            push.payload.session.eq(self.session),
            self.place.eq(returns & self.asks_place & ~placed),
            self.reap.eq(returns & self.frees & ~reaped),
            self.reap_tuple.eq(session_tuple(self.peer)),
            self.filed.eq(
                ((mask == 0) | pushed | push.ready)
                & (~self.asks_place | placed | self.place_taken)
                & (~self.frees | reaped | self.reap_taken)
            ),
            self.listed.eq((lists.busy & ~0b10).any()),
            lists.pop.eq(Cat(pops["active"], pops["recycle"])),
            Cat(self.active_valid, self.recycle_valid, self.event_valid).eq(lists.valid),
            self.active_session.eq(lists.head[0]),
            self.recycle_session.eq(lists.head[1]),
        ]
        for k in range(n):
            m.d.comb += [
                mask[2 + k].eq(self.wanted["event"] & (service == k)),
                lists.pop[2 + k].eq(pops["event"] & (self.event_pick == k)),
                getattr(self, f"event_session_{k}").eq(lists.head[2 + k]),
            ]
        m.d.sync += pushed.eq(returns & ~self.filed & (pushed | (push.valid & push.ready)))
        m.d.sync += reaped.eq(returns & ~self.filed & (reaped | (self.reap & self.reap_taken)))
        m.d.sync += placed.eq(returns & ~self.filed & (placed | (self.place & self.place_taken)))

    def _rams(self, m):
        """Line and extension of the record are apart, because they come one after the other."""
        config = self.config
        tag = config.session_bits - self.slot_bits
        entry = data.StructLayout({"valid": 1, "dirty": 1, "tag": tag, "rest": rest_layout(config)})
        shapes = {
            "lines": (entry, self.slots),
            "extensions": (extension_layout(config), self.slots),
            "peers": (peer_layout(self.config), self.slots),
            "descriptors": (descriptor_layout(), 4 * self.slots),
        }
        self.reads, self.writes = {}, {}
        for name, (shape, depth) in shapes.items():
            m.submodules[name] = ram = Memory(shape=shape, depth=depth, init=[], attrs=_RAM)
            self.reads[name], self.writes[name] = ram.read_port(), ram.write_port()
        lines, extensions = self.reads["lines"].data, self.reads["extensions"].data
        self.stored = whole(config, lines.rest, extensions)

    def _requests(self, m):
        """Who is next: the first one after the last owner that waits for no move; else a hint."""
        names = list(self.engines)
        n = len(names)
        self.waits, self.pending = Signal(n), Signal(n)  # for something to change; for its own move
        self.asks, self.chosen = Signal(n), Signal(range(n + 1), init=n)
        self.asked = Signal(self.config.session_bits)
        ports = [getattr(self, name) for name in names]
        for k, port in enumerate(ports):
            m.d.comb += self.asks[k].eq(port.request & ~self.waits[k] & ~self.pending[k])
        with m.Switch(self.owner):
            for k in range(n + 1):
                with m.Case(k):
                    for j in reversed(range(1, n + 1)):
                        j = (k + j) % n
                        with m.If(self.asks[j]):
                            m.d.comb += self.chosen.eq(j)
                    m.d.comb += self.asked.eq(ports[k].session if k < n else self.hint_session)

    def _moves(self, m):
        """What is under way, and what that means for the session that is looked at."""
        mover, count, n = self.mover, self.mover.moves, len(self.engines)
        self.used = used = Signal(count)
        self.movers = [Signal(range(n + 1), name=f"engine{k}") for k in range(count)]
        here, mine = Signal(count), Signal(count)
        slot = self.session[: self.slot_bits]
        lines = self.reads["lines"].data
        self.hit, self.begin, closed = Signal(), Signal(), Signal()
        self.move = Signal(self.config.tag_width)
        gone, idle_before = Signal(count), Signal()
        self.wake = wake = Signal()
        for i in range(count):
            m.d.comb += [
                here[i].eq(used[i] & (mover.numbers[i][: self.slot_bits] == slot)),
                mine[i].eq(here[i] & mover.done[i] & (self.movers[i] == self.owner)),
            ]
            with m.If(used[i] & mover.done[i] & (self.movers[i] == n)):  # nobody waits for a hint
                m.d.comb += gone[i].eq(1)
            for k in range(n):
                with m.If(used[i] & ~mover.done[i] & (self.movers[i] == k)):
                    m.d.comb += self.pending[k].eq(1)
        for i in reversed(range(count)):
            with m.If(~used[i]):
                m.d.comb += self.move.eq(i)
        victim = Cat(slot, lines.tag)
        m.d.comb += [
            closed.eq((here & ~mine).any()),
            self.hit.eq(lines.valid & (lines.tag == self.session[self.slot_bits :]) & ~closed),
            self.begin.eq(~self.hit & ~closed & mover.idle & ~used.all()),
            mover.move.eq(self.move),
            mover.number.eq(self.session),
            mover.fetch.eq(self.session < self.high),
            mover.victim.dirty.eq(lines.valid & lines.dirty & (victim < self.high)),
            mover.victim.number.eq(victim),
            mover.victim.rest.eq(lines.rest),
            mover.victim.extension.eq(self.reads["extensions"].data),
            mover.victim.peer.eq(self.reads["peers"].data),
        ]
        with m.If(mover.start):
            m.d.comb += self.miss.eq(1)
            for i in range(count):
                with m.If(self.move == i):
                    m.d.sync += [used[i].eq(1), self.movers[i].eq(self.owner)]
        self.lends = Signal()  # the session is lent now
        with m.If(self.lends):
            m.d.comb += gone.eq(mine)
        for i in range(count):
            with m.If(gone[i]):
                m.d.sync += used[i].eq(0)
        # Whoever finds the way closed waits until something has changed, then looks again.
        m.d.sync += [wake.eq(gone.any() | (mover.idle & ~idle_before)), idle_before.eq(mover.idle)]
        with m.If(wake):
            m.d.sync += self.waits.eq(0)

    def _missed(self, m):
        m.d.comb += self.mover.start.eq(self.begin)
        with m.If(~self.begin):
            m.d.sync += self.waits.eq(Mux(self.wake, 0, self.waits) | (1 << self.owner))

    def _ports(self, m, written, returning):
        """The RAMs: written by a hand-back, or when something comes in and there is none."""
        mover, session, fsm = self.mover, self.session, self.fsm
        lent, fetches = fsm.ongoing("LENT"), fsm.ongoing("FETCH")
        clears = fsm.ongoing("CLEAR")
        record = Signal(record_layout(self.config), name="back")
        m.d.comb += Value.cast(record).eq(written)
        with m.If(self.asks_place & returning):
            m.d.comb += [record.on_wheel.eq(1), record.wake.eq(self.aim)]
        slot = Mux(mover.install, mover.slot, session[: self.slot_bits])
        for write in self.writes.values():
            m.d.comb += write.addr.eq(slot)
        lines, extensions = self.writes["lines"], self.writes["extensions"]
        peers, descriptors = self.writes["peers"], self.writes["descriptors"]
        m.d.comb += [
            lines.en.eq(returning | clears | (mover.install & mover.whole)),
            lines.data.valid.eq(~clears),
            lines.data.dirty.eq(~mover.install),
            lines.data.tag.eq(Mux(mover.install, mover.session, session)[self.slot_bits :]),
            extensions.en.eq(returning | mover.install),
            peers.en.eq((lent & self.peer_write) | (mover.install & mover.whole)),
            peers.data.eq(Mux(mover.install, mover.line.peer, self.new_peer)),
            descriptors.en.eq(self.enter | mover.enter),
            descriptors.addr.eq(
                Mux(mover.enter, mover.entry_address, self._place(self.entry_address))
            ),
            descriptors.data.eq(Mux(mover.enter, mover.entry, self.entry)),
        ]
        for name in lines.data.rest.shape().members:
            ours = Mux(mover.install, Value.cast(mover.line.rest[name]), Value.cast(record[name]))
            m.d.comb += Value.cast(lines.data.rest[name]).eq(ours)
        for name in extensions.data.shape().members:
            ours = Mux(mover.install, Value.cast(mover.extension[name]), Value.cast(record[name]))
            m.d.comb += Value.cast(extensions.data[name]).eq(ours)
        asked = self.asked[: self.slot_bits]
        for name in ("lines", "extensions"):
            m.d.comb += self.reads[name].addr.eq(asked)
        busy = (lent & self.peer_write) | self.enter
        events = self.owner == list(self.engines).index("events")
        engine = Mux(events, self.address_events, self.address_transmit)
        m.d.comb += [
            self.reads["peers"].addr.eq(Mux(fetches, asked, session)),
            self.peer.eq(self.reads["peers"].data),
            self.reads["descriptors"].addr.eq(Mux(lent, self._place(engine), mover.address)),
            self.descriptor.eq(self.reads["descriptors"].data),
            mover.descriptor.eq(self.descriptor),
            mover.granted.eq(mover.ask & ~lent),
            # Not while a hand-back only waits: wheels and lists may share the mover's memory port,
            # and their answers come behind the line that the mover would not take.
            mover.quiet.eq(~returning & ~fetches & ~clears & ~busy),
        ]

    def _place(self, address):
        """Of a descriptor in the cache: place in the ring, slot."""
        return address[: 2 + self.slot_bits]
