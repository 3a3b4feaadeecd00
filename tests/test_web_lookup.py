"""``Lookup`` finds the paths of an image of files."""

import zlib

import pytest
from streams import MemoryResponder, make_rng, run, seeds
from test_web_store import BASE, random_objects
from trebuchet.cores.web.lookup import Lookup
from trebuchet.models.http import Object
from trebuchet.models.http.image import Image


def look_up(dut, memory, image, paths, seed):
    """What the gateware finds for each path: its tag, less than 0 if it is cold, or None."""
    rng = make_rng(seed, "paths")
    results = []

    async def main(ctx):
        ctx.set(dut.index, image.index)
        ctx.set(dut.mask, image.buckets - 1)
        for path in paths:
            for k, byte in enumerate(path):
                while rng.random() < 0.2:
                    await ctx.tick()
                ctx.set(dut.path, 1)
                ctx.set(dut.new, k == 0)
                ctx.set(dut.byte, byte)
                await ctx.tick()
                ctx.set(dut.path, 0)
            ctx.set(dut.length, len(path))
            ctx.set(dut.crc, zlib.crc32(path))
            ctx.set(dut.start, 1)
            await ctx.tick()
            ctx.set(dut.start, 0)
            while ctx.get(dut.busy):
                await ctx.tick()
            tag = ctx.get(dut.entry.tag)
            assert not (ctx.get(dut.found) and ctx.get(dut.cold))
            results.append(tag if ctx.get(dut.found) else -tag if ctx.get(dut.cold) else None)

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"), latency=(2, 20))
    run(dut, main, responder, limit=400 * len(paths) + 1000, seed=seed)
    return results


@pytest.mark.parametrize("width", [32, 64])
@seeds(3)
def test_look_up(width, seed):
    """Paths that are there, that are not, that are longer or shorter by a byte."""
    rng = make_rng(seed, "objects")
    objects = random_objects(rng, 60)
    known = list(objects)
    cold = set(rng.sample(known, 20))
    image = Image(objects, BASE, buckets=16, cold=cold)
    paths = known + [p + b"x" for p in known if len(p) < 96] + [p[:-1] for p in known if len(p) > 1]
    rng.shuffle(paths)
    memory = bytearray(BASE) + image.bytes
    memory += bytes(-len(memory) % 4096)
    want = [objects[p].tag * (-1 if p in cold else 1) if p in objects else None for p in paths]
    assert look_up(Lookup(width), memory, image, paths, seed) == want


def test_an_equal_crc_is_not_enough():
    """Slots of other paths get this path's CRC: its own is found behind them, or nothing is."""
    objects = {b"/%d" % k: Object(b"", b"text/plain", k + 1) for k in range(8)}
    image = Image(objects, BASE, buckets=1)
    memory = bytearray(BASE) + image.bytes
    path = b"/7"
    for slot in range(8):
        at = image.index + 8 * slot
        memory[at : at + 4] = zlib.crc32(path).to_bytes(4, "little")
    memory += bytes(-len(memory) % 4096)
    assert look_up(Lookup(64), memory, image, [path], 0) == [8]
    last = image.word(image.index + 56) >> 32
    memory[last] = 0  # no longer ready
    assert look_up(Lookup(64), memory, image, [path], 0) == [-8]
