"""Packet streams over flits: through adapters back to back, and through a router."""

import pytest
from amaranth import Module
from amaranth.lib import wiring
from streams import make_rng, packet_get, packet_put, random_bytes, run, seeds, stream_checker
from trebuchet.cores.router.adapter import FlitsToPackets, PacketsToFlits, user_width
from trebuchet.cores.router.contract import LinkConfig
from trebuchet.cores.router.router import Router

pytestmark = pytest.mark.slow


class Pair(wiring.Component):
    """``n`` endpoints around a router, or one joined to itself."""

    def __init__(self, config, n):
        self.config, self.n = config, n
        self.sends = [PacketsToFlits(config) for _ in range(n)]
        self.takes = [FlitsToPackets(config) for _ in range(n)]
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        router = Router(self.n, self.config) if self.n > 1 else None
        if router is not None:
            m.submodules.router = router
        for k in range(self.n):
            m.submodules[f"send{k}"], m.submodules[f"take{k}"] = self.sends[k], self.takes[k]
            if router is None:
                wiring.connect(m, self.sends[k].o, self.takes[k].i)
            else:
                wiring.connect(m, self.sends[k].o, router.i[k])
                wiring.connect(m, router.o[k], self.takes[k].i)
        return m


def link(width, **kwargs):
    return LinkConfig(flit_width=width, user_width=user_width(width), **kwargs)


@pytest.mark.parametrize(
    ("config", "n"),
    [
        (link(32, vcs=1, buffer_flits=2, reserved=1), 1),
        (link(64, vcs=2, buffer_flits=8), 1),
        (link(32, vcs=2, phit_width=8, buffer_flits=7), 1),
        (link(128, vcs=3, buffer_flits=9), 1),
        (link(32, vcs=2, buffer_flits=8), 2),
    ],
)
@seeds(1)
def test_packets_arrive(config, n, seed):
    """Endpoint k sends to endpoint n - 1 - k, on every VC at once; errors and lengths survive."""
    dut, rng = Pair(config, n), make_rng(seed, "packets")
    flows = [(k, v) for k in range(n) for v in range(config.vcs)]
    packets = {
        flow: [(random_bytes(rng, 1, 60), rng.random() < 0.2) for _ in range(12)] for flow in flows
    }

    def put(flow):
        async def bench(ctx):
            k, v = flow
            rng = make_rng(seed, f"put{flow}")
            ctx.set(dut.sends[k].dest[v], n - 1 - k)
            for packet, error in packets[flow]:
                await packet_put(ctx, dut.sends[k].i[v], packet, error=error, rng=rng)

        return bench

    def get(flow):
        async def bench(ctx):
            k, v = flow
            rng = make_rng(seed, f"get{flow}")
            for packet in packets[flow]:
                got = await packet_get(ctx, dut.takes[n - 1 - k].o[v], rng=rng)
                assert got == packet
            while not all(ctx.get(s.idle) for s in dut.sends):
                await ctx.tick()
            assert not ctx.get(dut.takes[n - 1 - k].o[v].valid)

        return bench

    benches = [bench(flow) for flow in flows for bench in (put, get)]
    checks = [stream_checker(t.o[v]) for t in dut.takes for v in range(config.vcs)]
    run(dut, *benches, *checks, limit=12_000, seed=seed)


@pytest.mark.parametrize("reserved", [2, 3, 4])
def test_a_stream_that_waits_holds_no_other(reserved):
    """The other goes on with its reserve: ``reserved`` beats in the time a credit takes."""
    beats, credit = 50, 4
    config = link(32, vcs=2, buffer_flits=2 * reserved, reserved=reserved)
    dut = Pair(config, 1)

    async def stuck(ctx):
        await packet_put(ctx, dut.sends[0].i[0], bytes(4 * beats))

    stuck.background = True

    async def put(ctx):
        await packet_put(ctx, dut.sends[0].i[1], bytes(range(4 * beats)))

    async def get(ctx):
        got = await packet_get(ctx, dut.takes[0].o[1])
        assert got == (bytes(range(4 * beats)), False)

    cycles = run(dut, stuck, put, get, limit=200)
    # Beside them: what VC 0 sends before it waits, the first beat's way, and the test's own.
    print(cycles, beats * credit // reserved)
    assert cycles < beats * credit // reserved + reserved + credit + 3


@pytest.mark.filterwarnings("ignore::amaranth.hdl.UnusedElaboratable")
def test_bad_parameters():
    with pytest.raises(ValueError, match="User width must be 4 bits for flits of 64, not 0"):
        PacketsToFlits(LinkConfig())
    with pytest.raises(ValueError, match="Data path width must be one of"):
        FlitsToPackets(LinkConfig(flit_width=16))
