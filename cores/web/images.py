"""Which image the web service answers from, and who still needs the one before."""

from amaranth import Array, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..memory import ADDR_WIDTH
from ..services.discard import check_sessions

__all__ = ["Images"]

#: Image and chain of descriptors that a session may hold: those unanswered, and one more.
_HOLDS = 5


class Images(wiring.Component):
    """Switches the image between two requests, and counts responses that lie in each.

    Parameters
    ----------
    sessions : int
        Each holds at most 5 times.
    image : tuple of int or None
        Address, address of the index, number of buckets: what is served after reset.

    =================  ===  ======================================================================
    member             dir  meaning
    =================  ===  ======================================================================
    ``base``           In   address, index and number of buckets - 1 of the next image
    ``index``
    ``mask``
    ``switch``         In   strobe: it is the image from now on; not while ``switching``
    ``switching``      Out  requests are looked up in the image before; no other may begin
    ``epoch``          Out  changes with each image
    ``now_base``       Out  those of the image: constant while a request is looked up
    ``now_index``
    ``now_mask``
    ``began``          In   strobe: the look-up of a request begins; not while ``switching``
    ``ended``          In   strobe: one of them has ended; not in a cycle with ``began``
    ``hold``           In   so many responses, 0 to 2, of epoch ``of`` are not acknowledged
    ``drop``           In   strobe: one of epoch ``of`` is; not with ``hold``
    ``of``             In   epoch
    ``held``           Out  responses of the image before that are not acknowledged
    =================  ===  ======================================================================

    The memory of the image before may be written when ``switching`` and ``held`` are 0, from the
    second cycle after ``switch``. If the next switch comes before, ``held`` counts responses of two
    images.

    Latency: 1 cycle from ``switch`` to ``switching``; the image changes in the cycle after the last
    request has ended. Reset: ``image``; epoch 0, nothing is held. Bad input: ``ended`` and ``drop``
    without what they belong to make the counts wrap.
    """

    def __init__(self, sessions, image=None):
        self.sessions = check_sessions(sessions)
        base, index, buckets = image or (0, 0, 1)
        addresses = dict.fromkeys(("base", "index", "mask"), In(ADDR_WIDTH))
        super().__init__(
            {
                **addresses,
                "switch": In(1),
                "switching": Out(1),
                "epoch": Out(1),
                "now_base": Out(ADDR_WIDTH, init=base),
                "now_index": Out(ADDR_WIDTH, init=index),
                "now_mask": Out(ADDR_WIDTH, init=buckets - 1),
                "began": In(1),
                "ended": In(1),
                "hold": In(2),
                "drop": In(1),
                "of": In(1),
                "held": Out(range(_HOLDS * sessions + 1)),
            }
        )
        # No ports: for proofs.
        self.pending = Signal(6)  # requests that are looked up: at most 9 in lanes, 17 at the desk
        self.holds = Array(Signal.like(self.held, name=f"holds{k}") for k in range(2))

    def elaborate(self, platform):
        m = Module()
        with m.If(self.began):
            m.d.sync += self.pending.eq(self.pending + 1)
        with m.Elif(self.ended):
            m.d.sync += self.pending.eq(self.pending - 1)
        with m.If(self.switch):
            m.d.sync += self.switching.eq(1)
        with m.Elif(self.switching & (self.pending == 0)):
            m.d.sync += [
                self.switching.eq(0),
                self.epoch.eq(~self.epoch),
                self.now_base.eq(self.base),
                self.now_index.eq(self.index),
                self.now_mask.eq(self.mask),
            ]
        m.d.sync += self.holds[self.of].eq(self.holds[self.of] + self.hold - self.drop)
        m.d.comb += self.held.eq(Mux(self.epoch, self.holds[0], self.holds[1]))
        return m
