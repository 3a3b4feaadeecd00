"""A FIFO whose writer can take back what it has written since its last commit."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS

__all__ = ["RollbackFifo"]


class RollbackFifo(wiring.Component):
    """Block RAM FIFO with commit and rollback, for store-and-forward receivers.

    ============  ====  ======  ==============================================================
    member        dir   shape   meaning
    ============  ====  ======  ==============================================================
    ``w_data``    In    shape   item to write
    ``w_en``      In    1       write it; ignored while ``full``
    ``full``      Out   1       no room for another item
    ``commit``    In    1       what was written up to and including this cycle's item may be read
    ``rollback``  In    1       forget what was written since the last commit, and this cycle's
                                item; wins over ``commit``
    ``output``    Out   stream  the items, in order
    ============  ====  ======  ==============================================================

    An item appears on ``output`` three cycles after its commit; from then on one item a cycle. The
    write side never waits. Reset empties it.

    Parameters
    ----------
    shape : shape-like
        What an item is.
    depth : int
        Items, a power of two.
    """

    def __init__(self, shape, depth):
        if not isinstance(depth, int) or depth < 2 or depth & (depth - 1):
            raise ValueError(f"FIFO depth must be a power of two of at least 2, not {depth!r}")
        self.shape = shape
        self.depth = depth
        super().__init__(
            {
                "w_data": In(shape),
                "w_en": In(1),
                "full": Out(1),
                "commit": In(1),
                "rollback": In(1),
                "output": Out(stream.Signature(shape)),
            }
        )

    def elaborate(self, platform):
        # Pointers carry one bit more than the address, so equal addresses tell full from empty.
        m = Module()
        bits = self.depth.bit_length() - 1
        m.submodules.ram = ram = Memory(
            shape=self.shape, depth=self.depth, init=[], attrs=NO_COLLISIONS
        )
        wp, rp = ram.write_port(), ram.read_port()
        write, kept, read = Signal(bits + 1), Signal(bits + 1), Signal(bits + 1)
        after = Signal(bits + 1)
        self.ram, self.reader = ram, rp  # for the invariants of its proof, as the pointers are
        self.write, self.kept, self.read = write, kept, read
        m.d.comb += [
            self.full.eq(Cat(write[:bits], ~write[bits]) == read),
            wp.addr.eq(write[:bits]),
            wp.data.eq(self.w_data),
            wp.en.eq(self.w_en & ~self.full),
            after.eq(write + wp.en),
        ]
        with m.If(self.rollback):
            m.d.sync += write.eq(kept)
        with m.Else():
            m.d.sync += write.eq(after)
            with m.If(self.commit):
                m.d.sync += kept.eq(after)

        # RAM output and output register are two places that advance independently.
        fetched = Signal()
        load = Signal()
        fetch = Signal()
        self.fetched = fetched
        m.d.comb += [
            load.eq(~self.output.valid | self.output.ready),
            fetch.eq((~fetched | load) & (read != kept)),
            rp.addr.eq(read[:bits]),
            rp.en.eq(fetch),
        ]
        with m.If(fetch):
            m.d.sync += [read.eq(read + 1), fetched.eq(1)]
        with m.Elif(load):
            m.d.sync += fetched.eq(0)
        with m.If(load):
            m.d.sync += [self.output.valid.eq(fetched), self.output.payload.eq(rp.data)]
        return m
