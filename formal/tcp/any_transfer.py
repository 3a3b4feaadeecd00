"""Contract of ``cores/tcp/cache_transfer.py`` for proofs of its users: one session is followed.

:class:`AnyTransfer` drives the ports of a ``CacheLineTransfer`` from which all else is taken
(:func:`~.standins.only_part`). It is free in all that the data sheet leaves open: when it listens,
how long a move takes, which of several ends first, when and in what order their lines, extensions
and descriptors come and go, whether a record is at rest, and whatever comes in for other sessions.

What it keeps to: it writes to the cache only for moves under way, when that is ``quiet``; a line
first, then, if there is an extension, descriptors and the rest, but these only when the victim's
have gone out. What it brings of the followed session is what memory holds, and nothing if there was
no ``fetch``. A move is ``done`` when all is in the cache, and its victim in memory.
"""

from amaranth.asserts import AnySeq, Initial
from amaranth.hdl import Array, Assert, Assume, Cat, Mux, Signal, Value
from amaranth.lib import data

from ..stream import free

__all__ = ["AnyTransfer"]


def _bit_of(signal, index):
    return signal.bit_select(index, 1)


class AnyTransfer:
    """Anything that keeps ``CacheLineTransfer``'s data sheet, and the followed session in memory.

    ``stored`` is what memory holds of it; while ``goes``, ``going`` is on its way there. Of each
    move: ``lined``, its line has come in; ``filled``, and so has the rest; ``leaving``, parts of
    its victim are still to be read; ``writes``, and to be written; ``fetch``, as it began.
    """

    def __init__(self, m, ports, session, place):
        self.m, self.ports, self.session, self.place = m, ports, session, place
        self.slot = session[: ports.slot_bits]
        shapes = {
            "rest": ports.line.rest.shape(),
            "extension": ports.extension.shape(),
            "peer": ports.line.peer.shape(),
            "descriptor": ports.descriptor.shape(),
            "extended": 1,
        }
        self.layout = data.StructLayout(shapes)
        n = ports.moves
        self.stored = Signal(self.layout, name="stored")
        self.going = Signal(self.layout, name="going")
        self.goes, self.by = Signal(name="goes"), Signal(range(n), name="by")
        self.sending, self.sent = Signal(name="sending"), Signal(name="sent")
        self.filled, self.lined = (Signal(n, init=-1, name=k) for k in ("filled", "lined"))
        self.leaving, self.writes = Signal(n, name="leaving"), Signal(n, name="writes")
        self.fetch = Signal(n, name="fetch")
        self.entered = Signal(name="entered")  # the followed descriptor has come in
        free(m, ports.idle, ports.install, ports.whole, ports.line, ports.extension)
        free(m, ports.enter, ports.entry, ports.ask, ports.address)
        m.d.comb += ports.done.eq(self.filled & ~self.leaving & ~self.writes)
        with m.If(Initial()):
            m.d.sync += Value.cast(self.stored).eq(AnySeq(self.layout.size))
        self._out()
        self._in()
        self._start()

    def _start(self):
        m, ports, victim = self.m, self.ports, self.ports.victim
        with m.If(ports.start):
            m.d.comb += [Assert(ports.idle), Assert(_bit_of(ports.done, ports.move))]
            for k, number in enumerate(ports.numbers):
                with m.If(ports.move == k):
                    m.d.sync += [number.eq(ports.number), self.fetch[k].eq(ports.fetch)]
                    m.d.sync += [self.filled[k].eq(0), self.lined[k].eq(0)]
                    m.d.sync += [self.leaving[k].eq(1), self.writes[k].eq(victim.dirty)]
            with m.If(ports.number == self.session):
                m.d.sync += self.entered.eq(0)
            with m.If(victim.dirty & (victim.number == self.session)):
                m.d.comb += Assert(~self.goes)
                m.d.sync += [self.goes.eq(1), self.by.eq(ports.move), self.sent.eq(0)]
                m.d.sync += [self.going[n].eq(victim[n]) for n in ("rest", "extension", "peer")]
                m.d.sync += self.going.extended.eq(AnySeq(1))

    def _out(self):
        """The victim leaves, a descriptor after the other if it is not at rest; it is written."""
        m, ports = self.m, self.ports
        lets, ends = AnySeq(ports.moves), AnySeq(ports.moves)
        for k in range(ports.moves):
            mine = self.goes & (self.by == k)
            with m.If(lets[k] & ~(mine & self.going.extended & ~self.sent)):
                m.d.sync += self.leaving[k].eq(0)
            with m.If(ends[k] & ~self.leaving[k]):
                m.d.sync += self.writes[k].eq(0)
                with m.If(mine):
                    m.d.sync += [self.goes.eq(0), self.stored.eq(self.going)]
        asks = ports.ask & ports.granted & (ports.address == Cat(self.place, self.slot))
        wants = self.goes & self.going.extended & ~self.sent & ~self.sending
        self.asks = asks & wants
        m.d.sync += self.sending.eq(self.asks)
        with m.If(self.sending):
            m.d.sync += [self.going.descriptor.eq(ports.descriptor), self.sent.eq(1)]

    def _in(self):
        """Some move's line comes in; if it is extended, descriptors and the rest after it."""
        m, ports = self.m, self.ports
        move, place, more = Signal(range(ports.moves)), Signal(2), Signal()
        number, coming = Signal.like(ports.number), Signal(self.layout, name="coming")
        free(m, move, place, more)
        lined, fetch = _bit_of(self.lined, move), _bit_of(self.fetch, move)
        open_ = ~_bit_of(self.filled, move) & ~(lined & _bit_of(self.leaving, move))
        ours = number == self.session
        m.d.comb += [
            number.eq(Array(ports.numbers)[move]),
            ports.session.eq(number),
            ports.slot.eq(number),
            ports.entry_address.eq(Cat(place, number[: ports.slot_bits])),
            Value.cast(coming).eq(Mux(fetch, self.stored, 0)),
            Assume(~(ports.install & ports.enter)),
            Assume(~(ports.install | ports.enter) | (ports.quiet & open_)),
            Assume(~ports.install | (ports.whole != lined)),
            Assume(~ports.enter | lined),
            Assume(~more | fetch),
            Assume(~ours | (more == coming.extended)),
        ]
        for k in range(ports.moves):
            with m.If(ports.install & (move == k)):
                m.d.sync += [self.lined[k].eq(1), self.filled[k].eq(lined | ~more)]
        with m.If(ours & ports.install):
            with m.If(ports.whole):
                m.d.comb += Assume(Value.cast(ports.line.rest) == Value.cast(coming.rest))
                m.d.comb += Assume(Value.cast(ports.line.peer) == Value.cast(coming.peer))
            with m.Else():
                m.d.comb += Assume(self.entered)
            with m.If(lined | ~more):
                m.d.comb += Assume(Value.cast(ports.extension) == Value.cast(coming.extension))
        with m.If(ours & ports.enter & (place == self.place)):
            m.d.comb += Assume(Value.cast(ports.entry) == Value.cast(coming.descriptor))
            m.d.sync += self.entered.eq(1)
