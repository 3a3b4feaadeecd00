"""Registers and DMA together, as in the shell: what firmware starts is moved, and reported."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from drive_bench import DriveModel
from streams import MemoryResponder, make_rng, run, seeds
from trebuchet.cores.csr import CsrSignature, fields
from trebuchet.cores.drive.port import SECTOR, DriveSignature, DriveStatus
from trebuchet.cores.drive.registers import DRIVE_BLOCK, DriveRegisters
from trebuchet.cores.drive.to_memory import DriveDma
from trebuchet.cores.memory import MemorySignature

MEMORY, SECTORS, JOBS = 1 << 13, 32, 10


class Joined(wiring.Component):
    """Registers and DMA, connected as the shell connects them."""

    def __init__(self, width):
        self.dma, self.registers = DriveDma(width, 0), DriveRegisters()
        super().__init__(
            {
                "csr": In(CsrSignature(DRIVE_BLOCK)),
                "drive": Out(DriveSignature(width, 0)),
                "mem": Out(MemorySignature(width, 0)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules += [self.dma, self.registers]
        wiring.connect(m, self.registers.job, self.dma.job)
        wiring.connect(m, self.dma.done, self.registers.done)
        wiring.connect(m, self.dma.drive, wiring.flipped(self.drive))
        wiring.connect(m, self.dma.mem, wiring.flipped(self.mem))
        wiring.connect(m, wiring.flipped(self.csr), self.registers.csr)
        m.d.comb += [
            self.registers.sectors.eq(self.drive.sectors),
            self.registers.ready.eq(self.drive.ready),
            self.registers.present.eq(self.drive.present),
        ]
        return m


async def one_job(ctx, csr, rng, job):
    """Start a job as firmware does, press `start` again while it is busy, wait; its status."""
    ctx.set(csr.lba, job["lba"])
    ctx.set(csr.count, job["count"])
    ctx.set(csr.address, job["addr"])
    ctx.set(csr.start, 1 | job["write"] << 1)
    await ctx.tick()
    ctx.set(csr.start, 0)
    ctx.set(csr.lba, rng.randrange(SECTORS))  # those of the next job do not matter yet
    ctx.set(csr.count, 1)
    while ctx.get(fields(csr, "state").busy):
        ctx.set(csr.start, rng.random() < 0.3)
        await ctx.tick()
        ctx.set(csr.start, 0)
    return DriveStatus(ctx.get(fields(csr, "state").status))


@seeds(3)
def test_jobs_are_moved_once_and_counted(seed):
    rng = make_rng(seed, "jobs")
    dut = Joined(rng.choice((32, 64)))
    memory, disk = bytearray(rng.randbytes(MEMORY)), bytearray(rng.randbytes(SECTORS * SECTOR))
    bad = {3, 7}
    faults = lambda kind, number, size: (DriveStatus.DATA, 0) if number in bad else None  # noqa: E731
    drive = DriveModel(dut.drive, disk, rng=rng, faults=faults)
    jobs = [
        {
            "write": rng.randrange(2),
            "lba": rng.randrange(SECTORS - 2),
            "count": rng.choice((1, 2)),
            "addr": rng.randrange(MEMORY // 1024) * 1024,
        }
        for _ in range(JOBS)
    ]

    async def firmware(ctx):
        ctx.set(dut.drive.ready, 1)
        ctx.set(dut.drive.sectors, SECTORS)
        ctx.set(dut.csr.irq_enable, 1)
        await ctx.tick()
        ctx.set(dut.csr.events_clear, 3)
        await ctx.tick()
        ctx.set(dut.csr.events_clear, 0)
        await ctx.tick()
        assert ctx.get(dut.csr.events) == 0
        assert ctx.get(dut.csr.sectors) == SECTORS
        for number, job in enumerate(jobs):
            want_memory, want_disk = bytearray(memory), bytearray(disk)
            at, lba, size = job["addr"], job["lba"] * SECTOR, job["count"] * SECTOR
            if number not in bad:
                if job["write"]:
                    want_disk[lba : lba + size] = want_memory[at : at + size]
                else:
                    want_memory[at : at + size] = want_disk[lba : lba + size]
            status = await one_job(ctx, dut.csr, rng, job)
            assert status == (DriveStatus.DATA if number in bad else DriveStatus.OK)
            assert (memory, disk) == (want_memory, want_disk)
            assert ctx.get(fields(dut.csr, "events").ended) == 1
            assert ctx.get(dut.registers.irq) == 1
            ctx.set(dut.csr.events_clear, 1)
            await ctx.tick()
            ctx.set(dut.csr.events_clear, 0)
            await ctx.tick()
            assert ctx.get(dut.registers.irq) == 0
        assert ctx.get(dut.csr.jobs) == JOBS
        assert ctx.get(dut.csr.failures) == len(bad)
        ctx.set(dut.drive.ready, 0)  # the medium goes and comes back between two looks
        await ctx.tick()
        ctx.set(dut.drive.ready, 1)
        await ctx.tick().repeat(2)
        assert ctx.get(fields(dut.csr, "events").changed) == 1

    run(dut, firmware, drive, MemoryResponder(dut.mem, memory, rng=rng), limit=40_000, seed=seed)
    assert len(drive.log) == JOBS
