"""TCP options at line rate: finds the MSS option (RFC 9293, 3.2), and others that are wanted.

Sources: RFC 9293, 3.1 and 3.2; RFC 7323, 2.2 and 2.3 (window scale); RFC 2018, 2 (SACK-permitted).
"""

from amaranth import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["MssOption"]

_EOL, _NOP, _MSS, _SCALE, _PERMITTED = 0, 1, 2, 3, 4
#: Largest shift; a larger one counts as this (RFC 7323, 2.3).
_MOST = 14


class MssOption(wiring.Component):
    """Walks the options of a TCP header as its words pass, ``lanes`` words a cycle.

    ===========  ====  ===========  ===============================================================
    member       dir   width        meaning
    ===========  ====  ===========  ===============================================================
    ``clear``    In    1            a new header begins: forget everything
    ``en``       In    lanes        lane holds a word of options
    ``more``     In    lanes        the word after it is one of options too
    ``data``     In    32*lanes     the words
    ``next``     In    32           the word that follows the top lane
    ``mss``      Out   16           value of the MSS option, 0 if there was none
    ``scaled``   Out   1            (``scaling`` only) there was a window scale option
    ``scale``    Out   4            (``scaling`` only) its shift, at most 14
    ``permits``  Out   1            (``sack`` only) there was a SACK-permitted option
    ===========  ====  ===========  ===============================================================

    The walk ends at EOL, at an option whose length is 0 or 1, and at one whose length byte is
    outside the options. An option that has another length than it should have (MSS 4, window scale
    3, SACK-permitted 2) or does not fit is ignored; of several the last one counts. Words of cycle
    k are in ``mss`` in cycle k + 2, and in the other outputs.

    Parameters: ``lanes``; ``scaling``, ``sack``: the options that are wanted, too.
    """

    def __init__(self, lanes=1, scaling=False, sack=False):
        self.lanes, self.scaling, self.sack = lanes, scaling, sack
        super().__init__(
            {
                "clear": In(1),
                "en": In(lanes),
                "more": In(lanes),
                "data": In(32 * lanes),
                "next": In(32),
                "mss": Out(16),
            }
            | ({"scaled": Out(1), "scale": Out(4)} if scaling else {})
            | ({"permits": Out(1)} if sack else {})
        )
        #: Bytes to the next option, and whether the walk is over.
        self.position, self.stopped = Signal(6), Signal()

    def elaborate(self, platform):
        # What an option that began at byte a would do depends on the bytes only, so it is worked
        # out for each a and registered; the next stage finds out where options do begin.
        m = Module()
        window = Cat(self.data, self.next)
        clear = Signal()
        position, stopped = self.position, self.stopped
        m.d.sync += clear.eq(self.clear)
        position_now, stopped_now = position, stopped
        mss_now = self.mss
        for lane in range(self.lanes):
            byte = [window[32 * lane + 8 * i : 32 * lane + 8 * i + 8] for i in range(8)]
            step = self._classify(m, lane, byte)
            position_now, stopped_now, mss_now = self._walk(
                m, lane, step, position_now, stopped_now, mss_now
            )
        m.d.sync += [position.eq(position_now), stopped.eq(stopped_now), self.mss.eq(mss_now)]
        with m.If(clear):
            m.d.sync += [position.eq(0), stopped.eq(0), self.mss.eq(0)]
            if self.scaling:
                m.d.sync += [self.scaled.eq(0), self.scale.eq(0)]
            if self.sack:
                m.d.sync += self.permits.eq(0)
        return m

    def _classify(self, m, lane, byte):
        """Register for each byte of the word: is it a stop, an MSS option, where would it lead."""
        enable = Signal(name=f"en{lane}")
        m.d.sync += enable.eq(self.en[lane])
        step = {"en": enable, "stop": [], "mss": [], "to": [], "value": [], "scale": []}
        step["permits"] = []
        raw = Signal(40, name=f"raw{lane}")
        m.d.sync += raw.eq(Cat(*byte[2:7]))
        for a in range(4):
            kind, length = byte[a], byte[a + 1]
            outside = ~self.more[lane] if a == 3 else 0
            outside_value = ~self.more[lane] if a > 0 else 0
            stop, mss = Signal(name=f"stop{lane}_{a}"), Signal(name=f"mss{lane}_{a}")
            to = Signal(6, name=f"to{lane}_{a}")
            # Options span 40 bytes at most, so 63 is as good as any way longer than 55.
            far = length[6:].any() | length[3:6].all()
            reach = Mux(far, 63, a + length[:6])
            m.d.sync += [
                stop.eq((kind == _EOL) | ((kind != _NOP) & ((length < 2) | outside))),
                mss.eq((kind == _MSS) & (length == 4) & ~outside_value),
                to.eq(Mux(kind == _NOP, a + 1, reach)),
            ]
            step["stop"].append(stop)
            step["mss"].append(mss)
            step["to"].append(to)
            step["value"].append(Cat(raw[8 * a + 8 : 8 * a + 16], raw[8 * a : 8 * a + 8]))
            if self.scaling:
                outside_shift = ~self.more[lane] if a > 1 else 0
                scale = Signal(name=f"scale{lane}_{a}")
                m.d.sync += scale.eq((kind == _SCALE) & (length == 3) & ~outside_shift)
                step["scale"].append((scale, raw[8 * a : 8 * a + 8]))
            if self.sack:
                permits = Signal(name=f"permits{lane}_{a}")
                m.d.sync += permits.eq((kind == _PERMITTED) & (length == 2))
                step["permits"].append(permits)
        return step

    def _walk(self, m, lane, step, position, stopped, mss):
        """Follow the options through one word; return the state after it."""
        here = []
        for b in range(4):
            arrive = [h & (step["to"][a] == b) for a, h in enumerate(here)]
            begin = Signal(name=f"here{lane}_{b}")
            m.d.comb += begin.eq(
                step["en"] & ~stopped & ((position == b) | (Cat(*arrive).any() if arrive else 0))
            )
            # An option that begins where an earlier one stopped the walk does not count.
            halted = [h & step["stop"][a] for a, h in enumerate(here)]
            here.append(begin & ~(Cat(*halted).any() if halted else C(0)))
        after, value, halt = Signal(6), Signal(16), Signal()
        m.d.comb += [after.eq(Mux(step["en"], position - 4, position)), value.eq(mss)]
        for a in range(4):
            leaves = here[a] & (step["to"][a] >= 4)
            with m.If(leaves):
                m.d.comb += after.eq(step["to"][a] - 4)
            with m.If(here[a] & step["mss"][a] & ~step["stop"][a]):
                m.d.comb += value.eq(step["value"][a])
            if self.scaling:
                scale, shift = step["scale"][a]
                with m.If(here[a] & scale & ~step["stop"][a]):
                    m.d.sync += [self.scaled.eq(1), self.scale.eq(Mux(shift > _MOST, _MOST, shift))]
            if self.sack:
                with m.If(here[a] & step["permits"][a] & ~step["stop"][a]):
                    m.d.sync += self.permits.eq(1)
        m.d.comb += halt.eq(stopped | Cat(*(h & step["stop"][a] for a, h in enumerate(here))).any())
        return after, halt, value
