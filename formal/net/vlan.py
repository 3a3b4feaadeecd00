"""Proofs of VLAN tags, off and on: ``cores/net/vlan.py``.

Contract, over public ports, byte by byte (:class:`~.realign.ByteQueue`): ``VlanStrip`` lets all
bytes of a frame through but bytes 12 to 15 if they are a tag and the frame goes on behind them, and
tells that tag; ``VlanInsert`` lets all through, with the tag before byte 12 if there is one. First
and last byte of a frame are marked as such, the last with the frame's ``error``; nothing is lost,
doubled or changed. What is whole leaves at once; the input waits for a stalled output, and for one
cycle besides at most.

Not proved: behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..realign import Lane, RealignProof, entry
from ..stream import free

__all__ = ["PROOFS"]

PLACE = 12


class _Vlan(RealignProof):
    """``seen``: beats of the frame that have come in; no more are counted when the tag has."""

    through = True

    def counted(self, m):
        last = PLACE // self.n
        self.seen = Signal(range(last + 2), name="seen")
        self.here = Signal(name="here")  # the beat with byte 12
        m.d.comb += self.here.eq(self.seen == last)
        with m.If(self.put):
            more = self.seen + (self.seen != last + 1)
            m.d.sync += self.seen.eq(Mux(self.dut.i.payload.last, 0, more))
        m.d.comb += [
            Assert(self.dut.index == self.seen),
            Assert(self.seen <= last + 1),
            Assert(self.begins == (self.seen == 0)),
        ]

    def lanes(self, shown, before=int):
        """Those of the beat on offer for which ``shown(lane)`` holds, ``before(lane)`` others."""
        i = self.dut.i.payload
        return [
            Lane(
                shown(lane) & (lane < self.count),
                before(lane),
                entry(
                    i.data.word_select(lane, 8),
                    i.first & (lane == 0),
                    i.last & (self.count == lane + 1),
                    i.error,
                ),
            )
            for lane in range(self.n)
        ]

    def empty(self, m):
        """Invariant at 32 bits: nothing stays inside."""
        m.d.comb += [Assert(self.queue.level == 0), Assert(self.queue.ends == 0)]
        m.d.comb += Assert(self.begins_out == self.begins)


class StripProof(_Vlan):
    def bytes_in(self, m):
        dut, i = self.dut, self.dut.i.payload
        self.counted(m)
        octets = [i.data[-32:].word_select(k, 8) for k in range(4)]
        tagged = self.here & ~i.last & (octets[0] == 0x81) & (octets[1] == 0)
        if dut.priority:
            tagged &= (octets[2][:4] == 0) & (octets[3] == 0)
        tag = Signal(17)
        with m.If(self.put & self.here & ~i.last):
            m.d.sync += tag.eq(Mux(tagged, Cat(octets[3], octets[2], 1), 0))
        m.d.comb += [Assert(dut.tag == tag), Cover(self.put & tagged & dut.tag[16])]
        return self.lanes(lambda lane: ~(tagged & (lane >= PLACE % self.n)))

    def invariants(self, m, leaving):
        dut = self.dut
        if self.n == 4:
            self.empty(m)
            return
        held, full, half, rest = dut.held, dut.full, dut.half, dut.rest
        upper = full & (half | rest)
        m.d.comb += [
            Assert(~(half & rest)),
            Assert(~(half | rest) | ~held.first),
            Assert(~half | (full & (self.seen == 2) & ~held.last)),
            Assert(~rest | ~full | (held.last & ~held.empty[2])),
            Assert(~full | half | (held.last == self.begins)),
            Assert(held.last | (held.empty == 0)),
            Assert(self.begins_out == Mux(full, held.first & ~upper, self.begins)),
            Assert(~full | upper | (self.seen != 0) | held.last),
        ]
        hold = Mux(full, Mux(upper, 4, 8) - held.empty, 0)
        data = Mux(upper, held.data[32:], held.data)
        last = full & ~half & held.last
        self.lies(m, leaving, hold, held.first & ~upper, last, held.error, data)
        m.d.comb += Cover(full & rest & (held.empty == 2))


class InsertProof(_Vlan):
    def bytes_in(self, m):
        dut, i = self.dut, self.dut.i.payload
        self.counted(m)
        free(m, dut.tag)
        past, waits = Signal(17), Signal()
        m.d.sync += [past.eq(dut.tag), waits.eq(dut.i.valid & ~dut.i.ready)]
        with m.If(waits & i.first):
            m.d.comb += Assume(dut.tag == past)
        # Frames of at least 17 bytes.
        with m.If(dut.i.valid & (self.seen * self.n < 16)):
            m.d.comb += Assume(~i.last)
        tag = Signal(17)
        with m.If(self.put & i.first):
            m.d.sync += tag.eq(dut.tag)
        m.d.comb += Assert(dut.kept == tag)
        self.now = now = self.here & tag[16]
        octets = (Const(0x81, 8), Const(0, 8), tag[8:16], tag[:8])
        if self.n == 4:  # the tag goes before the beat behind it comes in
            self.gone = gone = Signal()
            with m.If(dut.o.valid & dut.o.ready):
                m.d.sync += gone.eq(now & ~gone)
            m.d.comb += Assert(dut.gone == gone)
            own = now & ~gone
            tags = [Lane(own, k, entry(octet, 0, 0, 0)) for k, octet in enumerate(octets)]
            return tags + self.lanes(lambda lane: ~own)
        tags = [Lane(now, 4 + k, entry(octet, 0, 0, 0)) for k, octet in enumerate(octets)]
        return tags + self.lanes(lambda lane: 1, lambda lane: lane + Mux(now & (lane >= 4), 4, 0))

    def enters(self):
        return self.dut.o.valid & self.dut.o.ready if self.n == 4 else self.put

    def invariants(self, m, leaving):
        dut = self.dut
        m.d.comb += Cover(self.put & self.now & (dut.kept[:16] == 0xA005))
        if self.n == 4:
            self.empty(m)
            m.d.comb += Assert(~self.gone | self.now)
            return
        m.d.comb += [
            Assert(~dut.rest | self.begins),
            Assert(~(dut.rest & dut.shifted)),
            Assert(~dut.shifted | ((self.seen == 2) & dut.kept[16])),
            Assert((self.seen != 2) | (dut.shifted == dut.kept[16])),
            Assert(self.begins_out == (self.begins & ~dut.rest)),
        ]
        hold = Mux(dut.shifted, 4, Mux(dut.rest, 4 - dut.held.empty, 0))
        self.lies(m, leaving, hold, 0, dut.rest, dut.held.error, dut.upper)
        m.d.comb += Cover(dut.rest & (dut.held.empty == 1))


def _proof(name, kind, proof, says, assumes, width, *mutants):
    return Proof(
        name=f"{name}_{width}",
        core=f"cores.net.vlan.{kind}({width})",
        says=says,
        module="trebuchet.cores.net.vlan",
        build=lambda cores: proof(getattr(cores, kind)(width)),
        depth=2,
        cover_depth=16,
        mutants=mutants,
        assumes=assumes,
    )


_STRIP = (
    *("vlan_strip", "VlanStrip", StripProof),
    "frames leave byte for byte, in order, at once, but for their tags, which are told",
    "the stream rules on the input",
)
_INSERT = (
    *("vlan_insert", "VlanInsert", InsertProof),
    "frames leave byte for byte, in order, at once, each with its tag before byte 12",
    "the stream rules on the input; frames of 17 bytes or more; a tag stays with a first beat",
)
PROOFS = (
    _proof(
        *_STRIP,
        32,
        Mutant("cuts_short_frames", "(index == place) & ~beat.last", "(index == place)"),
        Mutant("tag_in_wire_order", "Cat(byteswap(found[16:]), 1)", "Cat(found[16:], 1)"),
    ),
    _proof(
        *_STRIP,
        64,
        Mutant("ends_late", "full.eq(~(half & ends))", "full.eq(1)"),
        Mutant("joins_the_next", "half & ~beat.last", "half"),
        Mutant("forgets_the_rest", "rest.eq(half & beat.last & ~ends)", "rest.eq(0)"),
    ),
    *(
        Proof(
            name=f"vlan_strip_priority_{width}",
            core=f"cores.net.vlan.VlanStrip({width}, priority)",
            says="the same if only tags of VLAN 0 come off",
            module="trebuchet.cores.net.vlan",
            build=lambda cores, width=width: StripProof(cores.VlanStrip(width, True)),
            depth=2,
            cover_depth=16,
            mutants=mutants,
            assumes="the stream rules on the input",
        )
        for width, mutants in (
            (
                32,
                (Mutant("half_a_number", "byteswap(found[16:])[:12]", "byteswap(found[16:])[:8]"),),
            ),
            (
                64,
                (Mutant("and_the_priority", "byteswap(found[16:])[:12]", "byteswap(found[16:])"),),
            ),
        )
    ),
    _proof(*_INSERT, 32, Mutant("twice", "gone.eq(now)", "gone.eq(0)", within="_words")),
    _proof(
        *_INSERT,
        64,
        Mutant(
            "forgets_damage",
            "out.error.eq(held.error)",
            "out.error.eq(0)",
            within="with m.If(rest):",
        ),
        Mutant(
            "takes_too_soon",
            "self.i.ready.eq(self.o.ready & ~rest)",
            "self.i.ready.eq(self.o.ready)",
            within="_halves",
        ),
        Mutant("shifts_the_next", "(here | shifted) & ~beat.last", "here | shifted"),
    ),
)
