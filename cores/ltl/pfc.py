"""Priority flow control, IEEE 802.1Qbb, of one class: obeyed and sent.

Source: IEEE 802.1Q-2018, clause 36 and annex 31D of IEEE 802.3 (frame: MAC control, opcode 0101,
class-enable vector, eight times in quanta of 512 bit times).
"""

from amaranth.hdl import C, Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..stream import PacketSignature

__all__ = ["PfcReceiver", "PfcSender"]

_ADDRESS = bytes.fromhex("0180c2000001")
_HEAD = {12: 0x88, 13: 0x08, 14: 0x01, 15: 0x01} | dict(enumerate(_ADDRESS))
_FRAME_BYTES = 60
#: Quanta after which a pause of 65,535 is asked for anew.
_REFRESH = 0x4000


class _Quanta(wiring.Component):
    """Divides the clock: ``tick`` is 1 for one cycle in each quantum."""

    cycles: In(8)
    tick: Out(1)

    def __init__(self):
        super().__init__()
        self.count = Signal(8)

    def elaborate(self, platform):
        m = Module()
        count = self.count
        m.d.comb += self.tick.eq(count + 1 >= self.cycles)
        m.d.sync += count.eq(Mux(self.tick, 0, count + 1))
        return m


class PfcReceiver(wiring.Component):
    """Watches received frames for PFC, and tells whether our class is paused.

    ============  ====  ======================================================================
    ``valid``     In    a beat of a received frame moves
    ``beat``      In    it
    ``priority``  In    our class
    ``quantum``   In    clock cycles of a quantum (512 bit times of the link)
    ``paused``    Out   begin no frame of our class
    ``received``  Out   for one cycle: a good PFC frame has come
    ============  ====  ======================================================================

    ``paused`` follows the frame's last beat by 2 cycles and lasts as long as the frame says; one
    with time 0 ends it. A frame with the error mark, or that does not name our class, changes
    nothing. *Reset*: not paused.
    """

    def __init__(self, width):
        self.width = width
        super().__init__(
            {
                "valid": In(1),
                "beat": In(PacketSignature(width).members["payload"].shape),
                "priority": In(3),
                "quantum": In(8),
                "paused": Out(1),
                "received": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        beats = -(-34 // n)
        at, miss, wrong = Signal(range(beats + 1)), Signal(), Signal()
        enabled, time, left = Signal(), Signal(16), Signal(16)
        m.submodules.quanta = self.quanta = quanta = _Quanta()
        self.at, self.miss, self.left = at, miss, left
        self.enabled, self.time = enabled, time
        m.d.comb += [quanta.cycles.eq(self.quantum), self.paused.eq(left != 0)]
        with m.If(self.valid):
            m.d.sync += [
                at.eq(Mux(self.beat.last, 0, at + (at != beats))),
                miss.eq(~self.beat.last & (miss | wrong)),
            ]
        with m.Switch(at):
            for k in range(beats):
                octets = {k * n + i: self.beat.data[8 * i : 8 * i + 8] for i in range(n)}
                with m.Case(k):
                    terms = [octets[i] != w for i, w in _HEAD.items() if i in octets]
                    m.d.comb += wrong.eq(Cat(*terms).any() if terms else 0)
                    with m.If(self.valid):
                        if 17 in octets:
                            m.d.sync += enabled.eq(octets[17].bit_select(self.priority, 1))
                        for p in range(8):
                            if 18 + 2 * p in octets:
                                with m.If(self.priority == p):
                                    m.d.sync += time.eq(Cat(octets[19 + 2 * p], octets[18 + 2 * p]))
        good = Signal()
        m.d.sync += good.eq(
            self.valid & self.beat.last & ~self.beat.error & ~(miss | wrong) & (at >= beats - 1)
        )
        m.d.comb += self.received.eq(good)
        with m.If(good & enabled):
            m.d.sync += left.eq(time)
        with m.Elif(quanta.tick & self.paused):
            m.d.sync += left.eq(left - 1)
        return m


class PfcSender(wiring.Component):
    """Asks the other end of the link to pause our class, and to go on.

    ============  ====  ======================================================================
    ``xoff``      In    the class has to be paused
    ``priority``  In    our class
    ``quantum``   In    clock cycles of a quantum
    ``mac``       In    our address, first byte on the wire in bits 7..0
    ``o``         Out   PFC frames, 60 bytes
    ``sent``      Out   for one cycle: one begins
    ============  ====  ======================================================================

    A frame with 65,535 quanta when ``xoff`` rises and again every 16,384 quanta, one with 0 when it
    falls. *Latency*: 2 cycles. *Back-pressure*: ``o`` may wait at will; a change meanwhile is
    told afterwards. *Reset*: nothing was asked for.
    """

    def __init__(self, width):
        self.width = width
        super().__init__(
            {
                "xoff": In(1),
                "priority": In(3),
                "quantum": In(8),
                "mac": In(48),
                "o": Out(PacketSignature(width)),
                "sent": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        told, age = Signal(), Signal(range(_REFRESH + 1))
        at, beats = Signal(range(-(-_FRAME_BYTES // n))), -(-_FRAME_BYTES // n)
        m.submodules.quanta = self.quanta = quanta = _Quanta()
        self.told, self.age, self.at = told, age, at
        m.d.comb += quanta.cycles.eq(self.quantum)
        due = (self.xoff != told) | (told & (age == _REFRESH))
        with m.If(quanta.tick & (age != _REFRESH)):
            m.d.sync += age.eq(age + 1)
        octets = [C(0, 8)] * _FRAME_BYTES
        octets[6:12] = [self.mac.word_select(i, 8) for i in range(6)]
        for place, value in _HEAD.items():
            octets[place] = C(value, 8)
        octets[17] = Signal(8, name="vector")
        m.d.comb += octets[17].eq(1 << self.priority)
        for p in range(8):
            quantum = (told & (self.priority == p)).replicate(8)
            octets[18 + 2 * p] = octets[19 + 2 * p] = quantum
        with m.If(~self.o.valid):
            with m.If(due):
                m.d.sync += [told.eq(self.xoff), age.eq(0), at.eq(0), self.o.valid.eq(1)]
                m.d.comb += self.sent.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += at.eq(at + 1)
            with m.If(at == beats - 1):
                m.d.sync += self.o.valid.eq(0)
        m.d.comb += [
            self.o.payload.first.eq(at == 0),
            self.o.payload.last.eq(at == beats - 1),
            self.o.payload.empty.eq(Mux(at == beats - 1, -_FRAME_BYTES % n, 0)),
        ]
        with m.Switch(at):
            for k in range(beats):
                with m.Case(k):
                    part = [octets[i] for i in range(k * n, min(k * n + n, _FRAME_BYTES))]
                    m.d.comb += self.o.payload.data.eq(Cat(*part))
        return m
