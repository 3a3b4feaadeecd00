"""Two packet streams into one, each with half of the beats when both want all."""

from amaranth import Module, Mux, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature, check_data_width

__all__ = ["FairMux"]


class FairMux(wiring.Component):
    """Merges whole packets of two streams; neither waits long, whatever the other's lengths are.

    =========  =========  =====================================================================
    ``i``      In, array  two packet streams
    ``o``      Out        packet stream
    ``index``  Out        which input ``o`` shows; the same from a packet's first beat to its last
    =========  =========  =====================================================================

    A turn by packets (:class:`~trebuchet.cores.arbiter.PacketArbiter`) would leave a stream of
    short packets beside one of long ones 4 % of the line. Here a balance of beats decides, as in
    deficit round robin (Shreedhar, Varghese 1995): it moves by one for each beat that an input
    sends while the other waits, and when a packet ends, the waiting input is next unless it is
    ahead; on a draw turns alternate.

    *No starvation*: once an input has waited for ``quantum`` beats of the other, the other begins
    no further packet. So it waits for less than ``quantum`` beats and one packet. *Share*: in a
    time in which both always wait, their beats differ by at most ``2 * quantum`` and a packet, if
    no packet is longer than ``quantum``.

    ``o`` is combinational from the granted input. Latency 0 for that, 1 cycle for the other when
    ``o`` was idle. One beat a cycle when both always have one. Back-pressure goes to the granted
    input. An input that pauses within a packet holds ``o``. Reset: input 0 is granted, balance 0.

    Parameters
    ----------
    width : int
        Data path in bits.
    quantum : int
        The largest balance, in beats: that of the longest packet, at least 1.
    """

    def __init__(self, width=64, quantum=256):
        check_data_width(width)
        if not isinstance(quantum, int) or quantum < 1:
            raise ValueError(f"Quantum must be an integer of at least 1, not {quantum!r}")
        self.width, self.quantum = width, quantum
        super().__init__(
            {
                "i": In(PacketSignature(width)).array(2),
                "o": Out(PacketSignature(width)),
                "index": Out(1),
            }
        )
        # No ports: for the proof's invariants. The lead is that of input 1.
        self.lead = Signal(signed(quantum.bit_length() + 1))
        self.started = Signal()

    def elaborate(self, platform):
        m = Module()
        o, grant, lead = self.o, Signal(), self.lead
        granted, other = Signal(), Signal()
        with m.If(grant):
            m.d.comb += [o.p.eq(self.i[1].p), granted.eq(self.i[1].valid)]
            m.d.comb += [self.i[1].ready.eq(o.ready), other.eq(self.i[0].valid)]
        with m.Else():
            m.d.comb += [o.p.eq(self.i[0].p), granted.eq(self.i[0].valid)]
            m.d.comb += [self.i[0].ready.eq(o.ready), other.eq(self.i[1].valid)]
        moves, following = Signal(), Signal(lead.shape())
        m.d.comb += [
            self.index.eq(grant),
            o.valid.eq(granted),
            moves.eq(granted & o.ready),
            following.eq(lead),
        ]
        with m.If(moves & other):
            with m.If(grant & (lead != self.quantum)):
                m.d.comb += following.eq(lead + 1)
            with m.Elif(~grant & (lead != -self.quantum)):
                m.d.comb += following.eq(lead - 1)
        m.d.sync += lead.eq(following)
        with m.If(moves):
            m.d.sync += self.started.eq(~o.p.last)
        due = Mux(grant, following >= 0, following <= 0)
        with m.If(other & Mux(moves, o.p.last & due, ~self.started & ~granted)):
            m.d.sync += grant.eq(~grant)
        return m
