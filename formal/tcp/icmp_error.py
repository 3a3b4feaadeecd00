"""Proofs of what ICMP errors do to sessions: ``cores/tcp/icmp_error.py``.

* The port: segments pass unaltered and each notice goes once, with the MSS of its MTU, under the
  stream rules; no two notices go while a segment waits.
* The engine, in any state with any record: a notice changes exactly the fields that its code, the
  phase and the MSS call for, and is one count; without a notice the engine is the one of
  ``tcp_receive`` (the same specification, with segments as input).
* What it goes by is right when the record is handed back: the number quoted is under way exactly if
  SND.UNA <= number < SND.MAX, in wide integers.
* Its way through the engine: a notice makes no session, draws no answer and leaves no verdict.

Not proved: a reset while running.
"""

from dataclasses import replace

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.record import Phase

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .checkout import handed_back
from .classifier import SMALL, Numbers, matured
from .receive import UpdateProof, first_of, free_inputs, opened

__all__ = ["PROOFS"]

ICMP = replace(SMALL, icmp=True, active=True)
NOTICE = 1  # kind of input


class PortProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        free(m, dut.i.valid, dut.i.payload, dut.notice.valid, dut.notice.payload)
        free(m, dut.o.ready)
        stream_rules(m, dut.i, Assume, "i")
        stream_rules(m, dut.notice, Assume, "notice")
        stream_rules(m, dut.o, Assert, "o")
        o, said, own = dut.o.payload, dut.notice.payload, dut.own
        mss = Mux(said.mtu >= 576, said.mtu - 40, 536)
        want = {"ip": said.ip, "ack": said.seq, "window": said.code, "mss": mss}
        want |= {name: said[name] for name in ("remote_port", "local_port")}
        whole, body = o.body.segment, o.body.notice
        told = {"seq": said.seq, "code": said.code, "mss": mss}
        told |= {name: said[name] for name in ("ip", "remote_port", "local_port")}
        with m.If(own):
            m.d.comb += [
                Assert(dut.notice.valid),
                Assert(Value.cast(o.kind) == NOTICE),
                *(Assert(body[name] == value) for name, value in told.items()),
                # Read as a segment it has no flags and no text.
                *(
                    Assert(Value.cast(whole[name]) == want.get(name, 0))
                    for name in whole.shape().members
                ),
            ]
        with m.Else():
            m.d.comb += [
                Assert(dut.o.valid == dut.i.valid),
                Assert(o.as_value() == dut.i.payload.as_value()),
            ]
        moved = dut.o.valid & dut.o.ready
        m.d.comb += [
            Assert(~own | dut.o.valid),
            Assert(dut.i.ready == (dut.o.ready & ~own)),
            Assert((dut.notice.valid & dut.notice.ready) == (moved & own)),
        ]
        # A turn for the segment that waited when a notice went; none is held up for long.
        waited, idle = Signal(), Signal(2)
        with m.If(moved):
            m.d.sync += waited.eq(own & dut.i.valid)
        m.d.comb += [Assert(~(own & waited)), Assert(~waited | dut.i.valid)]
        held = dut.i.valid & ~dut.i.ready & ~own
        m.d.sync += idle.eq(Mux(dut.notice.valid & ~own & ~held & ~idle.all(), idle + 1, 0))
        m.d.comb += [
            Assert(idle < 2),
            Cover(waited & moved),
            Cover(own & moved & (body.mss == 999)),
        ]
        # The MSS is that of the notice as it was a cycle ago, which was this one.
        past = Signal(16)
        m.d.sync += past.eq(said.mtu)
        m.d.comb += Assert(~own | (past == said.mtu))
        return m


class HeedProof(Elaboratable):
    """What a notice makes of every field, in any state of the engine."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        port, r, seg = dut.port, dut.port.record, dut.input.payload.body.segment
        free_inputs(m, dut)
        free(m, dut.input.payload.kind)
        back, kept = Signal(), handed_back(m, port, dut.now)
        m.d.comb += back.eq(port.commit & ~port.request & ~dut.peer_write & dut.notice)
        code, said = dut.input.payload.body.notice.code, dut.noticed
        part, cuts, ends = dut.notice_update, Signal(), Signal()
        m.d.comb += [
            cuts.eq(part.under_way & (code == 4) & (r.phase == Phase.OPEN) & part.smaller),
            ends.eq(part.under_way & ((code == 2) | (code == 3)) & (r.phase == Phase.SYN_SENT)),
        ]
        rules = {
            "mss": [(cuts, seg.mss[: len(r.mss)])],
            "cwnd": [(cuts, seg.mss)],
            "snd_nxt": [(cuts, r.snd_una)],
            "recover": [(cuts, r.snd_max)],
            "phase": [(ends, Phase.CLOSED)],
            "check": [(ends, 1)],
            "ev_closed": [(ends, r.opened)],
            "released": [(ends, ~r.opened)],
        }
        rules |= {
            name: [(cuts, 0)]
            for name in ("credit", "ahead", "blocked", "recovering", "dup_acks", "rtt_on")
        }
        rules["resend"] = [(cuts | ends, 0)]
        silent = ("ack_due", "syn_due", "rst_due", "probe", "keepalive", "ok")
        rules |= {name: [(ends, 0)] for name in silent}
        with m.If(back):
            for name in port.signature.writes:
                value = Signal(len(Value.cast(r[name])), name=f"expected_{name}")
                m.d.comb += value.eq(first_of(*rules.get(name, []), r[name]))
                m.d.comb += Assert(Value.cast(kept[name]) == value)
            m.d.comb += [
                Assert(said.icmp_mss == cuts),
                Assert(said.icmp_aborts == ends),
                Assert(said.icmp_ignored == ~part.under_way),
                Assert(said.icmp_soft == (part.under_way & ~cuts & ~ends)),
                Assert(~dut.answer_rst),
                Assert(~dut.opened),
                Assert(~dut.pool.ready),
                Assert(dut.count.as_value() == 0),
            ]
        with m.If(port.commit & port.request):
            m.d.comb += Assert(~(said.icmp_mss | said.icmp_aborts | said.icmp_soft))
        with m.If(~dut.notice):
            m.d.comb += Assert(said.as_value() == 0)
        m.d.comb += [Cover(back & cuts), Cover(back & ends), Cover(back & ~cuts & ~ends)]
        return m


class PlaceProof(Elaboratable):
    """The registers that a notice goes by, five cycles after segment and record stand still."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        r, seg = dut.port.record, dut.input.payload.body.segment
        n = Numbers(m, seg, r)
        m.d.comb += n.sound(r)
        under_way = (n.ack >= 0) & (n.ack < n.snd_max)
        with m.If(matured(m, 5)):
            m.d.comb += [
                Assert(dut.notice_update.under_way == under_way),
                Assert(dut.notice_update.smaller == (seg.mss < r.mss)),
                Cover(under_way & (seg.ack < r.snd_una)),  # across the wrap
                Cover(~under_way & (n.ack == n.snd_max) & (n.ack != 0)),
            ]
        return m


class WayProof(Elaboratable):
    """A notice on its way through the engine."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        seg, code = dut.input.payload.body.segment, dut.fsm.encoding
        free_inputs(m, dut)
        free(m, dut.input.payload.kind)
        stream_rules(m, dut.input, Assume, "input")
        stalled = Signal()
        m.d.sync += stalled.eq(dut.input.valid & ~dut.input.ready)
        with m.If(dut.notice):  # as the port puts it
            m.d.comb += [Assume(seg.flags.as_value() == 0), Assume(seg.length == 0)]
        at = {name: dut.fsm.state == value for name, value in code.items()}
        busy = ~at["IDLE"]
        inside = busy & dut.notice
        m.d.comb += [
            Assert(sum(at.values()) == 1),
            Assert(~busy | dut.input.valid),
            Assert(~busy | stalled),
            Assert(~(inside & (at["MAKE"] | at["REPLY"] | dut.made | dut.owed))),
            Assert(~((at["ROOM"] | at["CLAIM"]) & dut.notice & dut.fresh)),
            Assert(~(inside & (dut.lookup.insert | dut.accepted | dut.peer_write))),
        ]
        m.d.comb += Cover(inside & at["TAIL"] & dut.lookup.found)
        m.d.comb += Cover(inside & at["COMMIT"])
        with m.If(at["DECIDE"] & dut.notice & (dut.settled == 0)):
            known = dut.lookup.found & ~dut.gone
            m.d.comb += Assert(dut.noticed.icmp_ignored == ~known)
            m.d.comb += Assert(~dut.count.unknown)
        replied, given = Signal(), Signal()
        m.d.sync += [
            replied.eq(dut.reply.valid & ~dut.reply.ready),
            given.eq(dut.verdict.valid & ~dut.verdict.ready),
        ]
        after = Signal()  # the last cycle was a notice's
        m.d.sync += after.eq(inside)
        with m.If(after):
            m.d.comb += [Assert(~dut.reply.valid | replied), Assert(~dut.verdict.valid | given)]
        return m


_MODULE = "trebuchet.cores.tcp.icmp_error"


def _in_update(name, old, new, depth=12):
    return Mutant(name, old, new, depth, where=_MODULE)


PROOFS = (
    Proof(
        name="tcp_icmp_error_port",
        core="cores.tcp.icmp_error.IcmpErrorPort",
        says="segments pass unaltered; each notice goes once, at most in every other turn",
        module=_MODULE,
        build=lambda cores: PortProof(cores.IcmpErrorPort(ICMP)),
        depth=2,
        cover_depth=6,
        quick=True,
        mutants=(
            Mutant(
                "breaks_in",
                "Mux(own, ~o.ready, self.notice.valid & between)",
                "Mux(own, ~o.ready, self.notice.valid)",
            ),
            Mutant("loses_one", "self.i.ready.eq(o.ready & ~own)", "self.i.ready.eq(o.ready)"),
            Mutant(
                "no_floor",
                "Mux(said.mtu < MSS_FLOOR + _HEADERS, MSS_FLOOR, said.mtu - _HEADERS)",
                "Mux(0, 0, said.mtu - _HEADERS)",
            ),
            Mutant("answered", "item.kind.eq(InputKind.NOTICE)", "item.kind.eq(InputKind.SEGMENT)"),
            Mutant(
                "twice",
                "Mux(own, ~o.ready, self.notice.valid & between)",
                "Mux(own, self.notice.valid, self.notice.valid & between)",
            ),
        ),
        assumes="the stream rules on segments and notices",
    ),
    Proof(
        name="tcp_icmp_error_heed",
        core="cores.tcp.receive.ReceiveEngine (that handles ICMP notices)",
        says="a notice changes what RFC 1191 and 5927 say, and nothing else; it is one count",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: HeedProof(cores.ReceiveEngine(ICMP)),
        depth=1,
        cover_depth=17,
        mutants=(
            _in_update("anywhere", "with m.If(~self.under_way):", "with m.If(0):", 17),
            _in_update(
                "raises", "(r.phase == Phase.OPEN) & self.smaller", "(r.phase == Phase.OPEN)", 17
            ),
            _in_update("hard_for_ever", "refuses & opening(self.config, r)", "refuses", 17),
            _in_update(
                "sends_nothing_again", "w.snd_nxt.eq(r.snd_una), w.ahead.eq(0)", "w.ahead.eq(0)", 17
            ),
            _in_update(
                "times_what_is_sent_twice",
                "w.rtt_on.eq(0), count.icmp_mss.eq(1)",
                "count.icmp_mss.eq(1)",
                17,
            ),
            _in_update(
                "keeps_the_flood", "w.cwnd.eq(notice.mss), w.credit.eq(0)", "w.credit.eq(0)", 17
            ),
        ),
        assumes="nothing of the record, the notice, the time or the judgement",
    ),
    Proof(
        name="tcp_icmp_error_receive",
        core="cores.tcp.receive.ReceiveEngine (that handles ICMP notices)",
        says="a segment does in this engine what it does in the plain one (tcp_receive_active)",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: UpdateProof(cores.ReceiveEngine(ICMP)),
        depth=1,
        cover_depth=17,
        mutants=(Mutant("takes_all", "with m.If(self.notice):", "with m.If(1):", 17),),
        assumes="nothing of the record, the segment, the time or the judgement",
        not_proved="a reset while running; see tcp_receive",
    ),
    Proof(
        name="tcp_icmp_error_place",
        core="cores.tcp.receive.ReceiveEngine (that handles ICMP notices)",
        says="a number is under way if SND.UNA <= number < SND.MAX, also across the wrap",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: PlaceProof(cores.ReceiveEngine(ICMP)),
        depth=6,
        cover_depth=7,
        mutants=(
            _in_update(
                "what_is_next",
                "(j.ack_same | j.ack_new) & (j.acked != j.out)",
                "j.ack_same | j.ack_new",
            ),
            _in_update("not_the_oldest", "(j.ack_same | j.ack_new)", "j.ack_new"),
            _in_update("not_smaller", "notice.mss < r.mss", "notice.mss <= r.mss"),
        ),
        assumes="a sound record; segment and record stand still (tcp_receive_flow)",
    ),
    Proof(
        name="tcp_icmp_error_way",
        core="cores.tcp.receive.ReceiveEngine (that handles ICMP notices)",
        says="a notice makes no session, draws no RST and leaves no verdict",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: WayProof(cores.ReceiveEngine(ICMP)),
        depth=2,
        cover_depth=17,
        mutants=(
            Mutant(
                "like_a_segment",
                "with m.If((connects & (known | ~accept)) | ignored):",
                "with m.If(connects & (known | ~accept)):",
                8,
            ),
        ),
        assumes="notices as the port puts them (tcp_icmp_error_port)",
    ),
)
