"""The mailbox's two copiers: a request from the receive ring, a response to memory."""

from amaranth import Array, C, Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from ..buffers import NO_COLLISIONS
from ..memory import ADDR_WIDTH, MemorySignature

__all__ = ["REQUEST_BYTES", "RESPONSE_BYTES", "RequestCopier", "ResponseCopier"]

#: Bytes of the on-chip memory for a request.
REQUEST_BYTES = 1024
#: Bytes of the on-chip memory for a response, and of a transmit slot.
RESPONSE_BYTES = 4096

CR, LF = 13, 10
#: A request that begins with a smaller number is binary, and begins with HEADER_BYTES of header.
BINARY = 9
HEADER_BYTES = 8


class RequestCopier(wiring.Component):
    """Copies a request from a receive ring to an on-chip memory.

    That is ``expect`` bytes if it is ``counted``; else 8 bytes if the first one is less than 9;
    else all up to and with CR LF CR LF. ``start`` for one cycle, with those, ``base`` (number of
    the segment), ``offset`` in it and the bytes ``available``. Then ``done`` for one cycle;
    ``length`` bytes were copied, ``matched`` tells that they are the whole request, ``full`` that
    there are ``largest`` of them. They hold until the next start. ``word`` is word ``index`` of the
    copy, a cycle later. One read of one beat is in flight at a time, a byte a cycle is looked at;
    nothing is read if nothing is available.
    """

    def __init__(self, width, segment_log2, largest=None):
        mem = MemorySignature(width)
        self.width, self.segment_log2 = width, segment_log2
        self.largest = REQUEST_BYTES if largest is None else largest
        super().__init__(
            {
                "start": In(1),
                "base": In(ADDR_WIDTH - segment_log2),
                "offset": In(segment_log2),
                "available": In(segment_log2 + 1),
                "expect": In(range(REQUEST_BYTES + 1)),
                "counted": In(1),
                "done": Out(1),
                "length": Out(range(REQUEST_BYTES + 1)),
                "matched": Out(1),
                "full": Out(1),
                "index": In(range(REQUEST_BYTES // 4)),
                "word": Out(32),
                "mem_cmd": Out(stream.Signature(mem.cmd_layout)),
                "mem_rdata": In(stream.Signature(mem.rdata_layout)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        log2n = (self.width // 8).bit_length() - 1
        m.submodules.copy = copy = Memory(
            shape=32, depth=REQUEST_BYTES // 4, init=[], attrs=NO_COLLISIONS
        )
        read = copy.read_port()
        write = copy.write_port(granularity=8)
        place = Signal(self.segment_log2)  # of the next byte to look at
        base = Signal.like(self.base)
        left = Signal(range(REQUEST_BYTES + 1))
        beat = Signal(self.width)
        skip = Signal(log2n)
        line = Signal(2)  # bytes of CR LF CR LF that were seen
        goal = Signal.like(self.expect)  # bytes of the request; 0: not known, or text
        counted = Signal()
        there, ended = Signal(), Signal()
        byte = beat[:8]
        m.d.comb += [
            read.addr.eq(self.index),
            self.word.eq(read.data),
            write.addr.eq(self.length >> 2),
            write.data.eq(Cat(byte, byte, byte, byte)),
            self.mem_cmd.payload.addr.eq(Cat(place, base) & ~(self.width // 8 - 1)),
            self.mem_rdata.ready.eq(1),
            self.full.eq(self.length == self.largest),
            there.eq(self.length == goal),
            self.matched.eq(ended | (counted & there)),
        ]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += [place.eq(self.offset), base.eq(self.base)]
                with m.If(self.start):
                    m.d.sync += [
                        left.eq(Mux(self.available > self.largest, self.largest, self.available)),
                        self.length.eq(0),
                        ended.eq(0),
                        line.eq(0),
                        goal.eq(self.expect),
                        counted.eq(self.counted),
                    ]
                    m.next = "NEXT"
            with m.State("ASK"):
                m.d.comb += self.mem_cmd.valid.eq(1)
                m.d.sync += skip.eq(place[:log2n])
                with m.If(self.mem_cmd.ready):
                    m.next = "TAKE"
            with m.State("TAKE"):
                m.d.sync += beat.eq(self.mem_rdata.payload.data)
                with m.If(self.mem_rdata.valid):
                    m.next = "LOOK"
            with m.State("LOOK"):
                m.d.sync += beat.eq(beat >> 8)
                with m.If((left == 0) | self.matched):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
                with m.Elif(skip != 0):
                    m.d.sync += skip.eq(skip - 1)
                with m.Else():
                    m.d.comb += write.en.eq(1 << self.length[:2])
                    m.d.sync += [
                        self.length.eq(self.length + 1),
                        left.eq(left - 1),
                        place.eq(place + 1),
                    ]
                    with m.If(~counted & there & (byte < BINARY)):  # so it is the first byte
                        # The goal was 0: one bit makes it HEADER_BYTES.
                        m.d.sync += [counted.eq(1), goal[HEADER_BYTES.bit_length() - 1].eq(1)]
                    with m.If(byte == CR):
                        m.d.sync += line.eq(Mux(line == 2, 3, 1))
                    with m.Elif((byte == LF) & line[0]):
                        m.d.sync += [line.eq(2), ended.eq((line == 3) & ~counted)]
                    with m.Else():
                        m.d.sync += line.eq(0)
                    with m.If(place[:log2n].all()):
                        m.next = "NEXT"
            with m.State("NEXT"):
                m.next = "ASK"
                with m.If((left == 0) | self.matched):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
        return m


class ResponseCopier(wiring.Component):
    """Collects words in an on-chip memory and writes them to external memory.

    ``append`` stores ``word`` behind the last one (the place after the last of 1,024 is the first);
    ``clear`` begins anew. ``start`` for one cycle, with ``addr`` (a multiple of 4,096) and
    ``length`` > 0 held until ``done``, writes that many bytes, rounded up to words. ``written``
    is the memory port's ``wdone.valid``. Bursts of one beat, as many in flight as the memory
    takes.
    """

    def __init__(self, width):
        mem = MemorySignature(width)
        self.width = width
        super().__init__(
            {
                "clear": In(1),
                "append": In(1),
                "word": In(32),
                "start": In(1),
                "addr": In(ADDR_WIDTH),
                "length": In(range(RESPONSE_BYTES + 1)),
                "done": Out(1),
                "mem_cmd": Out(stream.Signature(mem.cmd_layout)),
                "mem_wdata": Out(stream.Signature(mem.wdata_layout)),
                "written": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        words = RESPONSE_BYTES // 4
        lanes = self.width // 32
        lane_bits = (lanes - 1).bit_length()
        m.submodules.copy = copy = Memory(shape=32, depth=words, init=[], attrs=NO_COLLISIONS)
        read, write = copy.read_port(), copy.write_port()
        end = Signal(range(words))
        at = Signal(range(words + 1))
        stop = Signal(range(words + 1))
        pending = Signal(range(words + 1))  # writes without wdone
        data = Signal(32)
        addr = Signal(ADDR_WIDTH)
        m.d.comb += addr.eq(Cat(C(0, 2), at[: words.bit_length() - 1], self.addr[12:]))
        m.d.comb += [
            write.addr.eq(end),
            write.data.eq(self.word),
            write.en.eq(self.append),
            read.addr.eq(at),
            stop.eq((self.length + 3) >> 2),
            self.mem_cmd.payload.write.eq(1),
            self.mem_cmd.payload.addr.eq(addr & ~(self.width // 8 - 1)),
            self.mem_wdata.payload.data.eq(Cat(data for _ in range(lanes))),
            self.mem_wdata.payload.strb.eq(
                Array(0xF << 4 * i for i in range(lanes))[addr[2 : 2 + lane_bits]]
            ),
            self.mem_wdata.payload.last.eq(1),
        ]
        with m.If(self.clear):
            m.d.sync += end.eq(0)
        with m.Elif(self.append):
            m.d.sync += end.eq(end + 1)
        accepted = self.mem_cmd.valid & self.mem_cmd.ready
        m.d.sync += pending.eq(pending + accepted - self.written)
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += at.eq(0)
                with m.If(self.start):
                    m.next = "FETCH"
            with m.State("FETCH"):
                m.next = "LATCH"
            with m.State("LATCH"):
                m.d.sync += data.eq(read.data)
                m.next = "COMMAND"
            with m.State("COMMAND"):
                m.d.comb += self.mem_cmd.valid.eq(1)
                with m.If(self.mem_cmd.ready):
                    m.next = "DATA"
            with m.State("DATA"):
                m.d.comb += self.mem_wdata.valid.eq(1)
                with m.If(self.mem_wdata.ready):
                    m.d.sync += at.eq(at + 1)
                    m.next = "FETCH"
                    with m.If(at + 1 == stop):
                        m.next = "DRAIN"
            with m.State("DRAIN"):
                with m.If(pending == 0):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
        return m
