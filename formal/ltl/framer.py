"""Proof of ``Framer`` in ``cores/ltl/framer.py``, against the frame of docs/network.md.

Every beat of ``tx`` is what the table of the frame's fields says of the frame that was taken, its
peer, our addresses and the store: header with its checksum, message, padding of zeros, CRC of all
from byte 40 on, and zeros, each frame whole, in the order in which they were taken. A DATA frame
whose slots were freed before all of it was read gets a wrong CRC; an ACK never. ACK frames go
first; while paused nothing else begins.

The CRC step is a simpler function here, in the core and in the specification alike (``crc32_*``
prove the real one).

Not proved: a reset while running; addresses that change while running; that ``tx`` is busy without
a gap.
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, Cat, Const, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.ltl.config import LtlConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .parser import simple_step
from .parts import AnyMemory, opened

__all__ = ["PROOFS"]

HEADER, PAYLOAD, CRC, ZERO = range(4)
READY, SENT = 6, 7


def small(width):
    return LtlConfig(
        width=width,
        connections=1,
        vcs=1,
        slots=2,
        reserve=1,
        window=2,
        max_message=2 * width // 8,
        buffer_beats=2,
        seq_bits=8,
    )


class FramerProof(Elaboratable):
    def __init__(self, cores, width):
        self.cores, self.config, self.n = cores, small(width), width // 8
        self.dut = cores.Framer(self.config)

    def elaborate(self, platform):
        self.m = m = new_harness()
        dut = self.dut
        m.submodules.dut = opened(dut, platform, self.cores, crc_step=simple_step, Memory=AnyMemory)
        free(m, dut.control.valid, dut.control.payload, dut.frames.valid, dut.frames.payload)
        free(m, dut.paused, dut.tx.ready, dut.peer_en, dut.peer_addr, dut.peer)
        free(m, dut.kill, dut.killed)
        for port in (dut.mac, dut.ip, dut.port, dut.dscp):
            m.d.comb += port.eq(AnyConst(len(port)))
        self.step = Signal(name="steps")
        m.d.comb += self.step.eq(~dut.tx.valid | dut.tx.ready)
        self._store()
        self._prepare()
        self._send()
        self._pipeline()
        m.d.comb += [
            Assert(dut.write.en == dut.peer_en),
            Assert(dut.write.addr == dut.peer_addr),
            Assert(Value.cast(dut.write.data) == Value.cast(dut.peer)),
        ]
        return m

    def _store(self):
        """A store of which the solver chose what it holds."""
        m, dut = self.m, self.dut
        words = len(dut.store_addr)
        self.words = Array(Signal(8 * self.n, name=f"stored{k}") for k in range(1 << words))
        m.d.comb += [word.eq(AnyConst(len(word))) for word in self.words]
        with m.If(dut.store_en):
            m.d.sync += dut.store_data.eq(self.words[dut.store_addr])

    def _hit(self, frame):
        return self.dut.kill & (frame.kind == 1) & (frame.connection == self.dut.killed)

    def _prepare(self):
        """One frame is made ready in 6 cycles while another is sent."""
        m, dut, on = self.m, self.dut, self.dut.fsm.ongoing
        self.count, self.bad_now = Signal(3, name="count"), Signal(name="bad_now")
        self.frame = Signal(dut.control.payload.shape(), name="taken")
        self.peer = Signal.like(dut.peer, name="peer_then")
        control, frames, frame = dut.control, dut.frames, self.frame
        idle = self.count == 0
        acks, others = idle & control.valid, idle & ~control.valid & frames.valid & ~dut.paused
        m.d.comb += [
            Assert(control.ready == idle),
            Assert(~(idle & frames.valid) | (frames.ready == (~control.valid & ~dut.paused))),
            Assert(idle | ~frames.ready),
        ]
        words, place = Array(Value.cast(w) for w in dut.peers.words), Signal(2)
        chosen = Signal.like(frame, name="offered")
        m.d.comb += [
            Value.cast(chosen).eq(Mux(control.valid, control.payload, frames.payload)),
            place.eq(Cat(chosen.connection, control.valid)),
        ]
        with m.If(acks | others):
            m.d.sync += [self.count.eq(1), Value.cast(frame).eq(chosen)]
            m.d.sync += Value.cast(self.peer).eq(words[place])
            m.d.sync += self.bad_now.eq(others & self._hit(chosen))
        with m.Elif((self.count != 0) & (self.count < READY)):
            m.d.sync += self.count.eq(self.count + 1)
        with m.If(~idle & self._hit(frame)):
            m.d.sync += self.bad_now.eq(1)
        padded = Signal(12, name="padded")
        m.d.comb += padded.eq((frame.length + 7) // 8 * 8)
        self.padded, self.tos = padded, Cat(Const(0, 1), frame.kind == 1, dut.dscp)
        # RFC 791: the complement of the one's complement sum of the other half words.
        peer, count = self.peer, self.count
        a, b, total, folded, check = (
            Signal(width, name=f"sum_{k}") for k, width in enumerate((18, 18, 20, 17, 16))
        )
        m.d.comb += [
            a.eq(peer.ip[:16] + peer.ip[16:] + 0x4000 + 0x4011),
            b.eq(dut.ip[:16] + dut.ip[16:] + 0x4500 + padded),
            total.eq(a + b + 50 + self.tos),
            folded.eq(total[:16] + total[16:]),
            check.eq(~(folded[:16] + folded[16])),
        ]
        self.check = check
        # Invariants.
        states = ("IDLE", "FETCH", "SUM", "ADD", "FOLD", "CHECK", "READY", "HEADER")
        for k, state in enumerate(states):
            m.d.comb += Assert(on(state) == (count == k))
        partial, other, summed, half = dut.sums
        m.d.comb += [
            Assert((count == 0) | (Value.cast(dut.frame) == Value.cast(frame))),
            Assert((count < 2) | (Value.cast(dut.peer_held) == Value.cast(peer))),
            Assert((count < 2) | (dut.length == padded)),
            Assert((count != 3) | ((partial == a) & (other == b))),
            Assert((count != 4) | (summed == total)),
            Assert((count != 5) | (half == folded)),
            Assert((count < READY) | (dut.check == check)),
            Assert((count == 0) | (frame.kind == 3) | (dut.poison == self.bad_now)),
        ]

    def _header(self, at):
        """Beat number ``at`` of the header, as the table in docs/network.md has it."""
        dut, frame, peer, n = self.dut, self.frame, self.peer, self.n

        def number(value, size):
            value = Cat(value, Const(0, 8 * size))
            return [value[8 * i : 8 * i + 8] for i in reversed(range(size))]

        def wire(value):
            return [value[8 * i : 8 * i + 8] for i in range(6)]

        octets = wire(peer.mac) + wire(dut.mac) + number(Const(0x0800, 16), 2)
        octets += [Const(0x45, 8), self.tos] + number(self.padded + 50, 2)
        octets += number(Const(0, 16), 2) + number(Const(0x4000, 16), 2)
        octets += [Const(64, 8), Const(17, 8)] + number(self.check, 2)
        octets += number(dut.ip, 4) + number(peer.ip, 4)
        octets += number(dut.port, 2) + number(peer.port, 2)
        octets += number(self.padded + 30, 2) + number(Const(0, 16), 2)
        octets += [Cat(frame.kind, Const(0, 2), Const(1, 4))]
        octets += [Cat(frame.nack, frame.cnp, Const(0, 6))]
        octets += number(peer.remote, 2) + number(peer.incarnation, 2)
        octets += number(frame.seq, 4) + number(frame.length, 2) + number(frame.credit, 2)
        assert len(octets) == 56
        beats = Array(Cat(octets[k : k + n]) for k in range(0, 56, n))
        return beats[at]

    def _send(self):
        """Where in the frame we are: ``at`` counts its beats; header, payload, CRC, zeros."""
        m, dut, n, step = self.m, self.dut, self.n, self.step
        heads, tails = 56 // n, 8 // n
        active, at = Signal(name="sends"), Signal(6, name="beat_of")
        length, beats, slot = Signal(11, name="size"), Signal(6, name="beats"), Signal(1)
        bad, kind, of = Signal(name="spoiled"), Signal(2), Signal(1)
        ends = at == heads + beats + tails - 1
        starts = step & (self.count == READY) & (~active | ends)
        with m.If(step & active):
            m.d.sync += at.eq(at + 1)
            with m.If(ends):
                m.d.sync += active.eq(0)
            with m.If(at == heads - 1):
                m.d.sync += self.count.eq(0)
        with m.If(dut.kill & (kind == 1) & (of == dut.killed)):
            m.d.sync += bad.eq(1)
        frame = self.frame
        with m.If(starts):
            m.d.sync += [active.eq(1), at.eq(0), length.eq(frame.length), slot.eq(frame.slot)]
            m.d.sync += [self.count.eq(SENT), beats.eq(self.padded // n)]
            m.d.sync += [kind.eq(frame.kind), of.eq(frame.connection)]
            m.d.sync += bad.eq(self.bad_now | self._hit(frame))
        nth = Signal(6, name="nth")
        m.d.comb += nth.eq(at - heads)
        in_header, in_payload = at < heads, (at >= heads) & (at < heads + beats)
        keep = Cat((nth * n + i < length).replicate(8) for i in range(n))
        bits = self.config.slot_bits
        stored = self.words[Cat(nth[:bits], slot)]
        self.out = {
            "valid": active,
            "first": at == 0,
            "last": ends,
            "crc": ~in_header & ~in_payload & (at == heads + beats),
            "covered": (at * n >= 40) & (in_header | in_payload),
            "bad": bad,
            "data": Mux(in_header, self._header(at), Mux(in_payload, stored & keep, 0)),
            "header": in_header,
            "payload": in_payload,
            "probe": kind == 3,
        }
        m.d.comb += Assert(dut.store_en == step)
        with m.If(active & in_payload):
            m.d.comb += Assert(dut.store_addr == Cat(nth[:bits], slot))
        # Invariants.
        m.d.comb += [
            Assert(dut.active == active),
            Assert(~active | (at < heads + beats + tails)),
            Assert(~active | (dut.at == Mux(in_header, at, heads))),
            Assert(~active | (dut.left == Mux(in_header, beats, Mux(in_payload, beats - nth, 0)))),
            Assert(~active | (dut.trailer == Mux(at > heads + beats, at - heads - beats, 0))),
            Assert(~(active & in_payload) | (dut.index == nth)),
            Assert(~(active & in_header) | (dut.index == 0)),
            Assert(~active | ((dut.slot == slot) & (dut.message == length))),
            Assert(~active | ((dut.is_data == (kind == 1)) & (dut.data_of == of))),
            Assert(~active | (kind == 3) | (dut.bad == bad)),
            Assert(beats <= 2 * max(1, 8 // n)),
            Assert((self.count == SENT) == (active & in_header)),
            Assert(beats * n == (length + 7) // 8 * 8),
        ]
        for value in (dut.control.payload, dut.frames.payload):
            m.d.comb += _proper(value, self.config.max_message)
        other = dut.frames.payload.kind
        m.d.comb += Assume((dut.control.payload.kind == 2) & ((other == 1) | (other == 3)))
        m.d.comb += Assert(self.frame.length <= self.config.max_message)
        m.d.comb += Assert(length <= self.config.max_message)
        self.bad = bad

    def _pipeline(self):
        m, dut, n, step = self.m, self.dut, self.n, self.step
        stages = []
        values = self.out
        for k in range(2):
            stage = {
                name: Signal(Value.cast(v).shape(), name=f"{name}_{k}")
                for name, v in values.items()
            }
            with m.If(step):
                m.d.sync += [stage[name].eq(v) for name, v in values.items()]
            stages.append(stage)
            values = stage
        one, two = stages
        crc, shown = Signal(32, name="spec_crc"), Signal(name="shown")
        first, last, data, probe = Signal(), Signal(), Signal(8 * n), Signal()
        is_crc = Signal()
        after = simple_step(m, crc, two["data"], "spec")
        with m.If(step):
            right = Mux(two["bad"], crc, ~crc)
            m.d.sync += [
                shown.eq(two["valid"]),
                first.eq(two["first"]),
                last.eq(two["last"]),
                data.eq(Mux(two["crc"], right, two["data"])),
                probe.eq(two["probe"]),
                is_crc.eq(two["crc"]),
            ]
            with m.If(two["valid"]):
                covers = two["covered"] | ~(two["header"] | two["payload"])
                m.d.sync += crc.eq(Mux(covers, after, 0xFFFFFFFF))
        tx = dut.tx.payload
        m.d.comb += [
            Assert(dut.tx.valid == shown),
            Assert((tx.empty == 0) & ~tx.error),
            Assert(dut.started == (step & two["valid"] & two["first"])),
        ]
        stream_rules(m, dut.tx, Assert, "tx", chosen=0)
        with m.If(shown):
            m.d.comb += [
                Assert(tx.first == first),
                Assert(tx.last == last),
                Assert((tx.data == data) | (probe & is_crc)),
            ]
        # Invariants: the stages.
        m.d.comb += Assert(dut.crc == crc)
        m.d.comb += [Assert(dut.one.valid == one["valid"]), Assert(dut.two.valid == two["valid"])]
        with m.If(one["valid"]):
            mask = Cat(bit.replicate(8) for bit in dut.keep_one)
            m.d.comb += [
                Assert((dut.one.beat == HEADER) == one["header"]),
                Assert((dut.one.beat == PAYLOAD) == one["payload"]),
                Assert((dut.one.beat == CRC) == one["crc"]),
                Assert(~one["header"] | (dut.one.data == one["data"])),
                Assert(~one["payload"] | ((dut.store_data & mask) == one["data"])),
                Assert(one["probe"] | ~one["crc"] | (dut.one.bad == one["bad"])),
                Assert((dut.one.first == one["first"]) & (dut.one.last == one["last"])),
                Assert((one["header"] | one["payload"]) | (one["data"] == 0)),
                Assert(dut.one.crc == (one["covered"] | ~(one["header"] | one["payload"]))),
            ]
        with m.If(two["valid"]):
            m.d.comb += [
                Assert((dut.two.beat == CRC) == two["crc"]),
                Assert(dut.two.data == two["data"]),
                Assert(two["probe"] | ~two["crc"] | (dut.two.bad == two["bad"])),
                Assert((dut.two.first == two["first"]) & (dut.two.last == two["last"])),
                Assert(dut.two.crc == (two["covered"] | ~(two["header"] | two["payload"]))),
            ]
        done = Signal(2, name="frames_out")
        with m.If(shown & dut.tx.ready & last & (done != 3)):
            m.d.sync += done.eq(done + 1)
        m.d.comb += [
            Cover(shown & last & ~probe & (done == 1)),
            Cover(shown & is_crc & self.bad),
        ]


def _proper(frame, longest):
    """What the sender and the responder give: only DATA frames have a length."""
    return [Assume(frame.length <= longest), Assume((frame.kind == 1) | (frame.length == 0))]


MUTANTS = (
    Mutant("no_dont_fragment", "(0, 0, 0x40, 0, _TTL, 17)", "(0, 0, 0x00, 0, _TTL, 17)", 18),
    Mutant("marks_acks", "self.frame.kind == Kind.DATA, self.dscp", "1, self.dscp", 14),
    Mutant(
        "length_of_message",
        "*network(self.length + 50, 2)",
        "*network(frame.length + 50, 2)",
        14,
        context="n, frame, peer = self.config.bytes, self.frame, self.peer_held",
    ),
    Mutant("ignores_kill", "m.d.sync += bad.eq(1)", "m.d.sync += bad.eq(bad)", 26, within="_send"),
    Mutant(
        "sends_in_pause",
        "self.frames.ready.eq(~self.control.valid & ~self.paused)",
        "self.frames.ready.eq(~self.control.valid)",
        4,
    ),
)

PROOFS = tuple(
    Proof(
        name=f"ltl_framer_{width}",
        core=f"cores.ltl.framer.Framer({width} bits, messages of 2 beats)",
        says="every beat is what the table of fields says; frames with freed slots are spoiled",
        module="trebuchet.cores.ltl.framer",
        build=lambda cores, w=width: FramerProof(cores, w),
        depth=2,
        cover_depth=32 if width == 64 else 56,
        mutants=MUTANTS if width == 64 else MUTANTS[:1],
        assumes="addresses are constant; lengths are those of messages",
        not_proved="a reset while running; that there are no gaps",
    )
    for width in (32, 64)
)
