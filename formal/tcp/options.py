"""Proofs of the search for options in ``cores/tcp/options.py``.

The specification (RFC 9293, 3.1 and 3.2; RFC 7323, 2.2 and 2.3; RFC 2018, 2) walks the options
byte after byte. After each word the core is where the walk is: its MSS, its shift, and whether SACK
is permitted, are those found so far, and it has stopped, or stands as far before the next option;
so for any words, in any lanes, with any pauses, one header after another.

Not proved: options of more than ten words, which the header has no room for.
"""

from amaranth.hdl import Assert, Assume, C, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness

__all__ = ["PROOFS"]

WORDS = 10


class Walk:
    """A walk: ``rest`` bytes before the next option, or ``stopped``; what it has found so far.

    ``every``: not the MSS alone.
    """

    def __init__(self, name, every):
        self.every = every
        widths = (("rest", 8), ("stopped", 1), ("mss", 16))
        if every:
            widths += (("permits", 1), ("scaled", 1), ("scale", 4))
        self.fields = [Signal(width, name=f"{name}_{k}") for k, width in widths]
        self.rest, self.stopped, self.mss, *more = self.fields
        if every:
            self.permits, *self.shift = more

    def clear(self):
        return [field.eq(0) for field in self.fields]

    def copy(self, other):
        return [a.eq(b) for a, b in zip(self.fields, other.fields, strict=True)]

    def over(self, m, word, following, more, name):
        """The walk after the four bytes of ``word``; ``following`` counts if ``more``."""
        window, walk = Cat(word, following), self
        for i in range(4):
            kind, length, high, low = (window.word_select(i + k, 8) for k in range(4))
            after = Walk(f"{name}_{i}", self.every)
            m.d.comb += after.copy(walk)
            known = 1 if i < 3 else more  # its length lies within the options
            with m.If(walk.stopped):
                pass
            with m.Elif(walk.rest != 0):
                m.d.comb += after.rest.eq(walk.rest - 1)
            with m.Elif((kind == 0) | ((kind != 1) & ~(known & (length >= 2)))):
                m.d.comb += after.stopped.eq(1)
            with m.Elif(kind != 1):
                m.d.comb += after.rest.eq(length - 1)
                with m.If((kind == 2) & (length == 4) & (1 if i == 0 else more)):
                    m.d.comb += after.mss.eq((high << 8) | low)
                if self.every:
                    with m.If((kind == 4) & (length == 2)):
                        m.d.comb += after.permits.eq(1)
                    with m.If((kind == 3) & (length == 3) & (1 if i < 2 else more)):
                        m.d.comb += Cat(after.shift).eq(Cat(C(1, 1), Mux(high < 14, high, 14)))
            walk = after
        return walk


class OptionsProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.clear, dut.en, dut.more, dut.data, dut.next)
        # A cycle later the core walks.
        en, more, clear = Signal(dut.lanes), Signal(dut.lanes), Signal()
        words, fed, taken = Signal(32 * dut.lanes + 32), Signal(range(WORDS + 1)), Signal(8)
        m.d.sync += [en.eq(dut.en), more.eq(dut.more), clear.eq(dut.clear)]
        m.d.sync += words.eq(Cat(dut.data, dut.next))
        stands = Walk("stands", dut.scaling)
        walk = stands
        for lane in range(dut.lanes):
            word, following = (words.word_select(lane + k, 32) for k in range(2))
            passed, here = (
                walk.over(m, word, following, more[lane], f"w{lane}"),
                Walk(f"h{lane}", dut.scaling),
            )
            m.d.comb += here.copy(walk)
            with m.If(en[lane]):
                m.d.comb += here.copy(passed)
            walk = here
        m.d.sync += stands.copy(walk)
        m.d.comb += [taken.eq(fed + sum(en)), Assume(clear | (taken <= WORDS))]
        m.d.sync += fed.eq(taken)
        with m.If(clear):
            m.d.sync += [*stands.clear(), fed.eq(0)]

        left = Signal(8)  # bytes that the header has room for
        m.d.comb += left.eq((WORDS - fed) << 2)
        beyond = (stands.rest >= left) & (dut.position >= left)
        m.d.comb += [
            Assert(dut.mss == stands.mss),
            Assert(dut.stopped == stands.stopped),
            Assert(dut.stopped | (dut.position == stands.rest) | beyond),
            Assert(fed <= WORDS),
            Cover((fed == 3) & ~dut.stopped & (dut.mss == 0x1234) & (dut.position == 1)),
            Cover((fed > 2) & dut.stopped & (dut.mss != 0)),
            Cover((fed == 4) & (dut.position > 20) & (stands.rest > 99)),
        ]
        seen = Signal(16)
        with m.If(dut.mss != 0):
            m.d.sync += seen.eq(dut.mss)
        m.d.comb += Cover((seen != 0) & (dut.mss != 0) & (seen != dut.mss) & (fed > 2))
        if dut.scaling:
            m.d.comb += [
                Assert(Cat(dut.scaled, dut.scale) == Cat(stands.shift)),
                Assert(dut.permits == stands.permits),
                Cover(dut.permits & ~dut.scaled & (fed > 2)),
                Cover(dut.scaled & (dut.scale == 14) & (dut.mss != 0) & (fed > 2)),
            ]
        return m


MUTANTS = (
    Mutant("ends_too_late", "(length < 2) | outside", "(length < 1) | outside", 6),
    Mutant(
        "reads_beyond",
        "outside_value = ~self.more[lane] if a > 0 else 0",
        "outside_value = 0 & lane if a > 0 else 0",
        6,
    ),
    Mutant("not_far", "length[6:].any() | length[3:6].all()", "length[3:6].all()", 8),
    Mutant("mixes_bytes", "Cat(*byte[2:7])", "Cat(*byte[1:6])", 6),
    Mutant("nop_has_a_length", "Mux(kind == _NOP, a + 1, reach)", "reach", 6),
    Mutant("never_forgets", "m.d.sync += clear.eq(self.clear)", "m.d.sync += clear.eq(0)", 8),
)

PROOFS = tuple(
    Proof(
        name=f"tcp_options_{lanes}",
        core=f"cores.tcp.options.MssOption({lanes})",
        says="the MSS is that of a walk byte after byte, for any options with any pauses",
        module="trebuchet.cores.tcp.options",
        build=lambda cores, lanes=lanes: OptionsProof(cores.MssOption(lanes)),
        depth=2,
        cover_depth=8,
        mutants=MUTANTS if lanes == 1 else MUTANTS[:3],
        assumes="at most ten words of options a header",
    )
    for lanes in (1, 2)
) + (
    Proof(
        name="tcp_options_all",
        core="cores.tcp.options.MssOption(2, scaling=True, sack=True)",
        says="the same; and so are window scale, its shift, and SACK-permitted",
        module="trebuchet.cores.tcp.options",
        build=lambda cores: OptionsProof(cores.MssOption(2, scaling=True, sack=True)),
        depth=2,
        cover_depth=8,
        mutants=(
            Mutant("a_shift_of_15", "_MOST = 14", "_MOST = 15", 6),
            Mutant("a_long_option", "(length == 3) & ~outside_shift", "~outside_shift", 6),
            Mutant(
                "shifts_beyond",
                "~self.more[lane] if a > 1 else 0",
                "~self.more[lane] if a > 2 else 0",
                6,
            ),
            Mutant("any_length", "(kind == _PERMITTED) & (length == 2)", "kind == _PERMITTED", 6),
        ),
        assumes="at most ten words of options a header",
    ),
)
