"""Sweeps while a service has few free places (``cores/services/pressure.py``)."""

import pytest
from streams import Simulation
from trebuchet.cores.services.pressure import Pressure


@pytest.mark.parametrize(("places", "period_log2"), [(4, 10), (1024, 12)])
def test_only_when_less_than_a_quarter_is_free(places, period_log2):
    dut, sweeps = Pressure(places, period_log2), []
    period = 1 << period_log2

    async def script(ctx):
        for free in (places, places // 4, places // 4 - 1, 0, places // 4):
            ctx.set(dut.free, free)
            await ctx.tick()
            at = []
            for k in range(2 * period - 1):
                if ctx.get(dut.sweep):
                    at.append(k)
                await ctx.tick()
            sweeps.append(at)

    Simulation(dut).run(script, limit=11 * period)
    assert [len(at) for at in sweeps] == [0, 0, 2, 2, 0]
    assert all(late - early == period for early, late in sweeps[2:4])


@pytest.mark.parametrize(
    ("options", "message"), [((3,), "power of two"), ((2,), "at least 4"), ((64, 9), "2\\*\\*10")]
)
def test_wrong_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Pressure(*options)
