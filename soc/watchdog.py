"""A watchdog that first tells the CPU where it hangs, and then restarts the board."""

from litex.gen import LiteXModule
from litex.soc.interconnect.csr import CSR, CSRStatus, CSRStorage
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourcePulse
from migen import If, Signal

__all__ = ["WARNING_MS", "Watchdog"]

#: Some thousand instructions on the slowest clock, the nominal one of the simulated board.
WARNING_MS = 8


class Watchdog(LiteXModule):
    """Restarts the board when the firmware has not fed it for ``period`` milliseconds.

    LiteX's own has 32-bit cycle counters, no way to tell its restart from another, and with its
    default delay waits a second before it acts; this one counts the clock's milliseconds.

    Parameters
    ----------
    millisecond : Signal
        1 for one cycle a millisecond of the *clock*, not of protocol time: what it guards is a
        program, whose time is measured in cycles, also where a simulation is slow.

    ``restart`` is 1 while the board must be reset. CSRs: ``period`` in milliseconds, 0 (after
    reset) is off, and writing it feeds, too; ``feed`` (write anything); ``fired`` is 1 when the
    last reset was the watchdog's, which no reset clears, but writing 1 to ``forget``. The interrupt
    comes :data:`WARNING_MS` before the restart, so that its handler can note what was interrupted;
    there is none with a shorter period.
    """

    def __init__(self, millisecond):
        self.restart = Signal()
        self.period = CSRStorage(16, description="milliseconds until the restart; 0: off")
        self.feed = CSR(1)
        self.forget = CSR(1)
        self.fired = CSRStatus(1, description="1: the last reset was the watchdog's")
        self.ev = EventManager()
        self.ev.late = EventSourcePulse(description="the restart comes within milliseconds")
        self.ev.finalize()
        left = Signal(16)
        fired = Signal(reset_less=True)
        self.sync += [
            If(self.feed.re | self.period.re, left.eq(self.period.storage)).Elif(
                millisecond & (left != 0), left.eq(left - 1)
            ),
            self.restart.eq(millisecond & (left == 1) & ~self.feed.re),
            If(self.restart, fired.eq(1)).Elif(self.forget.re & self.forget.r, fired.eq(0)),
        ]
        self.comb += [
            self.ev.late.trigger.eq(millisecond & (left == WARNING_MS) & ~self.feed.re),
            self.fired.status.eq(fired),
        ]
