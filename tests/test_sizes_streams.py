"""Stores and arbiters at their default and boards' sizes: to the last place, and once around."""

from amaranth.hdl import unsigned
from memory_bench import MemoryRequester, MemoryResponder, raw
from part_sizes import at_sizes
from streams import run, stream_get
from trebuchet.cores.arbiter import PacketArbiter, StreamArbiter, StreamDemux
from trebuchet.cores.buffers import PacketFifo, StreamFifo
from trebuchet.cores.litedram_adapter import LiteDramAdapter
from trebuchet.cores.memory_arbiter import MemoryArbiter
from trebuchet.cores.net.rollback_fifo import RollbackFifo
from trebuchet.cores.realign import PacketTrim
from trebuchet.cores.roles.dispatch import Dispatcher
from trebuchet.cores.tcp.number_lists import NumberList

#: Cycles until something shows at the end of a FIFO that was empty.
LATENCY = 6


@at_sizes("buffers.StreamFifo", depth=2)
def test_stream_fifo(size):
    """Takes `depth` words and no more, from any place on; gives all back."""
    depth = size["depth"]
    dut = StreamFifo(unsigned(16), depth, registered=size.get("registered"))
    i, o = dut.i, dut.o

    async def bench(ctx):
        sent = got = 0
        for most in (depth // 2 + 1, depth):
            ctx.set(i.valid, 1)
            while sent - got < most:
                ctx.set(i.payload, sent & 0xFFFF)
                assert ctx.get(i.ready)
                await ctx.tick()
                sent += 1
            assert ctx.get(dut.level) == most
            assert ctx.get(i.ready) == (most < depth)
            if most == depth:  # it is not heard
                ctx.set(i.payload, 0xBAD)
                await ctx.tick()
            ctx.set(i.valid, 0)
            await ctx.tick().repeat(LATENCY)
            while got < sent:
                assert await stream_get(ctx, o) == got & 0xFFFF
                got += 1
        assert ctx.get(dut.level) == 0
        assert not ctx.get(o.valid)

    run(dut, bench, limit=5 * depth + 100)


@at_sizes("tcp.number_lists.NumberList", width=6, depth=64)
def test_number_list(size):
    """All numbers that there are, in order, from each half of its places on."""
    depth, width = size["depth"], size["width"]
    dut = NumberList(width=width, depth=depth, lut_ram=size["lut_ram"])

    async def bench(ctx):
        last = (1 << width) - 1
        for turn in range(3):
            for k in range(depth):
                assert ctx.get(dut.w_rdy)
                ctx.set(dut.w_en, 1)
                ctx.set(dut.w_data, (turn - k) & last)
                await ctx.tick()
            ctx.set(dut.w_en, 0)
            await ctx.tick().repeat(3)
            assert ctx.get(dut.level) == depth
            assert not ctx.get(dut.w_rdy)
            ctx.set(dut.r_en, 1)
            for k in range(depth):
                assert ctx.get(dut.r_rdy)
                assert ctx.get(dut.r_data) == (turn - k) & last
                await ctx.tick()
            ctx.set(dut.r_en, 0)
            assert ctx.get(dut.level) == 0
            # The next turn begins elsewhere.
            ctx.set(dut.w_en, 1)
            await ctx.tick()
            ctx.set(dut.w_en, 0)
            await ctx.tick().repeat(3)
            ctx.set(dut.r_en, 1)
            await ctx.tick()
            ctx.set(dut.r_en, 0)

    run(dut, bench, limit=9 * depth + 100)


def _beat(port, k, last):
    """Beat ``k`` of a packet, in bits."""
    beat = {"data": k | (~k & 0xFFFF) << 16, "first": k == 0, "last": last}
    return port.payload.shape().const(beat).as_bits()


async def _put_packet(ctx, port, beats):
    payload = raw(port.payload)
    ctx.set(port.valid, 1)
    for k in range(beats):
        ctx.set(payload, _beat(port, k, k == beats - 1))
        while not ctx.get(port.ready):
            await ctx.tick()
        await ctx.tick()
    ctx.set(port.valid, 0)


async def _get_packet(ctx, port, beats):
    payload, k = raw(port.payload), 0
    ctx.set(port.ready, 1)
    async for _, _, valid, beat in ctx.tick().sample(port.valid, payload):
        if valid:
            assert beat == _beat(port, k, k == beats - 1), k
            if (k := k + 1) == beats:
                break
    ctx.set(port.ready, 0)


@at_sizes("buffers.PacketFifo", width=32, depth=512)
def test_packet_fifo(size):
    """A packet as long as the storage passes; one a beat longer is dropped whole."""
    dut = PacketFifo(**size)

    async def put(ctx):
        await _put_packet(ctx, dut.i, dut.depth + 1)
        await _put_packet(ctx, dut.i, dut.depth)

    async def get(ctx):
        await _get_packet(ctx, dut.o, dut.depth)
        await ctx.tick().repeat(LATENCY)
        assert not ctx.get(dut.o.valid)

    run(dut, put, get, limit=4 * dut.depth + 200)


@at_sizes("net.rollback_fifo.RollbackFifo", depth=512)
def test_rollback_fifo(size):
    """Full exactly with `depth` items, also behind some that were taken back."""
    depth = size["depth"]
    dut = RollbackFifo(unsigned(16), depth)

    async def bench(ctx):
        for turn in range(2):
            ctx.set(dut.w_en, 1)
            for k in range(depth // 2 + 1):  # forgotten
                ctx.set(dut.w_data, 0xDEAD)
                ctx.set(dut.rollback, k == depth // 2)
                await ctx.tick()
            ctx.set(dut.rollback, 0)
            for k in range(depth):
                assert not ctx.get(dut.full), k
                ctx.set(dut.w_data, 7 * k & 0xFFFF)
                await ctx.tick()
            assert ctx.get(dut.full)
            ctx.set(dut.w_data, 0xBAD)  # it is not heard
            await ctx.tick()
            ctx.set(dut.w_en, 0)
            ctx.set(dut.commit, 1)
            await ctx.tick()
            ctx.set(dut.commit, 0)
            for k in range(depth):
                assert await stream_get(ctx, dut.output) == 7 * k & 0xFFFF
            await ctx.tick().repeat(2)
            assert not ctx.get(dut.full), turn

    run(dut, bench, limit=9 * depth + 200)


@at_sizes("arbiter.StreamArbiter", n=2)
def test_stream_arbiter(size):
    """Each of `n` inputs has its turn, and its number is told."""
    n = size["n"]
    dut = StreamArbiter(unsigned(8), n)

    async def bench(ctx):
        for k in range(n):
            ctx.set(dut.i[k].payload, 0x80 + k)
            ctx.set(dut.i[k].valid, 1)
        order = []
        for _ in range(2 * n):
            assert (got := await stream_get(ctx, dut.o)) & 0x80
            order.append(got - 0x80)
        assert sorted(order[:n]) == list(range(n))
        assert order[:n] == order[n:]
        for k in range(n):
            ctx.set(dut.i[k].valid, 0)
        ctx.set(dut.i[n - 1].valid, 1)
        for _ in range(4):  # of those chosen before
            await stream_get(ctx, dut.o)
        assert ctx.get(dut.index) == n - 1

    run(dut, bench, limit=20 * n + 100)


@at_sizes("arbiter.PacketArbiter", width=32, n=2)
def test_packet_arbiter(size):
    dut = PacketArbiter(**size)

    async def bench(ctx):
        beat = {"first": 1, "last": 1, "empty": 0, "error": 0}
        for k in range(dut.n):
            ctx.set(dut.i[k].payload, beat | {"data": k})
            ctx.set(dut.i[k].valid, 1)
        order = [(await stream_get(ctx, dut.o)).data for _ in range(2 * dut.n)]
        assert sorted(order[: dut.n]) == list(range(dut.n))

    run(dut, bench, limit=20 * dut.n + 100)


@at_sizes("arbiter.StreamDemux", n=2)
def test_stream_demux(size):
    n = size["n"]
    dut = StreamDemux(unsigned(8), n)

    async def bench(ctx):
        for k in range(n):
            ctx.set(dut.o[k].ready, 1)
        for k in range(n):
            ctx.set(dut.select, k)
            ctx.set(dut.i.payload, 200 - k)
            ctx.set(dut.i.valid, 1)
            assert ctx.get(dut.i.ready)
            shown = [ctx.get(dut.o[j].valid) for j in range(n)]
            assert shown == [j == k for j in range(n)]
            assert ctx.get(dut.o[k].payload) == 200 - k
            await ctx.tick()

    run(dut, bench, limit=n + 10)


@at_sizes("roles.dispatch.Dispatcher", n=2, depth=2)
def test_dispatcher(size):
    """Each instance gets `depth` jobs, and the next one nobody."""
    dut = Dispatcher(**size)
    total = dut.n * dut.depth

    async def bench(ctx):
        ctx.set(dut.enable, -1)
        for k in range(dut.n):
            ctx.set(dut.jobs[k].ready, 1)
        given = [0] * dut.n
        for job in range(total):
            ctx.set(dut.job.payload, {"id": job})
            ctx.set(dut.job.valid, 1)
            while not ctx.get(dut.job.ready):
                await ctx.tick()
            who = [k for k in range(dut.n) if ctx.get(dut.jobs[k].valid)]
            assert len(who) == 1
            given[who[0]] += 1
            await ctx.tick()
        assert given == [dut.depth] * dut.n
        for _ in range(20):
            assert not ctx.get(dut.job.ready)
            await ctx.tick()

    run(dut, bench, limit=20 * total + 100)


@at_sizes("realign.PacketTrim", width=32, max_skip=2048)
def test_packet_trim(size):
    """All that may be dropped is dropped, and no byte more."""
    dut = PacketTrim(**size)
    beats = dut.max_skip // (dut.width // 8) + 1

    async def put(ctx):
        ctx.set(dut.skip, dut.max_skip)
        await _put_packet(ctx, dut.i, beats)

    async def get(ctx):
        got = await stream_get(ctx, dut.o)
        assert got.first
        assert got.last
        assert got.data == (beats - 1) | (~(beats - 1) & 0xFFFF) << 16
        assert got.empty == 0

    run(dut, put, get, limit=2 * beats + 50)


@at_sizes("memory_arbiter.MemoryArbiter", n=2)
def test_memory_arbiter(size):
    """The last port's bursts come back to it, with its largest tag; so do all others'."""
    dut = MemoryArbiter(**size)
    n, step, largest = dut.n, dut.width // 8, (1 << dut.tag_width) - 1
    memory = bytearray(range(256)) * 32
    responder = MemoryResponder(dut.mem, memory, latency=(4, 4))
    ports = [MemoryRequester(dut.ports[k]) for k in range(n)]

    async def bench(ctx):
        for k, port in enumerate(ports):
            await port.write(ctx, 128 * k, bytes([k]) * step * 4, tag=largest)
        reads = [port.start_read(128 * k, 4, largest) for k, port in enumerate(ports)]
        for k, (port, read) in enumerate(zip(ports, reads, strict=True)):
            await port.wait(ctx, read)
            assert port.content(read) == bytes([k]) * step * 4
        # As many write bursts as the queue takes, and one more; the longest.
        burst = bytes(step * 64)
        writes = [
            ports[-1].start_write(2048, burst, largest) for _ in range(size["write_bursts"] + 1)
        ]
        await ports[-1].wait(ctx, *writes)

    run(dut, bench, responder, *ports, limit=4000)


@at_sizes("litedram_adapter.LiteDramAdapter")
def test_litedram_adapter(size):
    """The first and the last word of the memory are two, and have their own addresses."""
    dut = LiteDramAdapter(**size)
    step, native = size["width"] // 8, dut.native
    addrs = []

    async def controller(ctx):
        """Answers reads with their address, takes writes at once."""
        due = []
        ctx.set(native.cmd.ready, 1)
        ctx.set(native.wdata.ready, 0)
        while True:
            valid, we, addr = (
                ctx.get(s)
                for s in (native.cmd.valid, native.cmd.payload.we, native.cmd.payload.addr)
            )
            if valid:
                addrs.append(addr)
                due.append((we, addr))
            kind, addr = due.pop(0) if due else (None, 0)
            await ctx.tick()
            ctx.set(native.wdata.ready, kind == 1)
            ctx.set(native.rdata.valid, kind == 0)
            ctx.set(native.rdata.payload.data, addr)

    controller.background = True
    requester = MemoryRequester(dut.mem)
    last = (1 << size["addr_width"]) - 1
    ratio = size["native_width"] // size["width"]

    async def bench(ctx):
        for word in (0, 1, last, last // 2 + 1):
            place = word * step * ratio
            got = await requester.read(ctx, place & 0xFFFFFFFF, 1)
            assert int.from_bytes(got[:4], "little") == word
            await requester.write(ctx, place & 0xFFFFFFFF, bytes(step))
        assert addrs == [a for word in (0, 1, last, last // 2 + 1) for a in (word, word)]
        # As many reads as there are places, and twice.
        reads = [requester.start_read(k * step * ratio, 1) for k in range(2 * size["depth"])]
        await requester.wait(ctx, *reads)
        for k, read in enumerate(reads):
            assert int.from_bytes(requester.content(read)[:4], "little") == k

    run(dut, bench, requester, controller, limit=2000)
