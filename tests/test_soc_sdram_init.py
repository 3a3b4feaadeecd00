"""SDRAM made ready by hardware: which commands, when, and that the controller has it then."""

from types import SimpleNamespace

import pytest
from litedram.dfii import DFIInjector
from migen import passive, run_simulation
from trebuchet.models.errors import TrebuchetError
from trebuchet.soc.sdram_init import ALL_BANKS, PAUSE, REFRESHES, SPACING, SdramInit

CLK_HZ = 2_000_000
#: ``(ras, cas, we)`` of a chip's commands (JESD21-C, 3.11.5).
PRECHARGE, REFRESH, LOAD_MODE = (1, 0, 1), (1, 1, 0), (1, 1, 1)
#: CAS latency in bits 6 to 4, burst of as many words as there are phases in bits 2 to 0.
CAS_LATENCY = 2


def _sdram(phases=1, memtype="SDR"):
    phy = SimpleNamespace(memtype=memtype, cl=CAS_LATENCY, nphases=phases)
    return SimpleNamespace(
        dfii=DFIInjector(addressbits=11, bankbits=2, nranks=1, databits=32, nphases=phases),
        controller=SimpleNamespace(settings=SimpleNamespace(phy=phy, timing=None)),
    )


def _run(phases, cycles):
    """``(cycle, command, address)`` of each phase that has one, and when ``done`` rose."""
    sdram = _sdram(phases)
    dut = SdramInit(sdram, CLK_HZ)
    dut.submodules += sdram.dfii
    pins = sdram.dfii.master.phases
    found, done = [], []

    def watch():
        for cycle in range(cycles):
            for number, phase in enumerate(pins):
                command = 1 - (yield phase.ras_n), 1 - (yield phase.cas_n), 1 - (yield phase.we_n)
                if not (yield phase.cs_n):
                    found.append((cycle, number, command, (yield phase.address)))
                if not (yield dut.done):
                    assert (yield phase.cke), "CKE falls"
            if (yield dut.done):
                done.append(cycle)
            yield

    @passive
    def controller():
        """Commands that must not reach the chip before it is ready."""
        while True:
            yield sdram.dfii.slave.phases[0].cs_n.eq(0)
            yield sdram.dfii.slave.phases[0].we_n.eq(0)
            yield

    run_simulation(dut, [watch(), controller()])
    return found, done


@pytest.mark.parametrize("phases", [1, 2])
def test_the_commands_of_a_start(phases):
    pause, spacing = int(PAUSE * CLK_HZ), max(4, int(SPACING * CLK_HZ) + 1)
    end = pause + (REFRESHES + 3) * spacing
    found, done = _run(phases, end + 20)
    ours = [entry for entry in found if entry[0] < done[0]]
    mode = CAS_LATENCY << 4 | phases.bit_length() - 1
    expected = [(PRECHARGE, ALL_BANKS), *[(REFRESH, 0)] * REFRESHES, (LOAD_MODE, mode)]
    assert [entry[2:] for entry in ours] == expected
    cycles = [entry[0] for entry in ours]
    assert cycles[0] >= pause
    gaps = [after - before for before, after in zip(cycles, [*cycles[1:], done[0]], strict=True)]
    assert min(gaps) >= max(4, SPACING * CLK_HZ)
    assert {entry[1] for entry in ours} == {0}
    # From the cycle in which it is done on the chip is the controller's, for good.
    assert done == list(range(done[0], end + 20))
    assert [entry[0] for entry in found if entry[0] >= done[0]] == done


def test_memory_that_must_be_trained_is_refused():
    with pytest.raises(TrebuchetError, match=r"^cpu_variant 'none' is for .* SDRAM; DDR3 needs a"):
        SdramInit(_sdram(memtype="DDR3"), CLK_HZ)
