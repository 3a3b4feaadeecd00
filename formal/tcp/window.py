"""Proof of the window's edge in ``cores/tcp/window.py``.

In wide integers, which never wrap, by distances from the first byte that is not consumed, which is
arbitrary: the core sees the low 32 bits of the sums.
"""

from dataclasses import replace

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import new_harness
from .classifier import SMALL, constant, matured

__all__ = ["PROOFS"]


class WindowEdgeProof(Elaboratable):
    """Of a segment that is larger than a window, and of one that is not.

    Distances from the first byte that is not consumed, as above.
    """

    def __init__(self, duts):
        self.duts = duts

    def elaborate(self, platform):
        m = new_harness()
        mature, cons = matured(m, 2), constant(m, "base", 32)
        for k, dut in enumerate(self.duts):
            m.submodules[f"dut{k}"] = dut
            size, window = dut.config.segment_size, min(dut.config.segment_size, 65535)
            pub, edge = constant(m, f"d_pub{k}", 18), Signal(19, name=f"d_edge{k}")
            m.d.comb += [
                Assume(pub <= size),
                edge.eq(Mux(size < pub + window, size, pub + window)),
                dut.cons.eq(cons),
                dut.pub.eq((cons + pub)[:32]),
                Cover(mature & (dut.edge < dut.pub)),
                Cover(mature & (edge == pub) & (pub != 0)),
            ]
            with m.If(mature):
                m.d.comb += Assert(dut.edge == (cons + edge)[:32])
        return m


PROOFS = (
    Proof(
        name="tcp_window_edge",
        quick=True,
        core="cores.tcp.window.WindowEdge, segments of 2**17 and 2**12 bytes",
        says="the edge is the nearer of: room in the ring, the largest window from what arrived",
        module="trebuchet.cores.tcp.window",
        build=lambda cores: WindowEdgeProof(
            [cores.WindowEdge(replace(SMALL, segment_log2=log2)) for log2 in (17, 12)]
        ),
        depth=3,
        cover_depth=4,
        mutants=(
            Mutant("never_full", "unread > size - window", "unread > size"),
            Mutant("too_narrow", "self.config.segment_log2 + 1", "self.config.segment_log2"),
            Mutant("one_too_far", "self.pub + window", "self.pub + window + 1"),
        ),
        assumes="what is unread fits the segment; inputs are stable",
    ),
)
