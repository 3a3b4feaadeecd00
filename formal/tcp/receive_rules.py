"""Proofs of what a segment may never do to a session: ``cores/tcp/receive.py`` as a whole.

Numbers are distances that never wrap (``tcp_classifier``), from an arbitrary RCV.NXT and SND.UNA.
Of any
sound record and any segment:

* RCV.NXT moves on by what was accepted: an arbitrary byte that it passes is written by this segment
  or lies in a run kept beyond a gap; it stays in the window, but for a FIN right behind it;
* runs kept claim an arbitrary byte only if they did before, or this segment writes it; the record
  stays sound: no run touches another, or RCV.NXT;
* SND.UNA moves to SEG.ACK or not at all, never beyond SND.MAX; SND.UNA <= SND.NXT <= SND.MAX;
* RST ends a session exactly at RCV.NXT, and changes nothing else anywhere else but what a challenge
  ACK needs; nor does SYN (RFC 5961);
* of what begins beyond a closed window the ACK counts, and no text does;
* the phase takes only the ways of RFC 9293, 3.3.2; what has been seen of FINs is not forgotten.

Taken from other proofs: the judgement (``tcp_classifier``), the runs joined (``tcp_reassembly``),
and that they are ready and the verdict's register empty when the record is handed back
(``tcp_receive_flow``).
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value, signed
from trebuchet.cores.tcp.record import Phase, run_names

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import handed_back
from .classifier import SMALL, Numbers, constant
from .reassembly import joined
from .receive import UPDATE, free_partners, opened

__all__ = ["PROOFS"]

#: Fields that a segment without a right place may change: what a challenge ACK needs.
CHALLENGE = {"ack_due", "challenge_time", "challenges"}
#: Fields that text changes.
TEXT = ("rcv_nxt", "rcv_edge", "fin_seen", "kept", "has_segment", "segment")


class Harness(Elaboratable):
    """The engine with any sound record and any segment; ``rules`` says what is held of it."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        port, seg = dut.port, dut.input.payload.body.segment
        self.r, self.x = port.record, handed_back(m, port, dut.now)
        free(m, dut.input.valid, port.grant, dut.now, dut.settings, dut.pool.valid)
        free(m, dut.pool.payload)
        free_partners(m, dut)
        self.n = n = Numbers(m, seg, self.r, dut.config)
        m.d.comb += self.n.sound(self.r)
        m.d.comb += Assume(seg.length <= dut.config.rx_buffer)
        back = Signal()
        m.d.comb += back.eq(port.commit & ~port.request & ~dut.peer_write)
        with m.If(back):
            n.judged(m, dut.j, self.r, Assume)
            with m.If((self.r.kept != 0) | dut.j.keep):
                begin, end = Mux(dut.j.ahead, n.seq, 0), Mux(dut.j.ahead, n.end, dut.j.take)
                joined(m, dut.gaps, n, self.r.kept, dut.j.ahead, begin, end, Assume)
            m.d.comb += Assume(~dut.verdict.valid)
        self.rules(m, back)
        return m


class BytesProof(Harness):
    """Of an arbitrary byte, at ``place`` from RCV.NXT."""

    def rules(self, m, back):
        n, r, x, v = self.n, self.r, self.x, self.dut.verdict
        place, here = constant(m, "place", 18), Signal(signed(32))
        passed = Signal(32)
        m.d.comb += [
            passed.eq(x.rcv_nxt - r.rcv_nxt),
            here.eq(n.seq + v.payload.skip),
        ]
        runs = []  # afterwards
        for k, names in enumerate(run_names(self.dut.config)):
            run = Signal(n.bits + 1, name=f"start_{k}"), Signal(n.bits + 1, name=f"stop_{k}")
            m.d.comb += [s.eq(x[name] - r.rcv_nxt) for s, name in zip(run, names, strict=True)]
            runs.append(run)

        def inside(kept, runs):
            return Cat(
                (kept > k) & (start <= place) & (place < stop)
                for k, (start, stop) in enumerate(runs)
            ).any()

        fin = x.fin_seen & ~r.fin_seen
        with m.If(back):
            m.d.comb += [
                Assert((passed == 0) | (passed <= n.edge + fin)),
                Assert(~fin | (passed == n.seq_end)),
                Assert(~r.fin_seen | (passed == 0)),
                *(Assert(rule) for rule in n.lying(x.kept, runs, passed)),
                Assert((x.kept == 0) | ~x.fin_seen),
                Cover((r.kept != 0) & (x.kept == 0) & (passed > n.end)),
                Cover((r.kept != 0) & (x.kept != 0) & (runs[0][0] == n.seq)),
                Cover(fin & (n.seq < 0) & (n.edge == passed)),
            ]
        claimed, had, moved = Signal(), Signal(), Signal()
        m.d.sync += [
            claimed.eq(back & ((place + fin < passed) | inside(x.kept, runs))),
            had.eq(inside(r.kept, n.runs)),
            moved.eq(back & ((passed != 0) | (x.kept != 0))),
        ]
        with m.If(claimed & ~had):
            m.d.comb += [
                Assert(v.valid & v.payload.commit),
                Assert(here <= place),
                Assert(place < here + v.payload.length),
                Assert(
                    v.payload.skip + v.payload.length <= self.dut.input.payload.body.segment.length
                ),
            ]
        m.d.comb += Cover(claimed & ~had & moved & (v.payload.skip != 0))


class RulesProof(Harness):
    def rules(self, m, back):
        with m.If(back):
            self._send(m)
            self._phases(m)
            self._unwelcome(m)

    def _send(self, m):
        n, r, x = self.n, self.r, self.x
        una, nxt = Signal(32), Signal(32)
        m.d.comb += [una.eq(x.snd_una - r.snd_una), nxt.eq(x.snd_nxt - r.snd_una)]
        m.d.comb += [
            Assert((una == 0) | ((una == n.ack) & self.dut.input.payload.body.segment.flags.ack)),
            Assert(una <= nxt),
            Assert(nxt <= n.snd_max),
            Assert((x.snd_max == r.snd_max) & (x.snd_end == r.snd_end)),
            Cover((una != 0) & (nxt == una) & (n.snd_nxt < una)),
        ]

    def _phases(self, m):
        r, x, n, f = self.r, self.x, self.n, self.dut.input.payload.body.segment.flags
        ways = {
            Phase.SYN_RCVD: (Phase.SYN_RCVD, Phase.OPEN, Phase.CLOSED),
            Phase.OPEN: (Phase.OPEN, Phase.TIME_WAIT, Phase.CLOSED),
            Phase.TIME_WAIT: (Phase.TIME_WAIT,),
            Phase.CLOSED: (Phase.CLOSED,),
        }
        acked = f.ack & (n.ack == n.snd_end) & r.fin_queued
        m.d.comb += Assume((r.phase != Phase.FREE) & (Value.cast(r.phase) <= 4))
        # Nothing is queued, and no FIN told, before the service has heard of the session.
        m.d.comb += Assume((r.phase != Phase.SYN_RCVD) | ~(r.fin_queued | r.fin_told))
        for phase, after in ways.items():
            with m.If(r.phase == phase):
                m.d.comb += Assert(sum((x.phase == a) for a in after) == 1)
                m.d.comb += [Cover((x.phase == a) & f.ack) for a in after]
        with m.If((r.phase == Phase.SYN_RCVD) & (x.phase == Phase.OPEN)):
            m.d.comb += Assert(f.ack & ~f.syn & (n.ack > 0) & (n.ack <= n.snd_max) & x.opened)
        with m.If((r.phase == Phase.OPEN) & (x.phase == Phase.TIME_WAIT)):
            m.d.comb += Assert(acked & r.fin_told & ~r.passive & ~f.rst)
        with m.If((r.phase == Phase.OPEN) & (x.phase == Phase.CLOSED)):
            m.d.comb += Assert((f.rst & (n.seq == 0)) | (acked & r.fin_told & r.passive & ~f.rst))
        m.d.comb += [
            *(Assert(~r[name] | x[name]) for name in ("fin_seen", "opened")),
            *(Assert(r[name] == x[name]) for name in ("fin_told", "fin_queued", "passive")),
        ]

    def _unwelcome(self, m):
        """RST, SYN, and what is not acceptable."""
        r, x, n, f = self.r, self.x, self.n, self.dut.input.payload.body.segment.flags
        live = (r.phase == Phase.OPEN) | (r.phase == Phase.SYN_RCVD)

        def only(*names):
            return [
                Assert(Value.cast(x[name]) == Value.cast(r[name]))
                for name in self.dut.port.signature.writes
                if name not in names
            ]

        near = (n.seq > 0) & (n.seq < n.edge)
        shut = (n.edge <= 0) & (n.seq > 0) & (r.phase == Phase.OPEN)
        with m.If(~live):
            m.d.comb += only("ack_due", "deadline")
        with m.Elif(f.rst & (n.seq == 0)):
            m.d.comb += Assert(x.phase == Phase.CLOSED)
        with m.Elif(f.rst):
            m.d.comb += only(*CHALLENGE)
            m.d.comb += Assert(near | (x.ack_due == r.ack_due))
            m.d.comb += Cover(near & x.ack_due & ~r.ack_due)
        with m.Elif(f.syn):
            m.d.comb += only(*CHALLENGE, "syn_due")
            m.d.comb += Assert(x.ack_due | x.syn_due | (x.challenges == 3))
        with m.Elif(~f.ack | (n.ack > n.snd_max)):
            m.d.comb += only(*CHALLENGE)
        with m.Elif(shut & (n.seq > n.edge)):  # what it acknowledges counts, its text does not
            m.d.comb += [Assert(x[name] == r[name]) for name in TEXT]
            m.d.comb += Cover(x.snd_una != r.snd_una)
        with m.Elif(((n.seq < 0) & (n.seq_end <= 0)) | ((n.seq > 0) & (n.seq > n.edge))):
            m.d.comb += only(*CHALLENGE)


_ASSUMES = "a sound record: RCV.NXT < kept <= edge <= RCV.NXT + 65535; SND.NXT <= SND.MAX"

PROOFS = (
    Proof(
        name="tcp_receive_rules",
        core="cores.tcp.receive.ReceiveEngine",
        says="SND.UNA stays within what was sent; RST only at RCV.NXT; phases as in RFC 9293",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: RulesProof(cores.ReceiveEngine(SMALL)),
        depth=1,
        cover_depth=17,
        mutants=(
            Mutant("falls_behind", "with m.If(j.ack_past_nxt):", "with m.If(0):", 17, where=UPDATE),
            Mutant(
                "syn_is_heeded",
                "with m.If(j.takes | j.beyond):",
                "with m.If(j.takes | j.beyond | j.resyn):",
                17,
                where=UPDATE,
            ),
            Mutant(
                "acknowledged_from_anywhere",
                "with m.If(j.takes | j.beyond):",
                "with m.If(j.takes | j.beyond | j.outside):",
                17,
                where=UPDATE,
            ),
            Mutant(
                "leaves_time_wait",
                "with m.If(j.reset):",
                "with m.If(j.reset | j.lingers):",
                17,
                where=UPDATE,
            ),
        ),
        assumes=_ASSUMES,
    ),
    Proof(
        name="tcp_receive_bytes",
        core="cores.tcp.receive.ReceiveEngine",
        says="RCV.NXT passes, and the run beyond a gap claims, only bytes written",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: BytesProof(cores.ReceiveEngine(SMALL)),
        depth=1,
        cover_depth=24,
        mutants=(
            Mutant(
                "fin_before_a_run",
                "~r.fin_seen & ~j.ahead & ~jump",
                "~r.fin_seen & ~j.ahead",
                24,
                where=UPDATE,
            ),
            Mutant("forgets_a_fin", "m.d.comb += w.kept.eq(0)", "pass", 24, where=UPDATE),
            Mutant("passes_a_run", "with m.If(r.kept != 0):", "with m.If(0):", 24, where=UPDATE),
        ),
        assumes=_ASSUMES,
    ),
)
