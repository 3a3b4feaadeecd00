"""Proofs of the session that a SYN makes: ``cores/tcp/receive.py`` with ``cores/tcp/handshake.py``.

Every field of the new record is that of RFC 9293, 3.10.7.2 (or, of a request to open a session,
3.10.1), RFC 6928 and RFC 6528, for any SYN at any time; and a SYN's options are in it.

Not proved here: when a session is made (``tcp_receive_flow``).
"""

from amaranth.asserts import AnyConst
from amaranth.hdl import Array, Assert, Assume, C, Cover, Elaboratable, Mux, Signal, Value
from trebuchet.cores.tcp.record import Phase, run_names

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness
from .checkout import handed_back
from .classifier import ALL, SMALL
from .receive import ACTIVE, first_of, free_partners, opened

__all__ = ["PROOFS", "MakeProof", "told"]


CONNECT = 2  # kind of input


class MakeProof(Elaboratable):
    """A new session. The segment and the registers stand still, as they do in use."""

    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        dut = opened(m, self.dut)
        port, s, config = dut.port, dut.settings, dut.config
        seg, w = dut.input.payload.body.segment, handed_back(m, port, dut.now)
        free(m, dut.input.valid, port.grant, port.record, dut.now, dut.pool.valid)
        free_partners(m, dut)
        still = [s.as_value(), Value.cast(dut.input.payload.kind)]
        if config.cookies:  # one comes after the other
            free(m, seg)
            past, ended = Signal(len(seg.as_value())), Signal(init=1)
            m.d.sync += [past.eq(seg), ended.eq(dut.input.ready)]
            m.d.comb += Assume(ended | (seg.as_value() == past))
        else:
            still.append(seg.as_value())
        for value in still:
            m.d.comb += value.eq(AnyConst(len(value)))
        asked = Value.cast(dut.input.payload.kind) == CONNECT if config.active else C(0)

        back = dut.good if config.cookies else C(0)  # it is the ACK of a cookie

        # RFC 6528: a clock of its own, and the hash that the table gives.
        clock, iss = Signal(40), Signal(32)
        m.d.sync += clock.eq(clock + 1)
        with m.If(dut.lookup.done & ~port.grant):
            m.d.sync += iss.eq((dut.lookup.hash + clock[8:]) & ~1)  # even
        with m.If(back):
            m.d.sync += iss.eq(seg.ack & ~1)  # which is one more
        mss = Signal(16)
        limited = Mux(seg.mss < config.mss, seg.mss, config.mss)
        m.d.comb += mss.eq(first_of((seg.mss == 0, 536), (seg.mss < 64, 64), limited))
        with m.If(back):
            m.d.comb += mss.eq(told(config, seg.ack))
        first = Mux(asked | back, seg.seq, seg.seq + 1)  # of the stream; a request has none, 0
        want = {name: first for name in ("rcv_base", "rcv_nxt", "rcv_pub", "rcv_cons")}
        want |= {name: iss + 1 for name in ("snd_nxt", "snd_max", "snd_end")}
        want |= {
            "phase": Mux(asked, Phase.SYN_SENT, Phase.SYN_RCVD),
            "opened": asked,
            "ev_open": asked,
            "syn_due": ~back,
            "on_wheel": 1,
            "rcv_edge": first + min(config.segment_size, 65535),
            "snd_una": iss,
            "recover": iss,
            "snd_wnd": seg.window,
            "mss": mss,
            "cwnd": 10 * mss,
            "ssthresh": (1 << config.window_bits - 1) - 1,
            "rto": s.rto_initial,
            "deadline": dut.now + s.rto_initial,
            "progress": dut.now,
        }
        if config.scaling:
            want |= {"scaled": (seg.scaled | asked) & ~back, "snd_shift": seg.scale, "snd_plain": 1}
        if config.sack:
            want["sack"] = (seg.permits | asked) & ~back
        loose = {"segment", "challenge_time", "service"}
        loose |= {name for names in run_names(config) for name in names}
        accepted, granted = Signal(), Signal()
        m.d.sync += granted.eq(port.grant)  # at least a cycle before (tcp_receive_flow)
        m.d.comb += accepted.eq(port.commit & dut.count.accepted & granted)
        with m.If(accepted):
            for name in port.signature.writes:
                if name not in loose:
                    value = Signal(len(Value.cast(w[name])), name=f"want_{name}")
                    m.d.comb += [value.eq(want.get(name, 0)), Assert(Value.cast(w[name]) == value)]
            m.d.comb += Assert(dut.handshake.local == self._heard(s, seg))
            for k in range(len(config.ports)):
                with m.If((self._heard(s, seg) == 1 << k) & ~asked):
                    m.d.comb += Assert(w.service == k)
            m.d.comb += Assert(~asked | (w.service == dut.input.payload.body.connect.service))
            if config.active:
                m.d.comb += Cover(asked)
            if config.cookies:
                m.d.comb += [Cover(back & (mss == 536)), Cover(back & (mss == 1220))]
        m.d.comb += [
            Assert(dut.count.accepted == dut.peer_write),
            Assert((dut.handshake.clock == clock) & (dut.handshake.iss == iss) & ~iss[0]),
            Assert(~dut.peer_write | port.commit),
            *(Assert(dut.peer[name] == seg[name]) for name in dut.peer.shape().members),
            Cover(accepted & (mss == 64)),
            Cover(accepted & (mss == config.mss) & (w.rcv_edge < w.rcv_nxt)),
        ]
        return m

    @staticmethod
    def _heard(s, seg):
        ports = [name for name in s.shape().members if name.startswith("port_")]
        return sum((s.listen[k] & (seg.local_port == s[name])) << k for k, name in enumerate(ports))


def told(config, ack):
    """The MSS that the cookie acknowledged by ``ack`` tells."""
    return Array(min(size, config.mss) for size in (536, 1220, 1440, 1460))[ack[1:3]]


def _in_handshake(name, old, new):
    return Mutant(name, old, new, 18, where="trebuchet.cores.tcp.handshake")


PROOFS = (
    Proof(
        name="tcp_receive_make",
        core="cores.tcp.receive.ReceiveEngine",
        says="a SYN makes a SYN-RECEIVED record of its numbers, a fresh ISS and a bounded MSS",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: MakeProof(cores.ReceiveEngine(SMALL)),
        depth=3,
        cover_depth=18,
        mutants=(
            _in_handshake(
                "counts_no_syn", "seg.seq + (~self.opens if config.active else 1)", "seg.seq"
            ),
            _in_handshake(
                "any_mss", "seg.mss > config.mss, config.mss", "seg.mss < 99, config.mss"
            ),
            _in_handshake("fast_clock", "self.hash + clock[8:]", "self.hash + clock[1:]"),
            _in_handshake(
                "una_past_the_syn",
                "[w[name].eq(self.iss) for name in ('snd_una', 'recover')]",
                "[w[name].eq(self.iss_1) for name in ('snd_una', 'recover')]",
            ),
        ),
        assumes="the segment and the registers stand still (tcp_receive_flow)",
    ),
    Proof(
        name="tcp_receive_connect",
        core="cores.tcp.receive.ReceiveEngine (that can open connections)",
        says="a request makes a SYN-SENT record of the service that it names, a SYN one as before",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: MakeProof(cores.ReceiveEngine(ACTIVE)),
        depth=3,
        cover_depth=18,
        mutants=(
            Mutant(
                "of_the_wrong_service",
                "[w.service.eq(self.service), w.phase.eq(Phase.SYN_SENT)]",
                "[w.phase.eq(Phase.SYN_SENT)]",
                18,
            ),
            Mutant(
                "half_open",
                "[w.service.eq(self.service), w.phase.eq(Phase.SYN_SENT)]",
                "[w.service.eq(self.service), w.phase.eq(Phase.SYN_RCVD)]",
                18,
            ),
            Mutant(
                "tells_nobody",
                "[w.opened.eq(1), w.ev_open.eq(0 if self.config.places else 1)]",
                "[w.opened.eq(1)]",
                14,
            ),
        ),
        assumes="the segment and the registers stand still (tcp_receive_flow)",
    ),
    Proof(
        name="tcp_receive_make_all",
        core="cores.tcp.receive.ReceiveEngine (every option)",
        says="what a SYN's options say is in the record of its session",
        module="trebuchet.cores.tcp.receive",
        build=lambda cores: MakeProof(cores.ReceiveEngine(ALL)),
        depth=3,
        cover_depth=18,
        mutants=(_in_handshake("shifts_syns", "w.snd_plain.eq(1)", "w.snd_plain.eq(0)"),),
        assumes="the segment and the registers stand still (tcp_receive_flow)",
    ),
)
