"""The right edge of the receive window when a pool segment is larger than an unscaled window."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["WindowEdge"]


class WindowEdge(wiring.Component):
    """Where the window may end: ``min(cons + segment size, pub + largest window)``, modulo 2**32.

    ==========  ===  =============================================================
    ``cons``    In   first byte that is not consumed: its place in the ring is used
    ``pub``     In   first byte that has not reached memory, at most a segment on
    ``scaled``  In   (``config.scaling`` only) windows are shifted: the edge is the ring's end
    ``edge``    Out  :attr:`LATENCY` cycles after stable inputs
    ==========  ===  =============================================================

    The 16 bits of a header's window count from ``pub`` (without window scaling, RFC 7323), so the
    edge follows what arrives, as long as there is room in the ring; a segment may then hold more
    than 65,535 bytes that nobody has consumed yet. Both inputs only move on, and so does the edge:
    a peer is never told a smaller one. No control: a pipeline of registers that always runs.
    """

    #: Cycles from stable inputs to a right edge.
    LATENCY = 2

    def __init__(self, config):
        self.config = config
        scaled = {"scaled": In(1)} if config.scaling else {}
        super().__init__({"cons": In(32), "pub": In(32), "edge": Out(32)} | scaled)

    def elaborate(self, platform):
        m = Module()
        size, window = self.config.segment_size, self.config.window
        unread = Signal(self.config.segment_log2 + 1)
        near = unread > size - window
        if self.config.scaling:
            near |= self.scaled
        m.d.sync += [
            unread.eq(self.pub - self.cons),
            self.edge.eq(Mux(near, self.cons + size, self.pub + window)),
        ]
        return m
