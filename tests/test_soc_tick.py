"""The shell's millisecond in Migen's simulator."""

import pytest
from migen import Signal, passive, run_simulation
from trebuchet.soc.fabric import Tick


def _pulses(dut, cycles, changes=None, external=None):
    """Cycles in which ``pulse`` is 1, and the uptime at the end.

    ``changes`` are new periods by the cycle of their write; ``external`` the cycles in which the
    input pin is 1.
    """
    seen = []

    @passive
    def drive(pin):
        for cycle in range(cycles):
            yield pin.eq(cycle in external)
            yield

    def watch():
        for cycle in range(cycles):
            if cycle in (changes or {}):
                yield dut.period.storage.eq(changes[cycle])
            yield
            if (yield dut.pulse):
                seen.append(cycle)
        yield
        seen.append((yield dut.uptime.status))

    run_simulation(dut, [watch()] + ([drive(dut.pin)] if external else []))
    return seen[:-1], seen[-1]


@pytest.mark.parametrize("cycles", [1, 2, 3, 40])
def test_one_pulse_in_so_many_cycles(cycles):
    pulses, uptime = _pulses(Tick(cycles * 1000), 130)
    assert pulses == list(range(cycles - 1, 130, cycles))
    assert uptime == len(pulses)


@pytest.mark.parametrize("period", [1, 4, 30])
def test_a_new_period_holds_from_the_next_millisecond_on(period):
    """Never a pulse too many, and never none for 2**32 cycles."""
    pulses, _ = _pulses(Tick(10_000), 130, changes={25: period})
    assert pulses == [9, 19, 29, *range(29 + period, 130, period)]


def test_the_pin_of_a_simulated_board_in_place_of_the_clock():
    pin, select = Signal(), Signal(reset=1)
    dut = Tick(10_000, pin, select)
    dut.pin = pin
    pulses, uptime = _pulses(dut, 60, external={5, 6, 33})
    assert [b - a for a, b in zip(pulses, pulses[1:], strict=False)] == [1, 27]
    assert uptime == 3
