"""Sector, sectors left and size of the medium: counted and compared a bit at a time."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..drive.port import COUNT_WIDTH

__all__ = ["PASS", "SdNumbers"]

#: Cycles of a pass that changes a number.
PASS = 1024


class SdNumbers(wiring.Component):
    """Shift registers that rotate past one-bit arithmetic.

    ===============  ===  ====  ==================================================================
    member           dir  bits  meaning
    ===============  ===  ====  ==================================================================
    ``time``         In   10    counts the cycles, from any value
    ``load``         In   1     take ``lba`` and ``count``
    ``rotate``       In   1     move to the next bit to send; 32 of these restore the numbers
    ``bit``          Out  1     next bit of the sector number, of 32, the highest first
    ``byte_bit``     Out  1     as ``bit``, of the sector number times 512
    ``left_bit``     Out  1     as ``bit``, of the sectors left, twice 16 bits
    ``size_clear``   In   1     pulse: the size is 0
    ``size_shift``   In   1     pulse: the size is twice the former and ``size_bit``
    ``size``         Out  32    the size, while not ``busy``
    ``compare``      In   1     pulse: compare the numbers as they are
    ``advance``      In   1     pulse: add 1 to the sector, take 1 from those left, and compare
    ``grow``         In   1     pulse: add 1 to the size
    ``busy``         Out  1     the last of these pulses is being executed
    ``past``         Out  1     the sector is not below the size
    ``none``         Out  1     no sectors are left
    ``one``          Out  1     one sector is left
    ===============  ===  ====  ==================================================================

    ``past``, ``none``, ``one`` are valid after ``compare`` or ``advance`` when ``busy`` is 0 again,
    at most 64 and 2,048 cycles later. While ``busy`` is 1 give no pulse of any kind, nor ``load``.
    A sector number times 512 is sent correctly if below 2 ** 23. Reset: not busy; numbers of 0.
    """

    time: In(10)
    load: In(1)
    lba: In(32)
    count: In(COUNT_WIDTH)
    rotate: In(1)
    bit: Out(1)
    byte_bit: Out(1)
    left_bit: Out(1)
    size_clear: In(1)
    size_shift: In(1)
    size_bit: In(1)
    size: Out(32)
    compare: In(1)
    advance: In(1)
    grow: In(1)
    busy: Out(1)
    past: Out(1)
    none: Out(1)
    one: Out(1)

    # Numbers rotate highest bit first, as commands send them, and a comparison takes one turn of 32
    # cycles. To count, carries must go from the lowest bit up: 32 turns, of which turn n changes
    # bit n. So each bit of a number costs a register and no more.
    def elaborate(self, platform):
        m = Module()
        time = self.time
        self.sector, self.left = sector, left = Signal(32), Signal(COUNT_WIDTH)
        self.pending, self.turning, self.long = pending, turning, long = (
            Signal(),
            Signal(),
            Signal(),
        )
        self.grows = grows = Signal()
        edge, begin = Signal(), Signal()
        m.d.comb += [
            edge.eq((time[:5] == 31) & (~long | time[5:].all())),
            begin.eq(self.compare | self.advance | self.grow),
            self.busy.eq(pending | turning),
            self.bit.eq(sector[31]),
            self.byte_bit.eq(sector[22]),
            self.left_bit.eq(left[COUNT_WIDTH - 1]),
        ]
        with m.If(edge):
            m.d.sync += [turning.eq(pending), pending.eq(0)]
        with m.If(begin):
            m.d.sync += [pending.eq(1), long.eq(~self.compare), grows.eq(self.grow)]

        s, z, n = Signal(), Signal(), Signal()  # the bits as they leave
        self._count(m, s, z, n)
        with m.If(self.load):
            m.d.sync += [sector.eq(self.lba), left.eq(self.count)]
        with m.Elif(turning | self.rotate):
            m.d.sync += [sector.eq(Cat(s, sector)), left.eq(Cat(n, left))]
        with m.If(self.size_clear):
            m.d.sync += self.size.eq(0)
        with m.Elif(turning | self.size_shift):
            m.d.sync += self.size.eq(Cat(Mux(turning, z, self.size_bit), self.size))
        self._compare(m, s, z, n)
        return m

    def _count(self, m, s, z, n):
        time = self.time
        self.carry, self.borrow = carry, borrow = Signal(init=1), Signal(init=1)
        low, wide, narrow = Signal(), Signal(), Signal()  # this turn changes the bit that passes
        m.d.comb += [
            low.eq(self.turning & self.long & (time[:4] == ~time[5:9])),
            wide.eq(low & (time[4] != time[9])),
            narrow.eq(low & ~time[4] & ~time[9]),
            s.eq(self.sector[31] ^ (carry & wide & ~self.grows)),
            z.eq(self.size[31] ^ (carry & wide & self.grows)),
            n.eq(self.left[-1] ^ (borrow & narrow)),
        ]
        with m.If(~self.turning):
            m.d.sync += [carry.eq(1), borrow.eq(1)]
        with m.Else():
            m.d.sync += carry.eq(carry & (~wide | Mux(self.grows, self.size[31], self.sector[31])))
            m.d.sync += borrow.eq(borrow & ~(narrow & self.left[-1]))

    def _compare(self, m, s, z, n):
        time = self.time
        self.decided, self.below = decided, below = Signal(), Signal()
        self.some, self.more = some, more = Signal(), Signal()
        open_, more_now = Signal(), Signal()
        m.d.comb += [
            open_.eq(~decided | (time[:5] == 0)),
            more_now.eq(some & (time[:4] != 0)),
            self.past.eq(~below),
            self.none.eq(~some),
            self.one.eq(some & ~more),
        ]
        with m.If(self.turning):
            m.d.sync += [decided.eq(~open_ | (s ^ z)), some.eq(more_now | n), more.eq(more_now)]
            with m.If(open_):
                m.d.sync += below.eq(~s & z)
