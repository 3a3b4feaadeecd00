"""Proofs of scaled windows, delayed ACKs and SACK in the engines that take and send segments.

*Receive*: of a record of an engine with every option, what a segment makes of the fields that the
options add, and of ``blocked``, is what RFC 7323, 2.2 and 2.3, and RFC 5681, 4.2, say.

*Transmit*: before it is looked at, the limit of what is sent is SND.UNA and the smaller of the
congestion window and the peer's, shifted unless it is a SYN's; what is announced is what is left
before the edge, shifted but in a SYN, and 0 behind the edge; a SYN has the option if the record
says so; whatever is sent takes a waiting ACK along, and nothing else does; pure ACKs tell which
runs are kept, as RFC 2018, 2 to 4, says.

Not proved: the other fields with these options (``tcp_receive_all`` proves them of the receive
engine; the transmit engine's are those of ``tcp_transmit_next``, which has no options).
"""

from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.config import TcpConfig
from trebuchet.cores.tcp.record import run_names

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import Inside, handed_back
from .classifier import ALL
from .receive import UPDATE, Kinds, free_inputs, opened, update

__all__ = ["PROOFS"]

#: Fields that options add to a record, or to the rules of.
FIELDS = ("scaled", "snd_shift", "snd_plain", "blocked", "ack_now", "ack_wait", "near", "busy")
FIELDS += ("sack",)
TRANSMIT = TcpConfig(
    sessions=2, ports=(7,), scaling=True, segment_log2=20, ack_delay=40, runs=2, sack=True
)
#: Windows that need a shift of 15 bits and less: of the peer, any; ours is that of 1 MiB.
MOST = (1 << 21) - 1


class ReceiveProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        port, r = dut.port, dut.port.record
        free_inputs(m, dut)
        kinds = Kinds(m, dut)
        expected, kept = update(dut, kinds), handed_back(m, port, dut.now)
        back = kinds.back
        with m.If(back):
            for name in FIELDS:
                m.d.comb += Assert(Value.cast(kept[name]) == expected.get(name, r[name]))
            m.d.comb += Assume(dut.input.valid)
        m.d.comb += [
            Cover(back & kinds.same & r.snd_plain & r.blocked & ~port.result.blocked),
            Cover(back & kinds.opens & port.result.scaled),
            Cover(back & kinds.accepts & port.result.ack_now & ~r.ack_now),
        ]
        return m


class TransmitProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = self.dut
        inside = Inside(m, dut)
        port, o, config = dut.port, dut.tx_segment, dut.config
        r = port.record
        free(m, dut.active_valid, dut.active_session, dut.descriptor, dut.peer, dut.now)
        free(m, dut.reply.valid, dut.reply.payload, o.ready)
        # A store that lends one record, any, whenever it likes.
        lent, held = Signal(), Signal(2)
        m.d.comb += [Value.cast(r).eq(AnyConst(len(Value.cast(r)))), port.grant.eq(lent)]
        m.d.sync += held.eq(Mux(lent & ~port.commit, Mux(held == 3, 3, held + 1), 0))
        with m.If(lent):
            m.d.sync += lent.eq(~port.commit)
        with m.Else():
            m.d.sync += lent.eq(port.request & AnySeq(1))
        waits, claims = inside.state("IDLE"), inside.state("CLAIM")
        first = inside.state("KIND")
        m.d.comb += [
            Assert(inside.known()),
            Assert(~lent | ~waits),
            Assert(lent | waits | claims),
            Assert(lent | (held == 0)),
            Assert(~claims | (held == 0)),
            Assert(waits | claims | (held >= 1)),
            Assert(waits | claims | first | (held >= 2)),
        ]
        # RFC 7323, 2.2 and 2.3.
        size, theirs, window = Signal(32), Signal(22), Signal(22)
        left, told = Signal(22), Signal(22)
        m.d.comb += [
            size.eq(Mux(r.scaled & ~r.snd_plain, r.snd_wnd << r.snd_shift, r.snd_wnd)),
            theirs.eq(Mux(size < MOST, size, MOST)),
            window.eq(Mux(r.cwnd < theirs, r.cwnd, theirs)),
            left.eq(r.rcv_edge - r.rcv_pub),
            told.eq(Mux(left[21], 0, Mux(r.scaled & ~r.syn_due, left >> config.shift, left))),
        ]
        with m.If(lent & (held >= 1)):
            m.d.comb += [Assert(dut.allowed == theirs), Assert(dut.window == told[:16])]
        with m.If(lent & (held >= 2)):
            m.d.comb += Assert(dut.limit == (r.snd_una + window)[: dut.near])
        done, sends = lent & port.commit, Signal()
        m.d.comb += sends.eq(r.rst_due | r.syn_due | r.ack_due | r.keepalive | dut.text)
        with m.If(done):
            m.d.comb += Assert(port.result.ack_wait == (r.ack_wait & ~sends))
        sent = Signal()
        m.d.sync += sent.eq(done & sends)
        with m.If(sent):
            m.d.comb += [
                Assert(o.valid & (o.payload.window == told[:16])),
                Assert(o.payload.scaled == (r.syn_due & r.scaled)),
                Cover(r.syn_due & o.payload.scaled & (told == 65535)),
                Cover(~r.syn_due & r.scaled & (o.payload.window == 1 << 15)),
            ]
        # RFC 2018, 2 and 3: in SYNs that it is permitted; in pure ACKs what is kept.
        silent = ~r.rst_due & ~r.syn_due & (o.payload.length == 0) & ~o.payload.flags.fin
        tells = silent & r.sack & (r.kept != 0)
        places = Cat(r[name] for names in run_names(config) for name in names)
        with m.If(sent):
            m.d.comb += [
                Assert(o.payload.blocks == Mux(tells, r.kept, 0)),
                Assert(~tells | (o.payload.places == places)),
                Assert(~r.syn_due | (o.payload.permits == r.sack)),
                Cover(o.payload.blocks == 2),
            ]
        m.d.comb += Cover(lent & (held == 2) & (theirs == MOST) & (r.cwnd == MOST))
        return m


PROOFS = (
    Proof(
        name="tcp_windows_receive",
        core="cores.tcp.receive.ReceiveEngine (every option)",
        says="what a segment makes of the fields that options add is what RFC 7323 and 5681 say",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: ReceiveProof(cores.ReceiveEngine(ALL)),
        depth=1,
        cover_depth=17,
        mutants=(
            Mutant("same_digits", "other |= r.snd_plain", "other |= 0", 17, where=UPDATE),
            Mutant(
                "gaps_can_wait",
                "w.ack_now.eq(r.ack_now | (r.kept != 0))",
                "w.ack_now.eq(0)",
                17,
                where=UPDATE,
            ),
            Mutant("always_plain", "w.snd_plain.eq(0)", "w.snd_plain.eq(1)", 17, where=UPDATE),
        ),
        assumes="a segment stays until it is taken; nothing of the record or the judgement",
        not_proved="a reset while running; the other fields (tcp_receive_all)",
    ),
    Proof(
        name="tcp_windows_transmit",
        core="cores.tcp.transmit.TransmitEngine(2 sessions, scaling, delayed ACKs, SACK)",
        says="windows are shifted both ways, but for those of SYNs, in time; an ACK that "
        "waits goes with what is sent; pure ACKs tell what is kept",
        module="trebuchet.cores.tcp.transmit",
        build=lambda cores: TransmitProof(cores.TransmitEngine(TRANSMIT)),
        depth=2,
        cover_depth=10,
        mutants=(
            Mutant(
                "shifts_a_syn",
                "Mux(r.scaled & ~r.syn_due, gap >> self.config.shift, gap)",
                "Mux(r.scaled, gap >> self.config.shift, gap)",
                9,
            ),
            Mutant(
                "shifts_a_syns_window",
                "Mux(record.scaled & ~record.snd_plain, record.snd_shift, 0)",
                "Mux(record.scaled, record.snd_shift, 0)",
                9,
                where="trebuchet.cores.tcp.record",
            ),
            Mutant("blocks_with_data", "(self.length == 0) & ~self.fin", "~self.fin", 14),
            Mutant(
                "acks_once_more",
                "w.ack_wait.eq(0)",
                "w.ack_wait.eq(r.ack_wait)",
                9,
                context="r, w, o = self.port.record, self.w, self.tx_segment",
            ),
        ),
        assumes="the store lends any record after any wait, the same each time",
        not_proved="what is sent (tcp_transmit_next); a reset while running",
    ),
)
