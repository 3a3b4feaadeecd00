"""Reusable properties of streams, over their public ports only.

:func:`stream_rules` states the rules of :mod:`trebuchet.cores.stream` about one stream, as
assertions where the core under proof is the producer, as assumptions where it is the consumer.
:class:`Queue` states that what comes out is what went in, in order. Both speak about any
implementation: bind them to the ports of somebody else's core.

Not proved: rule 3 as such. Proofs replace it by a stronger statement about each core: how many
cycles pass at most until ``valid`` rises, whatever ``ready`` does.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Module, ResetSignal, Signal, Value

__all__ = ["Queue", "cover_run", "free", "new_harness", "stream_rules", "within"]

PACKET_FIELDS = {"data", "empty", "first", "last", "error"}


def free(m, *signals):
    """Let the solver choose these signals anew in every cycle."""
    for signal in signals:
        raw = Value.cast(signal)
        m.d.comb += raw.eq(AnySeq(len(raw)))


def stream_rules(m, stream, check, name, chosen=1):
    """State rule 2, and for packet streams rules 4 and 5, with ``check``: ``Assert`` or ``Assume``.

    Adds the registers it needs to module ``m``; ``name`` is the prefix of their names. Rules 4 and
    5 are stated of the beats for which ``chosen`` holds. Returns the register that tells whether
    the next beat must be a first one; None if this is no packet stream.
    """
    if check not in (Assert, Assume):
        raise TypeError(f"Rules are stated with Assert or Assume, not {check!r}")
    payload = Value.cast(stream.payload)
    if payload.shape().signed:
        payload = payload.as_unsigned()
    stalled = Signal(name=f"{name}_stalled")
    past = Signal(len(payload), name=f"{name}_past")
    m.d.sync += [stalled.eq(stream.valid & ~stream.ready), past.eq(payload)]
    with m.If(stalled):
        m.d.comb += [check(stream.valid), check(payload == past)]

    members = getattr(getattr(stream.payload, "shape", lambda: None)(), "members", {})
    if set(members) != PACKET_FIELDS:
        return None
    beat = stream.payload
    begins = Signal(init=1, name=f"{name}_begins")
    with m.If(stream.valid & stream.ready):
        m.d.sync += begins.eq(beat.last)
    with m.If(stream.valid & chosen):
        m.d.comb += check(beat.first == begins)
        with m.If(~beat.last):
            m.d.comb += [check(beat.empty == 0), check(~beat.error)]
    return begins


def within(m, condition, cycles, name):
    """Assert that ``condition`` never stays 0 for more than ``cycles`` cycles in a row."""
    waited = Signal(range(cycles + 2), name=f"{name}_waited")
    with m.If(condition):
        m.d.sync += waited.eq(0)
    with m.Else():
        m.d.sync += waited.eq(waited + 1)
        m.d.comb += Assert(waited < cycles)
    return waited


class Queue:
    """What comes out is what went in: same words, same order, none lost, doubled or invented.

    The solver picks one index. The word that goes in as number ``index`` is remembered; the word
    that comes out as that number must be the same. As the index is arbitrary, this holds for
    every word, so also for any two and their order. Numbers count modulo ``2 ** bits``, which is
    more than twice ``capacity``, so the proof is not bounded in time.

    Attributes: ``level``, words inside; ``place``, how many words leave before the chosen one;
    ``inside``, whether the chosen one is inside; ``word``, its value. Invariants of a core that
    induction needs are said in these terms.
    """

    def __init__(self, m, *, puts, put_word, gets, get_valid, get_word, capacity):
        self.bits = (2 * capacity).bit_length()
        put_word, get_word = Value.cast(put_word), Value.cast(get_word)
        self.index = Signal(self.bits, name="index")
        self.sent, self.received = (
            Signal(self.bits, name="sent"),
            Signal(self.bits, name="received"),
        )
        self.word = Signal(len(put_word), name="word")
        self.level, self.place = Signal(self.bits, name="level"), Signal(self.bits, name="place")
        self.inside = Signal(name="inside")
        m.d.comb += [
            self.index.eq(AnyConst(self.bits)),
            self.level.eq(self.sent - self.received),
            self.place.eq(self.index - self.received),
            self.inside.eq(self.place < self.level),
            Assert(self.level <= capacity),
        ]
        with m.If(puts):
            m.d.sync += self.sent.eq(self.sent + 1)
            with m.If(self.sent == self.index):
                m.d.sync += self.word.eq(put_word)
        with m.If(gets):
            m.d.sync += self.received.eq(self.received + 1)
        with m.If(get_valid):
            m.d.comb += Assert(self.level != 0)
            with m.If(self.place == 0):
                m.d.comb += Assert(get_word == self.word)


def new_harness():
    """A module to state properties in, which is never reset.

    Registers begin with their initial values, which are those after a reset; a proof speaks about a
    core that was reset once.
    """
    m = Module()
    m.d.comb += Assume(~ResetSignal())
    return m


def cover_run(m, event, count, name):
    """Cover ``count`` cycles with ``event`` in a row."""
    run = Signal(range(count + 1), name=f"{name}_run")
    m.d.sync += run.eq(0)
    with m.If(event & (run != count)):
        m.d.sync += run.eq(run + 1)
    m.d.comb += Cover(run == count)
