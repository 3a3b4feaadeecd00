"""Proofs of the UDP services in ``cores/net/udp_echo.py``.

*Echo*: each beat goes into the buffer as it came; at a datagram's end, exactly one of these
happens, and is counted: it is kept, because it is not too long, not damaged, as many bytes as it
says, from a port that is no service's, and because each of its beats and its answer had room; or
all of it is taken back, for the first reason of the data sheet's order. With what is kept goes one
answer: the sender's address and port, and the bytes counted one by one. On the way out each
datagram is sent to the head of the queue of answers, which stays for all of it and is used up with
its last beat, and the stream rules hold.

The buffer (``rollback_fifo_4`` proves it) and the queue of answers (Amaranth's) are replaced by
anything that keeps their handshakes, which is more than they do.

*Discard*: takes a beat every cycle; the counters are those of the datagrams that came.

Not proved: the buffer and the queue; behaviour under a reset while running.
"""

from amaranth.hdl import Assert, Assume, Cat, Cover, Elaboratable, Mux, Signal, Value
from amaranth.lib import data

from .proof import Mutant, Proof
from .standins import elaborated, only_part
from .stream import free, new_harness, stream_rules

__all__ = ["PROOFS"]

ANSWER = data.StructLayout({"ip": 32, "port": 16, "length": 16})
FIRST_CLIENT_PORT = 1024


class EchoProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        inner = elaborated(dut)
        fifo, answers = inner.submodules.fifo, inner.submodules.answers
        only_part(fifo)
        only_part(answers)
        free(m, dut.rx.valid, dut.rx.payload, dut.rx_ip, dut.rx_port, dut.rx_length, dut.tx.ready)
        free(m, fifo.full, fifo.output.valid, fifo.output.payload)
        free(m, answers.w_rdy, answers.r_rdy, answers.r_data)
        m.d.comb += [
            Assert(dut.rx.ready),
            Assert(fifo.depth * (dut.width // 8) == dut.buffer_bytes),
        ]
        stream_rules(m, dut.rx, Assume, "rx")
        self._receive(m, fifo, answers)
        self._answer(m, fifo.output, answers)
        return m

    def _receive(self, m, fifo, answers):
        dut, n, beat, valid = self.dut, self.dut.width // 8, self.dut.rx.payload, self.dut.rx.valid
        # Bytes of the datagram so far; they are counted up to one more than can be said.
        so_far, size = Signal(18), Signal(18)
        m.d.comb += size.eq(so_far + n - beat.empty)
        written, ended, late = Signal(), Signal(), Signal(beat.shape())
        answer, bad, overlong = Signal(ANSWER), Signal(), Signal()
        m.d.sync += [written.eq(valid), ended.eq(valid & beat.last), late.eq(beat)]
        with m.If(valid):
            m.d.sync += [
                so_far.eq(Mux(beat.last, 0, Mux(so_far >= 1 << 16, 1 << 16, so_far + n))),
                answer.ip.eq(dut.rx_ip),
                answer.port.eq(dut.rx_port),
                answer.length.eq(size),
                overlong.eq(size > dut.max_payload),
                bad.eq(beat.error | (size != dut.rx_length) | (dut.rx_port < FIRST_CLIENT_PORT)),
            ]
        lost_before, lost = Signal(), Signal()
        m.d.comb += lost.eq(lost_before | (written & fifo.full))
        m.d.sync += lost_before.eq(lost & ~ended)
        keep = ended & ~overlong & ~bad & ~lost & answers.w_rdy
        m.d.comb += [
            Assert(fifo.w_en == written),
            Assert(fifo.commit == keep),
            Assert(fifo.rollback == (ended & ~keep)),
            Assert(answers.w_en == keep),
        ]
        with m.If(written):
            for name in ("data", "empty", "last"):
                m.d.comb += Assert(fifo.w_data[name] == late[name])
        with m.If(keep):
            m.d.comb += Assert(answers.w_data == Value.cast(answer))

        seen = []
        for name, event in {
            "datagrams": keep,
            "overlong": ended & overlong,
            "errors": ended & ~overlong & bad,
            "overflow": ended & ~overlong & ~bad & (lost | ~answers.w_rdy),
        }.items():
            count = Signal(32, name=f"{name}_count")
            m.d.sync += count.eq(count + event)
            m.d.comb += Assert(getattr(dut.csr, name) == count)
            seen.append(count != 0)
        m.d.comb += Cover(Cat(seen).all() & keep & ~late.first)
        m.d.comb += Cover(keep & (answer.length == dut.max_payload))

        # Invariants.
        m.d.comb += [
            Assert(dut.count == so_far),
            Assert(dut.lost == lost_before),
            Assert((so_far & (n - 1)) == 0),
            Assert(so_far <= 1 << 16),
        ]

    def _answer(self, m, source, answers):
        dut, tx = self.dut, self.dut.tx
        stream_rules(m, source, Assume, "source")
        held, head = Signal(), Signal(ANSWER)  # the head of a queue stays until it is taken
        m.d.sync += [held.eq(answers.r_rdy & ~answers.r_en), head.eq(answers.r_data)]
        m.d.comb += [
            Assume(~held | (answers.r_rdy & (answers.r_data == Value.cast(head)))),
            Assume(source.payload.last | (source.payload.empty == 0)),
        ]
        begins = stream_rules(m, tx, Assert, "tx")
        to = data.View(ANSWER, answers.r_data)
        moves = tx.valid & tx.ready
        m.d.comb += [
            Assert(tx.valid == (source.valid & answers.r_rdy)),
            Assert(moves == (source.valid & source.ready)),
            Assert(answers.r_en == (moves & source.payload.last)),
        ]
        with m.If(tx.valid):
            for name in ("data", "empty", "last"):
                m.d.comb += Assert(tx.payload[name] == source.payload[name])
            m.d.comb += [Assert(~tx.payload.error), Assert(tx.payload.first == begins)]
            for name in ("ip", "port", "length"):
                m.d.comb += Assert(getattr(dut, f"tx_{name}") == to[name])
        m.d.comb += Cover(moves & tx.payload.last & ~tx.payload.first & (to.port != 0))
        m.d.comb += Assert(dut.first == begins)  # invariant


class DiscardProof(Elaboratable):
    def __init__(self, dut):
        self.dut = dut

    def elaborate(self, platform):
        m = new_harness()
        m.submodules.dut = dut = self.dut
        elaborated(dut)
        beat, valid, n = dut.rx.payload, dut.rx.valid, dut.width // 8
        free(m, valid, beat)
        stream_rules(m, dut.rx, Assume, "rx")
        m.d.comb += Assert(dut.rx.ready)
        so_far = Signal(16)
        ended, error, size = Signal(), Signal(), Signal(16)
        m.d.sync += [ended.eq(valid & beat.last), error.eq(beat.error)]
        with m.If(valid):
            m.d.sync += so_far.eq(Mux(beat.last, 0, so_far + n))
            m.d.sync += size.eq(so_far + n - beat.empty)
        total = Signal(32)
        good, bad = Signal(32), Signal(32)
        with m.If(ended & error):
            m.d.sync += bad.eq(bad + 1)
        with m.Elif(ended):
            m.d.sync += [good.eq(good + 1), total.eq(total + size)]
        csr = dut.csr
        m.d.comb += [
            Assert(csr.datagrams == good),
            Assert(csr.errors == bad),
            Assert(csr.octets == total),
            Cover((good == 2) & (bad == 1) & (total == 10)),
        ]
        # Invariants.
        strobes_good, strobes_bad, octets = dut.strobes
        m.d.comb += [
            Assert(dut.count == so_far),
            Assert(strobes_good == (ended & ~error)),
            Assert(strobes_bad == (ended & error)),
            Assert(~ended | (octets == size)),
        ]
        return m


PROOFS = (
    Proof(
        name="udp_echo",
        core="cores.net.udp_echo.UdpEcho(32, 64, 9)",
        says="a datagram is kept whole, with its answer, or taken back for its reason; each counts",
        module="trebuchet.cores.net.udp_echo",
        build=lambda cores: EchoProof(cores.UdpEcho(32, 64, 9)),
        depth=2,
        cover_depth=20,
        mutants=(
            Mutant("ignores_length", "| (total != self.rx_length)", ""),
            Mutant("forgets_the_gap", "full.eq(lost & ~ended)", "full.eq(0)"),
            Mutant("answers_services", "self.rx_port[10:] == 0", "self.rx_port[12:] == 0"),
            Mutant("keeps_too_long", "total > self.max_payload", "total > self.max_payload + 1"),
        ),
        assumes="the stream rules on the input; handshakes of buffer and queue",
        not_proved="the buffer (rollback_fifo_4) and Amaranth's SyncFIFO",
    ),
    Proof(
        name="udp_discard",
        core="cores.net.udp_echo.UdpDiscard(32)",
        says="takes a beat every cycle; datagrams, bytes and damaged ones are counted",
        module="trebuchet.cores.net.udp_echo",
        build=lambda cores: DiscardProof(cores.UdpDiscard(32)),
        depth=2,
        cover_depth=14,
        mutants=(
            Mutant("counts_damaged", "Mux(good, octets, 0)", "octets"),
            Mutant("counts_bad_as_good", "good.eq(ended & ~beat.error)", "good.eq(ended)"),
            Mutant("forgets_the_rest", "count.eq(Mux(beat.last, 0, total))", "count.eq(0)"),
        ),
    ),
)
