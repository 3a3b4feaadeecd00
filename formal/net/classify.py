"""Proofs of the frame classifier in ``cores/net/classify.py``, its two halves apart.

*Match*, what the header says: a frame gets exactly one verdict, one cycle after the beat that
settles it; the verdict is that of a comparison of the whole header, written here from the
standards' fields: our address, from a source that is neither a group nor ourselves, Ethertype 0800,
version 4, protocol 6, no fragment (neither offset nor more to come), our IP address, from another
one, at least 34 bytes, and only while enabled.

*Dispatch*, what happens to frames and verdicts that wait: one verdict is used for each frame; the
stream rules hold at both outputs; every beat of a frame for the engine goes to ``toe`` unchanged
and in order; a frame for ``other`` goes there whole, unless ``other`` has not taken a beat for
``patience`` cycles: then its rest is dropped and closed by one last beat with ``error``, or all of
it is, until beats are taken again; it is counted; nothing waits for ``other`` longer than that.

*Queues*, between the halves: each beat that is taken goes into the delay line, as it came, and each
is looked at; there is a place for the verdict of every frame that the delay line can hold, and for
all beats of a header while its verdict travels, so the halves never wait for each other.

Not proved: the Amaranth FIFOs between the halves, which *queues* replaces; addresses that change
while a frame comes in; behaviour under a reset while running; other sizes than those named.
"""

from types import SimpleNamespace

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Cover, Elaboratable, Module, Mux, Signal, Value

from ...cores.stream import PacketSignature, beat_layout
from ..kit.proof import Mutant, Proof
from ..kit.standins import elaborated, only_part, stand_in
from ..stream import Queue, free, new_harness, stream_rules, within

__all__ = ["PROOFS"]

HEADER = 34


class MatchProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut, n = self.dut, self.dut.width // 8
        beats = -(-HEADER // n)
        match = only_part(dut)
        m.submodules.dut = dut
        rx, take = dut.rx, Signal()
        verdicts = SimpleNamespace(w_en=Signal(name="v_en"), w_data=Signal(name="v_data"))
        dut._match(match, take, dut.rx.payload, beats, verdicts)
        free(m, rx.valid, rx.payload, rx.ready, dut.enable)
        stream_rules(m, rx, Assume, "rx")
        m.d.comb += [
            take.eq(rx.valid & rx.ready),
            dut.mac.eq(AnyConst(48)),
            dut.ip.eq(AnyConst(32)),
        ]
        beat = rx.payload

        have, header, whole = (
            Signal(range(beats + 1)),
            Signal(beats * dut.width),
            Signal(beats * dut.width),
        )
        m.d.comb += whole.eq(header)
        m.d.comb += whole.word_select(have, dut.width).eq(beat.data)
        byte = [whole.word_select(k, 8) for k in range(HEADER)]
        fragment = Cat(byte[21], byte[20][:6])
        ours = (
            (whole[:48] == dut.mac)
            & (Cat(byte[13], byte[12]) == 0x0800)
            & (byte[14] >> 4 == 4)
            & (fragment == 0)
            & (byte[23] == 6)
            & ~byte[6][0]
            & (whole[48:96] != dut.mac)
            & (Cat(byte[29], byte[28], byte[27], byte[26]) != dut.ip)
            & (Cat(byte[33], byte[32], byte[31], byte[30]) == dut.ip)
        )
        size = Signal(range((beats + 1) * n + 1))
        settled, verdict = Signal(), Signal()
        m.d.comb += size.eq(have * n + n - beat.empty)
        m.d.sync += settled.eq(0)
        with m.If(take):
            m.d.sync += have.eq(Mux(beat.last, 0, Mux(have == beats, beats, have + 1)))
            with m.If(have != beats):
                m.d.sync += header.eq(whole)
                m.d.sync += settled.eq(beat.last | (have == beats - 1))
                m.d.sync += verdict.eq(ours & (size >= HEADER) & dut.enable)
        m.d.comb += Assert(verdicts.w_en == settled)
        with m.If(settled):
            m.d.comb += Assert(verdicts.w_data == verdict)
        yes = Signal()
        with m.If(settled & verdict):
            m.d.sync += yes.eq(1)
        m.d.comb += Cover(yes & settled & ~verdict & (have == 0))
        self._invariants(m, have, header, n)
        return m

    def _invariants(self, m, have, header, n):
        """A miss is remembered if and only if a byte so far is none of a frame of ours."""
        dut = self.dut
        wanted = {k: dut.mac.word_select(k, 8) for k in range(6)}
        wanted |= {12: 0x08, 13: 0x00, 23: 6}
        wanted |= {30 + k: dut.ip.word_select(3 - k, 8) for k in range(4)}
        wrong = {k: header.word_select(k, 8) != want for k, want in wanted.items()}
        wrong[14] = header.word_select(14, 8)[4:] != 4
        wrong[20] = header.word_select(20, 8)[:6] != 0
        wrong[21] = header.word_select(21, 8) != 0
        so_far = Cat((have > k // n) & miss for k, miss in wrong.items()).any()
        so_far |= (have > 6 // n) & header[48]
        own = {6 + k: dut.mac.word_select(k, 8) for k in range(6)}
        own |= {26 + k: dut.ip.word_select(3 - k, 8) for k in range(4)}
        for first, last in ((6, 11), (26, 29)):
            same = {k: header.word_select(k, 8) == own[k] for k in range(first, last + 1)}
            so_far |= (have > last // n) & Cat(*same.values()).all()
            for beat in range(first // n + 1, last // n + 1):
                begun = Cat(same[k] for k in range(first, beat * n)).all()
                m.d.comb += Assert((have != beat) | (dut.differs == ~begun))
        m.d.comb += [Assert(dut.index == have), Assert(have <= -(-HEADER // n))]
        with m.If(have != -(-HEADER // n)):
            m.d.comb += Assert(dut.miss == so_far)


class DispatchProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut, layout = self.dut, beat_layout(self.dut.width)
        dispatch = only_part(dut)
        m.submodules.dut = dut
        frames = PacketSignature(dut.width).create(path=("frames",))
        delay = SimpleNamespace(
            r_rdy=frames.valid, r_data=Signal(layout.size), r_en=Signal(name="delay_en")
        )
        verdicts = SimpleNamespace(
            r_rdy=Signal(name="v_rdy"), r_data=Signal(name="v_data"), r_en=Signal(name="v_en")
        )
        dut._dispatch(dispatch, layout, delay, verdicts)
        free(m, frames.valid, frames.payload, verdicts.r_rdy, verdicts.r_data)
        free(m, dut.toe.ready, dut.other.ready)
        m.d.comb += [
            delay.r_data.eq(Value.cast(frames.payload)),
            frames.ready.eq(delay.r_en),
            Assert(~delay.r_en | frames.valid),
        ]
        begins = stream_rules(m, frames, Assume, "frames")
        waiting, waiting_for = Signal(), Signal()  # a verdict stays until it is used
        m.d.sync += [waiting.eq(verdicts.r_rdy & ~verdicts.r_en), waiting_for.eq(verdicts.r_data)]
        m.d.comb += Assume(~waiting | (verdicts.r_rdy & (verdicts.r_data == waiting_for)))
        self._spec(m, frames, verdicts, begins)
        return m

    def _spec(self, m, frames, verdicts, begins):
        dut, beat = self.dut, frames.payload
        toe, other = dut.toe, dut.other
        move = frames.valid & frames.ready
        held, to_toe = Signal(), Signal()
        m.d.comb += to_toe.eq(Mux(begins, verdicts.r_data, held))
        with m.If(move):
            m.d.sync += held.eq(to_toe)
        m.d.comb += Assert(verdicts.r_en == (move & begins))
        m.d.comb += Assert(~verdicts.r_en | verdicts.r_rdy)

        blocked = Signal(range(dut.patience + 1))  # cycles for which `other` has taken nothing
        stuck = blocked == dut.patience
        with m.If(other.valid & ~other.ready):
            m.d.sync += blocked.eq(Mux(stuck, blocked, blocked + 1))
        with m.Else():
            m.d.sync += blocked.eq(0)
        cut, closing = Signal(), Signal()  # the frame is being dropped; its end is owed to `other`
        refused = stuck | cut | closing
        passes = move & ~to_toe & ~refused
        closes = closing & (~other.valid | other.ready)
        with m.If(move & ~to_toe):
            m.d.sync += cut.eq(refused & ~beat.last)
        with m.If(move & ~to_toe & refused & ~cut & ~begins):
            m.d.sync += closing.eq(1)
        with m.If(closes):
            m.d.sync += closing.eq(0)
        end = Signal(beat.shape())
        m.d.comb += [end.last.eq(1), end.error.eq(1)]
        begins_toe = stream_rules(m, toe, Assert, "toe")
        begins_other = stream_rules(m, other, Assert, "other")
        word = Mux(closes, Value.cast(end), Value.cast(beat))
        for out, puts, put_word in ((toe, move & to_toe, beat), (other, passes | closes, word)):
            scope = Module()
            queue = Queue(
                scope,
                puts=puts,
                put_word=put_word,
                gets=out.valid & out.ready,
                get_valid=out.valid,
                get_word=out.payload,
                capacity=1,
            )
            scope.d.comb += Assert(out.valid == (queue.level != 0))
            m.submodules += scope

        # Nothing waits without a reason, and for `other` not for long.
        known = frames.valid & (verdicts.r_rdy | ~begins)
        m.d.comb += Assert(~(known & to_toe & (~toe.valid | toe.ready)) | move)
        waited = within(m, ~(known & ~to_toe) | move, dut.patience + 1, "other_blocks")
        self._counters(m, move, begins, to_toe, passes, refused & ~cut, beat)
        self._covers(m, closes, to_toe, move, begins)

        # Invariants.
        m.d.comb += [
            Assert(dut.inside == ~begins),
            Assert(dut.cutting == cut),
            Assert(dut.owed == closing),
            Assert(dut.stall == blocked),
            Assert(~cut | ~begins),
            Assert(~cut | ~held),
            Assert(waited <= blocked),
        ]
        with m.If(~begins):
            m.d.comb += Assert(dut.to_toe == held)
        open_toe, open_other = ~begins & held, ~begins & ~held & ~cut | closing
        m.d.comb += [
            Assert(Mux(toe.valid, toe.payload.last, begins_toe) == ~open_toe),
            Assert(Mux(other.valid, other.payload.last, begins_other) == ~open_other),
            Assert(~closing | begins | held | cut),
        ]

    def _counters(self, m, move, begins, to_toe, passes, refuses, beat):
        csr = self.dut.csr
        for name, event in {
            "toe_frames": move & begins & to_toe,
            "other_frames": passes & begins,
            "errors": move & beat.last & beat.error,
            "drops": move & ~to_toe & refuses,
        }.items():
            count = Signal(32, name=f"{name}_count")
            m.d.sync += count.eq(count + event)
            m.d.comb += Assert(getattr(csr, name) == count)

    def _covers(self, m, closes, to_toe, move, begins):
        cut, late = Signal(), Signal()
        with m.If(closes):
            m.d.sync += cut.eq(1)
        with m.If(cut & move & begins & ~to_toe & self.dut.toe.valid):
            m.d.sync += late.eq(1)
        other = self.dut.other
        m.d.comb += Cover(late & other.valid & other.ready & other.payload.last)


class QueuesProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        parts = elaborated(dut).submodules
        delay, verdicts = parts.delay, parts.verdicts
        stand_in(m, delay)
        stand_in(m, verdicts)
        free(m, dut.rx.valid, dut.rx.payload, dut.toe.ready, dut.other.ready)
        free(m, dut.mac, dut.ip, dut.enable)
        stream_rules(m, dut.rx, Assume, "rx")
        took, settled = dut.rx.valid & dut.rx.ready, Signal()
        beats = -(-HEADER * 8 // dut.width)
        count, frames = Signal(range(beats + 1)), Signal(2)
        with m.If(took):
            m.d.sync += count.eq(Mux(dut.rx.payload.last, 0, Mux(count == beats, beats, count + 1)))
        ends = dut.rx.payload.last | (count == beats - 1)
        m.d.sync += settled.eq(took & (count != beats) & ends)
        with m.If(settled & (frames != 3)):
            m.d.sync += frames.eq(frames + 1)
        m.d.comb += [
            Assert(dut.rx.ready == delay.w_rdy),
            Assert((delay.w_en & delay.w_rdy) == took),
            Assert(~delay.w_en | (delay.w_data == Value.cast(dut.rx.payload))),
            Assert(verdicts.w_en == settled),
            Assert(~delay.r_en | delay.r_rdy),
            Assert(~verdicts.r_en | (verdicts.r_rdy & delay.r_en)),
            Assert(Const(delay.depth >= beats + 2)),
            Assert(Const(verdicts.depth >= delay.depth)),
            Cover((frames == 3) & verdicts.r_en),
            Assert((dut.index == count) & (count <= beats)),  # invariant
        ]
        return m


PROOFS = (
    *(
        Proof(
            name=f"classify_match_{width}",
            core=f"cores.net.classify.Classifier({width}), the matcher",
            says="each frame gets one verdict: whether it is IPv4/TCP for us and no fragment",
            module="trebuchet.cores.net.classify",
            build=lambda cores, w=width: MatchProof(cores.Classifier(w)),
            depth=2,
            cover_depth=14,
            mutants=(
                Mutant(
                    "takes_fragments", "Cat(byte[20][:6], byte[21])", "Cat(byte[20][:5], byte[21])"
                ),
                Mutant("takes_udp", "{12: 0x08, 13: 0x00, 23: 6}", "{12: 0x08, 13: 0x00, 23: 17}"),
                Mutant("ip_reversed", "self.ip.word_select(3 - i, 8)", "self.ip.word_select(i, 8)"),
                Mutant("takes_groups", "terms.append(byte[6][0])", "pass"),
                Mutant("takes_itself", "terms.append(~other)", "pass"),
                Mutant("takes_runts", "~wrong & ~(last & short)", "~wrong"),
                Mutant("keeps_miss", "[index.eq(0), miss.eq(0)]", "[index.eq(0)]", 16),
            ),
            assumes="the stream rules on the input; addresses that do not change",
            not_proved="addresses that change meanwhile",
        )
        for width in (32, 128)
    ),
    Proof(
        name="classify_queues",
        core="cores.net.classify.Classifier(128)",
        says="each beat goes into the delay line once; each frame has a place for its verdict",
        module="trebuchet.cores.net.classify",
        build=lambda cores: QueuesProof(cores.Classifier(128)),
        depth=2,
        cover_depth=12,
        mutants=(
            Mutant("looks_twice", "take.eq(self.rx.valid & delay.w_rdy)", "take.eq(self.rx.valid)"),
            Mutant(
                "too_few_verdicts", "width=1, depth=delay.depth", "width=1, depth=delay.depth // 2"
            ),
            Mutant("too_short", "max(8, beats + 7 + 2 * self.vlan)", "beats"),
        ),
        assumes="the stream rules on the input; handshakes of the FIFOs",
        not_proved="the FIFOs",
    ),
    Proof(
        name="classify_dispatch",
        core="cores.net.classify.Classifier(32, patience=4), behind the matcher",
        says="frames go whole to the output of their verdict; a blocked `other` stops nothing",
        module="trebuchet.cores.net.classify",
        build=lambda cores: DispatchProof(cores.Classifier(32, 4)),
        depth=2,
        cover_depth=20,
        mutants=(
            Mutant(
                "verdict_each_beat", "verdicts.r_en.eq(move & ~inside)", "verdicts.r_en.eq(move)"
            ),
            Mutant("forgets_the_end", "owed.eq(1)", "owed.eq(0)", within="_dispatch"),
            Mutant(
                "no_error_at_the_cut",
                "self.other.payload.error.eq(1)",
                "self.other.payload.error.eq(0)",
            ),
            Mutant(
                "blocks_toe",
                'available & Mux(to_toe, room["toe"], refuse | room["other"])',
                'available & room["toe"] & Mux(to_toe, 1, refuse | room["other"])',
            ),
            Mutant("overwrites", "room[name].eq(~out.valid | out.ready)", "room[name].eq(1)"),
            Mutant(
                "cuts_for_ever",
                "cutting.eq(~beat.last)",
                "cutting.eq(1)",
                within="with m.Elif(refuse):",
            ),
        ),
        not_proved="the FIFOs in front of it",
    ),
)
