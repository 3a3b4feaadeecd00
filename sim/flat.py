"""Clock and reset of the tops that are made of a component for Verilator."""

from amaranth import ClockDomain, Signal

__all__ = ["add_clock"]


def add_clock(m, clk, rst):
    """Domain ``sync`` of module ``m``: clocked by the port ``clk``, in reset a cycle after ``rst``.

    As an input the reset would be part of half the logic (Yosys folds it into expressions), and
    Verilator computes what depends on inputs anew in each half of a cycle. The design starts in
    reset, and is still there in the first cycle in which ``rst`` is low: offer it nothing then.
    """
    m.domains.harness = harness = ClockDomain(reset_less=True)
    m.domains.sync = sync = ClockDomain()
    reset = Signal(init=1)
    m.d.harness += reset.eq(rst)
    m.d.comb += [harness.clk.eq(clk), sync.clk.eq(clk), sync.rst.eq(reset)]
