"""PFC: a sender and a receiver, wired together."""

import pytest
from amaranth.hdl import Elaboratable, Module
from streams import make_rng, packet_get, run, seeds, stream_checker
from trebuchet.cores.ltl.pfc import PfcReceiver, PfcSender


class PfcPair(Elaboratable):
    """A sender of PFC and a receiver, wired together."""

    def __init__(self, width):
        self.tx, self.rx = PfcSender(width), PfcReceiver(width)

    def elaborate(self, platform):
        m = Module()
        m.submodules.tx, m.submodules.rx = self.tx, self.rx
        m.d.comb += [
            self.rx.valid.eq(self.tx.o.valid & self.tx.o.ready),
            self.rx.beat.eq(self.tx.o.payload),
        ]
        return m


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_pfc_pauses_its_class_only(seed, width):
    dut = PfcPair(width)
    rng = make_rng(seed, "pfc")
    frames = []
    mac = bytes.fromhex("02112233445a")
    klass = rng.randrange(8)

    async def main(ctx):
        ctx.set(dut.tx.mac, int.from_bytes(mac, "little"))
        for part in (dut.tx, dut.rx):
            ctx.set(part.priority, klass)
            ctx.set(part.quantum, 8)
        for xoff in (1, 0, 1):
            ctx.set(dut.tx.xoff, xoff)
            await ctx.tick().repeat(60)
            assert ctx.get(dut.rx.paused) == xoff
        ctx.set(dut.tx.xoff, 0)
        ctx.set(dut.rx.priority, (klass + 1) % 8)  # the XON is now for another class
        await ctx.tick().repeat(60)
        assert ctx.get(dut.rx.paused) == 1

    async def collect(ctx):
        r = make_rng(seed, "stall")
        while True:
            frames.append((await packet_get(ctx, dut.tx.o, rng=r))[0])

    collect.background = True
    run(dut, main, collect, stream_checker(dut.tx.o), limit=2_000, seed=seed)
    times = b"".join(b"\xff\xff" if p == klass else bytes(2) for p in range(8))
    head = bytes.fromhex("0180c2000001") + mac + bytes.fromhex("88080101") + bytes([0, 1 << klass])
    assert frames == [(head + (times if on else bytes(16))).ljust(60, b"\0") for on in (1, 0, 1, 0)]


def test_a_pause_ends_by_itself():
    dut = PfcPair(64)

    async def main(ctx):
        for part in (dut.tx, dut.rx):
            ctx.set(part.quantum, 1)
        ctx.set(dut.tx.o.ready, 1)
        ctx.set(dut.tx.xoff, 1)
        await ctx.tick().repeat(30)
        assert ctx.get(dut.rx.paused)
        ctx.set(dut.tx.o.ready, 0)  # the link is cut: no refresh
        await ctx.tick().repeat(65_500 - 30)
        assert ctx.get(dut.rx.paused)
        await ctx.tick().repeat(100)
        assert not ctx.get(dut.rx.paused)

    run(dut, main, limit=70_000)
