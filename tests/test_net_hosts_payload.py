"""``PayloadSum`` on whole frames: ICMP and UDP, right and wrong, at every length, with padding."""

import pytest
from streams import beats_of, make_rng, run, seeds
from trebuchet.cores.net.hosts.payload import PayloadSum


def ones_sum(octets):
    octets += bytes(len(octets) % 2)
    total = sum(int.from_bytes(octets[k : k + 2], "big") for k in range(0, len(octets), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def frame_of(rng, udp, size, kind):
    """A frame with ``size`` bytes behind the IPv4 header, and whether its sum is right."""
    addresses, payload = rng.randbytes(8), bytearray(rng.randbytes(size))
    at = 6 if udp else 2
    if udp:
        payload[4:6] = size.to_bytes(2, "big")
    payload[at : at + 2] = bytes(2)
    pseudo = addresses + bytes([0, 17]) + size.to_bytes(2, "big") if udp else b""
    right = 0xFFFF - ones_sum(pseudo + payload) or (0xFFFF if udp else 0)
    if kind == "none":
        right = 0
    payload[at : at + 2] = right.to_bytes(2, "big")
    if kind == "wrong":
        where = rng.choice([k for k in range(size) if not at <= k < at + 2])
        payload[where] ^= 1 << rng.randrange(8)
    header = b"\x45\x00" + (20 + size).to_bytes(2, "big") + rng.randbytes(4)
    header += bytes([64, 17 if udp else 1]) + rng.randbytes(2) + addresses
    pad = rng.randbytes(rng.choice([0, 0, 1, 6, 18]))
    return rng.randbytes(12) + b"\x08\x00" + header + payload + pad


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_right_sums_and_no_others(width, seed):
    dut, rng, n = PayloadSum(width, 48 * 8 // width), make_rng(seed, f"payload {width}"), width // 8
    cases = []
    for size in [*range(8, 30), 61, 64, 200]:
        for udp in (False, True):
            kind = rng.choice(["right", "right", "wrong", "none" if udp else "wrong"])
            cases.append((udp, size, kind))
    rng.shuffle(cases)

    async def bench(ctx):
        for udp, size, kind in cases:
            frame = frame_of(rng, udp, size, kind)
            for count, beat in enumerate(beats_of(frame, width, rng=rng)):
                ctx.set(dut.at, 1 << count if count < dut.beats else 0)
                ctx.set(dut.count, count)
                # Before their places have passed they may be anything.
                ctx.set(dut.end, 34 + size - 1 if count > 17 // n else rng.getrandbits(17))
                ctx.set(dut.udp, udp if count > 23 // n else rng.getrandbits(1))
                while rng.random() < 0.3:
                    ctx.set(dut.data, rng.getrandbits(width))
                    ctx.set(dut.last, rng.getrandbits(1))
                    await ctx.tick()
                ctx.set(dut.data, beat["data"])
                ctx.set(dut.last, beat["last"])
                ctx.set(dut.valid, 1)
                await ctx.tick()
                ctx.set(dut.valid, 0)
            ctx.set(dut.at, 1)
            ctx.set(dut.count, 0)
            await ctx.tick().repeat(2)
            assert ctx.get(dut.right) == (kind != "wrong"), (udp, size, kind)

    run(dut, bench, limit=6000, seed=seed)
