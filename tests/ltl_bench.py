"""Two LTL engines, or one and a model, with a link between them that does as told."""

from amaranth.hdl import Elaboratable, Module
from streams import packet_get, packet_put, stream_get, stream_put
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.ltl.engine import Ltl

SMALL = LtlConfig(connections=4, vcs=2, slots=8, window=4, buffer_beats=256)
MACS = [bytes.fromhex("02000000000a"), bytes.fromhex("02000000000b")]
IPS = [0x0A000001, 0x0A000002]


class Pair(Elaboratable):
    """Two engines side by side."""

    def __init__(self, config=SMALL):
        self.ends = [Ltl(config), Ltl(config)]

    def elaborate(self, platform):
        m = Module()
        for k, end in enumerate(self.ends):
            m.submodules[f"end{k}"] = end
        return m


async def setup(ctx, end, which, **registers):
    """Addresses and switches of an engine that is board number ``which``."""
    ctx.set(end.mac, int.from_bytes(MACS[which], "little"))
    ctx.set(end.ip, IPS[which])
    values = {"enable": 1, "tick_cycles": 10, "rto": 100, "retries": 3} | registers
    for name, value in values.items():
        ctx.set(getattr(end.csr, name), value)


async def command(ctx, end, index, *, receive=False, is_open=True, peer=1, **fields):
    """Open or close a connection the way firmware does it."""
    values = {
        "peer_mac": int.from_bytes(MACS[peer], "little"),
        "peer_ip": IPS[peer],
        "peer_connection": index,
        "incarnation": 1,
        "vc": 0,
        "credit": 4,
    } | fields
    for name, value in values.items():
        ctx.set(getattr(end.csr, name), value)
    while ctx.get(end.csr.busy):
        await ctx.tick()
    ctx.set(end.csr.command, 1 | is_open << 1 | receive << 2 | index << 16)
    await ctx.tick()
    ctx.set(end.csr.command, 0)
    await ctx.tick()
    while ctx.get(end.csr.busy):
        await ctx.tick()


async def send_message(ctx, end, vc, connection, message, *, error=False, rng=None, idle=0.3):
    """A message of a role, into the input of a virtual channel."""
    n = end.config.bytes
    for at in range(0, len(message), n):
        chunk = message[at : at + n]
        last = at + n >= len(message)
        beat = {
            "data": int.from_bytes(chunk, "little"),
            "empty": n - len(chunk),
            "first": at == 0,
            "last": last,
            "error": error and last,
            "connection": connection,
        }
        await stream_put(ctx, end.send[vc], beat, rng=rng, idle=idle)


async def get_message(ctx, end, vc, *, rng=None, stall=0.3):
    """The next message of an output: ``(connection, bytes)``."""
    n, message = end.config.bytes, b""
    while True:
        beat = await stream_get(ctx, end.deliver[vc], rng=rng, stall=stall)
        assert bool(beat.first) == (not message)
        assert not beat.error
        message += int(beat.data).to_bytes(n, "little")[: n - beat.empty]
        if beat.last:
            return beat.connection, message


def link(source, sink, act=lambda frame: [frame], *, rng=None):
    """A background bench: frames of ``source.tx`` to ``sink.rx``; ``act`` says what arrives."""

    async def carry(ctx):
        while True:
            frame, error = await packet_get(ctx, source.tx, rng=rng, stall=0.2)
            assert not error
            for out in act(frame):
                await packet_put(ctx, sink.rx, out, rng=rng, idle=0.1)

    carry.background = True
    return carry
