"""VLAN tags (IEEE 802.1Q, clause 9): off the frames that arrive, onto those that leave.

A tag is four bytes behind the two MAC addresses: 0x8100, and the tag control information (TCI).
Beside a frame it is a number of :data:`VLAN_WIDTH` bits: the TCI, and the top bit that says that
there is one; 0 if there is none. So cores see plain frames.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature
from .octets import byteswap

__all__ = ["TPID", "VLAN_WIDTH", "VlanInsert", "VlanStrip"]

#: Bits of a frame's tag, or that it has none.
VLAN_WIDTH = 17
TPID = 0x8100
#: Where a tag lies in a frame.
_PLACE = 12


def _checked(width):
    if width not in (32, 64):
        raise ValueError(f"VLAN data path width must be 32 or 64 bits, not {width!r}")
    return width


class VlanStrip(wiring.Component):
    """Takes the first VLAN tag out of frames that have one; all others pass as they are.

    =======  ====  =============  ================================================================
    ``i``    In    packet stream  frames
    ``o``    Out   packet stream  the same without the tag; ``error`` is handed on
    ``tag``  Out   VLAN_WIDTH     of the frame on ``o``, from its byte 16 on, until byte 16 of the
                                  next one is on ``i``
    =======  ====  =============  ================================================================

    A frame that ends with the tag, or before, passes as it is; ``tag`` then keeps its value or not.
    A second tag, and one with another type (802.1ad), is part of the frame.

    *Throughput*: one beat a cycle. *Latency*: none at 32 bits, one cycle at 64. *Back-pressure*:
    ``i`` waits for nothing but ``o``. Reset: the frame under way is forgotten.

    Parameters: ``width``, 32 or 64; ``priority``, only priority tags come off: those of VLAN 0,
    which is none, so that the frame belongs to nobody but the port (IEEE 802.1Q, 6.9.1).
    """

    def __init__(self, width=32, priority=False):
        self.width, self.n, self.priority = _checked(width), width // 8, bool(priority)
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "tag": Out(VLAN_WIDTH),
            }
        )

    def elaborate(self, platform):
        m = Module()
        beat = self.i.payload
        place = _PLACE // self.n
        index = self.index = Signal(range(place + 2))
        take, here, tagged = Signal(), Signal(), Signal()
        found = beat.data[-32:]
        wanted = found[:16] == byteswap(Const(TPID, 16))
        if self.priority:
            wanted &= byteswap(found[16:])[:12] == 0
        m.d.comb += [
            take.eq(self.i.valid & self.i.ready),
            here.eq((index == place) & ~beat.last),
            tagged.eq(here & wanted),
        ]
        with m.If(take):
            m.d.sync += index.eq(Mux(beat.last, 0, index + (index != place + 1)))
            with m.If(here):
                m.d.sync += self.tag.eq(Mux(tagged, Cat(byteswap(found[16:]), 1), 0))
        if self.width == 32:
            m.d.comb += [
                self.o.payload.eq(beat),
                self.o.valid.eq(self.i.valid & ~tagged),
                self.i.ready.eq(self.o.ready | (self.i.valid & tagged)),
            ]
        else:
            self._join(m, take, tagged)
        return m

    def _join(self, m, take, tagged):
        """Behind a tag each beat is the upper half of one and the lower half of the next."""
        beat, out = self.i.payload, self.o.payload
        held = self.held = Signal(beat.shape())
        # There is a beat held; it is an upper half alone, and more comes; or is all there is.
        full, half, rest = (Signal(name=s) for s in ("full", "half", "rest"))
        self.full, self.half, self.rest = full, half, rest
        ends = beat.last & beat.empty[2]
        m.d.comb += [
            self.o.valid.eq(full & (~half | self.i.valid)),
            self.i.ready.eq(~full | self.o.ready),
            out.eq(held),
        ]
        with m.If(half):
            m.d.comb += out.data.eq(Cat(held.data[32:], beat.data[:32]))
            m.d.comb += [out.last.eq(ends), out.error.eq(beat.error & ends)]
            m.d.comb += out.empty.eq(Mux(ends, beat.empty[:2], 0))
        with m.Elif(rest):
            m.d.comb += [out.data.eq(held.data[32:]), out.empty.eq(held.empty + 4)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += full.eq(0)
        with m.If(take):
            m.d.sync += [held.eq(beat), full.eq(~(half & ends))]
            m.d.sync += [half.eq(tagged | (half & ~beat.last)), rest.eq(half & beat.last & ~ends)]
            with m.If(tagged):
                m.d.sync += held.data[32:].eq(beat.data[:32])


class VlanInsert(wiring.Component):
    """Puts a VLAN tag into frames.

    =======  ====  =============  ================================================================
    ``i``    In    packet stream  frames of at least 17 bytes
    ``tag``  In    VLAN_WIDTH     of the frame on ``i``, with its first beat; stands still with it
    ``o``    Out   packet stream  the same with its tag, if it has one; ``error`` is handed on
    =======  ====  =============  ================================================================

    *Throughput*: one beat a cycle, and a cycle more for four bytes more. *Latency*: none.
    *Back-pressure*: ``i`` waits for ``o``, and while a beat goes out that ``i`` has no part in.
    Reset: the frame under way is forgotten.

    Parameters: ``width``, 32 or 64.
    """

    def __init__(self, width=32):
        self.width, self.n = _checked(width), width // 8
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "tag": In(VLAN_WIDTH),
                "o": Out(PacketSignature(width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        beat = self.i.payload
        place = _PLACE // self.n
        index = self.index = Signal(range(place + 2))
        tag = self.kept = Signal(VLAN_WIDTH)  # of the frame under way
        here = Signal()
        m.d.comb += [here.eq((index == place) & tag[16]), self.o.payload.eq(beat)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += index.eq(Mux(beat.last, 0, index + (index != place + 1)))
            with m.If(beat.first):
                m.d.sync += tag.eq(self.tag)
        octets = Cat(byteswap(Const(TPID, 16)), byteswap(tag[:16]))
        (self._words if self.width == 32 else self._halves)(m, here, octets)
        return m

    def _words(self, m, here, octets):
        """The tag is a beat of its own."""
        gone = self.gone = Signal()  # it has gone out already
        now = here & ~gone
        m.d.comb += [self.o.valid.eq(self.i.valid), self.i.ready.eq(self.o.ready & ~now)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += gone.eq(now)
        with m.If(now):
            out = self.o.payload
            m.d.comb += [out.data.eq(octets), out.empty.eq(0), out.last.eq(0), out.error.eq(0)]

    def _halves(self, m, here, octets):
        """From the tag on each beat is the upper half of one and the lower half of the next."""
        beat, out = self.i.payload, self.o.payload
        upper, shifted, rest = Signal(32), Signal(), Signal()
        held = Signal(data.StructLayout({"empty": 2, "error": 1}))
        self.upper, self.shifted, self.rest, self.held = upper, shifted, rest, held
        ends = beat.last & beat.empty[2]
        m.d.comb += [self.o.valid.eq(self.i.valid | rest), self.i.ready.eq(self.o.ready & ~rest)]
        with m.If(rest):
            m.d.comb += [out.data.eq(upper), out.empty.eq(4 + held.empty), out.first.eq(0)]
            m.d.comb += [out.last.eq(1), out.error.eq(held.error)]
        with m.Elif(here | shifted):
            m.d.comb += out.data.eq(Mux(here, Cat(beat.data[:32], octets), Cat(upper, beat.data)))
            m.d.comb += [out.last.eq(ends), out.error.eq(beat.error & ends)]
            m.d.comb += out.empty.eq(Mux(ends, beat.empty[:2], 0))
        with m.If(self.o.ready & rest):
            m.d.sync += rest.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [upper.eq(beat.data[32:]), held.empty.eq(beat.empty)]
            m.d.sync += held.error.eq(beat.error)
            m.d.sync += shifted.eq((here | shifted) & ~beat.last)
            m.d.sync += rest.eq((here | shifted) & beat.last & ~ends)
