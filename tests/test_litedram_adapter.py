"""LiteDramAdapter against a model of LiteDRAM's native port and its manners."""

import re

import pytest
from amaranth.back import rtlil
from streams import MemoryRequester, make_rng, run, seeds, stream_checker
from trebuchet.cores.litedram_adapter import LiteDramAdapter, NativePortSignature

SIZE_LOG2 = 12


class NativeModel:
    """Background test bench: a LiteDRAM native port over a bytearray, as rude as the real one.

    It takes ``wdata`` in the one cycle that it has chosen, and shows ``rdata`` for one cycle,
    without regard to the other side's valid and ready.
    """

    background = True

    def __init__(self, port, memory, *, rng=None, latency=(6, 30), stall=0.3):
        self.port, self.memory, self.rng = port, memory, rng
        self.latency, self.stall = latency, stall
        self.n = port.signature.width // 8
        self.commands = 0

    def _due(self, now, last):
        wait = self.latency[0] if self.rng is None else self.rng.randint(*self.latency)
        return max(last + 1, now + wait)

    async def __call__(self, ctx):
        port, pending, now, last = self.port, [], 0, 0
        while True:
            ready = len(pending) < 8 and (self.rng is None or self.rng.random() >= self.stall)
            write = read = None
            if pending and pending[0][0] <= now:
                _, we, addr = pending.pop(0)
                write, read = (addr, None) if we else (None, addr)
            ctx.set(port.cmd.ready, ready)
            ctx.set(port.wdata.ready, write is not None)
            ctx.set(port.rdata.valid, read is not None)
            if read is not None:
                at = read * self.n % len(self.memory)
                word = int.from_bytes(self.memory[at : at + self.n], "little")
                ctx.set(port.rdata.payload, {"data": word})
            _, _, cv, cp, wv, wp, rr = await ctx.tick().sample(
                port.cmd.valid,
                port.cmd.payload,
                port.wdata.valid,
                port.wdata.payload,
                port.rdata.ready,
            )
            if write is not None:
                assert wv, "no write data in the cycle in which LiteDRAM takes them"
                self._store(write, wp)
            if read is not None:
                assert rr, "no place for read data in the cycle in which LiteDRAM shows them"
            if cv and ready:
                self.commands += 1
                last = self._due(now, last)
                pending.append((last, cp.we, cp.addr))
            now += 1

    def _store(self, addr, payload):
        for lane in range(self.n):
            if payload.we >> lane & 1:
                at = (addr * self.n + lane) % len(self.memory)
                self.memory[at] = payload.data >> (8 * lane) & 0xFF


def _make(width=32, native_width=128, rng=None, **model):
    addr_width = SIZE_LOG2 - (native_width // 8).bit_length() + 1
    dut = LiteDramAdapter(width=width, native_width=native_width, addr_width=addr_width, depth=16)
    memory = bytearray(make_rng(0, "memory").randbytes(1 << SIZE_LOG2))
    return dut, memory, NativeModel(dut.native, memory, rng=rng, **model)


def _region(rng, n, index):
    """A burst that lies in a region of its own, so that reads and writes may overtake."""
    beats = rng.randint(1, 20)
    base = index * 256
    start = rng.randrange(0, 256 // n - min(beats, 256 // n) + 1)
    return base + start * n, min(beats, 256 // n)


@seeds(4)
@pytest.mark.parametrize(("width", "native"), [(32, 128), (32, 32), (64, 128), (32, 64), (64, 512)])
def test_random_traffic_equals_a_bytearray(width, native, seed):
    rng = make_rng(seed, "script")
    dut, memory, model = _make(width, native, rng=make_rng(seed, "native"))
    requester = MemoryRequester(dut.mem, rng=make_rng(seed, "requester"))
    expected = bytearray(memory)
    n = width // 8

    async def script(ctx):
        for _ in range(12):
            jobs = []
            for index in rng.sample(range(16), 6):
                addr, beats = _region(rng, n, index)
                tag = rng.randrange(4)
                if rng.random() < 0.5:
                    content = rng.randbytes(beats * n)
                    strb = [rng.randrange(1 << n) for _ in range(beats)]
                    for i, byte in enumerate(content):
                        if strb[i // n] >> (i % n) & 1:
                            expected[addr + i] = byte
                    jobs.append((requester.start_write(addr, content, tag, strb), None))
                else:
                    want = bytes(expected[addr : addr + beats * n])
                    jobs.append((requester.start_read(addr, beats, tag), want))
            await requester.wait(ctx, *(burst for burst, _ in jobs))
            for burst, want in jobs:
                assert want is None or requester.content(burst) == want
            assert memory == expected

    checkers = [
        stream_checker(dut.native.cmd, "native.cmd"),
        stream_checker(dut.mem.rdata, "rdata"),
        stream_checker(dut.mem.wdone, "wdone"),
    ]
    run(dut, script, requester, model, *checkers, limit=40_000, seed=seed)


@seeds(3)
def test_wdone_means_that_a_later_read_sees_the_data(seed):
    rng = make_rng(seed, "script")
    dut, memory, model = _make(rng=make_rng(seed, "native"))
    requester = MemoryRequester(dut.mem, rng=make_rng(seed, "requester"))

    async def script(ctx):
        for _ in range(25):
            addr, beats = 4 * rng.randrange(64), rng.randint(1, 16)
            content = rng.randbytes(4 * beats)
            await requester.write(ctx, addr, content, tag=rng.randrange(4))
            assert memory[addr : addr + len(content)] == content
            assert await requester.read(ctx, addr, beats, tag=rng.randrange(4)) == content

    run(dut, script, requester, model, limit=40_000, seed=seed)


def test_reads_overtake_a_write_whose_data_are_late():
    dut, memory, model = _make()
    mem = dut.mem
    out = []

    async def script(ctx):
        ctx.set(mem.rdata.ready, 1)
        for write, addr in ((1, 0), (0, 256)):
            ctx.set(mem.cmd.payload, {"write": write, "addr": addr, "beats": 3, "tag": 0})
            ctx.set(mem.cmd.valid, 1)
            await ctx.tick().until(mem.cmd.ready)
        ctx.set(mem.cmd.valid, 0)
        while len(out) < 4:
            _, _, valid, payload = await ctx.tick().sample(mem.rdata.valid, mem.rdata.payload)
            if valid:
                out.append(payload.data)

    run(dut, script, model, limit=200)
    assert b"".join(w.to_bytes(4, "little") for w in out) == memory[256:272]


def test_streams_a_beat_a_cycle_and_one_command_a_native_word():
    dut, memory, model = _make(latency=(8, 8))
    requester = MemoryRequester(dut.mem)
    beats = 64

    async def script(ctx):
        bursts = [requester.start_read(i * 256, beats) for i in range(8)]
        await requester.wait(ctx, *bursts)

    cycles = run(dut, script, requester, model, limit=5_000)
    assert model.commands == 8 * beats // 4
    assert cycles < 8 * beats + 40


def test_wdone_that_nobody_takes_holds_writes_back_without_loss():
    dut, memory, model = _make(rng=make_rng(0, "native"))
    mem = dut.mem
    accepted = []

    async def put(ctx):
        for i in range(14):
            ctx.set(mem.cmd.payload, {"write": 1, "addr": 16 * i, "beats": 0, "tag": i % 4})
            ctx.set(mem.cmd.valid, 1)
            await ctx.tick().until(mem.cmd.ready)
            accepted.append(i)
        ctx.set(mem.cmd.valid, 0)

    async def data(ctx):
        for i in range(14):
            ctx.set(mem.wdata.payload, {"data": i, "strb": 15, "last": 1})
            ctx.set(mem.wdata.valid, 1)
            await ctx.tick().until(mem.wdata.ready)
        ctx.set(mem.wdata.valid, 0)

    async def done(ctx):
        await ctx.tick().repeat(400)
        assert len(accepted) < 14
        tags = []
        ctx.set(mem.wdone.ready, 1)
        while len(tags) < 14:
            _, _, valid, payload = await ctx.tick().sample(mem.wdone.valid, mem.wdone.payload)
            if valid:
                tags.append(payload.tag)
        assert tags == [i % 4 for i in range(14)]

    run(dut, put, data, done, model, limit=3_000)
    assert [memory[16 * i] for i in range(14)] == list(range(14))


def _message(text):
    return f"^{re.escape(text)}$"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"native_width": 48}, "Native width must be 32, 64, 128, 256 or 512 bits, not 48"),
        (
            {"width": 128, "native_width": 64},
            "Native width must be at least the memory port's 128 bits, not 64",
        ),
        ({"depth": 5}, "Depth must be 16, 32, 64 or 128 words, not 5"),
        ({"addr_width": 0}, "Native address width must be 1 to 32 bits, not 0"),
    ],
)
def test_bad_parameters_are_refused(arguments, message):
    with pytest.raises(ValueError, match=_message(message)):
        LiteDramAdapter(**arguments)


@pytest.mark.parametrize(("width", "native"), [(32, 32), (64, 256), (128, 128), (128, 512)])
def test_elaborates_for_every_width(width, native):
    text = rtlil.convert(LiteDramAdapter(width=width, native_width=native), name="adapter")
    assert "module \\adapter" in text


def test_native_signatures_compare_by_their_parameters():
    assert NativePortSignature(128, 23) == NativePortSignature(128, 23)
    assert NativePortSignature(128, 23) != NativePortSignature(128, 22)
