"""The stream engine contract as statements (``cores/engines/contract.py``), on either side.

:class:`EngineRules` speaks about the ports of any body. The rules of the surroundings are stated
with ``theirs``, those of the body with ``ours``: ``Assume`` and ``Assert`` in the proof of a body,
the other way round in that of an adapter around any body. So what one proof assumes, another
asserts, by the same text.

Of the contract's rules: 1 (streams, but for who waits for whom), 2 (one for one), 3 (damage); 4
(growth) and 5 (progress) as far as they are promised. Rule 6 is about the surroundings' progress:
the adapters' proofs say what they wait for. Rule 7: a body's proof begins after a reset, and every
register of a body is reset by it; the adapters' proofs reset the body, and these statements with
it. Rule 8: a proof of a body lets its registers change in any cycle.

Not proved here: that a packet ends.
"""

from amaranth.hdl import Assert, Assume, Mux, Signal

from ..stream import stream_rules

__all__ = ["EngineRules"]

#: Bits of byte counts, which stop at their largest value: then less growth is allowed, not more.
COUNT = 8


class EngineRules:
    """State the contract of the body with streams ``i`` and ``o``.

    Parameters
    ----------
    m : Module
        Gets the registers of the statements. One that is reset with the body, if that can be.
    i, o : packet streams
        As the body has them.
    theirs, ours : Assert or Assume
        How the surroundings' rules and the body's are stated.
    capacity : int
        Whole packets that the body may have, as long as it is 1 or more; a statement of the body.
    limits : EngineLimits or None
        Growth, for a ``capacity`` of 1, and latency, as far as they are promised; None: not stated.
    damage : bool
        Rule 3 is stated.

    Attributes, for invariants: ``begins_i``, ``begins_o``, whether a packet's first beat is next;
    ``level``, whole packets; ``damaged``, their error marks, the oldest lowest; ``ahead``, bytes
    that may still be given of the packet that ``o`` is at; ``behind``, bytes taken of the one that
    ``i`` is at, if that is another; ``waited``, cycles in a row without progress.
    """

    def __init__(
        self, m, i, o, *, theirs, ours, capacity=1, limits=None, damage=True, name="engine"
    ):
        if {theirs, ours} - {Assert, Assume}:
            raise TypeError("Rules are stated with Assert or Assume")
        self.m, self.i, self.o, self.ours, self.name = m, i, o, ours, name
        self.begins_i = stream_rules(m, i, theirs, f"{name}_i")
        self.begins_o = stream_rules(m, o, ours, f"{name}_o")
        self.level = Signal(range(capacity + 1), name=f"{name}_level")
        self.damaged = Signal(capacity + 1, name=f"{name}_damaged")
        self.takes, self.gives = i.valid & i.ready, o.valid & o.ready
        self.ended, self.left = self.takes & i.p.last, self.gives & o.p.last
        self._one_for_one(capacity)
        if damage:
            self._damage(capacity)
        if limits is not None and limits.growth is not None:
            if capacity != 1:
                raise ValueError(f"Growth can be stated of one whole packet, not of {capacity!r}")
            self._growth(limits.growth)
        if limits is not None and limits.latency is not None:
            self._progress(limits.latency)

    def _one_for_one(self, capacity):
        m, i, o, level, ours = self.m, self.i, self.o, self.level, self.ours
        whole = level != 0
        m.d.sync += level.eq(level + self.ended - self.left)
        m.d.comb += [
            ours((level != capacity) | ~self.ended | self.left),
            ours(~o.valid | whole | ~self.begins_i | i.valid),
            ours(~o.valid | ~o.p.last | whole | (i.valid & i.p.last)),
            ours(~self.left | whole | self.ended),
            # It follows from the above, for all time.
            ours(self.begins_o | whole | ~self.begins_i | i.valid),
        ]

    def _damage(self, capacity):
        """The error mark of a packet that ends goes behind those that are there."""
        m, i, o, level, ours = self.m, self.i, self.o, self.level, self.ours
        whole = level != 0
        kept = Signal(capacity + 1, name=f"{self.name}_kept")
        m.d.comb += kept.eq(self.damaged >> (self.left & whole))
        place = (level - (self.left & whole))[: len(level)]
        m.d.sync += self.damaged.eq(kept)
        m.d.comb += ours(self.damaged >> level == 0)  # for all time
        with m.If(self.ended & ~(self.left & ~whole)):
            m.d.sync += self.damaged.eq(kept | (i.p.error << place))
        with m.If(o.valid & o.p.last):
            m.d.comb += ours(o.p.error | ~Mux(whole, self.damaged[0], i.p.error))

    def _growth(self, growth):
        """Bytes given of a packet are at most ``growth`` more than those taken of it."""
        m, i, o, whole = self.m, self.i, self.o, self.level != 0
        most = (1 << COUNT) - 1
        n = len(i.p.data) // 8
        self.ahead = Signal(COUNT, init=growth, name=f"{self.name}_ahead")
        self.behind = Signal(COUNT, name=f"{self.name}_behind")
        comes, goes = n - i.p.empty, n - o.p.empty
        taken = Mux(self.takes, comes, 0)
        now = self.ahead + Mux(whole, 0, taken)
        m.d.comb += self.ours(~self.gives | (goes <= now))

        def capped(value):
            return Mux(value > most, most, value)

        with m.If(self.left):  # the next packet is the one that comes in, if there is one
            m.d.sync += self.ahead.eq(capped(growth + self.behind + Mux(whole, taken, 0)))
            m.d.sync += self.behind.eq(0)
        with m.Elif(whole):
            m.d.sync += self.ahead.eq(self.ahead - Mux(self.gives, goes, 0))
            m.d.sync += self.behind.eq(capped(self.behind + taken))
        with m.Else():
            m.d.sync += self.ahead.eq(capped(self.ahead + taken - Mux(self.gives, goes, 0)))

    def _progress(self, latency):
        """At most ``latency`` cycles in a row in which it is due and does nothing."""
        m, i, o = self.m, self.i, self.o
        self.waited = Signal(range(latency + 2), name=f"{self.name}_waited")
        self.stuck = Signal(name=f"{self.name}_stuck")
        m.d.comb += self.stuck.eq((i.valid | (self.level != 0)) & ~self.takes & ~o.valid)
        m.d.sync += self.waited.eq(Mux(self.stuck, self.waited + (self.waited <= latency), 0))
        m.d.comb += self.ours(~self.stuck | (self.waited < latency))
