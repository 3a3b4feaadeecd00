"""What most roles need between the memory port and their data path.

:class:`OperandReader` turns a job's operand into a packet stream, :class:`ResultWriter` turns a
packet stream into the job's result, :class:`MemoryJoin` puts both on a role's one memory port.
"""

from amaranth import C, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import BlockFifo
from ..memory import ADDR_WIDTH, MemorySignature
from ..stream import PacketSignature, check_data_width
from ..tcp.service import LENGTH_WIDTH

__all__ = [
    "BURST_BEATS",
    "MemoryJoin",
    "OperandLayout",
    "OperandReader",
    "ResultLayout",
    "ResultWriter",
]

#: Beats of one burst, reads and writes alike.
BURST_BEATS = 16
#: Beats that may be requested and not yet consumed: covers a latency of more than 48 cycles.
READ_AHEAD = 4 * BURST_BEATS

OperandLayout = data.StructLayout(
    {
        "base": unsigned(ADDR_WIDTH),
        "offset": unsigned(LENGTH_WIDTH),
        "ring_log2": unsigned(5),
        "length": unsigned(LENGTH_WIDTH),
    }
)

ResultLayout = data.StructLayout({"addr": unsigned(ADDR_WIDTH), "room": unsigned(LENGTH_WIDTH)})


class OperandReader(wiring.Component):
    """Reads an operand from memory and emits it as one packet, its first byte in bits 7..0.

    Parameters
    ----------
    width : int
        Data path in bits.
    tag_width : int
        Tag bits of the memory port. All bursts carry tag 0, so they come back in order.

    ===========  ====  ==========================================================================
    member       dir   meaning
    ===========  ====  ==========================================================================
    ``request``  In    stream of :data:`OperandLayout`: byte i of the operand is at
                       ``base + (offset + i) mod 2**ring_log2``
    ``packet``   Out   packet stream; exactly one packet a request, none if ``length`` is 0
    ``done``     Out   1 for one cycle when the last beat was handed over, or, for ``length`` 0,
                       in a cycle soon after the request was taken
    ``mem``      Out   memory port; reads only
    ===========  ====  ==========================================================================

    Throughput: one beat a cycle while the memory delivers as much and answers within 48 cycles.
    Latency: memory latency + 7 cycles. A request is taken when the one before is done.
    Back-pressure: a beat is requested only when there is room to store it, so ``mem.rdata`` never
    waits for the consumer. Reset: abandons everything; requested beats must be drained outside.
    Bad input: a ring of fewer bytes than a burst (``16 * width / 8``), or a ``base`` that is no
    multiple of the ring's size, reads other bytes than asked for, but as many.
    """

    def __init__(self, width=32, tag_width=2):
        self.width = check_data_width(width)
        super().__init__(
            {
                "request": In(stream.Signature(OperandLayout)),
                "packet": Out(PacketSignature(width)),
                "done": Out(1),
                "mem": Out(MemorySignature(width, tag_width)),
            }
        )

    # Bursts end at multiples of their own size. A ring is a multiple of it too, so no burst
    # crosses its end and the wrap is a mask on the burst's address. Beats wait in a FIFO whose
    # places are reserved when a burst is issued; behind it each output beat is cut out of two
    # neighbouring input beats.
    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        log2n = n.bit_length() - 1
        block = log2n + BURST_BEATS.bit_length() - 1  # log2 of the bytes of a burst
        beats_width = LENGTH_WIDTH + 2 - log2n

        m.submodules.fifo = fifo = BlockFifo(width=self.width, depth=READ_AHEAD)
        operand = Signal(OperandLayout)
        mask = Signal(LENGTH_WIDTH)
        shift = Signal(log2n)
        place = Signal(LENGTH_WIDTH + 1 - log2n)  # beat number in the ring's address space
        to_issue = Signal(beats_width)
        to_take = Signal(beats_width)
        to_emit = Signal(beats_width)
        reserved = Signal(range(READ_AHEAD + 1))
        running = Signal()

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.request.ready.eq(1)
                m.d.sync += operand.eq(self.request.payload)
                with m.If(self.request.valid):
                    m.next = "SETUP"
            with m.State("SETUP"):
                m.d.sync += [
                    mask.eq(Cat((operand.ring_log2 > i) for i in range(LENGTH_WIDTH))),
                    shift.eq(operand.offset[:log2n]),
                    place.eq(operand.offset[log2n:]),
                    to_take.eq((operand.offset[:log2n] + operand.length + (n - 1)) >> log2n),
                    to_issue.eq((operand.offset[:log2n] + operand.length + (n - 1)) >> log2n),
                    to_emit.eq((operand.length + (n - 1)) >> log2n),
                ]
                with m.If(operand.length == 0):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
                with m.Else():
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += running.eq(1)
                with m.If(self.packet.valid & self.packet.ready & self.packet.payload.last):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"

        self._issue(m, running, operand, mask, place, to_issue, reserved, fifo, block)
        self._align(m, running, operand, shift, to_take, to_emit, fifo)
        return m

    def _issue(self, m, running, operand, mask, place, to_issue, reserved, fifo, block):
        log2n = (self.width // 8).bit_length() - 1
        beats = Signal(range(BURST_BEATS + 1))
        known = Signal()  # `beats` is that of the next burst; bursts are two cycles apart
        to_boundary = Signal(range(BURST_BEATS + 1))
        issued = Signal()
        taken = Signal()
        cmd = self.mem.cmd
        m.d.comb += [
            to_boundary.eq(BURST_BEATS - place[: block - log2n]),
            issued.eq(0),
            taken.eq(fifo.r_rdy & fifo.r_en),
            fifo.w_data.eq(self.mem.rdata.payload.data),
            fifo.w_en.eq(self.mem.rdata.valid),
            self.mem.rdata.ready.eq(1),
            self.mem.wdone.ready.eq(1),
        ]
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += cmd.valid.eq(0)
        room = reserved <= READ_AHEAD - BURST_BEATS
        m.d.sync += [
            beats.eq(Mux(to_issue < to_boundary, to_issue, to_boundary)),
            known.eq(running),
        ]
        with m.If(known & running & ~cmd.valid & (beats != 0) & room):
            m.d.comb += issued.eq(1)
            m.d.sync += [
                cmd.valid.eq(1),
                cmd.payload.addr.eq(
                    operand.base & ~(self.width // 8 - 1) | ((place << log2n) & mask)
                ),
                cmd.payload.beats.eq(beats - 1),
                place.eq(place + beats),
                to_issue.eq(to_issue - beats),
            ]
        m.d.sync += reserved.eq(reserved + Mux(issued, beats, 0) - taken)

    def _align(self, m, running, operand, shift, to_take, to_emit, fifo):
        n = self.width // 8
        log2n = n.bit_length() - 1
        previous = Signal(self.width)
        primed = Signal()
        first = Signal()
        step = Signal()
        out = self.packet
        pair = Cat(previous, fifo.r_data)
        with m.If(out.ready):
            m.d.sync += out.valid.eq(0)
        with m.If(~running):
            m.d.sync += [primed.eq(0), first.eq(1)]
        with m.Elif(~primed):
            m.d.comb += fifo.r_en.eq(1)
            with m.If(fifo.r_rdy):
                m.d.sync += [primed.eq(1), previous.eq(fifo.r_data), to_take.eq(to_take - 1)]
        with m.Elif(to_emit != 0):
            m.d.comb += step.eq((~out.valid | out.ready) & (fifo.r_rdy | (to_take == 0)))
        with m.If(step):
            with m.If(to_take != 0):
                m.d.comb += fifo.r_en.eq(1)
                m.d.sync += [previous.eq(fifo.r_data), to_take.eq(to_take - 1)]
            m.d.sync += [
                to_emit.eq(to_emit - 1),
                first.eq(0),
                out.valid.eq(1),
                out.payload.data.eq(pair.bit_select(Cat(C(0, 3), shift), self.width)),
                out.payload.first.eq(first),
                out.payload.last.eq(to_emit == 1),
                out.payload.empty.eq(Mux(to_emit == 1, (-operand.length)[:log2n], 0)),
            ]


class ResultWriter(wiring.Component):
    """Writes one packet to memory, from an aligned address on.

    Parameters
    ----------
    width : int
        Data path in bits.
    tag_width : int
        Tag bits of the memory port; all bursts carry tag 0.

    ============  ====  =========================================================================
    member        dir   meaning
    ============  ====  =========================================================================
    ``request``   In    stream of :data:`ResultLayout`: ``addr``, a multiple of 16 (lower bits are
                        taken as 0), and the bytes that may be written
    ``packet``    In    packet stream; the packet after a request is its result
    ``finish``    In    1 for one cycle, after a request was taken and not in a cycle with a beat:
                        the packet ends here; for who has no beat left to mark, or none at all
    ``done``      Out   1 for one cycle when the whole packet was taken and is in memory
    ``length``    Out   bytes written; valid with ``done`` and until the next request is taken
    ``overflow``  Out   the packet was longer than ``room``: the beat that would have passed it
                        and all after were dropped; valid as ``length``
    ``error``     Out   the packet's ``error`` bit; valid as ``length``
    ``mem``       Out   memory port; writes only
    ============  ====  =========================================================================

    Throughput: 16 beats in 18 cycles. Latency from the last beat to ``done``: memory latency + 5
    cycles. Back-pressure: beats are stored up to a whole burst before its command is offered, so
    a slow producer never holds the memory. ``packet`` waits until there is a request. Reset:
    abandons everything. Bad input: see ``overflow`` and ``error``; nothing is written outside
    ``addr .. addr + room``.
    """

    def __init__(self, width=32, tag_width=2):
        self.width = check_data_width(width)
        super().__init__(
            {
                "request": In(stream.Signature(ResultLayout)),
                "packet": In(PacketSignature(width)),
                "finish": In(1),
                "done": Out(1),
                "length": Out(LENGTH_WIDTH),
                "overflow": Out(1),
                "error": Out(1),
                "mem": Out(MemorySignature(width, tag_width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        n = self.width // 8
        log2n = n.bit_length() - 1
        m.submodules.fifo = fifo = BlockFifo(width=self.width + n, depth=2 * BURST_BEATS)

        room = Signal(LENGTH_WIDTH)
        count = Signal(log2n + 1)
        fits = Signal()
        stored = Signal()
        ended = Signal()
        active = Signal()
        packet = self.packet
        m.d.comb += [
            count.eq(n - packet.payload.empty),
            fits.eq((room >= count) & ~self.overflow),
            packet.ready.eq(active & ~ended & fifo.w_rdy),
            stored.eq(packet.valid & packet.ready & fits),
            fifo.w_en.eq(stored),
            fifo.w_data.eq(Cat(packet.payload.data, Cat(count > i for i in range(n)))),
        ]
        with m.If(packet.valid & packet.ready):
            m.d.sync += [
                ended.eq(packet.payload.last),
                self.error.eq(packet.payload.error),
                self.overflow.eq(~fits),
            ]
        with m.If(stored):
            m.d.sync += [self.length.eq(self.length + count), room.eq(room - count)]

        idle = self._write(m, fifo, stored, ended)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += self.request.ready.eq(1)
                with m.If(self.request.valid):
                    m.d.sync += [
                        self.mem.cmd.payload.addr.eq(self.request.payload.addr & ~15),
                        room.eq(self.request.payload.room),
                        self.length.eq(0),
                        self.overflow.eq(0),
                        self.error.eq(0),
                        ended.eq(0),
                    ]
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += active.eq(1)
                with m.If(self.finish):
                    m.d.sync += ended.eq(1)
                with m.If(ended & idle):
                    m.d.comb += self.done.eq(1)
                    m.next = "IDLE"
        return m

    def _write(self, m, fifo, stored, ended):
        """Offer a burst when it is complete, then its data; return "everything is in memory"."""
        n = self.width // 8
        cmd, wdata, wdone = self.mem.cmd, self.mem.wdata, self.mem.wdone
        filled = Signal(range(2 * BURST_BEATS + 2))  # stored beats that no command covers yet
        beats = Signal(range(BURST_BEATS + 1))
        owed = Signal(range(BURST_BEATS + 1))
        pending = Signal(LENGTH_WIDTH)  # bursts without wdone
        offer = Signal()
        sent = Signal()
        full = filled >= BURST_BEATS
        m.d.comb += [
            beats.eq(Mux(full, BURST_BEATS, filled)),
            offer.eq(~cmd.valid & (owed == 0) & (full | (ended & (filled != 0)))),
            cmd.payload.write.eq(1),
            sent.eq(wdata.valid & wdata.ready),
            # Data follow their command: an arbiter then never has to hold data it cannot place.
            wdata.valid.eq(fifo.r_rdy & (owed != 0) & ~cmd.valid),
            wdata.payload.data.eq(fifo.r_data[: self.width]),
            wdata.payload.strb.eq(fifo.r_data[self.width :]),
            wdata.payload.last.eq(owed == 1),
            fifo.r_en.eq(sent),
            wdone.ready.eq(1),
            self.mem.rdata.ready.eq(1),
        ]
        m.d.sync += [
            filled.eq(filled + stored - Mux(offer, beats, 0)),
            pending.eq(pending + offer - wdone.valid),
        ]
        with m.If(offer):
            m.d.sync += [cmd.valid.eq(1), cmd.payload.beats.eq(beats - 1), owed.eq(beats)]
        with m.If(cmd.valid & cmd.ready):
            m.d.sync += cmd.valid.eq(0)
            m.d.sync += cmd.payload.addr.eq(cmd.payload.addr + BURST_BEATS * n)
        with m.If(sent):
            m.d.sync += owed.eq(owed - 1)
        return (filled == 0) & (owed == 0) & ~cmd.valid & (pending == 0)


class MemoryJoin(wiring.Component):
    """One memory port for a reader and a writer (:class:`OperandReader`, :class:`ResultWriter`).

    ``reader`` may only read and ``writer`` only write, so only the commands need arbitration: a
    waiting write goes first, because the writer holds what was computed. A command that
    was offered stays until it is taken. Latency: none; throughput: one command a cycle.
    """

    def __init__(self, width=32, tag_width=2):
        super().__init__(
            {
                "reader": In(MemorySignature(width, tag_width)),
                "writer": In(MemorySignature(width, tag_width)),
                "mem": Out(MemorySignature(width, tag_width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        held = Signal()  # a read was offered in the last cycle and not taken
        write = Signal()
        m.d.comb += write.eq(self.writer.cmd.valid & ~held)
        m.d.sync += held.eq(self.mem.cmd.valid & ~self.mem.cmd.ready & ~write)
        m.d.comb += [
            self.mem.cmd.valid.eq(write | self.reader.cmd.valid),
            self.mem.cmd.payload.eq(Mux(write, self.writer.cmd.payload, self.reader.cmd.payload)),
            self.writer.cmd.ready.eq(self.mem.cmd.ready & write),
            self.reader.cmd.ready.eq(self.mem.cmd.ready & ~write),
            self.mem.wdata.valid.eq(self.writer.wdata.valid),
            self.mem.wdata.payload.eq(self.writer.wdata.payload),
            self.writer.wdata.ready.eq(self.mem.wdata.ready),
            self.writer.wdone.valid.eq(self.mem.wdone.valid),
            self.writer.wdone.payload.eq(self.mem.wdone.payload),
            self.mem.wdone.ready.eq(self.writer.wdone.ready),
            self.reader.rdata.valid.eq(self.mem.rdata.valid),
            self.reader.rdata.payload.eq(self.mem.rdata.payload),
            self.mem.rdata.ready.eq(self.reader.rdata.ready),
            self.reader.wdata.ready.eq(0),
            self.writer.rdata.valid.eq(0),
            self.reader.wdone.valid.eq(0),
        ]
        return m
