"""Tuples of the sessions at work, on chip, in front of the index in memory."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from .index_layout import place_layout

__all__ = ["TupleCache"]

#: The lowest bit of a code that chooses a set: the buckets are chosen by bits below it.
SET_FROM = 32


class TupleCache(wiring.Component):
    """A set of two entries, the newer first, for each value of some bits of a tuple's code.

    ============  ===  ========================================================================
    ``code``      In   the tuple's code; as it was in the cycle before, all else is about it
    ``number``    In   what to put, or to drop; and ``where`` the index has it
    ``hit``       Out  the code is here, with ``its_number`` and ``its_where``
    ``put``       In   strobe: enter it as the newer one; what was that becomes the older one,
                       unless it is the same tuple's
    ``drop``      In   strobe: remove it, if it is here with that number
    ``ready``     Out  0 while the sets are being cleared after reset
    ============  ===  ========================================================================

    Parameters: ``session_bits``; ``sets``, a power of two from 2 to 4,096.

    Latency 1 cycle. No ``put`` nor ``drop`` in the cycle after one. Reset: empty, after a cycle
    per set.
    """

    def __init__(self, session_bits, sets=512):
        if not isinstance(sets, int) or not 2 <= sets <= 4096 or sets & (sets - 1):
            raise ValueError(f"Sets of the cache must be a power of two, 2 to 4096, not {sets!r}")
        self.session_bits, self.sets = session_bits, sets
        super().__init__(
            {
                "code": In(64),
                "number": In(session_bits),
                "where": In(place_layout()),
                "hit": Out(1),
                "its_number": Out(session_bits),
                "its_where": Out(place_layout()),
                "put": In(1),
                "drop": In(1),
                "ready": Out(1),
            }
        )

    # Two RAMs, each written as a whole or not at all, so that nothing is multiplexed on the way in:
    # the newer entry is always replaced by the new one, the older one by what was the newer.
    def elaborate(self, platform):
        m = Module()
        bits = (self.sets - 1).bit_length()
        entry = data.StructLayout(
            {"valid": 1, "tag": 64 - bits, "number": self.session_bits, "where": place_layout()}
        )
        self.rams, reads, writes = [], [], []
        for name in ("newer", "older"):
            m.submodules[name] = ram = Memory(
                shape=entry, depth=self.sets, init=[], attrs=NO_COLLISIONS | {"ram_style": "block"}
            )
            self.rams.append(ram)
            reads.append(ram.read_port())
            writes.append(ram.write_port())
        at, tag = self.code[SET_FROM : SET_FROM + bits], Signal(64 - bits)
        newer, older, new = reads[0].data, reads[1].data, writes[0].data
        is_newer, is_older = Signal(), Signal()
        clearing = Signal(range(self.sets + 1))
        mine = Signal()
        m.d.comb += [
            tag.eq(Cat(self.code[:SET_FROM], self.code[SET_FROM + bits :])),
            [read.addr.eq(at) for read in reads],
            is_newer.eq(newer.valid & (newer.tag == tag)),
            is_older.eq(older.valid & (older.tag == tag)),
            self.hit.eq(is_newer | is_older),
            self.its_number.eq(Mux(is_newer, newer.number, older.number)),
            self.its_where.eq(Mux(is_newer, newer.where.as_value(), older.where.as_value())),
            mine.eq(self.its_number == self.number),
            new.tag.eq(tag),
            new.number.eq(self.number),
            new.where.eq(self.where),
            writes[1].data.eq(newer),
            self.ready.eq(clearing == self.sets),
        ]
        with m.If(~self.ready):
            m.d.sync += clearing.eq(clearing + 1)
            m.d.comb += [write.en.eq(1) for write in writes]
            m.d.comb += [write.addr.eq(clearing) for write in writes]
            m.d.comb += [new.valid.eq(0), writes[1].data.valid.eq(0)]
        with m.Else():
            m.d.comb += [write.addr.eq(at) for write in writes]
            m.d.comb += [new.valid.eq(self.put), writes[1].data.valid.eq(self.put & newer.valid)]
            with m.If(self.put):
                m.d.comb += writes[0].en.eq(1)
                m.d.comb += writes[1].en.eq(~is_newer & (newer.valid | is_older))
            with m.Elif(self.drop & mine):
                m.d.comb += [writes[0].en.eq(is_newer), writes[1].en.eq(is_older)]
        return m
