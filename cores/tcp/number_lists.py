"""A list of numbers, first in, first out: what the TCP engine keeps sessions and segments in."""

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS

__all__ = ["NumberList", "placed"]


def placed(bits, lut_ram):
    """Attributes of a memory of so many bits that obeys ``NO_COLLISIONS``.

    It is block RAM, however small, if it has more than ``lut_ram`` bits.
    """
    return {**NO_COLLISIONS, "ram_style": "block"} if bits > lut_ram else NO_COLLISIONS


class NumberList(wiring.Component):
    """Holds up to ``depth`` numbers, in order.

    ==========  ===  ===================================================================
    ``w_data``  In   with ``w_en``: goes in. With ``depth`` numbers inside it is *lost*, and all
                     others with it: whoever writes knows how many there can be
    ``w_rdy``   Out  there is room; for proofs and tests, since nobody has to ask
    ``r_data``  Out  the oldest, if ``r_rdy``
    ``r_en``    In   takes it out; ignored unless ``r_rdy``
    ``level``   Out  how many are inside
    ==========  ===  ===================================================================

    Parameters: ``width``, bits of a number; ``depth``, at least 2; ``lut_ram``, bits up to which it
    lies in LUT RAM. Latency 2 cycles; one number a cycle goes in and one comes out. Reset: empty.
    """

    def __init__(self, *, width, depth, lut_ram=256):
        if not isinstance(depth, int) or depth < 2:
            raise ValueError(f"List depth must be an integer of at least 2, not {depth!r}")
        self.width, self.depth, self.lut_ram = width, depth, lut_ram
        super().__init__(
            {
                "w_en": In(1),
                "w_data": In(width),
                "w_rdy": Out(1),
                "r_en": In(1),
                "r_data": Out(width),
                "r_rdy": Out(1),
                "level": Out(range(depth + 1)),
            }
        )

    # The oldest number is in the RAM's read latch, and moves there as soon as it can. So there are
    # never as many in the RAM as it has places, and equal pointers mean that it is empty: the level
    # need not be counted.
    def elaborate(self, platform):
        m = Module()
        bits = (self.depth - 1).bit_length()
        attrs = placed(self.width << bits, self.lut_ram)
        m.submodules.storage = ram = Memory(
            shape=unsigned(self.width), depth=1 << bits, init=[], attrs=attrs
        )
        write, read = ram.write_port(), ram.read_port()
        inside, fetch = Signal(bits), Signal()
        m.d.comb += [
            write.en.eq(self.w_en),
            write.data.eq(self.w_data),
            inside.eq(write.addr - read.addr),
            fetch.eq((~self.r_rdy | self.r_en) & (write.addr != read.addr)),
            read.en.eq(fetch),
            self.r_data.eq(read.data),
            self.level.eq(inside + self.r_rdy),
            self.w_rdy.eq(self.level != self.depth),
        ]
        tail, head = Signal(bits), Signal(bits)
        m.d.comb += [write.addr.eq(tail), read.addr.eq(head)]
        m.d.sync += [tail.eq(tail + self.w_en), head.eq(head + fetch)]
        with m.If(fetch):
            m.d.sync += self.r_rdy.eq(1)
        with m.Elif(self.r_en):
            m.d.sync += self.r_rdy.eq(0)
        return m
