"""Between whole operands or results and the messages that carry them."""

from amaranth import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import SkidBuffer
from ..stream import PacketSignature, beat_layout, check_data_width
from .contract import CHUNK, HEADER_BYTES, CallLayout, HeaderLayout

__all__ = ["Segmenter", "AbortGuard", "OpenedLayout", "Reassembler"]


def _check(width):
    if check_data_width(width) > 8 * HEADER_BYTES:
        raise ValueError(f"Data path width of a cluster must be 32 or 64 bits, not {width!r}")
    return width


class Segmenter(wiring.Component):
    """Cuts a packet into messages, each with its header.

    ========  ====  ==============================================================================
    ``call``  In    stream of :data:`~.contract.CallLayout`: what the next packet is
    ``data``  In    packet stream: a packet of ``length`` bytes for each call, none for length 0
    ``o``     Out   packet stream: messages; one without data for length 0
    ``idle``  Out   no call is under way
    ========  ====  ==============================================================================

    Parameter: ``width``, 32 or 64 bits. Latency 1 cycle to the first header; throughput a beat a
    cycle, headers included. Back-pressure goes through to ``data``. Reset: idle; what was begun is
    left without an end (:class:`AbortGuard` gives it one). Bad input: a packet that is shorter than
    its call says ends with a message whose ``last`` is 0; one that is longer goes on with such.
    ``error`` goes with its beat.
    """

    def __init__(self, width=32):
        self.width = _check(width)
        super().__init__(
            {
                "call": In(stream.Signature(CallLayout)),
                "data": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "idle": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        o, given = self.o, self.data
        words = 8 * HEADER_BYTES // self.width
        call, header = Signal(CallLayout), Signal(HeaderLayout)
        left = Signal.like(call.length)
        word = Signal(range(words))
        beats = CHUNK * 8 // self.width
        beat = Signal(range(beats))
        offset = Signal(16)
        # No ports: for the proof's invariants.
        self.inside = {"call": call, "left": left, "word": word, "beat": beat, "offset": offset}
        told = ("peer", "kind", "role", "status", "number")
        m.d.comb += [header[name].eq(call[name]) for name in told]
        m.d.comb += [header.last.eq(left <= CHUNK), header.offset.eq(offset)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.call.ready.eq(1), self.idle.eq(~self.call.valid)]
                m.d.sync += [call.eq(self.call.payload), left.eq(self.call.payload.length)]
                m.d.sync += offset.eq(0)
                with m.If(self.call.valid):
                    m.next = "HEADER"
            with m.State("HEADER"):
                m.d.comb += [
                    o.valid.eq(1),
                    o.payload.data.eq(header.as_value().word_select(word, self.width)),
                    o.payload.first.eq(word == 0),
                    o.payload.last.eq((word == words - 1) & (left == 0)),
                ]
                with m.If(o.ready):
                    m.d.sync += word.eq(word + 1 if words > 1 else 0)
                    with m.If(word == words - 1):
                        m.d.sync += word.eq(0)
                        m.next = "DATA"
                        with m.If(left == 0):
                            m.next = "IDLE"
            with m.State("DATA"):
                m.d.comb += [
                    o.valid.eq(given.valid),
                    o.payload.eq(given.payload),
                    o.payload.first.eq(0),
                    o.payload.last.eq(given.payload.last | (beat == beats - 1)),
                    given.ready.eq(o.ready),
                ]
                with m.If(o.valid & o.ready):
                    m.d.sync += beat.eq(beat + 1)
                    with m.If(o.payload.last):
                        m.d.sync += [
                            beat.eq(0),
                            offset.eq(offset + CHUNK // 16),
                            left.eq(left - CHUNK),
                        ]
                        m.next = "HEADER"
                        with m.If(given.payload.last):
                            m.next = "IDLE"
        return m


OpenedLayout = data.StructLayout({"header": HeaderLayout, "bare": 1})


class Reassembler(wiring.Component):
    """Takes a message's header off.

    ========  ====  ==============================================================================
    ``i``     In    packet stream: messages
    ``head``  Out   stream: ``header``, and ``bare``: no data follow
    ``data``  Out   packet stream: the message's bytes, after its header was taken
    ========  ====  ==============================================================================

    Parameter: ``width``, 32 or 64 bits. Latency 1 cycle; 1 cycle and the header's beats are lost
    on each message. Back-pressure goes through. Reset: what is under way is skipped up to the next
    first beat. Bad input: a message without a whole header, or whose header is all of it and has
    an error mark, is dropped. ``error`` goes with its beat.
    """

    def __init__(self, width=32):
        self.width = _check(width)
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "head": Out(stream.Signature(OpenedLayout)),
                "data": Out(PacketSignature(width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        i, head, given = self.i, self.head, self.data
        words = 8 * HEADER_BYTES // self.width
        word, first = Signal(range(words)), Signal()
        self.inside = {"word": word, "first": first}  # no ports: for the proof's invariants
        header = head.payload.header.as_value()
        good = (i.payload.empty == 0) & ~(i.payload.last & i.payload.error)
        with m.FSM():
            with m.State("HEADER"):
                m.d.comb += i.ready.eq(1)
                m.d.sync += [head.payload.bare.eq(i.payload.last), first.eq(1)]
                with m.If(i.valid):
                    m.d.sync += header.word_select(word, self.width).eq(i.payload.data)
                    with m.If(i.payload.first):
                        m.d.sync += header[: self.width].eq(i.payload.data)
                    m.d.sync += word.eq(0)
                    if words == 1:
                        with m.If(i.payload.first & good):
                            m.next = "OFFER"
                    else:
                        with m.If(i.payload.first & ~i.payload.last):
                            m.d.sync += word.eq(1)
                        with m.Elif((word == 1) & ~i.payload.first & good):
                            m.next = "OFFER"
            with m.State("OFFER"):
                m.d.comb += head.valid.eq(1)
                with m.If(head.ready):
                    m.next = "DATA"
                    with m.If(head.payload.bare):
                        m.next = "HEADER"
            with m.State("DATA"):
                m.d.comb += [
                    given.valid.eq(i.valid),
                    given.payload.eq(i.payload),
                    given.payload.first.eq(first),
                    i.ready.eq(given.ready),
                ]
                with m.If(i.valid & i.ready):
                    m.d.sync += first.eq(0)
                    with m.If(i.payload.last):
                        m.next = "HEADER"
        return m


class AbortGuard(wiring.Component):
    """Ends what its sender leaves without an end, so that whoever comes after gets whole packets.

    =======  ====  ===============================================================================
    ``i``    In    packet stream; its sender may be reset at any time
    ``o``    Out   packet stream: the same packets
    ``cut``  In    1: whatever comes is swallowed, and a packet under way ends at once
    =======  ====  ===============================================================================

    A packet that is cut gets a last beat with ``error``; the rest of it is swallowed, also after
    ``cut`` has fallen. A first beat inside of a packet cuts it, too. Parameter: ``width``. Latency
    1 cycle, a beat a cycle. Reset: empty; what comes before a first beat is swallowed.
    """

    def __init__(self, width=32):
        self.width = check_data_width(width)
        super().__init__(
            {
                "i": In(PacketSignature(width)),
                "o": Out(PacketSignature(width)),
                "cut": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.stage = stage = SkidBuffer(beat_layout(self.width))
        wiring.connect(m, stage.o, wiring.flipped(self.o))
        under_way, ends, swallows = Signal(), Signal(), Signal()
        self.inside = {"under_way": under_way}  # no port: for the proof's invariants
        i, put = self.i, stage.i
        m.d.comb += [
            ends.eq(under_way & (self.cut | (i.valid & i.payload.first))),
            swallows.eq(self.cut | ~(under_way | i.payload.first)),
            put.payload.eq(i.payload),
            put.valid.eq(ends | (i.valid & ~swallows)),
            i.ready.eq(swallows | (put.ready & ~ends)),
        ]
        with m.If(ends):
            m.d.comb += [
                put.payload.eq(0),
                put.payload.last.eq(1),
                put.payload.error.eq(1),
            ]
        with m.If(put.valid & put.ready):
            m.d.sync += under_way.eq(~put.payload.last)
        return m
