"""Single-data-rate SDRAM made ready by hardware, for a SoC without a processor."""

from litedram.init import get_sdram_phy_init_sequence
from litex.gen import LiteXModule
from migen import Case, If, Signal

from ..models.errors import TrebuchetError

__all__ = ["SdramInit"]

#: Seconds after the clock is stable before the first command: 200 us are the longest that makers
#: of such chips ask for.
PAUSE = 200e-6
#: Auto refreshes before the mode is loaded: two are enough for most chips, eight for all.
REFRESHES = 8
#: Seconds between commands, more than the slowest, an auto refresh, takes.
SPACING = 1e-6
#: All banks are precharged: address bit 10.
ALL_BANKS = 1 << 10


class SdramInit(LiteXModule):
    """Sends the commands that begin the life of an SDRAM, then leaves it to its controller.

    After :data:`PAUSE` with CKE high: precharge all banks, :data:`REFRESHES` auto refreshes, load
    the mode that LiteDRAM's controller works with (its own ``init.py`` has the same for software).
    They go in at LiteDRAM's port for external control of the PHY, in the first phase of a cycle.

    ``done`` is 1 from the end on; before, the controller's commands do not reach the memory, so no
    user may ask it for anything. Reset: begins anew.

    Parameters
    ----------
    sdram : LiteDRAMCore
        As ``add_sdram`` made it. Memory that has to be trained is refused.
    clk_hz : float
        Frequency of the system's clock.
    """

    def __init__(self, sdram, clk_hz):
        settings = sdram.controller.settings
        kind = settings.phy.memtype
        if kind != "SDR":
            raise TrebuchetError(
                f"cpu_variant 'none' is for boards with single-data-rate SDRAM; {kind} needs a "
                "processor that trains it"
            )
        sequence, _ = get_sdram_phy_init_sequence(settings.phy, settings.timing)
        mode = sequence[-1][1]
        self.done = Signal()
        spacing = max(4, int(SPACING * clk_hz) + 1)
        left = Signal(max=int(PAUSE * clk_hz) + spacing, reset=int(PAUSE * clk_hz))
        step = Signal(max=REFRESHES + 3)
        last = REFRESHES + 1
        dfi = sdram.dfii.ext_dfi
        first = dfi.phases[0]
        self.comb += sdram.dfii.ext_dfi_sel.eq(~self.done)
        self.comb += [phase.cke.eq(2 ** len(phase.cke) - 1) for phase in dfi.phases]
        # Active low; each for one cycle.
        commands = {
            0: [first.ras_n.eq(0), first.we_n.eq(0), first.address.eq(ALL_BANKS)],
            last: [first.ras_n.eq(0), first.cas_n.eq(0), first.we_n.eq(0), first.address.eq(mode)],
            "default": [first.ras_n.eq(0), first.cas_n.eq(0)],
        }
        self.sync += [
            *(line.eq(1) for line in (first.cs_n, first.ras_n, first.cas_n, first.we_n)),
            first.address.eq(0),
            left.eq(left - 1),
            If(
                (left == 0) & ~self.done,
                left.eq(spacing - 1),
                step.eq(step + 1),
                If(step == last + 1, self.done.eq(1)).Else(first.cs_n.eq(0), Case(step, commands)),
            ),
        ]
