"""``Framer`` against the golden model: each frame's bytes, whatever waits, is paused or killed."""

import pytest
from streams import make_rng, packet_get, run, seeds, stream_checker, stream_put
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.ltl.framer import Framer
from trebuchet.models.ltl import ACK, DATA, PROBE, BadFrame, Frame, build_frame, parse_frame

MAC, IP, PORT, DSCP = bytes.fromhex("02aabbccdd01"), 0x0A00_0002, 0xC17A, 46


class World:
    """A framer, the other ends of its connections, and what the store holds."""

    def __init__(self, width, seed):
        self.config = LtlConfig(width=width, connections=3, slots=4, max_message=160)
        self.dut, self.rng = Framer(self.config), make_rng(seed, f"framer {width}")
        rng = self.rng
        #: By send (0) or receive (1) table, and connection.
        self.peers = {
            (table, k): {
                "mac": rng.getrandbits(48), "ip": rng.getrandbits(32), "port": rng.getrandbits(16),
                "remote": rng.getrandbits(16), "incarnation": rng.getrandbits(16),
            }
            for table in (0, 1) for k in range(3)
        }  # fmt: skip
        self.store = [rng.randbytes(256) for _ in range(self.config.slots)]

    async def setup(self, ctx):
        dut = self.dut
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        for name, value in (("ip", IP), ("port", PORT), ("dscp", DSCP)):
            ctx.set(getattr(dut, name), value)
        for (table, k), peer in self.peers.items():
            ctx.set(dut.peer_addr, table << dut.config.connection_layout.width | k)
            ctx.set(dut.peer, peer)
            ctx.set(dut.peer_en, 1)
            await ctx.tick()
            ctx.set(dut.peer_en, 0)

    async def memory(self, ctx):
        """The store's read port: a cycle later, then stable."""
        dut, n = self.dut, self.config.bytes
        async for _, _, enable, address in ctx.tick().sample(dut.store_en, dut.store_addr):
            if enable:
                slot, beat = (
                    address >> self.config.slot_bits,
                    address % (1 << self.config.slot_bits),
                )
                word = self.store[slot % len(self.store)][beat * n : (beat + 1) * n]
                ctx.set(dut.store_data, int.from_bytes(word, "little"))

    memory.background = True

    def frame(self, control):
        """A frame for the framer."""
        rng = self.rng
        kind = ACK if control else rng.choice([DATA, DATA, DATA, PROBE])
        frame = {"kind": kind, "connection": rng.randrange(3), "seq": rng.getrandbits(16)}
        if kind == DATA:
            frame |= {"slot": rng.randrange(4), "length": rng.choice([1, 7, 8, 9, 64, 100, 160])}
        elif kind == ACK:
            frame |= {"credit": rng.getrandbits(8), "nack": rng.getrandbits(1)}
            frame |= {"cnp": rng.getrandbits(1)}
        return frame

    def bytes_of(self, frame):
        peer = self.peers[int(frame["kind"] == ACK), frame["connection"]]
        payload = self.store[frame["slot"]][: frame["length"]] if frame["kind"] == DATA else b""
        more = {"mac": peer["mac"].to_bytes(6, "little"), "ip": peer["ip"], "port": peer["port"]}
        more |= {"src_mac": MAC, "src_ip": IP, "src_port": PORT, "dscp": DSCP, "payload": payload}
        for name in ("credit", "nack", "cnp"):
            more[name] = frame.get(name, 0)
        return build_frame(
            Frame(frame["kind"], peer["remote"], peer["incarnation"], frame["seq"], **more)
        )


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_frames_are_the_models(width, seed):
    """ACKs and others from two streams, each in its order; ``started`` once for each."""
    world = World(width, seed)
    dut, given, got, started = world.dut, [[], []], [], []
    for control in (0, 1):
        given[control] = [world.frame(control) for _ in range(20)]

    def put(control):
        async def bench(ctx):
            if not control:
                await world.setup(ctx)
            else:
                await ctx.tick().repeat(8)
            stream, waits = (dut.frames, dut.control)[control], make_rng(seed, f"put {control}")
            for frame in given[control]:
                await stream_put(ctx, stream, frame, rng=waits, idle=0.95 if control else 0.2)

        return bench

    async def get(ctx):
        waits = make_rng(seed, "get")
        for _ in range(40):
            got.append(await packet_get(ctx, dut.tx, rng=waits))

    async def watch(ctx):
        async for _, _, one in ctx.tick().sample(dut.started):
            started.append(one)

    watch.background = True
    benches = put(0), put(1), get, world.memory, watch, stream_checker(dut.tx)
    run(dut, *benches, limit=12_000, seed=seed)
    left = [[(world.bytes_of(f), False) for f in frames] for frames in given]
    for frame in got:
        control = frame[0][42] & 15 == ACK
        assert frame == left[control].pop(0)
    assert left == [[], []]
    assert sum(started) == 40


def test_paused_frames_wait_and_acks_pass():
    world = World(64, 0)
    dut, got = world.dut, []
    data, ack = world.frame(0) | {"kind": PROBE}, world.frame(1)

    async def bench(ctx):
        await world.setup(ctx)
        ctx.set(dut.paused, 1)
        ctx.set(dut.frames.payload, data)
        ctx.set(dut.frames.valid, 1)
        for _ in range(20):
            assert not ctx.get(dut.frames.ready)
            assert not ctx.get(dut.tx.valid)
            await ctx.tick()
        await stream_put(ctx, dut.control, ack)
        got.append(await packet_get(ctx, dut.tx))
        ctx.set(dut.paused, 0)
        got.append(await packet_get(ctx, dut.tx))

    run(dut, bench, world.memory, limit=200)
    assert [frame[42] & 15 for frame, _ in got] == [ACK, PROBE]


@pytest.mark.parametrize("at", [*range(0, 12, 3), 14, 18, 22])
@pytest.mark.parametrize("connection", [1, 2])
def test_a_killed_frame_has_a_wrong_crc(at, connection):
    """From when it is offered until its CRC is made; that of another connection is good."""
    world = World(64, 0)
    dut = world.dut
    frame = {"kind": DATA, "connection": 1, "slot": 2, "length": 160, "seq": 7}
    good = world.bytes_of(frame)

    async def bench(ctx):
        await world.setup(ctx)
        ctx.set(dut.frames.payload, frame)
        ctx.set(dut.frames.valid, 1)
        await ctx.tick()
        ctx.set(dut.frames.valid, 0)

    async def kill(ctx):
        await ctx.tick().repeat(6 + at)
        ctx.set(dut.killed, connection)
        ctx.set(dut.kill, 1)
        await ctx.tick()
        ctx.set(dut.kill, 0)

    async def get(ctx):
        data, error = await packet_get(ctx, dut.tx)
        assert not error
        peer = world.peers[0, 1]
        address = peer["mac"].to_bytes(6, "little"), peer["ip"], peer["port"]
        if connection == 1:
            assert data[:-8] == good[:-8]
            with pytest.raises(BadFrame, match="corrupt"):
                parse_frame(data, *address)
        else:
            assert data == good

    run(dut, bench, kill, get, world.memory, limit=200)
