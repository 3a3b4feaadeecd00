"""The watchdog in Migen's simulator: when it warns, when it restarts, and what it remembers."""

import pytest
from migen import If, Module, Signal, passive, run_simulation
from trebuchet.soc.watchdog import WARNING_MS, Watchdog

#: Cycles of the test's millisecond.
CYCLES = 5


class _Top(Module):
    """The watchdog with its millisecond, and without a bus."""

    def __init__(self):
        millisecond, count = Signal(), Signal(3)
        self.sync += [
            millisecond.eq(count == CYCLES - 1),
            If(count == CYCLES - 1, count.eq(0)).Else(count.eq(count + 1)),
        ]
        self.submodules.dut = Watchdog(millisecond)


def _write(register, value):
    """A write as the bus bank does it."""
    if hasattr(register, "storage"):
        yield register.storage.eq(value)
    else:
        yield register.r.eq(value)
    yield register.re.eq(1)
    yield
    yield register.re.eq(0)


def _run(*programs):
    """Run test programs; returns the cycles with ``restart``, those with the warning, and fired."""
    top = _Top()
    dut = top.dut
    seen = {"restart": [], "late": [], "fired": []}

    @passive
    def watch():
        cycle = 0
        while True:
            for name, signal in (
                ("restart", dut.restart),
                ("late", dut.ev.late.trigger),
                ("fired", dut.fired.status),
            ):
                if (yield signal):
                    seen[name].append(cycle)
            cycle += 1
            yield

    run_simulation(top, [watch(), *(program(dut) for program in programs)])
    return seen


def _idle(cycles):
    for _ in range(cycles):
        yield


def test_off_after_reset():
    def program(dut):
        yield from _idle(300)

    assert _run(program) == {"restart": [], "late": [], "fired": []}


@pytest.mark.parametrize("period", [1, 2, WARNING_MS, WARNING_MS + 1, 20])
def test_restarts_once_after_the_period_and_warns_before(period):
    def program(dut):
        yield from _write(dut.period, period)
        yield from _idle(40 * CYCLES)

    seen = _run(program)
    (restart,) = seen["restart"]
    assert (period - 1) * CYCLES < restart <= (period + 1) * CYCLES + 3
    assert seen["fired"][0] == restart + 1
    if period >= WARNING_MS:
        (late,) = seen["late"]
        assert restart - late == (WARNING_MS - 1) * CYCLES + 1
    else:
        assert seen["late"] == []


def test_never_restarts_while_it_is_fed():
    def program(dut):
        yield from _write(dut.period, 10)
        for _ in range(30):
            yield from _idle(9 * CYCLES - 3)
            yield from _write(dut.feed, 1)

    assert _run(program)["restart"] == []


def test_feeding_in_the_last_cycle_counts():
    for early in range(3 * CYCLES):

        def program(dut, early=early):
            yield from _write(dut.period, 3)
            yield from _idle(early)
            yield from _write(dut.feed, 1)
            yield from _idle(CYCLES)

        restarts = _run(program)["restart"]
        assert len(restarts) <= 1
        if early < 2 * CYCLES:
            assert restarts == []


def test_period_zero_switches_it_off():
    def program(dut):
        yield from _write(dut.period, 3)
        yield from _idle(CYCLES)
        yield from _write(dut.period, 0)
        yield from _idle(20 * CYCLES)

    assert _run(program)["restart"] == []


def test_it_remembers_until_it_is_told_to_forget():
    def program(dut):
        yield from _write(dut.period, 1)
        yield from _idle(10 * CYCLES)
        assert (yield dut.fired.status) == 1
        yield from _write(dut.forget, 0)
        yield
        assert (yield dut.fired.status) == 1
        yield from _write(dut.forget, 1)
        yield
        yield
        assert (yield dut.fired.status) == 0

    _run(program)
