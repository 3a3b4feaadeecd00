"""The LTL engine against its naive model: bytes, order, credits, bad input, dead peers, drain."""

import random
from dataclasses import replace

import pytest
from ltl_bench import (
    IPS,
    MACS,
    SMALL,
    Pair,
    command,
    get_message,
    link,
    send_message,
    setup,
)
from streams import make_rng, packet_get, packet_put, run, seeds, stream_checker
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.ltl.engine import Ltl
from trebuchet.models.ltl import (
    ACK,
    DATA,
    PROBE,
    BadFrame,
    Frame,
    Receiver,
    build_frame,
    parse_frame,
)

pytestmark = pytest.mark.slow


def frame(kind, seq, **fields):
    """A frame from board 0 to board 1, as the model builds it."""
    values = {"connection": 2, "incarnation": 1, "mac": MACS[1], "ip": IPS[1]}
    values |= {"src_mac": MACS[0], "src_ip": IPS[0]} | fields
    return Frame(kind, seq=seq, **values)


class Answers:
    """Collects what an engine sends, parsed by the model and built anew: the bytes must agree."""

    background = True

    def __init__(self, end, to, rng=None):
        self.end, self.to, self.rng, self.frames = end, to, rng, []

    async def __call__(self, ctx):
        while True:
            octets, error = await packet_get(ctx, self.end.tx, rng=self.rng, stall=0.2)
            assert not error
            parsed = parse_frame(octets, MACS[self.to], IPS[self.to])
            assert build_frame(parsed) == octets
            self.frames.append(parsed)


@pytest.mark.parametrize("width", [32, pytest.param(64, marks=pytest.mark.nightly)])
@seeds(2)
def test_messages_survive_a_hostile_link(seed, width):
    """Both ways and on both channels, under loss, doubling, reordering and damage."""
    config = replace(SMALL, width=width, buffer_beats=512)
    pair, rng = Pair(config), make_rng(seed, "messages")
    flows = [(0, 1, 2, 0), (0, 1, 1, 1), (1, 0, 3, 0)]  # from, to, connection, channel
    messages = [[rng.randbytes(rng.choice([1, 3, 8, 17, 40])) for _ in range(9)] for _ in flows]
    hurt = {"lost": 0, "doubled": 0, "late": 0, "damaged": 0}

    def hostile(name):
        r, late = make_rng(seed, name), []

        def act(octets):
            x = r.random()
            if x < 0.07:
                hurt["lost"] += 1
                return []
            if x < 0.14:
                hurt["doubled"] += 1
                return [octets, octets]
            if x < 0.21 and not late:
                hurt["late"] += 1
                late.append(octets)
                return []
            if x < 0.28:
                hurt["damaged"] += 1
                octets = bytearray(octets)
                octets[r.randrange(len(octets))] ^= 1 << r.randrange(8)
                octets = bytes(octets)
            out = [octets, *late]
            late.clear()
            return out

        return act

    ready = []

    async def open_all(ctx):
        for k, end in enumerate(pair.ends):
            await setup(ctx, end, k, retries=50, rto=40)
        await ctx.tick().repeat(20)
        for source, sink, connection, vc in flows:
            await command(ctx, pair.ends[sink], connection, receive=True, peer=source, vc=vc)
            await command(ctx, pair.ends[source], connection, peer=sink)
        ready.append(True)

    async def when_ready(ctx):
        while not ready:
            await ctx.tick()

    def put(n):
        async def bench(ctx):
            await when_ready(ctx)
            r = make_rng(seed, f"put{n}")
            source, _, connection, vc = flows[n]
            for message in messages[n]:
                await send_message(ctx, pair.ends[source], vc, connection, message, rng=r)

        return bench

    def get(n):
        async def bench(ctx):
            r = make_rng(seed, f"get{n}")
            _, sink, connection, vc = flows[n]
            for message in messages[n]:
                got = await get_message(ctx, pair.ends[sink], vc, rng=r)
                assert got == (connection, message)

        return bench

    async def drained(ctx):
        """Until nothing is stored; afterwards every message counts once."""
        await when_ready(ctx)
        for k, end in enumerate(pair.ends):
            mine = sum(len(messages[n]) for n, f in enumerate(flows) if f[0] == k)
            while ctx.get(end.csr.messages_acked) < mine:
                await ctx.tick()
            theirs = sum(len(messages[n]) for n, f in enumerate(flows) if f[1] == k)
            assert ctx.get(end.csr.stored) == 0
            assert ctx.get(end.csr.messages_delivered) == theirs
            assert ctx.get(end.csr.failures) == 0

    a, b = pair.ends
    run(
        pair,
        open_all,
        *(bench(n) for n in range(len(flows)) for bench in (put, get)),
        drained,
        link(a, b, hostile("ab"), rng=make_rng(seed, "link ab")),
        link(b, a, hostile("ba"), rng=make_rng(seed, "link ba")),
        stream_checker(a.tx),
        stream_checker(b.tx),
        limit=40_000,
        seed=seed,
    )
    assert all(hurt.values()), hurt


@seeds(2)
def test_answers_are_those_of_the_model(seed):
    """Random DATA and PROBE frames, early, late and doubled: delivered and answered alike."""
    end, model, rng = Ltl(SMALL), Receiver(credit=100), make_rng(seed, "frames")
    answers = Answers(end, 0, make_rng(seed, "answers"))
    expected = []

    async def main(ctx):
        await setup(ctx, end, 1)
        await ctx.tick().repeat(20)
        await command(ctx, end, 2, receive=True, peer=0, credit=100)
        r = make_rng(seed, "put")
        for _ in range(45):
            if rng.random() < 0.1:
                expected.append(model.ack())
                await packet_put(ctx, end.rx, build_frame(frame(PROBE, 0)), rng=r, idle=0.1)
            else:
                seq = max(0, model.expected + rng.choice([-2, -1, 0, 0, 0, 0, 1, 2, 3]))
                payload = rng.randbytes(rng.randint(1, 30))
                await packet_put(
                    ctx, end.rx, build_frame(frame(DATA, seq, payload=payload)), rng=r, idle=0.1
                )
                if (answer := model.data(seq, payload)) is not None:
                    expected.append(answer)
            await ctx.tick().repeat(60)  # one answer a frame: they merge otherwise

    got = []

    async def messages(ctx):
        r = make_rng(seed, "get")
        while True:
            got.append((await get_message(ctx, end, 0, rng=r))[1])

    messages.background = True
    run(end, main, answers, messages, stream_checker(end.tx), limit=15_000, seed=seed)
    assert got == model.delivered
    assert [(a.seq, a.nack) for a in answers.frames] == [(s, nack) for s, _, nack in expected]
    assert all(a.kind == ACK and a.connection == 2 and a.ecn == 0 for a in answers.frames)
    # Messages are taken at once, so that the whole credit is there again or nearly.
    assert all(97 <= a.credit <= 100 for a in answers.frames)


BAD = {
    "foreign": [
        lambda f: MACS[0] + f[6:],
        lambda f: f[:20] + b"\x20" + f[21:],
        lambda f: f[:36] + b"\x12\x34" + f[38:],
        lambda f: f[:12] + b"\x86\xdd" + f[14:],
        lambda f: f[:9],
        lambda f: f[:48],
    ],
    "corrupt": [
        lambda f: f[:58] + bytes([f[58] ^ 4]) + f[59:],
        lambda f: f[:22] + bytes([f[22] ^ 1]) + f[23:],
        lambda f: f[:-8],
        lambda f: f[:50],
        lambda f: f + bytes(8),
        lambda f: f[:-1] + b"\x01",
    ],
}


def remade(octets, at, value):
    """A byte changed, the CRC right again."""
    import zlib

    changed = bytearray(octets)
    changed[at] = value
    changed[-8:-4] = zlib.crc32(bytes(changed[40:-8])).to_bytes(4, "little")
    return bytes(changed)


MALFORMED = [(42, 0x21), (42, 0x14), (53, 200), (53, 0), (39, 99), (52, 0xFF), (40, 1)]
MALFORMED_ACK = [(53, 5)]


@pytest.mark.parametrize("width", [64, pytest.param(32, marks=pytest.mark.nightly)])
def test_bad_frames_are_counted_and_disturb_nobody(width):
    """Before, between and after good frames, at the right place of a sequence, without a pause."""
    end = Ltl(replace(SMALL, width=width, buffer_beats=512))
    answers = Answers(end, 0)
    counts, got = {}, []
    bad = []
    for reason, changes in BAD.items():
        bad += [(reason, lambda seq, c=c: c(build_frame(data_frame(seq)))) for c in changes]
    bad += [
        ("malformed", lambda seq, p=p: remade(build_frame(data_frame(seq)), *p)) for p in MALFORMED
    ]
    bad += [
        ("malformed", lambda seq, p=p: remade(build_frame(frame(ACK, seq)), *p))
        for p in MALFORMED_ACK
    ]
    bad += [
        ("unknown", lambda seq: build_frame(data_frame(seq, connection=1))),
        ("unknown", lambda seq: build_frame(data_frame(seq, connection=4))),
        ("unknown", lambda seq: build_frame(frame(ACK, seq, connection=0x4001))),
        ("other_incarnation", lambda seq: build_frame(data_frame(seq, incarnation=2))),
        ("stale", lambda seq: build_frame(frame(ACK, seq, credit=3))),
        ("duplicates", lambda seq: build_frame(data_frame(seq - 1))),
        ("out_of_order", lambda seq: build_frame(data_frame(seq + 7))),
    ]

    def data_frame(seq, **fields):
        return frame(DATA, seq, payload=bytes([seq % 256]) * 19, **fields)

    async def main(ctx):
        await setup(ctx, end, 1)
        await ctx.tick().repeat(20)
        await command(ctx, end, 2, receive=True, peer=0, credit=50)
        await packet_put(ctx, end.rx, build_frame(data_frame(0)))
        for seq, (reason, make) in enumerate(bad, 1):
            octets = make(seq)
            if reason in BAD or reason == "malformed":
                with pytest.raises(BadFrame, match=reason):  # the model says the same
                    parse_frame(octets, MACS[1], IPS[1])
            counts[reason] = counts.get(reason, 0) + 1
            await packet_put(ctx, end.rx, octets)
            await packet_put(ctx, end.rx, build_frame(data_frame(seq)))
        await packet_put(ctx, end.rx, build_frame(data_frame(len(bad) + 1)), error=True)
        counts["corrupt"] += 1
        await ctx.tick().repeat(200)
        names = [*BAD, "malformed", "unknown", "other_incarnation", "stale"]
        names += ["duplicates", "out_of_order", "no_room"]
        for reason in names:
            assert ctx.get(getattr(end.csr, reason)) == counts.get(reason, 0), reason
        assert ctx.get(end.csr.stored) == 0

    async def messages(ctx):
        while True:
            got.append((await get_message(ctx, end, 0))[1])

    messages.background = True
    run(end, main, answers, messages, limit=15_000)
    assert got == [bytes([seq]) * 19 for seq in range(len(bad) + 1)]


def test_bad_messages_of_roles_are_dropped():
    """Too long, damaged, and for a connection that is not open; the next one goes through."""
    config = replace(SMALL, max_message=40, slots=4)
    end = Ltl(config)
    answers = Answers(end, 0)

    async def main(ctx):
        await setup(ctx, end, 1)
        await ctx.tick().repeat(20)
        await command(ctx, end, 2, peer=0)
        for _ in range(3):
            await send_message(ctx, end, 0, 2, bytes(41))
            await send_message(ctx, end, 0, 2, bytes(100))
            await send_message(ctx, end, 0, 2, bytes(9), error=True)
            await send_message(ctx, end, 0, 1, bytes(9))
        await send_message(ctx, end, 1, 2, b"x" * 40)
        await ctx.tick().repeat(100)
        csr = end.csr
        assert [ctx.get(v) for v in (csr.oversize, csr.damaged, csr.unopened)] == [6, 3, 3]
        assert ctx.get(csr.stored) == 1
        await command(ctx, end, 4)  # no such entry
        assert ctx.get(csr.command_errors) == 1

    run(end, main, answers, limit=3_000)
    assert [a.payload for a in answers.frames] == [b"x" * 40]


def test_a_dead_peer_is_reported_and_its_slots_come_free():
    """After (retries + 1) time-outs; the other connection goes on, also while the store is full."""
    end = Ltl(SMALL)
    answers = Answers(end, 0)
    rto, retries, tick = 20, 2, 10

    async def main(ctx):
        await setup(ctx, end, 1, rto=rto, retries=retries, tick_cycles=tick)
        await ctx.tick().repeat(20)
        await command(ctx, end, 3, peer=0)
        await command(ctx, end, 2, peer=0)
        for _ in range(4):
            await send_message(ctx, end, 0, 3, b"nobody hears this")
        assert ctx.get(end.csr.stored) == 4
        waited = 0
        while not ctx.get(end.csr.failure) >> 16:
            await ctx.tick()
            waited += 1
        whole = rto * tick * (retries + 1)
        assert whole - 300 < waited < whole + 40 * 4 + tick
        assert ctx.get(end.csr.failure) & 0xFFFF == 3
        ctx.set(end.csr.failure_next, 1)
        await ctx.tick()
        ctx.set(end.csr.failure_next, 0)
        await ctx.tick().repeat(30)
        assert not ctx.get(end.csr.failure) >> 16
        assert ctx.get(end.csr.stored) == 0
        sent = len(answers.frames)
        await send_message(ctx, end, 0, 3, b"closed now")
        await send_message(ctx, end, 0, 2, b"the other one")
        await ctx.tick().repeat(150)
        assert ctx.get(end.csr.unopened) == 1
        assert [f.payload for f in answers.frames[sent:]] == [b"the other one"]
        # Opened again, it begins anew.
        await command(ctx, end, 3, peer=0, incarnation=9)
        await send_message(ctx, end, 0, 3, b"again")
        await ctx.tick().repeat(60)
        last = answers.frames[-1]
        assert (last.payload, last.incarnation, last.seq) == (b"again", 9, 0)

    run(end, main, answers, limit=5_000)
    first = [f.seq for f in answers.frames if f.connection == 3 and f.incarnation == 1]
    assert first == [0, 1, 2, 3] * (retries + 1)


def test_marked_frames_are_answered_with_notifications_and_slow_the_sender():
    pair = Pair(SMALL)
    a, b = pair.ends
    cnps = []

    def mark(octets):
        parsed = parse_frame(octets, MACS[1], IPS[1])
        return [build_frame(replace(parsed, ecn=3)) if parsed.seq < 4 else octets]

    def watch(octets):
        cnps.append(parse_frame(octets, MACS[0], IPS[0]).cnp)
        return [octets]

    async def main(ctx):
        for k, end in enumerate(pair.ends):
            # No recovery within the test: alpha is 1 at first, so that each CNP halves the rate.
            await setup(ctx, end, k, rate_control=1, cnp_interval=50, rate_ticks=60_000)
        await ctx.tick().repeat(20)
        await command(ctx, b, 2, receive=True, peer=0)
        await command(ctx, a, 2, peer=1)
        ctx.set(a.csr.rate_view, 2)
        for k in range(12):
            await send_message(ctx, a, 0, 2, bytes([k]) * 64)
            assert await get_message(ctx, b, 0) == (2, bytes([k]) * 64)
        await ctx.tick().repeat(200)
        assert ctx.get(b.csr.marked) == 4
        assert ctx.get(a.csr.cnps) == sum(cnps)
        assert 0 < ctx.get(a.csr.rate_now) <= 0x8000

    run(pair, main, link(a, b, mark), link(b, a, watch), limit=8_000)
    assert 1 <= sum(cnps) < 4


def test_a_pause_holds_data_back_and_not_acknowledgements():
    end = Ltl(SMALL)
    answers = Answers(end, 0)

    def pause(quanta):
        times = bytes(6) + quanta.to_bytes(2, "big") + bytes(8)
        head = bytes.fromhex("0180c2000001") + MACS[0] + bytes.fromhex("880801010008")
        return (head + times).ljust(60, b"\0")

    async def main(ctx):
        await setup(ctx, end, 1, pfc=1, pfc_class=3, rto=5)
        await ctx.tick().repeat(20)
        await command(ctx, end, 2, peer=0)
        await command(ctx, end, 2, receive=True, peer=0)
        ctx.set(end.deliver[0].ready, 1)
        await packet_put(ctx, end.rx, pause(60))
        await send_message(ctx, end, 0, 2, b"later")
        await packet_put(ctx, end.rx, build_frame(frame(DATA, 0, payload=b"now")))
        await ctx.tick().repeat(350)
        assert [f.kind for f in answers.frames] == [ACK]
        assert ctx.get(end.csr.timeouts) == 0
        await ctx.tick().repeat(200)
        assert [f.kind for f in answers.frames[:2]] == [ACK, DATA]

    run(end, main, answers, limit=2_000)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("width", 128, "LTL must be 32 or 64"),
        ("connections", 0, "LTL connections must be 1 to 1024, not 0"),
        ("window", 6, "LTL window must be a power of two, not 6"),
        ("slots", 3, r"LTL slots must be 4 \(the reserve\) to 256, not 3"),
        ("max_message", 1449, "LTL max_message must be 1 to 1448, not 1449"),
        ("buffer_beats", 128, "LTL buffer_beats must hold a message of 181 beats, not 128"),
    ],
)
def test_parameters_are_checked(field, value, message):
    with pytest.raises(ValueError, match=message):
        LtlConfig(**{field: value})


def test_model_frames_are_read_back():
    r = random.Random(1)
    for _ in range(50):
        f = frame(DATA, r.getrandbits(32), payload=r.randbytes(r.randint(1, 1448)), dscp=5, ecn=2)
        assert parse_frame(build_frame(f), MACS[1], IPS[1]) == f
