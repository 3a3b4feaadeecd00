"""FramePort: the CPU gets whole frames of one UDP port, and sends frames; nobody ever waits."""

import pytest
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.net.frame_port import FramePort
from trebuchet.models.net import is_for_cpu

PORT = 68
#: Where a frame that was for the CPU may differ, and what it must not be there.
SPOILT = {12: 0x86, 13: 0x06, 14: 0x46, 20: 0x20, 21: 0x01, 23: 6, 36: 1, 37: 67}
NO_MATTER = {0: 0xFF, 15: 0xB8, 16: 9, 20: 0x40, 22: 1, 30: 0xFF, 34: 7, 38: 1}


def frame_for_cpu(rng, length, port=PORT):
    frame = bytearray(rng.randbytes(length))
    for at, value in ((12, 8), (13, 0), (14, 0x45), (20, 0xC0), (21, 0), (23, 17)):
        frame[at] = value
    frame[36:38] = port.to_bytes(2, "big")
    return frame


def arp_frame(rng, length, operation):
    frame = bytearray(rng.randbytes(length))
    frame[12:14] = b"\x08\x06"
    frame[20:22] = operation.to_bytes(2, "big")
    return frame


def some_frames(rng):
    """Frames of all kinds, each with whether it comes damaged."""
    frames = [frame_for_cpu(rng, n) for n in (41, 42, 60, 61, 342, 590, 1023, 1024, 1025, 1200)]
    for wanted in (SPOILT, NO_MATTER):
        for at, value in wanted.items():
            frame = frame_for_cpu(rng, rng.randint(42, 90))
            frame[at] = value
            frames.append(frame)
    frames += [frame_for_cpu(rng, 50, PORT + 1), rng.randbytes(700)]
    frames += [arp_frame(rng, n, 2) for n in (40, 41, 42, 60)]
    frames += [arp_frame(rng, 60, operation) for operation in (1, 3, 0x102, 0x8002)]
    frames += [frame_for_cpu(rng, 60)[:n] for n in (1, 4, 13, 36, 38, 39, 40)]
    frames += [frame_for_cpu(rng, rng.randint(41, 200)) for _ in range(25)]
    rng.shuffle(frames)
    return [(bytes(frame), rng.random() < 0.15) for frame in frames]


class Listener:
    """The data sheet in Python: sees every cycle, and says which frames the CPU must be shown."""

    def __init__(self, dut):
        self.dut, self.n = dut, dut.width // 8
        self.shown, self.received, self.dropped = [], 0, 0
        self.background = True

    async def __call__(self, ctx):
        dut = self.dut
        shortest = (37 // self.n + 1) * self.n + 1
        pending, frame, lost, before = False, b"", False, None
        while True:
            sample = (dut.rx.valid, dut.rx.payload, dut.csr.tx_write, dut.csr.done, dut.csr.status)
            _, _, valid, beat, tx_write, done, status = await ctx.tick().sample(*sample)
            sending = status >> 1
            # The port looks at a beat in the cycle after it came.
            beat_before, before = before, beat if valid else None
            hit = pending or (tx_write and not sending)
            if done and not sending:
                pending = False
            if beat_before is None:
                continue
            octets = int(beat_before.data).to_bytes(self.n, "little")
            frame += octets[: self.n - beat_before.empty]
            lost |= bool(hit)
            if beat_before.last:
                if is_for_cpu(frame, PORT, shortest, dut.arp) and not beat_before.error:
                    keep = not lost and len(frame) <= 1024
                    self.received += keep
                    self.dropped += not keep
                    if keep:
                        pending = True
                        self.shown.append(frame)
                frame, lost = b"", False


async def write(ctx, port, value):
    ctx.set(port, value)
    await ctx.tick()
    ctx.set(port, 0)


class Cpu:
    """What the firmware does, at random times; and some that it should not do."""

    def __init__(self, dut, to_send, seed, rest):
        self.dut, self.to_send, self.rest = dut, list(to_send), rest
        self.rng = make_rng(seed, "cpu")
        self.seen = []

    async def __call__(self, ctx):
        csr, rng = self.dut.csr, self.rng
        while self.to_send or not self.rest():
            await ctx.tick().repeat(rng.randint(1, 120))
            status = ctx.get(csr.status)
            if status & 1:
                self.seen.append(await self._receive(ctx))
            if self.to_send and rng.random() < 0.5 and not ctx.get(csr.status) & 2:
                await self._send(ctx, self.to_send.pop(0))
        await ctx.tick().repeat(20)

    async def _receive(self, ctx):
        csr, length, frame = self.dut.csr, ctx.get(self.dut.csr.length), b""
        for k in range(-(-length // 4)):
            ctx.set(csr.rx_index, k)
            await ctx.tick().repeat(3)
            frame += ctx.get(csr.rx_data).to_bytes(4, "little")
        await write(ctx, csr.done, 1)
        return frame[:length]

    async def _send(self, ctx, frame):
        csr, rng = self.dut.csr, self.rng
        if rng.random() < 0.3:  # a beginning that is taken back
            ctx.set(csr.tx_data, 0x5A5A5A5A)
            await write(ctx, csr.tx_write, 1)
            await write(ctx, csr.send, rng.randint(1, 13))
        for at in range(0, len(frame), 4):
            ctx.set(csr.tx_data, int.from_bytes(frame[at : at + 4], "little"))
            await write(ctx, csr.tx_write, 1)
            for _ in range(rng.randint(0, 3)):
                await ctx.tick()
        await write(ctx, csr.send, len(frame))
        if rng.random() < 0.5:  # the port is busy: nothing of this counts
            for port, value in ((csr.tx_write, 1), (csr.send, 99), (csr.done, 1)):
                if ctx.get(csr.status) & 2:
                    await write(ctx, port, value)


@seeds(2)
@pytest.mark.parametrize(("width", "arp"), [(32, False), (32, True), (64, False), (128, True)])
def test_receives_its_frames_and_sends_under_back_pressure(width, arp, seed):
    rng = make_rng(seed, "frames")
    dut = FramePort(width, arp=arp)
    frames = some_frames(rng)
    to_send = [rng.randbytes(n) for n in (14, 15, 16, 17, 42, 59, 60, 61, 342, 590, 1023)]
    rng.shuffle(to_send)
    come = []
    listener = Listener(dut)
    cpu = Cpu(dut, to_send, seed, rest=lambda: len(come) == len(frames))

    async def put(ctx):
        pauses = make_rng(seed, "put")
        for data, error in frames:
            await ctx.tick().repeat(pauses.choice((1, 1, 60, 900)))
            await packet_put(ctx, dut.rx, data, error=error, rng=pauses, idle=0.2)
            come.append(data)

    async def get(ctx):
        pauses = make_rng(seed, "get")
        for data in to_send:
            assert await packet_get(ctx, dut.tx, rng=pauses, stall=0.3) == (data, False)

    async def never_waits(ctx):
        async for _, _, ready in ctx.tick().sample(dut.rx.ready):
            assert ready

    never_waits.background = True
    run(
        dut,
        put,
        get,
        cpu,
        listener,
        never_waits,
        stream_checker(dut.tx, "tx"),
        limit=120_000,
        seed=seed,
    )
    assert len(listener.shown) > 10, "too few to mean anything"
    assert listener.dropped > 2
    assert cpu.seen == listener.shown[: len(cpu.seen)]
    assert len(cpu.seen) >= len(listener.shown) - 1  # one may be pending at the end


@seeds(1)
def test_counters_and_interrupt(seed):
    rng = make_rng(seed, "frames")
    dut = FramePort()
    good = bytes(frame_for_cpu(rng, 60))

    async def bench(ctx):
        csr = dut.csr
        ctx.set(dut.tx.ready, 1)
        for _ in range(2):  # the second finds no room
            await packet_put(ctx, dut.rx, good)
        await ctx.tick().repeat(3)
        counts = [ctx.get(getattr(csr, n)) for n in ("received", "dropped", "sent", "length")]
        assert counts == [1, 1, 0, 60]
        assert (ctx.get(csr.status), ctx.get(dut.irq)) == (1, 0)
        ctx.set(csr.irq_enable, 1)
        await ctx.tick()
        assert ctx.get(dut.irq) == 1
        await write(ctx, csr.send, 64)
        assert (ctx.get(csr.status), ctx.get(dut.irq)) == (2, 0)
        await ctx.tick().repeat(3 * 16 + 1)
        assert (ctx.get(csr.status), ctx.get(dut.irq), ctx.get(csr.sent)) == (1, 1, 1)
        await write(ctx, csr.done, 1)
        assert (ctx.get(csr.status), ctx.get(dut.irq)) == (0, 0)
        await packet_put(ctx, dut.rx, bytes(frame_for_cpu(rng, 1025)))
        await packet_put(ctx, dut.rx, good, error=True)
        ctx.set(csr.port, 4011)
        await packet_put(ctx, dut.rx, good)
        await packet_put(ctx, dut.rx, bytes(frame_for_cpu(rng, 60, 4011)))
        await ctx.tick().repeat(3)
        assert [ctx.get(getattr(csr, n)) for n in ("received", "dropped", "sent")] == [2, 2, 1]

    run(dut, bench, limit=2000, seed=seed)


@seeds(1)
def test_a_write_in_the_cycle_of_a_beat_wins(seed):
    rng = make_rng(seed, "frames")
    dut = FramePort()
    to_send = rng.randbytes(16)

    async def put(ctx):
        await packet_put(ctx, dut.rx, bytes(frame_for_cpu(rng, 400)))

    async def cpu(ctx):
        csr = dut.csr
        await ctx.tick().repeat(20)
        for at in range(0, 16, 4):
            ctx.set(csr.tx_data, int.from_bytes(to_send[at : at + 4], "little"))
            await write(ctx, csr.tx_write, 1)
        await ctx.tick().repeat(100)
        assert [ctx.get(getattr(csr, n)) for n in ("received", "dropped")] == [0, 1]
        await write(ctx, csr.send, 16)
        assert await packet_get(ctx, dut.tx) == (to_send, False)

    run(dut, put, cpu, limit=1000, seed=seed)


@pytest.mark.parametrize("words", [8, 100, 512, "16"])
def test_bad_sizes_are_refused(words):
    message = f"^Words of a frame must be a power of two from 16 to 256, not {words!r}$"
    with pytest.raises(ValueError, match=message):
        FramePort(32, words)
