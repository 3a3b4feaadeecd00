"""The harness in which a component is placed and routed alone."""

import pytest
from amaranth import Module
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.sim import Simulator
from trebuchet.bench.fmax import Harness, fmax


class Sum(wiring.Component):
    """Ports of every kind: plain, signed, a structure, none."""

    pair: In(data.StructLayout({"x": 3, "y": 2}))
    sign: In(1)
    total: Out(4)
    copy: Out(1)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.total.eq(self.pair.x + self.pair.y), self.copy.eq(self.sign)]
        return m


def test_every_port_is_reached():
    """Six bits are shifted in; three cycles after the last, `o` is the parity of five outputs."""
    dut = Harness(Sum())
    inputs = [(x, y, sign) for x in range(8) for y in range(4) for sign in range(2)]

    async def bench(ctx):
        for x, y, sign in inputs:
            # The first bit ends up highest: sign after pair in the chain, y above x in pair.
            for bit in [sign, *f"{y:02b}", *f"{x:03b}"]:
                ctx.set(dut.i, int(bit))
                await ctx.tick()
            await ctx.tick().repeat(3)
            assert ctx.get(dut.o) == ((x + y).bit_count() + sign) % 2, (x, y, sign)
            checked.append((x, y, sign))

    checked = []
    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    assert checked == inputs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"device": "LFE5U-12F"}, "^Device must be one of LFE5U-25F, .*, not 'LFE5U-12F'$"),
        ({"speed": 5}, "^Speed grade must be 6, 7 or 8, not 5$"),
        ({"seeds": ()}, r"^Seeds must be one or more integers, not \(\)$"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        fmax(None, **options)
