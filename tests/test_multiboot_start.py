"""Starting another bitstream: the pin, and the configuration port with a model behind it."""

import pytest
from streams import make_rng, run, seeds
from trebuchet.cores.multiboot.start import KEY, ConfigPort, ProgramPin

WRONG = [0, 1, KEY - 1, KEY ^ 1 << 31, ~KEY & 0xFFFFFFFF]


class Icap:
    """ICAPE3 as UG570 describes it, as far as a warm boot goes: a word a clock while selected.

    ``booted`` is the address in WBSTAR when IPROG came; ``words`` are all that came.
    """

    REGISTERS = {0x10: "wbstar", 0x04: "cmd"}

    def __init__(self):
        self.synced, self.booted, self.wbstar = False, None, 0
        self.target, self.words = None, []
        self.was = (1, 1)

    def clock(self, csib, rdwrb, data):
        if csib == 0 and self.was[0] == 0:
            assert rdwrb == self.was[1], "RDWRB changed while selected: the port aborts"
        self.was = csib, rdwrb
        if csib or rdwrb:
            return
        reversed_bits = [int(f"{byte:08b}"[::-1], 2) for byte in data.to_bytes(4, "big")]
        self._word(int.from_bytes(bytes(reversed_bits), "big"))

    def _word(self, word):
        self.words.append(word)
        if not self.synced:
            self.synced = word == 0xAA995566
        elif self.target is not None:
            if self.target == "wbstar":
                self.wbstar = word
            elif word == 0xF:
                assert self.booted is None
                self.booted = self.wbstar
            self.target = None
        elif word >> 29 == 1 and word >> 27 & 3 == 2:
            assert word & 0x7FF == 1
            self.target = self.REGISTERS[word >> 13 & 0x3FFF]
        else:
            assert word == 0x2000_0000, f"{word:08x} is no NOOP"


def watch(dut, icap):
    async def watching(ctx):
        while True:
            icap.clock(ctx.get(dut.csib), ctx.get(dut.rdwrb), ctx.get(dut.data))
            await ctx.tick()

    watching.background = True
    return watching


async def write(ctx, dut, value):
    ctx.set(dut.csr.start, value)
    await ctx.tick()
    ctx.set(dut.csr.start, 0)


@pytest.mark.parametrize("application", [0, 1])
def test_the_pin_is_pulled_by_the_key_only_and_for_good(application):
    dut = ProgramPin()

    async def bench(ctx):
        ctx.set(dut.application, application)
        for value in WRONG:
            await write(ctx, dut, value)
            await ctx.tick()
            assert ctx.get(dut.pull) == 0
            assert ctx.get(dut.csr.application) == application
        await write(ctx, dut, KEY)
        for _ in range(10):
            assert ctx.get(dut.pull) == 1
            await write(ctx, dut, 0)

    run(dut, bench, limit=100)


@pytest.mark.parametrize("address", [0, 0x200000, 0xF8_00, 0xFFFFFFFF, 0x12345678])
@seeds(2)
def test_the_port_starts_the_bitstream_at_the_address(address, seed):
    dut, icap, rng = ConfigPort(), Icap(), make_rng(seed, "icap")

    async def bench(ctx):
        ctx.set(dut.application, 1)
        for value in WRONG:
            ctx.set(dut.csr.address, rng.getrandbits(32))
            await write(ctx, dut, value)
            await ctx.tick().repeat(rng.randrange(1, 12))
        assert icap.words == []
        ctx.set(dut.csr.address, address)
        await write(ctx, dut, KEY)
        for _ in range(20):  # neither another address nor another start changes what goes out
            ctx.set(dut.csr.address, rng.getrandbits(32))
            if ctx.get(dut.csib) == 0:
                ctx.set(dut.csr.start, KEY if len(icap.words) < 6 else 0)
            await ctx.tick()
            ctx.set(dut.csr.start, 0)
        assert ctx.get(dut.csr.application) == 1

    run(dut, bench, watch(dut, icap), limit=300)
    assert icap.booted == address
    assert len(icap.words) == 8
