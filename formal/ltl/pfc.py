"""Proofs of both halves of ``cores/ltl/pfc.py``, against IEEE 802.1Qbb's frame.

``PfcReceiver``: the beats of each frame are kept; at its end the frame is PFC if its address, type
and opcode are right, it is long enough and undamaged. Then ``received`` tells of it, and if it
names our class, ``paused`` holds for exactly as many quanta as it says. Nothing else touches it.

``PfcSender``: every beat of a frame is what the standard says; a frame goes out when ``xoff`` is
not what the other end was told, and again after 16,384 quanta of a pause.

Not proved: a reset while running; a class or a quantum that change while running.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Cat, Cover, Elaboratable, Mux, Signal

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .parts import opened

__all__ = ["PROOFS"]

ADDRESS = bytes.fromhex("0180c2000001")
CONTROL = bytes.fromhex("88080101")
REFRESH = 16384


def _constant(m, *signals):
    for signal in signals:
        m.d.comb += signal.eq(AnyConst(len(signal)))


class ReceiverProof(Elaboratable):
    def __init__(self, cores, width):
        self.cores, self.dut, self.n = cores, cores.PfcReceiver(width), width // 8

    def elaborate(self, platform):
        m = new_harness()
        dut, n = self.dut, self.n
        m.submodules.dut = opened(dut, platform, self.cores)
        free(m, dut.valid, dut.beat)
        _constant(m, dut.priority, dut.quantum)
        count, tick = Signal(8, name="quantum_count"), Signal(name="quantum_ends")
        m.d.comb += [
            tick.eq((dut.quantum == 0) | (count >= dut.quantum - 1)),
            Assert(dut.quanta.count == count),
        ]
        m.d.sync += count.eq(Mux(tick, 0, count + 1))
        # Beats of a frame that hold what counts: the first 34 bytes.
        beats = -(-34 // n)
        kept = [Signal(8 * n, name=f"kept{k}") for k in range(beats)]
        place, whole = Signal(range(beats + 1), name="place"), Signal(8 * n * beats)
        with m.If(dut.valid):
            m.d.sync += place.eq(Mux(dut.beat.last, 0, place + (place != beats)))
            for k in range(beats):
                with m.If(place == k):
                    m.d.sync += kept[k].eq(dut.beat.data)
        for k in range(beats):
            now = Mux(place == k, dut.beat.data, kept[k])
            m.d.comb += whole.word_select(k, 8 * n).eq(now)
        octets = [whole.word_select(i, 8) for i in range(34)]
        heads = [octets[i] == b for i, b in enumerate(ADDRESS)]
        heads += [octets[12 + i] == b for i, b in enumerate(CONTROL)]
        long, good, names = Signal(), Signal(), Signal()
        times = Array(Cat(octets[19 + 2 * p], octets[18 + 2 * p]) for p in range(8))
        time, left, ends = Signal(16), Signal(16, name="quanta_left"), Signal()
        m.d.comb += [long.eq(place >= beats - 1), ends.eq(dut.valid & dut.beat.last)]
        m.d.sync += [
            good.eq(ends & long & ~dut.beat.error & Cat(heads).all()),
            names.eq(octets[17].bit_select(dut.priority, 1)),
            time.eq(times[dut.priority]),
        ]
        with m.If(good & names):
            m.d.sync += left.eq(time)
        with m.Elif(tick & (left != 0)):
            m.d.sync += left.eq(left - 1)
        m.d.comb += [Assert(dut.received == good), Assert(dut.paused == (left != 0))]
        # Invariants.
        wrong = [
            (place > (i // n)) & (kept[i // n].word_select(i % n, 8) != b)
            for i, b in [*enumerate(ADDRESS), *((12 + i, b) for i, b in enumerate(CONTROL))]
        ]
        m.d.comb += [
            Assert(dut.left == left),
            Assert(dut.at == place),
            Assert(place <= beats),
            Assert(dut.miss == Cat(wrong).any()),
            Assert(~good | ((dut.enabled == names) & (dut.time == time))),
        ]
        place_of_time = (18 + 2 * dut.priority) // n
        times_kept = Array(
            Cat(
                kept[(19 + 2 * p) // n].word_select((19 + 2 * p) % n, 8),
                kept[(18 + 2 * p) // n].word_select((18 + 2 * p) % n, 8),
            )
            for p in range(8)
        )
        with m.If(place > place_of_time):
            m.d.comb += Assert(dut.time == times_kept[dut.priority])
        with m.If(place > 17 // n):
            vector = kept[17 // n].word_select(17 % n, 8)
            m.d.comb += Assert(dut.enabled == vector.bit_select(dut.priority, 1))
        was = Signal()
        with m.If(good & names & (time == 2)):
            m.d.sync += was.eq(1)
        m.d.comb += [Cover(was & ~dut.paused & (dut.quantum == 2)), Cover(good & ~names)]
        return m


class PfcSenderProof(Elaboratable):
    def __init__(self, cores, width):
        self.cores, self.dut, self.n = cores, cores.PfcSender(width), width // 8

    def elaborate(self, platform):
        m = new_harness()
        dut, n = self.dut, self.n
        m.submodules.dut = opened(dut, platform, self.cores)
        free(m, dut.xoff, dut.o.ready)
        _constant(m, dut.priority, dut.quantum, dut.mac)
        first = stream_rules(m, dut.o, Assert, "o")
        count, tick = Signal(8, name="quantum_count"), Signal(name="quantum_ends")
        told, age, place = Signal(), Signal(range(REFRESH + 1), name="age_"), Signal(4)
        beats = -(-60 // n)
        m.d.comb += tick.eq((dut.quantum == 0) | (count >= dut.quantum - 1))
        m.d.sync += count.eq(Mux(tick, 0, count + 1))
        due = (dut.xoff != told) | (told & (age == REFRESH))
        begins, sends = ~dut.o.valid & due, Signal(name="sends")
        with m.If(tick & (age != REFRESH)):
            m.d.sync += age.eq(age + 1)
        with m.If(begins):
            m.d.sync += [told.eq(dut.xoff), age.eq(0), sends.eq(1), place.eq(0)]
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += [place.eq(place + 1), sends.eq(place != beats - 1)]
        m.d.comb += [Assert(dut.sent == begins), Assert(dut.o.valid == sends)]
        frame = Signal(8 * n * beats)
        octets = [frame.word_select(i, 8) for i in range(60)]
        m.d.comb += [octets[i].eq(b) for i, b in enumerate(ADDRESS)]
        m.d.comb += [octets[6 + i].eq(dut.mac.word_select(i, 8)) for i in range(6)]
        m.d.comb += [octets[12 + i].eq(b) for i, b in enumerate(CONTROL)]
        m.d.comb += octets[17].eq(1 << dut.priority)
        for p in range(8):
            with m.If(told & (dut.priority == p)):
                m.d.comb += [octets[18 + 2 * p].eq(0xFF), octets[19 + 2 * p].eq(0xFF)]
        with m.If(dut.o.valid):
            beat = dut.o.payload
            m.d.comb += [
                Assert(beat.data == frame.word_select(place, 8 * n)),
                Assert(beat.first == (place == 0)),
                Assert(beat.last == (place == beats - 1)),
                Assert(beat.empty == Mux(beat.last, n * beats - 60, 0)),
                Assert(~beat.error),
            ]
        m.d.comb += [
            Assert(first == (~sends | (place == 0))),
            Assert(age <= REFRESH),
            Assert(dut.told == told),
            Assert(dut.age == age),
            Assert(dut.quanta.count == count),
            Assert(~sends | ((dut.at == place) & (place < beats))),
        ]
        seen = Signal()
        with m.If(begins & ~dut.xoff):
            m.d.sync += seen.eq(1)
        m.d.comb += [Cover(seen & dut.o.valid & dut.o.payload.last), Cover(begins & dut.xoff)]
        return m


RECEIVER_MUTANTS = (
    Mutant("any_class", "octets[17].bit_select(self.priority, 1)", "octets[17].any()", 16),
    Mutant("heeds_damaged", "self.beat.last & ~self.beat.error", "self.beat.last", 16),
    Mutant("never_ends", "m.d.sync += left.eq(left - 1)", "m.d.sync += left.eq(left)", 16),
    Mutant("other_opcode", "14: 0x01, 15: 0x01", "14: 0x01, 15: 0x00", 16),
    Mutant("takes_short", "at >= beats - 1", "at >= beats - 2", 16),
)
SENDER_MUTANTS = (
    Mutant("names_all", "octets[17].eq(1 << self.priority)", "octets[17].eq(255)", 8),
    Mutant("never_ends", "(self.xoff != told)", "(self.xoff & ~told)", 26),
    Mutant(
        "one_beat_more",
        "            with m.If(at == beats - 1):\n",
        "            with m.If(at == beats):\n",
        24,
    ),
)
STILL = "class and quantum constant"

PROOFS = tuple(
    proof
    for width in (32, 64)
    for proof in (
        Proof(
            name=f"ltl_pfc_receive_{width}",
            core=f"cores.ltl.pfc.PfcReceiver({width})",
            says="paused for as many quanta as a good PFC frame says of our class, else never",
            module="trebuchet.cores.ltl.pfc",
            build=lambda cores, w=width: ReceiverProof(cores, w),
            depth=3,
            cover_depth=18,
            mutants=RECEIVER_MUTANTS,
            assumes=STILL,
        ),
        Proof(
            name=f"ltl_pfc_send_{width}",
            core=f"cores.ltl.pfc.PfcSender({width})",
            says="frames as the standard has them, when the state changes and every 16,384 quanta",
            module="trebuchet.cores.ltl.pfc",
            build=lambda cores, w=width: PfcSenderProof(cores, w),
            depth=3,
            cover_depth=36 if width == 32 else 22,
            mutants=SENDER_MUTANTS,
            assumes=STILL,
        ),
    )
)
