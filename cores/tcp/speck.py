"""Speck64/128 (Beaulieu et al., ePrint 2013/404), a round a cycle: the engine's keyed function."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["ROUNDS", "Speck"]

ROUNDS = 27


class Speck(wiring.Component):
    """Encrypts one 64-bit block.

    ===========  ===  ====================================================================
    ``start``    In   begin with ``block`` and ``key``, whatever was going on
    ``block``    In   64 bits: x in the upper half, y in the lower
    ``key``      In   128 bits: l2, l1, l0, k0 from the top
    ``rounds``   Out  rounds done so far; 27 (:data:`ROUNDS`) when the cipher is finished
    ``result``   Out  the block after ``rounds`` rounds
    ===========  ===  ====================================================================

    Latency 27 cycles after ``start``; users of a weaker mix may look after fewer. Reset: finished,
    with a result of 0.
    """

    start: In(1)
    block: In(64)
    key: In(128)
    rounds: Out(5, init=ROUNDS)
    result: Out(64)

    def elaborate(self, platform):
        m = Module()
        x, y = self.result[32:], self.result[:32]
        k, l0, l1, l2 = (Signal(32, name=n) for n in ("k", "l0", "l1", "l2"))
        self.schedule = k, l0, l1, l2  # for the invariants of its proof
        new_l, new_x = Signal(32), Signal(32)
        m.d.comb += [
            new_x.eq((x.rotate_right(8) + y) ^ k),
            new_l.eq((l0.rotate_right(8) + k) ^ self.rounds),
        ]
        with m.If(self.start):
            m.d.sync += [self.result.eq(self.block), self.rounds.eq(0)]
            m.d.sync += [k.eq(self.key[:32]), l0.eq(self.key[32:64])]
            m.d.sync += [l1.eq(self.key[64:96]), l2.eq(self.key[96:])]
        with m.Elif(self.rounds != ROUNDS):
            m.d.sync += [
                x.eq(new_x),
                y.eq(y.rotate_left(3) ^ new_x),
                self.rounds.eq(self.rounds + 1),
            ]
            m.d.sync += [l0.eq(l1), l1.eq(l2), l2.eq(new_l), k.eq(k.rotate_left(3) ^ new_l)]
        return m
