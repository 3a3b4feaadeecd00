"""Proof of ``Parser`` in ``cores/ltl/parser.py``, against the frame of docs/network.md.

Any beats may come, without a gap or with, in frames of any length. The beats of a header are kept;
with a frame's last beat its verdict follows from them: foreign, corrupt, malformed or good, told
three cycles later. A good frame's header and the beats of its message come out as they came in, as
many as it says, and the rules of :func:`~trebuchet.formal.ltl.receive.parser_rules`, which the
receiver's proof assumes, hold. So nothing that does not match gets through, and nothing runs over.

The CRC step is a simpler function here, in the core and in the specification alike (``crc32_*``
prove the real one); the IPv4 checksum's sum is the solver's choice, and must have been given the
IPv4 header and nothing else (``net`` has its proof). The frame's fields are for any address.

Not proved: a reset while running; addresses that change while a frame comes in.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Cat, Cover, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from trebuchet.cores.ltl.config import LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .parts import opened
from .receive import parser_rules

__all__ = ["PROOFS", "simple_step"]

#: Beats of a frame that are counted; a good one has fewer.
MANY = 24


def simple_step(m, register, beat, name):
    """Takes the place of ``crc_step``: depends on every bit and on the order."""
    after = Signal(32, name=f"{name}_after")
    parts = [beat[k : k + 32] for k in range(0, len(beat), 32)]
    value = register.rotate_left(1)
    for part in parts:
        value = (value ^ part).rotate_left(1)
    m.d.comb += after.eq(value)
    return after


class AnySum(wiring.Component):
    """Takes the place of ``Checksum``; its sum is anything."""

    def __init__(self, width):
        members = {"start": In(1), "en": In(1), "keep": In(width // 16), "data": In(width)}
        super().__init__({**members, "total": Out(17)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.total.eq(AnySeq(17))
        return m


def number(octets):
    """A field in network order."""
    return Cat(*reversed(octets))


class ParserProof(Elaboratable):
    def __init__(self, cores, config):
        self.cores, self.config, self.dut = cores, config, cores.Parser(config)

    def elaborate(self, platform):
        self.m = m = new_harness()
        dut, self.n = self.dut, self.config.bytes
        m.submodules.dut = inside = opened(
            dut, platform, self.cores, crc_step=simple_step, Checksum=AnySum
        )
        free(m, dut.rx.valid, dut.rx.payload)
        for port in (dut.mac, dut.ip, dut.port):
            m.d.comb += port.eq(AnyConst(len(port)))
        m.d.comb += dut.max_length.eq(self.config.max_message)
        # All else is told from the beat, a cycle later.
        past, was = Signal.like(Value.cast(dut.rx.payload)), Signal()
        m.d.sync += [was.eq(dut.rx.valid), past.eq(dut.rx.payload)]
        m.d.comb += [Assert(dut.rx.ready), Assert(dut.valid == was)]
        m.d.comb += Assert(Value.cast(dut.beat) == past)
        self._keep()
        self._sums(inside.submodules.sum)
        self._verdict()
        self._message()
        self._covers()
        return m

    def _keep(self):
        m, dut, n = self.m, self.dut, self.n
        beats = 56 // n
        self.place = place = Signal(range(MANY + 1), name="place")
        kept = [Signal(8 * n, name=f"kept{k}") for k in range(beats)]
        with m.If(dut.valid):
            m.d.sync += place.eq(Mux(dut.beat.last, 0, place + (place != MANY)))
            for k in range(beats):
                with m.If(place == k):
                    m.d.sync += kept[k].eq(dut.beat.data)
        # With the beat that is there.
        whole = Signal(8 * n * beats, name="whole")
        m.d.comb += whole.eq(Cat(Mux(place == k, dut.beat.data, kept[k]) for k in range(beats)))
        self.octets = [whole.word_select(i, 8) for i in range(56)]
        self.kept = [kept[i // n].word_select(i % n, 8) for i in range(56)]
        m.d.comb += Assert((place <= MANY) & (dut.at <= 1560 // n))
        m.d.comb += Assert(Mux(place == MANY, dut.at >= MANY, dut.at == place))
        # Invariants: what has been taken apart so far.
        spans = {"connection": (44, 2), "incarnation": (46, 2), "seq": (48, 4), "length": (52, 2)}
        spans |= {"credit": (54, 2), "ip_length": (16, 2), "udp_length": (38, 2)}
        spans |= {"first": (42, 1), "flags": (43, 1), "tos": (15, 1)}
        for name, (at, size) in spans.items():
            with m.If(place > (at + size - 1) // n):
                m.d.comb += Assert(dut.fields[name] == number(self.kept[at : at + size]))
        with m.If(place > 40 // n):
            m.d.comb += Assert(dut.checksum == Cat(self.kept[40:42]))
        about = 44 // n
        with m.If(place > about):
            m.d.comb += Assert(dut.header.marked == (self.kept[15][:2] == 3))
        m.d.comb += Assert(dut.lookup == (dut.valid & (place == about)))
        with m.If(dut.lookup):
            m.d.comb += Assert(dut.about == number(self.octets[44:46]))

    def _ours(self, octets, upto):
        """Whether a byte by which a frame is for us is wrong, of the first ``upto`` beats."""
        dut, n = self.dut, self.n
        want = {12: 8, 13: 0, 14: 0x45, 21: 0, 23: 17}
        want |= {36: dut.port[8:], 37: dut.port[:8]}
        want |= {i: dut.mac.word_select(i, 8) for i in range(6)}
        want |= {30 + i: dut.ip.word_select(3 - i, 8) for i in range(4)}
        wrong = [(octets[i] != w) & (i // n < upto) for i, w in want.items()]
        wrong.append((octets[20][:6] != 0) & (20 // n < upto))
        return Cat(wrong).any()

    def _sums(self, total):
        m, dut, n, place = self.m, self.dut, self.n, self.place
        octet = [place * n + 2 * i for i in range(n // 2)]
        counts = Cat((o >= 14) & (o < 34) for o in octet)
        with m.If(dut.valid):
            m.d.comb += Assert(total.keep == Mux(place == MANY, 0, counts))
        m.d.comb += [
            Assert(total.en == dut.valid),
            Assert(total.start == (dut.valid & (place == 0))),
            Assert(total.data == dut.beat.data),
        ]
        # CRC of all from byte 40 on; the trailer is what 8 bytes at the end must be.
        crc, matched = Signal(32, name="spec_crc"), Signal(name="spec_matched")
        after = simple_step(m, crc, dut.beat.data, "spec")
        match = dut.beat.data[:32] == ~crc
        with m.If(dut.valid):
            m.d.sync += [matched.eq(match), crc.eq(Mux(place >= 40 // n, after, 0xFFFFFFFF))]
        m.d.comb += [Assert((place == 0) | (dut.crc == crc)), Assert(dut.held == matched)]
        m.d.comb += Assert((place < 1) | (place > 40 // n) | (crc == 0xFFFFFFFF))
        m.d.comb += Assert(dut.crc == crc)
        if n == 8:
            self.right = match & (dut.beat.data[32:] == 0)
        else:
            self.right = matched & (dut.beat.data == 0)
        self.sum_right = total.total == 0xFFFF

    def _verdict(self):
        m, dut, n, place, o = self.m, self.dut, self.n, self.place, self.octets
        with m.If(place != 0):
            m.d.comb += Assert(dut.miss == self._ours(self.kept, place))
        with m.Else():
            m.d.comb += Assert(~dut.miss)
        kind, length = o[42][:4], number(o[52:54])
        padded = Signal(17)
        m.d.comb += padded.eq((length + 7) // 8 * 8)
        size = Signal(18)
        m.d.comb += size.eq((place + 1) * n - dut.beat.empty)
        is_data = kind == 1
        shape = Cat(
            (place != MANY) & (size == padded + 64),
            o[42][4:] == 1,
            is_data | (((kind == 2) | (kind == 3)) & (length == 0)),
            ~is_data | ((length >= 1) & (length <= dut.max_length)),
            number(o[16:18]) == padded + 50,
            number(o[38:40]) == padded + 30,
            Cat(o[40:42]) == 0,
        ).all()
        foreign = Signal(name="spec_foreign")
        m.d.comb += foreign.eq(self._ours(o, place + 1) | ((place + 1) * n <= 48))
        # The cycles from the last beat to the verdict.
        names = ("ended", "foreign", "corrupt", "wrong", "short")
        stages = [{name: Signal(name=f"{name}_{k}") for name in names} for k in range(3)]
        header = [Signal(len(Value.cast(dut.header)), name=f"header_{k}") for k in range(3)]
        parts = Cat(kind, o[43][:2], o[15][:2] == 3, number(o[44:46]), number(o[46:48]))
        parts = Cat(parts, number(o[48:52]), length, number(o[54:56]))
        m.d.sync += [
            stages[0]["ended"].eq(dut.valid & dut.beat.last),
            stages[0]["foreign"].eq(foreign),
            stages[0]["corrupt"].eq(dut.beat.error | ~self.right),
            stages[0]["wrong"].eq(~shape),
            stages[0]["short"].eq(place < 56 // n - 1),
            header[0].eq(parts),
        ]
        for a, b, h, g in zip(stages, stages[1:], header, header[1:], strict=False):
            m.d.sync += [b[name].eq(a[name]) for name in names]
            m.d.sync += g.eq(h)
        m.d.sync += stages[1]["corrupt"].eq(stages[0]["corrupt"] | ~self.sum_right)
        v, self.ends = stages[2], [stage["ended"] for stage in stages]
        m.d.comb += Assert(dut.end == v["ended"])
        known = v["ended"] & ~v["foreign"]
        m.d.comb += [
            Assert(dut.foreign == (v["ended"] & v["foreign"])),
            Assert(dut.corrupt == (known & v["corrupt"])),
            # Of a frame that is shorter than its header only that it is not good.
            Assert(v["short"] | (dut.malformed == (known & ~v["corrupt"] & v["wrong"]))),
            Assert(v["short"] | (dut.good == (known & ~v["corrupt"] & ~v["wrong"]))),
            Assert(~(v["short"] & dut.good)),
            Assert(dut.good + dut.foreign + dut.corrupt + dut.malformed == dut.end),
        ]
        with m.If(dut.good):
            m.d.comb += Assert(Value.cast(dut.header) == header[2])

    def _message(self):
        """The beats of the message, three cycles later; and what the receiver relies on."""
        m, dut, n, place, config = self.m, self.dut, self.n, self.place, self.config
        begin, about = 56 // n, 44 // n
        valid, data = dut.valid, dut.beat.data
        at = place
        for k in range(3):
            v, d, p = Signal(name=f"valid_{k}"), Signal.like(data), Signal.like(place)
            m.d.sync += [v.eq(valid), d.eq(data), p.eq(at)]
            valid, data, at = v, d, p
        words, header = Signal(17, name="words"), dut.header
        m.d.comb += words.eq((header.length + n - 1) // n)
        counted = (at >= begin) & (at < MANY)
        nth = Signal(6, name="nth")
        m.d.comb += nth.eq(Mux(at >= begin, at - begin, 0))
        body = valid & counted & (nth < words)
        with m.If(at < MANY):
            m.d.comb += Assert(dut.body == body)
            m.d.comb += Assert((at == 0) | (dut.index == nth))
        with m.If(dut.body & counted):
            m.d.comb += [Assert(dut.data == data), Assert(dut.last == (nth + 1 == words))]
        frame = parser_rules(m, dut, config, Assert)
        # Invariants.
        first, second, third = self.ends
        looked = place > about
        ended = [Signal(name=f"looked_{k}") for k in range(3)]
        m.d.sync += ended[0].eq(dut.valid & dut.beat.last & (place >= about))
        m.d.sync += [b.eq(a) for a, b in zip(ended, ended[1:], strict=False)]
        m.d.comb += [
            Assert(frame.inside == (looked | Cat(ended).any())),
            Assert(~ended[0] | (first & (place == 0))),
            Assert(~ended[1] | (second & (place <= 1))),
            Assert(~ended[2] | (third & (place <= 2))),
        ]
        for k in range(1, 7):
            m.d.comb += Assert(~frame.inside | (place != about + k) | (frame.age >= k))
        m.d.comb += Assert(~(frame.inside & (place > about + 6)) | (frame.age >= 7))
        for k in range(3):
            m.d.comb += Assert(~ended[k] | (frame.age > k))
        with m.If(looked):
            m.d.comb += Assert(frame.about == number(self.kept[44:46]))
        with m.If(Cat(ended).any()):
            m.d.comb += Assert(frame.about == header.connection)
        sure = Mux(nth < words, nth, words)
        with m.If(frame.inside & (at < MANY)):
            passed = Mux(at <= begin, 0, sure)
            m.d.comb += Assert(frame.bodies == Mux(passed > 7, 7, passed))

    def _covers(self):
        m, dut, n = self.m, self.dut, self.n
        m.d.comb += [
            Cover(dut.good & (dut.header.length == n + 1) & dut.header.marked),
            Cover(dut.corrupt),
            Cover(dut.malformed),
        ]


def _config(width):
    return LtlConfig(width=width, connections=2, slots=4, window=2, max_message=24, buffer_beats=8)


MUTANTS = (
    Mutant(
        "any_address",
        "{i: self.mac.word_select(i, 8) for i in range(6)}",
        "{i: self.mac.word_select(i, 8) for i in range(5)}",
        21,
    ),
    Mutant("takes_fragments", "octets[20][:6], octets[21]", "octets[21]", 21),
    Mutant("any_length", 'fields["ip_length"] != padded + 50', 'fields["ip_length"] < padded', 21),
    Mutant("runs_over", "index < words", "index <= words", 22),
    Mutant("crc_from_later", "self.at >= CRC_FROM // n", "self.at > CRC_FROM // n", 21),
)

PROOFS = tuple(
    Proof(
        name=f"ltl_parser_{width}",
        core=f"cores.ltl.parser.Parser({width} bits, messages of 24 bytes)",
        says="only whole, right frames for us are good; header and message come out as they are",
        module="trebuchet.cores.ltl.parser",
        build=lambda cores, w=width: ParserProof(cores, _config(w)),
        depth=5,
        cover_depth=24 if width == 32 else 16,
        mutants=MUTANTS[:3] + MUTANTS[4:] if width == 64 else MUTANTS[:1] + MUTANTS[3:5],
        assumes="addresses are constant",
        not_proved="a reset while running",
    )
    for width in (32, 64)
)
