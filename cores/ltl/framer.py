"""The framer: Ethernet, IPv4, UDP and LTL headers, payload from the store, CRC.

Sources: IEEE 802.3 clause 3, RFC 791, RFC 768, docs/network.md (LTL).
"""

from enum import IntEnum

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..crc import CRC_INIT, crc_step
from ..stream import PacketSignature
from .config import CRC_FROM, HEADER_BYTES, TRAILER_BYTES, VERSION, Kind

__all__ = ["Framer"]

_TTL = 64


class Beat(IntEnum):
    """What a beat of a frame is."""

    HEADER = 0
    PAYLOAD = 1
    CRC = 2
    ZERO = 3


class Framer(wiring.Component):
    """Turns frames to send into bytes.

    ==============  ====  =====================================================================
    ``control``     In    ACK frames; they go first
    ``frames``      In    DATA and PROBE frames
    ``paused``      In    begin no frame of ``frames``
    ``tx``          Out   whole Ethernet frames without FCS
    ``peer_en``     In    for one cycle: ``peer`` is the other end of connection
    ``peer_addr``   In    ``peer_addr`` (its top bit 1: of the receive table)
    ``peer``        In
    ``kill``        In    for one cycle: the store's slots of send connection
    ``killed``      In    ``killed`` are free: a DATA frame of it under way gets a wrong CRC
    ``store_addr``  Out   read port of the store: slot and beat
    ``store_en``    Out
    ``store_data``  In    one cycle after ``store_en``, then stable until the next
    ``mac``         In    our address, first byte on the wire in bits 7..0
    ``ip``          In    our address as a number
    ``port``        In    UDP port that frames are sent from
    ``dscp``        In    DSCP of every frame
    ``started``     Out   for one cycle: a header was generated (its first beat is in ``tx``)
    ==============  ====  =====================================================================

    *Latency*: 9 cycles from a frame to the first beat of ``tx``. *Throughput*: one beat a cycle;
    DATA frames with 8 beats of payload or more follow each other without a gap, since the next
    header is prepared while payload is sent; after a shorter one there are up to 8 idle cycles.
    *Back-pressure*: ``tx`` may wait at will. *Reset*: idle; a frame under way is cut.
    """

    def __init__(self, config):
        self.config = config
        connection = config.connection_layout
        super().__init__(
            {
                "control": In(stream.Signature(config.frame_layout)),
                "frames": In(stream.Signature(config.frame_layout)),
                "paused": In(1),
                "tx": Out(PacketSignature(config.width)),
                "peer_en": In(1),
                "peer_addr": In(connection.width + 1),
                "peer": In(config.peer_layout),
                "kill": In(1),
                "killed": In(connection),
                "store_addr": Out(config.slot_layout.width + config.slot_bits),
                "store_en": Out(1),
                "store_data": In(config.width),
                "mac": In(48),
                "ip": In(32),
                "port": In(16),
                "dscp": In(6),
                "started": Out(1),
            }
        )

    # Two engines: one fetches the peer and sums the IPv4 header, the other sends. The second
    # lets the first go when it has sent the header. Sending is a pipeline of four stages that
    # move together: where we are (`at`), the store's latch beside the header's beat, the beat,
    # `tx` beside the CRC.
    def elaborate(self, platform):
        m = Module()
        config = self.config
        m.submodules.peers = peers = Memory(
            shape=config.peer_layout,
            depth=2 << config.connection_layout.width,
            init=[],
            attrs={"ram_style": "block"},
        )
        write = peers.write_port()
        self.peers, self.write = peers, write
        m.d.comb += [
            write.en.eq(self.peer_en),
            write.addr.eq(self.peer_addr),
            Value.cast(write.data).eq(Value.cast(self.peer)),
        ]
        self.frame = Signal(config.frame_layout)
        self.peer_held, self.check = Signal(config.peer_layout), Signal(16)
        self.length = Signal(12)  # of payload and padding
        ready, start, done, poison = Signal(), Signal(), Signal(), Signal()
        self._prepare(m, peers.read_port(), ready, start, done, poison)
        self._send(m, ready, start, done, poison)
        return m

    def _hit(self, frame):
        return self.kill & (frame.kind == Kind.DATA) & (frame.connection == self.killed)

    def _prepare(self, m, read, ready, start, done, poison):
        frame, peer = self.frame, self.peer_held
        partial, other, total = Signal(18), Signal(18), Signal(20)
        folded = Signal(17)
        self.sums = (partial, other, total, folded)
        self.poison = poison
        chosen = Mux(self.control.valid, self.control.payload.as_value(), self.frames.payload)
        with m.If(self._hit(frame)):
            m.d.sync += poison.eq(1)
        with m.FSM(name="prepare") as self.fsm:
            with m.State("IDLE"):
                go = Signal()
                m.d.comb += [
                    self.control.ready.eq(1),
                    self.frames.ready.eq(~self.control.valid & ~self.paused),
                    go.eq(self.control.valid | (self.frames.valid & ~self.paused)),
                ]
                connection = data.View(self.config.frame_layout, chosen).connection
                m.d.comb += read.addr.eq(Cat(connection, self.control.valid))
                m.d.sync += [
                    frame.as_value().eq(chosen),
                    poison.eq(self.kill & ~self.control.valid & (connection == self.killed)),
                ]
                with m.If(go):
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.d.sync += peer.eq(read.data)
                m.d.sync += self.length.eq(Cat(C(0, 3), (frame.length + 7)[3:]))
                m.next = "SUM"
            with m.State("SUM"):
                m.d.sync += [
                    partial.eq(peer.ip[:16] + peer.ip[16:] + 0x4000 + ((_TTL << 8) | 17)),
                    other.eq(self.ip[:16] + self.ip[16:] + 0x4500 + self.length),
                ]
                m.next = "ADD"
            with m.State("ADD"):
                m.d.sync += total.eq(partial + other + 50 + self._tos())
                m.next = "FOLD"
            with m.State("FOLD"):
                m.d.sync += folded.eq(total[:16] + total[16:])
                m.next = "CHECK"
            with m.State("CHECK"):
                m.d.sync += self.check.eq(~(folded[:16] + folded[16]))
                m.next = "READY"
            with m.State("READY"):
                m.d.comb += ready.eq(1)
                with m.If(start):
                    m.next = "HEADER"
            with m.State("HEADER"):
                with m.If(done):
                    m.next = "IDLE"

    def _send(self, m, ready, start, done, poison):
        n = self.config.bytes
        header_beats, trailer_beats = HEADER_BYTES // n, TRAILER_BYTES // n
        step, active, at = Signal(), Signal(), Signal(range(header_beats + 1))
        index, left = Signal(self.config.slot_bits + 1), Signal(9)  # payload beats
        trailer = Signal(range(trailer_beats + 1))
        slot, bad = Signal(self.config.slot_layout), Signal()
        data_of = Signal(self.config.connection_layout)
        is_data = Signal()
        beat, last, crc_bad = Signal(Beat), Signal(), Signal()
        in_header, ends = Signal(), Signal()
        self.active, self.at, self.index, self.left = active, at, index, left
        self.trailer, self.slot, self.bad = trailer, slot, bad
        self.data_of, self.is_data = data_of, is_data
        m.d.comb += [
            step.eq(~self.tx.valid | self.tx.ready),
            in_header.eq(at != header_beats),
            beat.eq(Mux(in_header, Beat.HEADER, Mux(left != 0, Beat.PAYLOAD, Beat.CRC))),
            ends.eq(~in_header & (left == 0) & (trailer == trailer_beats - 1)),
            last.eq(ends),
            start.eq(step & ready & (~active | ends)),
            done.eq(step & active & (at == header_beats - 1)),
        ]
        with m.If(trailer != 0):
            m.d.comb += beat.eq(Beat.ZERO)
        m.d.comb += crc_bad.eq(bad)
        with m.If(step & active):
            with m.If(in_header):
                m.d.sync += at.eq(at + 1)
            with m.Elif(left != 0):
                m.d.sync += [left.eq(left - 1), index.eq(index + 1)]
            with m.Else():
                m.d.sync += trailer.eq(trailer + 1)
            with m.If(ends):
                m.d.sync += active.eq(0)
        killed = self.kill & is_data & (data_of == self.killed)
        with m.If(killed):
            m.d.sync += bad.eq(1)
        with m.If(start):
            m.d.sync += [
                active.eq(1),
                at.eq(0),
                trailer.eq(0),
                index.eq(0),
                left.eq(self.length[(n - 1).bit_length() :]),
                slot.eq(self.frame.slot),
                data_of.eq(self.frame.connection),
                is_data.eq(self.frame.kind == Kind.DATA),
                bad.eq(poison | self._hit(self.frame)),
            ]
        # Which bytes of a payload beat are message, the rest is padding.
        count, keep = self.frame.length, Signal(n)
        whole = Signal(12)
        length = Signal(11)
        self.message = length
        with m.If(start):
            m.d.sync += length.eq(count)
        m.d.comb += whole.eq(index << (n - 1).bit_length())
        m.d.comb += keep.eq(Cat(whole + i < length for i in range(n)))
        m.d.comb += [self.store_en.eq(step), self.store_addr.eq(Cat(index[:-1], slot))]
        self._pipeline(m, step, active, at, beat, last, crc_bad, keep)

    def _pipeline(self, m, step, active, at, beat, last, crc_bad, keep):
        n, width = self.config.bytes, self.config.width
        layout = data.StructLayout(
            {"valid": 1, "beat": Beat, "last": 1, "first": 1, "bad": 1, "crc": 1, "data": width}
        )
        one, two = Signal(layout), Signal(layout)
        keep_one = Signal(n)
        crc, tx = Signal(32), self.tx.payload
        self.one, self.two, self.keep_one, self.crc = one, two, keep_one, crc
        after = crc_step(m, crc, two.data, "tx_crc")
        mask = Cat(bit.replicate(8) for bit in keep_one)
        with m.If(step):
            m.d.sync += [
                one.valid.eq(active),
                one.beat.eq(beat),
                one.last.eq(last),
                one.first.eq((at == 0) & (beat == Beat.HEADER)),
                one.bad.eq(crc_bad),
                one.crc.eq((beat == Beat.PAYLOAD) | (at >= CRC_FROM // n)),
                one.data.eq(self._header(m, at)),
                keep_one.eq(keep),
                two.eq(one),
            ]
            with m.If(one.beat == Beat.PAYLOAD):
                m.d.sync += two.data.eq(self.store_data & mask)
            with m.Elif(one.beat != Beat.HEADER):
                m.d.sync += two.data.eq(0)
            m.d.sync += [
                self.tx.valid.eq(two.valid),
                tx.first.eq(two.first),
                tx.last.eq(two.last),
                tx.data.eq(two.data),
            ]
            with m.If(two.beat == Beat.CRC):
                m.d.sync += tx.data.eq(Mux(two.bad, crc, ~crc))
            with m.If(two.valid):
                m.d.sync += crc.eq(Mux(two.crc, after, C(CRC_INIT, 32)))
        m.d.comb += self.started.eq(step & two.valid & two.first)

    def _tos(self):
        """ECT(0) for what may be marked, not-ECT for the answers (RFC 3168, section 5)."""
        return Cat(C(0, 1), self.frame.kind == Kind.DATA, self.dscp)

    def _header(self, m, at):
        """The header's beat number ``at``."""
        n, frame, peer = self.config.bytes, self.frame, self.peer_held

        def network(value, octets):
            value = Cat(value, C(0, 8 * octets))[: 8 * octets]
            return [value.word_select(i, 8) for i in reversed(range(octets))]

        def wire(value):  # already in wire order
            return [value.word_select(i, 8) for i in range(len(value) // 8)]

        octets = [
            *wire(peer.mac),
            *wire(self.mac),
            *(C(b, 8) for b in (0x08, 0x00, 0x45)),
            self._tos(),
            *network(self.length + 50, 2),
            *(C(b, 8) for b in (0, 0, 0x40, 0, _TTL, 17)),
            *network(self.check, 2),
            *network(self.ip, 4),
            *network(peer.ip, 4),
            *network(self.port, 2),
            *network(peer.port, 2),
            *network(self.length + 30, 2),
            *(C(0, 8), C(0, 8)),
            Cat(frame.kind, C(0, 2), C(VERSION, 4)),
            Cat(frame.nack, frame.cnp, C(0, 6)),
            *network(peer.remote, 2),
            *network(peer.incarnation, 2),
            *network(frame.seq, 4),
            *network(frame.length, 2),
            *network(frame.credit, 2),
        ]
        assert len(octets) == HEADER_BYTES
        header = Signal(self.config.width)
        with m.Switch(at):
            for first in range(0, len(octets), n):
                with m.Case(first // n):
                    m.d.comb += header.eq(Cat(*octets[first : first + n]))
        return header
