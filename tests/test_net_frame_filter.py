"""``FrameFilter`` marks all frames but those for the CPU, whole and a cycle later."""

import pytest
from streams import make_rng, packet_get, packet_put, run, seeds
from test_net_frame_port import IP, MAC, PORT, SERVED, some_frames, wanted
from trebuchet.cores.net.frame_filter import FrameFilter


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("arp", [False, True])
@seeds(2)
def test_frames_for_the_cpu_are_the_models(width, arp, seed):
    dut, rng = FrameFilter(width, arp, SERVED), make_rng(seed, f"filter {width}")
    frames = [(frame[:90], error) for frame, error in some_frames(rng)]
    got = []

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        ctx.set(dut.ip, IP)
        ctx.set(dut.port, PORT)
        for frame, error in frames:
            slow = rng if rng.random() < 0.5 else None
            await packet_put(ctx, dut.i, frame, error=error, rng=slow)

    async def get(ctx):
        for _ in frames:
            got.append(await packet_get(ctx, dut.o))

    run(dut, put, get, limit=8000, seed=seed)
    assert [frame for frame, _ in got] == [frame for frame, _ in frames]
    assert [frame for frame, error in got if not error] == wanted(dut, frames, arp)


@pytest.mark.parametrize("port", [0, 65536, "7"])
def test_bad_ports_are_refused(port):
    with pytest.raises(ValueError, match=f"^A served UDP port must be 1 to 65535, not {port!r}$"):
        FrameFilter(32, served=(7, port))
