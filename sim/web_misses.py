"""What firmware and a drive do for requests of files that are not in memory, without a CPU.

The gateware shows such a request at the desk (:mod:`trebuchet.cores.web.desk`), and
``firmware/web_slow.c`` has it shown again until the file was loaded, and then answers.
:class:`Keeper` does the same, in the times that it is given;
:class:`~trebuchet.cores.drive.to_memory.DriveDma` writes as many bytes as the file has, beside the
service and the engine.
"""

from dataclasses import dataclass

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..cores.buffers import StreamFifo
from ..cores.csr import CsrSignature, RegisterBlock
from ..cores.drive.port import SECTOR, DriveSignature, DriveStatus
from ..cores.drive.to_memory import DriveDma
from ..cores.memory import MemorySignature
from ..cores.tcp.service import SESSION_WIDTH
from ..cores.web.desk import DEPTH, DESK_REGISTERS

__all__ = ["Keeper", "Misses"]


@dataclass(frozen=True)
class Misses:
    """Times of firmware and drive, in cycles, and the one answer to all misses.

    Attributes
    ----------
    address, length
        Of the answer, which lies in memory from the start.
    room : int
        Where the drive's data are written: beside it, since they are not the file's.
    sectors : int
        Of the file.
    turn : int
        From one look at the desk to the next.
    prepare : int
        Of firmware, for a load, before the drive's command.
    latency : int
        From the drive's command to its first beat.
    period : int
        From one beat of the drive to the next.
    """

    address: int
    length: int
    room: int
    sectors: int
    turn: int
    prepare: int
    latency: int
    period: int


class _Drive(wiring.Component):
    """A drive that always reads, at a steady rate; what it reads is its beats' number."""

    def __init__(self, width, latency, period):
        self.width, self.latency, self.period = width, latency, period
        super().__init__({"port": In(DriveSignature(width, 0))})

    def elaborate(self, platform):
        m = Module()
        port, beats, wait = self.port, Signal(32), Signal(32)
        rdata = port.rdata
        m.d.comb += [port.sectors.eq(-1), port.ready.eq(1), port.present.eq(1)]
        m.d.comb += [
            rdata.payload.data.eq(beats),
            rdata.payload.last.eq(beats == 1),
            port.done.payload.status.eq(DriveStatus.OK),
        ]
        with m.If(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += port.cmd.ready.eq(1)
                m.d.sync += wait.eq(self.latency)
                m.d.sync += beats.eq(port.cmd.payload.count * (SECTOR // (self.width // 8)))
                m.d.sync += rdata.payload.first.eq(1)
                with m.If(port.cmd.valid):
                    m.next = "READ"
            with m.State("READ"):
                m.d.comb += rdata.valid.eq(wait == 0)
                with m.If(rdata.valid & rdata.ready):
                    m.d.sync += wait.eq(self.period - 1)
                    m.d.sync += [beats.eq(beats - 1), rdata.payload.first.eq(0)]
                    with m.If(beats == 1):
                        m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += port.done.valid.eq(1)
                with m.If(port.done.ready):
                    m.next = "IDLE"
        return m


class Keeper(wiring.Component):
    """Firmware at the desk of :class:`~trebuchet.cores.web.service.Web`, with a drive.

    ===========  ===  ==========================================================================
    member       dir  meaning
    ===========  ===  ==========================================================================
    ``desk``     Out  :data:`~trebuchet.cores.web.desk.DESK_REGISTERS`, as the CPU has them
    ``mem``      Out  memory port that the drive's DMA writes to; not prompt
    ===========  ===  ==========================================================================

    Every ``turn`` cycles it looks at the request that is shown, as the firmware's event loop does.
    A new one is noted for a load, and all but its last byte consumed: so it is shown again, each
    time its turn comes, until its file was loaded. One load at a time, in the order of the
    requests; nothing is kept, so each request is a load. Bad input: every request is answered with
    the file; a session that ends while it waits leaves its load to the next of its number.
    """

    def __init__(self, width, sessions, misses):
        self.width, self.sessions, self.misses = width, sessions, misses
        super().__init__(
            {
                "desk": Out(CsrSignature(RegisterBlock("web", DESK_REGISTERS))),
                "mem": Out(MemorySignature(width, 0)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        misses, desk = self.misses, self.desk
        m.submodules.dma = dma = DriveDma(self.width, 0)
        m.submodules.drive = drive = _Drive(self.width, misses.latency, misses.period)
        m.submodules.wanted = wanted = StreamFifo(unsigned(SESSION_WIDTH), DEPTH, registered=False)
        wiring.connect(m, dma.drive, drive.port)
        wiring.connect(m, dma.mem, wiring.flipped(self.mem))
        loaded = Signal(self.sessions)
        self._load(m, dma, wanted, loaded)
        turn = Signal(range(misses.turn + 1))
        request = desk.request
        pending, first, length = request[0], request[1], request[8:]
        session = desk.request_session
        here = loaded.bit_select(session, 1)
        m.d.comb += [
            desk.slow.eq(1),
            desk.reply_address.eq(misses.address),
            desk.reply_length.eq(misses.length),
            wanted.i.payload.eq(session),
        ]
        with m.If(turn != misses.turn):
            m.d.sync += turn.eq(turn + 1)
        with m.Elif(pending):
            m.d.sync += turn.eq(0)
            more, consumed = ~here, Signal(24)
            m.d.comb += consumed.eq(length - (first & ~here))
            with m.If(first | here):
                m.d.comb += wanted.i.valid.eq(first & ~here)
                m.d.comb += desk.reply.eq(Cat(1, 0, more, Signal(5), consumed))
            with m.Else():
                m.d.comb += desk.reply.eq(Cat(1, 0, 1, Signal(29)))
            with m.If(here):
                m.d.sync += loaded.bit_select(session, 1).eq(0)
        return m

    def _load(self, m, dma, wanted, loaded):
        """Load what is wanted, one after the other."""
        misses, wait = self.misses, Signal(32)
        m.d.comb += [dma.job.payload.count.eq(misses.sectors), dma.job.payload.addr.eq(misses.room)]
        with m.FSM():
            with m.State("IDLE"):
                m.d.sync += wait.eq(misses.prepare)
                with m.If(wanted.o.valid):
                    m.next = "PREPARE"
            with m.State("PREPARE"):
                m.d.sync += wait.eq(wait - 1)
                with m.If(wait == 0):
                    m.next = "START"
            with m.State("START"):
                m.d.comb += dma.job.valid.eq(1)
                with m.If(dma.job.ready):
                    m.next = "MOVE"
            with m.State("MOVE"):
                m.d.comb += dma.done.ready.eq(1)
                with m.If(dma.done.valid):
                    m.d.comb += wanted.o.ready.eq(1)
                    m.d.sync += loaded.bit_select(wanted.o.payload, 1).eq(1)
                    m.next = "IDLE"
