"""Proofs of the acceptability tests of TCP in ``cores/tcp/classifier.py``.

The specification is in wide integers, which never wrap: distances from RCV.NXT and from SND.UNA,
both of which are arbitrary. The core sees the low 32 bits of the sums. It is written from RFC 9293,
3.4 and 3.10.7.4, RFC 5961 and the data sheets. Any segment is judged, at any distance below 2**31,
across the wrap.

What the core says of text is specified for acceptable segments: nobody looks at the rest. The same
numbers are those of ``ReassemblyBlocks`` (``tcp_reassembly``): runs, like texts, are pairs of
distances.

With ``scaling`` the same holds of windows of up to 2 MiB.

Not proved: records that break what :meth:`Numbers.sound` assumes; the receive engine keeps it
(``tcp_receive_rules``).
"""

from dataclasses import replace

from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal, Value, signed
from trebuchet.cores.tcp.classifier import KINDS
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.record import Phase, run_names

from ..kit.proof import Mutant, Proof
from ..stream import new_harness

__all__ = ["PROOFS", "ALL", "SMALL", "Numbers", "constant", "kinds", "matured"]

#: Nothing here depends on how many services and sessions there are.
SMALL = TcpConfig(sessions=2, ports=(7, 80), segments=2, programmable=False)
#: With every option.
ALL = replace(SMALL, active=True, scaling=True, segment_log2=20, ack_delay=40, runs=4, sack=True)


def matured(m, cycles):
    """Whether exactly ``cycles`` cycles have gone by: the solver is asked once."""
    age = Signal(range(cycles + 2))
    with m.If(age != cycles + 1):
        m.d.sync += age.eq(age + 1)
    return age == cycles


def constant(m, name, shape):
    signal = Signal(shape, name=name)
    m.d.comb += signal.eq(AnyConst(len(signal)))
    return signal


class Numbers:
    """A segment and a record, both constant, by the distances of their numbers.

    ``edge``, ``runs`` (each where it begins and ends), ``seq``, ``end`` (of the text) and
    ``seq_end`` (with FIN) are distances from RCV.NXT, the others from SND.UNA. Each is chosen
    freely, as far as 32 bits can tell its sign. All other fields are arbitrary.
    """

    def __init__(self, m, seg, r, config=SMALL):
        self.m, self.bits, self.config, self.seg = m, config.window_bits, config, seg
        bits, self.names = self.bits, run_names(config)
        self.base_nxt, self.base_una = constant(m, "base_nxt", 32), constant(m, "base_una", 32)
        self.edge = constant(m, "d_edge", signed(bits))
        self.runs = [tuple(constant(m, f"d_{n}", bits) for n in names) for names in self.names]
        self.seq, self.ack = constant(m, "d_seq", signed(32)), constant(m, "d_ack", signed(32))
        self.snd_nxt, self.snd_max = (constant(m, f"d_snd_{name}", bits) for name in ("nxt", "max"))
        self.snd_end = constant(m, "d_snd_end", 31)
        self.recover = constant(m, "d_recover", signed(31))
        self.timed = constant(m, "d_timed", signed(31))
        self.end, self.seq_end = Signal(signed(34)), Signal(signed(34))
        m.d.comb += [
            self.end.eq(self.seq + seg.length),
            self.seq_end.eq(self.end + seg.flags.fin),
        ]
        una, nxt = self.base_una, self.base_nxt
        told = {"rcv_nxt": nxt, "rcv_edge": nxt + self.edge, "snd_una": una}
        for names, run in zip(self.names, self.runs, strict=True):
            told |= {name: nxt + place for name, place in zip(names, run, strict=True)}
        told |= {f"snd_{k}": una + getattr(self, f"snd_{k}") for k in ("nxt", "max", "end")}
        told |= {"recover": una + self.recover, "rtt_seq": una + self.timed}
        said = {"seq": nxt + self.seq, "ack": una + self.ack}
        for struct, values in ((r, told), (seg, said)):
            for name in struct.shape().members:
                field = Value.cast(struct[name])
                m.d.comb += field.eq(values.get(name, AnyConst(len(field))))

    def sound(self, r):
        """What a record's numbers always obey."""
        return [
            # A FIN takes no room: it may come right behind the edge.
            Assume((self.edge >= 0) | ((self.edge == -1) & r.fin_seen)),
            Assume(self.snd_nxt <= self.snd_max),
            Assume(self.snd_max <= self.snd_end),
            *(Assume(rule) for rule in self.lying(r.kept, self.runs)),
            Assume((r.kept == 0) | ~r.fin_seen),
        ]

    def lying(self, kept, runs, begin=0):
        """Rules: ``kept`` runs lie in the window, beyond ``begin``, and none touches another."""
        for k, (start, end) in enumerate(runs):
            yield (kept <= k) | ((begin < start) & (start < end) & (end <= self.edge))
            for first, last in runs[:k]:
                yield (kept <= k) | (end < first) | (last < start)
        yield kept <= len(runs)

    def judged(self, m, j, r, check):
        """State with ``check``, ``Assert`` or ``Assume``, that ``j`` is the right judgement."""
        self._text(m, j, r, check)
        self._ahead(m, j, r, check)
        self._ack(m, j, check)
        shut = (self.edge <= 0) & (self.seq > 0) & (self.seq < 1 << self.bits)
        for name, value in kinds(self.config, self.seg, r, j, shut).items():
            m.d.comb += check(j[name] == value)

    def _text(self, m, j, r, check):
        seq, edge = self.seq, self.edge
        ahead, starts = seq > 0, (seq >= 0) & (seq < edge)
        # It reaches what is expected next, or begins there or later, but not beyond the edge.
        valid = (seq == 0) | ((seq >= 0) & (seq <= edge)) | ((seq < 0) & (self.seq_end > 0))
        stop = Mux(self.end < edge, self.end, edge)
        take = Mux(ahead | r.fin_seen, 0, stop)
        m.d.comb += [
            check(j.exact == (seq == 0)),
            check(j.previous == (seq == -1)),
            check(j.ahead == ahead),
            check(j.in_window == (starts | (seq == 0))),
            check(j.valid == valid),
        ]
        with m.If(valid):
            m.d.comb += [
                check(j.skip == Mux(seq < 0, -seq, 0)),
                check(j.take == take),
                check(j.next == (self.base_nxt + take)[:32]),
                check(ahead | r.fin_seen | (j.whole == (self.end <= edge))),
            ]

    def _ahead(self, m, j, r, check):
        text = self.end > self.seq
        whole = (self.seq > 0) & text & (self.end <= self.edge)
        m.d.comb += [
            check(j.keep == (whole & ~r.fin_seen)),
            check(j.end == (self.base_nxt + self.end)[: self.bits + 1]),
        ]

    def _ack(self, m, j, check):
        new, same = (self.ack > 0) & (self.ack <= self.snd_max), self.ack == 0
        m.d.comb += [
            check(j.ack_new == new),
            check(j.ack_same == same),
            # RFC 5961, 5.2, with the largest window that there is.
            check(j.ack_bad == ((self.ack > self.snd_max) | (self.ack < -(1 << self.bits - 1)))),
            check(j.ack_all == (self.ack == self.snd_end)),
            check(j.out == self.snd_max),
        ]
        with m.If(new | same):
            m.d.comb += [
                check(j.ack_past_nxt == (self.ack > self.snd_nxt)),
                check(j.ack_recovered == (self.ack >= self.recover)),
                check(j.ack_timed == (self.ack >= self.timed)),
                check(j.acked == self.ack),
            ]


def kinds(config, seg, r, j, shut):
    """Of what kinds a segment is, by the rest of its judgement; whether it is a duplicate ACK.

    One case after the other, as in RFC 9293, 3.10.7.3 and 3.10.7.4, with RFC 5961. ``shut``: it
    begins beyond a closed window, where valid ACKs are still to be taken.
    """
    f, phase = seg.flags, r.phase
    text = (seg.length != 0) | f.fin
    half = phase == Phase.SYN_RCVD
    live = (phase == Phase.OPEN) | half
    rst, syn, other = live & f.rst, live & ~f.rst & f.syn, live & ~f.rst & ~f.syn
    resyn = syn & half & j.previous & ~f.ack
    outside = other & ~j.valid
    beyond = outside & f.ack & ~half & shut & ~j.ack_bad
    judged = other & j.valid & f.ack
    refused = judged & half & ~j.ack_new
    wild = judged & ~refused & j.ack_bad
    silent = outside & ~text & ~j.previous
    duplicate = j.ack_same & (seg.window == r.snd_wnd) & ~text & (j.out != 0)
    return {
        "closed": phase == Phase.CLOSED,
        "opens": (phase == Phase.SYN_SENT) & int(config.active),
        "lingers": phase == Phase.TIME_WAIT,
        "reset": rst & j.exact,
        "resyn": resyn,
        "challenged": (rst & ~j.exact & j.in_window) | (syn & ~resyn) | (silent & ~beyond) | wild,
        "wild": wild,
        "refused": refused,
        "outside": outside & (text | ~beyond),
        "answered": outside & ~silent,
        "beyond": beyond,
        "takes": judged & ~refused & ~wild,
        "text": text,
        "duplicate": duplicate & (r.dup_acks != 3),
        "third": duplicate & (r.dup_acks == 2) & ~r.recovering & j.ack_recovered,
    }


class ClassifierProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        seg, r, j = dut.segment, dut.record, dut.judgement
        numbers = Numbers(m, seg, r, dut.config)
        m.d.comb += numbers.sound(r)
        with m.If(matured(m, 4)):
            numbers.judged(m, j, r, Assert)
            m.d.comb += [
                Cover(j.in_window & j.ahead & (seg.seq < r.rcv_nxt)),  # across the wrap
                Cover(j.valid & (j.skip != 0) & (j.take != 0) & ~j.whole),
                Cover(j.valid & (seg.seq == r.rcv_edge) & j.ahead),
                Cover(j.valid & r.fin_seen & (numbers.edge < 0)),
                Cover(j.keep & (seg.seq > r.rcv_edge)),
                Cover(j.ack_new & (seg.ack < r.snd_una) & j.ack_past_nxt),
                Cover(j.ack_bad & (numbers.ack < 0)),
                *(Cover(j[name]) for name in KINDS if name != "opens" or dut.config.active),
                Cover(j.third),
            ]
        return m


_RULES = "a sound record: RCV.NXT < kept <= edge <= RCV.NXT + 65535, SND.NXT <= SND.MAX <= end"

PROOFS = (
    Proof(
        name="tcp_classifier_all",
        core="cores.tcp.classifier.SegmentClassifier (every option)",
        says="the same with windows of up to 2 MiB, of which 1 MiB is ours",
        module="trebuchet.cores.tcp.classifier",
        build=lambda cores: ClassifierProof(cores.SegmentClassifier(ALL)),
        depth=5,
        cover_depth=6,
        mutants=(
            Mutant("old_acks_of_64_kib", "gained[n - 2 : 31]", "gained[16:31]"),
            Mutant("old_windows", "n = self.config.window_bits", "n = 17"),
        ),
        assumes="a sound record, of windows below 2 MiB",
    ),
    Proof(
        name="tcp_classifier",
        core="cores.tcp.classifier.SegmentClassifier",
        says="a segment is judged as RFC 9293 and 5961 say in wide integers, also across the wrap",
        module="trebuchet.cores.tcp.classifier",
        build=lambda cores: ClassifierProof(cores.SegmentClassifier(SMALL)),
        depth=5,
        cover_depth=6,
        mutants=(
            Mutant("edge_is_inside", "(off[:n] < room)", "(off[:n] <= room)"),
            Mutant("reads_unsigned", "j.previous.eq(off == -1)", "j.previous.eq(off[:31] == -1)"),
            Mutant("fin_ends_nowhere", "((left == 0) & seg.flags.fin)", "(left == 0)"),
            Mutant(
                "acks_the_unsent",
                "~back & (gained != 0) & (gained[n:31] == 0) & (gained[:n] <= out)",
                "~back & (gained != 0) & (gained[n:31] == 0) & (gained[: n - 1] <= out)",
            ),
            Mutant("keeps_what_is_cut", "seg.length <= space", "seg.length <= space + 1"),
            Mutant("any_rst_in_window", "live & f.rst & j.exact", "live & f.rst & j.in_window"),
            Mutant("syn_is_heeded", "(~f.rst & f.syn & ~resyn)", "(~f.rst & f.syn & resyn)"),
            Mutant("deaf_behind_a_closed_window", "self.shut & f.ack", "self.shut & f.ack & 0"),
            Mutant("window_is_open", "(off[n:31] == 0) & (room == 0)", "(off[n:31] == 0)"),
        ),
        assumes=_RULES,
    ),
)
