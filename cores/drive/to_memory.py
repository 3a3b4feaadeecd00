"""DMA between a drive and memory, by a list of jobs."""

from amaranth import Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ..buffers import StreamFifo
from ..memory import ADDR_WIDTH, BEATS_WIDTH, MemorySignature
from .port import COUNT_WIDTH, LBA_WIDTH, SECTOR, DriveSignature, DriveStatus

__all__ = ["DriveDma", "job_layout"]


def job_layout(tag_width):
    """Layout of a job: ``write`` is 1 from memory to the drive, 0 from the drive to memory."""
    return data.StructLayout(
        {
            "write": unsigned(1),
            "lba": unsigned(LBA_WIDTH),
            "count": unsigned(COUNT_WIDTH),
            "addr": unsigned(ADDR_WIDTH),
            "tag": unsigned(tag_width),
        }
    )


class DriveDma(wiring.Component):
    """Executes a list of jobs, each ``count`` sectors from ``lba`` on and a region of memory.

    =========  ====  ===============  ==========================================================
    member     dir   shape            meaning
    =========  ====  ===============  ==========================================================
    ``job``    In    stream           the list, a job a beat (:func:`job_layout`)
    ``done``   Out   stream           ``tag`` and ``status`` of each job, in the order of the list
    ``drive``  Out   DriveSignature   the drive (:mod:`.port`)
    ``mem``    Out   MemorySignature  memory (:mod:`..memory`), tags of 0 bits; not prompt
    =========  ====  ===============  ==========================================================

    A job's region is ``512 * count`` bytes from ``addr`` on, wrapped as the memory wraps. Nothing
    outside it is accessed, and what a failed read left out is not written: beats of its bursts that
    no data came for, and the beat with ``error``, are sent without strobes. ``done`` of a
    job from the drive comes when memory has reported all its bursts as written. Its status is the
    drive's; ``DATA`` if the drive reports ``OK`` for data that are damaged or of another length;
    ``INVALID`` if ``count`` is 0 or ``addr`` no multiple of a beat's bytes: then neither drive nor
    memory is accessed.

    One job at a time: the next is accepted when ``done`` was. Bursts of ``burst`` beats; to memory,
    a burst takes ``burst + 1`` cycles, if neither side stalls; its command is offered when its
    first beat is there, so a drive that stops within a burst holds the memory's write data (the
    port is not *prompt*). From memory, a burst is asked for only when the FIFO has room for
    it: read data are taken at once, however long the drive stalls. Latency: the drive's
    command 1 cycle after the job, the memory's first 1 cycle after the drive took its command, or
    with the first beat. Reset: no job; the FIFO is empty.

    Parameters
    ----------
    width : int
        Data path of drive and memory in bits.
    tag_width : int
        Bits of a job's tag, which is also the drive's.
    burst : int
        Beats of a burst, a power of two that divides a sector's, at most 64. The FIFO holds two.
    """

    #: Bursts that memory may have to report as written.
    OUTSTANDING = 7

    def __init__(self, width=32, tag_width=2, burst=32):
        drive, mem = DriveSignature(width, tag_width), MemorySignature(width, 0)
        sector = SECTOR // (width // 8)
        if not isinstance(burst, int) or burst < 2 or burst & (burst - 1):
            raise ValueError(f"Burst must be a power of two of at least 2 beats, not {burst!r}")
        if burst > min(sector, 1 << BEATS_WIDTH):
            raise ValueError(
                f"Burst must be at most {min(sector, 1 << BEATS_WIDTH)} beats of {width} bits, "
                f"not {burst}"
            )
        self.width, self.tag_width, self.burst = width, tag_width, burst
        #: Bursts of a sector.
        self.per_sector = sector // burst
        super().__init__(
            {
                "job": In(stream.Signature(job_layout(tag_width))),
                "done": Out(stream.Signature(drive.done_layout)),
                "drive": Out(drive),
                "mem": Out(mem),
            }
        )
        bits = COUNT_WIDTH + self.per_sector.bit_length() - 1
        self.held = Signal(job_layout(tag_width))
        # Bursts to ask memory for, and to move; the beat within the one that moves.
        self.to_ask, self.to_move = Signal(bits), Signal(bits)
        self.beat = Signal(range(burst))
        self.open_ = Signal()  # a write burst was asked for and its data are not complete
        self.ended, self.failed = Signal(), Signal()  # the packet from the drive
        self.owed = Signal(range(self.OUTSTANDING + 1))  # bursts that memory has not reported
        self.reserved = Signal(range(2 * burst + 1))  # places in the FIFO
        self.fifo = StreamFifo(unsigned(width), 2 * burst)

    # Read: the drive's beats go straight to memory; a command precedes each `burst` of them. When
    # the packet ends early the open burst is filled up without strobes; when it is too long the
    # rest is discarded. Write: bursts come into the FIFO, beats leave it for the drive.
    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        drive, mem, held = self.drive, self.mem, self.held
        status, moves = Signal(DriveStatus), Signal()
        m.d.comb += [
            drive.cmd.payload.write.eq(held.write),
            drive.cmd.payload.lba.eq(held.lba),
            drive.cmd.payload.count.eq(held.count),
            drive.cmd.payload.tag.eq(held.tag),
            mem.cmd.payload.write.eq(~held.write),
            mem.cmd.payload.addr.eq(held.addr),
            mem.cmd.payload.beats.eq(self.burst - 1),
            mem.wdone.ready.eq(1),
            self.done.payload.tag.eq(held.tag),
            self.done.payload.status.eq(status),
            fifo.i.valid.eq(mem.rdata.valid),
            fifo.i.payload.eq(mem.rdata.payload.data),
            mem.rdata.ready.eq(fifo.i.ready),
        ]
        with m.If(mem.cmd.valid & mem.cmd.ready):
            m.d.sync += held.addr.eq(held.addr + self.burst * (self.width // 8))
            m.d.sync += self.to_ask.eq(self.to_ask - 1)
        with m.If(moves):
            m.d.sync += self.beat.eq(self.beat + 1)
            with m.If(self.beat == self.burst - 1):
                m.d.sync += self.to_move.eq(self.to_move - 1)
        with m.FSM() as self.fsm:
            with m.State("IDLE"):
                m.d.comb += self.job.ready.eq(1)
                m.d.sync += [held.eq(self.job.payload), self.ended.eq(0), self.failed.eq(0)]
                bursts = self.job.payload.count * self.per_sector
                m.d.sync += [self.to_ask.eq(bursts), self.to_move.eq(bursts)]
                odd = self.job.payload.addr % (self.width // 8) != 0
                m.d.sync += status.eq(DriveStatus.INVALID)
                with m.If(self.job.valid):
                    m.next = "ISSUE"
                    with m.If(odd | (self.job.payload.count == 0)):
                        m.next = "DONE"
            with m.State("ISSUE"):
                m.d.comb += drive.cmd.valid.eq(1)
                with m.If(drive.cmd.ready):
                    with m.If(held.write):
                        m.next = "WRITE"
                    with m.Else():
                        m.next = "READ"
            with m.State("READ"):
                self._read(m, moves)
                self._finish(m, self.ended & ~self.open_ & (self.owed == 0), status)
            with m.State("WRITE"):
                self._write(m, fifo, moves)
                self._finish(m, self.to_move == 0, status)
            with m.State("DONE"):
                m.d.comb += self.done.valid.eq(1)
                with m.If(self.done.ready):
                    m.next = "IDLE"
        return m

    def _finish(self, m, moved, status):
        """Take the drive's report once all data have ``moved``."""
        done = self.drive.done
        reported = done.payload.status
        with m.If(moved):
            m.d.comb += done.ready.eq(1)
            with m.If(done.valid):
                m.d.sync += status.eq(reported)
                with m.If(self.failed & (reported == DriveStatus.OK)):
                    m.d.sync += status.eq(DriveStatus.DATA)
                m.next = "DONE"

    def _read(self, m, moves):
        """From the drive to memory."""
        rdata, mem = self.drive.rdata, self.mem
        beat, final = rdata.payload, self.beat == self.burst - 1
        room = self.owed != self.OUTSTANDING
        starts, taken = Signal(), Signal()
        m.d.comb += [
            mem.cmd.valid.eq(~self.open_ & (self.to_ask != 0) & rdata.valid & ~self.ended & room),
            mem.wdata.valid.eq(self.open_ & (self.ended | rdata.valid)),
            mem.wdata.payload.data.eq(beat.data),
            mem.wdata.payload.strb.eq(
                Mux(self.ended | (beat.last & beat.error), 0, (1 << self.width // 8) - 1)
            ),
            mem.wdata.payload.last.eq(final),
            rdata.ready.eq(~self.ended & Mux(self.open_, mem.wdata.ready, self.to_ask == 0)),
            moves.eq(mem.wdata.valid & mem.wdata.ready),
            starts.eq(mem.cmd.valid & mem.cmd.ready),
            taken.eq(rdata.valid & rdata.ready),
        ]
        m.d.sync += self.owed.eq(self.owed + starts - (mem.wdone.valid & mem.wdone.ready))
        with m.If(starts):
            m.d.sync += self.open_.eq(1)
        with m.Elif(moves & final):
            m.d.sync += self.open_.eq(0)
        with m.If(taken):
            short = ~final | (self.to_move != 1) | ~self.open_
            with m.If(beat.last):
                m.d.sync += self.ended.eq(1)
            with m.If(beat.last & (beat.error | short | (beat.empty != 0))):
                m.d.sync += self.failed.eq(1)

    def _write(self, m, fifo, moves):
        """From memory to the drive."""
        wdata, mem = self.drive.wdata, self.mem
        asks, begun = Signal(), Signal()
        self.begun = begun
        m.d.comb += [
            mem.cmd.valid.eq((self.to_ask != 0) & (self.reserved <= self.burst)),
            wdata.valid.eq(fifo.o.valid),
            wdata.payload.data.eq(fifo.o.payload),
            wdata.payload.first.eq(~begun),
            wdata.payload.last.eq((self.to_move == 1) & (self.beat == self.burst - 1)),
            fifo.o.ready.eq(wdata.ready),
            moves.eq(wdata.valid & wdata.ready),
            asks.eq(mem.cmd.valid & mem.cmd.ready),
        ]
        m.d.sync += self.reserved.eq(self.reserved + Mux(asks, self.burst, 0) - moves)
        with m.If(moves):
            m.d.sync += begun.eq(~wdata.payload.last)
