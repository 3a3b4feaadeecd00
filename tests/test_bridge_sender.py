"""``PortSender``: each frame leaves by the ports of its destination, whole and in order."""

import pytest
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.bridge.sender import PortSender

HOST = bytes.fromhex("02aabbccdd01")


def destinations(rng):
    """The host's address, groups', and some that differ from the host's in one bit."""
    near = [bytes(b ^ (1 << rng.randrange(1, 8) if k == at else 0) for k, b in enumerate(HOST))
            for at in range(6)]  # fmt: skip
    return [HOST, HOST, b"\xff" * 6, b"\x01" + HOST[1:], *near]


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(2)
def test_frames_leave_by_their_ports(width, seed):
    """Also those that end before their destination does."""
    dut, rng = PortSender(width), make_rng(seed, f"frames {width}")
    places, n = destinations(rng), width // 8
    frames = [rng.choice(places) + rng.randbytes(rng.choice([0, 1, 9, 40])) for _ in range(50)]
    frames += [HOST[:3], HOST[:4], b"\x01", HOST]
    rng.shuffle(frames)
    frames += [HOST[:4], HOST[4:] + bytes(8)]  # what follows a short frame is not its destination
    wanted = [[], []]
    for frame in frames:
        group = frame[0] & 1
        to_host = frame[:6] == HOST and (len(frame) > n or n >= 6)
        for port in (0, 1):
            if group or to_host == (port == 1):
                wanted[port].append((frame, False))
    got = [[], []]

    async def put(ctx):
        ctx.set(dut.host, int.from_bytes(HOST, "little"))
        for frame in frames:
            await packet_put(ctx, dut.i, frame, rng=rng)
        await ctx.tick().repeat(60)

    def get(port):
        async def take(ctx):
            waits = make_rng(seed, f"port {port}")
            while True:
                got[port].append(await packet_get(ctx, dut.o[port], rng=waits))

        take.background = True
        return take

    checks = [stream_checker(dut.o[port]) for port in (0, 1)]
    run(dut, put, get(0), get(1), *checks, limit=4000, seed=seed)
    assert got == wanted


def test_a_beat_a_cycle():
    """A frame of k beats takes k + 1 cycles."""
    dut, count, beats = PortSender(32), 10, 16

    async def put(ctx):
        for port in dut.o:
            ctx.set(port.ready, 1)
        for _ in range(count):
            await packet_put(ctx, dut.i, bytes(4 * beats))

    assert run(dut, put, limit=1000) <= count * (beats + 1) + 2
