"""From one clock to another: a FIFO whose two ends are registers."""

from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import Cat, ClockDomainsRenamer, If, Memory, Mux, Signal, log2_int
from migen.genlib.cdc import MultiReg

__all__ = ["Crossing"]


class _Pointer(LiteXModule):
    """Where one side is: ``q`` in Gray code, ``address`` in the memory; a place on with ``ce``.

    ``following`` and ``next_address`` are those of the place after it. All are registers.
    """

    def __init__(self, bits):
        self.ce = Signal()
        self.q, self.following = Signal(bits), Signal(bits, reset=1)
        self.address, self.next_address = Signal(bits - 1), Signal(bits - 1, reset=1)
        self.q.attr.add("no_retiming")
        count, after = Signal(bits, reset=1), Signal(bits)
        self.comb += [after.eq(count + 1), self.next_address.eq(count[:-1])]
        self.sync += If(
            self.ce,
            self.q.eq(self.following),
            self.following.eq(after ^ after[1:]),
            self.address.eq(self.next_address),
            count.eq(after),
        )


def _round_ahead(pointer, bits):
    """The pointer to the same place, a round of the memory later: the two highest bits inverted."""
    return pointer ^ (0b11 << (bits - 2))


class Crossing(LiteXModule):
    """LiteX's ``ClockDomainCrossing``, for a clock close to what the FPGA can do.

    LiteX compares the pointers in the cycle in which it moves on, and reads its memory at the
    *next* address, so that the word may come from block RAM: the longest ways of a gigabit MAC.
    Here both sides compare a cycle ahead, the pointer that is and the one that follows, and keep
    the result in a register. Neither is wrong for long: what the other side has done since only
    makes more room, or more items.

    ``sink`` and ``source`` are LiteX endpoints. Latency: three to four cycles of ``cd_to`` and
    one of ``cd_from``. Throughput: an item a cycle of the slower clock. ``sink.ready`` is 0 while
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
        self.produce = produce = ClockDomainsRenamer(cd_from)(_Pointer(bits))
        self.consume = consume = ClockDomainsRenamer(cd_to)(_Pointer(bits))
        produced, consumed = Signal(bits), Signal(bits)
        self.specials += [
            MultiReg(produce.q, produced, cd_to),
            MultiReg(consume.q, consumed, cd_from),
        ]
        sink, source = self.sink, self.source
        full, some = Signal(), Signal()
        round_ahead = _round_ahead(consumed, bits)
        registers = getattr(self.sync, cd_from)
        registers += full.eq(
            Mux(produce.ce, produce.following == round_ahead, produce.q == round_ahead)
        )
        registers = getattr(self.sync, cd_to)
        registers += some.eq(Mux(consume.ce, consume.following != produced, consume.q != produced))
        self.comb += [
            sink.ready.eq(~full),
            produce.ce.eq(sink.valid & sink.ready),
            consume.ce.eq(some & (source.ready | ~source.valid)),
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
        consume = self.consume
        # Block RAM has its register before the word: it is told the address a cycle ahead.
        ahead = Mux(consume.ce, consume.next_address, consume.address)
        self.specials += memory, write, read
        self.comb += [
            write.adr.eq(self.produce.address),
            write.dat_w.eq(sink),
            write.we.eq(self.produce.ce),
            read.adr.eq(ahead if block else consume.address),
        ]
        taken = getattr(self.sync, cd_to)
        taken += [
            If(self.source.ready, self.source.valid.eq(0)),
            If(self.consume.ce, self.source.valid.eq(1), source.eq(read.dat_r)),
        ]
