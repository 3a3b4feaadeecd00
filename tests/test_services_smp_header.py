"""The header of an SMP message, read at any place of a ring; the role that it names."""

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from streams import MemoryResponder, make_rng, run, seeds
from trebuchet.cores.memory import MemorySignature
from trebuchet.cores.roles.contract import NO_ROLE
from trebuchet.cores.services.smp_header import RoleChoice, SmpHeaderReader

RING_LOG2 = 8


class Reader(wiring.Component):
    """The reader with a whole memory port."""

    def __init__(self, width):
        self.part = SmpHeaderReader(width, RING_LOG2)
        super().__init__({"mem": wiring.Out(MemorySignature(width))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = self.part
        mem = self.mem
        wiring.connect(m, part.mem_cmd, wiring.flipped(mem.cmd))
        wiring.connect(m, wiring.flipped(mem.rdata), part.mem_rdata)
        m.d.comb += mem.wdone.ready.eq(1)
        return m


@pytest.mark.parametrize("width", [32, 64, 128])
@seeds(1)
def test_reads_12_bytes_of_any_place(width, seed):
    """At every offset, beyond the ring's end too; ``header`` holds until the next start."""
    dut, rng = Reader(width), make_rng(seed, f"header {width}")
    part, memory = dut.part, bytearray(rng.randbytes(1024))

    async def bench(ctx):
        offsets = list(range(1 << RING_LOG2))
        for offset in rng.sample(offsets, 40) + [0, 1, 244, 245, 255]:
            base = rng.randrange(4)
            ctx.set(part.base, base)
            ctx.set(part.offset, offset)
            ctx.set(part.start, 1)
            await ctx.tick()
            ctx.set(part.start, 0)
            while not ctx.get(part.done):
                await ctx.tick()
            ring = memory[base << RING_LOG2 : base + 1 << RING_LOG2]
            expected = (ring + ring)[offset : offset + 12]
            assert ctx.get(part.header).to_bytes(12, "little") == expected, offset
            await ctx.tick().repeat(rng.randrange(1, 3))
            assert not ctx.get(part.done)
            assert ctx.get(part.header).to_bytes(12, "little") == expected, offset

    responder = MemoryResponder(dut.mem, memory, rng=make_rng(seed, "memory"))
    run(dut, bench, responder, limit=6000, seed=seed)


@pytest.mark.parametrize(("count", "last"), [(1, NO_ROLE - 1), (3, NO_ROLE - 1), (4, 20)])
def test_role_and_its_door(count, last):
    """Every byte of a header, with every door open and closed."""
    dut = RoleChoice(count, last)

    async def bench(ctx):
        for asked in range(256):
            own = asked % (NO_ROLE + 1)
            ctx.set(dut.asked, asked)
            ctx.set(dut.own, own)
            role = own if asked == 0 else asked - 1 if asked <= last + 1 else NO_ROLE
            for doors in range(1 << count if count > 1 else 1):
                if count > 1:
                    ctx.set(dut.doors, doors)
                assert ctx.get(dut.role) == role
                closed = count > 1 and role < count and not doors >> role & 1
                assert ctx.get(dut.open) == (not closed)

    run(dut, bench, limit=10)


@pytest.mark.parametrize("count", [-1, NO_ROLE + 1])
def test_bad_parameters(count):
    with pytest.raises(ValueError, match=f"^Number of roles must be 0 to {NO_ROLE}, not {count}$"):
        RoleChoice(count)
