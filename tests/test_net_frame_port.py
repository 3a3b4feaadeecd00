"""FramePort: the CPU gets the frames that nobody else answers, and sends frames; nobody waits."""

import pytest
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.net.frame_port import FramePort
from trebuchet.models.net import is_for_cpu

PORT = 68
MAC, IP = bytes([2, 0, 0, 0, 0, 0x42]), 0x0A00004D
SERVED = (7, 0x1240)
#: Where a frame that was for the CPU may differ, and what it must not be there.
SPOILT = {12: 0x86, 13: 0x06, 14: 0x46, 20: 0x20, 21: 0x01, 23: 6, 36: 1, 37: 67}
NO_MATTER = {0: 0xFF, 15: 0xB8, 16: 9, 20: 0x40, 22: 1, 30: 0xFF, 34: 7, 38: 1}


def frame_for_cpu(rng, length, port=PORT):
    frame = bytearray(rng.randbytes(length))
    for at, value in ((12, 8), (13, 0), (14, 0x45), (20, 0xC0), (21, 0), (23, 17)):
        frame[at] = value
    frame[36:38] = port.to_bytes(2, "big")
    return frame


def arp_frame(rng, length, operation, sender=None):
    frame = bytearray(rng.randbytes(length))
    frame[12:14] = b"\x08\x06"
    frame[20:22] = operation.to_bytes(2, "big")
    if sender is not None:
        frame[28:32] = sender.to_bytes(4, "big")
    return frame


def ip_frame(rng, protocol, header=0x45, fragment=0x4000, port=None):
    """An IPv4 datagram to our address."""
    frame = bytearray(rng.randbytes(rng.randint(60, 100)))
    frame[:6] = MAC
    frame[12:15] = bytes([8, 0, header])
    frame[20:22] = fragment.to_bytes(2, "big")
    frame[23] = protocol
    frame[30:34] = IP.to_bytes(4, "big")
    if port is not None:
        frame[36:38] = port.to_bytes(2, "big")
    return frame


def frames_to_us(rng):
    frames = []
    for protocol in (1, 2, 6, 17, 132):
        frames += [ip_frame(rng, protocol, header) for header in (0x44, 0x45, 0x46, 0x4F, 0x65)]
        frames += [ip_frame(rng, protocol, 0x45, part) for part in (0x2000, 1, 0x100, 0x8000)]
    frames += [ip_frame(rng, 17, port=port) for port in (7, 9, 0x1240, 0x1241, 0x1340, 7 << 8)]
    frames += [ip_frame(rng, 17, 0x46, port=7), ip_frame(rng, 17, 0x45, 0x2000, 7)]
    for at in (*range(6), 12, 13, 14, 30, 31, 32, 33):
        frame = ip_frame(rng, 17, port=9)
        frame[at] ^= 1 << rng.randrange(8)
        frames.append(frame)
    for operation in (1, 2, 9):
        frames.append(arp_frame(rng, 60, operation, IP))
        frames += [arp_frame(rng, 60, operation, IP ^ 1 << bit) for bit in (0, 8, 16, 31)]
    return frames


def some_frames(rng):
    """Frames of all kinds, each with whether it comes damaged."""
    frames = [frame_for_cpu(rng, n) for n in (41, 42, 60, 61, 342, 590, 1514)]
    for wanted in (SPOILT, NO_MATTER):
        for at, value in wanted.items():
            frame = frame_for_cpu(rng, rng.randint(42, 90))
            frame[at] = value
            frames.append(frame)
    frames += [frame_for_cpu(rng, 50, PORT + 1), rng.randbytes(700)]
    frames += [arp_frame(rng, n, 2) for n in (40, 41, 42, 60)]
    frames += [arp_frame(rng, 60, operation) for operation in (1, 3, 0x102, 0x8002)]
    frames += [frame_for_cpu(rng, 60)[:n] for n in (1, 4, 13, 36, 38, 39, 40)]
    frames += [frame_for_cpu(rng, rng.randint(41, 200)) for _ in range(10)]
    frames += frames_to_us(rng)
    rng.shuffle(frames)
    return [(bytes(frame), rng.random() < 0.15) for frame in frames]


def wanted(dut, frames, arp):
    """Those that the CPU must be shown, if there is room for all."""
    n = dut.width // 8
    shortest = (37 // n + 1) * n + 1
    return [
        frame
        for frame, error in frames
        if not error and is_for_cpu(frame, PORT, MAC, IP, shortest, arp, SERVED)
    ]


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
        csr, frame, status = self.dut.csr, b"", 0
        while not status & 4:
            frame += ctx.get(csr.rx_data).to_bytes(4, "little")
            status = ctx.get(csr.status)
            assert status & 1
            await write(ctx, csr.rx_next, 1)
            await ctx.tick().repeat(2 + (self.rng.random() < 0.1) * 20)
        return frame[: len(frame) - (status >> 3)]

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
            for port, value in ((csr.tx_write, 1), (csr.send, 99)):
                if ctx.get(csr.status) & 2:
                    await write(ctx, port, value)


def addressed(dut):
    async def bench(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, IP)

    return bench


@seeds(2)
@pytest.mark.parametrize(
    ("width", "arp"),
    [
        (64, False),
        (128, True),
        *(pytest.param(*n, marks=pytest.mark.nightly) for n in ((32, False), (32, True))),
    ],
)
def test_receives_its_frames_and_sends_under_back_pressure(width, arp, seed):
    rng = make_rng(seed, "frames")
    dut = FramePort(width, 1 << 15, arp=arp, served=SERVED)
    frames = some_frames(rng)
    to_send = [rng.randbytes(n) for n in (14, 15, 16, 17, 42, 59, 60, 61, 342, 511, 512)]
    rng.shuffle(to_send)
    come, shown = [], wanted(dut, frames, arp)
    cpu = Cpu(dut, to_send, seed, rest=lambda: len(cpu.seen) == len(shown))

    async def put(ctx):
        await addressed(dut)(ctx)
        pauses = make_rng(seed, "put")
        for data, error in frames:
            await ctx.tick().repeat(pauses.choice((1, 1, 20, 100)))
            await packet_put(ctx, dut.rx, data, error=error, rng=pauses, idle=0.2)
            come.append(data)

    async def get(ctx):
        pauses = make_rng(seed, "get")
        for data in to_send[:]:
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
        never_waits,
        stream_checker(dut.tx, "tx"),
        limit=200_000,
        seed=seed,
    )
    assert len(shown) > 40, "too few to mean anything"
    assert cpu.seen == shown


@seeds(2)
def test_frames_without_room_are_dropped_and_counted(seed):
    """Whole, whatever the pace; those that are not for the CPU take no room."""
    rng = make_rng(seed, "frames")
    dut = FramePort(32, 256, served=SERVED)
    frames = [(bytes(frame_for_cpu(rng, rng.randint(41, 200))), False) for _ in range(30)]
    frames += [(bytes(frame_for_cpu(rng, n)), False) for n in (300, 1024)]
    frames += [(bytes(frame_for_cpu(rng, n, PORT + 1)), False) for n in (60, 300)]
    rng.shuffle(frames)
    shown, put_all = wanted(dut, frames, False), []
    cpu = Cpu(dut, [], seed, rest=lambda: put_all and cpu.quiet)
    cpu.quiet = False

    async def put(ctx):
        await addressed(dut)(ctx)
        for data, _ in frames:
            await ctx.tick().repeat(rng.choice((1, 10, 100)))
            await packet_put(ctx, dut.rx, data)
        put_all.append(True)
        await ctx.tick().repeat(5000)
        cpu.quiet = True

    run(dut, put, cpu, limit=60_000, seed=seed)
    rest = iter(shown)
    assert all(frame in rest for frame in cpu.seen), "in order, and whole"
    assert 0 < len(cpu.seen) < len(shown)

    async def counted(ctx):
        await addressed(dut)(ctx)
        for data, _ in frames:
            await packet_put(ctx, dut.rx, data)
        await ctx.tick().repeat(3)
        counts = [ctx.get(getattr(dut.csr, n)) for n in ("received", "dropped")]
        assert sum(counts) == len(shown)
        assert counts[0] > 0

    dut = FramePort(32, 256, served=SERVED)
    run(dut, counted, limit=60_000, seed=seed)


@seeds(1)
def test_counters_and_interrupt(seed):
    rng = make_rng(seed, "frames")
    dut = FramePort(store=64)
    good = bytes(frame_for_cpu(rng, 60))

    async def bench(ctx):
        csr = dut.csr
        ctx.set(dut.tx.ready, 1)
        await packet_put(ctx, dut.rx, good)
        await ctx.tick().repeat(5)
        await packet_put(ctx, dut.rx, good)  # finds no room
        await ctx.tick().repeat(5)
        counts = [ctx.get(getattr(csr, n)) for n in ("received", "dropped", "sent")]
        assert counts == [1, 1, 0]
        assert (ctx.get(csr.status), ctx.get(dut.irq)) == (1, 0)
        ctx.set(csr.irq_enable, 1)
        await ctx.tick()
        assert ctx.get(dut.irq) == 1
        await write(ctx, csr.send, 64)
        assert (ctx.get(csr.status), ctx.get(dut.irq)) == (3, 1)
        await ctx.tick().repeat(3 * 16 + 1)
        assert (ctx.get(csr.status), ctx.get(dut.irq), ctx.get(csr.sent)) == (1, 1, 1)
        for word in range(15):
            assert ctx.get(csr.status) == (5 if word == 14 else 1)
            await write(ctx, csr.rx_next, 1)
        assert (ctx.get(csr.status) & 1, ctx.get(dut.irq)) == (0, 0)
        await write(ctx, csr.rx_next, 1)
        await packet_put(ctx, dut.rx, bytes(frame_for_cpu(rng, 100)))
        await packet_put(ctx, dut.rx, good, error=True)
        ctx.set(csr.port, 4011)
        await packet_put(ctx, dut.rx, good)
        await packet_put(ctx, dut.rx, bytes(frame_for_cpu(rng, 59, 4011)))
        await ctx.tick().repeat(5)
        assert [ctx.get(getattr(csr, n)) for n in ("received", "dropped", "sent")] == [2, 2, 1]
        for _ in range(14):
            await write(ctx, csr.rx_next, 1)
        assert ctx.get(csr.status) == 5 | 1 << 3

    run(dut, bench, limit=2000, seed=seed)


@pytest.mark.parametrize("words", [8, 100, 512, "16"])
def test_bad_sizes_are_refused(words):
    message = f"^Words of a frame must be a power of two from 16 to 256, not {words!r}$"
    with pytest.raises(ValueError, match=message):
        FramePort(32, words=words)


@pytest.mark.parametrize("store", [32, 100, "64"])
def test_bad_stores_are_refused(store):
    message = f"^Bytes of the store must be a power of two from 64, not {store!r}$"
    with pytest.raises(ValueError, match=message):
        FramePort(32, store)
