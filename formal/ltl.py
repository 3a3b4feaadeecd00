"""Proofs of LTL's sender and receiver (``cores/ltl``), one connection, small window.

``ltl_sender``, over public ports of ``Sender``, whatever ACKs, time-outs, pace and credits come: a
frame's number is less than the number of messages committed, within the window and the credit
beyond what was acknowledged, and never leaves one out; the frame names the slot that was committed
under that number; a slot is released in order, and only after an ACK of its frame (or the
failure of its connection, which then releases all).

``ltl_link``, of ``Sender`` and ``Receiver`` with a channel between them that holds one frame,
loses, doubles and delays it, and ACKs that may be old: the messages delivered are a prefix of those
committed, in the same order.

Not proved: more than the depth (an event takes 6 to 9 cycles, so some four to seven events); the
parser and the framer, which tests compare with their model; channels that hold a frame for more
than half the sequence space, against which no finite sequence number helps.
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.ltl.config import Kind, LtlConfig
from trebuchet.cores.ltl.send import Sender

from .proof import Mutant, Proof
from .stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

SMALL = LtlConfig(
    width=64,
    connections=1,
    vcs=1,
    slots=2,
    window=2,
    max_message=8,
    buffer_beats=2,
    reserve=1,
    seq_bits=3,
)
_BITS = 5


def _moves(stream):
    return stream.valid & stream.ready


class _Sending:
    """A sender whose connection has been opened, and what it must have done, by its ports."""

    def __init__(self, m, dut):
        free(m, dut.commit[0].valid, dut.commit[0].payload.stored, dut.frame.ready)
        free(m, dut.pace_allow)
        opened, asked = Signal(), Signal(3)
        self.dead, self.past_frame = Signal(name="dead"), Signal(name="past_frame")
        m.submodules.dut = dut
        commit, command, response = dut.commit[0], dut.command, dut.response
        stream_rules(m, commit, Assume, "commit")
        # Time-outs at every visit: the harshest that a clock can be.
        m.d.comb += [
            dut.now.eq(0),
            dut.retries.eq(1),
            dut.hold.eq(0),
            dut.drop.eq(0),
            dut.failure.ready.eq(1),
            command.valid.eq(~opened),
            command.payload.eq(0),
            command.payload.open.eq(1),
            command.payload.credit.eq(2),
            dut.pace_done.eq(asked[2]),
            Assume(opened | ~commit.valid),
            Assume(opened | ~response.valid),
            Assume(commit.payload.connection == 0),
            Assume(response.payload.connection == 0),
        ]
        m.d.sync += [asked.eq(asked << 1 | dut.pace_start), self.past_frame.eq(dut.frame.valid)]
        with m.If(_moves(command)):
            m.d.sync += opened.eq(1)
        with m.If(dut.events.failures):
            m.d.sync += self.dead.eq(1)
        names = ("committed", "acked", "sent", "released", "limit", "chosen", "number")
        for name in names:
            setattr(self, name, Signal(_BITS, name=name, init=2 * (name == "limit")))
        self.slot = Signal(SMALL.slot_layout, name="slot")
        self.index, self.live = Signal(_BITS, name="frame_index"), Signal(name="live")
        delta, good = Signal(SMALL.seq_layout, name="delta"), Signal(name="good_ack")
        credit = Mux(response.payload.credit > 2, 2, response.payload.credit)
        m.d.comb += [
            self.live.eq(~self.dead & ~dut.events.failures),
            self.chosen.eq(AnyConst(_BITS)),
            delta.eq(response.payload.seq - self.acked),
            good.eq(
                _moves(response)
                & (response.payload.incarnation == 0)
                & (delta <= self.sent - self.acked)
            ),
            self.index.eq(self.acked + (dut.frame.payload.seq - self.acked)[: SMALL.seq_bits]),
        ]
        with m.If(_moves(commit)):
            m.d.sync += self.committed.eq(self.committed + 1)
            with m.If(self.committed == self.chosen):
                m.d.sync += self.slot.eq(commit.payload.stored.slot)
        with m.If(good):
            m.d.sync += self.acked.eq(self.acked + delta)
            with m.If(self.acked + delta + credit > self.limit):
                m.d.sync += self.limit.eq(self.acked + delta + credit)
        self.begins = dut.frame.valid & ~self.past_frame & (dut.frame.payload.kind == Kind.DATA)
        with m.If(self.begins & (self.index == self.sent)):
            m.d.sync += self.sent.eq(self.sent + 1)
        with m.If(dut.release_valid):
            m.d.sync += self.released.eq(self.released + 1)


class SenderProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        free(m, dut.response.valid, dut.response.payload)
        stream_rules(m, dut.response, Assume, "response")
        s = _Sending(m, dut)
        stream = dut.frame
        with m.If(s.live & s.begins):
            m.d.comb += [
                Assert(s.index < s.committed),
                Assert(s.index - s.acked < SMALL.window),
                Assert(s.index < s.limit),
                Assert(s.index <= s.sent),
            ]
            with m.If(s.index == s.chosen):
                m.d.comb += Assert(stream.payload.slot == s.slot)
        with m.If(s.live & dut.release_valid):
            m.d.comb += Assert(s.released != s.acked)
            with m.If(s.released == s.chosen):
                m.d.comb += Assert(dut.release.slot == s.slot)
        m.d.comb += [
            Assert((s.committed - s.released)[:_BITS] <= SMALL.window),
            Assert(~s.live | ((s.acked - s.released)[:_BITS] <= SMALL.window)),
            Cover(s.released == 2),
            Cover(s.live & s.begins & (s.index == s.sent - 1)),
            Cover(s.dead & (s.committed == 2) & (s.released == 2) & (s.acked == 1)),
            Cover(s.live & (s.sent - s.acked == SMALL.window)),
        ]
        return m


class LinkProof(Elaboratable):
    def __init__(self, receiver):
        self.sender, self.receiver = Sender(SMALL), receiver

    # The channel holds one frame; a clock of its own takes it to the receiver's ports the way the
    # parser does: lookup, then the body, then the end. It may keep the frame, to deliver it again.
    def elaborate(self, platform):
        m = new_harness()
        sender, receiver = self.sender, self.receiver
        s = _Sending(m, sender)
        m.submodules.receiver = receiver
        frame, held, have = sender.frame, Signal(SMALL.frame_layout), Signal()
        header, phase = Signal.like(receiver.header), Signal(4)
        drop, again, go, broken = Signal(), Signal(), Signal(), Signal()
        free(m, drop, again, go, broken)
        opened = Signal()
        m.d.comb += [
            receiver.command.valid.eq(~opened),
            receiver.command.payload.eq(0),
            receiver.command.payload.open.eq(1),
            receiver.command.payload.credit.eq(2),
            receiver.level[0].eq(0),
            receiver.request.ready.eq(1),
            receiver.response.ready.eq(1),
            receiver.header.eq(header),
            receiver.about.eq(0),
            receiver.data.eq(header.incarnation),
            receiver.last.eq(1),
            receiver.lookup.eq(phase == 1),
            receiver.body.eq(phase == 6),
            receiver.end.eq(phase == 8),
            receiver.good.eq((phase == 8) & ~broken),
        ]
        with m.If(_moves(receiver.command)):
            m.d.sync += opened.eq(1)
        with m.If(_moves(frame)):
            m.d.sync += [
                held.eq(frame.payload),
                have.eq((frame.payload.kind == Kind.DATA) & ~drop),
            ]
        # The message of the frame that is under way.
        slot = Signal(SMALL.slot_layout)
        with m.If(phase == 0):
            with m.If(have & go & opened):
                m.d.sync += [
                    phase.eq(1),
                    have.eq(again),
                    slot.eq(held.slot),
                    header.eq(0),
                    header.kind.eq(held.kind),
                    header.seq.eq(held.seq),
                    header.length.eq(8),
                ]
        with m.Else():
            m.d.sync += phase.eq(Mux(phase == 10, 0, phase + 1))
        delivered = Signal(_BITS)
        with m.If(receiver.commit):
            m.d.sync += delivered.eq(delivered + 1)
            m.d.comb += Assert(~s.live | (delivered < s.committed))
            with m.If(s.live & (delivered == s.chosen)):
                m.d.comb += Assert(slot == s.slot)
        # A good message and a commit are one and the same.
        good = receiver.valid & receiver.beat.last & ~receiver.beat.error
        m.d.comb += Assert(good == receiver.commit)
        self._acks(m, s, sender, delivered)
        m.d.comb += [
            Assume(s.committed < 1 << (_BITS - 1)),
            Cover(delivered == 2),
            Cover(receiver.events.duplicates & (delivered == 1)),
        ]
        return m

    def _acks(self, m, s, sender, delivered):
        """What the receiver said at some time: any number it has reached since the last ACK."""
        said, valid = Signal(_BITS), Signal()
        later = Signal(_BITS)
        free(m, later, sender.response.valid)
        m.d.comb += [
            valid.eq(sender.response.valid),
            sender.response.payload.seq.eq(said),
            sender.response.payload.credit.eq(2),
            sender.response.payload.nack.eq(AnySeq(1)),
            Assume(later <= delivered),
            Assume(later >= said),
        ]
        stream_rules(m, sender.response, Assume, "response")
        with m.If(~valid):
            m.d.sync += said.eq(later)


SENDER_MUTANTS = (
    Mutant(
        "believes_any_ack",
        "~self.known | (self.delta > r.peak)",
        "~self.known",
        depth=38,
    ),
    Mutant(
        "frees_what_was_sent",
        "self.free_count.eq(delta),",
        "self.free_count.eq(r.sent),",
        depth=38,
    ),
    Mutant(
        "ignores_the_credit",
        "self.can.eq(r.open & (r.sent < r.queued) & (r.sent < r.limit))",
        "self.can.eq(r.open & (r.sent < r.queued))",
        depth=46,
    ),
    Mutant(
        "forgets_to_check_the_window",
        "self.full.eq(r.queued == self.config.window)",
        "self.full.eq(0)",
        depth=46,
    ),
)
LINK_MUTANTS = (
    Mutant(
        "delivers_twice",
        "write.data.expected.eq(entry.expected + 1)",
        "write.data.expected.eq(entry.expected)",
        depth=46,
    ),
    Mutant(
        "delivers_damaged_ones",
        "self.beat.error.eq(finish & ~self.good)",
        "self.beat.error.eq(0)",
        depth=36,
    ),
    Mutant("takes_any_number", "self.next.eq(delta == 0)", "self.next.eq(1)", depth=46),
)

PROOFS = (
    Proof(
        name="ltl_sender",
        core="cores.ltl.send.Sender(window=2)",
        says="window and credit are kept; nothing is freed before its ACK",
        module="trebuchet.cores.ltl.send",
        build=lambda cores: SenderProof(cores.Sender(SMALL)),
        depth=44,
        cover_depth=64,
        method="bmc",
        mutants=SENDER_MUTANTS,
        not_proved="more events than fit the depth; a reset while running",
        quick=False,
    ),
    Proof(
        name="ltl_link",
        core="cores.ltl.receive.Receiver(window=2) with Sender",
        says="what is delivered is a prefix of what was sent",
        module="trebuchet.cores.ltl.receive",
        build=lambda cores: LinkProof(cores.Receiver(SMALL)),
        depth=44,
        cover_depth=64,
        method="bmc",
        mutants=LINK_MUTANTS,
        assumes="frames come as the parser gives them; ACKs say what was true at some time",
        not_proved="more events than fit the depth; a reset while running",
        quick=False,
    ),
)
