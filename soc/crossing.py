"""From one clock to another: a FIFO whose two ends are registers."""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Cat, ClockDomainsRenamer, If, Memory, Signal, log2_int
from migen.genlib.cdc import GrayCounter, MultiReg

__all__ = ["Crossing"]


class Crossing(LiteXModule):
    """LiteX's ``ClockDomainCrossing``, for a clock close to what the FPGA can do.

    LiteX reads its memory at the *next* address, so that its word may come from block RAM; from LUT
    RAM, the way from the pointers' comparison through that address to the word is the longest of
    a gigabit MAC's transmitter. Here address and word are registers, and the comparison only says
    whether they move on. (Block RAM has its register before the word: it is read at the next
    address here, too.) Nor does ``sink.ready`` come from a comparison, which is the longest way of
    the receiver, but from a register.

    ``sink`` and ``source`` are LiteX endpoints. Latency: two to three cycles of ``cd_to`` and one
    of ``cd_from``. Throughput: an item a cycle of the slower clock. ``sink.ready`` is 0 while
    ``depth`` items wait, and a cycle longer; ``source`` holds one more, steady until it is taken.
    Pointers cross in Gray code (C. E. Cummings, Simulation and Synthesis Techniques for
    Asynchronous FIFO Design, SNUG 2002). Reset: empty; both domains must be reset together.

    Parameters
    ----------
    layout : list
        As for LiteX's ``Endpoint``.
    cd_from, cd_to : str
        Clock domains of ``sink`` and ``source``.
    depth : int
        Items of the memory, a power of two, at least 4.
    block : bool
        It is a block RAM; else LUT RAM.
    """

    def __init__(self, layout, cd_from, cd_to, depth=16, block=False):
        if not isinstance(depth, int) or depth < 4 or depth & (depth - 1):
            raise ValueError(f"Depth must be a power of two of at least 4, not {depth!r}")
        self.sink, self.source = stream.Endpoint(layout), stream.Endpoint(layout)
        bits = log2_int(depth) + 1
        self.produce = ClockDomainsRenamer(cd_from)(GrayCounter(bits))
        self.consume = ClockDomainsRenamer(cd_to)(GrayCounter(bits))
        produced, consumed = Signal(bits), Signal(bits)
        self.produce.q.attr.add("no_retiming")
        self.consume.q.attr.add("no_retiming")
        self.specials += [
            MultiReg(self.produce.q, produced, cd_to),
            MultiReg(self.consume.q, consumed, cd_from),
        ]
        full = Signal()
        sink, source = self.sink, self.source
        # A whole round ahead: in Gray code, with the two highest bits inverted. Who reads has moved
        # on since, if anything.
        registers = getattr(self.sync, cd_from)
        registers += full.eq(self.produce.q_next == (consumed ^ (0b11 << (bits - 2))))
        self.comb += [
            sink.ready.eq(~full),
            self.produce.ce.eq(sink.valid & sink.ready),
            self.consume.ce.eq((self.consume.q != produced) & (source.ready | ~source.valid)),
        ]
        self._add_memory(depth, cd_from, cd_to, block)

    def _add_memory(self, depth, cd_from, cd_to, block):
        sink, source = (
            Cat(*end.payload.flatten(), *end.param.flatten(), end.first, end.last)
            for end in (self.sink, self.source)
        )
        # Not an attribute: LiteX would give the CPU a port of it.
        memory = Memory(len(sink), depth)
        write = memory.get_port(write_capable=True, clock_domain=cd_from)
        read = memory.get_port(async_read=not block, clock_domain=cd_to)
        following = self.consume.q_next_binary if block else self.consume.q_binary
        self.specials += memory, write, read
        self.comb += [
            write.adr.eq(self.produce.q_binary[:-1]),
            write.dat_w.eq(sink),
            write.we.eq(self.produce.ce),
            read.adr.eq(following[:-1]),
        ]
        taken = getattr(self.sync, cd_to)
        taken += [
            If(self.source.ready, self.source.valid.eq(0)),
            If(self.consume.ce, self.source.valid.eq(1), source.eq(read.dat_r)),
        ]
