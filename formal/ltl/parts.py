"""What proofs of the LTL engine share: simpler parts in place of proved ones, and free beginnings.

A memory, or a FIFO that has a proof of its own (``stream_fifo_*``), is replaced by registers for as
long as the core is elaborated. Their first contents, and those of a :class:`Chosen` register, are
the solver's choice, so that a proof, and the mutants that it must catch, need not begin by opening
connections and filling windows: the harness assumes in the first cycle the invariants that it
asserts in all later ones (:class:`Law`).
"""

import sys
from contextlib import contextmanager

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Elaboratable, Module, Mux, Shape, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..kit.internals import mark_used

__all__ = ["AnyFifo", "AnyMemory", "Chosen", "LateFifo", "Law", "opened"]


class Chosen:
    """A register of which the solver chooses the first value: ``now``, and ``next`` to set it."""

    def __init__(self, m, shape, name):
        self.now, self.next = Signal(shape, name=name), Signal(shape, name=f"{name}_next")
        begun = Signal(name=f"{name}_begun")
        now, after = Value.cast(self.now), Value.cast(self.next)
        m.d.sync += [begun.eq(1), after.eq(now)]
        m.d.comb += now.eq(Mux(begun, after, AnyConst(len(now))))


class Law:
    """States invariants: assumed in the first cycle, which the solver chooses, then asserted."""

    def __init__(self, m):
        self.m, self.begun = m, Signal(name="law_begun")
        m.d.sync += self.begun.eq(1)

    def __call__(self, *conditions):
        line = sys._getframe(1).f_lineno  # a trace tells by the name which one failed
        for k, condition in enumerate(conditions):
            holds = Signal(init=1, name=f"law_{line}_{k}")
            self.m.d.comb += [
                holds.eq(condition),
                Assume(self.begun | holds),
                Assert(~self.begun | holds),
            ]


class _Port:
    def __init__(self, bits, shape, name):
        self.addr = Signal(bits, name=f"{name}_addr")
        self.data = Signal(shape, name=f"{name}_data")
        self.en = Signal(init=1 if "read" in name else 0, name=f"{name}_en")


class AnyMemory(Elaboratable):
    """Takes the place of ``amaranth.lib.memory.Memory``; ``frozen``: nothing is written."""

    def __init__(self, *, shape, depth, init, attrs=None):
        self.shape, self.depth = shape, depth
        self.bits, self.ports, self.writes = (depth - 1).bit_length(), [], []
        self.frozen = Signal(name="frozen")
        self.words = [Signal(shape, name=f"word{k}") for k in range(depth)]

    def read_port(self, domain="sync"):
        self.ports.append(_Port(self.bits, self.shape, f"read{len(self.ports)}"))
        return self.ports[-1]

    def write_port(self):
        self.writes.append(_Port(self.bits, self.shape, "write"))
        return self.writes[-1]

    def elaborate(self, platform):
        m = Module()
        (write,) = self.writes
        for k, word in enumerate(self.words):
            kept = Chosen(m, len(Value.cast(word)), f"kept{k}")
            m.d.comb += Value.cast(word).eq(kept.now)
            with m.If(write.en & ~self.frozen & (write.addr == k)):
                m.d.sync += kept.next.eq(write.data)
        words = Array(Value.cast(word) for word in self.words)
        for port in self.ports:
            with m.If(port.en):
                m.d.sync += Value.cast(port.data).eq(words[port.addr])
        return m


class AnyFifo(wiring.Component):
    """Takes the place of ``StreamFifo``: ``level`` words, the oldest is ``words[0]``.

    If ``late``, a word comes out some time after it is the oldest, as the solver likes.
    """

    late = False

    def __init__(self, shape, depth, *, registered=None):
        self.shape, self.depth = shape, depth
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)),
                "level": Out(range(depth + 1)),
            }
        )
        width = Shape.cast(shape).width
        self.words = [Signal(width, name=f"word{k}") for k in range(depth)]

    def elaborate(self, platform):
        m = Module()
        count = Chosen(m, range(self.depth + 1), "count")
        kept = [Chosen(m, len(w), f"kept{k}") for k, w in enumerate(self.words)]
        m.d.comb += [w.eq(k.now) for w, k in zip(self.words, kept, strict=True)]
        puts, gets = self.i.valid & self.i.ready, self.o.valid & self.o.ready
        m.d.comb += [
            self.level.eq(count.now),
            Assume(count.now <= self.depth),
            Value.cast(self.o.payload).eq(self.words[0]),
            self.i.ready.eq(count.now != self.depth),
        ]
        shown, shows = Signal(name="shown"), Signal(name="shows")
        if self.late:
            m.d.comb += shows.eq(AnySeq(1))
            m.d.sync += shown.eq(self.o.valid & ~self.o.ready)
        else:
            m.d.comb += shows.eq(1)
        m.d.comb += self.o.valid.eq((count.now != 0) & (shown | shows))
        m.d.sync += count.next.eq(count.now + puts - gets)
        for k, place in enumerate(kept):
            after = self.words[k + 1] if k + 1 < self.depth else 0
            with m.If(puts & (count.now - gets == k)):
                m.d.sync += place.next.eq(self.i.payload)
            with m.Elif(gets):
                m.d.sync += place.next.eq(after)
        return m


class LateFifo(AnyFifo):
    late = True


@contextmanager
def _replaced(module, others):
    kept = {name: getattr(module, name) for name in others}
    try:
        for name, value in others.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(module, name, value)


def opened(dut, platform, module=None, **others):
    """Elaborate ``dut`` with ``others`` in place of names of its module; its insides can be seen.

    What it keeps as attributes (memories, the state machine) exists from now on.
    """
    with _replaced(module, others):
        inside = dut.elaborate(platform)
    mark_used(dut)
    return inside
