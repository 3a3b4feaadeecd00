"""Stores and lengths around the shell, and LTL's, at their default and boards' sizes."""

from ltl_bench import command, get_message, link, send_message, setup
from part_sizes import at_sizes
from streams import make_rng, packet_get, packet_put, run
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.ltl.engine import Ltl
from trebuchet.cores.net.classify import Classifier
from trebuchet.cores.net.frame_port import FramePort
from trebuchet.cores.net.guard import FrameGuard

#: Of Ethernet, without the FCS; with a VLAN tag.
SHORTEST, LONGEST = 60, 1518
#: Lengths at which something may be wrong, and whether a frame of it is good.
LENGTHS = {SHORTEST - 1: 0, SHORTEST: 1, 1514: 1, LONGEST: 1, LONGEST + 1: 0, SHORTEST + 1: 1}


PEER, PORT = bytes(range(0x12, 0x18)), 4001
#: An IPv4 header for 10.0.0.1, as far as a filter looks.
IP = bytes.fromhex("450005dc00004000401100000a0000020a000001")


def _frames(lengths):
    rng = make_rng(0, "frames")
    return [rng.randbytes(length) for length in lengths]


@at_sizes("net.guard.FrameGuard", width=32, shortest=60)
def test_guard(size):
    """The longest frame passes whole, the shortest good one too, and none that is shorter."""
    dut = FrameGuard(**size)
    lengths = (size["shortest"] - 1, size["shortest"], dut.longest)
    frames = _frames(lengths)

    async def put(ctx):
        for frame in frames:
            await packet_put(ctx, dut.i, frame)

    async def get(ctx):
        for frame in frames[1:]:
            assert await packet_get(ctx, dut.o) == (frame, False)

    run(dut, put, get, limit=5_000)


@at_sizes("net.classify.Classifier", width=32)
def test_classifier(size):
    """A frame of the largest size waits as long as it may; the next, a bit longer, is cut."""
    dut = Classifier(**size)
    frames = _frames((LONGEST, LONGEST, 100))

    async def put(ctx):
        ctx.set(dut.enable, 1)
        for frame in frames:
            await packet_put(ctx, dut.rx, frame)

    async def get(ctx):
        for frame, longer in zip(frames[:2], (-4, 4), strict=True):
            while not ctx.get(dut.other.valid):
                await ctx.tick()
            await ctx.tick().repeat(dut.patience + longer)
            got, error = await packet_get(ctx, dut.other)
            assert error == (longer > 0)
            assert error or got == frame
        assert await packet_get(ctx, dut.other) == (frames[2], False)

    run(dut, put, get, limit=10_000)


@at_sizes("net.frame_port.FramePort", width=32)
def test_frame_port(size):
    """A frame as long as the buffer goes out as it was written; one for us comes in whole."""
    dut = FramePort(**size)
    csr, mac = dut.csr, bytes(range(2, 8))
    sent, text = _frames((4 * size["words"], 1514 - 42))
    udp = mac + PEER + b"\x08\x00" + IP + b"\x00\x07" + PORT.to_bytes(2, "big") + bytes(4) + text

    async def cpu(ctx):
        ctx.set(dut.mac, int.from_bytes(mac, "little"))
        ctx.set(dut.ip, 0x0A000001)
        ctx.set(csr.port, PORT)
        for k in range(0, len(sent), 4):
            ctx.set(csr.tx_data, int.from_bytes(sent[k : k + 4], "little"))
            ctx.set(csr.tx_write, 1)
            await ctx.tick()
        ctx.set(csr.tx_write, 0)
        ctx.set(csr.send, len(sent))
        await ctx.tick()
        ctx.set(csr.send, 0)
        assert await packet_get(ctx, dut.tx) == (sent, False)
        await packet_put(ctx, dut.rx, udp)
        while not ctx.get(csr.status) & 1:
            await ctx.tick()
        got, status = b"", 0
        while not status & 4:
            got += ctx.get(csr.rx_data).to_bytes(4, "little")
            status = ctx.get(csr.status)
            ctx.set(csr.rx_next, 1)
            await ctx.tick()
            ctx.set(csr.rx_next, 0)
            await ctx.tick().repeat(2)
        assert got[: len(got) - (status >> 3)] == udp

    run(dut, cpu, limit=5_000)


def config_of(size):
    return LtlConfig(**size)


@at_sizes("ltl.engine.Ltl")
def test_ltl(size):
    """The last connection to itself: a message as large as can be, and more than the window."""
    config = config_of(size)
    dut, last, vc = Ltl(config), config.connections - 1, config.vcs - 1
    rng = make_rng(0, "messages")
    messages = [rng.randbytes(n) for n in (config.max_message, *range(1, config.window + 3))]

    async def put(ctx):
        await setup(ctx, dut, 1, rto=10_000)
        await ctx.tick().repeat(config.connections + config.slots)
        for receive in (True, False):
            await command(ctx, dut, last, receive=receive, vc=vc, credit=config.window)
        for message in messages:
            await send_message(ctx, dut, vc, last, message)

    async def get(ctx):
        for message in messages:
            assert await get_message(ctx, dut, vc) == (last, message)

    run(dut, put, get, link(dut, dut), limit=4_000)
