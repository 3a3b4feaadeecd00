"""Arbiter of streams in two classes of priority, with a bound on every wait."""

from amaranth.hdl import Array, Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from .arbiter import StreamArbiter

__all__ = ["PATIENCE", "PriorityArbiter"]

#: Beats of class 0 that pass a waiting beat of class 1, at most, unless the user says otherwise.
PATIENCE = 4


class PriorityArbiter(wiring.Component):
    """Arbiter of many streams of one shape: class 0 before class 1, round robin within each.

    =========  ===========  ===============================================================
    ``i``      In, array    streams of ``shape``, one for each member of ``priority``
    ``o``      Out          stream of ``shape``
    ``index``  Out          input that ``o`` shows; with ``o.valid`` set, stable until the
                            transfer
    =========  ===========  ===============================================================

    Parameters: ``shape``; ``priority``, the class of each input, 0 or 1, at least one of each;
    ``patience``, beats of class 0 that pass a waiting class 1, at least 1.

    Each class is a :class:`~trebuchet.cores.arbiter.StreamArbiter`. Of the two beats that these
    show ``o`` shows class 0's, and class 1's if ``patience`` beats of class 0 have passed it. A
    beat that was shown stays until it is transferred.

    Waiting: while an input's beat waits, at most ``waiting_bound(input)`` beats of other inputs are
    transferred. Let ``n0`` and ``n1`` be the sizes of the classes, and P the patience:

    - class 0: ``(n0 - 1) + 1 + (n0 - 1) // P``
    - class 1: ``n1 * (P + 1) - 1``

    While any input is valid, ``o.valid`` is 0 for at most one cycle. Latency: 0 for the inputs that
    their classes have granted, else 1 cycle. One beat a cycle. Back-pressure: an input waits for
    its turn and for ``o``. Reset: the first input of each class is granted, nothing is shown.
    """

    def __init__(self, shape, priority, patience=PATIENCE):
        self.shape, self.priority, self.patience = shape, tuple(priority), patience
        if set(self.priority) != {0, 1}:
            raise ValueError(f"Priority must be 0 and 1, each at least once, not {priority!r}")
        if not isinstance(patience, int) or patience < 1:
            raise ValueError(f"Patience must be an integer >= 1, not {patience!r}")
        #: Inputs of each class.
        self.members = tuple(
            tuple(k for k, own in enumerate(self.priority) if own == c) for c in (0, 1)
        )
        n = len(self.priority)
        super().__init__(
            {
                "i": In(stream.Signature(shape)).array(n),
                "o": Out(stream.Signature(shape)),
                "index": Out(range(n)),
            }
        )
        # No ports: for proofs.
        self.rings = tuple(StreamArbiter(shape, len(members)) for members in self.members)
        self.passed = Signal(range(patience + 1))  # beats of class 0 since class 1 waits
        self.held, self.held_low = Signal(), Signal()  # a beat was shown and not taken; its class
        self.low = Signal()  # class 1 is shown

    def waiting_bound(self, k):
        """Return the number of others' beats, at most, that pass while input ``k`` waits."""
        n0, n1 = (len(members) for members in self.members)
        if self.priority[k]:
            return n1 * (self.patience + 1) - 1
        return n0 + (n0 - 1) // self.patience

    def elaborate(self, platform):
        m = Module()
        m.submodules.high, m.submodules.low = high, low = self.rings
        for members, ring in zip(self.members, self.rings, strict=True):
            for place, k in enumerate(members):
                wiring.connect(m, wiring.flipped(self.i[k]), ring.i[place])
        due = self.passed == self.patience
        m.d.comb += [
            self.low.eq(Mux(self.held, self.held_low, low.o.valid & (due | ~high.o.valid))),
            self.o.valid.eq(high.o.valid | low.o.valid),
            self.o.payload.eq(Mux(self.low, low.o.payload, high.o.payload)),
            high.o.ready.eq(self.o.ready & ~self.low),
            low.o.ready.eq(self.o.ready & self.low),
            self.index.eq(Mux(self.low, self._number(1, low.index), self._number(0, high.index))),
        ]
        m.d.sync += [self.held.eq(self.o.valid & ~self.o.ready), self.held_low.eq(self.low)]
        with m.If(self.o.valid & self.o.ready):
            with m.If(self.low):
                m.d.sync += self.passed.eq(0)
            with m.Elif(low.o.valid & ~due):
                m.d.sync += self.passed.eq(self.passed + 1)
        return m

    def _number(self, c, place):
        """The input at a place of a class."""
        return Array(Const(k, len(self.index)) for k in self.members[c])[place]
