"""The mailbox's copiers: where a request ends, and what of a response is written."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from streams import MemoryResponder, make_rng, run, seeds
from trebuchet.cores.memory import MemorySignature
from trebuchet.cores.services.mailbox_copy import (
    REQUEST_BYTES,
    RESPONSE_BYTES,
    RequestCopier,
    ResponseCopier,
)

RING_LOG2 = 11
END = b"\r\n\r\n"


class WithPort(wiring.Component):
    """A copier with a whole memory port, of which it is given its part."""

    def __init__(self, part, width):
        self.part = part
        super().__init__({"mem": wiring.Out(MemorySignature(width))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = self.part
        mem = self.mem
        wiring.connect(m, part.mem_cmd, wiring.flipped(mem.cmd))
        m.d.comb += mem.wdone.ready.eq(1)
        if isinstance(part, RequestCopier):
            wiring.connect(m, wiring.flipped(mem.rdata), part.mem_rdata)
        else:
            wiring.connect(m, part.mem_wdata, wiring.flipped(mem.wdata))
            m.d.comb += part.written.eq(mem.wdone.valid)
        return m


def request_end(data, expect, counted, largest):
    """``(length, matched)`` of the request that ``data`` begins with."""
    data = data[:largest]
    if not counted and data and data[0] < 9:
        expect, counted = 8, True
    if counted:
        return min(expect, len(data)), len(data) >= expect
    at = data.find(END)
    return (len(data), False) if at < 0 else (at + 4, True)


def texts(rng):
    """Beginnings of requests, with ends that are nearly one."""
    parts = [b"GET /", b"\r\n", b"\r", b"\n", b"\n\r\n", b"\r\n\r", b"x", END]
    while True:
        text = b"".join(rng.choice(parts) for _ in range(rng.randrange(20)))
        yield rng.choice([text, b"G" + text + END + b"more", bytes([rng.randrange(12)]) + text])


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_a_request_is_copied_to_its_end(width, seed):
    """Text, binary and counted ones, at any place of the ring, cut anywhere."""
    rng, largest = make_rng(seed, f"requests {width}"), 24
    dut = WithPort(RequestCopier(width, RING_LOG2, largest), width)
    part, memory, ends = dut.part, bytearray(rng.randbytes(1 << RING_LOG2 + 1)), set()

    async def bench(ctx):
        source, directed = texts(rng), (b"G" * 60, b"G" * (largest - 4) + END)
        cases = [next(source)[: rng.choice([60, rng.randrange(20)])] for _ in range(40)]
        for data in (*directed, *cases):
            base, offset = rng.randrange(2), rng.choice([rng.randrange(2000), 2040])
            counted, expect = (
                data not in directed and rng.random() < 0.3,
                rng.randrange(1, largest + 1),
            )
            for k, byte in enumerate(data):
                memory[(base << RING_LOG2) + (offset + k) % (1 << RING_LOG2)] = byte
            values = {"base": base, "offset": offset, "available": len(data)}
            values |= {"counted": counted, "expect": expect if counted else 0}
            for name, value in values.items():
                ctx.set(getattr(part, name), value)
            ctx.set(part.start, 1)
            await ctx.tick()
            ctx.set(part.start, 0)
            while not ctx.get(part.done):
                await ctx.tick()
            await ctx.tick()
            length, matched = request_end(data, expect, counted, largest)
            assert ctx.get(part.length) == length, data
            assert ctx.get(part.matched) == matched, data
            assert ctx.get(part.full) == (length == largest)
            copied = b""
            for index in range(-(-length // 4)):
                ctx.set(part.index, index)
                await ctx.tick()
                copied += ctx.get(part.word).to_bytes(4, "little")
            assert copied[:length] == data[:length]
            ends.add((matched, length == largest))

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"), latency=(1, 4))
    run(dut, bench, responder, limit=20_000, seed=seed)
    assert len(ends) >= 3
    assert all(not burst.write for burst in responder.log)


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_a_response_is_written_and_nothing_else(width, seed):
    """``done`` only behind the last write; lengths are rounded up to words."""
    rng, base = make_rng(seed, f"responses {width}"), RESPONSE_BYTES
    dut = WithPort(ResponseCopier(width), width)
    part, memory = dut.part, bytearray(rng.randbytes(3 * RESPONSE_BYTES))

    async def bench(ctx):
        for length in (1, 3, 4, 5, 8, rng.randrange(9, 60), 64):
            words = [rng.getrandbits(32) for _ in range(-(-length // 4) + rng.randrange(3))]
            ctx.set(part.clear, 1)
            await ctx.tick()
            ctx.set(part.clear, 0)
            for word in words:
                ctx.set(part.word, word)
                ctx.set(part.append, 1)
                await ctx.tick()
                ctx.set(part.append, 0)
                await ctx.tick().repeat(rng.randrange(1, 3))
            before = bytes(memory)
            ctx.set(part.addr, base)
            ctx.set(part.length, length)
            ctx.set(part.start, 1)
            await ctx.tick()
            ctx.set(part.start, 0)
            while not ctx.get(part.done):
                await ctx.tick()
            count = -(-length // 4)
            text = b"".join(word.to_bytes(4, "little") for word in words[:count])
            assert memory == before[:base] + text + before[base + 4 * count :]
            await ctx.tick()

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"), latency=(1, 4))
    run(dut, bench, responder, limit=10_000, seed=seed)


def test_sizes():
    assert RequestCopier(32, RING_LOG2).largest == REQUEST_BYTES
