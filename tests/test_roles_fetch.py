"""The operand reader, the result writer and the port they share, against plain byte strings."""

import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from streams import (
    MemoryResponder,
    make_rng,
    packet_get,
    packet_put,
    run,
    seeds,
    stream_checker,
    stream_put,
)
from trebuchet.cores.memory import MemorySignature
from trebuchet.cores.roles.fetch import MemoryJoin, OperandReader, ResultWriter
from trebuchet.cores.stream import DATA_WIDTHS, PacketSignature


def ring_bytes(memory, operand):
    """The operand's bytes by the definition in the role contract."""
    ring = 1 << operand["ring_log2"]
    return bytes(
        memory[operand["base"] + (operand["offset"] + i) % ring] for i in range(operand["length"])
    )


def random_operand(rng, size):
    ring_log2 = rng.choice([8, 9, 11])
    ring = 1 << ring_log2
    length = rng.choice([0, 1, 2, 3, 4, 5, 12, 63, 64, 65, ring, rng.randint(0, ring)])
    return {
        "base": rng.randrange(size >> ring_log2) << ring_log2,
        "offset": rng.choice([0, 1, ring - 1, ring - 5, rng.randrange(ring)]),
        "ring_log2": ring_log2,
        "length": min(length, ring),
    }


@pytest.mark.parametrize("width", DATA_WIDTHS)
@seeds(2)
def test_reader_random(width, seed):
    rng = make_rng(seed, "operands")
    memory = bytearray(rng.randbytes(8192))
    operands = [random_operand(rng, len(memory)) for _ in range(12)]
    operands.append(operands[0] | {"length": 7})  # ends the test with a packet
    dut = OperandReader(width)
    done = []

    async def put(ctx):
        for operand in operands:
            await stream_put(ctx, dut.request, operand, rng=make_rng(seed, operand["base"]))

    async def get(ctx):
        rng = make_rng(seed, "get")
        for operand in operands:
            if operand["length"]:
                want = ring_bytes(memory, operand), False
                assert await packet_get(ctx, dut.packet, rng=rng, stall=0.2) == want, operand

    async def count_done(ctx):
        while len(done) < len(operands):
            _, _, strobe = await ctx.tick().sample(dut.done)
            done.extend([1] * strobe)

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    run(dut, put, get, count_done, responder, stream_checker(dut.packet), limit=30_000, seed=seed)
    assert not responder.busy
    for burst in responder.log:
        assert not burst.write
        assert burst.beats <= 16


@pytest.mark.parametrize("width", DATA_WIDTHS)
def test_reader_throughput(width):
    """At least 0.8 beats a cycle over 8 KB, though every burst comes 40 cycles late."""
    memory = bytearray(make_rng(0, "memory").randbytes(16384))
    operand = {"base": 0, "offset": 16381, "ring_log2": 14, "length": 8192}
    dut = OperandReader(width)

    async def main(ctx):
        await stream_put(ctx, dut.request, operand)
        assert await packet_get(ctx, dut.packet) == (ring_bytes(memory, operand), False)

    cycles = run(dut, main, MemoryResponder(dut.mem, memory, latency=(40, 40)), limit=4000)
    assert 8192 / (width // 8) / cycles >= 0.8 - 0.05 * (width == 128), cycles


def test_reader_never_stops_the_memory():
    """A consumer that takes nothing: everything requested is still drained."""
    memory = bytearray(4096)
    dut = OperandReader(32)

    async def main(ctx):
        operand = {"base": 0, "offset": 3, "ring_log2": 12, "length": 4000}
        await stream_put(ctx, dut.request, operand)
        for _ in range(400):
            await ctx.tick()
            assert ctx.get(dut.mem.rdata.ready) == 1
        assert 32 <= sum(burst.beats for burst in responder.log) <= 64 + 16
        assert not responder.busy

    responder = MemoryResponder(dut.mem, memory, latency=(10, 10))
    run(dut, main, responder, limit=1000)


@pytest.mark.parametrize("width", DATA_WIDTHS)
@seeds(2)
def test_writer_random(width, seed):
    rng = make_rng(seed, "results")
    memory = bytearray(rng.randbytes(4096))
    want = bytearray(memory)
    dut = ResultWriter(width)

    async def main(ctx):
        for _ in range(14):
            length = rng.choice([1, 2, 3, 4, 15, 16, 17, 64, 100, 256, rng.randint(1, 700)])
            room = rng.choice([0, length - 1, length, length, length + 40, 1000])
            addr = 16 * rng.randrange(200)
            packet, error = rng.randbytes(length), rng.random() < 0.2
            await stream_put(ctx, dut.request, {"addr": addr, "room": room}, rng=rng)
            await packet_put(ctx, dut.packet, packet, error=error, rng=rng, idle=0.2)
            written, overflow = await finish(ctx)
            assert overflow == (length > room)
            assert ctx.get(dut.error) == error
            n = width // 8
            fits = length if length <= room else room // n * n
            assert written == fits
            for i in range(fits):
                want[(addr + i) % len(want)] = packet[i]
            assert memory == want, (addr, length, room)

    async def finish(ctx):
        while not ctx.get(dut.done):
            await ctx.tick()
        result = ctx.get(dut.length), ctx.get(dut.overflow)
        await ctx.tick()
        return result

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    run(dut, main, responder, limit=30_000, seed=seed)
    assert all(burst.write for burst in responder.log)


def test_writer_throughput():
    """Sixteen beats in eighteen cycles."""
    memory = bytearray(4096)
    dut = ResultWriter(32)
    packet = make_rng(0, "packet").randbytes(4096)

    async def main(ctx):
        await stream_put(ctx, dut.request, {"addr": 0, "room": 4096})
        await packet_put(ctx, dut.packet, packet)
        while not ctx.get(dut.done):
            await ctx.tick()

    cycles = run(dut, main, MemoryResponder(dut.mem, memory, latency=(30, 30)), limit=3000)
    assert memory == packet
    assert cycles <= 1024 * 18 / 16 + 70


class _Copy(wiring.Component):
    """Reader and writer behind one port, as a role has them."""

    def __init__(self, width):
        self.reader, self.writer = OperandReader(width), ResultWriter(width)
        self.join = MemoryJoin(width)
        super().__init__(
            {
                "packet_in": In(PacketSignature(width)),
                "packet_out": Out(PacketSignature(width)),
                "mem": Out(MemorySignature(width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader, m.submodules.writer = self.reader, self.writer
        m.submodules.join = self.join
        wiring.connect(m, self.reader.mem, self.join.reader)
        wiring.connect(m, self.writer.mem, self.join.writer)
        wiring.connect(m, wiring.flipped(self.packet_in), self.writer.packet)
        wiring.connect(m, wiring.flipped(self.packet_out), self.reader.packet)
        wiring.connect(m, wiring.flipped(self.mem), self.join.mem)
        return m


@seeds(3)
def test_join(seed):
    """A read and a write stream at once through one port; both finish, both are right."""
    memory = bytearray(make_rng(seed, "memory").randbytes(8192))
    source = bytes(memory[:3000])
    result = make_rng(seed, "result").randbytes(2500)
    dut = _Copy(32)

    async def read(ctx):
        operand = {"base": 0, "offset": 0, "ring_log2": 12, "length": 3000}
        await stream_put(ctx, dut.reader.request, operand)
        rng = make_rng(seed, "read")
        assert await packet_get(ctx, dut.packet_out, rng=rng, stall=0.1) == (source, False)

    async def write(ctx):
        await stream_put(ctx, dut.writer.request, {"addr": 4096, "room": 4096})
        await packet_put(ctx, dut.packet_in, result, rng=make_rng(seed, "write"), idle=0.1)
        while not ctx.get(dut.writer.done):
            await ctx.tick()

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "responder"))
    run(dut, read, write, responder, limit=10_000, seed=seed)
    assert memory[4096 : 4096 + 2500] == result


def test_bad_parameters():
    with pytest.raises(ValueError, match="Data path width must be one of"):
        OperandReader(48)
    with pytest.raises(ValueError, match="Data path width must be one of"):
        ResultWriter(16)
