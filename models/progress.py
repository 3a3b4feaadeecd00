"""Limits of waits: in wall time, or in the time of a simulation for those who wait for one.

A real board answers in wall time. A simulated board advances as fast as the machine allows: on a
busy or a slow machine, a limit in wall time says nothing about the board. A simulator therefore
publishes its progress in a file (``sim/harness/progress.h``). Commands that it starts find the path
in the environment variable :data:`VARIABLE`. There, N seconds of a limit are over when

1. N seconds of wall time have passed, because the peer's kernel and the ticks of the simulated
   design follow the wall: a limit never ends earlier than without a simulation; and
2. the simulation has advanced by N nominal seconds. A nominal second is the number of clock cycles
   that an idle reference machine simulates in about a second; the simulator publishes it as well.

A wait also ends when the simulator has ended, or when its counter has not advanced for
:data:`STALL` seconds of wall time. Without the variable only rule 1 applies.
"""

import mmap
import os
import time
from functools import cache

from .errors import TrebuchetError

__all__ = ["STALL", "VARIABLE", "Deadline", "Simulation", "current_simulation"]

#: Environment variable with the path of the file to which a simulator publishes its progress.
VARIABLE = "TREBUCHET_SIM_PROGRESS"
#: A simulation that does not advance for so many seconds of wall time has stopped.
STALL = 600.0

_NUMBERS = 3
#: Seconds of wall time between looks at the counter.
_PAUSE = 0.1


class Simulation:
    """The progress of a running simulator.

    Parameters
    ----------
    path : path
        The file that the simulator publishes to; a :class:`TrebuchetError` if it cannot be read.

    Attributes
    ----------
    nominal_hz : int
        Clock cycles of a nominal second.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            with open(path, "rb") as file:
                self._mapped = mmap.mmap(file.fileno(), 8 * _NUMBERS, prot=mmap.PROT_READ)
            # A descriptor of its own: locks belong to what open() returned.
            self._file = open(path, "rb")  # noqa: SIM115 - stays open
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "it is too short"
            raise TrebuchetError(
                f"cannot read the progress of the simulation from {os.fspath(path)} "
                f"(${VARIABLE}): {reason}"
            ) from error
        self._numbers = memoryview(self._mapped).cast("Q")
        self.nominal_hz = self._numbers[2]
        if not self.nominal_hz:
            raise TrebuchetError(f"{os.fspath(path)} (${VARIABLE}) is not from a simulator")
        self._seen = (self.cycles, time.monotonic())

    @property
    def cycles(self) -> int:
        """Clock cycles simulated so far."""
        return self._numbers[0]

    @property
    def ticks(self) -> int:
        """Millisecond ticks given to the design so far."""
        return self._numbers[1]

    def seconds(self) -> float:
        """Nominal seconds simulated so far."""
        return self.cycles / self.nominal_hz

    def fault(self) -> str | None:
        """Why the simulation will not advance any more; None if it may."""
        import fcntl  # noqa: PLC0415 - not every client's system has it, nor a simulator

        cycles, now = self.cycles, time.monotonic()
        if cycles != self._seen[0]:
            self._seen = (cycles, now)
        elif now - self._seen[1] > STALL:
            return f"the simulation has not advanced for {STALL:g} s"
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return None
        fcntl.flock(self._file, fcntl.LOCK_UN)
        return "the simulator has ended"


@cache
def _simulation(path: str) -> Simulation:
    return Simulation(path)


def current_simulation() -> Simulation | None:
    """The simulation that started this process, by :data:`VARIABLE`; None if there is none."""
    path = os.environ.get(VARIABLE)
    return _simulation(path) if path else None


class Deadline:
    """The end of a wait that begins now.

    Parameters
    ----------
    seconds : float
        How long it may last.
    simulation : Simulation or None
        The one that is waited for; None: wall time alone.

    As a string it is the length for a message: ``"30 s"``, ``"30 s of simulated time"``, or
    ``"12 s; the simulator has ended"``.
    """

    def __init__(self, seconds: float, simulation: Simulation | None = None) -> None:
        self.seconds, self.simulation = seconds, simulation
        self._start = time.monotonic()
        self._simulated = simulation.seconds() if simulation else 0.0
        self._fault: str | None = None

    def left(self) -> float:
        """Seconds that are left at least; 0 when the wait is over."""
        left = self._start + self.seconds - time.monotonic()
        if self.simulation is None:
            return max(left, 0.0)
        if self._ended():
            return 0.0
        return max(left, self._simulated + self.seconds - self.simulation.seconds(), 0.0)

    def pause(self) -> float:
        """How long to block before asking again, in seconds of wall time.

        Raises :class:`TimeoutError` when the wait is over.
        """
        left = self.left()
        if left <= 0:
            raise TimeoutError(f"timed out after {self}")
        return left if self.simulation is None else min(left, _PAUSE)

    def _ended(self) -> bool:
        if self._fault is None and self.simulation is not None:
            self._fault = self.simulation.fault()
        return self._fault is not None

    def __str__(self) -> str:
        if self._ended():
            return f"{time.monotonic() - self._start:.3g} s; {self._fault}"
        return f"{self.seconds:g} s" + (" of simulated time" if self.simulation else "")
