"""Proofs of the search for the MSS option in ``cores/tcp/options.py``.

The solver picks one header: up to ten words of options, in any lane, with any pauses, among any
other headers. The specification (RFC 9293, 3.1 and 3.2) walks its bytes one after the other. After
each word the core is where the walk is: its MSS is the one found so far, and it has stopped, or
stands as far before the next option. What is not part of the options is arbitrary, and ignored.

Not proved: options of more than ten words, which the header has no room for.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Array, Assert, Assume, Cover, Elaboratable, Mux, Signal

from .proof import Mutant, Proof
from .stream import free, new_harness

__all__ = ["PROOFS"]

WORDS = 10


class Walk:
    """What a byte by byte walk has found after each word of ``raw``, of which ``words`` count."""

    def __init__(self, m, raw, words):
        limit = Signal(6, name="limit")
        m.d.comb += limit.eq(words << 2)
        byte = [raw.word_select(k, 8) for k in range(4 * WORDS)]
        rest, stopped, mss = [Signal(8)], [Signal()], [Signal(16)]
        self.crosses = []
        for i in range(4 * WORDS):
            after = (Signal(8, name=f"r{i}"), Signal(name=f"s{i}"), Signal(16, name=f"m{i}"))
            kind, length = byte[i], byte[i + 1] if i + 1 < len(byte) else 0
            stops = (kind == 0) | ((kind != 1) & ((length < 2) | (i + 1 >= limit)))
            m.d.comb += [after[0].eq(rest[-1]), after[1].eq(stopped[-1]), after[2].eq(mss[-1])]
            with m.If(~stopped[-1] & (rest[-1] != 0)):
                m.d.comb += after[0].eq(rest[-1] - 1)
            with m.Elif(~stopped[-1] & stops):
                m.d.comb += after[1].eq(1)
            with m.Elif(~stopped[-1] & (kind != 1)):
                m.d.comb += after[0].eq(length - 1)
                if i + 4 <= len(byte):
                    found = (kind == 2) & (length == 4) & (i + 4 <= limit)
                    value = (byte[i + 2] << 8) | byte[i + 3]
                    m.d.comb += after[2].eq(Mux(found, value, mss[-1]))
            for states, state in zip((rest, stopped, mss), after, strict=True):
                states.append(state)
        self.rest, self.stopped, self.mss = (Array(states[::4]) for states in (rest, stopped, mss))


class OptionsProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        lanes = dut.lanes
        raw, words, shift = Signal(32 * WORDS), Signal(range(WORDS + 1)), Signal()
        m.d.comb += [raw.eq(AnyConst(len(raw))), words.eq(AnyConst(len(words)))]
        m.d.comb += [Assume(words <= WORDS), shift.eq(AnyConst(1) if lanes > 1 else 0)]
        free(m, dut.clear, dut.en, dut.more, dut.data, dut.next)

        chosen, beat, fires = Signal(), Signal(range(WORDS + 2)), Signal()
        m.d.comb += fires.eq(AnySeq(1) & (beat <= WORDS))
        with m.If(dut.clear):
            m.d.sync += [chosen.eq(AnySeq(1)), beat.eq(0)]
        with m.Elif(fires):
            m.d.sync += beat.eq(beat + 1)
        with m.If(chosen & ~dut.clear):
            self._feed(m, fires, beat, raw, words, shift)

        # The walk of the core is a stage behind: of a beat of cycle k in cycle k + 2.
        cleared, begun = Signal(), Signal()
        fed = Signal(range(WORDS + 1))
        m.d.sync += [cleared.eq(dut.clear), begun.eq(chosen)]
        upto = Signal(8)
        m.d.comb += upto.eq(beat * lanes - shift)
        seen = Mux(beat == 0, 0, Mux(upto > words, words, upto))
        m.d.sync += fed.eq(Mux(cleared, 0, seen))
        walk = Walk(m, raw, words)
        with m.If(chosen & begun & ~cleared):
            self._check(m, walk, fed, words)
        m.d.comb += [Assert(beat <= WORDS + 1), Assert(~cleared | (beat == 0))]
        return m

    def _feed(self, m, fires, beat, raw, words, shift):
        dut = self.dut
        at = Array(raw.word_select(k, 32) for k in range(WORDS))
        for lane in range(dut.lanes + 1):
            index = Signal(8, name=f"index{lane}")
            m.d.comb += index.eq(beat * dut.lanes + lane - shift)
            inside = index < words  # before the first word it is 255
            word = dut.next if lane == dut.lanes else dut.data.word_select(lane, 32)
            with m.If(fires & inside):
                m.d.comb += Assume(word == at[index])
            if lane < dut.lanes:
                m.d.comb += Assume(dut.en[lane] == (fires & inside))
                with m.If(fires & inside):
                    m.d.comb += Assume(dut.more[lane] == (index + 1 < words))

    def _check(self, m, walk, fed, words):
        dut = self.dut
        left = Signal(8)
        m.d.comb += left.eq((words - fed) << 2)
        rest = walk.rest[fed]
        beyond = (rest >= left) & (dut.position >= left)
        m.d.comb += [
            Assert(dut.mss == walk.mss[fed]),
            Assert(dut.stopped == walk.stopped[fed]),
            Assert(dut.stopped | (dut.position == rest) | beyond),
            Cover((fed == WORDS) & ~dut.stopped & (dut.mss != 0) & (walk.mss[WORDS - 1] == 0)),
            Cover((words != 0) & (fed == words) & dut.stopped & (dut.mss == 0x1234)),
        ]


PROOFS = tuple(
    Proof(
        name=f"tcp_options_{lanes}",
        core=f"cores.tcp.options.MssOption({lanes})",
        says="the MSS is that of a byte by byte walk, for all options in any lane with any pauses",
        module="trebuchet.cores.tcp.options",
        build=lambda cores, lanes=lanes: OptionsProof(cores.MssOption(lanes)),
        depth=3,
        cover_depth=16 if lanes == 1 else 10,
        mutants=(
            Mutant("ends_too_late", "(length < 2) | outside", "(length < 1) | outside", 8),
            Mutant("reads_beyond", "outside_value = ~self.more[lane]", "outside_value = 0 & lane"),
            Mutant("not_far", "length[6:].any() | ", "", 8),
            Mutant("swapped", "Cat(*byte[2:7])", "Cat(*byte[1:6])", 8),
            Mutant("off_by_one", "Mux(kind == _NOP, a + 1, reach)", "reach", 8),
        ),
        assumes="en, more and next describe the options of a header, in order",
    )
    for lanes in (1, 2)
)
