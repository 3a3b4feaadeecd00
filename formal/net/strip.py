"""Proof of the Ethernet header stripper in ``cores/net/strip.py``.

The harness is a second description of it, from the frame's bytes: beat ``k`` of what follows the
header is made of the bytes from ``14 + k n`` on. Whatever comes, with gaps or without, the stripper
says the same one cycle after the input beat that completes an output beat, or two cycles after
the last one for what is left over; a frame too short for any beat gives a ``runt``; source address
and type are those of the bytes 6 to 11 and 12 to 13 of the frame that a beat belongs to, for as
long as the data sheet says.

Not proved: behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated
from ..stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

HEADER = 14


class StripProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        free(m, dut.i.valid, dut.i.payload)
        stream_rules(m, dut.i, Assume, "i")
        m.d.comb += Assert(dut.i.ready)
        n = dut.width // 8
        whole = -(-HEADER // n)  # beats that hold the header
        rest = whole * n - HEADER  # bytes of the last of them behind the header
        beat, valid = dut.i.payload, dut.i.valid

        # The beats of the header, the beat before this one, and how many came, at most `whole`.
        came = Signal(range(whole + 1))
        before, header = Signal(dut.width), Signal(whole * dut.width)
        size = Signal(range(n + 1))
        m.d.comb += size.eq(n - beat.empty)
        with m.If(valid):
            m.d.sync += before.eq(beat.data)
            with m.If(came != whole):
                m.d.sync += header.word_select(came, dut.width).eq(beat.data)
            m.d.sync += came.eq(Mux(beat.last, 0, Mux(came == whole, whole, came + 1)))

        # What must be there in the next cycle, and left over for the one after it.
        names = ("valid", "first", "last", "error", "runt")
        say = {name: Signal(name=f"say_{name}") for name in names}
        data, size_out = Signal(dut.width), Signal(range(n + 1))
        left, left_size, left_error = Signal(), Signal(range(n + 1)), Signal()
        mac, ethertype = Signal(48), Signal(16)
        begun, spilt = Signal(), Signal()  # the beat shown is what was left over
        for name in names:
            m.d.sync += say[name].eq(0)
        m.d.sync += [spilt.eq(left), left.eq(0), data.eq(before[8 * (n - rest) :])]
        with m.If(left):
            m.d.sync += [say["valid"].eq(1), say["last"].eq(1), say["error"].eq(left_error)]
            m.d.sync += size_out.eq(left_size)
        with m.If(valid & (came == whole)):
            ends = beat.last & (size <= n - rest)
            m.d.sync += [
                data.eq(Cat(before[8 * (n - rest) :], beat.data)),
                say["valid"].eq(1),
                say["first"].eq(~begun),
                say["last"].eq(ends),
                say["error"].eq(ends & beat.error),
                size_out.eq(rest + size),
                left.eq(beat.last & ~ends),
                left_size.eq(size - (n - rest)),
                left_error.eq(beat.error),
                begun.eq(~beat.last),
                mac.eq(header[48:96]),
                ethertype.eq(Cat(header[104:112], header[96:104])),
            ]
        with m.Elif(valid & beat.last):
            m.d.sync += say["runt"].eq(1)

        m.d.comb += [Assert(dut.valid == say["valid"]), Assert(dut.runt == say["runt"])]
        with m.If(say["valid"]):
            for name in ("first", "last"):
                m.d.comb += Assert(getattr(dut, name) == say[name])
            with m.If((n == 4) | ~spilt):
                m.d.comb += [Assert(dut.mac == mac), Assert(dut.type == ethertype)]
            for k in range(n):
                with m.If(~say["last"] | (k < size_out)):
                    m.d.comb += Assert(dut.data.word_select(k, 8) == data.word_select(k, 8))
        with m.If(say["valid"] & say["last"]):
            m.d.comb += [Assert(dut.bytes == size_out), Assert(dut.error == say["error"])]
        self._covers(m)

        # Invariants.
        flush, flush_bytes, flush_error = dut.flushing
        m.d.comb += [
            Assert(dut.index == came),
            Assert(came <= whole),
            Assert(dut.previous == before),
            Assert((came != whole) | (dut.started == ~begun)),
            Assert(flush == left),
            Assert((came == whole) | ~begun),
            Assert(~left | (came <= 1)),
        ]
        with m.If(left):
            m.d.comb += [Assert(flush_bytes == left_size), Assert(flush_error == left_error)]
        for k in range(48):
            with m.If(came > (48 + k) // dut.width):
                m.d.comb += Assert(dut.mac[k] == header[48 + k])
        for k in range(16):
            with m.If(came > (96 + k) // dut.width):
                m.d.comb += Assert(dut.type[k ^ 8] == header[96 + k])
        with m.If(left):
            m.d.comb += [Assert(dut.mac == mac), Assert(dut.type == ethertype)]
        return m

    def _covers(self, m):
        dut = self.dut
        ended = Signal()  # a frame's left-over bytes were shown in the last cycle
        m.d.sync += ended.eq(dut.valid & dut.last & dut.flushing[0])
        runts = Signal()
        with m.If(dut.runt):
            m.d.sync += runts.eq(1)
        m.d.comb += [
            Cover(runts & dut.valid & dut.last & ~dut.first & (dut.bytes == 3) & dut.error),
            Cover(dut.valid & dut.first & dut.last & (dut.mac != 0) & (dut.type == 0x0800)),
        ]


MUTANTS = (
    Mutant("spills_early", "count > shift", "count >= shift"),
    Mutant("counts_all", "flush_bytes.eq(count - shift)", "flush_bytes.eq(count)"),
    Mutant("forgets_damage", "self.error.eq(flush_error)", "self.error.eq(0)"),
    Mutant(
        "type_in_wire_order",
        "{12: self.type[8:], 13: self.type[:8]}",
        "{13: self.type[8:], 12: self.type[:8]}",
    ),
    Mutant("late_runt", "self.runt.eq(beat.last & ~past)", "self.runt.eq(beat.last & past)"),
)

PROOFS = tuple(
    Proof(
        name=f"strip_{width}",
        core=f"cores.net.strip.EthernetStrip({width})",
        says="what follows the header comes out byte for byte; address, type, length, ends right",
        module="trebuchet.cores.net.strip",
        build=lambda cores, w=width: StripProof(cores.EthernetStrip(w)),
        depth=3,
        cover_depth=16,
        mutants=MUTANTS,
    )
    for width in (32, 64)
)
