"""The tap: where a role sees, drops and alters the frames that pass a bridge.

Source: cloud-scale-acceleration, section II.A (the shell's network bridge and its tap).
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature, beat_layout
from .length import LONGEST, SHORTEST, FrameBounds

__all__ = ["TAP_EVENTS", "FrameTap", "TapSignature"]

#: What befalls a frame: exactly one of the first five, when it ends or is cut. ``altered`` comes
#: beside ``passed``.
TAP_EVENTS = data.StructLayout(
    {name: 1 for name in ("passed", "dropped", "oversize", "damaged", "runt", "altered")}
)


class TapSignature(wiring.Signature):
    """A role's place in the wire, as the bridge sees it (the role has it flipped).

    =========  ===  ===========  =================================================================
    member     dir  shape        meaning
    =========  ===  ===========  =================================================================
    ``step``   Out  1            the pipeline moves: the role's registers move in these cycles only
    ``valid``  Out  1            a beat is shown; it enters the pipeline if ``step`` is 1
    ``beat``   Out  packet beat  that beat; ``first``, ``last`` … as on a packet stream
    ``drop``   In   1            drop the frame of the beat shown ``latency`` steps ago
    ``alter``  In   1            put ``data`` in place of that beat's bytes
    ``data``   In   ``width``    its new bytes
    =========  ===  ===========  =================================================================

    A role is a pipeline of ``latency`` registers that move with ``step``: its answer to a beat
    comes exactly ``latency`` steps later, with bubbles (``valid`` 0) counted. So it keeps up with
    the line whatever it does, and cannot stall it. ``drop`` and ``alter`` where no beat was shown
    mean nothing. The length of a frame cannot be altered: drop it and inject another.
    """

    def __init__(self, width):
        self.width = width
        super().__init__(
            {
                "step": Out(1),
                "valid": Out(1),
                "beat": Out(beat_layout(width)),
                "drop": In(1),
                "alter": In(1),
                "data": In(width),
            }
        )


class FrameTap(wiring.Component):
    """Shows frames to a role, does what it says, and marks what is no legal frame.

    ===========  ====  ================  ==========================================================
    member       dir   shape             meaning
    ===========  ====  ================  ==========================================================
    ``i``        In    packet stream     frames from a MAC
    ``o``        Out   packet stream     the same frames after the role
    ``tap``      Out   TapSignature      the role
    ``enable``   In    1                 0: bypass; frames that begin are not shown, and pass as is
    ``events``   Out   ``TAP_EVENTS``    strobes for counters
    ===========  ====  ================  ==========================================================

    ``enable`` counts at a frame's first beat, for all of it.

    *Fate of a frame*, the first that applies: ``dropped``, the role said so on one of its beats;
    ``oversize``, longer than ``longest`` bytes; ``damaged``, it came with ``error``; ``runt``,
    shorter than ``shortest``; else ``passed``. A frame dropped on its first beat leaves no trace.
    A frame that is dropped later or oversize is cut: the beat in question becomes its last, with
    ``error``, and the rest is swallowed. A damaged frame or a runt goes on with ``error`` on its
    last beat. Whoever follows drops what has ``error`` (store-and-forward), or lets the sending MAC
    spoil its FCS (cut-through): so no bad frame is ever taken for a good one.

    *Latency*: ``latency + 1`` cycles. *Throughput*: one beat a cycle. *Back-pressure*: when ``o``
    stalls, everything stops, ``tap.step`` is 0; bubbles are not closed up. *Reset*: empty.

    Parameters
    ----------
    width : int
        Data path in bits.
    latency : int
        Steps from a beat to the role's answer, at least 1.
    shortest, longest : int
        Bytes of a legal frame, without FCS.
    """

    def __init__(self, width=64, latency=8, shortest=SHORTEST, longest=LONGEST):
        self.bounds = FrameBounds(width, shortest, longest)
        if not isinstance(latency, int) or latency < 1:
            raise ValueError(f"Latency of the tap must be an integer >= 1, not {latency!r}")
        self.width, self.latency = width, latency
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "tap": Out(TapSignature(width)),
                "enable": In(1),
                "events": Out(TAP_EVENTS),
            }
        )
        # The pipeline and the state at its end. No ports: for the proof's invariants.
        place = data.StructLayout({"beat": beat_layout(width), "shown": 1, "valid": 1})
        self.places = [Signal(place, name=f"place{k}") for k in range(latency)]
        self.before = Signal(range(self.bounds.beats))  # beats of the frame that have gone on
        self.swallow = Signal()  # the frame's rest goes nowhere
        self.shows = Signal()  # the frame coming in is shown

    # A pipeline with one enable for all of it, which a role's own pipeline shares. The verdict
    # meets the beat at its end, so both come from registers.
    def elaborate(self, platform):
        m = Module()
        i, tap, end = self.i, self.tap, self.places[-1]
        step, shown = Signal(), Signal()
        m.d.comb += [
            step.eq(~end.valid | ~self.o.valid | self.o.ready),
            i.ready.eq(step),
            shown.eq(Mux(i.p.first, self.enable, self.shows)),
            tap.step.eq(step),
            tap.valid.eq(i.valid & shown),
            tap.beat.eq(i.p),
        ]
        with m.If(i.valid & step):
            m.d.sync += self.shows.eq(shown)
        with m.If(step):
            m.d.sync += [
                self.places[0].beat.eq(i.p),
                self.places[0].shown.eq(shown),
                self.places[0].valid.eq(i.valid),
            ]
            for a, b in zip(self.places, self.places[1:], strict=False):
                m.d.sync += b.eq(a)
        self._edit(m, end, step)
        return m

    def _edit(self, m, end, step):
        o, tap, beat, before = self.o, self.tap, end.beat, self.before
        drop, alter, long, short = Signal(), Signal(), Signal(), Signal()
        cut, take, changed, over = Signal(), Signal(), Signal(), Signal()
        self.changed = changed  # no port: for the proof's invariants
        m.d.comb += [
            drop.eq(end.shown & tap.drop),
            alter.eq(end.shown & tap.alter),
            long.eq(self.bounds.long(before, beat)),
            short.eq(self.bounds.short(before, beat)),
            cut.eq(drop | long),
            take.eq(end.valid & step),
        ]
        with m.If(~o.valid | o.ready):
            m.d.sync += o.valid.eq(end.valid & ~self.swallow & ~(beat.first & drop))
        with m.If(take):
            m.d.sync += [
                o.p.eq(beat),
                o.p.last.eq(beat.last | cut),
                o.p.error.eq(cut | (beat.last & (beat.error | short))),
                self.swallow.eq(~beat.last & (self.swallow | cut)),
            ]
            with m.If(alter):
                m.d.sync += o.p.data.eq(tap.data)
            with m.If(beat.last | cut | self.swallow):
                m.d.sync += [before.eq(0), changed.eq(0)]
            with m.Else():
                m.d.sync += [before.eq(before + 1), changed.eq(changed | alter)]
        events, good = self.events, Signal()
        m.d.comb += [
            over.eq(take & ~self.swallow & (beat.last | cut)),
            good.eq(~cut & ~beat.error & ~short),
            events.dropped.eq(over & drop),
            events.oversize.eq(over & ~drop & long),
            events.damaged.eq(over & ~cut & beat.error),
            events.runt.eq(over & ~cut & ~beat.error & short),
            events.passed.eq(over & good),
            events.altered.eq(over & good & (changed | alter)),
        ]
