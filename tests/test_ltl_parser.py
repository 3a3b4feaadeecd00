"""``Parser`` against the golden model: good frames, and frames with one thing wrong."""

import zlib
from dataclasses import replace

import pytest
from streams import make_rng, packet_put, run, seeds
from trebuchet.cores.ltl.config import LtlConfig
from trebuchet.cores.ltl.parser import Parser
from trebuchet.models.ltl import ACK, CE, DATA, PROBE, BadFrame, Frame, build_frame, parse_frame
from trebuchet.models.net import checksum

MAC, IP, PORT, LONGEST = bytes.fromhex("02aabbccdd01"), 0x0A00_0002, 0xC17A, 120
REASONS = ("foreign", "corrupt", "malformed")


def random_frame(rng):
    kind = rng.choice([DATA, DATA, DATA, ACK, PROBE])
    length = rng.choice([1, 7, 8, 9, 16, rng.randrange(1, LONGEST + 1), LONGEST, LONGEST + 8])
    frame = Frame(
        kind, rng.getrandbits(16), rng.getrandbits(16), rng.getrandbits(32),
        rng.randbytes(length) if kind == DATA else b"", rng.randrange(256),
        rng.random() < 0.3, rng.random() < 0.3, MAC, IP, PORT, rng.randbytes(6),
        rng.getrandbits(32), rng.getrandbits(16), rng.getrandbits(6), rng.choice([None, CE]),
    )  # fmt: skip
    others = {"mac": b"\x02" + MAC[1:5] + b"\x02", "ip": IP ^ 1 << rng.randrange(32)}
    others |= {"port": PORT ^ 1 << rng.randrange(16)}
    name = rng.choice([*others, *[None] * 20])
    return replace(frame, **{name: others[name]}) if name else frame


def spoilt(rng, data):
    """The bytes with a wrong bit, mended sums behind it or not, cut, or longer."""
    way = rng.choice(["bit", "mended", "mended", "cut", "longer"])
    if way == "cut":
        return data[: rng.choice([1, 14, 47, 48, 49, 56, 64, rng.randrange(1, len(data))])]
    if way == "longer":
        return data + rng.randbytes(rng.choice([1, 4, 8]))
    data = bytearray(data)
    at = rng.randrange(len(data)) if way == "bit" else rng.choice([14, 16, 17, *range(36, 56)])
    data[at] ^= 1 << rng.randrange(8)
    if way == "mended":
        data[24:26] = checksum(data[14:24] + bytes(2) + data[26:34]).to_bytes(2, "big")
        data[-8:] = zlib.crc32(data[40:-8]).to_bytes(4, "little") + bytes(4)
    return bytes(data)


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("prompt", [True, False])
@seeds(2)
def test_verdicts_headers_and_bodies(width, prompt, seed):
    dut, rng = Parser(LtlConfig(width=width)), make_rng(seed, f"frames {width}")
    n = width // 8
    frames = [build_frame(random_frame(rng)) for _ in range(80)]
    frames = [(spoilt(rng, f) if rng.random() < 0.5 else f, rng.random() < 0.05) for f in frames]
    ends, reasons = [], {}

    async def put(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        for name, value in (("ip", IP), ("port", PORT), ("max_length", LONGEST)):
            ctx.set(getattr(dut, name), value)
        for data, error in frames:
            await packet_put(ctx, dut.rx, data, error=error, rng=None if prompt else rng)
        await ctx.tick().repeat(8)

    async def get(ctx):
        body, lasts, looked = b"", [], []
        verdict = [getattr(dut, name) for name in ("good", *REASONS)]
        samples = dut.lookup, dut.about, dut.body, dut.data, dut.last, dut.end, dut.header, *verdict
        async for _, _, lookup, about, some, word, last, end, header, *said in ctx.tick().sample(
            *samples
        ):
            if lookup:
                looked.append(about)
            if some:
                body += word.to_bytes(n, "little")
                lasts.append(last)
            if end:
                ends.append((said, header, body, lasts, looked))
                # What was looked up by now may be the next frame's.
                body, lasts, looked = b"", [], []

    get.background = True
    run(dut, put, get, limit=20_000, seed=seed)
    assert len(ends) == len(frames)
    for (data, error), (said, header, body, lasts, _) in zip(frames, ends, strict=True):
        try:
            frame = parse_frame(data, MAC, IP, PORT, LONGEST)
            reason = "corrupt" if error else "good"
        except BadFrame as bad:
            reason = "corrupt" if error and bad.reason == "malformed" else bad.reason
        found = [name for name, bit in zip(("good", *REASONS), said, strict=True) if bit]
        assert found == [reason], data.hex()
        reasons[reason] = reasons.get(reason, 0) + 1
        if reason != "good":
            continue
        for name in ("kind", "connection", "incarnation", "seq", "credit", "nack", "cnp"):
            assert header[name] == getattr(frame, name), name
        assert (header.length, header.marked) == (len(frame.payload), frame.ecn == CE)
        if frame.kind == DATA:
            count = -(-len(frame.payload) // n)
            assert body[: len(frame.payload)] == frame.payload
            assert lasts[:count] == [0] * (count - 1) + [1]
    assert min(reasons[name] for name in ("good", *REASONS)) >= 3
    looked = [about for *_, looked in ends for about in looked]
    wanted = [int.from_bytes(data[44:46], "big") for data, _ in frames if len(data) >= 56]
    assert [about for about in looked if about in wanted] == wanted


@pytest.mark.parametrize("width", [32, 64])
def test_a_frame_that_lacks_a_byte_is_not_good(width):
    """Its sums are right if the place of the last byte, a 0, happens to hold one."""
    dut, verdicts = Parser(LtlConfig(width=width)), []
    frame = build_frame(Frame(DATA, 1, 2, 3, bytes(40), mac=MAC, ip=IP, port=PORT))

    async def bench(ctx):
        ctx.set(dut.mac, int.from_bytes(MAC, "little"))
        for name, value in (("ip", IP), ("port", PORT), ("max_length", LONGEST)):
            ctx.set(getattr(dut, name), value)
        for data in (frame, frame[:-1], frame):
            await packet_put(ctx, dut.rx, data)
        await ctx.tick().repeat(6)

    async def watch(ctx):
        async for _, _, end, good in ctx.tick().sample(dut.end, dut.good):
            if end:
                verdicts.append(good)

    watch.background = True
    run(dut, bench, watch, limit=200)
    assert verdicts == [1, 0, 1]
