"""``IcmpErrorPort``: notices go between segments."""

from streams import make_rng, run, seeds, stream_checker, stream_put
from test_tcp_notices import ICMP
from trebuchet.cores.tcp.icmp_error import IcmpErrorPort
from trebuchet.cores.tcp.receive_input import InputKind


@seeds(3)
def test_a_notice_goes_between_two_segments(seed):
    """None is lost or changed, and no two notices go while a segment waits."""
    dut = IcmpErrorPort(ICMP)
    rng = make_rng(seed, "words")
    segments = [rng.getrandbits(200) << 2 for _ in range(60)]
    notices = [(rng.getrandbits(32), rng.choice([0, 576, 1500])) for _ in range(40)]
    seen = []

    async def put_segments(ctx):
        for word in segments:
            await stream_put(ctx, dut.i, dut.i.payload.shape().from_bits(word),
                             rng=make_rng(seed, word), idle=0.2)  # fmt: skip

    async def put_notices(ctx):
        for seq, mtu in notices:
            await stream_put(ctx, dut.notice, {"seq": seq, "mtu": mtu, "code": 4, "ip": 9},
                             rng=make_rng(seed, seq), idle=0.2)  # fmt: skip

    async def get(ctx):
        ready = make_rng(seed, "ready")
        waits, last = False, False
        while len(seen) < len(segments) + len(notices):
            ctx.set(dut.o.ready, ready.random() < 0.6)
            _, _, valid, o, waiting, go = await ctx.tick().sample(
                dut.o.valid, dut.o.payload, dut.i.valid, dut.o.ready
            )
            if valid and go:
                own = o.kind == InputKind.NOTICE
                assert not (own and last and waits)
                waits, last = bool(waiting), bool(own)
                seen.append((bool(own), o))

    run(dut, put_segments, put_notices, get, stream_checker(dut.o, "o"), limit=5000, seed=seed)
    assert [o.as_bits() for own, o in seen if not own] == segments
    got = [(o.body.notice.seq, o.body.notice.mss) for own, o in seen if own]
    assert got == [(seq, max(mtu - 40, 536)) for seq, mtu in notices]
    for own, o in seen:
        if own:
            assert (o.body.notice.code, o.body.notice.ip) == (4, 9)
            whole = o.body.segment
            assert (whole.flags.as_bits(), whole.length, whole.seq) == (0, 0, 0)
