"""LiteDRAM's refresher, with a register between the timer of the ZQ calibration and the banks."""

from litedram.common import cmd_request_rw_layout
from litedram.core.refresher import RefreshSequencer, RefreshTimer, ZQCSExecuter
from litex.gen import LiteXModule
from litex.soc.interconnect import stream
from migen import FSM, If, NextState, Signal, log2_int

__all__ = ["LateRefresher"]


class LateRefresher(LiteXModule):
    """Takes the place of LiteDRAM's ``Refresher`` (``ControllerSettings.refresh_cls``).

    There, the comparison of a timer of 26 bits decides in the same cycle whether the banks go on
    behind a refresh: the longest path of an ECP5 with DDR3. A calibration that is due is remembered
    here, and follows a refresh as it does there. All else is as in LiteDRAM: ``cmd`` asks the banks
    to pause (``valid``), has their leave (``ready``), carries the memory's commands, and ends with
    ``last``; a refresh begins every tREFI at the latest when the banks allow it. Reset: idle.

    Parameters
    ----------
    settings
        LiteDRAM's controller settings, with its geometry and times in cycles.
    clk_freq : float
        Cycles in a second.
    zqcs_freq : float
        Calibrations in a second (JESD79-3F, 5.5.1), for memories that have them.
    postponing : int
        Must be 1: refreshes are not put off.
    """

    def __init__(self, settings, clk_freq, zqcs_freq=1.0, postponing=1):
        if postponing != 1:
            raise ValueError(f"Postponing must be 1, not {postponing!r}")
        timing, geometry = settings.timing, settings.geom
        banks = geometry.bankbits + log2_int(settings.phy.nranks)
        self.cmd = cmd = stream.Endpoint(cmd_request_rw_layout(a=geometry.addressbits, ba=banks))
        due, calibrate = Signal(), Signal()
        self.timer = RefreshTimer(timing.tREFI)
        self.sequencer = RefreshSequencer(cmd, timing.tRP, timing.tRFC)
        self.comb += self.timer.wait.eq(~self.timer.done)
        # A cycle late, as LiteDRAM's: the timer's comparison ends at a register, too. One that
        # comes while the banks still pause for the last is not lost.
        self.sync += If(self.timer.done, due.eq(1))
        self.fsm = fsm = FSM()
        fsm.act("IDLE", If(due & settings.with_refresh, NextState("WAIT-BANK-MACHINES")))
        fsm.act(
            "WAIT-BANK-MACHINES",
            cmd.valid.eq(1),
            If(cmd.ready, self.sequencer.start.eq(1), NextState("DO-REFRESH")),
        )
        self.sync += If(self.sequencer.start & ~self.timer.done, due.eq(0))
        resume = [cmd.valid.eq(0), cmd.last.eq(1), NextState("IDLE")]
        if timing.tZQCS is None:
            fsm.act("DO-REFRESH", cmd.valid.eq(1), If(self.sequencer.done, *resume))
            return
        self.zqcs_timer = RefreshTimer(int(clk_freq / zqcs_freq))
        self.zqcs_executer = ZQCSExecuter(cmd, timing.tRP, timing.tZQCS)
        self.comb += self.zqcs_timer.wait.eq(~self.zqcs_timer.done)
        self.sync += [
            If(self.zqcs_executer.start, calibrate.eq(0)),
            If(self.zqcs_timer.done, calibrate.eq(1)),
        ]
        fsm.act(
            "DO-REFRESH",
            cmd.valid.eq(1),
            If(
                self.sequencer.done,
                If(
                    calibrate,
                    self.zqcs_executer.start.eq(1),
                    NextState("DO-ZQCS"),
                ).Else(*resume),
            ),
        )
        fsm.act("DO-ZQCS", cmd.valid.eq(1), If(self.zqcs_executer.done, *resume))
