"""Operands cut into messages and opened again; the fuse that ends what was left without an end."""

import pytest
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from streams import (
    make_rng,
    packet_get,
    packet_put,
    random_bytes,
    run,
    seeds,
    stream_checker,
    stream_get,
    stream_put,
)
from trebuchet.cores.cluster.contract import CHUNK, CallLayout
from trebuchet.cores.cluster.messages import AbortGuard, OpenedLayout, Reassembler, Segmenter
from trebuchet.cores.roles.contract import JobKind
from trebuchet.cores.stream import PacketSignature

LENGTHS = [0, 1, 7, 8, 9, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5]


class Both(wiring.Component):
    """Segmenter and opener back to back."""

    def __init__(self, width):
        self.cutter, self.opener = Segmenter(width), Reassembler(width)
        super().__init__(
            {
                "call": In(stream.Signature(CallLayout)),
                "data": In(PacketSignature(width)),
                "head": Out(stream.Signature(OpenedLayout)),
                "o": Out(PacketSignature(width)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.cutter, m.submodules.opener = cutter, opener = self.cutter, self.opener
        wiring.connect(m, wiring.flipped(self.call), cutter.call)
        wiring.connect(m, wiring.flipped(self.data), cutter.data)
        wiring.connect(m, cutter.o, opener.i)
        wiring.connect(m, opener.head, wiring.flipped(self.head))
        wiring.connect(m, opener.data, wiring.flipped(self.o))
        return m


@pytest.mark.parametrize("width", [32, 64])
@seeds(2)
def test_what_is_cut_is_opened(width, seed):
    rng = make_rng(seed, "calls")
    packets = [rng.randbytes(length) for length in rng.sample(LENGTHS, len(LENGTHS))]
    calls = [
        {
            "peer": rng.randrange(256),
            "kind": rng.choice(list(JobKind)),
            "status": rng.randrange(256),
            "number": rng.randrange(256),
            "length": len(packet),
        }
        for packet in packets
    ]
    dut = Both(width)

    async def put_calls(ctx):
        for call in calls:
            await stream_put(ctx, dut.call, call, rng=make_rng(seed, call["length"]))

    async def put_data(ctx):
        rng = make_rng(seed, "data")
        for packet in packets:
            if packet:
                await packet_put(ctx, dut.data, packet, rng=rng)

    async def get(ctx):
        rng = make_rng(seed, "get")
        for call, packet in zip(calls, packets, strict=True):
            got = b""
            for at in range(0, max(1, len(packet)), CHUNK):
                head = await stream_get(ctx, dut.head, rng=rng)
                header = head.header
                assert header.offset * 16 == at == len(got)
                assert header.last == (at + CHUNK >= len(packet))
                assert head.bare == (not packet)
                for name in ("peer", "status", "number"):
                    assert header[name] == call[name]
                assert JobKind(header.kind) == call["kind"]
                if packet:
                    chunk, error = await packet_get(ctx, dut.o, rng=rng)
                    assert not error
                    got += chunk
            assert got == packet

    checks = [stream_checker(s) for s in (dut.cutter.o, dut.opener.data)]
    run(dut, put_calls, put_data, get, *checks, limit=30_000, seed=seed)


@pytest.mark.parametrize("width", [32, 64])
def test_messages_without_a_whole_header_are_dropped(width):
    """Too short, with an error mark, or the rest of one that was under way at a reset."""
    dut = Reassembler(width)
    good = bytes(range(8)) + b"data of it"

    async def put(ctx):
        await stream_put(ctx, dut.i, {"data": 1, "last": 0})
        await stream_put(ctx, dut.i, {"data": 1, "last": 1})
        for bad in (b"a", b"abcd", b"abcdef", b"abcdefg"):
            await packet_put(ctx, dut.i, bad)
        await packet_put(ctx, dut.i, bytes(8), error=True)
        await packet_put(ctx, dut.i, good)

    async def get(ctx):
        head = await stream_get(ctx, dut.head)
        assert (head.header.peer, head.header.number, head.bare) == (0, 3, 0)
        assert await packet_get(ctx, dut.data) == (b"data of it", False)

    run(dut, put, get, limit=300)


@seeds(3)
def test_fuse_ends_what_has_no_end(seed):
    """Whatever is cut: whole packets come out, and the good ones among them unchanged."""
    rng, dut = make_rng(seed, "fuse"), AbortGuard(32)
    packets = [random_bytes(rng, 1, 60) for _ in range(40)]
    sent, got = [], []

    async def put(ctx):
        for packet in packets:
            beats = [packet[at : at + 4] for at in range(0, len(packet), 4)]
            stop = rng.choice([None, None, rng.randrange(len(beats))])
            for k, beat in enumerate(beats):
                payload = {
                    "data": int.from_bytes(beat, "little"),
                    "empty": 4 - len(beat),
                    "first": k == 0,
                    "last": k == len(beats) - 1,
                    "error": 0,
                }
                if k == stop:  # the sender is reset here
                    break
                await stream_put(ctx, dut.i, payload, rng=rng)
            else:
                sent.append(packet)

    async def get(ctx):
        while not got or got[-1] != (packets[-1], False):
            got.append(await packet_get(ctx, dut.o, rng=rng))

    packets.append(b"the end of it")
    run(dut, put, get, stream_checker(dut.o), limit=20_000, seed=seed)
    assert [packet for packet, error in got if not error][-1] == packets[-1]
    assert [packet for packet, error in got if not error] == sent


def test_fuse_swallows_while_cut():
    dut = AbortGuard(32)

    async def main(ctx):
        beat = {"data": 1, "first": 1, "last": 0}
        await stream_put(ctx, dut.i, beat)
        ctx.set(dut.cut, 1)
        for _ in range(5):
            await stream_put(ctx, dut.i, {"data": 2, "first": 0, "last": 0})
        await packet_put(ctx, dut.i, b"swallowed")
        ctx.set(dut.cut, 0)
        await stream_put(ctx, dut.i, {"data": 2, "first": 0, "last": 1})
        await packet_put(ctx, dut.i, b"passes")

    async def get(ctx):
        packet, error = await packet_get(ctx, dut.o)
        assert error
        assert packet[:4] == bytes([1, 0, 0, 0])
        assert await packet_get(ctx, dut.o) == (b"passes", False)

    run(dut, main, get, stream_checker(dut.o), limit=200)


def test_bad_parameters():
    with pytest.raises(ValueError, match="cluster must be 32 or 64 bits, not 128"):
        Segmenter(128)
    with pytest.raises(ValueError, match="cluster must be 32 or 64 bits, not 128"):
        Reassembler(128)
