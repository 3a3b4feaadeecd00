"""Runs of bytes kept beyond gaps, and what an arriving segment's text makes of them.

Sources: RFC 9293, 3.10.7.4 (text out of order); RFC 2018, section 4 (which run comes first).
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .record import record_layout, run_names

__all__ = ["ReassemblyBlocks", "joined_layout"]


def _run_layout(config):
    return data.StructLayout({"begin": config.place_bits, "end": config.place_bits})


def joined_layout(config):
    """Return the layout of a segment's text joined with the runs: see :class:`ReassemblyBlocks`."""
    return data.StructLayout(
        {
            "full": 1,
            "count": range(config.runs + 1),
            "runs": data.ArrayLayout(_run_layout(config), config.runs),
            "jump": 1,
            "edge": 32,
        }
    )


class ReassemblyBlocks(wiring.Component):
    """Joins a segment's text with a session's runs, one of them a cycle.

    ==========  ===  ===========================================================================
    ``start``   In   strobe: from here on all other inputs stand still until ``done``
    ``record``  In   the session record: RCV.NXT, ``kept`` runs of which none touches another
    ``ahead``   In   the text begins beyond RCV.NXT; else it begins there
    ``begin``   In   low bits of where it begins
    ``end``     In   and of where it ends, not before it begins
    ``done``    Out  strobe, ``config.runs`` + 3 cycles later: all that follows is right, and stays
                     until the next ``start``
    ``full``    Out  the text is ahead, touches no run, and there is no place for it
    ``count``   Out  runs afterwards
    ``runs``    Out  their low bits: the one with the text first, if it is ahead; the others as
                     they were in the record
    ``jump``    Out  a run that the text touches goes on behind it
    ``edge``    Out  where it ends then; else where the text does
    ==========  ===  ===========================================================================

    A text and a run *touch* if they have a byte in common or are neighbours. Since no runs touch,
    what touches the text touches nothing else, so each is compared with the text alone. All places
    lie within a window from RCV.NXT on. With ``full``, ``count`` and ``runs`` mean nothing.

    If there is one place only, the nearer of two stays: a text before the run takes its place, as
    RFC 2018, section 8, allows. Else the last segment of a window, having overtaken the others,
    would keep all of them from being kept, and a sender without SACK would need a time-out for each
    loss.

    No back-pressure; no ``start`` before ``done``. Reset: idle.
    """

    def __init__(self, config):
        self.config = config
        bits = config.place_bits
        self.run_layout = _run_layout(config)
        super().__init__(
            {
                "start": In(1),
                "record": In(record_layout(config)),
                "ahead": In(1),
                "begin": In(bits),
                "end": In(bits),
                "done": Out(1),
                **{name: Out(shape) for name, shape in joined_layout(config).members.items()},
            }
        )
        #: One hot: a cycle for each run, the oldest first, one to place it, one for the text.
        self.go = Signal(config.runs + 2)

    def elaborate(self, platform):
        m = Module()
        n, r, go = self.config.runs, self.record, self.go
        m.d.sync += [go.eq(Cat(self.start, go)), self.done.eq(go[n + 1])]

        def later(a, b):  # a comes behind b
            return (b - a)[: len(a)][-1]

        # A run, and how it lies to the text.
        run = Signal(self.run_layout)
        here = Signal()
        for k, (begin, end) in enumerate(run_names(self.config)):
            with m.If(go[n - 1 - k]):
                m.d.comb += [run.begin.eq(r[begin]), run.end.eq(r[end]), here.eq(r.kept > k)]
        last = Signal(self.run_layout)
        touches, apart, before, behind = (
            Signal(name=s) for s in ("touches", "apart", "before", "behind")
        )
        beyond = later(run.begin, self.end)
        off = beyond | later(self.begin, run.end)
        stays = ~(beyond & self.ahead) if n == 1 else 1
        m.d.sync += [
            last.eq(run),
            touches.eq(here & ~off),
            apart.eq(here & off & stays),
            before.eq(later(self.begin, run.begin)),
            behind.eq(later(run.end, self.end)),
        ]
        # What becomes of it: part of the text's run, or one of the list.
        whole = Signal(self.run_layout)
        moved = Signal()
        push = Signal()
        with m.If(self.start):
            m.d.sync += [whole.begin.eq(self.begin), whole.end.eq(self.end)]
            m.d.sync += [self.count.eq(0), moved.eq(0)]
        with m.If(touches & before):
            m.d.sync += whole.begin.eq(last.begin)
        with m.If(touches & behind):
            m.d.sync += [whole.end.eq(last.end), moved.eq(1)]
        ends = go[n + 1]
        full = self.count == n
        m.d.comb += push.eq(apart | (ends & self.ahead & ~full))
        with m.If(push):
            m.d.sync += [self.runs[0].eq(Mux(ends, whole, last)), self.count.eq(self.count + 1)]
            for k in range(1, n):
                m.d.sync += self.runs[k].eq(self.runs[k - 1])
        gained = (whole.end - r.rcv_nxt)[: self.config.place_bits]
        with m.If(ends):
            m.d.sync += [self.full.eq(self.ahead & full), self.jump.eq(moved)]
            m.d.sync += self.edge.eq(r.rcv_nxt + gained)
        return m
