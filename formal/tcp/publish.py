"""Proofs of ``cores/tcp/publish.py``: what a note of written data does to any session record.

For an arbitrary note and an arbitrary record, every field handed back is compared with what the
service port's contract and RFC 9293, 3.10.7.4 (eighth) ask for: RCV.PUB moves to the end of what is
in memory, text and FIN are told and acknowledged, and the FIN takes the session to CLOSE-WAIT,
CLOSING or, if ours is acknowledged, TIME-WAIT with its deadline. With segments larger than a window
the edge moves as well. Each note is taken once, with the record of its own session.

Not proved: a reset while running; that a granted record comes (the store's part).
"""

from amaranth.hdl import Assert, Assume, Cover, Elaboratable, Mux, Signal
from trebuchet.cores.tcp.config import TcpConfig

from ..kit.proof import Mutant, Proof
from ..stream import free, new_harness, stream_rules
from .checkout import OPEN, TIME_WAIT, Checkout, signed, steady

__all__ = ["PROOFS"]

PLAIN = TcpConfig(sessions=2, ports=(7,), segment_log2=12)
SLIDING = TcpConfig(sessions=2, ports=(7,), segment_log2=17)
DELAY = TcpConfig(sessions=2, ports=(7,), segment_log2=12, ack_delay=40)
SCALING = TcpConfig(sessions=2, ports=(7,), segment_log2=20, scaling=True)


class PublishProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        config, note = dut.config, dut.written.payload
        lent = Checkout(m, dut.port, longest=2 if config.sliding else 0)
        r = lent.record
        free(m, dut.written.valid, dut.written.payload, dut.settings)
        stream_rules(m, dut.written, Assume, "written")
        steady(m, dut.settings, lent.lent)
        m.d.comb += lent.put(rcv_pub=note.end)
        with m.If(lent.phase == OPEN):
            m.d.comb += lent.put(ack_due=1, ev_data=r.ev_data | note.text)
            with m.If(note.fin):
                m.d.comb += lent.put(fin_told=1, ev_eof=1, passive=~r.fin_queued)
            with m.If(note.fin & r.fin_acked):
                deadline = lent.now + dut.settings.time_wait
                m.d.comb += lent.put(phase=TIME_WAIT, deadline=deadline, ev_closed=1, ok=1)
        if config.sliding:
            self._edge(m, lent, note)
        if config.ack_delay:
            self._delay(m, lent, note)
        lent.compare()
        with m.If(lent.done):
            m.d.comb += [Assert(dut.written.valid), Assert(lent.session == note.session)]
        m.d.comb += [
            Assert(dut.written.ready == lent.done),
            Assert(~dut.written.valid | dut.port.request),
            Cover(lent.done & note.fin & (lent.phase == OPEN) & ~r.fin_acked),
            Cover(lent.done & note.fin & (lent.phase == OPEN) & r.fin_acked),
            Cover(lent.done & note.text & (lent.phase == TIME_WAIT)),
        ]
        return m

    def _delay(self, m, lent, note):
        """RFC 9293, 3.8.6.3, and RFC 5681, 4.2: which ACK may wait, if the next visit is near."""
        r = lent.record
        gap = (r.kept != 0) | r.ack_now
        with m.If(lent.phase == OPEN):
            m.d.comb += lent.put(ack_wait=0, busy=1)
            with m.If(~(gap | note.fin | r.ack_wait) & r.near):
                m.d.comb += lent.put(ack_wait=1, ack_due=r.ack_due)
            with m.If(note.end == r.rcv_nxt):  # nothing of the gap is on its way
                m.d.comb += lent.put(ack_now=0)
        m.d.comb += Cover(lent.done & ~lent.after.ack_due & lent.after.ack_wait)

    def _edge(self, m, lent, note):
        """The window ends where the ring does, or, if it is not scaled, 65,535 bytes on."""
        config, r = self.dut.config, lent.record
        ring, most = Signal(32), Signal(32)
        m.d.comb += [
            Assume((note.end - r.rcv_cons)[:32] <= config.segment_size),
            ring.eq(r.rcv_cons + config.segment_size),
            most.eq(note.end + config.window),
        ]
        with m.If((lent.phase == OPEN) & ~r.fin_seen):
            near = signed(ring - most) < 0
            if config.scaling:
                near |= r.scaled
            m.d.comb += lent.put(rcv_edge=Mux(near, ring, most))
        m.d.comb += Cover(lent.done & (signed(ring - most) < 0) & (note.end < r.rcv_cons))


MUTANTS = (
    Mutant(
        "told_after_the_end",
        "with m.If(r.phase == Phase.OPEN):\n"
        "    m.d.comb += [w.ack_due.eq(1), w.ev_data.eq(r.ev_data | note.text)]\n"
        "    ...",
        "with m.If(1):\n"
        "    m.d.comb += [w.ack_due.eq(1), w.ev_data.eq(r.ev_data | note.text)]\n"
        "    ...",
    ),
    Mutant("text_forgotten", "r.ev_data | note.text", "note.text"),
    Mutant("active_for_passive", "~r.fin_queued", "r.fin_queued"),
    Mutant(
        "time_wait_before_our_fin_is_known", "with m.If(r.fin_acked):", "with m.If(r.fin_queued):"
    ),
    Mutant("deadline_at_once", "w.deadline.eq(self.settings.time_wait)", "w.deadline.eq(0)"),
)
EDGE_MUTANTS = (
    Mutant(
        "edge_from_the_old_place",
        "edge.pub.eq(note.end)",
        "edge.pub.eq(r.rcv_pub)",
        context="r = port.record",
    ),
    Mutant("edge_too_early", "held == WindowEdge.LATENCY", "held == WindowEdge.LATENCY - 1"),
    Mutant(
        "swapped_limits",
        "unread > size - window",
        "unread < size - window",
        where="trebuchet.cores.tcp.window",
    ),
)
DELAY_MUTANTS = (
    Mutant("every_third", "r.near & ~r.ack_wait & ~r.ack_now", "r.near & ~r.ack_now"),
    Mutant("gaps_wait", "~r.ack_now & (r.kept == 0) & ~note.fin", "~r.ack_now & ~note.fin"),
    Mutant("the_end_waits", "(r.kept == 0) & ~note.fin", "r.kept == 0"),
    Mutant(
        "nobody_looks",
        "wait = r.near & ~r.ack_wait & ~r.ack_now & (r.kept == 0) & ~note.fin",
        "wait = ~r.ack_wait & ~r.ack_now & (r.kept == 0) & ~note.fin",
    ),
)
SCALE_MUTANTS = (Mutant("never_scaled", "edge.scaled.eq(r.scaled)", "edge.scaled.eq(0)"),)

PROOFS = tuple(
    Proof(
        name=f"tcp_publish_{name}",
        core=f"cores.tcp.publish.PublishEngine(segments of 2**{config.segment_log2} bytes)",
        says="each note of written data moves RCV.PUB, is told, acknowledged and, with the FIN, "
        "takes the session on as RFC 9293 says; nothing else of the record changes",
        module="trebuchet.cores.tcp.publish",
        build=lambda cores, c=config: PublishProof(cores.PublishEngine(c)),
        depth=depth,
        cover_depth=depth + 2,
        mutants=mutants,
        assumes="the store lends any record after any wait; time and settings stand still while it "
        "is lent" + ("; RCV.PUB is at most a segment ahead of what is consumed" * sliding),
        not_proved="behaviour under a reset while running",
    )
    for name, config, sliding, depth, mutants in (
        ("plain", PLAIN, False, 3, MUTANTS),
        ("sliding", SLIDING, True, 6, EDGE_MUTANTS),
        ("delay", DELAY, False, 3, DELAY_MUTANTS),
        ("scaling", SCALING, True, 6, SCALE_MUTANTS),
    )
)
