"""``SegmentClassifier`` against RFC 9293, stated naively."""

from streams import (
    make_rng,
    run,
    seeds,
)
from tcp_bench import SMALL
from trebuchet.cores.tcp.classifier import DEPTH, SegmentClassifier
from trebuchet.models.tcp import after

M32 = (1 << 32) - 1


@seeds(2)
def test_judge(seed):
    """A.3: all comparisons modulo 2**32, near every edge and across the wrap."""
    dut, rng = SegmentClassifier(SMALL), make_rng(seed, "judge")

    async def bench(ctx):
        for _ in range(400):
            nxt, una = (rng.choice((0, 0x100, 0xFFFFFF00, rng.getrandbits(32))) for _ in "ab")
            room, out = rng.choice((0, 1, 4096, 65535)), rng.choice((0, 1, 1460, 65535))
            length, fin = rng.choice((0, 1, 2, 536, 1460)), rng.random() < 0.3
            off = rng.choice((0, -1, 1, -length, 1 - length, -length - 1, room, room - 1, room + 1))
            off = rng.choice((off, off, off, 1 << 31, rng.randint(-70000, 70000), 0x20000 + 10))
            gained = rng.choice((0, 1, -1, out, out + 1, -65536, -65537, 1 << 30, out // 2))
            record, seg = dut.record, dut.segment
            ctx.set(record.rcv_nxt, nxt)
            ctx.set(record.rcv_edge, (nxt + room) & M32)
            ctx.set(record.snd_una, una)
            ctx.set(record.snd_max, (una + out) & M32)
            ctx.set(seg.seq, (nxt + off) & M32)
            ctx.set(seg.ack, (una + gained) & M32)
            ctx.set(seg.length, length)
            ctx.set(seg.flags.fin, fin)
            await ctx.tick().repeat(DEPTH)
            j = ctx.get(dut.judgement)
            off = (off + (1 << 31) & M32) - (1 << 31)
            ends = off < 0 and off + length + fin > 0 and off > -65536
            assert j.exact == (off == 0)
            assert j.ahead == after(nxt + off, nxt)
            assert j.in_window == (off == 0 or 0 < off < room)
            assert j.valid == (0 <= off <= room or ends)
            if j.valid and not j.ahead:
                assert j.skip == -off
                assert j.take == min(room, length + off)
                assert j.next == (nxt + min(room, length + off)) & M32
                assert j.whole == (length + off <= room)
            assert j.keep == (length > 0 and 0 < off < off + length <= room)
            assert j.ack_new == (0 < gained <= out)
            assert j.ack_same == (gained == 0)
            assert j.ack_bad == (gained > out or gained < -65536)

    run(dut, bench, limit=4000, seed=seed)
