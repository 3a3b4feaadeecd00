"""The fabric top's caller: a frame writes the registers of an active open."""

import pytest
from net_frames import tcp_frame
from streams import make_rng, run, seeds
from trebuchet.cores.tcp.connect import ConnectState
from trebuchet.sim.caller import CALL_TYPE, Caller, call_frame
from trebuchet.sim.fabric import FabricOptions, FabricTop
from trebuchet.sim.mirror import Mirror

MAC, BOARD = bytes.fromhex("02000000004d"), bytes.fromhex("020000000002")
IP = bytes([10, 0, 0, 77])
CALL = call_frame(MAC, IP, 5007, 50_123, BOARD)


async def pass_by(ctx, dut, frame, rng, error=False):
    """The frame's beats, with gaps; returns how often a connection was asked for meanwhile."""
    n, asked = dut.width // 8, 0
    for at in range(0, len(frame), n):
        while rng.random() < 0.3:
            asked += (await ctx.tick().sample(dut.connect))[2]
        chunk = frame[at : at + n]
        payload = dut.frames.payload
        ctx.set(dut.frames.valid, 1)
        ctx.set(payload.data, int.from_bytes(chunk, "little"))
        ctx.set(payload.last, at + n >= len(frame))
        ctx.set(payload.error, error and at + n >= len(frame))
        asked += (await ctx.tick().sample(dut.connect))[2]
        ctx.set(dut.frames.valid, 0)
    for _ in range(3):
        asked += (await ctx.tick().sample(dut.connect))[2]
    return asked


@seeds(2)
@pytest.mark.parametrize("width", [32, 64])
def test_a_call_writes_the_registers(width, seed):
    dut, rng = Caller(width), make_rng(seed, "frames")

    async def bench(ctx):
        for frame in (tcp_frame(b"no call"), CALL[:20], b"\xff" * 100):
            assert await pass_by(ctx, dut, frame, rng) == 0
        assert await pass_by(ctx, dut, CALL, rng, error=True) == 0
        for state in ConnectState:
            ctx.set(dut.state, state)
            over = state in (ConnectState.IDLE, ConnectState.REFUSED, ConnectState.CLOSED)
            assert await pass_by(ctx, dut, CALL, rng) == over
        assert ctx.get(dut.mac) == int.from_bytes(MAC, "little")
        assert ctx.get(dut.ip) == int.from_bytes(IP, "big")
        assert (ctx.get(dut.port), ctx.get(dut.local)) == (5007, 50_123)

    run(dut, bench, limit=2000, seed=seed)


def test_a_call_is_an_experimental_frame():
    assert CALL[12:14] == CALL_TYPE.to_bytes(2, "big") == b"\x88\xb5"
    assert len(CALL) == 60


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_a_fabric_that_opens_nothing_cannot_be_called():
    with pytest.raises(ValueError, match=r"^Option call needs an engine of TcpConfig\(active=True"):
        FabricTop(Mirror(), FabricOptions(call=True))
