"""Proof of the session store in external memory, ``cores/tcp/cached.py``: one copy of a session.

Eight sessions, two slots of the cache, two moves at a time, four engines. The solver picks one
session and one place in its ring of descriptors, which are followed. What engines handed back last
is remembered beside the store: the record with what the store itself changes in it, who the
session is with, the descriptor.

* An engine that is lent the session is lent that: nothing, if it was never used.
* No two engines hold a record at a time; no move is under way in the slot of what is lent, and none
  is said to be, so nobody closes it; its line is the session's.
* Where the copy is: in the cache, if its line is there and is the session's; else on its way to
  memory, if it was a victim and has not arrived; else in memory. A line that has not changed since
  it came is in memory, too. At and above the high-water mark there is nothing.
* No line is read while it is written, neither in memory nor in the cache; a move begins only when
  the mover listens.
* Who is reaped is who the session was with.

In the place of the line transfer is anything that keeps its data sheet
(:class:`~.any_transfer.AnyTransfer`): moves take any time and end in any order. Memory holds
anything at first. The lists, the wheels and the index answer anything.

The engines may hand back anything, but of a session above the mark only what they were lent: the
numbers are given out in order (``number_stack.py``), and who looks at others changes nothing. They
enter descriptors of the session lent only, at the latest in the cycle after it is handed back; a
request stays until it is granted. The mover may take
a record for one at rest at any time: then it is still given back to the bit, which the real one
does for fields that have a meaning (``line.py``), but the descriptors are not.

The record is cut down as in ``store.py``, who a session is with to a bit a field, a descriptor
to two bits.

Not proved: the mover itself and its formats; that a request is granted at all; lists, strobes and
numbers (``tcp_store`` proves the code that both stores share); other sizes; a reset while running,
which the clearing of the cache is for.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Shape, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from trebuchet.cores.tcp import cache_transfer as mover
from trebuchet.cores.tcp import line, record, store
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.record import Phase

from ..kit.inside import patched
from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated, only_part, state_is
from ..stream import free, new_harness
from .any_transfer import AnyTransfer
from .checkout import handed_back
from .store import ENGINES, LISTS, filed, narrow, written

__all__ = ["PROOFS"]

CONFIG = TcpConfig(width=64, tag_width=1, sessions=8, segments=2, cache=2, ports=(7, 9))
PEER = data.StructLayout(dict.fromkeys(("mac", "ip", "remote_port", "local_port"), 1))
DESCRIPTOR = data.StructLayout({"delta": 2})


def _ram(*, shape, depth, init, attrs):
    """A RAM that is full of ones at first, for it is not the RAM that makes the cache empty."""
    del init
    ones = (1 << Shape.cast(shape).width) - 1
    return Memory(shape=shape, depth=depth, init=[shape.from_bits(ones)] * depth, attrs=attrs)


def _store(cores):
    """The store with narrow records, elaborated without its mover and its lists."""
    layouts = {
        "record_layout": narrow,
        "peer_layout": lambda config: PEER,
        "descriptor_layout": lambda: DESCRIPTOR,
    }
    with (
        patched(record, **layouts),
        patched(line, **layouts),
        patched(mover, **layouts),
        patched(store, record_layout=narrow),
        patched(cores, Memory=_ram, **layouts),
    ):
        dut = cores.CachedStore(CONFIG, ENGINES)
        only_part(dut.mover)
        only_part(dut.lists)
        return dut, elaborated(dut)


def _same(part, whole):
    """Whether a part of a record has the values of the whole."""
    names = part.shape().members
    return Cat(Value.cast(part[n]) == Value.cast(whole[n]) for n in names).all()


class CachedProof(Elaboratable):
    def __init__(self, cores):
        self.dut, self.inner = _store(cores)

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        self.names = list(dut.engines)
        self.ports = {name: getattr(dut, name) for name in self.names}
        self.session, _, self.after = dut.lent
        self.watched = Signal(dut.config.session_bits, name="watched")
        self.place = Signal(2, name="place")
        self.was = Signal(len(self.names), name="was")  # granted in the cycle before
        m.d.comb += [self.watched.eq(AnyConst(len(self.watched))), self.place.eq(AnyConst(2))]
        self.slot, self.tag = self.watched[: dut.slot_bits], self.watched[dut.slot_bits :]
        self.mover = AnyTransfer(m, dut.mover, self.watched, self.place)
        self._engines(m)
        self._truth(m)
        self._cache(m)
        self._lent(m)
        self._descriptors(m)
        self._moves(m)
        self._copies(m)
        self._looked_at(m)
        self._covers(m)
        return m

    def _at(self, *states):
        return state_is(self.dut.fsm, *states)

    def _engines(self, m):
        """Requests stay until they are granted; all else is free, lists and wheels as well."""
        dut, lists = self.dut, self.dut.lists
        free(m, lists.push.ready, lists.valid, lists.busy, *lists.head)
        free(m, dut.recycling, dut.event_pick, dut.now, dut.peer_write, dut.new_peer, dut.enter)
        free(m, dut.address_transmit, dut.address_events, dut.entry_address, dut.entry)
        free(m, dut.hint, dut.hint_session, dut.place_taken, dut.reap_taken)
        self.stalled, self.asked = {}, {}
        for name, port in self.ports.items():
            free(m, port.request, port.session, port.commit, port.result, port.changes)
            stalled = self.stalled[name] = Signal(name=f"{name}_stalled")
            asked = self.asked[name] = Signal.like(port.session, name=f"{name}_asked")
            m.d.sync += [stalled.eq(port.request & ~port.grant), asked.eq(port.session)]
            m.d.comb += Assume(port.grant | ~port.commit)
            with m.If(stalled):
                m.d.comb += Assume(port.request & (port.session == asked))
        may = self._at("LENT", "RETURN") & Cat(self._granted(), self.was).any()
        m.d.comb += Assume(~dut.enter | (may & (dut.entry_address[2:] == self.session)))

    def _granted(self):
        return Cat(port.grant for port in self.ports.values())

    def _truth(self, m):
        """What there must be of the followed session: ``truth``, ``peer``; ``descriptor`` if it is
        ``known``. It is forgotten when the mover finds the session at rest."""
        dut, mover = self.dut, self.mover
        layout = narrow(dut.config)
        self.truth, self.kept = Signal(layout, name="truth"), Signal(layout, name="kept")
        self.before = Signal(layout, name="before")
        self.peer, self.descriptor = Signal(PEER, name="peer_"), Signal(DESCRIPTOR, name="is")
        self.known = Signal(name="known")
        self.lent = Signal(name="lent")  # the followed session, up to the end of its hand-back
        unused = self.session > dut.high
        m.d.comb += self.lent.eq(self._at("LENT", "RETURN") & (self.session == self.watched))
        for port in self.ports.values():
            back = handed_back(m, port, dut.now)
            with m.If(port.grant):
                m.d.sync += [self.before.eq(port.record), self.kept.eq(back)]
                with m.If(unused):
                    m.d.comb += Assume(~dut.peer_write)
                    same = Value.cast(back) == Value.cast(port.record)
                    m.d.comb += Assume(~port.commit | same)
        m.d.comb += Assume(~(dut.enter & unused))
        serves = {"active": dut.owner == self.names.index("transmit")}
        serves |= {"event": dut.owner == self.names.index("events")}
        serves["recycle"] = dut.serves_recycle
        said = filed(self.before, self.kept, serves)
        new = written(m, self.kept, said)
        with m.If(dut.asks_place):  # what the alarm says is its own matter
            m.d.comb += [new.on_wheel.eq(1), new.wake.eq(dut.aim)]
        self.returning = self._at("RETURN") & dut.filed
        mine = self._at("LENT") & self.lent
        with m.If(self.lent & self.returning):
            m.d.sync += self.truth.eq(new)
        with m.If(mine & dut.peer_write):
            m.d.sync += self.peer.eq(dut.new_peer)
        with m.If(self.lent & dut.enter & (dut.entry_address[:2] == self.place)):
            m.d.sync += [self.descriptor.eq(dut.entry), self.known.eq(1)]
        with m.If(mover.goes & ~mover.going.extended):
            m.d.sync += self.known.eq(0)

    def _cache(self, m):
        """What the slot of the followed session holds."""
        rams, cells = self.inner.submodules, {}
        for name in ("lines", "extensions", "peers", "descriptors"):
            port = rams[name].read_port(domain="comb")
            at = Cat(self.place, self.slot) if name == "descriptors" else self.slot
            m.d.comb += port.addr.eq(at)
            cells[name] = port.data
        self.line, self.extension = cells["lines"], cells["extensions"]
        self.peer_here, self.descriptor_here = cells["peers"], cells["descriptors"]

    def _lent(self, m):
        """One engine at a time, with the session it asked for, and with all that is known of it."""
        dut, names = self.dut, self.names
        granted, was, writes = self._granted(), self.was, Signal(name="peer_was_written")
        m.d.sync += [was.eq(granted), writes.eq(dut.peer_write & granted.any())]
        who = Signal.like(self.session, name="who")
        m.d.sync += who.eq(self.session)
        self.first = Signal(name="first")
        m.d.comb += self.first.eq((granted & ~was).any())
        m.d.comb += Assert((granted & (granted - 1)) == 0)
        for k, (name, port) in enumerate(self.ports.items()):
            with m.If(port.grant):
                m.d.comb += Assert(self.session == Mux(was[k], who, port.session))
                with m.If(self.session == self.watched):
                    m.d.comb += Assert(Value.cast(port.record) == Value.cast(self.truth))
                    late = was[k] & ~writes
                    same = Value.cast(dut.peer) == Value.cast(self.peer)
                    m.d.comb += Assert(~late | same)
            # Invariants.
            m.d.comb += Assert(port.grant == (self._at("LENT") & (dut.owner == k)))
            m.d.comb += Assert(~was[k] | (self._at("LENT", "RETURN") & (dut.owner == k)))
            with m.If(self._at("FETCH", "READ") & (dut.owner == k)):
                m.d.comb += Assert(self.stalled[name])
            with m.If(self._at("READ") & (dut.owner == k)):
                m.d.comb += Assert(self.session == port.session)
            with m.If(port.grant & ~was[k]):
                m.d.comb += [Assert(self.stalled[name]), Assert(self.asked[name] == self.session)]
        m.d.comb += Assert(~self._at("LENT", "RETURN") | (dut.owner != len(names)))
        reaped = Cat(self.peer.local_port, self.peer.remote_port, self.peer.ip)
        with m.If(dut.reap & self.lent & ~writes):
            m.d.comb += Assert(dut.reap_tuple == reaped)
        self._handed_back(m)

    def _handed_back(self, m):
        """Invariants: nothing that was taken changes until it is written."""
        with m.If(self._at("RETURN")):
            m.d.comb += Assert(Value.cast(self.after) == Value.cast(self.kept))
            m.d.comb += Assert(Value.cast(self.dut.lent[1]) == Value.cast(self.before))
            same = Value.cast(self.kept) == Value.cast(self.before)
            m.d.comb += Assert((self.session <= self.dut.high) | same)
            for name in LISTS:  # what no engine writes
                m.d.comb += Assert(self.kept[f"on_{name}"] == self.before[f"on_{name}"])
        with m.If(self.lent):
            m.d.comb += Assert(Value.cast(self.dut.lent[1]) == Value.cast(self.truth))

    def _descriptors(self, m):
        """An engine that looks at a descriptor of its session sees what was entered last."""
        dut = self.dut
        for name in ("transmit", "events"):
            address, looks = getattr(dut, f"address_{name}"), Signal(name=f"{name}_looks")
            ours = address == Cat(self.place, self.watched)
            m.d.sync += looks.eq(self.ports[name].grant & self.lent & ours & ~dut.enter)
            with m.If(looks & self.known):
                same = Value.cast(dut.descriptor) == Value.cast(self.descriptor)
                m.d.comb += Assert(same)

    def _moves(self, m):
        """Moves under way in the slot of the followed session: one at most, and none if a session
        there is lent."""
        dut, mover, n = self.dut, self.mover, len(self.names)
        numbers, done = dut.mover.numbers, dut.mover.done
        here = [dut.used[k] & (numbers[k][: dut.slot_bits] == self.slot) for k in range(len(done))]
        busy = [~done[k] & (numbers[k][: dut.slot_bits] == self.slot) for k in range(len(done))]
        self.here = here
        lent = self._at("LENT", "RETURN") & (self.session[: dut.slot_bits] == self.slot)
        m.d.comb += Assert(sum(here) <= 1)
        with m.If(lent):
            m.d.comb += [Assert(~Cat(here, busy).any()), Assert(self.line.valid)]
            m.d.comb += Assert(self.line.tag == self.session[dut.slot_bits :])
        # Invariants.
        with m.If(self._at("CLEAR")):
            m.d.comb += [Assert(dut.used == 0), Assert(dut.high == 0)]
            m.d.comb += Assert(self.session < dut.slots)
            m.d.comb += Assert(~self.line.valid | (self.slot >= self.session))
        m.d.comb += Assert(dut.high <= dut.config.sessions)
        m.d.comb += Assert(dut.owner <= n)
        for k, who in enumerate(dut.movers):
            number = numbers[k]
            m.d.comb += [Assert(dut.used[k] | done[k]), Assert(who <= n)]
            m.d.comb += Assert(mover.lined[k] | ~mover.filled[k])
            for j, name in enumerate(self.names):
                with m.If(dut.used[k] & (who == j)):
                    m.d.comb += Assert(self.stalled[name] & (self.asked[name] == number))
                    m.d.comb += Assert(~self.ports[name].grant)
            with m.If(here[k]):
                new = self.line.valid & (self.line.tag == number[dut.slot_bits :])
                m.d.comb += Assert(new == mover.lined[k])
                m.d.comb += Assert(~(new & self.line.dirty))

    def _copies(self, m):
        """Where the one copy is."""
        dut, mover = self.dut, self.mover
        line, stored, going = self.line, mover.stored, mover.going
        old = Cat(self.here[k] & ~mover.lined[k] for k in range(len(self.here))).any()
        part = Cat(self.here[k] & ~mover.filled[k] for k in range(len(self.here))).any()
        cached = line.valid & (line.tag == self.tag) & ~old & ~self._at("CLEAR")
        self.used = self.watched < dut.high

        def holds(copy):
            rest = _same(copy.rest, self.truth) & _same(copy.extension, self.truth)
            return rest & (Value.cast(copy.peer) == Value.cast(self.peer))

        shown = Value.cast(self.descriptor)
        with m.If(cached):
            m.d.comb += Assert(_same(line.rest, self.truth))
            m.d.comb += Assert(Value.cast(self.peer_here) == Value.cast(self.peer))
            with m.If(~part):
                m.d.comb += Assert(_same(self.extension, self.truth))
                m.d.comb += Assert(~self.known | (Value.cast(self.descriptor_here) == shown))
        in_memory = self.used & ~mover.goes & (~cached | (~line.dirty & ~self.lent))
        with m.If(in_memory):
            m.d.comb += Assert(holds(stored))
            known = stored.extended & (Value.cast(stored.descriptor) == shown)
            m.d.comb += Assert(~self.known | known)
        with m.If(mover.goes):
            m.d.comb += [Assert(holds(going)), Assert(self.used), Assert(~cached)]
        with m.If(~self.used):
            m.d.comb += Assert(Value.cast(self.truth) == 0)
            with m.If(~self.lent | (self.watched != dut.high)):
                m.d.comb += [Assert(Value.cast(self.peer) == 0), Assert(~self.known)]
        self._under_way(m, shown)

    def _under_way(self, m, shown):
        """Invariants of what comes in and goes out."""
        dut, mover = self.dut, self.mover
        for k, number in enumerate(dut.mover.numbers):
            comes = ~mover.filled[k] & (number == self.watched)
            m.d.comb += Assert(~(comes & mover.goes))  # no line is read while it is written
            with m.If(comes):
                m.d.comb += Assert(mover.fetch[k] == self.used)
                with m.If(mover.lined[k]):
                    m.d.comb += Assert(mover.fetch[k] & mover.stored.extended)
                m.d.comb += Assert(~mover.entered | (mover.lined[k] & ~mover.leaving[k]))
                entered = Value.cast(self.descriptor_here) == Value.cast(mover.stored.descriptor)
                m.d.comb += Assert(~mover.entered | entered)
            with m.If(mover.goes & (mover.by == k)):
                m.d.comb += [Assert(mover.writes[k]), Assert(number != self.watched)]
                m.d.comb += Assert(self.here[k])
                m.d.comb += Assert(mover.leaving[k] | ~mover.going.extended | mover.sent)
        out = mover.goes & mover.going.extended
        sent = Value.cast(mover.going.descriptor) == shown
        m.d.comb += Assert(~mover.sending | (out & ~mover.sent))
        with m.If(out & self.known):
            m.d.comb += Assert(Mux(mover.sent, sent, Value.cast(self.descriptor_here) == shown))
            with m.If(mover.sending):
                m.d.comb += Assert(Value.cast(dut.mover.descriptor) == shown)

    def _looked_at(self, m):
        """Nothing is written where it is read: a RAM would show anything."""
        dut, reads = self.dut, self.dut.reads
        with m.If(self._at("FETCH")):
            for name in ("lines", "extensions", "peers"):
                m.d.comb += Assert(~dut.writes[name].en)
        entries = dut.writes["descriptors"]
        meets = entries.en & (entries.addr == dut.mover.address)
        m.d.comb += Assert(~(self.mover.asks & meets))
        # Invariants: what stands at their outputs.
        same = self.session[: dut.slot_bits] == self.slot
        pairs = [("lines", self.line), ("extensions", self.extension), ("peers", self.peer_here)]
        with m.If(self._at("READ") & same):
            for name, here in pairs:
                m.d.comb += Assert(Value.cast(reads[name].data) == Value.cast(here))

    def _covers(self, m):
        """A hit; a first use, and one before its turn; a victim that comes back, changed, at rest
        or with its descriptor; two moves."""
        dut, mover = self.dut, self.mover
        first = self.first & self.lent
        out, back = Signal(name="went_out"), Signal(name="came_back")
        m.d.sync += out.eq(out | mover.goes)
        with m.If(out & ~mover.goes & dut.mover.install & (dut.mover.session == self.watched)):
            m.d.sync += back.eq(1)
        changed = (self.truth.mss != 0) & (self.truth.phase == Phase.OPEN)
        m.d.comb += [
            Cover(first & changed & ~out),
            Cover(self.lent & self.returning & (self.session == dut.high)),
            Cover(self.lent & self.returning & (self.session > dut.high)),
            Cover(first & back & changed & ~self.known),
            Cover(first & back & self.known & (Value.cast(self.descriptor) != 0)),
            Cover(dut.used.all() & Cat(self.here).any()),
        ]


PROOFS = (
    Proof(
        name="tcp_cached",
        core="cores.tcp.cached.CachedStore(8 sessions, 2 in the cache, 2 moves), narrow records",
        says="there is one copy of a session: what was handed back last is lent, wherever it was",
        module="trebuchet.cores.tcp.cached",
        build=CachedProof,
        depth=1,
        cover_depth=36,
        mutants=(
            Mutant(
                "victim_is_dropped",
                "lines.valid & lines.dirty & (victim < self.high)",
                "0",
                24,
            ),
            Mutant(
                "returns_clean",
                "lines.data.dirty.eq(~mover.install)",
                "lines.data.dirty.eq(mover.install)",
                24,
            ),
            Mutant(
                "tag_one_bit_short",
                "(lines.tag == self.session[self.slot_bits :])",
                "(lines.tag[:-1] == self.session[self.slot_bits : -1])",
                24,
            ),
            Mutant(
                "hits_what_is_closed",
                "lines.valid & (lines.tag == self.session[self.slot_bits :]) & ~closed",
                "lines.valid & (lines.tag == self.session[self.slot_bits :])",
                24,
            ),
            Mutant(
                "begins_where_closed",
                "~self.hit & ~closed & mover.idle",
                "~self.hit & mover.idle",
                24,
            ),
            Mutant(
                "moves_what_is_lent",
                "m.d.sync += then.eq(self.now)",
                "m.d.comb += self.mover.start.eq(self.hint & self.mover.idle)\n"
                "                m.d.sync += then.eq(self.now)",
                24,
            ),
            Mutant("mark_stays", "self.high.eq(self.high + 1)", "self.high.eq(self.high)", 24),
            Mutant("mark_moves_early", "with m.If(session == self.high):", "with m.If(1):", 24),
            Mutant("clears_nothing", "lines.data.valid.eq(~clears)", "lines.data.valid.eq(1)", 12),
            Mutant(
                "comes_in_elsewhere",
                "Mux(mover.install, mover.slot, session[: self.slot_bits])",
                "Mux(0, mover.slot, session[: self.slot_bits])",
                24,
            ),
            Mutant(
                "comes_in_while_read",
                "~returning & ~fetches & ~clears & ~busy",
                "~returning & ~clears & ~busy",
                24,
            ),
            Mutant(
                "comes_in_while_returned",
                "~returning & ~fetches & ~clears & ~busy",
                "~fetches & ~clears & ~busy",
                24,
            ),
            Mutant("answers_the_mover_late", "mover.ask & ~lent", "mover.ask", 30),
            Mutant(
                "looks_elsewhere",
                "Mux(events, self.address_events, self.address_transmit)",
                "Mux(0, self.now, self.address_transmit)",
                16,
            ),
            Mutant(
                "enters_against_the_mover",
                "(lent & self.peer_write) | self.enter",
                "lent & self.peer_write",
                30,
            ),
            Mutant("peer_of_another", "Mux(fetches, asked, session)", "asked", 24),
            Mutant(
                "peer_stays",
                "(lent & self.peer_write) | (mover.install & mover.whole)",
                "lent & self.peer_write",
                30,
            ),
        ),
        assumes="the checkout rules; CacheLineTransfer's data sheet; above the mark no changes",
        not_proved="CacheLineTransfer, its formats; progress; other numbers of sessions and moves",
    ),
)
