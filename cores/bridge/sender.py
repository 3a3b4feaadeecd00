"""Which port of a bridge a station's frames leave by."""

from amaranth import Module, Mux, Signal
from amaranth.hdl import Cat
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature, beat_layout, check_data_width

__all__ = ["PortSender"]


class PortSender(wiring.Component):
    """Sends each frame by the network's port, the host's, or both.

    ========  =====  ==============  ==============================================================
    member    dir    shape           meaning
    ========  =====  ==============  ==============================================================
    ``i``     In     packet stream   frames of the station
    ``o``     Out×2  packet streams  to the network's port (0) and to the host's (1)
    ``host``  In     48              the host's address, first byte on the wire in bits 7..0
    ========  =====  ==============  ==============================================================

    To ``host``: port 1. To a group address: both ports. To any other: port 0, as is a frame whose
    only beat ends before its destination does. ``host`` counts when the destination is known, for
    all of the frame.

    *Latency*: 2 cycles from the beat with the end of the destination, then one beat a cycle; a
    frame of ``k`` beats takes ``k + 1`` cycles. *Back-pressure*: both ports must take a beat of a
    frame that goes to both before its next one comes; one that waits holds the other up. *Reset*:
    empty.

    Parameters
    ----------
    width : int
        Data path in bits.
    """

    def __init__(self, width=32):
        self.width = check_data_width(width)
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)).array(2),
                "host": In(48),
            }
        )
        # No ports: for the proof's invariants. `owed`: ports that have not taken the beat held.
        self.held, self.holds = Signal(beat_layout(width)), Signal()
        self.undecided, self.route, self.owed = Signal(), Signal(2), Signal(2)

    # One beat is held. A first one stays until the next is there, too, which shows the rest of the
    # destination; then, like each beat that follows, until every port of its route has taken it.
    def elaborate(self, platform):
        m = Module()
        i, held, holds, owed, route = self.i, self.held, self.holds, self.owed, self.route
        undecided, choice, done = self.undecided, Signal(2), Signal()
        ready = Cat(port.ready for port in (self.o[0], self.o[1]))
        bits = Cat(held.data, i.p.data)[:48]
        whole = 1 if self.width >= 48 else ~held.last
        with m.If(held.data[0]):
            m.d.comb += choice.eq(0b11)
        with m.Else():
            m.d.comb += choice.eq(Mux((bits == self.host) & whole, 0b10, 0b01))
        m.d.comb += [
            done.eq(~undecided & ~(owed & ~ready).any()),
            i.ready.eq(~holds | done),
        ]
        for k in range(2):
            m.d.comb += [self.o[k].valid.eq(owed[k]), self.o[k].p.eq(held)]
        with m.If(i.ready):
            m.d.sync += [
                holds.eq(i.valid),
                undecided.eq(i.valid & i.p.first),
                owed.eq(Mux(i.valid & ~i.p.first, route, 0)),
            ]
            with m.If(i.valid):
                m.d.sync += held.eq(i.p)
        with m.Elif(undecided):
            with m.If(i.valid | held.last):
                m.d.sync += [undecided.eq(0), route.eq(choice), owed.eq(choice)]
        with m.Else():
            m.d.sync += owed.eq(owed & ~ready)
        return m
