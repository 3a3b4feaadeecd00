"""Free session numbers: a stack in memory, whose top is on chip."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..memory import ADDR_WIDTH, MemorySignature

__all__ = ["NumberStack"]


class NumberStack(wiring.Component):
    """Gives out the numbers below ``numbers``; what was given back last comes first, but after
    the one that is on offer already.

    =========  ===  =========================================================================
    ``take``   Out  stream of numbers, free ones
    ``give``   In   stream of numbers that have become free
    ``room``   Out  the next ``depth / 4 - burst`` numbers given need not wait for memory
    ``none``   Out  no number is free. If both this and ``take.valid`` are 0, one is on its way
    ``mem``    Out  memory port
    =========  ===  =========================================================================

    Parameters: ``count``, a power of two of at least 2; ``numbers``, so many at most (None: as
    many); ``base``, address of ``size`` bytes of memory, a multiple of 64; ``width`` of the port;
    ``depth``, numbers on chip, a power of two and
    at least four bursts; ``burst``, numbers moved at a time, a power of two.

    Numbers that were never given out are counted, not stored, so nothing is cleared at the start.
    In memory each number has a beat of its own, which is written long before it is read: the bottom
    of the stack on chip goes out when it is three quarters full and comes back when it is a
    quarter full, a burst at a time. While a burst comes back and none is here, never used numbers
    are given out before it, if there are any.

    Latency: a number given back when none is on offer is on offer in the next cycle; after one was
    taken, the next is within 2 cycles, unless it is in memory. ``give`` waits while memory does not
    take what does not fit the chip. Reset: all numbers free.
    """

    def __init__(self, count, base=0, width=64, *, numbers=None, depth=64, burst=8):
        for name, value, low in (("count", count, 2), ("burst", burst, 2), ("depth", depth, 8)):
            if not isinstance(value, int) or value < low or value & (value - 1):
                raise ValueError(f"{name} must be a power of two of at least {low}, not {value!r}")
        if depth < 4 * burst or burst > 64:
            raise ValueError(f"burst must be a quarter of depth at most, and 64, not {burst}")
        if base % 64:
            raise ValueError(f"base must be a multiple of 64, not {base}")
        self.numbers = count if numbers is None else numbers
        if not 1 <= self.numbers <= count:
            raise ValueError(f"numbers must be 1 to {count}, not {numbers!r}")
        self.count, self.base, self.width, self.depth, self.burst = count, base, width, depth, burst
        self.size = count * width // 8
        bits = (count - 1).bit_length()
        super().__init__(
            {
                "take": Out(stream.Signature(bits)),
                "give": In(stream.Signature(bits)),
                "room": Out(1),
                "none": Out(1),
                "mem": Out(MemorySignature(width, 0)),
            }
        )

    # On chip are `head`, which is on offer, below it `level` places of a RAM used as a ring, from
    # `bottom` on, and below these `blocks` bursts in memory. A burst's worth of the ring stays
    # unused: there a burst lies that is on its way out or comes in.
    def elaborate(self, platform):
        m = Module()
        depth, burst = self.depth, self.burst
        m.submodules.ram = ram = Memory(
            shape=len(self.take.payload), depth=depth, init=[], attrs=NO_COLLISIONS
        )
        self.ram = ram
        top, under, write = ram.read_port(), ram.read_port(), ram.write_port()
        self.level = level = Signal(range(depth + 1))
        self.bottom = bottom = Signal(range(depth))
        self.settled = settled = Signal()  # `top.data` is the ring's topmost
        self.mark = mark = Signal(range(self.count + 1))  # the first number never used
        above = Signal(range(depth))
        push, pop, spill, refill = (Signal(name=n) for n in ("push", "pop", "spill", "refill"))
        m.d.comb += [above.eq(bottom + level), top.addr.eq(above - 1)]
        head, head_valid = self.take.payload, self.take.valid
        arrives = self.mem.rdata.valid
        given, taken = Signal(), Signal()
        m.d.comb += [
            self.give.ready.eq((level < depth - burst) & ~arrives),
            self.room.eq(level < depth * 3 // 4),
            given.eq(self.give.valid & self.give.ready),
            taken.eq(self.take.valid & self.take.ready),
            push.eq(given & head_valid & ~taken),
        ]
        with m.If(given & ~push):
            m.d.sync += [head.eq(self.give.payload), head_valid.eq(1)]
        with m.Elif(taken):
            m.d.sync += head_valid.eq(0)
        with m.Elif(~head_valid & (level != 0)):
            m.d.comb += pop.eq(settled)
            with m.If(settled):
                m.d.sync += [head.eq(top.data), head_valid.eq(1)]
        with m.Elif(~head_valid & (mark != self.numbers)):
            m.d.sync += [head.eq(mark), mark.eq(mark + 1), head_valid.eq(1)]
        m.d.sync += settled.eq(~push & ~pop & ~refill)
        m.d.sync += level.eq(level + push - pop - Mux(spill, burst, 0) + Mux(refill, burst, 0))
        self._move(m, under, spill, refill)
        with m.If(arrives):
            m.d.comb += [write.en.eq(1), write.addr.eq(bottom - burst + self.beat)]
            m.d.comb += write.data.eq(self.mem.rdata.payload.data)
        with m.Else():
            m.d.comb += [write.en.eq(push), write.addr.eq(above), write.data.eq(self.give.payload)]
        return m

    def _move(self, m, under, spill, refill):
        """Bursts between the bottom of the ring and memory, one at a time."""
        depth, burst, mem = self.depth, self.burst, self.mem
        bottom, level = self.bottom, self.level
        self.blocks = blocks = Signal(range(self.count // burst + 2))
        self.beat = beat = Signal(range(burst))
        sends = mem.wdata.valid & mem.wdata.ready
        out = Signal(range(depth))  # of the beat that is on offer, or comes next
        block = Mux(mem.cmd.payload.write, blocks, blocks - 1)
        address = Signal(ADDR_WIDTH)
        m.d.comb += [
            address.eq(self.base + block * (burst * self.width // 8)),
            mem.cmd.payload.addr.eq(address),
            mem.cmd.payload.beats.eq(burst - 1),
            mem.wdata.payload.data.eq(under.data),
            mem.wdata.payload.strb.eq(~0),
            mem.wdata.payload.last.eq(beat == burst - 1),
            under.addr.eq(out + sends),
            mem.rdata.ready.eq(1),
            mem.wdone.ready.eq(1),
        ]
        m.d.sync += out.eq(out + sends)
        with m.If(sends | mem.rdata.valid):
            m.d.sync += beat.eq(beat + 1)
        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                empty = (level == 0) & (blocks == 0) & (self.mark == self.numbers)
                m.d.comb += self.none.eq(~self.take.valid & empty)
                with m.If(level >= depth * 3 // 4):
                    m.d.comb += spill.eq(1)
                    m.d.sync += [out.eq(bottom), bottom.eq(bottom + burst)]
                    m.next = "WRITE"
                with m.Elif((level < depth // 4) & (blocks != 0)):
                    m.next = "READ"
            with m.State("WRITE"):
                m.d.comb += [mem.cmd.valid.eq(1), mem.cmd.payload.write.eq(1)]
                with m.If(mem.cmd.ready):
                    m.next = "SEND"
            with m.State("SEND"):
                m.d.comb += mem.wdata.valid.eq(1)
                with m.If(sends & mem.wdata.payload.last):
                    m.next = "WRITTEN"
            with m.State("WRITTEN"):
                with m.If(mem.wdone.valid):
                    m.d.sync += blocks.eq(blocks + 1)
                    m.next = "IDLE"
            with m.State("READ"):
                m.d.comb += mem.cmd.valid.eq(1)
                with m.If(mem.cmd.ready):
                    m.next = "COMES"
            with m.State("COMES"):
                with m.If(mem.rdata.valid & mem.rdata.payload.last):
                    m.d.comb += refill.eq(1)
                    m.d.sync += [bottom.eq(bottom - burst), blocks.eq(blocks - 1)]
                    m.next = "IDLE"
