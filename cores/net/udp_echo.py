"""UDP services in gateware: echo (port 7, RFC 862) and discard (port 9, RFC 863).

They sit behind a user port of LiteEth's UDP core (``udp.crossbar.get_port(7, dw=32)``); the
sideband members carry that port's parameters. ``soc/`` turns ``last_be`` into ``empty`` and back.
"""

from amaranth import Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, RegisterBlock, counter
from ..stream import PacketSignature, check_data_width
from .rollback_fifo import RollbackFifo

__all__ = ["DISCARD_BLOCK", "ECHO_BLOCK", "UdpDiscard", "UdpEcho"]

ECHO_BLOCK = RegisterBlock(
    "udp_echo",
    (
        counter("datagrams", "datagrams echoed"),
        counter("errors", "datagrams dropped: damaged, or not as long as they say"),
        counter("overlong", "datagrams dropped: longer than the service takes"),
        counter("overflow", "datagrams dropped: no room while earlier ones wait"),
    ),
    "UDP echo service",
)

DISCARD_BLOCK = RegisterBlock(
    "udp_discard",
    (
        counter("datagrams", "datagrams taken and thrown away"),
        counter("octets", "bytes in them"),
        counter("errors", "datagrams that came damaged"),
    ),
    "UDP discard service",
)


class UdpEcho(wiring.Component):
    """Sends each datagram back to where it came from.

    =============  ====  =============  ===========================================================
    member         dir   width          meaning
    =============  ====  =============  ===========================================================
    ``rx``         In    packet stream  payload of a datagram; ``ready`` is always 1
    ``rx_ip``      In    32             sender's address (LiteEth ``ip_address``), during the packet
    ``rx_port``    In    16             sender's port (LiteEth ``src_port``), during the packet
    ``rx_length``  In    16             payload bytes (LiteEth ``length``), during the packet
    ``tx``         Out   packet stream  payload of the answer; ``error`` is 0
    ``tx_ip``      Out   32             where to, steady during the packet
    ``tx_port``    Out   16             LiteEth ``dst_port``, steady during the packet; ``src_port``
                                        is the service's own and tied by the integrator
    ``tx_length``  Out   16             payload bytes, steady during the packet
    ``csr``        In    CsrSignature   counters, :data:`ECHO_BLOCK`
    =============  ====  =============  ===========================================================

    A datagram is stored whole before it is answered. It is dropped, and counted under the first of
    these, if it is longer than ``max_payload``, if it came with ``error`` or its bytes are not
    ``rx_length``, if the buffer or the queue of answers has no room. Datagrams without payload do
    not exist on a packet stream. Echoing to port 7 or 9 or another service of that kind would go
    round for ever, so datagrams from ports below 1024 are not echoed and count as errors.

    *Throughput*: one beat a cycle in, one out. *Latency*: four cycles from the last beat in to the
    first out. *Back-pressure*: ``rx`` never waits. Reset drops everything.

    Parameters
    ----------
    width : int
        Data path in bits.
    buffer_bytes : int
        Room for payloads, a power of two.
    max_payload : int
        Longest payload echoed; no more than ``buffer_bytes``.
    """

    def __init__(self, width=32, buffer_bytes=2048, max_payload=1472):
        self.width = check_data_width(width)
        if (
            not isinstance(buffer_bytes, int)
            or buffer_bytes < 64
            or buffer_bytes & (buffer_bytes - 1)
        ):
            raise ValueError(
                f"UDP echo buffer_bytes must be a power of two of at least 64, not {buffer_bytes!r}"
            )
        if not isinstance(max_payload, int) or not 1 <= max_payload <= buffer_bytes:
            raise ValueError(
                f"UDP echo max_payload must be 1 to {buffer_bytes}, not {max_payload!r}"
            )
        self.buffer_bytes = buffer_bytes
        self.max_payload = max_payload
        super().__init__(
            {
                "rx": In(PacketSignature(width)),
                "rx_ip": In(32),
                "rx_port": In(16),
                "rx_length": In(16),
                "tx": Out(PacketSignature(width)),
                "tx_ip": Out(32),
                "tx_port": Out(16),
                "tx_length": Out(16),
                "csr": In(CsrSignature(ECHO_BLOCK)),
            }
        )

    def elaborate(self, platform):
        # Beats go through a register into a buffer that can take them back. While a last beat is
        # being written, the comparisons registered beside it say whether to keep the datagram.
        m = Module()
        n = self.width // 8
        layout = data.StructLayout({"data": self.width, "empty": range(n), "last": 1})
        answer = data.StructLayout({"ip": 32, "port": 16, "length": 16})
        m.submodules.fifo = fifo = RollbackFifo(layout, self.buffer_bytes // n)
        m.submodules.answers = answers = SyncFIFO(width=answer.size, depth=8)

        beat = self.rx.payload
        m.d.comb += self.rx.ready.eq(1)
        count, total = Signal(17), Signal(17)
        ended, damaged, header = Signal(), Signal(), Signal(answer)
        m.d.comb += total.eq(count + n - beat.empty)
        m.d.sync += ended.eq(self.rx.valid & beat.last)
        with m.If(self.rx.valid):
            m.d.sync += [
                count.eq(Mux(beat.last, 0, Mux(count[16], count, count + n))),
                header.length.eq(total),
                header.ip.eq(self.rx_ip),
                header.port.eq(self.rx_port),
                damaged.eq(beat.error | (total != self.rx_length) | (self.rx_port[10:] == 0)),
            ]
        overlong, full = Signal(), Signal()
        m.d.sync += overlong.eq(total > self.max_payload)
        word, write = Signal(layout), Signal()
        m.d.sync += [
            write.eq(self.rx.valid),
            word.data.eq(beat.data),
            word.empty.eq(beat.empty),
            word.last.eq(beat.last),
        ]
        self.count, self.lost = count, full  # for the invariants of the proofs, like those below
        lost = full | (fifo.w_en & fifo.full)
        m.d.sync += full.eq(lost & ~ended)
        keep = Signal()
        good = ended
        for name, reason in (
            ("overlong", overlong),
            ("errors", damaged),
            ("overflow", lost | ~answers.w_rdy),
        ):
            register = getattr(self.csr, name)
            m.d.sync += register.eq(register + (good & reason))
            good = good & ~reason
        m.d.comb += [
            keep.eq(good),
            fifo.w_data.eq(word),
            fifo.w_en.eq(write),
            fifo.commit.eq(keep),
            fifo.rollback.eq(ended & ~keep),
            answers.w_en.eq(keep),
            answers.w_data.eq(header.as_value()),
        ]
        m.d.sync += self.csr.datagrams.eq(self.csr.datagrams + keep)
        self._answer(m, fifo.output, answers, answer)
        return m

    def _answer(self, m, source, answers, layout):
        first, to, out = Signal(init=1), Signal(layout), self.tx.payload
        self.first = first
        m.d.comb += [
            to.eq(answers.r_data),
            self.tx.valid.eq(source.valid & answers.r_rdy),
            source.ready.eq(self.tx.ready & answers.r_rdy),
            out.data.eq(source.payload.data),
            out.empty.eq(source.payload.empty),
            out.first.eq(first),
            out.last.eq(source.payload.last),
            self.tx_ip.eq(to.ip),
            self.tx_port.eq(to.port),
            self.tx_length.eq(to.length),
            answers.r_en.eq(self.tx.valid & self.tx.ready & out.last),
        ]
        with m.If(self.tx.valid & self.tx.ready):
            m.d.sync += first.eq(out.last)


class UdpDiscard(wiring.Component):
    """Takes datagrams at one beat a cycle, for ever, and counts them.

    ==========  ====  =============  ==========================================
    member      dir   width          meaning
    ==========  ====  =============  ==========================================
    ``rx``      In    packet stream  payload; ``ready`` is always 1
    ``csr``     In    CsrSignature   counters, :data:`DISCARD_BLOCK`
    ==========  ====  =============  ==========================================

    A damaged datagram counts in ``errors`` only.
    """

    def __init__(self, width=32):
        self.width = check_data_width(width)
        super().__init__({"rx": In(PacketSignature(width)), "csr": In(CsrSignature(DISCARD_BLOCK))})

    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        beat, count, total = self.rx.payload, Signal(16), Signal(16)
        good, bad, octets = Signal(), Signal(), Signal(16)
        self.count, self.strobes = count, (good, bad, octets)
        ended = self.rx.valid & beat.last
        m.d.comb += [self.rx.ready.eq(1), total.eq(count + n - beat.empty)]
        with m.If(self.rx.valid):
            m.d.sync += count.eq(Mux(beat.last, 0, total))
        m.d.sync += [
            good.eq(ended & ~beat.error),
            bad.eq(ended & beat.error),
            octets.eq(total),
            self.csr.datagrams.eq(self.csr.datagrams + good),
            self.csr.errors.eq(self.csr.errors + bad),
            self.csr.octets.eq(self.csr.octets + Mux(good, octets, 0)),
        ]
        return m
