"""UDP echo and discard services."""

import pytest
from streams import (
    beats_of,
    make_rng,
    packet_get,
    packet_put,
    run,
    seeds,
    stream_checker,
    stream_put,
)
from trebuchet.cores.net.udp_echo import DISCARD_BLOCK, ECHO_BLOCK, UdpDiscard, UdpEcho


def counts(ctx, dut, block):
    return {r.name: ctx.get(getattr(dut.csr, r.name)) for r in block.registers}


def random_datagram(rng, most):
    """(payload, error, ip, port, announced length) and the counter it belongs to."""
    payload = rng.randbytes(rng.choice([1, 2, 3, 4, 5, 8, rng.randint(1, most), most, most + 1]))
    error = rng.random() < 0.15
    length = len(payload) if rng.random() < 0.85 else rng.randrange(65536)
    port = rng.choice([7, 9, 1023, 1024, rng.randint(1024, 65535)])
    if len(payload) > most:
        counter = "overlong"
    elif error or length != len(payload) or port < 1024:
        counter = "errors"
    else:
        counter = "datagrams"
    return (payload, error, rng.getrandbits(32), port, length), counter


async def datagram_put(ctx, dut, datagram, rng=None):
    payload, error, ip, port, length = datagram
    for beat in beats_of(payload, dut.width, error=error, rng=rng):
        ctx.set(dut.rx_ip, ip)
        ctx.set(dut.rx_port, port)
        ctx.set(dut.rx_length, length)
        await stream_put(ctx, dut.rx, beat, rng=rng)


def sideband_checker(dut, wanted):
    """Background bench: whenever a beat is offered, its sideband is that of its datagram."""

    async def check(ctx):
        left = list(wanted)
        while True:
            _, _, valid, ready, beat, *side = await ctx.tick().sample(
                dut.tx.valid, dut.tx.ready, dut.tx.payload, dut.tx_ip, dut.tx_port, dut.tx_length
            )
            if valid:
                assert tuple(side) == left[0]
                if ready and beat.last:
                    left.pop(0)

    check.background = True
    return check


@pytest.mark.parametrize("width", [32, 64])
@seeds(3)
def test_echo(width, seed):
    rng = make_rng(seed, "datagrams")
    items = [random_datagram(rng, 100) for _ in range(40)]
    good = [d for d, counter in items if counter == "datagrams"]
    assert len(good) >= 5
    dut = UdpEcho(width, buffer_bytes=8192, max_payload=100)
    taken = []

    async def put(ctx):
        put_rng = make_rng(seed, "put") if seed else None  # seed 0: no gap between datagrams
        for number, (datagram, _) in enumerate(items):
            while number - len(taken) > 6:
                await ctx.tick()
            await datagram_put(ctx, dut, datagram, put_rng)
            if items[number][1] != "datagrams":
                taken.append(None)

    async def get(ctx):
        get_rng = make_rng(seed, "get")
        for payload, *_ in good:
            assert await packet_get(ctx, dut.tx, rng=get_rng) == (payload, False)
            taken.append(payload)
        await ctx.tick().repeat(600)
        wanted = {r.name: 0 for r in ECHO_BLOCK.registers}
        for _, counter in items:
            wanted[counter] += 1
        assert counts(ctx, dut, ECHO_BLOCK) == wanted

    sides = [(ip, port, length) for _, _, ip, port, length in good]
    run(
        dut,
        put,
        get,
        stream_checker(dut.tx, "tx"),
        sideband_checker(dut, sides),
        limit=20_000,
        seed=seed,
    )


@seeds(2)
def test_echo_drops_whole_datagrams_when_full(seed):
    rng = make_rng(seed, "full")
    items = [(rng.randbytes(rng.randint(1, 90)), 0, i, 5000 + i) for i in range(30)]
    dut = UdpEcho(32, buffer_bytes=256, max_payload=256)

    async def bench(ctx):
        for payload, error, ip, port in items:
            await datagram_put(ctx, dut, (payload, error, ip, port, len(payload)), rng)
        await ctx.tick().repeat(5)
        seen = counts(ctx, dut, ECHO_BLOCK)
        assert seen["datagrams"] + seen["overflow"] == len(items)
        assert seen["datagrams"] >= 2
        assert seen["overflow"] >= 10
        for _ in range(seen["datagrams"]):
            await ctx.tick().until(dut.tx.valid)
            number = ctx.get(dut.tx_ip)
            assert ctx.get(dut.tx_port) == 5000 + number
            assert await packet_get(ctx, dut.tx, rng=rng) == (items[number][0], False)
        await datagram_put(ctx, dut, (b"again", 0, 77, 4000, 5))
        assert await packet_get(ctx, dut.tx) == (b"again", False)

    run(dut, bench, stream_checker(dut.tx, "tx"), limit=10_000, seed=seed)


@seeds(3)
def test_echo_with_a_slow_reader_loses_whole_datagrams_only(seed):
    """Room that comes back in the middle of a datagram that did not fit must not save its rest."""
    rng = make_rng(seed, "slow")
    items = [rng.randbytes(rng.randint(20, 60)) for _ in range(60)]
    dut = UdpEcho(32, buffer_bytes=64, max_payload=64)
    ended, got = [], []

    async def put(ctx):
        for number, payload in enumerate(items):
            await datagram_put(ctx, dut, (payload, 0, number, 4000, len(payload)))
        await ctx.tick().repeat(4)  # the last verdict
        ended.append(True)

    async def get(ctx):
        get_rng = make_rng(seed, "get")
        while not ended or ctx.get(dut.csr.datagrams) > len(got):
            if ctx.get(dut.tx.valid):
                number = ctx.get(dut.tx_ip)
                assert await packet_get(ctx, dut.tx, rng=get_rng) == (items[number], False)
                got.append(number)
            else:
                await ctx.tick()
        assert got == sorted(set(got))
        assert 5 <= len(got) < len(items)
        assert ctx.get(dut.csr.overflow) == len(items) - len(got)

    run(dut, put, get, stream_checker(dut.tx, "tx"), limit=10_000, seed=seed)


def test_echo_of_the_largest_datagram():
    rng = make_rng(0, "large")
    dut = UdpEcho(32)
    payloads = [rng.randbytes(1472), rng.randbytes(1473), rng.randbytes(70000), rng.randbytes(9)]

    async def put(ctx):
        for payload in payloads:
            await datagram_put(ctx, dut, (payload, 0, 1, 2000, len(payload) & 0xFFFF))

    async def get(ctx):
        assert await packet_get(ctx, dut.tx) == (payloads[0], False)
        assert await packet_get(ctx, dut.tx) == (payloads[3], False)
        assert ctx.get(dut.csr.overlong) == 2

    run(dut, put, get, limit=25_000)


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_discard(width, seed):
    rng = make_rng(seed, "datagrams")
    items = [(rng.randbytes(rng.randint(1, 60)), rng.random() < 0.3) for _ in range(20)]
    dut = UdpDiscard(width)

    async def bench(ctx):
        for payload, error in items:
            await packet_put(ctx, dut.rx, payload, error, rng=rng)
        await ctx.tick().repeat(4)
        assert counts(ctx, dut, DISCARD_BLOCK) == {
            "datagrams": sum(not e for _, e in items),
            "octets": sum(len(p) for p, e in items if not e),
            "errors": sum(e for _, e in items),
        }

    run(dut, bench, limit=5000, seed=seed)


def test_constructor_says_what_it_wants():
    message = r"^UDP echo buffer_bytes must be a power of two of at least 64, not 63$"
    with pytest.raises(ValueError, match=message):
        UdpEcho(32, buffer_bytes=63)
    with pytest.raises(ValueError, match=r"^UDP echo max_payload must be 1 to 64, not 65$"):
        UdpEcho(32, buffer_bytes=64, max_payload=65)
