"""The refresher of boards with DDR3: commands, their distances, and the banks' leave."""

import random
from types import SimpleNamespace

import pytest
from migen import passive, run_simulation
from trebuchet.boards.refresher import LateRefresher

#: Cycles of the memory (JESD79-3F's names).
TRP, TRFC, TREFI, TZQCS = 3, 9, 120, 16
#: Cycles of one run: its last interval ends late enough that no refresh is cut off in the middle,
#: with any wait below ``TREFI // 2``.
LIMIT = 34 * TREFI - 10
#: ``(ras, cas, we)``.
PRECHARGE, REFRESH, CALIBRATE, NOTHING = (1, 0, 1), (1, 1, 0), (0, 0, 1), (0, 0, 0)


def _refresher(zqcs=None, every=600, enabled=True):
    settings = SimpleNamespace(
        timing=SimpleNamespace(tREFI=TREFI, tRP=TRP, tRFC=TRFC, tZQCS=zqcs),
        geom=SimpleNamespace(addressbits=14, bankbits=3),
        phy=SimpleNamespace(nranks=1),
        with_refresh=enabled,
    )
    return LateRefresher(settings, clk_freq=every)


def _run(dut, longest_wait=0, seed=None):
    """``(cycle, command)`` of all commands, and the cycles of ``valid`` and of ``last``."""
    seed = random.randrange(1 << 32) if seed is None else seed
    print("seed", seed)
    rng = random.Random(seed)
    commands, asked, ends = [], [], []

    @passive
    def watch():
        for cycle in range(LIMIT):
            cmd = dut.cmd
            command = (yield cmd.ras), (yield cmd.cas), (yield cmd.we)
            if command != NOTHING:
                commands.append((cycle, command))
            if (yield cmd.valid):
                asked.append(cycle)
            if (yield cmd.last):
                ends.append(cycle)
            yield

    @passive
    def banks():
        """Give leave some cycles after they are asked, as the multiplexer: until ``last``."""
        while True:
            if (yield dut.cmd.valid):
                for _ in range(rng.randint(0, longest_wait)):
                    yield
                yield dut.cmd.ready.eq(1)
                yield
                while (yield dut.cmd.valid):
                    yield
                yield dut.cmd.ready.eq(0)
            yield

    def clock():
        for _ in range(LIMIT):
            yield

    run_simulation(dut, [watch(), banks(), clock()])
    return commands, asked, ends


def _times(commands, which):
    return [cycle for cycle, command in commands if command == which]


@pytest.mark.parametrize("wait", [0, 40])
def test_a_refresh_each_interval(wait):
    commands, asked, ends = _run(_refresher(), wait)
    refreshes = _times(commands, REFRESH)
    assert [which for _, which in commands] == [PRECHARGE, REFRESH] * len(refreshes)
    assert LIMIT // TREFI - 1 <= len(refreshes) <= LIMIT // TREFI
    for at, before, end in zip(refreshes, _times(commands, PRECHARGE), ends, strict=False):
        assert at - before == TRP
        assert end - at == TRFC
    # None is forgotten, and none is late but by the banks' own pause.
    for number, at in enumerate(refreshes, start=1):
        assert 0 <= at - number * TREFI <= wait + TRP + 6
    assert not set(ends) & set(asked)  # the banks go on in the cycle of `last`


def test_a_calibration_follows_a_refresh():
    commands, _, ends = _run(_refresher(TZQCS), 10)
    calibrations = _times(commands, CALIBRATE)
    assert LIMIT // 600 - 1 <= len(calibrations) <= LIMIT // 600
    for at in calibrations:
        assert min(end - at for end in ends if end >= at) == TZQCS
        assert max(c for c in _times(commands, PRECHARGE) if c < at) == at - TRP
        refreshed = max(c for c in _times(commands, REFRESH) if c < at)
        assert at - refreshed >= TRFC + TRP
        assert not [end for end in ends if refreshed < end < at]  # in the same pause
    assert len(ends) == len(_times(commands, REFRESH))


def test_an_interval_that_ends_in_a_pause_is_not_lost():
    commands, _, _ = _run(_refresher(TZQCS), 2 * TREFI)
    refreshes = _times(commands, REFRESH)
    assert len(refreshes) >= LIMIT // (3 * TREFI)
    assert max(b - a for a, b in zip(refreshes, refreshes[1:], strict=False)) <= 3 * TREFI + TZQCS


def test_nothing_when_it_is_switched_off():
    assert _run(_refresher(TZQCS, enabled=False)) == ([], [], [])


def test_postponing_is_refused():
    with pytest.raises(ValueError, match="^Postponing must be 1, not 2$"):
        LateRefresher(None, 1e6, postponing=2)
