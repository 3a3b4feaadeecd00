"""A block device at a drive port as a test bench: in order, at random speed, failing at will."""

from memory_bench import Hold, bits
from streams import packet_get, packet_put, stream_get, stream_put
from trebuchet.cores.drive.port import SECTOR, DriveStatus

__all__ = ["DriveModel", "done_get", "jobs_put"]


class DriveModel:
    """Background test bench: the device's side of :mod:`trebuchet.cores.drive.port`.

    ``faults(kind, number, size)`` says how command ``number`` ends: ``None`` for well, or
    ``(status, kept)``: the status, and after how many bytes of the data, a multiple of a beat's.
    ``lies``: a failed read's packet is just short, or its last beat has ``error``, and the status
    is ``OK`` all the same. Reads and writes go to ``contents`` in place. ``log`` lists the
    commands; checks that a command keeps still while it waits, and a packet its length.
    """

    background = True

    def __init__(self, port, contents, *, rng=None, faults=None, lies=frozenset()):
        self.port, self.contents, self.rng = port, contents, rng
        self.faults = faults or (lambda kind, number, size: None)
        self.lies, self.log = lies, []
        self.n = len(port.wdata.payload.data) // 8

    async def __call__(self, ctx):
        port = self.port
        hold = Hold("cmd")
        while True:
            ready = self.rng is None or self.rng.random() < 0.5
            ctx.set(port.cmd.ready, ready)
            _, _, valid, cmd = await ctx.tick().sample(port.cmd.valid, port.cmd.payload)
            hold.check(valid, ready, bits(cmd))
            if valid and ready:
                ctx.set(port.cmd.ready, 0)
                await self._execute(ctx, cmd)

    async def _execute(self, ctx, cmd):
        number, at, size = len(self.log), cmd.lba * SECTOR, cmd.count * SECTOR
        self.log.append((cmd.write, cmd.lba, cmd.count, cmd.tag))
        fault = self.faults("write" if cmd.write else "read", number, size)
        status, kept = fault or (DriveStatus.OK, size)
        if cmd.write:
            packet, error = await packet_get(ctx, self.port.wdata, rng=self.rng)
            assert len(packet) == size, f"packet of {len(packet)} bytes, must be {size}"
            assert not error
            self.contents[at : at + kept] = packet[:kept]
        else:
            await self._send(ctx, bytes(self.contents[at : at + kept]), number, fault)
            if number in self.lies:
                status = DriveStatus.OK
        done = {"tag": cmd.tag, "status": status}
        await stream_put(ctx, self.port.done, done, rng=self.rng)

    async def _send(self, ctx, packet, number, fault):
        if fault is None or number in self.lies and number % 2:
            await packet_put(ctx, self.port.rdata, packet, rng=self.rng)
        else:  # one more beat, which means nothing
            packet += b"\xee" * self.n
            await packet_put(ctx, self.port.rdata, packet, True, rng=self.rng)


async def jobs_put(ctx, stream, jobs, rng):
    """Offer jobs (dicts) one after the other."""
    for job in jobs:
        await stream_put(ctx, stream, job, rng=rng)


async def done_get(ctx, stream, count, rng):
    """Return ``count`` pairs of tag and status."""
    got = []
    for _ in range(count):
        done = await stream_get(ctx, stream, rng=rng)
        got.append((int(done.tag), DriveStatus(done.status)))
    return got
