"""Registers by which firmware moves data between a drive and memory, a job at a time."""

from amaranth import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from ..csr import CsrSignature, Field, Register, RegisterBlock, counter, fields
from ..memory import ADDR_WIDTH
from .port import COUNT_WIDTH, LBA_WIDTH, DriveSignature, DriveStatus
from .to_memory import job_layout

__all__ = ["DRIVE_BLOCK", "DriveRegisters"]

_EVENTS = (
    Field("ended", 0, 1, "1: a job has ended"),
    Field("changed", 1, 1, "1: the medium could not be used at some time: it may be another"),
)

DRIVE_BLOCK = RegisterBlock(
    "drive",
    (
        Register("lba", "rw", LBA_WIDTH, "first sector of the next job"),
        Register("count", "rw", COUNT_WIDTH, "sectors of the next job"),
        Register("address", "rw", ADDR_WIDTH, "address of its memory, a multiple of a beat"),
        Register(
            "start",
            "stb",
            2,
            "start a job; ignored while one is under way",
            fields=(
                Field("go", 0, 1, "1: start it"),
                Field("write", 1, 1, "1: from memory to the drive; 0: from the drive to memory"),
            ),
        ),
        Register(
            "state",
            "ro",
            6,
            "the job and the medium",
            fields=(
                Field("busy", 0, 1, "1: a job is under way"),
                Field("ready", 1, 1, "1: a medium is there and can be used"),
                Field("present", 2, 1, "1: a medium is there"),
                Field("status", 3, 3, "how the last job ended (DriveStatus)"),
            ),
        ),
        Register("sectors", "ro", LBA_WIDTH, "size of the medium in sectors; 0 unless ready"),
        Register("events", "w1c", 2, "what has happened since it was cleared", fields=_EVENTS),
        Register("irq_enable", "rw", 2, "1: the event of this bit interrupts", fields=_EVENTS),
        counter("jobs", "jobs that have ended"),
        counter("failures", "those of them that did not end with OK"),
    ),
    "a block device, and DMA between it and memory",
)


class DriveRegisters(wiring.Component):
    """Offers the job that firmware has described, and keeps how it ended.

    ===========  ====  ==============  =========================================================
    member       dir   shape           meaning
    ===========  ====  ==============  =========================================================
    ``csr``      In    CsrSignature    :data:`DRIVE_BLOCK`
    ``job``      Out   stream          to :class:`~.to_memory.DriveDma`, with a tag of 0 bits
    ``done``     In    stream          from it
    ``sectors``  In    48              these three are the drive's (:mod:`.port`)
    ``ready``    In    1
    ``present``  In    1
    ``irq``      Out   1               level: an event that ``irq_enable`` selects is pending
    ===========  ====  ==============  =========================================================

    A write of ``start`` with ``go`` while no job is under way takes ``lba``, ``count`` and
    ``address`` as they are in that cycle: firmware may write the next ones at once. ``job`` is
    valid from the cycle after that until it is taken; ``state.busy`` is 1 from the cycle after the
    write until the cycle in which ``done`` is taken, which is at once, and included. In the cycle
    after that ``state.status`` is the job's, ``events.ended`` is set, and the job is counted.

    Race: an event in the cycle in which firmware clears it stays pending, so none is lost.
    ``events.changed`` is set while ``ready`` is 0, also before the first medium: a medium that was
    replaced between two looks of firmware is noticed.

    *Bad input*: ``start`` while busy is ignored; a job that cannot be carried out ends with
    ``INVALID``, ``RANGE`` or ``ABSENT`` (:class:`~.to_memory.DriveDma`, the drive). *Reset*: no
    job, status ``OK``; the job under way is given up, so DMA and drive must be reset as well.
    """

    def __init__(self):
        self._done = DriveSignature(32, 0).done_layout
        super().__init__(
            {
                "csr": In(CsrSignature(DRIVE_BLOCK)),
                "job": Out(stream.Signature(job_layout(0))),
                "done": In(stream.Signature(self._done)),
                "sectors": In(LBA_WIDTH),
                "ready": In(1),
                "present": In(1),
                "irq": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        csr, job = self.csr, self.job
        start, state, events = fields(csr, "start"), fields(csr, "state"), Signal(2)
        busy, status = Signal(), Signal(self._done["status"].shape)
        m.d.comb += [
            self.done.ready.eq(1),
            state.busy.eq(busy),
            state.ready.eq(self.ready),
            state.present.eq(self.present),
            state.status.eq(status),
            csr.sectors.eq(self.sectors),
            csr.events.eq(events),
            self.irq.eq((events & csr.irq_enable).any()),
        ]
        ended = self.done.valid
        m.d.sync += events.eq(events & ~csr.events_clear | ended | (~self.ready << 1))
        with m.If(job.ready):
            m.d.sync += job.valid.eq(0)
        with m.If(ended):
            m.d.sync += [busy.eq(0), status.eq(self.done.payload.status)]
            m.d.sync += csr.jobs.eq(csr.jobs + 1)
            with m.If(self.done.payload.status != DriveStatus.OK):
                m.d.sync += csr.failures.eq(csr.failures + 1)
        with m.If(start.go & ~busy):
            m.d.sync += [
                busy.eq(1),
                job.valid.eq(1),
                job.payload.write.eq(start.write),
                job.payload.lba.eq(csr.lba),
                job.payload.count.eq(csr.count),
                job.payload.addr.eq(csr.address),
            ]
        return m
